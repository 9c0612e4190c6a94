/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Convolution as a matrix product (implicit GEMM): rows of weights times columns of the elements
 * that the taps of a position read. The matrix of columns is not stored: a panel of it, as wide as
 * a tile and DEPTH deep, is gathered into the L1 cache and used by all rows of a block. Weights are
 * packed once in a call.
 *
 * Packing costs as much as the product with a few columns: up to FEW_COLUMNS, weights are read in
 * place. Up to SOME_COLUMNS, threads get smaller blocks of rows, and if there are several, the
 * matrix of columns is gathered once and stored.
 *
 * Columns are the positions of all images. A panel whose columns are contiguous in the output is
 * computed there, any other in a block that is scattered afterwards.
 *
 * Units of bf16 are multiplied by tiles (tiles_pairs.h) where the processor has them and the weights
 * are packed: in blocks of whole tiles, whose rest is zero.
 */
#ifndef TENSOR_CONV_IMPLICIT_GEMM_H
#define TENSOR_CONV_IMPLICIT_GEMM_H

#define DEPTH	     128
#define BLOCK_ROWS   256 /* rows of weights in a block */
#define PANELS	     4	 /* panels in a task, 1 if there would be less than FEW_TASKS */
#define FEW_TASKS    16
#define GEMM_WORK    (1 << 18)	/* the least number of multiplications in a chunk */
#define FEW_COLUMNS  (2 * WIDE) /* columns up to which weights are not packed */
#define SOME_COLUMNS (4 * WIDE)
#define FEW_ROWS     64	   /* rows of weights in a block up to SOME_COLUMNS */
#define PACK_WORK    16384 /* weights packed in a chunk, and elements gathered */

#include "kernels/cpu/nn/conv/conv_panel.h"

/* ---- weights ---- */

struct gemm_plan {
	const struct conv_gemm *c;
	T *weight;	 /* packed, by group, block of rows, block of depth; NULL: read in place */
	T *gathered;	 /* by group, block of depth, panel; NULL: each task gathers its panels */
	int64_t pitch;	 /* between blocks of rows */
	int64_t columns; /* of all images */
	int64_t width;	 /* columns as whole vectors */
	int64_t rows;	 /* of weights in a block */
	int64_t depth;	 /* of all blocks of a panel, as stored */
	enum tile_mode tiles;
	int64_t blocks; /* of rows */
	int64_t parts;	/* blocks of depth */
	int64_t panels; /* in a chunk */
	int64_t chunks; /* of columns */
	int64_t row_offset[FEW_ROWS];
	_Atomic bool failed;
};

/* The number of leading offsets that ascend and are less than a vector apart. */
static int64_t close_offsets(const int64_t *offset, int64_t k)
{
	int64_t n = 1;

	while (n < k && offset[n] > offset[n - 1] && offset[n] - offset[0] < LANES)
		n++;
	return n;
}

#ifdef STORE_HALVES
/* Packs n taps of two groups of LANES / 2 rows by one transposition; see close_offsets(). */
static void pack_taps(T *to, T *other, const T *w, int64_t row, const int64_t *offset, int64_t n)
{
	vec_part part = PART(offset[n - 1] - offset[0] + 1);
	VEC line[LANES];

#pragma GCC unroll 16
	for (int i = 0; i < LANES; i++)
		line[i] = LOAD(w + offset[0] + i * row, part);
	transpose_lanes(line);
	for (int64_t i = 0; i < n; i++, to += LANES / 2, other += LANES / 2)
		STORE_HALVES(to, other, line[offset[i] - offset[0]]);
}
#endif

/*
 * Packs m rows of k weights at any offsets, in the groups of compute_tiles(). All rows of a few
 * taps are packed before the next taps: with offsets, the weights of a channel are contiguous.
 */
