/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Convolutions with one or two channels in a group, too few for a matrix product. Blocks of LINES
 * lines of positions are computed together (conv_depth_block.h); where there are fewer lines, the
 * sums of LINES vectors of contiguous positions, tap by tap. Planes with a border and a small stride
 * are read where they are (conv_depth_rows.h).
 */
#ifndef TENSOR_CONV_DEPTH_H
#define TENSOR_CONV_DEPTH_H

#define LINES	   4
#define DEPTH_WORK (1 << 17) /* multiplications in a chunk of planes */

#include "kernels/cpu/nn/conv/conv_depth_block.h"
#include "kernels/cpu/nn/conv/conv_depth_line.h"
#include "kernels/cpu/nn/conv/conv_depth_rows.h"

/* The elements that a task copies of the channels of a group; a vector may read beyond. */
static int64_t depth_copy_size(const struct conv_source *src)
{
	return src->copy ? src->group + LANES : 0;
}

/* The source of a group of an image, copied to `to` unless it is there already. */
static const T *depth_source(const struct conv_source *src, T *to, int64_t image, int64_t group)
{
	const struct conv_copy *copy = src->copy;
	int64_t channels, plane, first;

	if (!copy)
		return (const T *)src->data + image * src->image + group * src->group;
	channels = src->group / copy->pitch;
	plane = copy->axis[0].size * copy->axis[1].size * copy->axis[2].size;
	first = image * (src->image / copy->pitch) + group * channels;
	for (int64_t i = 0; i < channels; i++)
		copy_plane(to + i * copy->pitch, (const T *)copy->in + (first + i) * plane,
			   copy->axis);
	return to;
}

struct lines {
	int n;
	const T *src[LINES];
	vec_part part[LINES];
	int64_t lanes[LINES];
	T *out[LINES];
};

static inline void line_store(const struct lines *l, int i, VEC sum, int64_t step)
{
	T line[LANES];

	if (step == 1) {
		STORE(l->out[i], l->part[i], sum);
		return;
	}
	*(VEC *)line = sum;
	for (int64_t k = 0; k < l->lanes[i]; k++)
		l->out[i][k * step] = line[k];
}

/*
 * Computes and stores the lines. The number is constant; those from n on repeat line 0 and are not
 * stored.
 */
static inline void lines_flush(struct lines *l, const T *w, const int64_t *offset, int64_t depth,
			       T bias, int64_t step)
{
	VEC sum[LINES];

	for (int i = l->n; i < LINES; i++) {
		l->src[i] = l->src[0];
		l->part[i] = l->part[0];
	}
#pragma GCC unroll 4
	for (int i = 0; i < LINES; i++)
		sum[i] = bias - (VEC){ 0 };
	for (int64_t d = 0; d < depth; d++) {
		VEC x = w[d] - (VEC){ 0 };
#pragma GCC unroll 4
		for (int i = 0; i < LINES; i++)
			sum[i] += x * LOAD(l->src[i] + offset[d], l->part[i]);
	}
	/* The loop is unrolled, so that the sums stay in registers. */
#pragma GCC unroll 4
	for (int i = 0; i < LINES; i++)
		if (i < l->n)
			line_store(l, i, sum[i], step);
	l->n = 0;
}

static void depth_plane(const struct conv_gemm *c, const T *src, T *out, const T *w, T bias)
{
	const int64_t *offset = c->src.offset;
	struct lines l = { 0 };

	for (int64_t z = 0; z < c->grid[0]; z++)
		for (int64_t y = 0; y < c->grid[1]; y++)
			for (int64_t x = 0; x < c->grid[2]; x += LANES) {
				int64_t n = min64(c->grid[2] - x, LANES);

				l.src[l.n] = src + z * c->src.step[0] + y * c->src.step[1] + x;
				l.out[l.n] = out + z * c->out_step[0] + y * c->out_step[1] +
					     x * c->out_step[2];
				l.lanes[l.n] = n;
				l.part[l.n++] = PART(n);
				if (l.n == LINES)
					lines_flush(&l, w, offset, c->depth, bias, c->out_step[2]);
			}
	if (l.n)
		lines_flush(&l, w, offset, c->depth, bias, c->out_step[2]);
}

