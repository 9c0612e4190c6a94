/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Products of tiles in shared memory, for blocks of 16 x 16 threads. Thread (x, y) has elements
 * (y + 16 i, x + 16 j) of a tile.
 */
#ifndef TENSOR_CUDA_ATTENTION_TILE_CUH
#define TENSOR_CUDA_ATTENTION_TILE_CUH

#include "kernels/cuda/nn/attention.cuh"

/* Sizes for elements that are computed as T: TILE rows and columns, of which a thread has PART; DEPTH
 * terms of a product at a time; SLICE columns of a result, of which a thread has COLUMNS. */
template <class T> struct tile_sizes {
	enum {
		TILE = sizeof(T) == 8 ? 32 : 64,
		PART = TILE / 16,
		DEPTH = 32,
		SLICE = sizeof(T) == 8 ? 64 : 128,
		COLUMNS = SLICE / 16,
		LOADED = (TILE * (DEPTH + 1) * 2 > DEPTH * SLICE) ? TILE * (DEPTH + 1) * 2 :
								    DEPTH * SLICE
	};
};

/* Adds the products of rows of a from row i and rows of b from row j. loaded: LOADED elements. */
template <class X, class T = typename number<X>::compute, int PART = tile_sizes<T>::PART>
static __device__ inline void add_products(T (&sum)[PART][PART], T *loaded, const head_rows<X> &a,
					   int64_t i, const head_rows<X> &b, int64_t j)
{
	enum { TILE = tile_sizes<T>::TILE, DEPTH = tile_sizes<T>::DEPTH, WIDE = DEPTH + 1 };
	T *left = loaded, *right = loaded + TILE * WIDE;
	const int x = (int)threadIdx.x, y = (int)threadIdx.y, t = y * 16 + x;

	for (int64_t from = 0; from < a.columns; from += DEPTH) {
		__syncthreads(); /* wait for the readers of the previous terms */
		for (int k = t; k < TILE * DEPTH; k += 256) {
			const int r = k / DEPTH, c = k % DEPTH;

			left[r * WIDE + c] = a.get(i + r, from + c);
			right[r * WIDE + c] = b.get(j + r, from + c);
		}
		__syncthreads();
#pragma unroll 8
		for (int k = 0; k < DEPTH; k++) {
			T u[PART], v[PART];

#pragma unroll
			for (int p = 0; p < PART; p++) {
				u[p] = left[(y + 16 * p) * WIDE + k];
				v[p] = right[(x + 16 * p) * WIDE + k];
			}
#pragma unroll
			for (int p = 0; p < PART; p++)
#pragma unroll
				for (int q = 0; q < PART; q++)
					sum[p][q] = fused(u[p], v[q], sum[p][q]);
		}
	}
}

/* Stores a tile, with rows of TILE + 1 elements. */
template <class T, int PART>
static __device__ inline void store_tile(T *tile, const T (&part)[PART][PART])
{
#pragma unroll
	for (int p = 0; p < PART; p++)
#pragma unroll
		for (int q = 0; q < PART; q++)
			tile[((int)threadIdx.y + 16 * p) * (16 * PART + 1) + (int)threadIdx.x +
			     16 * q] = part[p][q];
}

/* Adds the products of rows of a tile and columns of b from `column` on; column k of the tile belongs
 * to row j + k of b. */
template <class X, class T = typename number<X>::compute, int PART = tile_sizes<T>::PART,
	  int COLUMNS = tile_sizes<T>::COLUMNS>
static __device__ inline void add_rows(T (&sum)[PART][COLUMNS], T *loaded, const T *tile,
				       const head_rows<X> &b, int64_t j, int64_t column)
{
	enum { TILE = tile_sizes<T>::TILE, DEPTH = tile_sizes<T>::DEPTH };
	enum { SLICE = tile_sizes<T>::SLICE };
	const int x = (int)threadIdx.x, y = (int)threadIdx.y, t = y * 16 + x;

	for (int from = 0; from < TILE; from += DEPTH) {
		__syncthreads();
		for (int k = t; k < DEPTH * SLICE; k += 256)
			loaded[k] = b.get(j + from + k / SLICE, column + k % SLICE);
		__syncthreads();
#pragma unroll 4
		for (int k = 0; k < DEPTH; k++) {
			T u[PART], v[COLUMNS];

#pragma unroll
			for (int p = 0; p < PART; p++)
				u[p] = tile[(y + 16 * p) * (TILE + 1) + from + k];
#pragma unroll
			for (int q = 0; q < COLUMNS; q++)
				v[q] = loaded[k * SLICE + x + 16 * q];
#pragma unroll
			for (int p = 0; p < PART; p++)
#pragma unroll
				for (int q = 0; q < COLUMNS; q++)
					sum[p][q] = fused(u[p], v[q], sum[p][q]);
		}
	}
}

/* The sum or, with GREATEST, the maximum over the 16 threads of a row of the block. */
template <bool GREATEST, class T> static __device__ inline T over_row(T v)
{
	for (int half = 8; half; half /= 2) {
		const T other = __shfl_xor_sync(0xffffffff, v, half);

		v = !GREATEST ? v + other : other > v ? other : v;
	}
	return v;
}

#endif
