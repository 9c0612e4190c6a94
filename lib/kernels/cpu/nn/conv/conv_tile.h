/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tiles of a product whose elements of a are at any offsets: element (i, p) is at offset[i] +
 * position[p]. c has whole vectors. Used for sums with few columns, whose a is the weights.
 */
#ifndef TENSOR_CONV_TILE_H
#define TENSOR_CONV_TILE_H

struct offset_tile {
	struct tile t;
	const int64_t *offset;	 /* [rows] */
	const int64_t *position; /* [k] */
};

static inline __attribute__((always_inline)) void offset_tile(const struct offset_tile *r,
							      const int rows, const int vecs)
{
	const struct tile *t = &r->t;
	const int64_t *position = r->position;
	const T *a[ROWS], *b = t->b;
	int64_t rsb = t->rsb;
	VEC sum[ROWS][VECS];

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		a[i] = t->a + r->offset[i];
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			sum[i][j] = (VEC){ 0 };
	}
	for (int64_t p = 0; p < t->k; p++, b += rsb) {
		int64_t at = position[p];
		VEC row[VECS];

#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			row[j] = *(const VEC *)(b + j * LANES);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			VEC x = BROADCAST(a[i][at]);
#pragma GCC unroll 3
			for (int j = 0; j < vecs; j++)
				sum[i][j] = MULADD(sum[i][j], x, row[j]);
		}
	}
	store_tile(t, sum, rows, vecs, true);
}

#define OFFSET_TILE(R, V)                                         \
	static void offset_##R##_##V(const struct offset_tile *r) \
	{                                                         \
		offset_tile(r, R, V);                             \
	}
TILES_1(OFFSET_TILE)
TILES_2(OFFSET_TILE)
TILES_3(OFFSET_TILE)

#define OFFSET_ENTRY(R, V) [V][R] = offset_##R##_##V,
static void (*const offset_tiles[VECS + 1][ROWS + 1])(const struct offset_tile *) = {
	TILES_1(OFFSET_ENTRY) TILES_2(OFFSET_ENTRY) TILES_3(OFFSET_ENTRY)
};

/* m rows and `vecs` vectors of c. */
static void compute_offset_tiles(struct offset_tile *r, int64_t m, int vecs)
{
	const int64_t *offset = r->offset;
	const T *bias = r->t.bias;
	T *c = r->t.c;

	for (int64_t i = 0, rows; i < m; i += rows) {
		rows = min64(m - i, tile_rows[vecs]);
		r->offset = offset + i;
		r->t.c = c + i * r->t.rsc;
		r->t.bias = bias ? bias + i : NULL;
		offset_tiles[vecs][rows](r);
	}
	r->offset = offset;
	r->t.bias = bias;
	r->t.c = c;
}

#endif
