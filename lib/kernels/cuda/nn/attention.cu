// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Attention without a matrix of scores in memory: a block has a tile of queries, whose maxima and sums
 * of exponentials it updates with each tile of keys (T. Dao, FlashAttention-2, arXiv:2307.08691).
 */
#include "kernels/cuda/nn/attention_tile.cuh"

/* The maximum and the sum of the exponentials of rows of scores. */
template <class T, int PART> struct row_sums {
	T max[PART], sum[PART];

	/* Scores become exponentials; factor is the one of what was summed before. */
	__device__ inline void add(T (&score)[PART][PART], T (&factor)[PART])
	{
#pragma unroll
		for (int p = 0; p < PART; p++) {
			T m = score[p][0], total = 0;

#pragma unroll
			for (int q = 1; q < PART; q++)
				m = score[p][q] > m ? score[p][q] : m;
			m = over_row<true>(m);
			m = m > max[p] ? m : max[p];
			/* -inf is subtracted as 0: exponentials of -inf are 0 then, not NaN. */
			const T base = m == -infinity<T>() ? (T)0 : m;

			factor[p] = exponential(max[p] - base);
			max[p] = m;
#pragma unroll
			for (int q = 0; q < PART; q++) {
				score[p][q] = exponential(score[p][q] - base);
				total += score[p][q];
			}
			sum[p] = fused(sum[p], factor[p], over_row<false>(total));
		}
	}
};

template <class X> __global__ void __launch_bounds__(256) attention_kernel(cuda_attention a)
{
	typedef typename number<X>::compute T;
	typedef tile_sizes<T> size;
	enum { TILE = size::TILE, PART = size::PART, COLUMNS = size::COLUMNS };
	__shared__ T loaded[size::LOADED], tile[TILE * (TILE + 1)];
	const int64_t tiles = (a.queries + TILE - 1) / TILE, head = blockIdx.x % a.heads;
	/* The last queries come first: if causal, they have the most keys. */
	const int64_t from = (tiles - 1 - blockIdx.x / a.heads) * TILE;
	const int64_t slice = (int64_t)blockIdx.y * size::SLICE, last = keys_until(a, from + TILE);
	const int64_t mask = a.mask.data ? head_offset(a, a.mask, head) : 0;
	const head_rows<X> query(a, a.query, head, a.queries, a.features),
		key(a, a.key, head, a.keys, a.features), value(a, a.value, head, a.keys, a.values),
		output(a, a.output, head, a.queries, a.values);
	const head_rows<T> sums(a, a.sums, head, a.queries, 1);
	row_sums<T, PART> rows;
	T out[PART][COLUMNS] = {};

#pragma unroll
	for (int p = 0; p < PART; p++) {
		rows.max[p] = -infinity<T>();
		rows.sum[p] = 0;
	}
	for (int64_t k = 0; k < last; k += TILE) {
		T score[PART][PART] = {}, factor[PART];

		add_products(score, loaded, query, from, key, k);
#pragma unroll
		for (int p = 0; p < PART; p++)
#pragma unroll
			for (int q = 0; q < PART; q++)
				score[p][q] = masked_score(a, mask, score[p][q],
							   from + threadIdx.y + 16 * p,
							   k + threadIdx.x + 16 * q);
		rows.add(score, factor);
		store_tile(tile, score);
#pragma unroll
		for (int p = 0; p < PART; p++)
#pragma unroll
			for (int q = 0; q < COLUMNS; q++)
				out[p][q] *= factor[p];
		add_rows(out, loaded, tile, value, k, slice);
	}
#pragma unroll
	for (int p = 0; p < PART; p++) {
		const int64_t i = from + threadIdx.y + 16 * p;
		T factor;
		const T sum = finish_sum(a, rows.max[p], rows.sum[p], &factor);

		if (threadIdx.x == 0 && blockIdx.y == 0)
			sums.set(i, 0, sum);
#pragma unroll
		for (int q = 0; q < COLUMNS; q++)
			output.set(i, slice + threadIdx.x + 16 * q, out[p][q] * factor);
	}
}

int cuda_launch_attention(const cuda_attention *a, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, X)                                                                                  \
	case D: {                                                                                \
		typedef tile_sizes<number<X>::compute> size;                                     \
		const int64_t tiles = (a->queries + size::TILE - 1) / size::TILE;                \
		const int64_t slices = (a->values + size::SLICE - 1) / size::SLICE;              \
		return launch(attention_kernel<X>,                                               \
			      dim3((unsigned)(tiles * a->heads), slices ? (unsigned)slices : 1), \
			      dim3(16, 16), stream, *a);                                         \
	}
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
