/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Convolutions of 3 by 3 taps with fewer multiplications, by tiles of 2 by 2 positions: Winograd's
 * minimal filtering F(2, 3) along both axes (S. Winograd, Arithmetic Complexity of Computations,
 * 1980) takes 16 products instead of 36. With stride 2 the even taps are F(2, 2) and the odd tap is
 * separate: 25 products. Input, weights and sums are transformed along one axis after the other;
 * each of the products is a matrix product over channels.
 *
 * An infinity would make NaN of other results in its tile: if a result is not finite, the caller
 * computes all of them again by conv_implicit_gemm.h.
 */
#ifndef TENSOR_CONV_WINOGRAD_H
#define TENSOR_CONV_WINOGRAD_H

#define TILE_ROWS     64 /* rows of weights in a block */
#define FEW_PANELS    4	 /* for each thread, below which blocks of rows are tasks of their own */
#define FEW_MOST      16 /* and for all threads */
#define FEW_BLOCKS    16 /* tasks below which blocks have FEW_TILE_ROWS */
#define FEW_TILE_ROWS 32
#define SOME_CHANNELS 16 /* channels of the source transformed by a task */
#define APART	      16 /* padding between the products: they would use the same sets of the cache */
#define SUMS_PITCH    (TILE_ROWS * WIDE + APART)
#define ROUND_BYTES   (9 << 20) /* of transformed weights at a time */

#include "kernels/cpu/nn/conv/conv_winograd_weights.h"

struct winograd {
	const struct conv_winograd *c;
	struct conv_gemm grid;	      /* the grid of tiles, for struct panel */
	int points;		      /* products along an axis */
	int64_t tiles, panels, width; /* width: tiles of a panel */
	int64_t rows;		      /* in a block of rows */
	int64_t from, count;	      /* blocks of rows of this round */
	int64_t pitch;		      /* between blocks of weights */
	T *weight; /* transformed, by group, block of rows, product; NULL: each task transforms its own */
	int64_t input_size; /* of a transformed panel */
	T *input;	    /* transformed, by group, panel; NULL: each task transforms its own */
	_Atomic bool failed, infinite;
};

/* ---- transforms along one axis; elements are `step` apart ---- */

static inline __attribute__((always_inline)) void transform_input(VEC *x, const int step,
								  const int points)
{
	VEC a = x[0], b = x[step], c = x[2 * step], d = x[3 * step];

	if (points == 4) {
		x[0] = a - c;
		x[step] = b + c;
		x[2 * step] = c - b;
		x[3 * step] = b - d;
	} else {
		x[0] = a - c;
		x[step] = c;
		x[2 * step] = c - x[4 * step];
		x[3 * step] = b;
		x[4 * step] = d;
	}
}

static inline __attribute__((always_inline)) void transform_sums(VEC *y, const VEC *m,
								 const int step, const int points)
{
	if (points == 4) {
		y[0] = m[0] + m[step] + m[2 * step];
		y[1] = m[step] - m[2 * step] - m[3 * step];
	} else {
		y[0] = m[0] + m[step] + m[3 * step];
		y[1] = m[step] - m[2 * step] + m[4 * step];
	}
}

/* ---- weights ---- */

/* Block b of this round, of all groups. */
static void weight_block(const struct winograd *s, T *to, int64_t b)
{
	const struct conv_winograd *c = s->c;
	int64_t group = b / s->count, row = (s->from + b % s->count) * s->rows;
	int64_t m = min64(c->rows - row, s->rows), pitch = m * c->channels + APART;
	const T *w = (const T *)c->weight + group * c->weight_group + row * c->weight_row;

	for (int64_t first = 0; first < c->channels; first += DEPTH)
		to = weight_groups(c, s->points, to, w + first * c->weight_channel, m, pitch,
				   min64(c->channels - first, DEPTH));
}

static void weight_blocks(int64_t begin, int64_t end, void *ctx)
{
	const struct winograd *s = ctx;

	for (int64_t b = begin; b < end; b++)
		weight_block(s, s->weight + b * s->pitch, b);
}

/* ---- input ---- */

/*
 * Transforms channels `from` to `until` of a panel of tiles: a row of the panel for each product
 * and channel.
 */
