/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Products of matrices of halves, summed in f32 and rounded once. Both operands are packed as units
 * of 32 bits, which tiles multiply like floats: either one half, widened to f32 (UNIT is 1), or
 * UNIT 2 that follow each other along k, where the processor multiplies pairs. MULADD() and
 * BROADCAST() of matmul_tile.h know which.
 *
 * Many rows of c: b is packed once for all, a by each chunk of rows. Few rows: chunks of columns,
 * which pack their own part of b into the nearest cache. Chunks are cut by shape alone.
 */
#ifndef TENSOR_MATMUL_HALF_H
#define TENSOR_MATMUL_HALF_H

#include "kernels/cpu/linalg/matmul.h"
#include "kernels/cpu/simd/vec_reduced_float.h"

#include "iter/parallel.h"

#include "kernels/cpu/linalg/matmul_tile.h"
#include "kernels/cpu/linalg/gemm_transpose.h"

#define DEPTH	   256	       /* units of a block */
#define COLUMNS	   (96 * WIDE) /* of b that are packed at once */
#define CHUNK	   64	       /* rows of a chunk; up to here, few */
#define CHUNKS	   8	       /* that are enough to share out */
#define DOT_ROWS   8	       /* up to here, dot products */
#define WORK	   (1 << 18)   /* units multiplied in a chunk, at least */
#define PACK_CHUNK 4	       /* panels */
#define PACK_AHEAD 8	       /* units: rows of a matrix lie too far apart to be fetched unasked */

struct halves {
	const struct product *p;
	bool f16;		   /* else bf16 */
	int64_t depth;		   /* units */
	int64_t j0, n;		   /* columns of the block */
	T *panels;		   /* packed b: by panel and depth; NULL: chunks pack */
	int64_t row_chunks, group; /* chunks of rows; panels of a chunk */
	_Atomic bool failed;
};

/* ---- units ---- */

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline VEC widen(const struct halves *h, vec_reduced_float v)
{
	return h->f16 ? vec_from_f16(v) : vec_from_bf16(v);
}

static inline vec_reduced_float narrow(const struct halves *h, VEC v)
{
#if UNIT == 2
	return vec_round_pairs(v);
#else
	return h->f16 ? vec_to_f16(v) : vec_to_bf16(v);
#endif
}

/* A vector of units that follow each other along k, of which n halves exist. */
static inline VEC units_along(const struct halves *h, const uint16_t *s, int64_t n)
{
#if UNIT == 2
	return vec_load_pairs(s, n);
#else
	return widen(h, vec_load_half(s, n));
#endif
}

/* Units of n lanes side by side; k halves of them are left, `step` apart. */
static inline VEC units_across(const struct halves *h, const uint16_t *s, int64_t step, int64_t n,
			       int64_t k)
{
	vec_reduced_float first = vec_load_half(s, n);

#if UNIT == 2
	return vec_make_pairs(first, k > 1 ? vec_load_half(s + step, n) : (vec_reduced_float){ 0 });
#else
	return widen(h, first);
#endif
}

static inline T unit_at(const struct halves *h, const uint16_t *s, int64_t step, int64_t k)
{
#if UNIT == 2
	return bits_to_f32((uint32_t)(k > 1 ? s[step] : 0) << 16 | s[0]);
#else
	return h->f16 ? f16_to_f32(*s) : bf16_to_f32(*s);
#endif
}

/* ---- packing ---- */

static void pack_along(const struct halves *h, T *to, const uint16_t *s, int64_t step, int64_t n,
		       int64_t k, int64_t width)
{
	for (int64_t p = 0; p < k; p += LANES * UNIT, to += LANES * width) {
		int64_t halves = least(k - p, LANES * UNIT);
		VEC row[LANES];

		if (n == LANES && halves == LANES * UNIT) {
#pragma GCC unroll 16
			for (int i = 0; i < LANES; i++)
				row[i] = units_along(h, s + i * step + p, LANES * UNIT);
			turn(row);
#pragma GCC unroll 16
			for (int i = 0; i < LANES; i++)
				*(VEC *)(to + i * width) = row[i];
			continue;
		}
		for (int i = 0; i < LANES; i++)
			row[i] = i < n ? units_along(h, s + i * step + p, halves) : (VEC){ 0 };
		turn(row);
		for (int64_t i = 0; i * UNIT < halves; i++)
			*(VEC *)(to + i * width) = row[i];
	}
}

/*
 * n lanes, `lane` apart, k halves deep, `step` apart: rows of `width` units, one for each UNIT of
 * halves; lanes beyond n are zero. Writes up to a vector beyond the end.
 */
