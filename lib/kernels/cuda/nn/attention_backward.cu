// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Gradients of attention. Scores are computed again: once for each tile of queries, whose gradients a
 * block sums over the keys, and for each tile of keys, with the sums over the queries. No two blocks
 * add to one element, so that results have the same bits in each call.
 */
#include "kernels/cuda/nn/attention_tile.cuh"

enum attention_gradient { GRAD_OF_QUERY, GRAD_OF_KEY, GRAD_OF_VALUE };

/* A logsumexp whose rounding changes weights more than that of the products does. */
template <class T> static __device__ inline bool is_coarse(T sum)
{
	return sum != sum ? false : (sum > 512 || sum < -512) && sum - sum == 0;
}

/* The maximum of a query's scores and the logarithm of the sum of their exponentials, by one warp. */
template <class X, class T = typename number<X>::compute>
static __device__ inline void exact_sum(const cuda_attention &a, int64_t head, int64_t i, T *max,
					T *sum)
{
	const head_rows<X> query(a, a.query, head, a.queries, a.features),
		key(a, a.key, head, a.keys, a.features);
	const int64_t mask = a.mask.data ? head_offset(a, a.mask, head) : 0;
	const int64_t last = keys_until(a, i + 1);
	T m = -infinity<T>(), total = 0;

	for (int64_t j = threadIdx.x; j < last; j += 32) {
		T score = 0;

		for (int64_t k = 0; k < a.features; k++)
			score = fused(query.get(i, k), key.get(j, k), score);
		score = masked_score(a, mask, score, i, j);
		if (score > m) {
			total *= exponential(m - score);
			m = score;
		}
		if (score != -infinity<T>())
			total += exponential(score - m);
	}
	*max = m;
	for (int half = 16; half; half /= 2) {
		const T other = __shfl_xor_sync(0xffffffff, *max, half);

		*max = other > *max ? other : *max;
	}
	if (m != -infinity<T>())
		total *= exponential(m - *max);
	for (int half = 16; half; half /= 2)
		total += __shfl_xor_sync(0xffffffff, total, half);
	*sum = logarithm(total);
}

/* struct saved_sums of each query, by one warp. */
template <class X> __global__ void __launch_bounds__(256) attention_saved_kernel(cuda_attention a)
{
	typedef typename number<X>::compute T;
	const int64_t n = a.heads * a.queries;
	T *saved = (T *)a.saved;

	for (int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; row < n;
	     row += (int64_t)gridDim.x * blockDim.y) {
		const int64_t head = row / a.queries, i = row % a.queries;
		const head_rows<X> grad(a, a.grad, head, a.queries, a.values),
			output(a, a.output, head, a.queries, a.values);
		T product = 0, max = 0;
		T sum = head_rows<T>(a, a.sums, head, a.queries, 1).get(i, 0);

		for (int64_t j = threadIdx.x; j < a.values; j += 32)
			product = fused(grad.get(i, j), output.get(i, j), product);
		for (int half = 16; half; half /= 2)
			product += __shfl_xor_sync(0xffffffff, product, half);
		if (is_coarse(sum))
			exact_sum<X>(a, head, i, &max, &sum);
		if (threadIdx.x == 0) {
			saved[row] = product;
			saved[row + n] = max;
			/* Without permitted keys: the weights are 0. */
			saved[row + 2 * n] = sum == -infinity<T>() ? infinity<T>() : sum;
		}
	}
}

/* Scores become weights, and products of the gradient and values become gradients of scores. */
template <class T, int PART, bool BY_KEY>
static __device__ inline void differentiate(const cuda_attention &a, const saved_sums<T> &saved,
					    int64_t mask, T (&score)[PART][PART],
					    T (&product)[PART][PART], int64_t own, int64_t other)
{
#pragma unroll
	for (int p = 0; p < PART; p++)
#pragma unroll
		for (int q = 0; q < PART; q++) {
			const int64_t r = own + threadIdx.y + 16 * p;
			const int64_t c = other + threadIdx.x + 16 * q;
			const int64_t i = BY_KEY ? c : r;
			T w = masked_score(a, mask, score[p][q], i, BY_KEY ? r : c);

			if (i < a.queries) {
				w = exponential(w - saved.max[i] - saved.sums[i]);
				product[p][q] = w * (product[p][q] - saved.products[i]);
			} else {
				w = product[p][q] = 0;
			}
			score[p][q] = w;
		}
}