static inline __attribute__((always_inline)) void input_channels(const struct winograd *s, T *to,
								 const struct panel *p,
								 const T *src, int64_t from,
								 int64_t until, const int points)
{
	const struct conv_winograd *c = s->c;
	int64_t width = p->vecs * (int64_t)LANES, pitch = c->channels * width + APART;

	src += from * c->src_channel;
	for (int64_t k = from; k < until; k++, src += c->src_channel)
		for (int v = 0; v < p->vecs; v++) {
			VEC x[MOST_POINTS * MOST_POINTS];

			for (int i = 0; i < points * points; i++)
				x[i] = panel_vector(p, v, src + c->src.offset[i]);
#pragma GCC unroll 5
			for (int i = 0; i < points; i++)
				transform_input(x + i, points, points);
#pragma GCC unroll 5
			for (int i = 0; i < points; i++)
				transform_input(x + i * points, 1, points);
#pragma GCC unroll 25
			for (int i = 0; i < points * points; i++)
				*(VEC *)(to + i * pitch + k * width + v * LANES) = x[i];
		}
}

static void input_panel(const struct winograd *s, T *to, const struct panel *p, int64_t group,
			int64_t from, int64_t until)
{
	const T *src = (const T *)s->c->src.data + group * s->c->src.group;

	if (s->points == 4)
		input_channels(s, to, p, src, from, until, 4);
	else
		input_channels(s, to, p, src, from, until, 5);
}

static void panel_of_tiles(const struct winograd *s, struct panel *p, int64_t index)
{
	panel_set(p, &s->grid, index * s->width, min64(s->tiles - index * s->width, s->width));
}

/* Some channels of a panel of s->input. */
static void input_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct winograd *s = ctx;
	int64_t parts = (s->c->channels + SOME_CHANNELS - 1) / SOME_CHANNELS;
	struct panel p;

	for (int64_t i = begin; i < end; i++) {
		int64_t panel = i / parts, from = i % parts * SOME_CHANNELS;

		panel_of_tiles(s, &p, panel % s->panels);
		input_panel(s, s->input + panel * s->input_size, &p, panel / s->panels, from,
			    min64(s->c->channels, from + SOME_CHANNELS));
	}
}

/* ---- results ---- */

/* Adjacent tiles in the output: `columns` columns of one or two rows, cut at the edges. */
struct tile_run {
	int64_t from, columns, out;
	int rows;
};

static int tile_runs(const struct winograd *s, const struct panel *p, int64_t column,
		     struct tile_run *run)
{
	const struct conv_winograd *c = s->c;
	struct conv_walk w = conv_walk_from(s->grid.grid, column);

	for (int r = 0; r < p->runs; r++) {
		const struct panel_run *q = &p->run[r];

		run[r] = (struct tile_run){ .from = 2 * q->from,
					    .out = q->out,
					    .columns = min64(2 * q->n, c->size[1] - 2 * w.at[2]),
					    .rows = (int)min64(2, c->size[0] - 2 * w.at[1]) };
		conv_walk_on(&w, q->n);
	}
	return p->runs;
}

/*
 * Transforms the sums of one row, whose products are `pitch` apart, to two lines of positions.
 * Returns a vector that is not zero if a result is not finite.
 */
static inline __attribute__((always_inline)) VEC output_row(T *line, const T *sum, int64_t pitch,
							    int vecs, T bias, const int points)
{
	VEC check = { 0 };

	for (int v = 0; v < vecs; v++, sum += LANES, line += 2 * LANES) {
		VEC m[MOST_POINTS * MOST_POINTS], half[2 * MOST_POINTS], y[2];

#pragma GCC unroll 25
		for (int i = 0; i < points * points; i++)
			m[i] = *(const VEC *)(sum + i * pitch);
#pragma GCC unroll 5
		for (int i = 0; i < points; i++)
			transform_sums(half + 2 * i, m + i, points, points);
#pragma GCC unroll 2
		for (int i = 0; i < 2; i++) {
			transform_sums(y, half + i, 2, points);
			y[0] += bias;
			y[1] += bias;
			check += (y[0] - y[0]) + (y[1] - y[1]);
			*(VEC *)(line + i * 2 * WIDE) =
				__builtin_shuffle(y[0], y[1], (MASK){ EACH_LANE(ZIP_LOW, 0) });
			*(VEC *)(line + i * 2 * WIDE + LANES) =
				__builtin_shuffle(y[0], y[1], (MASK){ EACH_LANE(ZIP_HIGH, 0) });
		}
	}
	return check;
}

