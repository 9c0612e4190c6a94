// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions of f32 and f64 and their gradients: plans for the functions of conv.h. conv_source.h
 * describes how sources are read.
 *
 * The gradient of the input is, for each phase of its positions, a convolution of stride 1.
 * Convolutions of 3 by 3 taps with enough channels are computed by tiles (conv_winograd.h), those of small planes by vectors
 * of channels (conv_channels.h).
 */
#include "kernels/cpu/nn/conv/conv.h"

#include "kernels/cpu/nn/conv/conv_source.h"

#include <math.h>

static int implicit_gemm(const struct shape *s, const struct conv_gemm *c)
{
	if (s->units)
		return CPU_NAME(conv_implicit_gemm_pairs)(c);
	return s->dtype == TENSOR_F32 ? CPU_NAME(conv_implicit_gemm_f32)(c) :
					CPU_NAME(conv_implicit_gemm_f64)(c);
}

#include "kernels/cpu/nn/conv/conv_columns.h"
#include "kernels/cpu/nn/conv/conv_planes.h"

#define GROUP_LEAST 8  /* channels of a group of bf16, of several */
#define SMALL_WORK  24 /* see is_small() */
#define NOT_SUITED  1  /* the convolution has to be computed by conv_implicit_gemm.h */

#include "kernels/cpu/nn/conv/conv_planar.h"
#include "kernels/cpu/nn/conv/conv_classes.h"

/* ---- forward ---- */

/* The planes for which taps of the first axis read the input. */
static struct tap_planes *planes_of_taps(struct shape *s)
{
	const struct axis *a = s->axis;
	struct tap_planes *tap = (struct tap_planes *)shape_take(s, 2 * a->taps);

	for (int64_t r = 0; r < a->taps; r++)
		conv_positions(a->tap[r] * a->dilation - a->padding, a->stride, a->in, INT64_MAX,
			       &tap[r].from, &tap[r].until);
	return tap;
}

static int forward(tensor *out, const tensor *input, const tensor *weight, const tensor *bias,
		   const struct conv_params *p, bool units)
{
	struct conv_gemm c = { .weight = weight->data,
			       .bias = bias ? bias->data : NULL,
			       .out = out->data };
	struct tap_planes *planes;
	struct source h;
	struct shape s;
	bool depthwise;
	int err;

	if (!has_plan(out))
		return CPU_NAME(conv_plain)(CONV_OUTPUT, out, input, weight, bias, p);
	if (shape_begin(&s, out, input, weight, p, 4 * (weight->numel / weight->sizes[0]), 1) < 0)
		return -thread()->error.code;
	s.units = units;
	err = units ? NOT_SUITED : try_winograd(&s, out, input, weight, bias, false);
	if (err == NOT_SUITED)
		err = try_channels(&s, out, input, weight, bias, false);
	if (err != NOT_SUITED)
		goto out;
	depthwise = shape_is_depthwise(&s, s.out / s.groups, s.in / s.groups * s.taps);
	err = source_of_input(&s, &h, input, &c.src, depthwise);
	if (!err) {
		c.batch = s.batch;
		c.groups = s.groups;
		c.rows = s.out / s.groups;
		c.depth = s.in / s.groups * s.taps;
		c.weight_offset = weight_offsets(&s, s.in / s.groups);
		c.weight_row = s.in / s.groups * s.window;
		c.weight_group = c.rows * c.weight_row;
		c.out_row = s.out_plane;
		c.out_group = c.rows * c.out_row;
		c.out_image = s.out * c.out_row;
		c.out_step[2] = 1;
		c.out_step[1] = s.axis[2].out;
		c.out_step[0] = s.axis[1].out * s.axis[2].out;
		for (int d = 0; d < AXES; d++)
			c.grid[d] = s.axis[d].out;
		planes = planes_of_taps(&s);
		err = sum_planes(&s, &c, s.in / s.groups, planes, s.axis[0].taps, s.free);
		source_release(&h);
	}
out:
	storage_put(s.scratch);
	return err;
}

