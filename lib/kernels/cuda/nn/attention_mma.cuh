/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tiles of f16 and bf16 for matrix instructions, in blocks of four warps, each of which has 16 of 64
 * rows. Rows in shared memory have D elements, and 16 bytes between them against bank conflicts.
 */
#ifndef TENSOR_CUDA_ATTENTION_MMA_CUH
#define TENSOR_CUDA_ATTENTION_MMA_CUH

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/nn/attention.cuh"

enum { MMA_ROWS = 64, MMA_THREADS = 128, MMA_PAD = 8 };

template <class X, int ROWS, int D> struct alignas(16) mma_tile {
	X data[ROWS * (D + MMA_PAD)];
};

static __device__ inline int lane_of_warp()
{
	return (int)threadIdx.x % 32;
}

/* ROWS rows from row `from` on, 0 beyond the matrix. */
template <int ROWS, int D, class X>
static __device__ inline void load_rows(X *to, const head_rows<X> &m, int64_t from)
{
	const bool packed = m.column == 1 && m.row % 8 == 0 && m.columns % 8 == 0 &&
			    (uintptr_t)m.data % 16 == 0;

	if (packed) {
		for (int k = (int)threadIdx.x; k < ROWS * D / 8; k += MMA_THREADS) {
			const int r = k / (D / 8), c = k % (D / 8) * 8;
			pack<X, 8> v;

			if (from + r < m.rows && c < m.columns)
				v = *(const pack<X, 8> *)(m.data + (from + r) * m.row + c);
			else
				for (int j = 0; j < 8; j++)
					v.v[j].bits = 0;
			*(pack<X, 8> *)(to + r * (D + MMA_PAD) + c) = v;
		}
		return;
	}
	for (int k = (int)threadIdx.x; k < ROWS * D; k += MMA_THREADS) {
		const int r = k / D, c = k % D;
		X v;

		v.bits = 0;
		if (from + r < m.rows && c < m.columns)
			v = m.data[(from + r) * m.row + c * m.column];
		to[r * (D + MMA_PAD) + c] = v;
	}
}

/* 16 rows from row r on and 16 columns from column c on, as a. */
template <int D, class X>
static __device__ inline void load_left(uint32_t (&a)[4], const X *tile, int r, int c)
{
	const int lane = lane_of_warp();

	load_matrices<false>(a, tile + (r + lane % 16) * (D + MMA_PAD) + c + lane / 16 * 8);
}

/* sum += left rows', whose row r + j is column j of b; columns c to c + 15 of both. */
template <int D, int BLOCKS, class X>
static __device__ inline void add_row_products(float (&sum)[BLOCKS][4], const uint32_t (&left)[4],
					       const X *rows, int c)
{
	const int lane = lane_of_warp();

#pragma unroll
	for (int n = 0; n < BLOCKS; n += 2) {
		uint32_t r[4];

		load_matrices<false>(r, rows + (n * 8 + lane % 8 + lane / 16 * 8) * (D + MMA_PAD) +
						c + lane / 8 % 2 * 8);
		const uint32_t first[2] = { r[0], r[1] }, second[2] = { r[2], r[3] };

		mma<X>(sum[n], left, first);
		mma<X>(sum[n + 1], left, second);
	}
}

/* sum += weights rows: weights are BLOCKS * 8 columns of a result of mma, rounded to X. */
template <int D, int BLOCKS, class X>
static __device__ inline void add_weighted_rows(float (&sum)[D / 8][4],
						const float (&weight)[BLOCKS][4], const X *rows)
{
	const int lane = lane_of_warp();

#pragma unroll
	for (int k = 0; k < BLOCKS; k += 2) {
		const uint32_t left[4] = { pair_of<X>(weight[k][0], weight[k][1]),
					   pair_of<X>(weight[k][2], weight[k][3]),
					   pair_of<X>(weight[k + 1][0], weight[k + 1][1]),
					   pair_of<X>(weight[k + 1][2], weight[k + 1][3]) };

#pragma unroll
		for (int n = 0; n < D / 8; n += 2) {
			uint32_t r[4];

			load_matrices<true>(r, rows + (k * 8 + lane % 16) * (D + MMA_PAD) + n * 8 +
						       lane / 16 * 8);
			const uint32_t first[2] = { r[0], r[1] }, second[2] = { r[2], r[3] };

			mma<X>(sum[n], left, first);
			mma<X>(sum[n + 1], left, second);
		}
	}
}

/* exp(x), whose result is rounded to 11 bits or fewer. */
static __device__ inline float short_exponential(float x)
{
	return exp2f(x * 1.44269504f);
}

#endif