static void pack_units(const struct halves *h, T *to, const uint16_t *s, int64_t lane, int64_t step,
		       int64_t n, int64_t k, int64_t width)
{
	/* What a vector writes too much must come later: not so with several in a row. */
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
/* Two groups of rows that fill a vector: turned together. False where they do not. */
static bool pack_two(const struct halves *h, T *to, const uint16_t *s, int64_t lane, int64_t step,
		     int64_t rows, int64_t k)
{
	T *other = to + rows * ((k + UNIT - 1) / UNIT);

	if (step != 1 || 2 * rows != LANES)
		return false;
	for (int64_t p = 0; p < k; p += LANES * UNIT) {
		int64_t halves = least(k - p, LANES * UNIT);
		VEC row[LANES];

#pragma GCC unroll 16
		for (int i = 0; i < LANES; i++)
			row[i] = units_along(h, s + i * lane + p, halves);
		turn(row);
		for (int64_t i = 0; i * UNIT < halves; i++, to += rows, other += rows)
			STORE_HALVES(to, other, row[i]);
	}
	return true;
}
#endif

/* Rows of a: by blocks of depth, in them by the groups that column() makes. */
static void pack_a(const struct halves *h, T *to, int64_t begin, int64_t m)
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
			    pack_two(h, to, a, p->rsa, p->csa, rows, k)) {
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

/* Columns of b from j on, units from `from` on. */
static void pack_b(const struct halves *h, T *to, int64_t j, int64_t n, int64_t width, int64_t from,
		   int64_t units)
{
	const struct product *p = h->p;
	const uint16_t *b = (const uint16_t *)p->b + from * UNIT * p->rsb + j * p->csb;

	pack_units(h, to, b, p->csb, p->rsb, n, least(p->k - from * UNIT, units * UNIT), width);
}

static void pack_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct halves *h = ctx;

	for (int64_t i = begin; i < end; i++) {
		int64_t j = panel_start(h->n, i), width = next_vecs(h->n - j) * (int64_t)LANES;

		pack_b(h, h->panels + j * h->depth, h->j0 + j, least(h->n - j, width), width, 0,
		       h->depth);
	}
}

/* ---- results ---- */

/* n lanes of c = round(beta * c + alpha * sum) */
static inline void round_lanes(const struct halves *h, uint16_t *c, VEC sum, int64_t n)
{
	const T alpha = (T)h->p->alpha, beta = (T)h->p->beta;

	sum *= alpha;
	if (beta != 0)
		sum += widen(h, vec_load_half(c, n)) * beta;
	if (n == LANES)
		*(vec_reduced_float *)c = narrow(h, sum);
	else
		vec_store_half(c, narrow(h, sum), n);
}

static inline void round_scattered(const struct halves *h, uint16_t *c, VEC sum, int64_t n)
{
	int64_t csc = h->p->csc;
	uint16_t line[LANES];

	for (int64_t i = 0; i < n; i++)
		line[i] = c[i * csc];
	round_lanes(h, line, sum, n);
	for (int64_t i = 0; i < n; i++)
		c[i * csc] = line[i];
}

/* m rows of n sums, `pitch` apart, to c at `row` and `column`. */
static void round_rows(const struct halves *h, const T *sums, int64_t pitch, int64_t row,
		       int64_t column, int64_t m, int64_t n)
{
	const struct product *p = h->p;
	uint16_t *c = (uint16_t *)p->c + row * p->rsc + column * p->csc;

	for (int64_t i = 0; i < m; i++, c += p->rsc, sums += pitch)
		for (int64_t j = 0; j < n; j += LANES) {
			int64_t lanes = least(n - j, LANES);

			if (p->csc == 1)
				round_lanes(h, c + j, *(const VEC *)(sums + j), lanes);
			else
				round_scattered(h, c + j * p->csc, *(const VEC *)(sums + j), lanes);
		}
}

/* c comes from afar while the sums are made. */
static void fetch_rows(const struct halves *h, int64_t row, int64_t column, int64_t m, int64_t n)
{
	const struct product *p = h->p;
	const uint16_t *c = (const uint16_t *)p->c + row * p->rsc + column;

	for (int64_t i = 0; i < m && p->csc == 1; i++, c += p->rsc) {
		__builtin_prefetch(c, 1);
		__builtin_prefetch(c + n - 1, 1);
	}
}

/* ---- tiles ---- */