static int forward_of_units(tensor *out, const tensor *input, const tensor *weight,
			    const tensor *bias, const struct conv_params *p)
{
	return forward(out, input, weight, bias, p, true);
}

static int cpu_convolution(tensor *out, const tensor *input, const tensor *weight,
			   const tensor *bias, const struct conv_params *p)
{
	if (!out->numel)
		return 0;
	if (input->dtype == TENSOR_BF16)
		return CPU_NAME(conv_as_units)(forward_of_units, out, input, weight, bias, p,
					       false);
	return forward(out, input, weight, bias, p, false);
}

#define WGRAD_PART 4 /* taps are left out if at most a quarter is used */

static int cpu_convolution_weight(tensor *out, const tensor *grad, const tensor *input,
				  const tensor *none, const struct conv_params *p)
{
	struct conv_wgrad c = { .grad = grad->data, .out = out->data };
	struct source h;
	struct shape s;
	bool depthwise;
	int err;

	if (!out->numel)
		return 0;
	if (!has_plan(out))
		return CPU_NAME(conv_plain)(CONV_WEIGHT, grad, input, out, NULL, p);
	/* Single elements are stored between zeros, more slowly than all of them. */
	if (shape_begin(&s, grad, input, out, p, 2 * (out->numel / out->sizes[0]), WGRAD_PART) < 0)
		return -thread()->error.code;
	depthwise = shape_is_depthwise(&s, s.out / s.groups, s.in / s.groups * s.taps);
	err = source_of_input(&s, &h, input, &c.src, depthwise);
	if (!err) {
		c.batch = s.batch;
		c.groups = s.groups;
		c.columns = s.out / s.groups;
		c.depth = s.in / s.groups * s.taps;
		c.out_offset = weight_offsets(&s, s.in / s.groups);
		c.out_row = s.in / s.groups * s.window;
		for (int d = 0; d < AXES; d++)
			c.grid[d] = s.axis[d].out;
		err = s.dtype == TENSOR_BF16 ? CPU_NAME(conv_wgrad_pairs)(&c) :
		      s.dtype == TENSOR_F32  ? CPU_NAME(conv_wgrad_f32)(&c) :
					       CPU_NAME(conv_wgrad_f64)(&c);
		source_release(&h);
	}
	storage_put(s.scratch);
	return err;
}

/* ---- the gradient of the input ---- */

/* Sets c to the range of the gradient that the taps of all phases read. */
static void gradient_axis(const struct axis *a, struct conv_axis *c)
{
	static const int64_t zero;
	int64_t low = INT64_MAX, high = INT64_MIN;

	for (int64_t r = 0; r < a->taps; r++) {
		struct positions q = positions_of(a, a->slot[r]);

		if (!q.count)
			continue;
		if (q.first - a->shift[r] < low)
			low = q.first - a->shift[r];
		if (q.first + q.count - a->shift[r] > high)
			high = q.first + q.count - a->shift[r];
	}
	*c = (struct conv_axis){ .size = a->out,
				 .first = low < high ? low : 0,
				 .stride = 1,
				 .extent = low < high ? high - low : 0,
				 .phases = 1,
				 .phase = &zero };
}

/*
 * One phase of positions, phase[d] along each axis. The offsets are written to the rest of
 * s->scratch.
 */
