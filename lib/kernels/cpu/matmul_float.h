/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Products of floating-point matrices, for the element type T with vectors VEC of LANES.
 *
 * A tile is up to 8 rows of up to 3 vectors of c, held in registers while k runs: one vector of b
 * is multiplied with one element of each row of a. It reads a with any strides. Rows of b must be
 * contiguous: where they are not, or lie so far apart that the cache suffers, a block of b is
 * first copied into panels as wide as a tile.
 *
 * Blocks of c and of k are cut by shape alone, so the bits do not depend on who computes a block.
 */
#include "matmul.h"
#include "vec.h"

#include "../parallel.h"

#define ROWS	  8
#define VECS	  3
#define WIDE	  (VECS * LANES) /* columns of the widest tile */
#define DEPTH	  256 /* k of a block */
#define COLUMNS	  (20 * WIDE) /* n of a block of packed b */
#define CHUNK	  64 /* m of a chunk of parallel work */

/* Rows of a tile by its vectors: as many as the registers hold. */
#if VEC_BYTES == 64
#define TILES_1(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1)
#define TILES_2(X) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2)
#define TILES_3(X) X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3)
static const int tile_rows[VECS + 1] = {0, 8, 8, 8};
#else
#define TILES_1(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1)
#define TILES_2(X) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2)
#define TILES_3(X) X(1, 3) X(2, 3) X(3, 3) X(4, 3)
static const int tile_rows[VECS + 1] = {0, 8, 6, 4};
#endif

struct tile {
	const T *a, *b;
	T *c;
	int64_t rsa, csa, rsb, rsc, k;
	T alpha, beta;
	vec_part part; /* of the last vector in each row */
};

static inline __attribute__((always_inline)) void compute(const struct tile *t, const int rows,
							  const int vecs, const bool whole)
{
	const T *a[ROWS], *b = t->b;
	int64_t at = 0, csa = t->csa, rsb = t->rsb;
	vec_part part = t->part;
	VEC sum[ROWS][VECS];

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		a[i] = t->a + i * t->rsa;
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			sum[i][j] = (VEC){0};
	}
	for (int64_t p = t->k; p > 0; p--, b += rsb, at += csa) {
		VEC row[VECS];

#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			row[j] = whole || j < vecs - 1 ? *(const VEC *)(b + j * LANES) :
							 LOAD(b + j * LANES, part);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			VEC x = a[i][at] - (VEC){0};
#pragma GCC unroll 3
			for (int j = 0; j < vecs; j++)
				sum[i][j] += x * row[j];
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		T *c = t->c + i * t->rsc;
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++) {
			VEC r = sum[i][j] * t->alpha;

			if (whole || j < vecs - 1) {
				if (t->beta != 0)
					r += *(VEC *)(c + j * LANES) * t->beta;
				*(VEC *)(c + j * LANES) = r;
			} else {
				if (t->beta != 0)
					r += LOAD(c + j * LANES, part) * t->beta;
				STORE(c + j * LANES, part, r);
			}
		}
	}
}

#define TILE(R, V)                                                                                \
	static void whole_##R##_##V(const struct tile *t)                                         \
	{                                                                                         \
		compute(t, R, V, true);                                                           \
	}                                                                                         \
	static void part_##R##_##V(const struct tile *t)                                          \
	{                                                                                         \
		compute(t, R, V, false);                                                          \
	}
TILES_1(TILE)
TILES_2(TILE)
TILES_3(TILE)

#define ENTRY(R, V) [V][R] = {part_##R##_##V, whole_##R##_##V},
static void (*const tiles[VECS + 1][ROWS + 1][2])(const struct tile *) = {
	TILES_1(ENTRY) TILES_2(ENTRY) TILES_3(ENTRY)};

/* Vectors of the next tile of n columns: not 3 and 1 but 2 and 2. */
static inline int next_vecs(int64_t n)
{
	int64_t v = (n + LANES - 1) / LANES;

	return v == 4 ? 2 : v > VECS ? VECS : (int)v;
}

/* m rows and n <= vecs * LANES columns; rows are shared out evenly among the tiles. */
static void column(struct tile *t, int64_t m, int64_t n, int vecs)
{
	int64_t count = (m + tile_rows[vecs] - 1) / tile_rows[vecs];
	bool whole = n == (int64_t)vecs * LANES;
	const T *a = t->a;
	T *c = t->c;

	t->part = PART(n - (vecs - 1) * (int64_t)LANES);
	for (int64_t i = 0; i < count; i++) {
		int64_t rows = m / (count - i);

		tiles[vecs][rows][whole](t);
		t->a += rows * t->rsa;
		t->c += rows * t->rsc;
		m -= rows;
	}
	t->a = a;
	t->c = c;
}

