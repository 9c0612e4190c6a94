/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Products of f16 and bf16 matrices, summed in f32 and rounded once. Both operands are packed as
 * units of 32 bits (matmul_reduced_pack.h), which tiles multiply by MULADD() and BROADCAST() of
 * matmul_tile.h: numbers in f32, or pairs of bf16 if the processor multiplies those.
 *
 * For more than CHUNK rows of c, b is packed once, and a by each chunk of rows. For fewer rows,
 * chunks of columns pack their own part of b into the L1 cache. Chunks are divided by the shape
 * alone.
 */
#ifndef TENSOR_MATMUL_REDUCED_FLOAT_H
#define TENSOR_MATMUL_REDUCED_FLOAT_H

#include "kernels/cpu/linalg/matmul_reduced_pack.h"

#include "kernels/cpu/linalg/matmul_reduced_round.h"
#include "kernels/cpu/linalg/matmul_tiles.h"

#include "iter/parallel.h"

/* ---- tiles ---- */

/* A tile whose sums are all of k: they are rounded to c, whose last vector has `lanes` lanes. */
struct rounded_tile {
	struct tile t;
	const struct reduced_product *h;
	uint16_t *c;
	const uint16_t *add; /* its first row, or the bias */
	int64_t lanes;
};

static inline __attribute__((always_inline)) void round_tile(const struct rounded_tile *r,
							     const int rows, const int vecs)
{
	int64_t rsc = r->h->p->rsc, rs_add = r->h->p->bias ? 0 : rsc, lanes = r->lanes;
	const uint16_t *add = r->add;
	VEC sum[ROWS][VECS];
	uint16_t *c = r->c;

	sum_tile(&r->t, sum, rows, vecs, true, false);
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++, c += rsc, add += rs_add)
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			round_lanes(r->h, c + j * LANES, add + j * LANES, sum[i][j],
				    j < vecs - 1 ? LANES : lanes);
}

#define ROUNDED_TILE(R, V)                                          \
	static void rounded_##R##_##V(const struct rounded_tile *r) \
	{                                                           \
		round_tile(r, R, V);                                \
	}
TILES_1(ROUNDED_TILE)
TILES_2(ROUNDED_TILE)
TILES_3(ROUNDED_TILE)

#define ROUNDED_ENTRY(R, V) [V][R] = rounded_##R##_##V,
static void (*const rounded_tiles[VECS + 1][ROWS + 1])(const struct rounded_tile *) = {
	TILES_1(ROUNDED_ENTRY) TILES_2(ROUNDED_ENTRY) TILES_3(ROUNDED_ENTRY)
};

/* m rows of n columns of a panel, in the groups of compute_tiles(). */
static void round_tiles(struct rounded_tile *r, int64_t m, int64_t n)
{
	int64_t count = (m + tile_rows[VECS] - 1) / tile_rows[VECS];
	int vecs = (int)((n + LANES - 1) / LANES);

	r->lanes = n - (vecs - 1) * (int64_t)LANES;
	for (int64_t i = 0, rows; i < count; i++, m -= rows) {
		rows = m / (count - i);
		if (r->t.grouped)
			r->t.csa = rows;
		rounded_tiles[vecs][rows](r);
		r->t.a += rows * (r->t.grouped ? r->t.k : r->t.rsa);
		r->c += rows * r->h->p->rsc;
		if (!r->h->p->bias)
			r->add = r->c;
	}
}

/* compute_panel() for at_once; t: its tile, to which b and the depth are added. */
static void round_panel(const struct reduced_product *h, struct tile t, T *buffer, int64_t begin,
			int64_t j, int64_t m, int64_t n)
{
	struct rounded_tile r = { .h = h,
				  .c = (uint16_t *)h->p->c + begin * h->p->rsc + h->j0 + j };

	if (h->rsa) {
		t.rsa = h->rsa;
		t.csa = 1;
		t.grouped = false;
	}
	t.k = h->depth;
	t.b = h->panels ? h->panels + j * h->depth : buffer;
	if (!h->panels)
		pack_b(h, buffer, h->j0 + j, n, t.rsb, 0, h->depth);
	r.t = t;
	r.add = added(h->p, r.c, h->j0 + j);
	round_tiles(&r, m, n);
}

/* m rows from `begin` of one panel. buffer has DEPTH * WIDE elements, for b if it is not packed;
 * model is that of tiles.h. */
