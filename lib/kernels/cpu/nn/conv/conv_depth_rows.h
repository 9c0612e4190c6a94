/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Depthwise convolutions of planes that have a border, read without a copy: parts of vectors are loaded from the
 * tensor, and rows outside of it are a row of zeros. conv_depth_rows_loops.h has the loops, for each width of
 * vectors.
 *
 * Taps form chains of the same column, whose rows follow each other: a row is loaded once for all of them.
 */
#ifndef TENSOR_CONV_DEPTH_ROWS_H
#define TENSOR_CONV_DEPTH_ROWS_H

#define ROWS_STRIDE  2 /* the greatest stride */
#define MANY_LINES   7 /* of a block; planes of networks have multiples of 7 */
#define SOME_LINES   4
#define MANY_COLUMNS 3 /* chains of the same rows that are added together */

/* Tap t of a chain reads element (y + t + stride * line, x + stride * position) of a channel. */
struct row_chain {
	int64_t channel, y, x;
	int taps;
	int columns; /* MANY_COLUMNS: this chain and those after it read the same rows; else 1 */
};

struct row_plan {
	int chains, lines; /* lines: of a block of output */
	int64_t stride, height, width, positions, channels;
	int64_t low, rows; /* rows low .. low + rows of a channel are read */
	int64_t lanes;	   /* of a vector */
	int64_t blocks;	   /* vectors of a line of positions */
	struct row_chain chain[DEPTH_TAPS];
	int tap[DEPTH_TAPS]; /* chain by chain: the index of the tap */
};

/* The memory of a task: lanes that are read, for each block of positions, chain and part of the stride; rows. */
struct row_memory {
	struct tensor_storage *mem;
	vec_part *part;
	const T **row;
	T *zeros;
};

/* The element of the tensor that a tap reads for position (0, 0), as a chain of one tap. */
static struct row_chain rows_tap(const struct conv_copy *copy, int64_t offset)
{
	const struct conv_axis *y = copy->axis + 1, *x = copy->axis + 2;
	int64_t block = y->extent * x->extent, at = offset % copy->pitch, phase = at / block;

	at %= block;
	return (struct row_chain){
		.channel = offset / copy->pitch,
		.y = y->first + y->phase[phase / x->phases] + y->stride * (at / x->extent),
		.x = x->first + x->phase[phase % x->phases] + x->stride * (at % x->extent),
		.taps = 1,
		.columns = 1,
	};
}

/* The unused tap that reads the element `by` rows below that of d, or -1. */
static int tap_below(const struct row_chain *tap, const bool *used, int64_t depth, int d, int by)
{
	for (int i = 0; i < depth; i++)
		if (!used[i] && tap[i].channel == tap[d].channel && tap[i].x == tap[d].x &&
		    tap[i].y == tap[d].y + by)
			return i;
	return -1;
}

/* The number of taps of a chain that there is a loop for, not above n. */
static int chain_taps(int n)
{
	return n >= 7 ? 7 : n >= 5 ? 5 : n >= 3 ? 3 : n;
}

static void row_chains(struct row_plan *p, const struct row_chain *tap, int64_t depth)
{
	bool used[DEPTH_TAPS] = { false };
	int column[DEPTH_TAPS];

	p->chains = 0;
	for (int n = 0; n < depth;) {
		int d = 0, above, length = 0, taps;

		while (used[d])
			d++;
		while ((above = tap_below(tap, used, depth, d, -1)) >= 0)
			d = above;
		for (int k = d; k >= 0; k = tap_below(tap, used, depth, k, 1))
			column[length++] = k;
		taps = chain_taps(length);
		p->chain[p->chains] = tap[d];
		p->chain[p->chains++].taps = taps;
		for (int k = 0; k < taps; k++) {
			used[column[k]] = true;
			p->tap[n++] = column[k];
		}
	}
}

/* Finds chains of 3 or 5 taps that read the same rows. */
static void row_columns(struct row_plan *p)
{
	for (int k = 0; k + MANY_COLUMNS <= p->chains; k += p->chain[k].columns) {
		const struct row_chain *a = &p->chain[k];
		bool same = a->taps == 3 || a->taps == 5;

		for (const struct row_chain *b = a + 1; b < a + MANY_COLUMNS; b++)
			same = same && b->taps == a->taps && b->y == a->y &&
			       b->channel == a->channel;
		if (same)
			p->chain[k].columns = MANY_COLUMNS;
	}
}

