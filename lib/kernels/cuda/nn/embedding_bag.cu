// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * embedding_bag: a thread has a column of a bag, whose rows it adds in order. The gradient of a table
 * is that of an embedding, of rows that are scaled here.
 */
#include "kernels/cuda/half.cuh"
#include "kernels/cuda/launch_embedding.h"
#include "kernels/cuda/report.cuh"

/* Element `at` of integers, and where it is stored. */
template <class I> static __device__ inline int64_t index_at(const void *t, int64_t at)
{
	return (int64_t)((const I *)t)[at];
}

template <class I> __global__ void bags_check_kernel(cuda_bags b)
{
	for (int64_t i = first_element<int64_t>(); i < b.m + b.noffsets;
	     i += element_step<int64_t>()) {
		if (i >= b.m) {
			const int64_t k = i - b.m, o = index_at<I>(b.offsets, k);
			const int64_t before = k ? index_at<I>(b.offsets, k - 1) : 0;

			if (o < before || o > b.m || (!k && o))
				report_value(b.bad, CUDA_BAD_OFFSET, (uint64_t)i, o, b.m);
			continue;
		}
		const int64_t row = index_at<I>(b.indices, i);
		int64_t low = 0, high = b.noffsets;

		if (row < 0 || row >= b.rows)
			report_value(b.bad, CUDA_BAD_ROW, (uint64_t)i, row, b.rows);
		while (low < high) { /* the first bag that begins behind i */
			const int64_t middle = low + (high - low) / 2;

			if (index_at<I>(b.offsets, middle) > i)
				high = middle;
			else
				low = middle + 1;
		}
		((I *)b.offset2bag)[i] = (I)(low - 1);
	}
}

/* The range of indices of a bag, within all of them. */
template <class I>
static __device__ inline void bag_range(const cuda_bags &b, int64_t bag, int64_t *from, int64_t *to)
{
	*from = index_at<I>(b.offsets, bag);
	*to = bag + 1 < b.noffsets ? index_at<I>(b.offsets, bag + 1) : b.m;
	*from = *from < 0 ? 0 : *from;
	*to = *to > b.m ? b.m : *to;
}

template <class X, class I> __global__ void bags_kernel(cuda_bags b, void *out, const X *weight)
{
	typedef typename number<X>::compute T;

	for (int64_t i = first_element<int64_t>(); i < b.bags * b.d; i += element_step<int64_t>()) {
		const int64_t bag = i / b.d, column = i % b.d;
		int64_t from, to, count = 0, best = 0;
		T sum = 0;

		bag_range<I>(b, bag, &from, &to);
		for (int64_t k = from; k < to; k++) {
			const int64_t row = index_at<I>(b.indices, k);

			if (row == b.padding || row < 0 || row >= b.rows)
				continue;
			const T x = number<X>::load(weight[row * b.d + column]);

			if (b.mode != CUDA_BAG_MAX) {
				sum += b.factors ? x * ((const T *)b.factors)[k] : x;
			} else if (!count || x > sum) {
				sum = x;
				best = row;
			}
			count++;
		}
		if (b.mode == CUDA_BAG_MEAN && count > 1)
			sum /= (T)count;
		((T *)out)[i] = sum;
		if (b.mode == CUDA_BAG_MAX)
			((I *)b.maximum)[i] = (I)best;
		if (column == 0)
			((I *)b.bag_size)[bag] = (I)(b.mode == CUDA_BAG_SUM ? 0 : count);
	}
}

/* Sizes of bags of rows without columns. */
template <class I> __global__ void bag_sizes_kernel(cuda_bags b)
{
	for (int64_t bag = first_element<int64_t>(); bag < b.bags; bag += element_step<int64_t>()) {
		int64_t from, to, count = 0;

		bag_range<I>(b, bag, &from, &to);
		for (int64_t k = from; k < to; k++)
			count += index_at<I>(b.indices, k) != b.padding;
		((I *)b.bag_size)[bag] = (I)(b.mode == CUDA_BAG_SUM ? 0 : count);
	}
}

template <class I> __global__ void bags_check_made_kernel(cuda_bags b)
{
	for (int64_t i = first_element<int64_t>(); i < b.m; i += element_step<int64_t>()) {
		const int64_t bag = index_at<I>(b.offset2bag, i), row = index_at<I>(b.indices, i);

		if (bag < 0 || bag >= b.bags)
			report_value(b.bad, CUDA_BAD_BAG, (uint64_t)i, bag, b.bags);
		if (row < 0 || row >= b.rows)
			report_value(b.bad, CUDA_BAD_ROW, (uint64_t)(b.m + i), row, b.rows);
	}
}

