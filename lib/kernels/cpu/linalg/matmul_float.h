/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Products of floating-point matrices, for the element type T with vectors VEC of LANES.
 *
 * Tiles (matmul_tile.h) read a with any strides. They need contiguous rows of b: if those are not,
 * or if b is large, blocks of b are first copied into panels as wide as a tile.
 *
 * c and k are divided into blocks by the shape alone, so that the bits do not depend on the number
 * of threads.
 */
#include "kernels/cpu/linalg/matmul.h"
#include "kernels/cpu/simd/vec.h"

#include "iter/parallel.h"

#include "kernels/cpu/linalg/matmul_pack.h"
#include "kernels/cpu/linalg/matmul_tile.h"

#define DEPTH	    192		/* k of a block */
#define COLUMNS	    (24 * WIDE) /* n of a block of packed b: it fits into the L2 cache */
#define CHUNK	    64		/* the most rows in a chunk of parallel work */
#define CHUNK_LEAST 16
#define PACK_SIZE   (1 << 17) /* elements of b from which a and b are packed, for m > CHUNK */
#define PACK_CHUNK  2	      /* panels packed by one chunk of parallel work */
#define DOT_ROWS    8	      /* rows of a up to which dot products are used */
#define DOT_WORK    (1 << 17) /* multiplications in a chunk of dot products */
#define WORK	    (1 << 18) /* multiplications in a chunk of panels */
#define FEW_DEPTH   128 /* k from which products of few rows or columns have ways of their own */

/* The elements that beta multiplies for those of c from column j on, where rows of c are contiguous. */
static inline const T *added(const struct product *p, const T *c, int64_t j)
{
	return p->bias ? (const T *)p->bias + j : c;
}

/* compute_tiles() for a c whose rows are not contiguous, through a buffer. */
static void compute_tiles_scattered(struct tile *t, int64_t m, int64_t n, int vecs, int64_t csc)
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
		compute_tiles(t, rows, n, vecs);
		for (int64_t x = 0; x < rows; x++)
			for (int64_t y = 0; y < n; y++) {
				T *to = c + (i + x) * rsc + y * csc;

				*to = (beta != 0 ? beta * (t->add ? t->add[y] : *to) : 0) +
				      block[x * WIDE + y];
			}
	}
	t->a = a;
	t->c = c;
	t->rsc = rsc;
	t->beta = beta;
}

/* ---- blocks ---- */

struct block {
	const struct product *p;
	int64_t j0, n, p0, k; /* columns and depth of the block */
	T *panels;	      /* packed b; NULL: b is read in place */
	bool pack_a;
	bool last;	     /* no block of more depth follows */
	_Atomic bool failed; /* out of memory */
};

static void pack_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct block *k = ctx;
	const struct product *p = k->p;
	int64_t j = panel_start(k->n, begin);

	for (int64_t i = begin, n; i < end; i++, j += n) {
		int vecs = next_vecs(k->n - j);

		n = k->n - j < vecs * (int64_t)LANES ? k->n - j : vecs * (int64_t)LANES;
		pack_panel(k->panels + j * k->k,
			   (const T *)p->b + k->p0 * p->rsb + (k->j0 + j) * p->csb, p->rsb, p->csb,
			   k->k, n, vecs * (int64_t)LANES);
	}
}

/* Rows begin to end of panels `from` to `until`. */
static void compute_part(struct block *k, int64_t begin, int64_t end, int64_t from, int64_t until)
{
	int64_t j = panel_start(k->n, from), first = j; /* without the activation */
	const struct product *p = k->p;
	struct tensor_storage *s = NULL;
	struct tile t = { .a = (const T *)p->a + begin * p->rsa + k->p0 * p->csa,
			  .rsa = p->rsa,
			  .csa = p->csa,
			  .rsc = p->rsc,
			  .k = k->k,
			  .alpha = (T)p->alpha,
			  .beta = k->p0 ? 1 : (T)p->beta };

	if (k->pack_a) {
		s = storage_alloc(TENSOR_DEVICE_CPU, ((end - begin) * k->k + LANES) * sizeof(T),
				  false);
		if (!s) {
			k->failed = true;
			return;
		}
		if (t.rsa == 1)
			pack_columns(s->data, t.a, t.csa, end - begin, k->k, tile_rows[VECS]);
		else
			pack_rows(s->data, t.a, t.rsa, t.csa, end - begin, k->k, tile_rows[VECS]);
		t.a = s->data;
		t.rsa = 1;
		t.grouped = true;
	}
	for (int64_t n; from < until; from++, j += n) {
		int vecs = next_vecs(k->n - j);

		n = k->n - j < vecs * (int64_t)LANES ? k->n - j : vecs * (int64_t)LANES;
		t.b = k->panels ? k->panels + j * k->k :
				  (const T *)p->b + k->p0 * p->rsb + k->j0 + j;
		t.rsb = k->panels ? vecs * (int64_t)LANES : p->rsb;
		t.c = (T *)p->c + begin * p->rsc + (k->j0 + j) * p->csc;
		t.add = k->p0 || !p->bias ? NULL : (const T *)p->bias + k->j0 + j;
		if (p->csc == 1 || n == 1)
			compute_tiles(&t, end - begin, n, vecs);
		else
			compute_tiles_scattered(&t, end - begin, n, vecs, p->csc);
		if (k->last && (from + 1 == until || j + n - first >= FINISH_COLUMNS)) {
			product_finish(p, begin, k->j0 + first, end - begin, j + n - first);
			first = j + n;
		}
	}
	if (s)
		storage_put(s);
}

