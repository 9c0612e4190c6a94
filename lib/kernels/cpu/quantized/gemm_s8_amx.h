/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Blocks of ROWS rows by PANEL columns of gemm_s8.c by tiles (tiles_bytes.h). The weights of a panel are packed
 * once for all rows of a chunk; rows of x are copied unless they are whole tiles where they are.
 */
#ifndef TENSOR_GEMM_S8_AMX_H
#define TENSOR_GEMM_S8_AMX_H

#define T int32_t

#if VEC_BYTES == 64
#include "kernels/cpu/simd/tiles_bytes.h"

#define LANES TILE_SIDE
typedef T VEC __attribute__((vector_size(64), aligned(4), may_alias));
#define MASK VEC
#include "kernels/cpu/linalg/gemm_transpose.h"

#define PAGE_BYTES 4096

/* The memory of a chunk. */
struct block_work {
	struct tensor_storage *memory;
	enum tile_mode tiles;
	int64_t depth, pitch; /* units of a column, and between copied rows */
	T *w, *x, *sums, *model;
};

/* Without memory for it the chunk is computed without tiles. */
static void block_work_open(struct block_work *b, const struct gemm_s8 *p)
{
	*b = (struct block_work){ .tiles = tiles_for(p->m), .depth = whole_tiles((p->k + 3) / 4) };
	b->pitch = b->depth + TILE_PAD;
	if (!b->tiles)
		return;
	b->memory = storage_alloc(
		TENSOR_DEVICE_CPU,
		(PANEL * b->depth + ROWS * (b->pitch + PANEL) + MODEL_UNITS) * sizeof(T), false);
	if (!b->memory) {
		tensor_clear_error();
		b->tiles = TILES_NONE;
		return;
	}
	b->w = b->memory->data;
	b->x = b->w + PANEL * b->depth;
	b->sums = b->x + ROWS * b->pitch;
	b->model = b->tiles == TILES_MODEL ? b->sums + ROWS * PANEL : NULL;
	tiles_begin(b->model);
}

static void block_work_close(struct block_work *b)
{
	if (!b->tiles)
		return;
	tiles_end(b->model);
	storage_put(b->memory);
}

/* n columns of the panel from `first` on, as rows of PANEL units. */
static void pack_weights(struct block_work *b, const struct gemm_s8 *p, int64_t first, int64_t n)
{
	for (int64_t j = 0; j < PANEL; j += LANES)
		for (int64_t u = 0; u < b->depth; u += LANES) {
			int64_t left = p->k - 4 * u;
			VEC row[LANES] = { 0 };

			for (int64_t i = 0; i < LANES && j + i < n; i++)
				memcpy(&row[i], p->w + (first + j + i) * p->k + 4 * u,
				       left < TILE_BYTES ? left : TILE_BYTES);
			transpose_lanes(row);
			for (int64_t i = 0; i < LANES; i++)
				*(VEC *)(b->w + (u + i) * PANEL + j) = row[i];
		}
}

/* b->sums = m rows of x from `begin` on, times the packed weights. */
static void sum_block(const struct block_work *b, const struct gemm_s8 *p, int64_t begin, int64_t m)
{
	const uint8_t *x = p->x + begin * p->k;
	bool in_place = m % TILE_SIDE == 0 && p->k % TILE_BYTES == 0 && p->k % PAGE_BYTES != 0;
	struct tile_block t = { .a = in_place ? (const T *)x : b->x,
				.b = b->w,
				.sums = b->sums,
				.pitch = in_place ? p->k / 4 : b->pitch,
				.width = PANEL,
				.row = PANEL,
				.depth = b->depth };

	for (int64_t i = 0; i < m && !in_place; i++) {
		uint8_t *to = (uint8_t *)(b->x + i * b->pitch);

		memcpy(to, x + i * p->k, p->k);
		memset(to + p->k, 0, 4 * b->depth - p->k);
	}
	compute_tile_rows(&t, m, b->model);
}

#else
struct block_work {
	bool tiles;
	T *sums;
};

static inline void block_work_open(struct block_work *b, const struct gemm_s8 *p)
{
	*b = (struct block_work){ .tiles = false };
}

static inline void block_work_close(struct block_work *b)
{
}

static inline void pack_weights(struct block_work *b, const struct gemm_s8 *p, int64_t first,
				int64_t n)
{
}

static inline void sum_block(const struct block_work *b, const struct gemm_s8 *p, int64_t begin,
			     int64_t m)
{
}
#endif

#endif