/* m rows from `begin`, one panel. buffer: DEPTH * WIDE, for b unless it is packed. */
static void panel(const struct halves *h, const T *a, T *buffer, T *sums, int64_t begin, int64_t m,
		  int64_t index)
{
	int64_t j = panel_start(h->n, index), width = next_vecs(h->n - j) * (int64_t)LANES;
	int64_t n = least(h->n - j, width), at = 0;
	struct tile t = {
		.a = a, .rsa = 1, .c = sums, .rsc = WIDE, .rsb = width, .alpha = 1, .grouped = true
	};

	fetch_rows(h, begin, h->j0 + j, m, n);
	do {
		t.k = least(h->depth - at, DEPTH);
		t.b = h->panels ? h->panels + j * h->depth + at * width : buffer;
		t.beta = at ? 1 : 0;
		if (!h->panels)
			pack_b(h, buffer, h->j0 + j, n, width, at, t.k);
		column(&t, m, width, (int)(width / LANES));
		t.a += m * t.k;
		at += t.k;
	} while (at < h->depth);
	round_rows(h, sums, WIDE, begin, h->j0 + j, m, n);
}

/* A chunk is up to CHUNK rows of a group of panels. */
static void compute_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct halves *h = ctx;
	int64_t panels = panel_count(h->n), m = least(h->p->m, CHUNK), packed = -1;
	int64_t size = DEPTH * WIDE + CHUNK * WIDE + m * h->depth + LANES;
	struct tensor_storage *s = storage_alloc(TENSOR_DEVICE_CPU, size * sizeof(T), false);
	T *sums, *buffer, *a;

	if (!s) {
		h->failed = true;
		return;
	}
	sums = s->data;
	buffer = sums + CHUNK * WIDE;
	a = buffer + DEPTH * WIDE;
	for (int64_t i = begin; i < end; i++) {
		int64_t row = i % h->row_chunks * CHUNK, from = i / h->row_chunks * h->group;

		m = least(h->p->m - row, CHUNK);
		if (row != packed)
			pack_a(h, a, packed = row, m);
		for (int64_t x = from; x < least(from + h->group, panels); x++)
			panel(h, a, buffer, sums, row, m, x);
	}
	storage_put(s);
}

static void compute_block(struct halves *h)
{
	int64_t m = least(h->p->m, CHUNK), work = m * WIDE * (h->depth + 1);
	int64_t panels = panel_count(h->n), chunks;

	h->row_chunks = (h->p->m + CHUNK - 1) / CHUNK;
	h->group = (panels * h->row_chunks + CHUNKS - 1) / CHUNKS;
	h->group = least(panels, h->group * work < WORK ? WORK / work + 1 : h->group);
	chunks = h->row_chunks * ((panels + h->group - 1) / h->group);
	parallel_for(0, chunks, h->group * work < WORK ? WORK / (h->group * work) : 1,
		     compute_chunk, h);
}

/* ---- few rows of a, contiguous columns of b: dot products ---- */

struct half_dots {
	struct halves h;
	const T *a; /* rows of units, `depth` rounded up to vectors */
	int64_t row;
};

static inline VEC dot_columns(const struct half_dots *d, const T *a, int64_t j)
{
	const struct product *p = d->h.p;
	const int group = LANES < 8 ? LANES : 8;
	int64_t whole = p->k / (LANES * UNIT) * LANES;
	VEC sum[LANES];

#pragma GCC unroll 2
	for (int g = 0; g < LANES; g += group) {
		const uint16_t *b[8];

#pragma GCC unroll 8
		for (int i = 0; i < group; i++) {
			b[i] = (const uint16_t *)p->b + least(j + g + i, p->n - 1) * p->csb;
			sum[g + i] = (VEC){ 0 };
		}
		for (int64_t at = 0; at < whole; at += LANES) {
			VEC x = *(const VEC *)(a + at);
#pragma GCC unroll 8
			for (int i = 0; i < group; i++)
				sum[g + i] =
					MULADD(sum[g + i], x,
					       units_along(&d->h, b[i] + at * UNIT, LANES * UNIT));
		}
		if (whole * UNIT < p->k) {
			VEC x = *(const VEC *)(a + whole);
#pragma GCC unroll 8
			for (int i = 0; i < group; i++)
				sum[g + i] = MULADD(sum[g + i], x,
						    units_along(&d->h, b[i] + whole * UNIT,
								p->k - whole * UNIT));
		}
	}
	return sum_rows(sum);
}

static void dot_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct half_dots *d = ctx;
	const struct product *p = d->h.p;
	T sums[DOT_ROWS * LANES];

	for (int64_t j = begin; j < end; j += LANES) {
		for (int64_t i = 0; i < p->m; i++)
			*(VEC *)(sums + i * LANES) = dot_columns(d, d->a + i * d->row, j);
		round_rows(&d->h, sums, LANES, 0, j, p->m, least(end - j, LANES));
	}
}

