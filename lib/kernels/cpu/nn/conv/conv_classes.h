/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The classes of positions of conv_channels.h, and the convolutions that it computes. Included by conv.c only.
 */
#ifndef TENSOR_CONV_CLASSES_H
#define TENSOR_CONV_CLASSES_H

#include "kernels/cpu/simd/vec.h"

#define CHANNELS_POSITIONS 65536 /* at most */
#define CHANNELS_COLUMNS   24	 /* positions, at least */
#define CHANNELS_WINDOW	   128	 /* taps, at most */
#define CHANNELS_PACKED	   6 /* vectors of positions from which conv_implicit_gemm.h packs weights */
#define CHANNELS_TASK	   512 /* positions of a task */

/* The element that tap r reads for position o of an axis, or of the gradient's axis if `transposed`; or -1. */
static int64_t element_read(const struct axis *a, int64_t o, int64_t r, bool transposed)
{
	int64_t at = transposed ? o + a->padding - r * a->dilation :
				  o * a->stride + r * a->dilation - a->padding;

	if (!transposed)
		return at < a->in ? at : -1;
	return at % a->stride == 0 && at / a->stride < a->out ? at / a->stride : -1;
}

static bool same_class(const struct conv_class *x, const struct conv_class *y)
{
	for (int i = 0; i < x->taps; i++)
		if (x->tap[i] != y->tap[i] || x->at[i] != y->at[i])
			return false;
	return true;
}

/*
 * Sets the class and the first element of position o. False if there are too many classes.
 */
static bool class_position(struct conv_class_axis *x, const struct axis *a, int64_t o,
			   bool transposed)
{
	struct conv_class *k = &x->class[x->classes];
	int i = 0;

	k->taps = 0;
	x->first[o] = 0;
	for (int64_t r = 0; r < a->extent; r++) {
		int64_t at = element_read(a, o, r, transposed);

		if (at < 0)
			continue;
		if (!k->taps)
			x->first[o] = at;
		k->tap[k->taps] = r;
		k->at[k->taps++] = at - x->first[o];
	}
	while (x->class[i].taps != k->taps || !same_class(&x->class[i], k))
		i++;
	x->of[o] = i;
	x->reads += k->taps;
	x->classes += i == x->classes;
	return x->classes <= AXIS_CLASSES;
}

/*
 * Estimates of the time, in multiplications of vectors for each channel that is summed: measured on Zen 4. Packing takes a
 * transposition for each LANES weights of an output channel that are adjacent.
 */
#define TIME_OF_TILES \
	1.06 /* of a multiplication with vectors of channels, with vectors of positions 1 */
#define TIME_OF_TRANSPOSE 8 /* for a vector of its result */
#define TIME_OF_COPY	  2

static double packing_time(const struct shape *s, int64_t lanes, bool transposed)
{
	if (transposed && s->window == 1)
		return TIME_OF_COPY;
	if (!transposed)
		return TIME_OF_TRANSPOSE * (double)s->window;
	return TIME_OF_TRANSPOSE * (double)((s->window + lanes - 1) / lanes * lanes);
}

/* The columns of all phases of the gradient, as whole vectors, times their taps. */
static double columns_of_phases(const struct shape *s, int64_t lanes)
{
	const struct axis *a = s->axis;
	double sum = 0;

	for (int64_t i = 0; i < a[0].phases * a[1].phases * a[2].phases; i++) {
		const int64_t f[AXES] = { i / a[2].phases / a[1].phases,
					  i / a[2].phases % a[1].phases, i % a[2].phases };
		int64_t columns = s->batch, taps = 1;

		for (int d = 0; d < AXES; d++) {
			int64_t n = 0;

			for (int64_t r = a[d].head[f[d]]; r >= 0; r = a[d].next[r])
				n++;
			taps *= n;
			columns *= positions_of(&a[d], f[d]).count;
		}
		sum += (double)((columns + lanes - 1) / lanes * lanes) * (double)taps;
	}
	return sum;
}

/* Whether conv_channels.h takes less time than conv_implicit_gemm.h, which multiplies the border. */
static bool channels_take_less(const struct shape *s, const struct conv_class_axis *x, int64_t rows,
			       bool transposed)
{
	int64_t lanes = VEC_BYTES / (int64_t)dtype_sizes[s->dtype];
	int64_t positions = s->batch * x[0].out * x[1].out * x[2].out;
	double packing = packing_time(s, lanes, transposed), reads = (double)s->batch, columns;

	for (int d = 0; d < AXES; d++)
		reads *= (double)x[d].reads;
	columns = transposed ? columns_of_phases(s, lanes) :
			       (double)((positions + lanes - 1) / lanes * lanes * s->window);
	if (s->axis[0].stride == 1 &&
	    positions / x[0].out >= PLANES_COLUMNS) /* see conv_planes.h */
		columns *= (double)x[0].reads / (double)(x[0].out * s->axis[0].extent);
	if (positions > CHANNELS_PACKED * lanes)
		columns += packing;
	reads = TIME_OF_TILES * reads +
		packing * (double)(positions / CHANNELS_TASK + 1); /* by each task */
	return reads * (double)((rows + lanes - 1) / lanes * lanes) < columns * (double)rows;
}

