// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Kernels of sparse tensors. A thread computes an element of the result, and adds in the order of the CPU; but a product with a few
 * columns, whose threads would read far from each other, has several threads for each element.
 */
#include "kernels/cuda/launch_sparse.h"
#include "kernels/cuda/pointwise/complex.cuh"

#include "kernels/formula/dtypes.h"

enum {
	PARTS = 16,	 /* partial sums of sampled_mm */
	FEW_COLUMNS = 4, /* of a product with several threads for each element */
	LANES_MAX = 32
};

/* The type to add in. Integers wrap. */
template <class T> struct sum_of {
	typedef typename arith<T>::type type;
};
template <> struct sum_of<uint64_t> {
	typedef uint64_t type;
};
template <> struct sum_of<complex_f32> {
	typedef complex_f32 type;
};
template <> struct sum_of<complex_f64> {
	typedef complex_f64 type;
};

template <class T> struct adds_four {
	enum { yes = false };
};
template <> struct adds_four<float> {
	enum { yes = true };
};
template <> struct adds_four<double> {
	enum { yes = true };
};

/* The sum of row i in column j. A single column of floats has four sums on the CPU. */
template <class T>
static __device__ inline typename sum_of<T>::type row_sum(const cuda_spmm &s, int64_t i, int64_t j)
{
	typedef typename sum_of<T>::type S;
	const T *values = (const T *)s.values, *dense = (const T *)s.dense + j;
	const int64_t end = s.crow[i + 1];
	int64_t p = s.crow[i];
	S a = S(0), b = S(0), c = S(0), d = S(0);

	if (adds_four<T>::yes && s.n == 1)
		for (; p + 4 <= end; p += 4) {
			a = a + (S)values[p] * (S)dense[s.col[p] * s.lda];
			b = b + (S)values[p + 1] * (S)dense[s.col[p + 1] * s.lda];
			c = c + (S)values[p + 2] * (S)dense[s.col[p + 2] * s.lda];
			d = d + (S)values[p + 3] * (S)dense[s.col[p + 3] * s.lda];
		}
	for (; p < end; p++)
		a = a + (S)values[p] * (S)dense[s.col[p] * s.lda];
	return a + b + (c + d);
}

/* Writes element (i, j) from the sum of its products. */
template <class T, class S>
static __device__ inline void write_product(const cuda_spmm &s, int64_t i, int64_t j, S sum,
					    S alpha, S beta)
{
	T *out = (T *)s.out + i * s.ldo + j;

	sum = sum * alpha;
	if (s.beta != 0)
		sum = sum + beta * (S)*out;
	*out = (T)sum;
}

template <class T>
__global__ void spmm_kernel(cuda_spmm s, typename sum_of<T>::type alpha,
			    typename sum_of<T>::type beta)
{
	for (int64_t e = first_element<int64_t>(); e < s.m * s.n; e += element_step<int64_t>()) {
		const int64_t i = e / s.n, j = e % s.n;

		write_product<T>(s, i, j, row_sum<T>(s, i, j), alpha, beta);
	}
}

template <class S> static __device__ inline S of_lane(S value, unsigned mask)
{
	return __shfl_xor_sync(0xffffffff, value, mask);
}
template <class R>
static __device__ inline complex_of<R> of_lane(complex_of<R> value, unsigned mask)
{
	return complex_of<R>(of_lane(value.re, mask), of_lane(value.im, mask));
}

/* `lanes` threads, a power of two, for each element: neighbours read neighbouring entries of the row. */
template <class T>
__global__ void spmm_lanes_kernel(cuda_spmm s, unsigned lanes, typename sum_of<T>::type alpha,
				  typename sum_of<T>::type beta)
{
	typedef typename sum_of<T>::type S;
	const int64_t together = blockDim.x / lanes, count = s.m * s.n;
	const unsigned lane = threadIdx.x % lanes;

	for (int64_t at = blockIdx.x * together; at < count; at += gridDim.x * together) {
		const int64_t e = at + threadIdx.x / lanes, i = e / s.n, j = e % s.n;
		const int64_t end = e < count ? s.crow[i + 1] : 0;
		S sum = S(0);

		for (int64_t p = e < count ? s.crow[i] + lane : 0; p < end; p += lanes)
			sum = sum + (S)((const T *)s.values)[p] *
					    (S)((const T *)s.dense)[s.col[p] * s.lda + j];
		for (unsigned half = lanes / 2; half; half /= 2)
			sum = sum + of_lane(sum, half);
		if (e < count && !lane)
			write_product<T>(s, i, j, sum, alpha, beta);
	}
}

