// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Kernels with an index tensor: take_kernel for index_select and gather, put_kernel for index_add
 * and scatter_add. The host launches check_kernel first, so neither accesses memory out of range.
 */
#include "kernels/cuda/device.cuh"

/* Operand 2 is the index. */
template <class X, class W>
__global__ void check_kernel(walk<3, 0, W> w, const X *index, int64_t limit,
			     unsigned long long *bad)
{
	typedef typename W::position position;

	for (position i = first_element<position>(); i < w.numel; i += element_step<position>()) {
		typename W::offset off[3] = {};

		w.seek(i, off);
		int64_t at = index[off[2]];

		if (at < 0 || at >= limit)
			atomicMin(bad, (unsigned long long)i);
	}
}

template <class T, class X, class W>
__global__ void take_kernel(walk<3, 0, W> w, T *out, const T *in, const X *index, int64_t step)
{
	typedef typename W::position position;

	for (position i = first_element<position>(); i < w.numel; i += element_step<position>()) {
		typename W::offset off[3] = {};

		w.seek(i, off);
		out[off[0]] = in[(int64_t)off[1] + (int64_t)index[off[2]] * step];
	}
}

struct put_steps {
	int64_t step, count, source, index;
};

/* A thread handles whole columns, so no two threads add to the same element. */
template <class T, class X, class W>
__global__ void put_kernel(walk<3, 0, W> w, T *out, const T *source, const X *index, put_steps s,
			   T alpha)
{
	typedef typename W::position position;
	typedef typename arith<T>::type A;

	for (position i = first_element<position>(); i < w.numel; i += element_step<position>()) {
		typename W::offset off[3] = {};

		w.seek(i, off);
		for (int64_t k = 0; k < s.count; k++) {
			int64_t to =
				(int64_t)off[0] + (int64_t)index[off[2] + k * s.index] * s.step;

			out[to] = (T)((A)out[to] + (A)alpha * (A)source[off[1] + k * s.source]);
		}
	}
}

template <class X, class W>
static int check(const cuda_index *x, unsigned long long *bad, cudaStream_t stream)
{
	return launch(check_kernel<X, W>, grid_for(x->dims.numel, BLOCK), BLOCK, stream,
		      walk<3, 0, W>(x->dims), (const X *)x->data[2], x->limit, bad);
}

template <class T, class X, class W> static int take(const cuda_index *x, cudaStream_t stream)
{
	return launch(take_kernel<T, X, W>, grid_for(x->dims.numel, BLOCK), BLOCK, stream,
		      walk<3, 0, W>(x->dims), (T *)x->data[0], (const T *)x->data[1],
		      (const X *)x->data[2], x->step);
}

template <class T, class X, class W> static int put(const cuda_index *x, cudaStream_t stream)
{
	put_steps s = { x->step, x->count, x->along[1], x->along[2] };

	return launch(put_kernel<T, X, W>, grid_for(x->dims.numel, BLOCK), BLOCK, stream,
		      walk<3, 0, W>(x->dims), (T *)x->data[0], (const T *)x->data[1],
		      (const X *)x->data[2], s, scalar_as<T>(x->alpha));
}

/* f<..., X, W> for the index's dtype X and the index width W. */
#define BY_INDEX(x, f, ...)                                                                       \
	((x)->wide_index ?                                                                        \
		 (x)->dims.wide ? f<__VA_ARGS__ int64_t, wide> : f<__VA_ARGS__ int64_t, narrow> : \
	 (x)->dims.wide ? f<__VA_ARGS__ int32_t, wide> :                                          \
			  f<__VA_ARGS__ int32_t, narrow>)

int cuda_launch_check_index(const cuda_index *x, unsigned long long *bad, cudaStream_t stream)
{
	return BY_INDEX(x, check, )(x, bad, stream);
}

#define COMMA ,

int cuda_launch_take(const cuda_index *x, int itemsize, cudaStream_t stream)
{
	switch (itemsize) {
#define X(N, T) \
	case N: \
		return BY_INDEX(x, take, T COMMA)(x, stream);
		FOR_BITS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_put(const cuda_index *x, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return BY_INDEX(x, put, T COMMA)(x, stream);
		FOR_NUMBERS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