/* The convolution s or the gradient of its input, of x. NOT_SUITED if it is not computed by vectors of channels. */
static int try_channels(const struct shape *s, tensor *out, const tensor *x, const tensor *weight,
			const tensor *bias, bool transposed)
{
	int64_t in = s->in / s->groups, outs = s->out / s->groups, sizes = 0, *free;
	struct conv_class_axis axis[AXES];
	struct conv_channels c = { .batch = s->batch,
				   .groups = s->groups,
				   .rows = transposed ? in : outs,
				   .channels = transposed ? outs : in,
				   .axis = axis,
				   .src = x->data,
				   .src_channel = transposed ? s->out_plane : s->in_plane,
				   .weight = weight->data,
				   .window = s->window,
				   .weight_row = (transposed ? 1 : in) * s->window,
				   .weight_channel = (transposed ? in : 1) * s->window,
				   .weight_group = in * outs * s->window,
				   .bias = bias ? bias->data : NULL,
				   .out = out->data };
	int64_t positions = s->batch * (transposed ? s->in_plane : s->out_plane);
	struct tensor_storage *mem;
	int err = NOT_SUITED;

	c.src_image = s->groups * c.channels * c.src_channel;
	if (!x->numel || !weight->numel || s->window > CHANNELS_WINDOW || c.rows < ENOUGH ||
	    positions > CHANNELS_POSITIONS || positions < CHANNELS_COLUMNS)
		return NOT_SUITED;
	for (int d = 0; d < AXES; d++) {
		const struct axis *a = &s->axis[d];

		axis[d].in = transposed ? a->out : a->in;
		axis[d].out = transposed ? a->in : a->out;
		axis[d].extent = a->extent;
		axis[d].classes = 0;
		axis[d].reads = 0;
		sizes += axis[d].out;
		if (a->extent > CLASS_TAPS)
			return NOT_SUITED;
	}
	mem = storage_alloc(TENSOR_DEVICE_CPU, 2 * sizes * sizeof(*free), false);
	if (!mem)
		return -thread()->error.code;
	free = mem->data;
	for (int d = 0; d < AXES; d++) {
		axis[d].first = free;
		axis[d].of = free + axis[d].out;
		free += 2 * axis[d].out;
		for (int64_t o = 0; o < axis[d].out; o++)
			if (!class_position(&axis[d], &s->axis[d], o, transposed))
				goto out;
	}
	if (axis[0].classes * axis[1].classes * axis[2].classes <= MOST_CLASSES &&
	    channels_take_less(s, axis, c.rows, transposed))
		err = s->units		     ? CPU_NAME(conv_channels_pairs)(&c) :
		      s->dtype == TENSOR_F32 ? CPU_NAME(conv_channels_f32)(&c) :
					       CPU_NAME(conv_channels_f64)(&c);
out:
	storage_put(mem);
	return err;
}

/* The gradient of the input of depthwise convolutions with stride 2 and about half the taps of padding. */
static int try_depth_gradient(const struct shape *s, tensor *out, const tensor *grad,
			      const tensor *weight, const tensor *bias)
{
	const struct axis *a = s->axis;
	struct conv_depth_gradient g = { .planes = s->batch * s->in,
					 .channels = s->in,
					 .taps = a[1].extent,
					 .grad = grad->data,
					 .weight = weight->data,
					 .bias = bias ? bias->data : NULL,
					 .out = out->data };

	if (s->units || s->in != s->groups || s->out != s->groups || a[0].extent != 1 ||
	    a[0].in != 1 || a[0].out != 1 || a[0].padding || !grad->numel ||
	    (g.taps != 3 && g.taps != 5 && g.taps != 7))
		return NOT_SUITED;
	for (int d = 0; d < 2; d++) {
		const struct axis *x = &a[d + 1];

		if (x->extent != g.taps || x->stride != 2 || x->dilation != 1 ||
		    x->padding % 2 != g.taps / 2 % 2)
			return NOT_SUITED;
		g.grad_size[d] = x->out;
		g.out_size[d] = x->in;
		g.padding[d] = x->padding;
	}
	return s->dtype == TENSOR_F32 ? CPU_NAME(conv_depth_gradient_f32)(&g) :
					CPU_NAME(conv_depth_gradient_f64)(&g);
}

#endif
