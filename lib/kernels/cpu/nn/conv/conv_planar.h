/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Convolutions of 3 by 3 taps with enough channels, by tiles (conv_winograd.h). Included by conv.c only. */
#ifndef TENSOR_CONV_PLANAR_H
#define TENSOR_CONV_PLANAR_H

#define TILE	    2	/* positions of a tile along an axis */
#define ENOUGH	    16	/* the least number of channels and of rows */
#define TILES_LEAST 32	/* the least number of tiles: the weights are transformed first */
#define TILES_APART 128 /* the same for stride 2, where a tile saves less */

/* A convolution of x along the last two axes. */
struct planar {
	const tensor *x;
	int64_t in[2], out[2], stride, padding[2];
};

/* Whether tiles save at least a fifth of the multiplications, including those cut at the edges. */
static bool suits_winograd(const struct shape *s, const struct planar *p, int64_t rows,
			   int64_t channels)
{
	int64_t tiles = (p->out[0] + 1) / TILE * ((p->out[1] + 1) / TILE);
	int64_t points = p->stride == 1 ? 16 : 25;
	const struct axis *a = s->axis;

	if (a[0].extent != 1 || a[0].in != 1 || a[0].out != 1 || a[0].padding)
		return false;
	for (int d = 1; d < AXES; d++)
		if (a[d].extent != 3 || a[d].taps != 3 || a[d].dilation != 1 ||
		    a[d].stride != p->stride || a[d].padding > 2)
			return false;
	return p->stride <= 2 && rows >= ENOUGH && channels >= ENOUGH &&
	       s->batch * tiles >= (p->stride == 1 ? TILES_LEAST : TILES_APART) &&
	       5 * points * tiles <= 4 * 9 * p->out[0] * p->out[1];
}

/* Sources are copied in phases of the distance of tiles: adjacent tiles read adjacent elements. */
static int winograd(const struct shape *s, const struct planar *p, struct conv_winograd *c)
{
	static const int64_t phases[2 * TILE] = { 0, 1, 2, 3 };
	int64_t offset[25], step = TILE * p->stride, n = 0;
	struct source h;
	int err;

	h.axis[0] = (struct conv_axis){
		.size = 1, .stride = 1, .extent = 1, .phases = 1, .phase = phases
	};
	for (int d = 0; d < 2; d++) {
		c->size[d] = p->out[d];
		c->tiles[d] = (p->out[d] + 1) / TILE;
		h.axis[d + 1] = (struct conv_axis){ .size = p->in[d],
						    .first = -p->padding[d],
						    .stride = step,
						    .extent = c->tiles[d] + 1,
						    .phases = step,
						    .phase = phases };
	}
	if (source_make(&h, p->x, &c->src, false) < 0)
		return -thread()->error.code;
	for (int64_t y = 0; y < 3 + p->stride; y++)
		for (int64_t x = 0; x < 3 + p->stride; x++)
			offset[n++] =
				(y % step * step + x % step) * h.axis[1].extent * h.axis[2].extent +
				y / step * c->src.step[1] + x / step;
	c->stride = p->stride;
	c->batch = s->batch;
	c->groups = s->groups;
	c->src.data = h.data;
	c->src.image = h.image;
	c->src.group = c->channels * h.channel;
	c->src.offset = offset;
	c->src_channel = h.channel;
	c->out_row = p->out[0] * p->out[1];
	c->out_group = c->rows * c->out_row;
	c->out_image = s->groups * c->out_group;
	err = s->dtype == TENSOR_F32 ? CPU_NAME(conv_winograd_f32)(c) :
				       CPU_NAME(conv_winograd_f64)(c);
	source_release(&h);
	return err;
}

/*
 * The convolution s, or transposed: the gradient of its input, which is a convolution of stride 1
 * with the taps in reverse order. x is the input or the gradient of the output. Returns NOT_SUITED
 * if tiles do not save enough, or if a result is not finite.
 */
static int try_winograd(const struct shape *s, tensor *out, const tensor *x, const tensor *weight,
			const tensor *bias, bool transposed)
{
	int64_t in = s->in / s->groups, outs = s->out / s->groups;
	struct planar p = { .x = x, .stride = transposed ? 1 : s->axis[1].stride };
	struct conv_winograd c = { .rows = transposed ? in : outs,
				   .channels = transposed ? outs : in,
				   .weight = weight->data,
				   .weight_row = transposed ? 9 : in * 9,
				   .weight_channel = transposed ? in * 9 : 9,
				   .weight_group = in * outs * 9,
				   .out = out->data,
				   .bias = bias ? bias->data : NULL };

	for (int d = 0; d < 2; d++) {
		const struct axis *a = &s->axis[d + 1];

		p.in[d] = transposed ? a->out : a->in;
		p.out[d] = transposed ? a->in : a->out;
		p.padding[d] = transposed ? 2 - a->padding : a->padding;
	}
	if (!suits_winograd(s, &p, c.rows, c.channels))
		return NOT_SUITED;
	for (int i = 0; i < 9; i++)
		c.tap[i] = transposed ? 8 - i : i;
	return winograd(s, &p, &c);
}

#endif