static void pack_weights(T *to, const T *w, int64_t row, const int64_t *offset, int64_t m,
			 int64_t k)
{
	int64_t count = (m + tile_rows[VECS] - 1) / tile_rows[VECS];

	for (int64_t d = 0, n; d < k; d += n, offset += n) {
		int64_t left = m;
		const T *from = w;
		T *at = to;

		n = close_offsets(offset, k - d);
		for (int64_t i = 0, rows; i < count; i++, left -= rows, at += rows * k) {
			rows = left / (count - i);
#ifdef STORE_HALVES
			if (n > 1 && 2 * rows == LANES && i + 1 < count &&
			    (left - rows) / (count - i - 1) == rows) {
				pack_taps(at + d * rows, at + rows * k + d * rows, from, row,
					  offset, n);
				from += LANES * row;
				rows *= 2;
				i++;
				continue;
			}
#endif
			for (int64_t x = 0; x < rows; x++, from += row)
				for (int64_t y = 0; y < n; y++)
					at[(d + y) * rows + x] = from[offset[y]];
		}
	}
}

#define PACK_AT_ONCE 8 /* columns of adjacent rows */

/* Packs m adjacent rows of k weights at any offsets, in the groups of compute_tiles(). */
static void pack_adjacent(T *to, const T *w, const int64_t *offset, int64_t m, int64_t k)
{
	const int most = tile_rows[VECS];
	int64_t count = (m + most - 1) / most;

	for (int64_t d = 0; d < k; d += PACK_AT_ONCE) {
		int64_t end = min64(k, d + PACK_AT_ONCE), left = m;
		const T *from = w;
		T *at = to;

		for (int64_t i = 0, rows; i < count;
		     i++, left -= rows, from += rows, at += rows * k) {
			rows = left / (count - i);
			for (int64_t x = d; x < end; x++)
				if (rows == most)
					memcpy(at + x * most, from + offset[x], most * sizeof(T));
				else
					for (int64_t r = 0; r < rows; r++)
						at[x * rows + r] = from[offset[x] + r];
		}
	}
}

/* The depth of a block of k, as stored, and the units of its m packed rows: a vector may be written beyond them. */
static int64_t stored_depth(const struct gemm_plan *s, int64_t k)
{
	return s->tiles ? whole_tiles(k) : k;
}

static int64_t stored_units(const struct gemm_plan *s, int64_t m, int64_t k)
{
	return s->tiles ? whole_tiles(m) * (whole_tiles(k) + TILE_PAD) : m * k + LANES;
}

/* Packs m rows of k weights for tiles. offset: of the weights, or NULL, for adjacent ones. */
static void pack_tile_weights(T *to, const T *w, int64_t row, const int64_t *offset, int64_t m,
			      int64_t k)
{
	int64_t pitch = whole_tiles(k) + TILE_PAD;

	for (int64_t i = 0; i < m; i++, to += pitch, w += row) {
		if (!offset)
			memcpy(to, w, k * sizeof(T));
		else
			for (int64_t d = 0; d < k; d++)
				to[d] = w[offset[d]];
		memset(to + k, 0, (pitch - k) * sizeof(T));
	}
	memset(to, 0, (whole_tiles(m) - m) * pitch * sizeof(T));
}

/* Blocks of depth begin to end, of all blocks of rows. */
static void pack_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct gemm_plan *s = ctx;
	const struct conv_gemm *c = s->c;

	for (int64_t i = begin; i < end; i++) {
		int64_t block = i / s->parts, part = i % s->parts, p = part * DEPTH;
		int64_t group = block / s->blocks, row = block % s->blocks * s->rows;
		int64_t m = min64(c->rows - row, s->rows), k = min64(c->depth - p, DEPTH);
		const T *w = (const T *)c->weight + group * c->weight_group + row * c->weight_row;
		T *to = s->weight + block * s->pitch + part * stored_units(s, m, DEPTH);
		const int64_t *offset = c->weight_offset ? c->weight_offset + p : NULL;

		if (s->tiles)
			pack_tile_weights(to, offset ? w : w + p, c->weight_row, offset, m, k);
		else if (offset && c->weight_row == 1)
			pack_adjacent(to, w, offset, m, k);
		else if (offset)
			pack_weights(to, w, c->weight_row, offset, m, k);
		else
			pack_rows(to, w + p, c->weight_row, 1, m, k, tile_rows[VECS]);
	}
}

