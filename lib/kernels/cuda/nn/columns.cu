// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * im2col and col2im. A thread has one output of a plane and stores its taps, or one element of an
 * image and sums the columns that it was copied to: no atomics, in the order of the taps.
 */
#include "kernels/cuda/nn/windows.cuh"
#include "kernels/cuda/pointwise/complex.cuh"

template <class T, class W>
__global__ void im2col_kernel(cuda_columns c, T *columns, const T *images)
{
	typedef typename W::position position;
	const position places = (position)c.w.out_plane, planes = (position)c.planes;
	const position n = places * planes * (position)c.images;

	for (position i = first_element<position>(); i < n; i += element_step<position>()) {
		const position rest = i / places, image = rest / planes,
			       plane = rest - image * planes;
		const T *in =
			images + (int64_t)image * c.planes_step + (int64_t)plane * c.w.in_plane;
		T *to = columns + (int64_t)image * c.image_step +
			(int64_t)plane * c.w.taps * c.row_step + (int64_t)(i - rest * places);
		int o[3];

		place_of((uint32_t)(i - rest * places), c.w.out, o);
		for (int a = 0; a < c.w.kernel[0]; a++)
			for (int b = 0; b < c.w.kernel[1]; b++) {
				const uint32_t z = read_by(c.w, 0, o[0], a),
					       y = read_by(c.w, 1, o[1], b);
				const bool there = z < (uint32_t)c.w.in[0] &&
						   y < (uint32_t)c.w.in[1];
				const T *line = in + ((int64_t)z * c.w.in[1] + y) * c.w.in[2];

				for (int k = 0; k < c.w.kernel[2]; k++, to += c.row_step) {
					const uint32_t x = read_by(c.w, 2, o[2], k);
					T v = {};

					if (there && x < (uint32_t)c.w.in[2])
						v = line[x];
					*to = v;
				}
			}
	}
}

template <class T, class W>
__global__ void col2im_kernel(cuda_columns c, T *images, const T *columns, const T *bias)
{
	typedef typename W::position position;
	const position size = (position)c.w.in_plane, planes = (position)c.planes;
	const position n = size * planes * (position)c.images;

	for (position i = first_element<position>(); i < n; i += element_step<position>()) {
		const position rest = i / size, image = rest / planes,
			       plane = rest - image * planes;
		const T *from = columns + (int64_t)image * c.image_step +
				(int64_t)plane * c.w.taps * c.row_step;
		T sum = T(0);
		int at[3], o[3];

		place_of((uint32_t)(i - rest * size), c.w.in, at);
		for (int a = 0; a < c.w.kernel[0]; a++)
			for (int b = 0; b < c.w.kernel[1]; b++) {
				const bool read = reader_of(c.w, 0, at[0], a, &o[0]) &
						  reader_of(c.w, 1, at[1], b, &o[1]);

				for (int k = 0; k < c.w.kernel[2]; k++, from += c.row_step)
					if (reader_of(c.w, 2, at[2], k, &o[2]) && read)
						sum = sum + from[((int64_t)o[0] * c.w.out[1] +
								  o[1]) * c.w.out[2] +
								 o[2]];
			}
		if (bias)
			sum = sum + bias[plane];
		images[(int64_t)image * c.planes_step + (int64_t)plane * c.w.in_plane +
		       (int64_t)(i - rest * size)] = sum;
	}
}

/* ---- launches ---- */

int cuda_launch_im2col(const cuda_columns *c, void *columns, const void *images, int itemsize,
		       cudaStream_t stream)
{
	const unsigned grid = grid_for(c->w.out_plane * c->planes * c->images, BLOCK);

	switch (itemsize) {
#define X(N, T)                                                                                   \
	case N:                                                                                   \
		return launch(c->w.wide ? im2col_kernel<T, wide> : im2col_kernel<T, mixed>, grid, \
			      BLOCK, stream, *c, (T *)columns, (const T *)images);
		FOR_BITS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_col2im(const cuda_columns *c, void *images, const void *columns, const void *bias,
		       int dtype, cudaStream_t stream)
{
	const unsigned grid = grid_for(c->w.in_plane * c->planes * c->images, BLOCK);

	switch (dtype) {
#define X(D, T)                                                                                   \
	case D:                                                                                   \
		return launch(c->w.wide ? col2im_kernel<T, wide> : col2im_kernel<T, mixed>, grid, \
			      BLOCK, stream, *c, (T *)images, (const T *)columns,                 \
			      (const T *)bias);
		FOR_FLOATS(X)
		X(TENSOR_C64, complex_of<float>)
		X(TENSOR_C128, complex_of<double>)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