static void compute_rows(int64_t begin, int64_t end, void *ctx)
{
	struct block *k = ctx;

	compute_part(k, begin, end, 0, panel_count(k->n));
}

static void compute_panels(int64_t begin, int64_t end, void *ctx)
{
	struct block *k = ctx;

	compute_part(k, 0, k->p->m, begin, end);
}

/*
 * Rows in a chunk: CHUNK, or fewer if these keep the threads busy for less long. The sums of an element do not depend on
 * it.
 */
static int64_t chunk_rows(int64_t m)
{
	int64_t threads = tensor_get_num_threads(), best = CHUNK, least_time = INT64_MAX;

	if (threads == 1)
		return CHUNK;
	for (int64_t rows = CHUNK; rows >= CHUNK_LEAST; rows -= ROWS) {
		int64_t chunks = (m + rows - 1) / rows, last = m - (chunks - 1) * rows;
		int64_t rounds = (chunks - 1) / threads;
		int64_t time = rounds * rows + (chunks - rounds * threads == 1 ? last : rows);

		/* A chunk of fewer rows reads the panels of b more often. */
		if (time < least_time - least_time / 32) {
			least_time = time;
			best = rows;
		}
	}
	return best;
}

/* Divides the work by rows if there are more than CHUNK, else by panels. */
static void compute_block(struct block *k)
{
	int64_t work = k->p->m * WIDE * (k->k + 1), panels = panel_count(k->n);

	if (k->p->m > CHUNK)
		parallel_for(0, k->p->m, chunk_rows(k->p->m), compute_rows, k);
	else if (panels == 1)
		compute_part(k, 0, k->p->m, 0, 1);
	else
		parallel_for(0, panels, work < WORK ? WORK / work : 1, compute_panels, k);
}

#include "kernels/cpu/linalg/matmul_few_columns.h"
#include "kernels/cpu/linalg/matmul_few_rows.h"
#include "kernels/cpu/linalg/matmul_panels.h"

/* ---- dot products, for few rows of a and contiguous columns of b ---- */

/* One row of a times the LANES columns of b from column j on. */
static inline VEC dot_columns(const struct product *p, const T *a, int64_t j)
{
	const int group = LANES < 8 ? LANES : 8;
	int64_t whole = p->k / LANES * LANES;
	vec_part part = PART(p->k - whole);
	VEC sum[LANES];

#pragma GCC unroll 2
	for (int g = 0; g < LANES; g += group) {
		const T *b[8];

#pragma GCC unroll 8
		for (int i = 0; i < group; i++) {
			int64_t column = j + g + i < p->n ? j + g + i : p->n - 1;

			b[i] = (const T *)p->b + column * p->csb;
			sum[g + i] = (VEC){ 0 };
		}
		for (int64_t at = 0; at < whole; at += LANES) {
			VEC x = *(const VEC *)(a + at);
#pragma GCC unroll 8
			for (int i = 0; i < group; i++)
				sum[g + i] += x * *(const VEC *)(b[i] + at);
		}
		if (whole < p->k) {
			VEC x = LOAD(a + whole, part);
#pragma GCC unroll 8
			for (int i = 0; i < group; i++)
				sum[g + i] += x * LOAD(b[i] + whole, part);
		}
	}
	return sum_rows(sum);
}

static void dot_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct product *p = ctx;
	T alpha = (T)p->alpha, beta = (T)p->beta;

	for (int64_t j = begin; j < end; j += LANES) {
		int64_t n = end - j < LANES ? end - j : LANES;

		for (int64_t i = 0; i < p->m; i++) {
			VEC r = rounded(dot_columns(p, (const T *)p->a + i * p->rsa, j) * alpha);
			T *c = (T *)p->c + i * p->rsc + j * p->csc;

			if (p->csc == 1) {
				if (beta != 0)
					r += LOAD(added(p, c, j), PART(n)) * beta;
				STORE(c, PART(n), r);
				continue;
			}
			for (int64_t x = 0; x < n; x++) {
				T *to = c + x * p->csc;

				*to = (beta != 0 ? *added(p, to, j + x) * beta : 0) + r[x];
			}
		}
	}
	product_finish(p, 0, begin, p->m, end - begin);
}