/* ---- columns ---- */

/* panel_gather() and, for tiles, rows of zeros up to the depth of a block as stored. */
static void gather_block(const struct gemm_plan *s, T *to, const struct panel *p, const T *src,
			 const int64_t *offset, int64_t k)
{
	int64_t row = p->vecs * (int64_t)LANES;

	panel_gather(to, p, src, offset, k);
	memset(to + k * row, 0, (stored_depth(s, k) - k) * row * sizeof(T));
}

/* Blocks of depth begin to end, of all groups. */
static void gather_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct gemm_plan *s = ctx;
	const struct conv_gemm *c = s->c;
	struct panel panel;

	for (int64_t j = 0; j < s->columns; j += WIDE) {
		panel_set(&panel, c, j, min64(s->columns - j, WIDE));
		for (int64_t i = begin; i < end; i++) {
			int64_t group = i / s->parts, p = i % s->parts * DEPTH;
			int64_t k = min64(c->depth - p, DEPTH);

			gather_block(s,
				     s->gathered + (group * s->depth + p) * s->width +
					     j * stored_depth(s, k),
				     &panel, (const T *)c->src.data + group * c->src.group,
				     c->src.offset + p, k);
		}
	}
}

/* ---- sums ---- */

/* A block of rows of a group. */
struct gemm_rows {
	int64_t group, m;
	const T *src;
	const int64_t *position; /* offsets in the weights, which are read in place, or NULL */
	T *gathered;		 /* DEPTH * WIDE elements */
	T *model;		 /* of tiles.h */
};

/* gemm_panel() by tiles. Sums are in a block of whole tiles, which begins with the bias. */
static void sum_tiles(const struct gemm_plan *s, const struct gemm_rows *r, const struct tile *t)
{
	struct tile_block block = { .a = t->a,
				    .b = t->b,
				    .sums = t->c,
				    .pitch = stored_depth(s, t->k) + TILE_PAD,
				    .width = t->rsb,
				    .row = t->rsc,
				    .depth = stored_depth(s, t->k),
				    .add = t->beta != 0 || t->bias };

	if (t->beta == 0 && t->bias)
		for (int64_t i = 0; i < whole_tiles(r->m); i++) {
			T bias = t->bias[min64(i, r->m - 1)];

			for (int64_t j = 0; j < t->rsb; j += LANES)
				*(VEC *)(t->c + i * t->rsc + j) = bias - (VEC){ 0 };
		}
	compute_tile_rows(&block, r->m, r->model);
}

/* Adds the products of rows p to p + t->k of panel i to t->c. */
static void gemm_panel(const struct gemm_plan *s, const struct gemm_rows *r, struct tile *t,
		       const struct panel *q, int64_t i, int64_t p)
{
	const struct conv_gemm *c = s->c;
	const int64_t *offset = c->src.offset + p;
	int64_t m = r->m, first;

	t->rsb = q->vecs * (int64_t)LANES;
	t->b = r->gathered;
	if (s->gathered) {
		t->b = s->gathered + (r->group * s->depth + p) * s->width +
		       i * WIDE * stored_depth(s, t->k);
	} else if (t->grouped && !s->tiles && panel_gathers_first(q)) {
		struct tile rest = *t;

		first = gather_first_tile(t, &(struct gather){ q, r->src, offset, r->gathered }, m);
		rest.a += first * t->k;
		rest.bias = t->bias ? t->bias + first : NULL;
		rest.c += first * t->rsc;
		if (m > first)
			compute_tiles(&rest, m - first, t->rsb, q->vecs);
		return;
	} else {
		gather_block(s, r->gathered, q, r->src, offset, t->k);
	}
	if (s->tiles)
		sum_tiles(s, r, t);
	else if (r->position)
		compute_offset_tiles(&(struct offset_tile){ .t = *t,
							    .offset = s->row_offset,
							    .position = r->position + p },
				     m, q->vecs);
	else
		compute_tiles(t, m, q->direct ? q->n : t->rsb, q->vecs);
}