struct depth_plan {
	const struct conv_gemm *c;
	struct chains chains;
	struct row_plan by_rows;
	bool rows;   /* by_rows is set */
	bool blocks; /* there are enough lines for blocks */
	bool line;   /* groups are single lines, read in place */
	_Atomic bool failed;
};

/* The index of weight d in the order in which the plan adds the taps. */
static int64_t depth_tap(const struct depth_plan *plan, int64_t d)
{
	return plan->rows ? plan->by_rows.tap[d] : plan->blocks ? plan->chains.tap[d] : d;
}

/* The output channels of a group of an image, from source `src`, or from rows m. */
static void depth_group(const struct depth_plan *plan, int64_t image, int64_t group, const T *src,
			const struct row_memory *m)
{
	const struct conv_gemm *c = plan->c;
	T w[DEPTH_TAPS];

	for (int64_t row = 0; row < c->rows; row++) {
		const T *from =
			(const T *)c->weight + group * c->weight_group + row * c->weight_row;
		T *out = (T *)c->out + image * c->out_image + group * c->out_group +
			 row * c->out_row;
		T bias = c->bias ? ((const T *)c->bias)[group * c->rows + row] : 0;

		for (int64_t d = 0; d < c->depth; d++) {
			int64_t tap = depth_tap(plan, d);

			w[d] = from[c->weight_offset ? c->weight_offset[tap] : tap];
		}
		if (plan->line)
			depth_line(c, src, out, w, bias);
		else if (plan->rows)
			rows_sum(c, &plan->by_rows, m, out, w, bias);
		else if (plan->blocks)
			depth_blocks(c, &plan->chains, src, out, w, bias);
		else
			depth_plane(c, src, out, w, bias);
	}
}

static void depth_rows_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct depth_plan *plan = ctx;
	const struct row_plan *p = &plan->by_rows;
	const struct conv_gemm *c = plan->c;
	struct row_memory m;

	if (row_memory_begin(&m, p) < 0) {
		plan->failed = true;
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		int64_t image = i / c->groups, group = i % c->groups;

		row_memory_set(&m, p, rows_group(p, &c->src, c->groups, image, group));
		depth_group(plan, image, group, NULL, &m);
	}
	storage_put(m.mem);
}

static void depth_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct depth_plan *plan = ctx;
	const struct conv_gemm *c = plan->c;
	struct tensor_storage *mem;

	mem = storage_alloc(TENSOR_DEVICE_CPU, depth_copy_size(&c->src) * sizeof(T), false);
	if (!mem) {
		plan->failed = true;
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		int64_t image = i / c->groups, group = i % c->groups;

		depth_group(plan, image, group,
			    plan->line ?
				    (const T *)c->src.copy->in + i * c->src.copy->axis[2].size :
				    depth_source(&c->src, mem->data, image, group),
			    NULL);
	}
	storage_put(mem);
}

static int depth_sum(struct conv_gemm *c)
{
	int64_t work = c->rows * c->depth * c->grid[0] * c->grid[1] * c->grid[2] + 1;
	struct depth_plan plan = { .c = c, .blocks = c->grid[1] >= LINES, .line = is_line(c) };

	plan.rows = rows_plan(&plan.by_rows, &c->src, c->grid, c->depth);
	if (plan.blocks && !plan.rows)
		chains_set(&plan.chains, c->src.offset, c->depth, c->src.step[1]);
	parallel_for(0, c->batch * c->groups, work < DEPTH_WORK ? DEPTH_WORK / work : 1,
		     plan.rows ? depth_rows_chunk : depth_chunk, &plan);
	return plan.failed ? tensor_fail(ENOMEM, "convolution: no memory for a plane") : 0;
}

/* ---- the gradient of the weights ---- */