static void compute_panel(const struct reduced_product *h, const T *a, T *buffer, T *sums, T *model,
			  int64_t begin, int64_t m, int64_t index)
{
	int64_t j = panel_start(h->n, index), width = next_vecs(h->n - j) * (int64_t)LANES;
	int64_t n = least(h->n - j, width), at = 0;
	struct tile t = {
		.a = a, .rsa = 1, .c = sums, .rsc = WIDE, .rsb = width, .alpha = 1, .grouped = true
	};

	fetch_rows(h, begin, h->j0 + j, m, n);
	if (h->at_once) {
		round_panel(h, t, buffer, begin, j, m, n);
		return;
	}
	do {
		t.k = least(h->depth - at, DEPTH);
		t.b = h->panels ? h->panels + j * h->depth + at * width : buffer;
		t.beta = at ? 1 : 0;
		if (!h->panels)
			pack_b(h, buffer, h->j0 + j, n, width, at, t.k);
		if (h->tiles) {
			const struct tile_block block = { .a = a + at,
							  .b = t.b,
							  .sums = sums,
							  .pitch = h->depth + TILE_PAD,
							  .width = width,
							  .row = WIDE,
							  .depth = t.k,
							  .add = at };

			compute_tile_rows(&block, m, model);
			at += t.k;
			continue;
		}
		compute_tiles(&t, m, width, (int)(width / LANES));
		t.a += m * t.k;
		at += t.k;
	} while (at < h->depth);
	round_rows(h, sums, WIDE, begin, h->j0 + j, m, n);
}

/* Units of m packed rows of a. */
static int64_t packed_a(const struct reduced_product *h, int64_t m)
{
	return h->tiles ? whole_tiles(m) * (h->depth + TILE_PAD) : m * h->depth;
}

/* The activation of m rows of panels `from` to `until`. */
static void finish_panels(const struct reduced_product *h, int64_t row, int64_t m, int64_t from,
			  int64_t until)
{
	int64_t j = panel_start(h->n, from);
	int64_t end = until < panel_count(h->n) ? panel_start(h->n, until) : h->n;

	product_finish(h->p, row, h->j0 + j, m, end - j);
}

/* Tasks begin to end; a task is up to CHUNK rows of a group of panels. */
static void compute_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct reduced_product *h = ctx;
	int64_t panels = panel_count(h->n), m = least(h->p->m, CHUNK), packed = -1;
	int64_t sizes[] = { CHUNK * WIDE, DEPTH * WIDE, packed_a(h, m) + LANES,
			    h->tiles == TILES_MODEL ? MODEL_UNITS : 0 };
	struct tensor_storage *s;
	T *sums, *buffer, *a, *model;

	s = storage_alloc(TENSOR_DEVICE_CPU,
			  (sizes[0] + sizes[1] + sizes[2] + sizes[3]) * sizeof(T), false);
	if (!s) {
		h->failed = true;
		return;
	}
	sums = s->data;
	buffer = sums + sizes[0];
	a = buffer + sizes[1];
	model = h->tiles == TILES_MODEL ? a + sizes[2] : NULL;
	if (h->tiles)
		tiles_begin(model);
	for (int64_t i = begin; i < end; i++) {
		int64_t row = i % h->row_chunks * CHUNK, from = i / h->row_chunks * h->group;
		int64_t until = least(from + h->group, panels);

		m = least(h->p->m - row, CHUNK);
		if (row != packed && h->tiles)
			pack_tile_rows(h, a, row, m);
		else if (row != packed && !h->rsa)
			pack_a(h, a, row, m);
		packed = row;
		for (int64_t x = from; x < until; x++) {
			compute_panel(h, h->rsa ? (const T *)h->p->a + row * h->rsa : a, buffer,
				      sums, model, row, m, x);
			if (x + 1 == until || (x + 1 - from) % (FINISH_COLUMNS / WIDE) == 0)
				finish_panels(h, row, m, x - (x - from) % (FINISH_COLUMNS / WIDE),
					      x + 1);
		}
	}
	if (h->tiles)
		tiles_end(model);
	storage_put(s);
}

static void compute_block(struct reduced_product *h)
{
	int64_t m = least(h->p->m, CHUNK), work = m * WIDE * (h->depth + 1);
	int64_t panels = panel_count(h->n), chunks, least_chunks = 4 * tensor_get_num_threads();

	if (least_chunks < CHUNKS)
		least_chunks = CHUNKS;
	h->row_chunks = (h->p->m + CHUNK - 1) / CHUNK;
	h->group = (panels * h->row_chunks + least_chunks - 1) / least_chunks;
	h->group = least(panels, h->group * work < WORK ? WORK / work + 1 : h->group);
	chunks = h->row_chunks * ((panels + h->group - 1) / h->group);
	parallel_for(0, chunks, h->group * work < WORK ? WORK / (h->group * work) : 1,
		     compute_chunk, h);
}

/* ---- dot products, for few rows of a and contiguous columns of b ---- */

struct reduced_dots {
	struct reduced_product h;
	const T *a;  /* rows of units */
	int64_t row; /* their distance: depth rounded up to vectors */
};