/* Copies the rows of a first if they are not contiguous. */
static int product_by_dots(const struct product *given)
{
	struct product p = *given;
	struct tensor_storage *s = NULL;
	int64_t grain = DOT_WORK / (p.m * p.k + 1) / LANES * LANES;

	if (p.csa != 1) {
		T *row;

		s = storage_alloc(TENSOR_DEVICE_CPU, p.m * p.k * sizeof(T), false);
		if (!s)
			return -thread()->error.code;
		row = s->data;
		for (int64_t i = 0; i < p.m; i++)
			for (int64_t x = 0; x < p.k; x++)
				row[i * p.k + x] = ((const T *)p.a)[i * p.rsa + x * p.csa];
		p.a = row;
		p.rsa = p.k;
		p.csa = 1;
	}
	parallel_for(0, p.n, grain < LANES ? LANES : grain, dot_chunk, &p);
	if (s)
		storage_put(s);
	return 0;
}

/* ---- one row of a, contiguous rows of b ---- */

#define STRIP (8 * LANES) /* columns whose sums are held in registers */

#define SPAN 512 /* products in one sum: the error of longer ones grows with their length */

/* Adds n products of each column to sum, from row k of b on. */
static inline __attribute__((always_inline)) void row_span(const struct product *p, int64_t j,
							   int64_t k, int64_t n, const int vecs,
							   vec_part part, VEC *sum)
{
	const T *a = (const T *)p->a + k * p->csa, *b = (const T *)p->b + j + k * p->rsb;
	VEC span[STRIP / LANES];

#pragma GCC unroll 8
	for (int v = 0; v < vecs; v++)
		span[v] = (VEC){ 0 };
	for (; n; n--, b += p->rsb, a += p->csa) {
		VEC x = BROADCAST(*a);

#pragma GCC unroll 8
		for (int v = 0; v < vecs; v++) {
			__builtin_prefetch(b + FETCH_AHEAD * p->rsb + v * LANES);
			span[v] = MULADD(span[v], x,
					 v < vecs - 1 ? *(const VEC *)(b + v * LANES) :
							LOAD(b + v * LANES, part));
		}
	}
#pragma GCC unroll 8
	for (int v = 0; v < vecs; v++)
		sum[v] += span[v];
}

/* `vecs` vectors of c from column j on; the last one has the lanes of part. */
static inline __attribute__((always_inline)) void row_strip(const struct product *p, int64_t j,
							    const int vecs, vec_part part)
{
	const T alpha = (T)p->alpha, beta = (T)p->beta;
	T *c = (T *)p->c + j;
	VEC sum[STRIP / LANES] = { 0 };

	for (int64_t k = 0; k < p->k; k += SPAN)
		row_span(p, j, k, p->k - k < SPAN ? p->k - k : SPAN, vecs, part, sum);
#pragma GCC unroll 8
	for (int v = 0; v < vecs; v++) {
		vec_part lanes = v < vecs - 1 ? PART(LANES) : part;
		VEC r = rounded(sum[v] * alpha);

		if (beta != 0)
			r += LOAD(added(p, c, j) + v * LANES, lanes) * beta;
		STORE(c + v * LANES, lanes, r);
	}
}

static void row_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct product *p = ctx;
	int64_t j = begin;

	for (; j + STRIP <= end; j += STRIP)
		row_strip(p, j, STRIP / LANES, PART(LANES));
	if (j + 4 * LANES <= end) {
		row_strip(p, j, 4, PART(LANES));
		j += 4 * LANES;
	}
	for (; j < end; j += LANES)
		row_strip(p, j, 1, PART(end - j < LANES ? end - j : LANES));
	product_finish(p, 0, begin, 1, end - begin);
}

static int product_by_row(const struct product *p)
{
	int64_t grain = DOT_WORK / (p->k + 1) / STRIP * STRIP;

	parallel_for(0, p->n, grain < STRIP ? STRIP : grain, row_chunk, (void *)p);
	return 0;
}

/* ---- selection of the algorithm ---- */

int CPU_NAME(MATMUL)(const struct product *p)
{
	struct block k = { .p = p };
	struct tensor_storage *s = NULL;
	bool packed = p->csb != 1 && p->n != 1;

	if (packed && p->rsb == 1 && p->m <= DOT_ROWS)
		return product_by_dots(p);
	if (p->k >= FEW_DEPTH && suits_few_rows(p))
		return product_by_few_rows(p);
	if (p->m == 1 && p->csb == 1 && p->csc == 1 && p->n >= STRIP)
		return product_by_row(p);
	if (p->k >= FEW_DEPTH && suits_few_columns(p))
		return product_by_few_columns(p);
	if (suits_panels(p))
		return product_by_panels(p);
	if (p->m > CHUNK && p->k * p->n >= PACK_SIZE) {
		packed = true;
		k.pack_a = p->csc == 1;
	}
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
		for (int64_t i = 0, blocks = depth_blocks(p->k); i < blocks; i++) {
			k.k = depth_start(p->k, blocks, i + 1) - k.p0;
			k.last = i + 1 == blocks;
			if (packed)
				parallel_for(0, panel_count(k.n), PACK_CHUNK, pack_chunk, &k);
			compute_block(&k);
			k.p0 += k.k;
		}
	}
	if (s)
		storage_put(s);
	return k.failed ? tensor_fail(ENOMEM, "mm: no memory for a block") : 0;
}