/* The same into a c whose rows are not contiguous, by way of a small block that is. */
static void column_scattered(struct tile *t, int64_t m, int64_t n, int vecs, int64_t csc)
{
	T block[ROWS * WIDE], *c = t->c, beta = t->beta;
	const T *a = t->a;
	int64_t rsc = t->rsc;

	t->c = block;
	t->rsc = WIDE;
	t->beta = 0;
	for (int64_t i = 0; i < m; i += ROWS) {
		int64_t rows = m - i < ROWS ? m - i : ROWS;

		t->a = a + i * t->rsa;
		column(t, rows, n, vecs);
		for (int64_t x = 0; x < rows; x++)
			for (int64_t y = 0; y < n; y++) {
				T *to = c + (i + x) * rsc + y * csc;

				*to = (beta != 0 ? beta * *to : 0) + block[x * WIDE + y];
			}
	}
	t->a = a;
	t->c = c;
	t->rsc = rsc;
	t->beta = beta;
}

/* ---- panels of b ----------------------------------------------------------------------- */

/* k rows of n <= width columns, to rows of `width`, the rest zero. */
static void pack(T *to, const T *b, int64_t rsb, int64_t csb, int64_t k, int64_t n, int64_t width)
{
	for (int64_t p = 0; p < k; p++, to += width, b += rsb) {
		if (csb == 1)
			for (int64_t j = 0; j < n; j++)
				to[j] = b[j];
		else
			for (int64_t j = 0; j < n; j++)
				to[j] = b[j * csb];
		for (int64_t j = n; j < width; j++)
			to[j] = 0;
	}
}

struct block {
	const struct product *p;
	int64_t j0, n, p0, k; /* columns and depth of the block */
	T *panels; /* NULL: b is read where it is */
};

static void pack_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct block *k = ctx;
	const struct product *p = k->p;

	for (int64_t j = begin, left; j < end; j += left) {
		int vecs = next_vecs(k->n - j);

		left = k->n - j < vecs * (int64_t)LANES ? k->n - j : vecs * (int64_t)LANES;
		pack(k->panels + j * k->k,
		     (const T *)p->b + k->p0 * p->rsb + (k->j0 + j) * p->csb, p->rsb, p->csb, k->k,
		     left, vecs * (int64_t)LANES);
	}
}

static void compute_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct block *k = ctx;
	const struct product *p = k->p;
	struct tile t = {.a = (const T *)p->a + begin * p->rsa + k->p0 * p->csa,
			 .rsa = p->rsa,
			 .csa = p->csa,
			 .rsc = p->rsc,
			 .k = k->k,
			 .alpha = (T)p->alpha,
			 .beta = k->p0 ? 1 : (T)p->beta};

	for (int64_t j = 0, n; j < k->n; j += n) {
		int vecs = next_vecs(k->n - j);

		n = k->n - j < vecs * (int64_t)LANES ? k->n - j : vecs * (int64_t)LANES;
		t.b = k->panels ? k->panels + j * k->k :
				  (const T *)p->b + k->p0 * p->rsb + k->j0 + j;
		t.rsb = k->panels ? vecs * (int64_t)LANES : p->rsb;
		t.c = (T *)p->c + begin * p->rsc + (k->j0 + j) * p->csc;
		if (p->csc == 1 || n == 1)
			column(&t, end - begin, n, vecs);
		else
			column_scattered(&t, end - begin, n, vecs, p->csc);
	}
}

int CPU_NAME(MATMUL)(const struct product *p)
{
	struct block k = {.p = p};
	struct tensor_storage *s = NULL;
	bool packed = p->csb != 1 && p->n != 1;

	if (packed) {
		int64_t columns = p->n < COLUMNS ? (p->n + LANES - 1) / LANES * LANES : COLUMNS;
		int64_t depth = p->k < DEPTH ? p->k : DEPTH;

		s = storage_alloc(TENSOR_DEVICE_CPU, columns * depth * sizeof(T), false);
		if (!s)
			return -thread()->error.code;
		k.panels = s->data;
	}
	for (k.j0 = 0; k.j0 < p->n; k.j0 += k.n) {
		k.n = p->n - k.j0 < COLUMNS ? p->n - k.j0 : COLUMNS;
		k.p0 = 0;
		do {
			k.k = p->k - k.p0 < DEPTH ? p->k - k.p0 : DEPTH;
			if (packed)
				parallel_for(0, k.n, 4 * WIDE, pack_chunk, &k);
			parallel_for(0, p->m, CHUNK, compute_chunk, &k);
			k.p0 += k.k;
		} while (k.p0 < p->k);
	}
	if (s)
		storage_put(s);
	return 0;
}
