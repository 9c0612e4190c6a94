/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Units and their packing for matmul_reduced_float.h. A unit is 32 bits: one element widened to f32
 * (UNIT is 1), or two elements that are adjacent along k (UNIT is 2).
 */
#ifndef TENSOR_MATMUL_REDUCED_PACK_H
#define TENSOR_MATMUL_REDUCED_PACK_H

#include "kernels/cpu/linalg/matmul.h"
#include "kernels/cpu/simd/vec_reduced_float.h"

#include "kernels/cpu/linalg/matmul_tile.h"
#include "kernels/cpu/linalg/gemm_transpose.h"

#define DEPTH	      256	  /* units of a block */
#define COLUMNS	      (96 * WIDE) /* columns of b that are packed at a time */
#define CHUNK	      64	  /* rows in a chunk of parallel work */
#define CHUNKS	      8		  /* the least number of chunks if panels are grouped */
#define DOT_ROWS      8		  /* rows of a up to which dot products are used */
#define WORK	      (1 << 18)	  /* the least number of multiplied units in a chunk */
#define PACK_CHUNK    2		  /* panels packed by one chunk of parallel work */
#define PAGE_ELEMENTS 2048	  /* elements in 4 KiB */
#define PACK_AHEAD    8 /* prefetch distance in units: rows are too far apart for the hardware's */

struct reduced_product {
	const struct product *p;
	bool f16;      /* f16, else bf16 */
	int64_t depth; /* of k, in units; with tiles rounded up, the rest of b is zero */
	int64_t j0, n; /* columns of the block */
	T *panels;     /* packed b, by panel and depth; NULL: chunks pack their own part */
	int64_t row_chunks, group; /* chunks of rows; panels of a chunk */
	int tiles;		   /* enum tile_mode */
	bool at_once;		   /* tiles sum over all of k and round to c */
	int64_t rsa;	     /* units between rows of a read in place, 0: packed; at_once only */
	_Atomic bool failed; /* out of memory */
};

/* ---- units ---- */

static inline VEC widen(const struct reduced_product *h, vec_reduced_float v)
{
	return h->f16 ? vec_from_f16(v) : vec_from_bf16(v);
}

static inline vec_reduced_float narrow(const struct reduced_product *h, VEC v)
{
#if UNIT == 2
	return vec_round_pairs(v);
#else
	return h->f16 ? vec_to_f16(v) : vec_to_bf16(v);
#endif
}

/* A vector of adjacent units along k, from n elements; the rest is zero. */
static inline VEC units_along(const struct reduced_product *h, const uint16_t *s, int64_t n)
{
#if UNIT == 2
	return vec_load_pairs(s, n);
#else
	return widen(h, vec_load_reduced_float(s, n));
#endif
}

/*
 * A vector of units of n adjacent lanes; their elements are `step` apart along k, k of them exist.
 */
static inline VEC units_across(const struct reduced_product *h, const uint16_t *s, int64_t step,
			       int64_t n, int64_t k)
{
	vec_reduced_float first = vec_load_reduced_float(s, n);

#if UNIT == 2
	return vec_make_pairs(first, k > 1 ? vec_load_reduced_float(s + step, n) :
					     (vec_reduced_float){ 0 });
#else
	return widen(h, first);
#endif
}

/* One unit, whose elements are `step` apart; k of them exist. */
static inline T unit_at(const struct reduced_product *h, const uint16_t *s, int64_t step, int64_t k)
{
#if UNIT == 2
	return bits_to_f32((uint32_t)(k > 1 ? s[step] : 0) << 16 | s[0]);
#else
	return h->f16 ? f16_to_f32(*s) : bf16_to_f32(*s);
#endif
}

/* ---- packing ---- */

/* pack_units() for n <= LANES lanes whose elements are adjacent along k. */
static void pack_along(const struct reduced_product *h, T *to, const uint16_t *s, int64_t step,
		       int64_t n, int64_t k, int64_t width)
{
	for (int64_t p = 0; p < k; p += LANES * UNIT, to += LANES * width) {
		int64_t count = least(k - p, LANES * UNIT);
		VEC row[LANES];

		if (n == LANES && count == LANES * UNIT) {
#pragma GCC unroll 16
			for (int i = 0; i < LANES; i++)
				row[i] = units_along(h, s + i * step + p, LANES * UNIT);
			transpose_lanes(row);
#pragma GCC unroll 16
			for (int i = 0; i < LANES; i++)
				*(VEC *)(to + i * width) = row[i];
			continue;
		}
		for (int i = 0; i < LANES; i++)
			row[i] = i < n ? units_along(h, s + i * step + p, count) : (VEC){ 0 };
		transpose_lanes(row);
		for (int64_t i = 0; i * UNIT < count; i++)
			*(VEC *)(to + i * width) = row[i];
	}
}