template <class X, class I> __global__ void bag_rows_kernel(cuda_bags b, void *out, const X *grad)
{
	typedef typename number<X>::compute T;
	const bool max = b.mode == CUDA_BAG_MAX;
	const int64_t n = (max ? b.bags : b.m) * b.d;

	for (int64_t i = first_element<int64_t>(); i < n; i += element_step<int64_t>()) {
		const int64_t row = i / b.d, bag = max ? row : index_at<I>(b.offset2bag, row);
		T v = 0;

		if (bag >= 0 && bag < b.bags && !(max && !index_at<I>(b.bag_size, bag)))
			v = number<X>::load(grad[bag * b.d + i % b.d]);
		if (b.factors && !max)
			v *= ((const T *)b.factors)[row];
		if (b.mode == CUDA_BAG_MEAN && bag >= 0 && bag < b.bags)
			v /= (T)index_at<I>(b.bag_size, bag);
		((T *)out)[i] = v;
	}
}

/* A warp has an index. */
template <class X, class I>
__global__ void __launch_bounds__(BLOCK)
	bag_products_kernel(cuda_bags b, void *out, const X *grad, const X *weight)
{
	typedef typename number<X>::compute T;
	const int lane = (int)threadIdx.x % 32;

	for (int64_t i = first_element<int64_t>() / 32; i < b.m;
	     i += element_step<int64_t>() / 32) {
		const int64_t row = index_at<I>(b.indices, i), bag = index_at<I>(b.offset2bag, i);
		const bool there = row >= 0 && row < b.rows && bag >= 0 && bag < b.bags &&
				   row != b.padding;
		T sum = 0;

		for (int64_t j = lane; there && j < b.d; j += 32)
			sum += number<X>::load(weight[row * b.d + j]) *
			       number<X>::load(grad[bag * b.d + j]);
		for (int half = 16; half; half /= 2)
			sum += __shfl_xor_sync(0xffffffff, sum, half);
		if (lane == 0)
			((T *)out)[i] = sum;
	}
}

/* ---- launches ---- */

#define EITHER_INDEX(b, CALL) ((b)->wide ? CALL(int64_t) : CALL(int32_t))

int cuda_launch_bags_check(const cuda_bags *b, cudaStream_t stream)
{
#define CALL(I) launch(bags_check_kernel<I>, grid_for(b->m + b->noffsets, BLOCK), BLOCK, stream, *b)
	return EITHER_INDEX(b, CALL);
#undef CALL
}

int cuda_launch_bags_check_made(const cuda_bags *b, cudaStream_t stream)
{
#define CALL(I) launch(bags_check_made_kernel<I>, grid_for(b->m, BLOCK), BLOCK, stream, *b)
	return EITHER_INDEX(b, CALL);
#undef CALL
}

template <class E>
static int bags_of(const cuda_bags *b, void *out, const void *weight, cudaStream_t stream)
{
	if (!b->d) {
#define CALL(I) launch(bag_sizes_kernel<I>, grid_for(b->bags, BLOCK), BLOCK, stream, *b)
		return EITHER_INDEX(b, CALL);
#undef CALL
	}
#define CALL(I)                                                                            \
	launch(bags_kernel<E, I>, grid_for(b->bags * b->d, BLOCK), BLOCK, stream, *b, out, \
	       (const E *)weight)
	return EITHER_INDEX(b, CALL);
#undef CALL
}

int cuda_launch_bags(const cuda_bags *b, void *out, const void *weight, int dtype,
		     cudaStream_t stream)
{
	switch (dtype) {
#define X(D, E) \
	case D: \
		return bags_of<E>(b, out, weight, stream);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

template <class E>
static int rows_of(const cuda_bags *b, void *out, const void *grad, cudaStream_t stream)
{
	const unsigned grid = grid_for((b->mode == CUDA_BAG_MAX ? b->bags : b->m) * b->d, BLOCK);

#define CALL(I) launch(bag_rows_kernel<E, I>, grid, BLOCK, stream, *b, out, (const E *)grad)
	return EITHER_INDEX(b, CALL);
#undef CALL
}

int cuda_launch_bag_rows(const cuda_bags *b, void *out, const void *grad, int dtype,
			 cudaStream_t stream)
{
	switch (dtype) {
#define X(D, E) \
	case D: \
		return rows_of<E>(b, out, grad, stream);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

template <class E>
static int products_of(const cuda_bags *b, void *out, const void *grad, const void *weight,
		       cudaStream_t stream)
{
#define CALL(I)                                                                               \
	launch(bag_products_kernel<E, I>, grid_for(b->m, BLOCK / 32), BLOCK, stream, *b, out, \
	       (const E *)grad, (const E *)weight)
	return EITHER_INDEX(b, CALL);
#undef CALL
}

int cuda_launch_bag_products(const cuda_bags *b, void *out, const void *grad, const void *weight,
			     int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, E) \
	case D: \
		return products_of<E>(b, out, grad, weight, stream);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