/*
 * Panels `from` to `until` of a group, the block of rows from `row`. r has the memory.
 */
static void gemm_block(const struct gemm_plan *s, struct panel *panel, struct gemm_rows r,
		       int64_t group, int64_t row, int64_t from, int64_t until)
{
	const struct conv_gemm *c = s->c;
	T *out = (T *)c->out + group * c->out_group + row * c->out_row;
	struct tile t = { .a = s->weight ?
				       s->weight + (group * s->blocks + row / s->rows) * s->pitch :
				       (const T *)c->weight + group * c->weight_group +
					       row * c->weight_row,
			  .rsa = s->weight ? 1 : c->weight_row,
			  .csa = 1,
			  .alpha = 1,
			  .bias = c->bias ? (const T *)c->bias + group * c->rows + row : NULL,
			  .grouped = s->weight };
	int64_t p = 0;

	r.group = group;
	r.m = min64(c->rows - row, s->rows);
	r.src = (const T *)c->src.data + group * c->src.group;
	r.position = s->weight ? NULL : c->weight_offset;
	for (int64_t i = from; i < until; i++) {
		panel_set(&panel[i - from], c, i * WIDE, min64(s->columns - i * WIDE, WIDE));
		panel[i - from].direct &= !r.position && !s->tiles;
	}
	do {
		t.k = min64(c->depth - p, DEPTH);
		t.beta = p ? 1 : 0;
		for (int64_t i = from; i < until; i++) {
			struct panel *q = &panel[i - from];

			t.c = q->direct ? out + q->run[0].out : q->block;
			t.rsc = q->direct ? c->out_row : WIDE;
			gemm_panel(s, &r, &t, q, i, p);
		}
		t.a += s->weight ? stored_units(s, r.m, t.k) : r.position ? 0 : t.k;
		p += t.k;
	} while (p < c->depth);
	for (int64_t i = from; i < until; i++)
		if (!panel[i - from].direct)
			panel_scatter(&panel[i - from], out, c->out_row, r.m);
}

static void gemm_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct gemm_plan *s = ctx;
	int64_t panels = (s->columns + WIDE - 1) / WIDE;
	int64_t depth = min64(s->depth, DEPTH), rows = min64(s->c->rows, s->rows);
	int64_t stored_rows = s->tiles ? whole_tiles(rows) : rows;
	size_t floats = (depth + s->panels * stored_rows) * WIDE;
	struct gemm_rows r = { 0 };
	struct tensor_storage *mem;
	struct panel *panel;

	if (s->tiles == TILES_MODEL)
		floats += MODEL_UNITS;
	mem = storage_alloc(TENSOR_DEVICE_CPU, s->panels * sizeof(*panel) + floats * sizeof(T),
			    false);
	if (!mem) {
		s->failed = true;
		return;
	}
	r.gathered = mem->data;
	r.model = s->tiles == TILES_MODEL ? r.gathered + floats - MODEL_UNITS : NULL;
	panel = (struct panel *)(r.gathered + floats);
	for (int64_t i = 0; i < s->panels; i++)
		panel[i].block = r.gathered + (depth + i * stored_rows) * WIDE;
	if (s->tiles)
		tiles_begin(r.model);
	for (int64_t i = begin; i < end; i++) {
		int64_t group = i / (s->blocks * s->chunks), rest = i % (s->blocks * s->chunks);
		int64_t from = rest % s->chunks * s->panels;

		gemm_block(s, panel, r, group, rest / s->chunks * s->rows, from,
			   min64(from + s->panels, panels));
	}
	if (s->tiles)
		tiles_end(r.model);
	storage_put(mem);
}