static inline void store_line(T *to, const T *from, int64_t n)
{
	for (; n > LANES; n -= LANES, to += LANES, from += LANES)
		*(VEC *)to = *(const VEC *)from;
	STORE(to, PART(n), *(const VEC *)from);
}

static void output_block(struct winograd *s, const T *sums, int vecs, int64_t group, int64_t row,
			 int64_t m, const struct tile_run *run, int runs)
{
	const struct conv_winograd *c = s->c;
	const T *bias = c->bias ? (const T *)c->bias + group * c->rows + row : NULL;
	T *out = (T *)c->out + group * c->out_group + row * c->out_row;
	VEC check = { 0 };
	T line[4 * WIDE + LANES]; /* a vector may read beyond a run */

	for (int64_t i = 0; i < m; i++, out += c->out_row) {
		const T *from = sums + i * WIDE;
		T b = bias ? bias[i] : 0;

		check += s->points == 4 ? output_row(line, from, SUMS_PITCH, vecs, b, 4) :
					  output_row(line, from, SUMS_PITCH, vecs, b, 5);
		for (int r = 0; r < runs; r++)
			for (int y = 0; y < run[r].rows; y++)
				store_line(out + run[r].out + y * c->size[1],
					   line + y * 2 * WIDE + run[r].from, run[r].columns);
	}
	for (int i = 0; i < LANES; i++)
		if (check[i] != 0)
			s->infinite = true;
}

/* ---- panels ---- */

/* A block of rows of a panel whose input is transformed. */
static void tile_block(struct winograd *s, const T *weight, const T *input, T *sums,
		       const struct panel *p, const struct tile_run *run, int runs, int64_t group,
		       int64_t block)
{
	const struct conv_winograd *c = s->c;
	int64_t row = (s->from + block) * s->rows, m = min64(c->rows - row, s->rows);
	struct tile t = { .a = weight,
			  .b = input,
			  .c = sums,
			  .rsa = 1,
			  .rsb = p->vecs * (int64_t)LANES,
			  .rsc = WIDE,
			  .alpha = 1,
			  .grouped = true };

	/* Partial sums of DEPTH channels have smaller rounding errors. */
	for (int64_t i = 0; i < s->points * s->points; i++, t.c += SUMS_PITCH) {
		for (int64_t at = 0; at < c->channels; at += t.k) {
			t.k = min64(c->channels - at, DEPTH);
			t.beta = at ? 1 : 0;
			compute_tiles(&t, m, t.rsb, p->vecs);
			t.a += m * t.k;
			t.b += t.k * t.rsb;
		}
		t.a += APART;
		t.b += APART;
	}
	output_block(s, sums, p->vecs, group, row, m, run, runs);
}

/*
 * Task i: all blocks of rows of a panel, or one block if the input is transformed already. Behind the sums is memory for
 * what the task transforms: the input of the panel or the weights of the block.
 */
static void tile_task(struct winograd *s, T *sums, int64_t i)
{
	int64_t tasks = s->input ? s->count : 1, panel = i / tasks, group = panel / s->panels;
	T *own = sums + s->points * s->points * SUMS_PITCH;
	const T *input = s->input ? s->input + panel * s->input_size : own, *weight = own;
	int64_t from = s->input ? i % tasks : 0, until = s->input ? from + 1 : s->count;
	struct tile_run run[WIDE];
	struct panel p;
	int runs;

	panel_of_tiles(s, &p, panel % s->panels);
	runs = tile_runs(s, &p, panel % s->panels * s->width, run);
	if (!s->input)
		input_panel(s, own, &p, group, 0, s->c->channels);
	if (!s->weight)
		weight_block(s, own, i);
	for (int64_t b = from; b < until; b++) {
		if (s->weight)
			weight = s->weight + (group * s->count + b) * s->pitch;
		tile_block(s, weight, input, sums, &p, run, runs, group, b);
	}
}

