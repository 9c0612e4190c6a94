/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Blocks of product_s8.c by tiles (tiles_bytes.h). The rows of a block are copied one behind the other, and their copy is used for all
 * panels of a chunk. Packed weights are whole tiles.
 */
#ifndef TENSOR_PRODUCT_S8_AMX_H
#define TENSOR_PRODUCT_S8_AMX_H

#define T int32_t

#if VEC_BYTES == 64
#include "kernels/cpu/simd/tiles_bytes.h"

/* The memory of a chunk. */
struct tile_work {
	struct tensor_storage *memory;
	enum tile_mode mode;
	int64_t depth, pitch; /* units of a column, and between copied rows */
	int64_t block, shift; /* that are copied */
	T *x, *model;
};

/* Without memory for it the chunk is computed without tiles. */
static void tile_work_open(struct tile_work *b, const struct job *job)
{
	const struct packing *w = &job->w;

	*b = (struct tile_work){ .mode = w->depthwise ? TILES_NONE : tiles_for(job->positions),
				 .block = -1 };
	b->depth = whole_tiles(w->taps * w->units);
	b->pitch = b->depth + TILE_PAD;
	if (!b->mode)
		return;
	b->memory = storage_alloc(TENSOR_DEVICE_CPU, (ROWS * b->pitch + MODEL_UNITS) * sizeof(T),
				  false);
	if (!b->memory) {
		tensor_clear_error();
		b->mode = TILES_NONE;
		return;
	}
	b->x = b->memory->data;
	memset(b->x, 0, ROWS * b->pitch * sizeof(T));
	b->model = b->mode == TILES_MODEL ? b->x + ROWS * b->pitch : NULL;
	tiles_begin(b->model);
}

static void tile_work_close(struct tile_work *b)
{
	if (!b->mode)
		return;
	tiles_end(b->model);
	storage_put(b->memory);
}

/* Whether the rows of the block must be copied. */
static bool tile_work_begin(struct tile_work *b, int64_t block, int64_t shift)
{
	bool copy = b->mode && (b->block != block || b->shift != shift);

	b->block = block;
	b->shift = shift;
	return copy;
}

static void tile_work_copy(const struct tile_work *b, const struct tile *t, int64_t tap)
{
	for (int64_t r = 0; r < t->rows; r++)
		for (int64_t k = 0; k < t->taps; k++)
			memcpy(b->x + r * b->pitch + (tap + k) * t->units,
			       t->x[k * ROWS + r] + t->shift, 4 * t->units);
}

static void tile_work_sum(const struct tile_work *b, int32_t *sums, const int8_t *panel,
			  int64_t width, int64_t rows)
{
	struct tile_block t = { .a = b->x,
				.b = (const T *)panel,
				.sums = sums,
				.pitch = b->pitch,
				.width = width,
				.row = PANEL,
				.depth = b->depth };

	compute_tile_rows(&t, rows, b->model);
}

#else
struct tile_work {
	bool mode;
};

static inline void tile_work_open(struct tile_work *b, const struct job *job)
{
	*b = (struct tile_work){ .mode = false };
}

static inline void tile_work_close(struct tile_work *b)
{
}

static inline bool tile_work_begin(struct tile_work *b, int64_t block, int64_t shift)
{
	return false;
}

static inline void tile_work_copy(const struct tile_work *b, const struct tile *t, int64_t tap)
{
}

static inline void tile_work_sum(const struct tile_work *b, int32_t *sums, const int8_t *panel,
				 int64_t width, int64_t rows)
{
}
#endif

#endif
