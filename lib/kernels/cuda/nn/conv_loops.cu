// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions by loops over the taps: those with few channels in each of several groups, in
 * particular depthwise ones, and those of integers and complex numbers. A thread computes one
 * element of the output or of the input's gradient. The weight's gradient is a sum over the batch
 * and all outputs: each thread of a block sums some of them for several taps at once, and the block
 * combines these sums as a tree in shared memory. Nothing depends on the order of threads.
 */
#include "kernels/cuda/nn/windows.cuh"
#include "kernels/cuda/pointwise/complex.cuh"

/* A position in [batch, channels, plane]. */
template <class W> struct channel_place {
	typename W::position image, channel, place;

	__device__ channel_place(typename W::position i, typename W::position plane,
				 typename W::position channels)
	{
		const typename W::position rest = i / plane;

		place = i - rest * plane;
		image = rest / channels;
		channel = rest - image * channels;
	}
};

/* KW: the taps of a row, which are unrolled then, or 0: any number. */
template <class T, int KW, class W>
__global__ void conv_kernel(cuda_conv c, T *out, const T *input, const T *weight, const T *bias)
{
	typedef typename W::position position;
	const position channels = (position)(c.groups * c.out), plane = (position)c.w.out_plane;
	const position n = (position)c.batch * channels * plane;
	const int width = KW ? KW : c.w.kernel[2];

	for (position i = first_element<position>(); i < n; i += element_step<position>()) {
		const channel_place<W> at(i, plane, channels);
		const int64_t group = (int64_t)at.channel / c.out;
		const T *in = input + ((int64_t)at.image * c.groups + group) * c.in * c.w.in_plane;
		const T *w = weight + (int64_t)at.channel * c.in * c.w.taps;
		T sum = bias ? bias[at.channel] : T(0);
		int o[3];

		place_of((uint32_t)at.place, c.w.out, o);
		for (int64_t k = 0; k < c.in; k++, in += c.w.in_plane)
			for (int a = 0; a < c.w.kernel[0]; a++)
				for (int b = 0; b < c.w.kernel[1]; b++, w += width) {
					const uint32_t z = read_by(c.w, 0, o[0], a);
					const uint32_t y = read_by(c.w, 1, o[1], b);
					const T *line =
						in + ((int64_t)z * c.w.in[1] + y) * c.w.in[2];

					if (z >= (uint32_t)c.w.in[0] || y >= (uint32_t)c.w.in[1])
						continue;
#pragma unroll
					for (int t = 0; t < width; t++) {
						const uint32_t x = read_by(c.w, 2, o[2], t);

						if (x < (uint32_t)c.w.in[2])
							sum = sum + w[t] * line[x];
					}
				}
		out[i] = sum;
	}
}

template <class T, int KW, class W>
__global__ void conv_input_kernel(cuda_conv c, T *out, const T *grad, const T *weight,
				  const T *bias)
{
	typedef typename W::position position;
	const position channels = (position)(c.groups * c.in), plane = (position)c.w.in_plane;
	const position n = (position)c.batch * channels * plane;
	const int width = KW ? KW : c.w.kernel[2];

	for (position i = first_element<position>(); i < n; i += element_step<position>()) {
		const channel_place<W> at(i, plane, channels);
		const int64_t group = (int64_t)at.channel / c.in;
		const T *g = grad + ((int64_t)at.image * c.groups + group) * c.out * c.w.out_plane;
		const T *w = weight +
			     (group * c.out * c.in + (int64_t)at.channel - group * c.in) * c.w.taps;
		T sum = bias ? bias[at.channel] : T(0);
		int e[3], o[3];

		place_of((uint32_t)at.place, c.w.in, e);
		for (int64_t k = 0; k < c.out; k++, g += c.w.out_plane, w += c.in * c.w.taps)
			for (int a = 0; a < c.w.kernel[0]; a++)
				for (int b = 0; b < c.w.kernel[1]; b++) {
					const T *taps = w + (a * c.w.kernel[1] + b) * width;

					if (!(reader_of(c.w, 0, e[0], a, &o[0]) &
					      reader_of(c.w, 1, e[1], b, &o[1])))
						continue;
					const T *line = g + ((int64_t)o[0] * c.w.out[1] + o[1]) *
								    c.w.out[2];

#pragma unroll
					for (int t = 0; t < width; t++)
						if (reader_of(c.w, 2, e[2], t, &o[2]))
							sum = sum + taps[t] * line[o[2]];
				}
		out[i] = sum;
	}
}

