/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tiles of a product, for the element type T with vectors VEC of LANES: up to ROWS rows of up to
 * VECS vectors of c, held in registers during the loop over k. A vector of b is multiplied with one
 * element of each row of a, which has any strides; rows of b are contiguous. Used by
 * matmul_float.h, matmul_reduced_float.h and conv_implicit_gemm.h. The includer may define MULADD()
 * and BROADCAST() for elements that are not single numbers.
 */
#ifndef TENSOR_MATMUL_TILE_H
#define TENSOR_MATMUL_TILE_H

#ifndef MULADD
#define MULADD(sum, x, y) ((sum) + (x) * (y))
#define BROADCAST(x)	  ((x) - (VEC){ 0 })
#endif

#define ROWS	    8
#define VECS	    3
#define WIDE	    (VECS * LANES) /* columns of the widest tile */
#define FETCH_DEPTH 64		   /* k from which c is prefetched */
#define FETCH_AHEAD 8		   /* distance of the prefetch of b, in rows */

/* tile_rows[v]: the rows of a tile of v vectors that fit into the registers. */
#if VEC_BYTES == 64
#define TILES_1(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1)
#define TILES_2(X) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2)
#define TILES_3(X) X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3)
static const int tile_rows[VECS + 1] = { 0, 8, 8, 8 };
#else
#define TILES_1(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1)
#define TILES_2(X) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2)
#define TILES_3(X) X(1, 3) X(2, 3) X(3, 3) X(4, 3)
static const int tile_rows[VECS + 1] = { 0, 8, 6, 4 };
#endif

struct tile {
	const T *a, *b;
	T *c;
	int64_t rsa, csa, rsb, rsc, k;
	T alpha, beta;
	const T *bias; /* of the rows, added if beta is 0; may be NULL */
	const T *add; /* of the columns, read instead of each row of c if beta is not 0; may be NULL */
	vec_part part; /* of the last vector in each row */
	bool grouped;  /* a is packed by pack_rows(): the rows of a tile are interleaved */
};

/*
 * The value of a multiplication, rounded: the compiler cannot fuse it with an addition. Where the other operand is a
 * product as well, it would fuse either of them, in each function another one, and bits would depend on the tiles' rows.
 */
static inline VEC rounded(VEC v)
{
	asm("" : "+v"(v));
	return v;
}

/* c = beta * (add or c) + alpha * sum, or alpha * sum + bias. Unless `whole`, the last vector of each row has t->part lanes. */
static inline __attribute__((always_inline)) void store_tile(const struct tile *t,
							     VEC sum[ROWS][VECS], const int rows,
							     const int vecs, const bool whole)
{
	const T alpha = t->alpha, beta = t->beta;
	const int64_t rsc = t->rsc, rs_add = t->add ? 0 : rsc;
	const vec_part part = t->part;
	const T *bias = t->bias, *add = t->add ? t->add : t->c;
	T *c = t->c;

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++, c += rsc, add += rs_add) {
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++) {
			VEC r = rounded(sum[i][j] * alpha);

			if (bias && beta == 0)
				r += bias[i];
			if (whole || j < vecs - 1) {
				if (beta != 0)
					r += *(const VEC *)(add + j * LANES) * beta;
				*(VEC *)(c + j * LANES) = r;
			} else {
				if (beta != 0)
					r += LOAD(add + j * LANES, part) * beta;
				STORE(c + j * LANES, part, r);
			}
		}
	}
}

/* Sets sum[][] to the sums of the products of a tile. */
static inline __attribute__((always_inline)) void sum_tile(const struct tile *t,
							   VEC sum[ROWS][VECS], const int rows,
							   const int vecs, const bool whole,
							   const bool deep)
{
	const T *a[ROWS], *b = t->b;
	int64_t at = 0, csa = t->csa, rsb = t->rsb;
	vec_part part = t->part;

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		a[i] = t->a + i * t->rsa;
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			sum[i][j] = (VEC){ 0 };
	}
	for (int64_t p = t->k; p > 0; p--, b += rsb, at += csa) {
		VEC row[VECS];

		/* A deep panel of b does not fit into the L1 cache. */
#pragma GCC unroll 3
		for (int j = 0; deep && j < vecs; j++)
			__builtin_prefetch(b + FETCH_AHEAD * rsb + j * LANES);
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			row[j] = whole || j < vecs - 1 ? *(const VEC *)(b + j * LANES) :
							 LOAD(b + j * LANES, part);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			VEC x = BROADCAST(a[i][at]);
#pragma GCC unroll 3
			for (int j = 0; j < vecs; j++)
				sum[i][j] = MULADD(sum[i][j], x, row[j]);
		}
	}
}