template <class T> __global__ void sampled_mm_kernel(cuda_sampled_mm s)
{
	typedef typename sum_of<T>::type S;

	for (int64_t p = first_element<int64_t>(); p < s.n; p += element_step<int64_t>()) {
		const T *a = (const T *)s.a + s.row[p] * s.lda;
		const T *b = (const T *)s.b + s.col[p] * s.ldb;
		S sum[PARTS];

#pragma unroll
		for (int k = 0; k < PARTS; k++)
			sum[k] = S(0);
		for (int64_t j = 0; j < s.k; j += PARTS) {
#pragma unroll
			for (int k = 0; k < PARTS; k++)
				if (j + k < s.k)
					sum[k] = sum[k] + (S)a[j + k] * (S)b[j + k];
		}
#pragma unroll
		for (int k = 1; k < PARTS; k++)
			sum[0] = sum[0] + sum[k];
		((T *)s.out)[p] = (T)sum[0];
	}
}

struct add_values {
	template <class T> static __device__ T of(T x, T y)
	{
		typedef typename sum_of<T>::type S;

		return (T)((S)x + (S)y);
	}
};

struct any_value {
	static __device__ uint8_t of(uint8_t x, uint8_t y)
	{
		return x | y;
	}
};

template <class T, class OP> __global__ void sum_runs_kernel(cuda_sum_runs s)
{
	for (int64_t e = first_element<int64_t>(); e < s.runs * s.block;
	     e += element_step<int64_t>()) {
		const int64_t run = e / s.block, k = e % s.block, end = s.starts[run + 1];
		const T *values = (const T *)s.values + k;
		int64_t p = s.starts[run];
		T sum = values[s.order[p] * s.block];

		for (p++; p < end; p++)
			sum = OP::of(sum, values[s.order[p] * s.block]);
		((T *)s.out)[e] = sum;
	}
}

/* ---- launches ---- */

/* As many as a row has entries in the mean. */
static unsigned lanes_of(const cuda_spmm *s)
{
	unsigned lanes = 1;

	while (s->n <= FEW_COLUMNS && lanes < LANES_MAX && s->entries / s->m >= 2 * lanes)
		lanes *= 2;
	return lanes;
}

template <class T> static int spmm(const cuda_spmm *s, cudaStream_t stream)
{
	/* As on the CPU: a factor has the dtype of the elements. */
	const typename sum_of<T>::type alpha((T)s->alpha), beta((T)s->beta);
	const unsigned lanes = lanes_of(s);

	if (lanes > 1)
		return launch(spmm_lanes_kernel<T>, grid_for(s->m * s->n, BLOCK / lanes), BLOCK,
			      stream, *s, lanes, alpha, beta);
	return launch(spmm_kernel<T>, grid_for(s->m * s->n, BLOCK), BLOCK, stream, *s, alpha, beta);
}

int cuda_launch_spmm(const cuda_spmm *s, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(NAME, T, D) \
	case D:       \
		return spmm<T>(s, stream);
		DTYPES_NUMBER(X)
		DTYPES_COMPLEX(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_sampled_mm(const cuda_sampled_mm *s, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(NAME, T, D) \
	case D:       \
		return launch(sampled_mm_kernel<T>, grid_for(s->n, BLOCK), BLOCK, stream, *s);
		DTYPES_NUMBER(X)
		DTYPES_COMPLEX(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_sum_runs(const cuda_sum_runs *s, int dtype, cudaStream_t stream)
{
	const unsigned grid = grid_for(s->runs * s->block, BLOCK);

	switch (dtype) {
	case TENSOR_BOOL:
		return launch(sum_runs_kernel<uint8_t, any_value>, grid, BLOCK, stream, *s);
#define X(NAME, T, D) \
	case D:       \
		return launch(sum_runs_kernel<T, add_values>, grid, BLOCK, stream, *s);
		DTYPES_NUMBER(X)
		DTYPES_COMPLEX(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
