// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sums along rows. A block has X threads along a row times Y rows; X and Y are powers of two chosen
 * by the row's length, from one thread for a short row (adjacent threads have adjacent rows) to a
 * whole block for a long one. There are no atomics: the order of every addition depends on the
 * shape alone.
 */
#include "kernels/cuda/pointwise/complex.cuh"
#include "kernels/cuda/reduce/rows.cuh"

/*
 * The sum of elements i, i + step, ... below `to` of a row at `in`. Four are loaded before the first is added, if they are
 * evenly spaced.
 */
template <class T, class A, class W>
static __device__ inline A sum_elements(const walk<2, 0, W> &reduced, const T *in,
					typename W::position i, typename W::position to,
					typename W::position step)
{
	typedef typename W::offset offset;
	A sum[4] = { 0, 0, 0, 0 };

	if (reduced.ndim == 1) {
		const offset s = reduced.stride[1][0];

		for (; to > 3 * step && i < to - 3 * step; i += 4 * step) {
			T x[4];

#pragma unroll
			for (int k = 0; k < 4; k++)
				x[k] = in[(int64_t)((offset)(i + (typename W::position)k * step) *
						    s)];
#pragma unroll
			for (int k = 0; k < 4; k++)
				sum[k] = sum[k] + (A)x[k];
		}
	}
	for (; i < to; i += step) {
		offset off[2] = {};

		reduced.seek(i, off);
		sum[0] = sum[0] + (A)in[(int64_t)off[1]];
	}
	return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Sums piece blockIdx.y of each row r, into partial[r * pieces + piece] unless that is NULL. */
template <class T, class A, class W>
__global__ void sum_kernel(walk<2, 0, W> kept, walk<2, 0, W> reduced, A *out, const T *in,
			   A *partial)
{
	typedef typename W::position position;
	const position chunk = (reduced.numel + gridDim.y - 1) / gridDim.y;
	const position from = (position)blockIdx.y * chunk;
	position to = from + chunk;

	if (to > reduced.numel)
		to = reduced.numel;
	for (position base = (position)blockIdx.x * blockDim.y; base < kept.numel;
	     base += (position)gridDim.x * blockDim.y) {
		const position row = base + threadIdx.y;
		typename W::offset at[2] = {};
		A acc = 0;

		if (row < kept.numel) {
			kept.seek(row, at);
			acc = sum_elements<T, A, W>(reduced, in + (int64_t)at[1],
						    from + threadIdx.x, to, blockDim.x);
		}
		acc = join_lanes(plus(), acc);
		if (row < kept.numel && threadIdx.x == 0) {
			if (partial)
				partial[row * gridDim.y + blockIdx.y] = acc;
			else
				out[at[0]] = acc;
		}
	}
}

/* Adds the pieces of each row, which are adjacent in `partial`. */
template <class A, class W>
__global__ void sum_pieces_kernel(walk<2, 0, W> kept, A *out, const A *partial, int pieces)
{
	typedef typename W::position position;

	for (position base = (position)blockIdx.x * blockDim.y; base < kept.numel;
	     base += (position)gridDim.x * blockDim.y) {
		const position row = base + threadIdx.y;
		A acc = 0;

		if (row < kept.numel)
			for (int i = threadIdx.x; i < pieces; i += blockDim.x)
				acc = acc + partial[row * pieces + i];
		acc = join_lanes(plus(), acc);
		if (row < kept.numel && threadIdx.x == 0) {
			typename W::offset at[2] = {};

			kept.seek(row, at);
			out[at[0]] = acc;
		}
	}
}

template <class T, class A, class W>
static int sum_of(const cuda_rows *r, int split, void *partial, cudaStream_t stream)
{
	const walk<2, 0, W> kept(r->kept), reduced(r->reduced);
	unsigned x = r->across ? 1 : lanes_for(r->reduced.numel / split);
	dim3 block(x, BLOCK / x), grid(grid_for(r->kept.numel, BLOCK / x), split);
	int err;

	err = launch(sum_kernel<T, A, W>, grid, block, stream, kept, reduced, (A *)r->data[0],
		     (const T *)r->data[1], split > 1 ? (A *)partial : (A *)0);
	if (err || split == 1)
		return err;
	x = lanes_for(split);
	return launch(sum_pieces_kernel<A, W>, grid_for(r->kept.numel, BLOCK / x),
		      dim3(x, BLOCK / x), stream, kept, (A *)r->data[0], (const A *)partial, split);
}

int cuda_launch_sum(const cuda_rows *r, int dtype, int split, void *partial, cudaStream_t stream)
{
	bool w = r->kept.wide || r->reduced.wide;

	switch (dtype) {
#define SUM(D, T, A)                                                       \
	case D:                                                            \
		return w ? sum_of<T, A, wide>(r, split, partial, stream) : \
			   sum_of<T, A, narrow>(r, split, partial, stream);
#define X(D, T) SUM(D, T, int64_t)
		SUM(TENSOR_BOOL, uint8_t, int64_t)
		FOR_INTS(X)
#undef X
		SUM(TENSOR_F32, float, float)
		SUM(TENSOR_F64, double, double)
		SUM(TENSOR_C64, complex_of<float>, complex_of<float>)
		SUM(TENSOR_C128, complex_of<double>, complex_of<double>)
	default:
		return CUDA_NO_DTYPE;
	}
}