static void tile_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct winograd *s = ctx;
	int64_t own = !s->input ? s->input_size : s->weight ? 0 : s->pitch;
	int64_t n = s->points * s->points * SUMS_PITCH + own;
	struct tensor_storage *mem;

	mem = storage_alloc(TENSOR_DEVICE_CPU, n * sizeof(T), false);
	if (!mem) {
		s->failed = true;
		return;
	}
	for (int64_t i = begin; i < end; i++)
		tile_task(s, mem->data, i);
	storage_put(mem);
}

/*
 * Number of blocks whose weights are transformed at a time. The transformed weights are 16/9 of the weights or more; a
 * round transforms the source again, which costs a small part of the products with ROUND_BYTES of weights.
 */
static int64_t round_blocks(const struct winograd *s, int64_t blocks)
{
	int64_t bytes = s->c->groups * s->pitch * (int64_t)sizeof(T), most = ROUND_BYTES / bytes;
	int64_t rounds = most > 0 ? (blocks + most - 1) / most : blocks;

	return (blocks + rounds - 1) / rounds;
}

/* The panels of tiles, as wide as possible and of equal widths. */
static void divide_tiles(struct winograd *s)
{
	const struct conv_winograd *c = s->c;
	int64_t most;

	s->grid = (struct conv_gemm){ .grid = { 1, c->tiles[0], c->tiles[1] },
				      .src = c->src,
				      .out_image = c->out_image,
				      .out_step = { 0, 2 * c->size[1], 2 } };
	s->tiles = c->batch * c->tiles[0] * c->tiles[1];
	s->panels = (s->tiles + WIDE - 1) / WIDE;
	most = (s->tiles + s->panels - 1) / s->panels;
	s->width = (most + LANES - 1) / LANES * LANES;
	s->panels = (s->tiles + s->width - 1) / s->width;
	s->input_size = s->points * s->points * (c->channels * s->width + APART);
}

/* Returns 1 if a result is not finite. */
int CONV(conv_winograd)(const struct conv_winograd *c)
{
	struct winograd s = { .c = c, .points = c->stride == 1 ? 4 : 5 };
	struct tensor_storage *mem;
	int64_t most, blocks, weights, inputs;
	bool few, once; /* once: each block of weights is used by one task */

	divide_tiles(&s);
	few = c->groups * s.panels <
	      min64(FEW_PANELS * (int64_t)tensor_get_num_threads(), FEW_MOST);
	blocks = (c->rows + TILE_ROWS - 1) / TILE_ROWS;
	s.rows = c->groups * s.panels * blocks < FEW_BLOCKS ? FEW_TILE_ROWS : TILE_ROWS;
	s.rows = min64(c->rows, s.rows);
	blocks = (c->rows + s.rows - 1) / s.rows;
	s.pitch = s.points * s.points * (c->channels * s.rows + APART);
	inputs = few && blocks > 1 ? c->groups * s.panels * s.input_size : 0;
	once = inputs && s.panels == 1;
	most = once ? blocks : round_blocks(&s, blocks);
	weights = once ? 0 : c->groups * most * s.pitch;
	mem = storage_alloc(TENSOR_DEVICE_CPU, (weights + inputs) * sizeof(T), false);
	if (!mem)
		return -thread()->error.code;
	s.weight = once ? NULL : mem->data;
	if (inputs) {
		s.input = (T *)mem->data + weights;
		parallel_for(0,
			     c->groups * s.panels *
				     ((c->channels + SOME_CHANNELS - 1) / SOME_CHANNELS),
			     1, input_chunk, &s);
	}
	for (; s.from < blocks && !s.failed; s.from += most) {
		s.count = min64(blocks - s.from, most);
		if (!once)
			parallel_for(0, c->groups * s.count, 1, weight_blocks, &s);
		parallel_for(0, c->groups * s.panels * (inputs ? s.count : 1), 1, tile_chunk, &s);
	}
	storage_put(mem);
	if (s.failed)
		return tensor_fail(ENOMEM, "convolution: no memory for a block");
	return s.infinite;
}

#endif