/* ---- the weight's gradient ---- */

/* Taps of a block: blockIdx.z * TAPS and following. */
template <int TAPS> struct tap_shifts {
	int z[TAPS], y[TAPS], x[TAPS];

	__device__ void set(const cuda_windows &w, int t)
	{
		int64_t tap = (int64_t)blockIdx.z * TAPS + t;
		int at[3];

		/* The last block has fewer taps: it sums its last one repeatedly. */
		tap = tap < w.taps ? tap : w.taps - 1;
		place_of((uint32_t)tap, w.kernel, at);
		z[t] = at[0] * w.dilation[0] - w.padding[0];
		y[t] = at[1] * w.dilation[1] - w.padding[1];
		x[t] = at[2] * w.dilation[2] - w.padding[2];
	}
};

/* Block (blockIdx.x, y, z): an output and an input channel, a piece of the sum, some taps. */
template <class T, int TAPS, class W>
__global__ void __launch_bounds__(BLOCK)
	conv_weight_kernel(cuda_conv c, T *out, const T *grad, const T *input)
{
	typedef typename W::position position;
	__shared__ tap_shifts<TAPS> shift;
	__shared__ T s[TAPS][BLOCK];
	const position plane = (position)c.w.out_plane, all = plane * (position)c.batch;
	const position chunk = (all + gridDim.y - 1) / gridDim.y, from = blockIdx.y * chunk;
	const position to = from + chunk < all ? from + chunk : all;
	const int64_t channel = blockIdx.x / c.in, group = channel / c.out;
	const int64_t read = group * c.in + blockIdx.x % c.in;
	T sum[TAPS];

	if (threadIdx.x < TAPS)
		shift.set(c.w, threadIdx.x);
#pragma unroll
	for (int t = 0; t < TAPS; t++)
		sum[t] = T(0);
	__syncthreads();
	for (position i = from + threadIdx.x; i < to; i += BLOCK) {
		const position image = i / plane;
		const T g = grad[((int64_t)image * c.groups * c.out + channel) * c.w.out_plane +
				 (int64_t)(i - image * plane)];
		const T *in = input + ((int64_t)image * c.groups * c.in + read) * c.w.in_plane;
		int o[3];

		place_of((uint32_t)(i - image * plane), c.w.out, o);
		for (int d = 0; d < 3; d++)
			o[d] *= c.w.stride[d];
#pragma unroll
		for (int t = 0; t < TAPS; t++) {
			const uint32_t z = (uint32_t)(o[0] + shift.z[t]),
				       y = (uint32_t)(o[1] + shift.y[t]);
			const uint32_t x = (uint32_t)(o[2] + shift.x[t]);
			T v = T(0); /* in the padding, where an infinite gradient gives NaN */

			if (z < (uint32_t)c.w.in[0] && y < (uint32_t)c.w.in[1] &&
			    x < (uint32_t)c.w.in[2])
				v = in[((int64_t)z * c.w.in[1] + y) * c.w.in[2] + x];
			sum[t] = sum[t] + g * v;
		}
	}
#pragma unroll
	for (int t = 0; t < TAPS; t++)
		s[t][threadIdx.x] = sum[t];
	__syncthreads();
	for (unsigned half = BLOCK / 2; half; half /= 2) {
		if (threadIdx.x < half)
#pragma unroll
			for (int t = 0; t < TAPS; t++)
				s[t][threadIdx.x] = s[t][threadIdx.x] + s[t][threadIdx.x + half];
		__syncthreads();
	}
	const int64_t tap = (int64_t)blockIdx.z * TAPS + threadIdx.x;

	if (threadIdx.x < TAPS && tap < c.w.taps)
		out[((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * c.w.taps + tap] =
			s[threadIdx.x][0];
}

/* Adds the pieces of each of n elements, in order. */
template <class T>
__global__ void conv_pieces_kernel(int64_t n, int pieces, T *out, const T *partial)
{
	for (int64_t i = first_element<int64_t>(); i < n; i += element_step<int64_t>()) {
		T sum = partial[i];

		for (int k = 1; k < pieces; k++)
			sum = sum + partial[k * n + i];
		out[i] = sum;
	}
}

/* ---- launches ---- */

/* The smallest unrolled width for floats; others and other widths have a loop. */
#define BY_WIDTH(KERNEL, ...)                                                                     \
	switch (FLOAT ? c->w.kernel[2] : 0) {                                                     \
	case 3:                                                                                   \
		return launch(c->w.wide ? KERNEL < T, FLOAT ? 3 : 0, wide > : KERNEL < T,         \
			      FLOAT ? 3 : 0, mixed >, __VA_ARGS__);                               \
	case 5:                                                                                   \
		return launch(c->w.wide ? KERNEL < T, FLOAT ? 5 : 0, wide > : KERNEL < T,         \
			      FLOAT ? 5 : 0, mixed >, __VA_ARGS__);                               \
	default:                                                                                  \
		return launch(c->w.wide ? KERNEL<T, 0, wide> : KERNEL<T, 0, mixed>, __VA_ARGS__); \
	}

template <class T, bool FLOAT>
static int forward(const cuda_conv *c, void *result, const void *input, const void *weight,
		   const void *bias, cudaStream_t stream)
{
	const int64_t n = c->batch * c->groups * c->out * c->w.out_plane;

	BY_WIDTH(conv_kernel, grid_for(n, BLOCK), BLOCK, stream, *c, (T *)result, (const T *)input,
		 (const T *)weight, (const T *)bias)
}

template <class T, bool FLOAT>
static int gradient(const cuda_conv *c, void *result, const void *grad, const void *weight,
		    const void *bias, cudaStream_t stream)
{
	const int64_t n = c->batch * c->groups * c->in * c->w.in_plane;

	BY_WIDTH(conv_input_kernel, grid_for(n, BLOCK), BLOCK, stream, *c, (T *)result,
		 (const T *)grad, (const T *)weight, (const T *)bias)
}

template <class T, int TAPS>
static int weight_of(const cuda_conv *c, void *result, const void *grad, const void *input,
		     void *partial, int split, cudaStream_t stream)
{
	const int64_t rows = c->groups * c->out * c->in, n = rows * c->w.taps;
	const dim3 grid((unsigned)rows, (unsigned)split, (unsigned)((c->w.taps + TAPS - 1) / TAPS));
	int err = launch(c->w.wide ? conv_weight_kernel<T, TAPS, wide> :
				     conv_weight_kernel<T, TAPS, mixed>,
			 grid, BLOCK, stream, *c, (T *)(split > 1 ? partial : result),
			 (const T *)grad, (const T *)input);

	return err || split == 1 ? err :
				   launch(conv_pieces_kernel<T>, grid_for(n, BLOCK), BLOCK, stream,
					  n, split, (T *)result, (const T *)partial);
}

/* Integers have the same bits with or without a sign. */
#define FOR_CONV(X)                               \
	X(TENSOR_F32, float, true)                \
	X(TENSOR_F64, double, true)               \
	X(TENSOR_C64, complex_of<float>, false)   \
	X(TENSOR_C128, complex_of<double>, false) \
	X(TENSOR_U8, uint8_t, false)              \
	X(TENSOR_I8, uint8_t, false)              \
	X(TENSOR_U16, uint16_t, false)            \
	X(TENSOR_I16, uint16_t, false)            \
	X(TENSOR_U32, uint32_t, false)            \
	X(TENSOR_I32, uint32_t, false)            \
	X(TENSOR_U64, uint64_t, false)            \
	X(TENSOR_I64, uint64_t, false)

int cuda_launch_conv(const cuda_conv *c, void *result, const void *input, const void *weight,
		     const void *bias, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T, FLOAT) \
	case D:        \
		return forward<T, FLOAT>(c, result, input, weight, bias, stream);
		FOR_CONV(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_conv_input(const cuda_conv *c, void *result, const void *grad, const void *weight,
			   const void *bias, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T, FLOAT) \
	case D:        \
		return gradient<T, FLOAT>(c, result, grad, weight, bias, stream);
		FOR_CONV(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

enum { FLOAT_TAPS = 9 };

int cuda_conv_weight_split(const cuda_conv *c)
{
	const int64_t blocks =
		c->groups * c->out * c->in * ((c->w.taps + FLOAT_TAPS - 1) / FLOAT_TAPS);
	const int64_t most = c->batch * c->w.out_plane / (8 * BLOCK), wanted = 2048 / blocks;
	const int64_t n = wanted < most ? wanted : most;

	return (int)(n < 1 ? 1 : n);
}

int cuda_launch_conv_weight(const cuda_conv *c, void *result, const void *grad, const void *input,
			    void *partial, int split, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T, FLOAT)                \
	case D:                       \
		return weight_of < T, \
		       FLOAT ? FLOAT_TAPS : 1 > (c, result, grad, input, partial, split, stream);
		FOR_CONV(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
