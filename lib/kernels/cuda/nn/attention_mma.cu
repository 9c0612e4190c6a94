// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Attention of f16 and bf16 by matrix instructions; see attention.cu. */
#include "kernels/cuda/nn/attention_mma.cuh"

/* The maximum or the sum over the four lanes that have a row. */
template <bool GREATEST> static __device__ inline float over_quad(float v)
{
#pragma unroll
	for (int half = 1; half < 4; half *= 2) {
		const float other = __shfl_xor_sync(0xffffffff, v, half);

		v = !GREATEST ? v + other : other > v ? other : v;
	}
	return v;
}

/* Maxima and sums of the two rows of a lane. */
struct pair_sums {
	float max[2], sum[2];

	/* Scores become exponentials; factor is the one of what was summed before. */
	template <int BLOCKS>
	__device__ inline void add(float (&score)[BLOCKS][4], float (&factor)[2])
	{
#pragma unroll
		for (int r = 0; r < 2; r++) {
			float m = max[r], total = 0;

#pragma unroll
			for (int n = 0; n < BLOCKS; n++)
#pragma unroll
				for (int e = 2 * r; e < 2 * r + 2; e++)
					m = score[n][e] > m ? score[n][e] : m;
			m = over_quad<true>(m);
			const float base = m == -infinity<float>() ? 0 : m;

			factor[r] = short_exponential(max[r] - base);
			max[r] = m;
#pragma unroll
			for (int n = 0; n < BLOCKS; n++)
#pragma unroll
				for (int e = 2 * r; e < 2 * r + 2; e++) {
					score[n][e] = short_exponential(score[n][e] - base);
					total += score[n][e];
				}
			sum[r] = sum[r] * factor[r] + over_quad<false>(total);
		}
	}
};

/* Scales and masks the scores of rows from row i on and keys from key k on. */
template <int BLOCKS>
static __device__ inline void mask_scores(const cuda_attention &a, float (&score)[BLOCKS][4],
					  int64_t mask, int64_t i, int64_t k)
{
	const int lane = lane_of_warp();
	const bool all = !a.mask.data && k + BLOCKS * 8 <= a.keys && i + 16 <= a.queries &&
			 (!a.causal || k + BLOCKS * 8 - 1 <= i);

#pragma unroll
	for (int n = 0; n < BLOCKS; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			score[n][e] = all ? score[n][e] * (float)a.scale :
					    masked_score(a, mask, score[n][e],
							 i + lane / 4 + e / 2 * 8,
							 k + n * 8 + lane % 4 * 2 + e % 2);
}

template <class X, int D>
__global__ void __launch_bounds__(MMA_THREADS) attention_mma_kernel(cuda_attention a)
{
	enum { KEYS = 64, BLOCKS = KEYS / 8 };
	__shared__ mma_tile<X, KEYS, D> keys_tile;
	__shared__ mma_tile<X, KEYS, D> values_tile;
	X *const keys = keys_tile.data, *const values = values_tile.data;
	const int64_t tiles = (a.queries + MMA_ROWS - 1) / MMA_ROWS, head = blockIdx.x % a.heads;
	/* The last queries come first: if causal, they have the most keys. */
	const int64_t from = (tiles - 1 - blockIdx.x / a.heads) * MMA_ROWS;
	const int64_t last = keys_until(a, from + MMA_ROWS);
	const int64_t mask = a.mask.data ? head_offset(a, a.mask, head) : 0;
	const head_rows<X> query(a, a.query, head, a.queries, a.features),
		key(a, a.key, head, a.keys, a.features), value(a, a.value, head, a.keys, a.values),
		output(a, a.output, head, a.queries, a.values);
	const head_rows<float> sums(a, a.sums, head, a.queries, 1);
	const int warp = (int)threadIdx.x / 32, lane = lane_of_warp();
	const int64_t row = from + warp * 16;
	pair_sums rows = { { -infinity<float>(), -infinity<float>() }, { 0, 0 } };
	uint32_t left[D / 16][4];
	float out[D / 8][4] = {};

	load_rows<MMA_ROWS, D>(keys, query, from);
	__syncthreads();
#pragma unroll
	for (int c = 0; c < D / 16; c++)
		load_left<D>(left[c], keys, warp * 16, c * 16);
	for (int64_t k = 0; k < last; k += KEYS) {
		float score[BLOCKS][4] = {}, factor[2];

		__syncthreads(); /* wait for the readers of the previous keys */
		load_rows<KEYS, D>(keys, key, k);
		load_rows<KEYS, D>(values, value, k);
		__syncthreads();
#pragma unroll
		for (int c = 0; c < D / 16; c++)
			add_row_products<D>(score, left[c], keys, c * 16);
		mask_scores(a, score, mask, row, k);
		rows.add(score, factor);
#pragma unroll
		for (int n = 0; n < D / 8; n++)
#pragma unroll
			for (int e = 0; e < 4; e++)
				out[n][e] *= factor[e / 2];
		add_weighted_rows<D>(out, score, values);
	}
#pragma unroll
	for (int r = 0; r < 2; r++) {
		float factor;
		const float sum = finish_sum(a, rows.max[r], rows.sum[r], &factor);

		if (lane % 4 == 0)
			sums.set(row + lane / 4 + r * 8, 0, sum);
#pragma unroll
		for (int n = 0; n < D / 8; n++)
#pragma unroll
			for (int e = 0; e < 2; e++)
				output.set(row + lane / 4 + r * 8, n * 8 + lane % 4 * 2 + e,
					   out[n][2 * r + e] * factor);
	}
}

int cuda_launch_attention_mma(const cuda_attention *a, int dtype, cudaStream_t stream)
{
	const int64_t most = a->features > a->values ? a->features : a->values;
	const int64_t blocks = (a->queries + MMA_ROWS - 1) / MMA_ROWS * a->heads;

	if (most > 128)
		return CUDA_NO_DTYPE;
	switch (dtype) {
#define X(D, X)                                                          \
	case D:                                                          \
		return launch(most > 64 ? attention_mma_kernel<X, 128> : \
					  attention_mma_kernel<X, 64>,   \
			      (unsigned)blocks, MMA_THREADS, stream, *a);
		FOR_REDUCED_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