/* Adds the products of n taps over the positions of a plane to sum[]. */
static inline __attribute__((always_inline)) void depth_taps(const struct conv_wgrad *c, VEC *sum,
							     const T *src, const T *grad,
							     const int64_t *offset, const int n)
{
	VEC part_sum[9];

#pragma GCC unroll 9
	for (int t = 0; t < n; t++)
		part_sum[t] = sum[t];
	for (int64_t z = 0; z < c->grid[0]; z++)
		for (int64_t y = 0; y < c->grid[1]; y++) {
			const T *line = src + z * c->src.step[0] + y * c->src.step[1];

			for (int64_t x = 0; x < c->grid[2]; x += LANES) {
				vec_part part = PART(min64(c->grid[2] - x, LANES));
				VEC g = LOAD(grad + x, part);
#pragma GCC unroll 9
				for (int t = 0; t < n; t++)
					part_sum[t] += g * LOAD(line + offset[t] + x, part);
			}
			grad += c->grid[2];
		}
#pragma GCC unroll 9
	for (int t = 0; t < n; t++)
		sum[t] = part_sum[t];
}

struct depth_weight_plan {
	const struct conv_wgrad *c;
	struct row_plan by_rows;
	_Atomic bool failed;
};

static void depth_weight_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct depth_weight_plan *plan = ctx;
	const struct conv_wgrad *c = plan->c;
	struct tensor_storage *mem;
	int64_t plane = c->grid[0] * c->grid[1] * c->grid[2], channels = c->groups * c->columns;
	VEC sum[DEPTH_TAPS];

	mem = storage_alloc(TENSOR_DEVICE_CPU, depth_copy_size(&c->src) * sizeof(T), false);
	if (!mem) {
		plan->failed = true;
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		const T *grad = (const T *)c->grad + i * plane;
		T *out = (T *)c->out + i * c->out_row;

		memset(sum, 0, c->depth * sizeof(*sum));
		for (int64_t n = 0; n < c->batch; n++) {
			const T *s = depth_source(&c->src, mem->data, n, i / c->columns);
			const T *g = grad + n * channels * plane;
			const int64_t *offset = c->src.offset;
			int64_t t = 0;

			for (; t + 9 <= c->depth; t += 9)
				depth_taps(c, sum + t, s, g, offset + t, 9);
			for (; t + 3 <= c->depth; t += 3)
				depth_taps(c, sum + t, s, g, offset + t, 3);
			for (; t < c->depth; t++)
				depth_taps(c, sum + t, s, g, offset + t, 1);
		}
		memset(out, 0, c->out_row * sizeof(T));
		for (int64_t t = 0; t < c->depth; t++) {
			T *to = out + (c->out_offset ? c->out_offset[t] : t);

			for (int k = 0; k < LANES; k++)
				*to += sum[t][k];
		}
	}
	storage_put(mem);
}

static void depth_rows_weight_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct depth_weight_plan *plan = ctx;
	const struct row_plan *p = &plan->by_rows;
	const struct conv_wgrad *c = plan->c;
	struct row_memory m;
	T sum[DEPTH_TAPS];

	if (row_memory_begin(&m, p) < 0) {
		plan->failed = true;
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		T *out = (T *)c->out + i * c->out_row;

		rows_weight(c, p, &m, i, sum);
		memset(out, 0, c->out_row * sizeof(T));
		for (int64_t t = 0; t < c->depth; t++)
			out[c->out_offset ? c->out_offset[p->tap[t]] : p->tap[t]] = sum[t];
	}
	storage_put(m.mem);
}

static int depth_weight(struct conv_wgrad *c)
{
	struct depth_weight_plan plan = { .c = c };
	int64_t work = c->batch * c->depth * c->grid[0] * c->grid[1] * c->grid[2] + 1;
	bool rows = rows_plan(&plan.by_rows, &c->src, c->grid, c->depth);

	parallel_for(0, c->groups * c->columns, work < DEPTH_WORK ? DEPTH_WORK / work : 1,
		     rows ? depth_rows_weight_chunk : depth_weight_chunk, &plan);
	return plan.failed ? tensor_fail(ENOMEM, "convolution_backward: no memory for a plane") : 0;
}

#endif