static int sum_phase(const struct shape *s, const struct source *h, struct conv_gemm *c,
		     const int64_t *phase)
{
	int64_t channels = s->out / s->groups, in = s->in / s->groups, taps = 0, at = 0;
	int64_t *offset = s->free, *weight = offset + channels * s->taps;
	struct tap_planes *tap = (struct tap_planes *)(weight + channels * s->taps);
	int64_t *scratch = (int64_t *)(tap + s->axis[0].taps), z_taps = 0;
	const struct axis *a = s->axis;
	struct positions q[AXES];
	struct conv_gemm part = *c;

	for (int d = 0; d < AXES; d++) {
		q[d] = positions_of(&s->axis[d], phase[d]);
		part.grid[d] = q[d].count;
		at += q[d].at * c->out_step[d];
		part.out_step[d] = c->out_step[d] * s->axis[d].stride;
	}
	for (int64_t z = a[0].head[phase[0]]; z >= 0; z = a[0].next[z]) {
		int64_t plane = q[0].first - a[0].shift[z]; /* that position 0 reads */

		tap[z_taps++] = (struct tap_planes){ -plane, a[0].out - plane };
		for (int64_t y = a[1].head[phase[1]]; y >= 0; y = a[1].next[y])
			for (int64_t x = a[2].head[phase[2]]; x >= 0; x = a[2].next[x]) {
				const int64_t r[AXES] = { z, y, x };
				int64_t from = 0;

				for (int d = 0; d < AXES; d++)
					from += c->src.step[d] *
						(q[d].first - a[d].shift[r[d]] - h->axis[d].first);
				offset[taps] = from;
				weight[taps++] = window_index(s, r);
			}
	}
	for (int64_t k = channels - 1; k >= 0; k--)
		for (int64_t i = 0; i < taps; i++) {
			offset[k * taps + i] = offset[i] + k * h->channel;
			weight[k * taps + i] = weight[i] + k * in * s->window;
		}
	part.depth = channels * taps;
	part.src.offset = offset;
	part.weight_offset = weight;
	part.out = (char *)c->out + at * dtype_sizes[s->dtype];
	return sum_planes(s, &part, channels, tap, z_taps, scratch);
}

/* Sets all elements to the bias or to zero, for positions that no tap reads. */
static void fill_bias(const struct shape *s, tensor *out, const tensor *bias)
{
	int64_t plane = s->in_plane;
	size_t size = itemsize(out);

	if (!bias) {
		memset(out->data, 0, out->numel * size);
		return;
	}
	for (int64_t i = 0; i < s->batch * s->in; i++)
		for (int64_t k = 0; k < plane; k++)
			memcpy((char *)out->data + (i * plane + k) * size,
			       (const char *)bias->data + i % s->in * size, size);
}

/*
 * Whether the phases of the last axis read the same elements, for one channel: they are rows of
 * one product then, and the weights of a row are those of the one before, a tap on.
 */
static bool phases_are_rows(const struct shape *s, const struct conv_gemm *c)
{
	const struct axis *a = &s->axis[2];

	return c->rows == 1 && s->groups == 1 && !c->bias && s->axis[0].phases == 1 &&
	       s->axis[1].phases == 1 && a->dilation == 1 && !a->padding && a->taps == a->extent &&
	       a->extent % a->stride == 0 && a->in % a->stride == 0;
}

static int sum_phases(struct shape *s, const struct source *h, struct conv_gemm *c)
{
	const struct axis *a = s->axis;
	int err = 0;

	if (phases_are_rows(s, c)) {
		c->rows = a[2].stride;
		c->weight_row = 1;
		c->out_row = 1;
		return sum_phase(s, h, c, (const int64_t[]){ 0, 0, 0 });
	}
	for (int64_t z = 0; z < a[0].phases; z++)
		for (int64_t y = 0; y < a[1].phases; y++)
			for (int64_t x = 0; !err && x < a[2].phases; x++)
				err = sum_phase(s, h, c, (const int64_t[]){ z, y, x });
	return err;
}

