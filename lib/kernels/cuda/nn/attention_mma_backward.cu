// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Gradients of attention of f16 and bf16 by matrix instructions; see attention_backward.cu. A block has
 * 64 queries or, with BY_KEY, 64 keys; those of the other kind come in tiles of OTHERS.
 */
#include "kernels/cuda/nn/attention_mma.cuh"

/* saved_sums of a tile, in shared memory: beyond the queries they give weights of 0. */
struct tile_sums {
	float products[MMA_ROWS], max[MMA_ROWS], sums[MMA_ROWS];

	__device__ inline void load(const cuda_attention &a, const saved_sums<float> &s,
				    int64_t from, int n)
	{
		const int t = (int)threadIdx.x;
		const bool there = from + t < a.queries;

		if (t >= n)
			return;
		products[t] = there ? s.products[from + t] : 0;
		max[t] = there ? s.max[from + t] : 0;
		sums[t] = there ? s.sums[from + t] : infinity<float>();
	}
};

/* Scores become weights, products of the gradient and values gradients of scores. */
template <bool BY_KEY, int BLOCKS>
static __device__ inline void differentiate(const cuda_attention &a, const tile_sums &s,
					    int64_t mask, float (&score)[BLOCKS][4],
					    float (&product)[BLOCKS][4], int64_t own, int64_t other)
{
	const int lane = lane_of_warp(), warp = (int)threadIdx.x / 32;

#pragma unroll
	for (int n = 0; n < BLOCKS; n++)
#pragma unroll
		for (int e = 0; e < 4; e++) {
			const int r = warp * 16 + lane / 4 + e / 2 * 8;
			const int c = n * 8 + lane % 4 * 2 + e % 2, q = BY_KEY ? c : r;
			const float x = masked_score(a, mask, score[n][e],
						     BY_KEY ? other + c : own + r,
						     BY_KEY ? own + r : other + c);
			const float w = short_exponential(x - s.max[q] - s.sums[q]);

			score[n][e] = w;
			product[n][e] = w * (product[n][e] - s.products[q]);
		}
}

template <int D, class X>
static __device__ inline void store_rows(const head_rows<X> &to, const float (&out)[D / 8][4],
					 int64_t row, float factor)
{
	const int lane = lane_of_warp();

#pragma unroll
	for (int n = 0; n < D / 8; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			to.set(row + lane / 4 + e / 2 * 8, n * 8 + lane % 4 * 2 + e % 2,
			       out[n][e] * factor);
}

template <class X, int D, int OTHERS, bool BY_KEY>
__global__ void __launch_bounds__(MMA_THREADS) attention_mma_backward_kernel(cuda_attention a)
{
	enum { BLOCKS = OTHERS / 8 };
	/* Operands of the scores, and of the products of the gradient and values. */
	__shared__ mma_tile<X, MMA_ROWS, D> own_score_tile;
	__shared__ mma_tile<X, MMA_ROWS, D> own_product_tile;
	__shared__ mma_tile<X, OTHERS, D> score_tile;
	__shared__ mma_tile<X, OTHERS, D> product_tile;
	__shared__ tile_sums s;
	X *const own_score = own_score_tile.data, *const own_product = own_product_tile.data;
	X *const score_rows = score_tile.data, *const product_rows = product_tile.data;
	const int64_t head = blockIdx.x % a.heads, own = blockIdx.x / a.heads * MMA_ROWS;
	const int64_t mask = a.mask.data ? head_offset(a, a.mask, head) : 0;
	const head_rows<X> query(a, a.query, head, a.queries, a.features),
		key(a, a.key, head, a.keys, a.features), value(a, a.value, head, a.keys, a.values),
		grad(a, a.grad, head, a.queries, a.values);
	const saved_sums<float> saved(a, head);
	const int64_t first = BY_KEY && a.causal ? own : 0;
	const int64_t last = BY_KEY ? a.queries : keys_until(a, own + MMA_ROWS);
	const int warp = (int)threadIdx.x / 32;
	float score_out[D / 8][4] = {}, product_out[D / 8][4] = {};

	if (first < last) {
		load_rows<MMA_ROWS, D>(own_score, BY_KEY ? key : query, own);
		load_rows<MMA_ROWS, D>(own_product, BY_KEY ? value : grad, own);
		if (!BY_KEY)
			s.load(a, saved, own, MMA_ROWS);
	}
	for (int64_t k = first; k < last; k += OTHERS) {
		float score[BLOCKS][4] = {}, product[BLOCKS][4] = {};

		__syncthreads(); /* wait for the readers of the previous tile */
		load_rows<OTHERS, D>(score_rows, BY_KEY ? query : key, k);
		load_rows<OTHERS, D>(product_rows, BY_KEY ? grad : value, k);
		if (BY_KEY)
			s.load(a, saved, k, OTHERS);
		__syncthreads();
#pragma unroll
		for (int c = 0; c < D; c += 16) {
			uint32_t left[4];

			load_left<D>(left, own_score, warp * 16, c);
			add_row_products<D>(score, left, score_rows, c);
			load_left<D>(left, own_product, warp * 16, c);
			add_row_products<D>(product, left, product_rows, c);
		}
		differentiate<BY_KEY>(a, s, mask, score, product, own, k);
		add_weighted_rows<D>(score_out, product, score_rows);
		if (BY_KEY)
			add_weighted_rows<D>(product_out, score, product_rows);
	}
	store_rows<D>(head_rows<X>(a, BY_KEY ? a.grad_key : a.grad_query, head,
				   BY_KEY ? a.keys : a.queries, a.features),
		      score_out, own + warp * 16, (float)a.scale);
	if (BY_KEY)
		store_rows<D>(head_rows<X>(a, a.grad_value, head, a.keys, a.values), product_out,
			      own + warp * 16, 1);
}

template <class X, int D, int OTHERS, bool BY_KEY>
static int launch_rows(const cuda_attention *a, cudaStream_t stream)
{
	const int64_t rows = BY_KEY ? a->keys : a->queries;
	const int64_t blocks = (rows + MMA_ROWS - 1) / MMA_ROWS * a->heads;

	return !blocks ? 0 :
			 launch(attention_mma_backward_kernel<X, D, OTHERS, BY_KEY>,
				(unsigned)blocks, MMA_THREADS, stream, *a);
}

/* Shared memory of a block, 48 KiB at most, limits OTHERS. */
template <class X> static int backward_of(const cuda_attention *a, bool large, cudaStream_t stream)
{
	int err = large ? launch_rows<X, 128, 16, false>(a, stream) :
			  launch_rows<X, 64, 64, false>(a, stream);

	if (err)
		return err;
	return large ? launch_rows<X, 128, 16, true>(a, stream) :
		       launch_rows<X, 64, 32, true>(a, stream);
}

int cuda_launch_attention_mma_backward(const cuda_attention *a, int dtype, cudaStream_t stream)
{
	const int64_t most = a->features > a->values ? a->features : a->values;

	if (most > 128)
		return CUDA_NO_DTYPE;
	switch (dtype) {
#define X(D, X) \
	case D: \
		return backward_of<X>(a, most > 64, stream);
		FOR_REDUCED_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