/*
 * Packs n lanes of k elements to rows of `width` units, a row for each UNIT elements along k. Lanes
 * are `lane` apart, elements along k `step`. Lanes from n on are zero. Writes up to a vector beyond
 * the end.
 */
static void pack_units(const struct reduced_product *h, T *to, const uint16_t *s, int64_t lane,
		       int64_t step, int64_t n, int64_t k, int64_t width)
{
	/*
	 * The last vector of a row may write into the next row, which is packed later. Several
	 * vectors in a row must fit exactly.
	 */
	if (step == 1 && (width <= LANES || width % LANES == 0)) {
		for (int64_t j = 0; j < width; j += LANES)
			pack_along(h, to + j, s + j * lane, lane, least(n - j, LANES), k, width);
		return;
	}
	for (int64_t p = 0; p < k; p += UNIT, to += width, s += UNIT * step) {
		for (int64_t j = 0; lane == 1 && j < width; j += LANES) {
			for (int64_t i = 0; i < UNIT; i++)
				__builtin_prefetch(s + (PACK_AHEAD * UNIT + i) * step + j);
			*(VEC *)(to + j) =
				j < n ? units_across(h, s + j, step, least(n - j, LANES), k - p) :
					(VEC){ 0 };
		}
		for (int64_t j = 0; lane != 1 && j < width; j++)
			to[j] = j < n ? unit_at(h, s + j * lane, step, k - p) : 0;
	}
}

#ifdef STORE_HALVES
/*
 * Packs two groups of `rows` lanes by one transposition. Returns false if they do not fill a vector
 * or are not contiguous along k.
 */
static bool pack_two_groups(const struct reduced_product *h, T *to, const uint16_t *s, int64_t lane,
			    int64_t step, int64_t rows, int64_t k)
{
	T *other = to + rows * ((k + UNIT - 1) / UNIT);

	if (step != 1 || 2 * rows != LANES)
		return false;
	for (int64_t p = 0; p < k; p += LANES * UNIT) {
		int64_t count = least(k - p, LANES * UNIT);
		VEC row[LANES];

#pragma GCC unroll 16
		for (int i = 0; i < LANES; i++)
			row[i] = units_along(h, s + i * lane + p, count);
		transpose_lanes(row);
		for (int64_t i = 0; i * UNIT < count; i++, to += rows, other += rows)
			STORE_HALVES(to, other, row[i]);
	}
	return true;
}
#endif

/*
 * Packs m rows of a from `begin` on: by blocks of DEPTH, in these by the groups of compute_tiles().
 */
static void pack_a(const struct reduced_product *h, T *to, int64_t begin, int64_t m)
{
	const struct product *p = h->p;
	int64_t count = (m + tile_rows[VECS] - 1) / tile_rows[VECS];

	for (int64_t at = 0; at < p->k; at += DEPTH * UNIT) {
		const uint16_t *a = (const uint16_t *)p->a + begin * p->rsa + at * p->csa;
		int64_t k = least(p->k - at, DEPTH * UNIT), left = m;

		for (int64_t i = 0, rows; i < count; i++, left -= rows, a += rows * p->rsa) {
			rows = left / (count - i);
#ifdef STORE_HALVES
			if (i + 1 < count && (left - rows) / (count - i - 1) == rows &&
			    pack_two_groups(h, to, a, p->rsa, p->csa, rows, k)) {
				i++;
				rows *= 2;
				to += rows * ((k + UNIT - 1) / UNIT);
				continue;
			}
#endif
			pack_units(h, to, a, p->rsa, p->csa, rows, k, rows);
			to += rows * ((k + UNIT - 1) / UNIT);
		}
	}
}

/* Packs n columns of b from j on, units from `from` on. */
static void pack_b(const struct reduced_product *h, T *to, int64_t j, int64_t n, int64_t width,
		   int64_t from, int64_t units)
{
	const struct product *p = h->p;
	const uint16_t *b = (const uint16_t *)p->b + from * UNIT * p->rsb + j * p->csb;
	int64_t k = least(p->k - from * UNIT, units * UNIT), filled = (k + UNIT - 1) / UNIT;

	pack_units(h, to, b, p->csb, p->rsb, n, k, width);
	if (filled < units)
		memset(to + filled * width, 0, (units - filled) * width * sizeof(T));
}

static void pack_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct reduced_product *h = ctx;

	for (int64_t i = begin; i < end; i++) {
		int64_t j = panel_start(h->n, i), width = next_vecs(h->n - j) * (int64_t)LANES;

		pack_b(h, h->panels + j * h->depth, h->j0 + j, least(h->n - j, width), width, 0,
		       h->depth);
	}
}

#endif