static int input_gradient(tensor *out, const tensor *grad, const tensor *weight, const tensor *bias,
			  const struct conv_params *p, bool units)
{
	struct conv_gemm c = { .weight = weight->data,
			       .bias = bias ? bias->data : NULL,
			       .out = out->data };
	bool all = true, depthwise;
	struct source h;
	struct shape s;
	int err;

	if (!has_plan(out))
		return CPU_NAME(conv_plain)(CONV_INPUT, grad, out, weight, bias, p);
	/* in and out of the shape are those of the forward convolution. */
	if (shape_begin(&s, grad, out, weight, p, 4 * (weight->numel / weight->sizes[1]), 1) < 0)
		return -thread()->error.code;
	s.units = units;
	err = NOT_SUITED;
	if (!units && grad->numel && weight->numel)
		err = try_winograd(&s, out, grad, weight, bias, true);
	if (err != NOT_SUITED)
		goto out;
	if (grad->numel && weight->numel && suits_columns(&s)) {
		err = input_by_columns(&s, out, grad, weight, bias);
		goto out;
	}
	err = try_depth_gradient(&s, out, grad, weight, bias);
	if (err == NOT_SUITED)
		err = try_channels(&s, out, grad, weight, bias, true);
	if (err != NOT_SUITED)
		goto out;
	for (int d = 0; d < AXES; d++) {
		gradient_axis(&s.axis[d], &h.axis[d]);
		all &= s.axis[d].phases == s.axis[d].stride;
	}
	if (!all || !grad->numel || !weight->numel)
		fill_bias(&s, out, bias);
	depthwise = shape_is_depthwise(&s, s.in / s.groups, s.out / s.groups * s.taps) &&
		    s.axis[0].phases * s.axis[1].phases * s.axis[2].phases == 1;
	err = grad->numel && weight->numel ? source_make(&h, grad, &c.src, depthwise) : 0;
	if (!err && grad->numel && weight->numel) {
		c.batch = s.batch;
		c.groups = s.groups;
		c.rows = s.in / s.groups;
		c.weight_row = s.window;
		c.weight_group = s.out / s.groups * c.rows * s.window;
		c.src.data = h.data;
		c.src.image = h.image;
		c.src.group = s.out / s.groups * h.channel;
		c.out_row = s.in_plane;
		c.out_group = c.rows * c.out_row;
		c.out_image = s.in * c.out_row;
		c.out_step[2] = 1;
		c.out_step[1] = s.axis[2].in;
		c.out_step[0] = s.axis[1].in * s.axis[2].in;
		err = sum_phases(&s, &h, &c);
		source_release(&h);
	}
out:
	storage_put(s.scratch);
	return err;
}

static int gradient_of_units(tensor *out, const tensor *grad, const tensor *weight,
			     const tensor *bias, const struct conv_params *p)
{
	return input_gradient(out, grad, weight, bias, p, true);
}

static int cpu_convolution_input(tensor *out, const tensor *grad, const tensor *weight,
				 const tensor *bias, const struct conv_params *p)
{
	if (!out->numel)
		return 0;
	if (grad->dtype == TENSOR_BF16)
		return CPU_NAME(conv_as_units)(gradient_of_units, out, grad, weight, bias, p, true);
	return input_gradient(out, grad, weight, bias, p, false);
}

/* ---- bf16 ---- */

/*
 * Whether f32 takes longer than pairs under PAIRS_SMALL, because the largest tensor is converted for few multiplications.
 * For n * s positions, c and o channels and t taps the sizes are n * s * c, n * s * o and c * o * t, and the root of
 * their product is the number of multiplications divided by sqrt(t), whichever of them is the result.
 */
static bool is_small(const tensor *a, const tensor *b, const int64_t *sizes)
{
	int64_t numel = sizes_numel("convolution", sizes, a->ndim);
	int64_t most = a->numel > b->numel ? a->numel : b->numel;
	double product = (double)numel * (double)a->numel * (double)b->numel;

	return sqrt(product) < SMALL_WORK * (double)(most > numel ? most : numel);
}

/* One channel, or few channels in each of several groups, are summed by other kernels in f32. */
static enum tensor_dtype cpu_convolution_reduced(const tensor *a, const tensor *b,
						 const int64_t *sizes, const struct conv_params *p,
						 bool of_weight)
{
	int64_t channels = a->sizes[1] / p->groups; /* of the gradient, for that of the weight */
	enum cpu_pairs pairs = cpu_pairs();
	bool taken = a->dtype == TENSOR_BF16 &&
		     (pairs == PAIRS_ALL || (pairs == PAIRS_SMALL && is_small(a, b, sizes))) &&
		     a->numel && b->numel && channels > 1 &&
		     (p->groups == 1 || channels >= GROUP_LEAST);

	return taken ? TENSOR_F32 : TENSOR_DTYPE_NONE;
}

CPU_KERNELS(KERNEL(convolution), KERNEL(convolution_input), KERNEL(convolution_weight),
	    KERNEL(convolution_reduced))