/* Sets p; false if the source is read in place, or not by planes with the same small stride. */
static bool rows_plan(struct row_plan *p, const struct conv_source *src, const int64_t *grid,
		      int64_t depth)
{
	const struct conv_copy *copy = src->copy;
	struct row_chain tap[DEPTH_TAPS];
	int64_t high = INT64_MIN;

	if (!ROWS_LANES || !copy || grid[0] != 1 || copy->axis[0].size != 1 ||
	    copy->axis[0].extent != 1 || copy->axis[0].phases != 1 ||
	    copy->axis[0].first + copy->axis[0].phase[0] != 0 || grid[1] < SOME_LINES ||
	    copy->axis[1].stride != copy->axis[2].stride || copy->axis[1].stride > ROWS_STRIDE)
		return false;
	p->stride = copy->axis[1].stride;
	p->height = copy->axis[1].size;
	p->width = copy->axis[2].size;
	p->positions = grid[2];
	p->channels = src->group / copy->pitch;
	p->low = INT64_MAX;
	for (int d = 0; d < depth; d++) {
		tap[d] = rows_tap(copy, src->offset[d]);
		p->low = min64(p->low, tap[d].y);
		high = tap[d].y > high ? tap[d].y : high;
	}
	p->rows = high - p->low + p->stride * (grid[1] - 1) + 1;
	p->lines = grid[1] >= MANY_LINES &&
				   (grid[1] + MANY_LINES - 1) / MANY_LINES * MANY_LINES <=
					   (grid[1] + SOME_LINES - 1) / SOME_LINES * SOME_LINES ?
			   MANY_LINES :
			   SOME_LINES;
	p->lanes = grid[2] <= ROWS_FEW ? ROWS_FEW : ROWS_LANES;
	p->blocks = p->lanes ? (grid[2] + p->lanes - 1) / p->lanes : 0;
	row_chains(p, tap, depth);
	row_columns(p);
	return true;
}

/* The lanes of vector `at`.. of a row that are inside of it, at most `most` elements from `first` on. */
static vec_part row_part(const struct row_plan *p, int64_t first, int64_t at, int64_t most)
{
	int64_t from = first < 0 ? -first : 0, until = min64(p->width - first, most);

	from = min64(from > at ? from - at : 0, p->lanes);
	until = min64(until > at ? until - at : 0, p->lanes);
	return PART_OF((int)from, (int)(until < from ? from : until));
}

static int row_memory_begin(struct row_memory *m, const struct row_plan *p)
{
	int64_t parts = p->blocks * p->chains * p->stride, n = 0;
	int64_t part_size = (parts * sizeof(vec_part) + 7) / 8 * 8;
	int64_t row_size = p->channels * p->rows * sizeof(*m->row);

	m->mem = storage_alloc(TENSOR_DEVICE_CPU, part_size + row_size + p->width * sizeof(T),
			       false);
	if (!m->mem)
		return -thread()->error.code;
	m->part = m->mem->data;
	m->row = (const T **)((char *)m->mem->data + part_size);
	m->zeros = (T *)((char *)m->row + row_size);
	memset(m->zeros, 0, p->width * sizeof(T));
	for (int64_t b = 0; b < p->blocks; b++) {
		int64_t x = b * p->lanes, count = min64(p->positions - x, p->lanes);

		for (int k = 0; k < p->chains; k++)
			for (int64_t s = 0; s < p->stride; s++)
				m->part[n++] = row_part(p, p->chain[k].x + x * p->stride,
							s * p->lanes, (count - 1) * p->stride + 1);
	}
	return 0;
}

/* Sets the rows of the channels of a group of an image. */
static void row_memory_set(struct row_memory *m, const struct row_plan *p, const T *group)
{
	const T **row = m->row;

	for (int64_t c = 0; c < p->channels; c++, group += p->height * p->width)
		for (int64_t y = p->low; y < p->low + p->rows; y++)
			*row++ = y >= 0 && y < p->height ? group + y * p->width : m->zeros;
}

/* The group of an image in the tensor that the source is a copy of. */
static const T *rows_group(const struct row_plan *p, const struct conv_source *src, int64_t groups,
			   int64_t image, int64_t group)
{
	return (const T *)src->copy->in +
	       (image * groups + group) * p->channels * p->height * p->width;
}

#if ROWS_LANES
#define RV	   VEC
#define R_LANES	   LANES
#define R_LOAD	   LOAD
#define R_STORE	   STORE
#define R_INDEX	   ROWS_INDEX
#define R_MASK	   MASK
#define R_WIDTH(f) f##_wide
#include "kernels/cpu/nn/conv/conv_depth_rows_loops.h"
#if ROWS_FEW != ROWS_LANES
#define RV	   vec_f32_half
#define R_LANES	   VEC_HALF
#define R_LOAD	   vec_load_f32_half
#define R_STORE	   vec_store_f32_half
#define R_INDEX	   ((vec_s32_half){ 0, 1, 2, 3, 4, 5, 6, 7 })
#define R_MASK	   vec_s32_half
#define R_WIDTH(f) f##_half
#include "kernels/cpu/nn/conv/conv_depth_rows_loops.h"
#endif
#endif

static void rows_sum(const struct conv_gemm *c, const struct row_plan *p,
		     const struct row_memory *m, T *out, const T *w, T bias)
{
#if ROWS_FEW != ROWS_LANES
	if (p->lanes == ROWS_FEW) {
		rows_plane_half(c, p, m, out, w, bias);
		return;
	}
#endif
#if ROWS_LANES
	rows_plane_wide(c, p, m, out, w, bias);
#endif
}

static void rows_weight(const struct conv_wgrad *c, const struct row_plan *p, struct row_memory *m,
			int64_t channel, T *sum)
{
#if ROWS_FEW != ROWS_LANES
	if (p->lanes == ROWS_FEW) {
		rows_gradient_half(c, p, m, channel, sum);
		return;
	}
#endif
#if ROWS_LANES
	rows_gradient_wide(c, p, m, channel, sum);
#endif
}

#endif