static inline __attribute__((always_inline)) void compute_tile(const struct tile *t, const int rows,
							       const int vecs, const bool whole,
							       const bool deep)
{
	VEC sum[ROWS][VECS];

	/* Prefetch c: it is not read before the loop ends. */
	if (t->k >= FETCH_DEPTH)
		for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
			for (int j = 0; j < vecs; j++)
				__builtin_prefetch(t->c + i * t->rsc + j * LANES, 1);
	sum_tile(t, sum, rows, vecs, whole, deep);
	store_tile(t, sum, rows, vecs, whole);
}

#define TILE(R, V)                                        \
	static void whole_##R##_##V(const struct tile *t) \
	{                                                 \
		compute_tile(t, R, V, true, false);       \
	}                                                 \
	static void part_##R##_##V(const struct tile *t)  \
	{                                                 \
		compute_tile(t, R, V, false, false);      \
	}
#define DEEP_TILE(R, V)                                  \
	static void deep_##R##_##V(const struct tile *t) \
	{                                                \
		compute_tile(t, R, V, true, true);       \
	}
TILES_1(TILE)
TILES_2(TILE)
TILES_3(TILE)
TILES_3(DEEP_TILE)

/*
 * [vectors][rows]: with a partial last vector; with whole vectors; with whole vectors, b
 * prefetched.
 */
#define ENTRY(R, V)	 [V][R] = { part_##R##_##V, whole_##R##_##V, whole_##R##_##V },
#define DEEP_ENTRY(R, V) [V][R] = { part_##R##_##V, whole_##R##_##V, deep_##R##_##V },
static void (*const tiles[VECS + 1][ROWS + 1][3])(const struct tile *) = {
	TILES_1(ENTRY) TILES_2(ENTRY) TILES_3(DEEP_ENTRY)
};

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The number of vectors of the next panel, if n columns remain: 4 are divided into 2 and 2. */
static inline int next_vecs(int64_t n)
{
	int64_t v = (n + LANES - 1) / LANES;

	return v == 4 ? 2 : v > VECS ? VECS : (int)v;
}

/* Panels have WIDE columns, except the last two if one vector would remain for the last. */
static inline int64_t panel_count(int64_t n)
{
	return (n + WIDE - 1) / WIDE;
}

/* The first column of panel i of n columns. */
static inline int64_t panel_start(int64_t n, int64_t i)
{
	int64_t j = i * WIDE;

	return i && i == panel_count(n) - 1 && n - j <= LANES ? j - LANES : j;
}

/*
 * m rows and n <= vecs * LANES columns of c. The rows are divided evenly among tiles. a may be
 * packed by pack_rows().
 */
static void compute_tiles(struct tile *t, int64_t m, int64_t n, int vecs)
{
	int most = tile_rows[t->grouped ? VECS : vecs];
	int64_t count = (m + most - 1) / most;
	int kind = n != (int64_t)vecs * LANES ? 0 : t->grouped ? 2 : 1;
	const T *a = t->a, *bias = t->bias;
	T *c = t->c;

	t->part = PART(n - (vecs - 1) * (int64_t)LANES);
	for (int64_t i = 0; i < count; i++) {
		int64_t rows = m / (count - i);

		if (t->grouped)
			t->csa = rows;
		tiles[vecs][rows][kind](t);
		if (t->bias)
			t->bias += rows;
		t->a += rows * (t->grouped ? t->k : t->rsa);
		t->c += rows * t->rsc;
		m -= rows;
	}
	t->a = a;
	t->bias = bias;
	t->c = c;
}

#endif