/* A tile of rows of one gradient, and a slice of its columns. */
template <class X, attention_gradient WHICH>
__global__ void __launch_bounds__(256) attention_backward_kernel(cuda_attention a)
{
	typedef typename number<X>::compute T;
	typedef tile_sizes<T> size;
	enum { TILE = size::TILE, PART = size::PART, COLUMNS = size::COLUMNS };
	constexpr bool BY_KEY = WHICH != GRAD_OF_QUERY;
	__shared__ T loaded[size::LOADED], tile[TILE * (TILE + 1)];
	const int64_t head = blockIdx.x % a.heads, own = blockIdx.x / a.heads * TILE;
	const int64_t slice = (int64_t)blockIdx.y * size::SLICE;
	const int64_t mask = a.mask.data ? head_offset(a, a.mask, head) : 0;
	const head_rows<X> query(a, a.query, head, a.queries, a.features),
		key(a, a.key, head, a.keys, a.features), value(a, a.value, head, a.keys, a.values),
		grad(a, a.grad, head, a.queries, a.values);
	const saved_sums<T> saved(a, head);
	/* The first query of the tile's first key, and the keys of its last query. */
	const int64_t first = BY_KEY && a.causal ? own : 0;
	const int64_t last = BY_KEY ? a.queries : keys_until(a, own + TILE);
	T out[PART][COLUMNS] = {};

	for (int64_t k = first; k < last; k += TILE) {
		T score[PART][PART] = {}, product[PART][PART] = {};

		add_products(score, loaded, BY_KEY ? key : query, own, BY_KEY ? query : key, k);
		if (WHICH != GRAD_OF_VALUE)
			add_products(product, loaded, BY_KEY ? value : grad, own,
				     BY_KEY ? grad : value, k);
		differentiate<T, PART, BY_KEY>(a, saved, mask, score, product, own, k);
		store_tile(tile, WHICH == GRAD_OF_VALUE ? score : product);
		add_rows(out, loaded, tile,
			 WHICH == GRAD_OF_QUERY ? key :
			 WHICH == GRAD_OF_KEY	? query :
						  grad,
			 k, slice);
	}
	const head_rows<X> to(a,
			      WHICH == GRAD_OF_QUERY ? a.grad_query :
			      WHICH == GRAD_OF_KEY   ? a.grad_key :
						       a.grad_value,
			      head, BY_KEY ? a.keys : a.queries,
			      WHICH == GRAD_OF_VALUE ? a.values : a.features);
#pragma unroll
	for (int p = 0; p < PART; p++)
#pragma unroll
		for (int q = 0; q < COLUMNS; q++)
			to.set(own + threadIdx.y + 16 * p, slice + threadIdx.x + 16 * q,
			       WHICH == GRAD_OF_VALUE ? out[p][q] : out[p][q] * (T)a.scale);
}

template <class X, attention_gradient WHICH>
static int launch_gradient(const cuda_attention *a, cudaStream_t stream)
{
	typedef tile_sizes<typename number<X>::compute> size;
	const int64_t rows = WHICH == GRAD_OF_QUERY ? a->queries : a->keys;
	const int64_t columns = WHICH == GRAD_OF_VALUE ? a->values : a->features;
	const int64_t tiles = (rows + size::TILE - 1) / size::TILE;
	const int64_t slices = (columns + size::SLICE - 1) / size::SLICE;

	if (!tiles || !slices)
		return 0;
	return launch(attention_backward_kernel<X, WHICH>,
		      dim3((unsigned)(tiles * a->heads), (unsigned)slices), dim3(16, 16), stream,
		      *a);
}

template <class X> static int gradients_of(const cuda_attention *a, cudaStream_t stream)
{
	int err = launch_gradient<X, GRAD_OF_QUERY>(a, stream);

	if (!err)
		err = launch_gradient<X, GRAD_OF_KEY>(a, stream);
	return err ? err : launch_gradient<X, GRAD_OF_VALUE>(a, stream);
}

template <class X> static int backward_of(const cuda_attention *a, int dtype, cudaStream_t stream)
{
	int err = 0;

	if (a->queries)
		err = launch(attention_saved_kernel<X>, grid_for(a->heads * a->queries, 8),
			     dim3(32, 8), stream, *a);
	if (!err)
		err = cuda_launch_attention_mma_backward(a, dtype, stream);
	return err == CUDA_NO_DTYPE ? gradients_of<X>(a, stream) : err;
}

int cuda_launch_attention_backward(const cuda_attention *a, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, X) \
	case D: \
		return backward_of<X>(a, D, stream);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
