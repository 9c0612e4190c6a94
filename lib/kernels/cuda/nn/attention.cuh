/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shared by the kernels of attention: the matrices of a head, masks, and what backward has saved. */
#ifndef TENSOR_CUDA_ATTENTION_CUH
#define TENSOR_CUDA_ATTENTION_CUH

#include "kernels/cuda/half.cuh"
#include "kernels/cuda/launch_attention.h"

static __device__ inline float fused(float a, float b, float c)
{
	return fmaf(a, b, c);
}

static __device__ inline double fused(double a, double b, double c)
{
	return fma(a, b, c);
}

template <class T> static __device__ inline T infinity()
{
	return (T)INFINITY;
}

/* The first element of a head. */
static __device__ inline int64_t head_offset(const cuda_attention &a, const cuda_heads &m,
					     int64_t head)
{
	int64_t offset = 0;

#pragma unroll 1
	for (int d = a.batch - 1; d >= 0; d--) {
		const int64_t rest = head / a.sizes[d];

		offset += (head - rest * a.sizes[d]) * m.batch[d];
		head = rest;
	}
	return offset;
}

/* Rows of the matrix of one head. */
template <class X> struct head_rows {
	typedef typename number<X>::compute T;
	X *data;
	int64_t row, column, rows, columns;

	__device__ head_rows(const cuda_attention &a, const cuda_heads &m, int64_t head,
			     int64_t rows_, int64_t columns_)
	    : data((X *)m.data + head_offset(a, m, head)), row(m.row), column(m.column),
	      rows(rows_), columns(columns_)
	{
	}
	/* 0 beyond the matrix. */
	__device__ T get(int64_t i, int64_t j) const
	{
		return i < rows && j < columns ? number<X>::load(data[i * row + j * column]) : (T)0;
	}
	__device__ void set(int64_t i, int64_t j, T value) const
	{
		if (i < rows && j < columns)
			data[i * row + j * column] = number<X>::store(value);
	}
};

/* Element `at` of the mask as an addend of a score. */
template <class T> static __device__ inline T mask_value(const cuda_attention &a, int64_t at)
{
	switch (a.mask_dtype) {
	case TENSOR_BOOL:
		return ((const uint8_t *)a.mask.data)[at] ? (T)0 : -infinity<T>();
	case TENSOR_F16:
		return (T)(float)((const f16 *)a.mask.data)[at];
	case TENSOR_BF16:
		return (T)(float)((const bf16 *)a.mask.data)[at];
	case TENSOR_F32:
		return (T)((const float *)a.mask.data)[at];
	default:
		return (T)((const double *)a.mask.data)[at];
	}
}

/* The score of a product of query i and key j; -inf if the query has not that key. */
template <class T>
static __device__ inline T masked_score(const cuda_attention &a, int64_t mask, T product, int64_t i,
					int64_t j)
{
	if (i >= a.queries || j >= a.keys || (a.causal && j > i))
		return -infinity<T>();
	product *= (T)a.scale;
	return a.mask.data ? product + mask_value<T>(a, mask + i * a.mask.row + j * a.mask.column) :
			     product;
}

/* The number of keys that queries below `to` have. */
static __device__ inline int64_t keys_until(const cuda_attention &a, int64_t to)
{
	return a.causal && to < a.keys ? to : a.keys;
}

/* The logsumexp of a sum of exponentials, and *factor of the output. With a mask, a query without
 * permitted keys gives zeros; one whose scores are all -inf without a mask gives NaN. */
template <class T>
static __device__ inline T finish_sum(const cuda_attention &a, T max, T sum, T *factor)
{
	const T empty = a.mask.data || !a.keys ? (T)0 : (T)NAN;

	*factor = sum == 0 ? empty : 1 / sum;
	return sum == 0 ? empty - infinity<T>() : max + logarithm(sum);
}

/* Backward needs of a query the maximum that is subtracted from its scores, the logarithm of
 * the sum of their exponentials then, and the product of its gradient and its output. */
template <class T> struct saved_sums {
	const T *products, *max, *sums;

	__device__ saved_sums(const cuda_attention &a, int64_t head)
	{
		const int64_t all = a.heads * a.queries;

		products = (const T *)a.saved + head * a.queries;
		max = products + all;
		sums = max + all;
	}
};

#endif