static inline VEC dot_columns(const struct reduced_dots *d, const T *a, int64_t j)
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
	const struct reduced_dots *d = ctx;
	const struct product *p = d->h.p;
	T sums[DOT_ROWS * LANES];

	for (int64_t j = begin; j < end; j += LANES) {
		for (int64_t i = 0; i < p->m; i++)
			*(VEC *)(sums + i * LANES) = dot_columns(d, d->a + i * d->row, j);
		round_rows(&d->h, sums, LANES, 0, j, p->m, least(end - j, LANES));
	}
	product_finish(p, 0, begin, p->m, end - begin);
}

/* ---- one row of a, contiguous rows of b ---- */

#define STRIP (8 * LANES) /* columns whose sums are held in registers */

/* n columns of c from column j on, in `vecs` vectors. */
static inline __attribute__((always_inline)) void row_strip(const struct reduced_dots *d, int64_t j,
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
	const struct reduced_dots *d = ctx;
	int64_t j = begin;

	for (; j + STRIP <= end; j += STRIP)
		row_strip(d, j, STRIP / LANES, STRIP);
	for (; j < end; j += LANES)
		row_strip(d, j, 1, least(end - j, LANES));
	product_finish(d->h.p, 0, begin, 1, end - begin);
}

/*
 * Converts the rows of a to units; b is read in place. across: one row of a, and the rows of b are
 * contiguous; else its columns are.
 */
static int few_rows(const struct reduced_product *h, bool across)
{
	const struct product *p = h->p;
	int64_t step = across ? STRIP : LANES, grain = WORK / (p->m * h->depth + 1) / step * step;
	struct reduced_dots d = { .h = *h, .row = (h->depth + LANES - 1) / LANES * LANES };
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

/* ---- selection of the algorithm ---- */

/*
 * The distance of the rows of a in units if tiles read them in place, else 0. Rows a multiple of 4 KiB apart would use
 * the same sets of the cache.
 */
static int64_t rows_in_place(const struct product *p)
{
	bool units = UNIT > 1 && p->csa == 1 && p->k % UNIT == 0 && p->rsa % UNIT == 0 &&
		     (uintptr_t)p->a % sizeof(T) == 0;

	return units && p->rsa > 0 && p->rsa % PAGE_ELEMENTS != 0 ? p->rsa / UNIT : 0;
}

/* The sizes and flags of a product, all but its memory. */
static struct reduced_product reduced_product_of(const struct product *p, bool f16)
{
	struct reduced_product h = { .p = p, .f16 = f16, .depth = (p->k + UNIT - 1) / UNIT };

	h.tiles = tiles_for(p->m);
	if (h.tiles)
		h.depth = whole_tiles(h.depth);
	h.at_once = !h.tiles && p->csc == 1 && h.depth <= DEPTH;
	if (h.at_once)
		h.rsa = rows_in_place(p);
	return h;
}

/* Units of n packed columns. */
static int64_t packed_b(const struct reduced_product *h, int64_t n)
{
	return (n + LANES - 1) / LANES * LANES * h->depth + LANES;
}

/* Packs the columns of all blocks one after the other; see product_pack_fn. */
static size_t reduced_float_pack(const struct product *p, bool f16, void *to)
{
	struct reduced_product h = reduced_product_of(p, f16);

	if (p->m <= 1 || p->n < LANES || (p->m <= DOT_ROWS && p->rsb == 1 && p->csb != 1))
		return 0;
	for (; to && h.j0 < p->n; h.j0 += h.n) {
		h.n = least(p->n - h.j0, COLUMNS);
		h.panels = (T *)to + h.j0 * h.depth;
		parallel_for(0, panel_count(h.n), PACK_CHUNK, pack_chunk, &h);
	}
	return packed_b(&h, p->n) * sizeof(T);
}

static int reduced_float_product(const struct product *p, bool f16)
{
	struct reduced_product h = reduced_product_of(p, f16);
	struct tensor_storage *s = NULL;

	if (!p->packed && p->m <= DOT_ROWS && p->rsb == 1 && p->csb != 1 && p->n != 1)
		return few_rows(&h, false);
	if (!p->packed && p->m == 1 && p->csb == 1 && p->csc == 1 && p->n >= STRIP)
		return few_rows(&h, true);
	if (p->m > CHUNK && !p->packed) {
		s = storage_alloc(TENSOR_DEVICE_CPU, packed_b(&h, least(p->n, COLUMNS)) * sizeof(T),
				  false);
		if (!s)
			return -thread()->error.code;
		h.panels = s->data;
	}
	for (; h.j0 < p->n; h.j0 += h.n) {
		h.n = least(p->n - h.j0, COLUMNS);
		if (p->packed)
			h.panels = (T *)p->packed + h.j0 * h.depth;
		else if (h.panels)
			parallel_for(0, panel_count(h.n), PACK_CHUNK, pack_chunk, &h);
		compute_block(&h);
	}
	if (s)
		storage_put(s);
	return h.failed ? tensor_fail(ENOMEM, "mm: no memory for a block") : 0;
}

#endif