static void divide_columns(struct gemm_plan *s)
{
	const struct conv_gemm *c = s->c;

	s->width = (s->columns + LANES - 1) / LANES * LANES;
	s->rows = min64(c->rows, s->columns <= SOME_COLUMNS ? FEW_ROWS : BLOCK_ROWS);
	s->blocks = (c->rows + s->rows - 1) / s->rows;
	s->tiles = s->columns > FEW_COLUMNS ? tiles_for(c->rows) : TILES_NONE;
	s->depth = stored_depth(s, c->depth);
	s->parts = (c->depth + DEPTH - 1) / DEPTH;
	s->pitch = s->parts * stored_units(s, s->rows, DEPTH);
	s->panels = PANELS;
	s->chunks = (s->columns + PANELS * WIDE - 1) / (PANELS * WIDE);
	if (c->groups * s->blocks * s->chunks < FEW_TASKS) {
		s->panels = 1;
		s->chunks = (s->columns + WIDE - 1) / WIDE;
	}
	for (int64_t i = 0; i < min64(s->rows, FEW_ROWS); i++)
		s->row_offset[i] = i * c->weight_row;
}

/* Packs the weights and gathers the columns, each only if tasks share it. */
static int gemm_prepare(struct gemm_plan *s, struct tensor_storage **mem)
{
	const struct conv_gemm *c = s->c;
	bool gather = s->columns <= SOME_COLUMNS && s->blocks > 1, pack = s->columns > FEW_COLUMNS;
	int64_t packed = pack ? c->groups * s->blocks * s->pitch : 0;
	int64_t gathered = gather ? c->groups * s->depth * s->width : 0;
	int64_t work = s->rows * min64(c->depth, DEPTH) + 1;

	*mem = NULL;
	if (!gather && !pack)
		return 0;
	*mem = storage_alloc(TENSOR_DEVICE_CPU, (packed + gathered) * sizeof(T), false);
	if (!*mem)
		return -thread()->error.code;
	if (pack) {
		s->weight = (*mem)->data;
		parallel_for(0, c->groups * s->blocks * s->parts,
			     work < PACK_WORK ? PACK_WORK / work : 1, pack_chunk, s);
	}
	if (gather) {
		s->gathered = (T *)(*mem)->data + packed;
		work = DEPTH * s->width;
		parallel_for(0, c->groups * s->parts, work < PACK_WORK ? PACK_WORK / work : 1,
			     gather_chunk, s);
	}
	return 0;
}

int CONV(conv_implicit_gemm)(const struct conv_gemm *given)
{
	struct conv_gemm c = *given;
	struct gemm_plan s = { .c = &c };
	struct tensor_storage *mem;
	int64_t work;

	conv_fold(c.grid, c.src.step, c.out_step);
	s.columns = c.batch * c.grid[0] * c.grid[1] * c.grid[2];
	if (!s.columns || !c.rows || !c.groups)
		return 0;
#ifndef NO_DEPTHWISE
	if (conv_is_depthwise(c.rows, c.depth, c.groups))
		return depth_sum(&c);
#endif
	divide_columns(&s);
	if (gemm_prepare(&s, &mem) < 0)
		return -thread()->error.code;
	work = (s.rows * c.depth + 1) * min64(s.columns, s.panels * WIDE);
	parallel_for(0, c.groups * s.blocks * s.chunks, work < GEMM_WORK ? GEMM_WORK / work : 1,
		     gemm_chunk, &s);
	if (mem)
		storage_put(mem);
	return s.failed ? tensor_fail(ENOMEM, "convolution: no memory for a block") : 0;
}

#endif
