/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The declarations of tiles.h for types T without tiles: tiles_for() is always TILES_NONE. */
#ifndef TENSOR_TILES_NONE_H
#define TENSOR_TILES_NONE_H

#define TILE_SIDE   1
#define TILE_PAD    0
#define MODEL_UNITS 0

enum tile_mode { TILES_NONE, TILES_MODEL };

struct tile_block {
	const T *a, *b;
	T *sums;
	int64_t pitch, width, row, depth;
	bool add;
};

static inline int64_t whole_tiles(int64_t n)
{
	return n;
}

static inline enum tile_mode tiles_for(int64_t m)
{
	return TILES_NONE;
}

static inline void tiles_begin(const T *model)
{
}

static inline void tiles_end(const T *model)
{
}

static inline void compute_tile_rows(const struct tile_block *t, int64_t m, T *model)
{
}

#endif