/* ---- one row of a, contiguous rows of b: strips as wide as the registers hold ---- */

#define STRIP (8 * LANES)

/* vecs vectors of c from column j on, n columns. */
static inline __attribute__((always_inline)) void row_strip(const struct half_dots *d, int64_t j,
							    const int vecs, int64_t n)
{
	const struct product *p = d->h.p;
	const uint16_t *b = (const uint16_t *)p->b + j;
	T sums[STRIP];
	VEC sum[STRIP / LANES];

#pragma GCC unroll 8
	for (int v = 0; v < vecs; v++)
		sum[v] = (VEC){ 0 };
	for (int64_t k = 0; k < d->h.depth; k++, b += UNIT * p->rsb) {
		VEC x = BROADCAST(d->a[k]);

#pragma GCC unroll 8
		for (int v = 0; v < vecs; v++)
			sum[v] = MULADD(sum[v], x,
					units_across(&d->h, b + v * LANES, p->rsb,
						     v < vecs - 1 ? LANES : n - v * LANES,
						     p->k - k * UNIT));
		for (int64_t i = 0; i < UNIT; i++)
			__builtin_prefetch(b + (PACK_AHEAD * UNIT + i) * p->rsb);
	}
#pragma GCC unroll 8
	for (int v = 0; v < vecs; v++)
		*(VEC *)(sums + v * LANES) = sum[v];
	round_rows(&d->h, sums, STRIP, 0, j, 1, n);
}

static void row_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct half_dots *d = ctx;
	int64_t j = begin;

	for (; j + STRIP <= end; j += STRIP)
		row_strip(d, j, STRIP / LANES, STRIP);
	for (; j < end; j += LANES)
		row_strip(d, j, 1, least(end - j, LANES));
}

/* A few rows of a as units, against b as it lies; `across`: one row, and b's rows contiguous. */
static int few_rows(const struct halves *h, bool across)
{
	const struct product *p = h->p;
	int64_t step = across ? STRIP : LANES, grain = WORK / (p->m * h->depth + 1) / step * step;
	struct half_dots d = { .h = *h, .row = (h->depth + LANES - 1) / LANES * LANES };
	struct tensor_storage *s;
	T *to;

	s = storage_alloc(TENSOR_DEVICE_CPU, (p->m * d.row + LANES) * sizeof(T), false);
	if (!s)
		return -thread()->error.code;
	d.a = to = s->data;
	for (int64_t i = 0; i < p->m; i++, to += d.row) {
		const uint16_t *a = (const uint16_t *)p->a + i * p->rsa;

		for (int64_t u = 0; u < d.row; u += LANES) {
			int64_t left = p->k - u * UNIT;

			if (p->csa == 1)
				*(VEC *)(to + u) =
					units_along(h, a + u * UNIT, least(left, LANES * UNIT));
			else
				for (int64_t x = 0; x < LANES; x++, left -= UNIT)
					to[u + x] = left > 0 ?
							    unit_at(h, a + (u + x) * UNIT * p->csa,
								    p->csa, left) :
							    0;
		}
	}
	parallel_for(0, p->n, grain < step ? step : grain, across ? row_chunk : dot_chunk, &d);
	storage_put(s);
	return 0;
}

/* ---- which way ---- */

static int half_product(const struct product *p, bool f16)
{
	struct halves h = { .p = p, .f16 = f16, .depth = (p->k + UNIT - 1) / UNIT };
	struct tensor_storage *s = NULL;

	if (p->m <= DOT_ROWS && p->rsb == 1 && p->csb != 1 && p->n != 1)
		return few_rows(&h, false);
	if (p->m == 1 && p->csb == 1 && p->csc == 1 && p->n >= STRIP)
		return few_rows(&h, true);
	if (p->m > CHUNK) {
		int64_t columns = least((p->n + LANES - 1) / LANES * LANES, COLUMNS);

		s = storage_alloc(TENSOR_DEVICE_CPU, (columns * h.depth + LANES) * sizeof(T),
				  false);
		if (!s)
			return -thread()->error.code;
		h.panels = s->data;
	}
	for (; h.j0 < p->n; h.j0 += h.n) {
		h.n = least(p->n - h.j0, COLUMNS);
		if (h.panels)
			parallel_for(0, panel_count(h.n), PACK_CHUNK, pack_chunk, &h);
		compute_block(&h);
	}
	if (s)
		storage_put(s);
	return h.failed ? tensor_fail(ENOMEM, "mm: no memory for a block") : 0;
}

#endif
