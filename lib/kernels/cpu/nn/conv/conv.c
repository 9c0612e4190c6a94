// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Plans of convolutions: where the taps of each position lie. Along an axis with stride s, taps
 * that read the same residue of s share a phase: a source is copied phase by phase, with a border
 * of zeros, so that positions side by side read elements side by side. A source that is so already
 * is read where it lies.
 *
 * The gradient of the input is, for each phase of its own positions, a convolution of stride 1.
 * What has 3 by 3 taps and enough channels goes by tiles of positions (conv_winograd.h).
 */
#include "kernels/cpu/nn/conv/conv.h"

#include "iter/parallel.h"

/* One spatial dimension, and how its taps fall into phases. */
struct axis {
	int64_t in, out, taps, stride, padding, dilation;
	int64_t phases;
	int64_t *phase;	       /* [phases]: residues */
	int64_t *slot, *shift; /* [taps]: the phase, and how many strides further on */
};

struct shape {
	int64_t batch, in, out, groups; /* channels */
	struct axis axis[AXES];
	int64_t taps, in_plane, out_plane;
	enum tensor_dtype dtype;
	struct tensor_storage *scratch;
	int64_t *free; /* what is left of it */
};

static int64_t spatial(const tensor *t, int d)
{
	int from = t->ndim - AXES + d;

	return from < 2 ? 1 : t->sizes[from];
}

static void axis_phases(struct axis *a)
{
	for (int64_t r = 0; r < a->taps; r++) {
		int64_t residue = r * a->dilation % a->stride, f = 0;

		while (f < a->phases && a->phase[f] != residue)
			f++;
		if (f == a->phases)
			a->phase[a->phases++] = residue;
		a->slot[r] = f;
		a->shift[r] = r * a->dilation / a->stride;
	}
}

static int64_t *take(struct shape *s, int64_t n)
{
	int64_t *p = s->free;

	s->free += n;
	return p;
}

/* Whether the kernels of this file know the dtype. */
static bool has_plan(const tensor *t)
{
	return t->dtype == TENSOR_F32 || t->dtype == TENSOR_F64;
}

/* x is what the convolution reads, y what it makes; extra: numbers that the plan needs besides. */
static int shape_begin(struct shape *s, const tensor *y, const tensor *x, const tensor *w,
		       const struct conv_params *p, int64_t extra)
{
	int64_t n = extra;

	*s = (struct shape){ .batch = x->sizes[0],
			     .in = x->sizes[1],
			     .out = y->sizes[1],
			     .groups = p->groups,
			     .taps = 1,
			     .in_plane = 1,
			     .out_plane = 1,
			     .dtype = x->dtype };
	for (int d = 0; d < AXES; d++) {
		struct axis *a = &s->axis[d];

		*a = (struct axis){ .in = spatial(x, d),
				    .out = spatial(y, d),
				    .taps = spatial(w, d),
				    .stride = p->stride[d],
				    .padding = p->padding[d],
				    .dilation = p->dilation[d] };
		s->taps *= a->taps;
		s->in_plane *= a->in;
		s->out_plane *= a->out;
		n += 3 * a->taps;
	}
	s->scratch = storage_alloc(TENSOR_DEVICE_CPU, n * sizeof(*s->free), false);
	if (!s->scratch)
		return -thread()->error.code;
	s->free = s->scratch->data;
	for (int d = 0; d < AXES; d++) {
		s->axis[d].phase = take(s, s->axis[d].taps);
		s->axis[d].slot = take(s, s->axis[d].taps);
		s->axis[d].shift = take(s, s->axis[d].taps);
		axis_phases(&s->axis[d]);
	}
	return 0;
}

static int run_sum(const struct shape *s, const struct conv_gemm *c)
{
	return s->dtype == TENSOR_F32 ? CPU_NAME(conv_implicit_gemm_f32)(c) :
					CPU_NAME(conv_implicit_gemm_f64)(c);
}

/* ---- sources ---- */

/* How a source is held: by phases, from `first` on, `extent` of each. */
struct held {
	struct conv_axis axis[AXES];
	int64_t channel, image;
	const void *data;
	struct tensor_storage *copy; /* NULL: the tensor itself */
};

static bool read_in_place(const struct conv_axis *a)
{
	for (int d = 0; d < AXES; d++, a++)
		if (a->phases != 1 || a->stride != 1 || a->first + a->phase[0] < 0 ||
		    a->first + a->phase[0] + a->extent > a->size)
			return false;
	return true;
}

/* Channels an odd number of cache lines apart, so that they do not meet in a few sets. */
static int64_t odd_lines(int64_t n)
{
	return ((n + 15) / 16 | 1) * 16;
}

static int hold(struct held *h, const tensor *t, int64_t *step)
{
	const struct conv_axis *a = h->axis;
	int64_t blocks = a[0].phases * a[1].phases * a[2].phases;
	struct conv_copy copy = { .planes = t->sizes[0] * t->sizes[1], .axis = a, .in = t->data };

	h->copy = NULL;
	step[2] = 1;
	if (read_in_place(a)) {
		step[1] = a[2].size;
		step[0] = a[1].size * a[2].size;
		h->channel = a[0].size * step[0];
		h->data = (const char *)t->data +
			  (int64_t)itemsize(t) * ((a[0].first + a[0].phase[0]) * step[0] +
						  (a[1].first + a[1].phase[0]) * step[1] +
						  a[2].first + a[2].phase[0]);
	} else {
		step[1] = a[2].extent;
		step[0] = a[1].extent * a[2].extent;
		h->channel = odd_lines(blocks * a[0].extent * step[0]);
		h->copy = storage_alloc(TENSOR_DEVICE_CPU, copy.planes * h->channel * itemsize(t),
					false);
		if (!h->copy)
			return -thread()->error.code;
		h->data = copy.out = h->copy->data;
		copy.pitch = h->channel;
		if (t->dtype == TENSOR_F32)
			CPU_NAME(conv_copy_f32)(&copy);
		else
			CPU_NAME(conv_copy_f64)(&copy);
	}
	h->image = t->sizes[1] * h->channel;
	return 0;
}

static void let_go(struct held *h)
{
	if (h->copy)
		storage_put(h->copy);
}

/* The input as a forward convolution reads it. offset: room for channels * taps. */
static int hold_input(struct shape *s, struct held *h, const tensor *x, struct conv_source *src)
{
	int64_t channels = s->in / s->groups, *offset = take(s, channels * s->taps), block, n = 0;

	for (int d = 0; d < AXES; d++) {
		const struct axis *a = &s->axis[d];
		int64_t most = 0;

		for (int64_t r = 0; r < a->taps; r++)
			most = a->shift[r] > most ? a->shift[r] : most;
		h->axis[d] = (struct conv_axis){ .size = a->in,
						 .first = -a->padding,
						 .stride = a->stride,
						 .extent = a->out + most,
						 .phases = a->phases,
						 .phase = a->phase };
	}
	if (hold(h, x, src->step) < 0)
		return -thread()->error.code;
	block = h->axis[0].extent * h->axis[1].extent * h->axis[2].extent;
	for (int64_t c = 0; c < channels; c++)
		for (int64_t z = 0; z < s->axis[0].taps; z++)
			for (int64_t y = 0; y < s->axis[1].taps; y++)
				for (int64_t r = 0; r < s->axis[2].taps; r++) {
					int64_t f = s->axis[0].slot[z];

					f = f * s->axis[1].phases + s->axis[1].slot[y];
					f = f * s->axis[2].phases + s->axis[2].slot[r];
					offset[n++] = c * h->channel + f * block +
						      s->axis[0].shift[z] * src->step[0] +
						      s->axis[1].shift[y] * src->step[1] +
						      s->axis[2].shift[r];
				}
	src->data = h->data;
	src->image = h->image;
	src->group = channels * h->channel;
	src->offset = offset;
	return 0;
}

/* ---- 3 by 3 taps ---- */

#define TILE	    2	/* positions along an axis */
#define ENOUGH	    16	/* channels and rows for a product */
#define TILES_LEAST 32	/* of all images: weights are transformed for as many */
#define TILES_APART 128 /* the same with stride 2, where tiles save less */

/* A convolution along the last two axes from sizes `in` to `out`. */
struct planar {
	const tensor *x;
	int64_t in[2], out[2], stride, padding[2];
};

/* Whether tiles of positions save a fifth of all multiplications at least; they are cut at edges. */
static bool suits_tiles(const struct shape *s, const struct planar *p, int64_t rows,
			int64_t channels)
{
	int64_t tiles = (p->out[0] + 1) / TILE * ((p->out[1] + 1) / TILE);
	int64_t points = p->stride == 1 ? 16 : 25;
	const struct axis *a = s->axis;

	if (a[0].taps != 1 || a[0].in != 1 || a[0].out != 1 || a[0].padding)
		return false;
	for (int d = 1; d < AXES; d++)
		if (a[d].taps != 3 || a[d].dilation != 1 || a[d].stride != p->stride ||
		    a[d].padding > 2)
			return false;
	return p->stride <= 2 && rows >= ENOUGH && channels >= ENOUGH &&
	       s->batch * tiles >= (p->stride == 1 ? TILES_LEAST : TILES_APART) &&
	       5 * points * tiles <= 4 * 9 * p->out[0] * p->out[1];
}

/* Elements that tiles read, phase by phase, so that those of tiles side by side are so too. */
static int run_tiles(const struct shape *s, const struct planar *p, struct conv_winograd *c)
{
	static const int64_t phases[2 * TILE] = { 0, 1, 2, 3 };
	int64_t offset[25], step = TILE * p->stride, n = 0;
	struct held h;
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
	if (hold(&h, p->x, c->src.step) < 0)
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
	let_go(&h);
	return err;
}

#define OTHERWISE 1 /* is how it must be computed */

static int forward_tiles(const struct shape *s, tensor *out, const tensor *input,
			 const tensor *weight, const tensor *bias)
{
	const struct axis *a = s->axis + 1;
	struct planar p = { input,
			    { a[0].in, a[1].in },
			    { a[0].out, a[1].out },
			    a[0].stride,
			    { a[0].padding, a[1].padding } };
	struct conv_winograd c = { .rows = s->out / s->groups,
				   .channels = s->in / s->groups,
				   .weight = weight->data,
				   .weight_channel = 9,
				   .out = out->data,
				   .bias = bias ? bias->data : NULL };

	if (!suits_tiles(s, &p, c.rows, c.channels))
		return OTHERWISE;
	c.weight_row = c.channels * 9;
	c.weight_group = c.rows * c.weight_row;
	for (int i = 0; i < 9; i++)
		c.tap[i] = i;
	return run_tiles(s, &p, &c);
}

/* The gradient of the input is the convolution with the taps in opposite order. */
static int input_tiles(const struct shape *s, tensor *out, const tensor *grad, const tensor *weight,
		       const tensor *bias)
{
	const struct axis *a = s->axis + 1;
	struct planar p = { grad,
			    { a[0].out, a[1].out },
			    { a[0].in, a[1].in },
			    1,
			    { 2 - a[0].padding, 2 - a[1].padding } };
	struct conv_winograd c = { .rows = s->in / s->groups,
				   .channels = s->out / s->groups,
				   .weight = weight->data,
				   .weight_row = 9,
				   .out = out->data,
				   .bias = bias ? bias->data : NULL };

	if (!suits_tiles(s, &p, c.rows, c.channels))
		return OTHERWISE;
	c.weight_channel = c.rows * 9;
	c.weight_group = c.channels * c.weight_channel;
	for (int i = 0; i < 9; i++)
		c.tap[i] = 8 - i;
	return run_tiles(s, &p, &c);
}

/* ---- forward ---- */

static int cpu_convolution(tensor *out, const tensor *input, const tensor *weight,
			   const tensor *bias, const struct conv_params *p)
{
	struct conv_gemm c = { .weight = weight->data,
			       .bias = bias ? bias->data : NULL,
			       .out = out->data };
	struct held h;
	struct shape s;
	int err;

	if (!out->numel)
		return 0;
	if (!has_plan(out))
		return CPU_NAME(conv_plain)(CONV_OUTPUT, out, input, weight, bias, p);
	if (shape_begin(&s, out, input, weight, p, weight->numel / weight->sizes[0]) < 0)
		return -thread()->error.code;
	err = forward_tiles(&s, out, input, weight, bias);
	if (err != OTHERWISE)
		goto out;
	err = hold_input(&s, &h, input, &c.src);
	if (!err) {
		c.batch = s.batch;
		c.groups = s.groups;
		c.rows = s.out / s.groups;
		c.depth = s.in / s.groups * s.taps;
		c.weight_row = c.depth;
		c.weight_group = c.rows * c.depth;
		c.out_row = s.out_plane;
		c.out_group = c.rows * c.out_row;
		c.out_image = s.out * c.out_row;
		c.out_step[2] = 1;
		c.out_step[1] = s.axis[2].out;
		c.out_step[0] = s.axis[1].out * s.axis[2].out;
		for (int d = 0; d < AXES; d++)
			c.grid[d] = s.axis[d].out;
		err = run_sum(&s, &c);
		let_go(&h);
	}
out:
	storage_put(s.scratch);
	return err;
}

static int cpu_convolution_weight(tensor *out, const tensor *grad, const tensor *input,
				  const tensor *none, const struct conv_params *p)
{
	struct conv_wgrad c = { .grad = grad->data, .out = out->data };
	struct held h;
	struct shape s;
	int err;

	if (!out->numel)
		return 0;
	if (!has_plan(out))
		return CPU_NAME(conv_plain)(CONV_WEIGHT, grad, input, out, NULL, p);
	if (shape_begin(&s, grad, input, out, p, out->numel / out->sizes[0]) < 0)
		return -thread()->error.code;
	err = hold_input(&s, &h, input, &c.src);
	if (!err) {
		c.batch = s.batch;
		c.groups = s.groups;
		c.columns = s.out / s.groups;
		c.depth = s.in / s.groups * s.taps;
		for (int d = 0; d < AXES; d++)
			c.grid[d] = s.axis[d].out;
		err = s.dtype == TENSOR_F32 ? CPU_NAME(conv_wgrad_f32)(&c) :
					      CPU_NAME(conv_wgrad_f64)(&c);
		let_go(&h);
	}
	storage_put(s.scratch);
	return err;
}

/* ---- the gradient of the input ---- */

/* Positions of an axis' phase: `count` from `at` on, stride apart; tap r reads the gradient at
 * first - shift[r] and on. */
struct positions {
	int64_t at, first, count;
};

static struct positions positions_of(const struct axis *a, int64_t f)
{
	int64_t from = a->padding - a->phase[f], first, until;

	first = from > 0 ? (from + a->stride - 1) / a->stride : -(-from / a->stride);
	until = a->in + from > 0 ? (a->in + from + a->stride - 1) / a->stride : first;
	return (struct positions){ .at = first * a->stride - from,
				   .first = first,
				   .count = until > first ? until - first : 0 };
}

/* The part of the gradient that any tap of any phase reads. */
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

/* One phase of positions, phase[d] along each axis. Offsets go to the rest of the scratch. */
static int sum_phase(const struct shape *s, const struct held *h, struct conv_gemm *c,
		     const int64_t *phase)
{
	int64_t channels = s->out / s->groups, in = s->in / s->groups, taps = 0, at = 0, tap = 0;
	int64_t *offset = s->free, *weight = offset + channels * s->taps;
	struct positions q[AXES];
	struct conv_gemm part = *c;

	for (int d = 0; d < AXES; d++) {
		q[d] = positions_of(&s->axis[d], phase[d]);
		part.grid[d] = q[d].count;
		at += q[d].at * c->out_step[d];
		part.out_step[d] = c->out_step[d] * s->axis[d].stride;
	}
	for (int64_t z = 0; z < s->axis[0].taps; z++)
		for (int64_t y = 0; y < s->axis[1].taps; y++)
			for (int64_t x = 0; x < s->axis[2].taps; x++, tap++) {
				const int64_t r[AXES] = { z, y, x };
				int64_t from = 0;
				bool in_phase = true;

				for (int d = 0; d < AXES; d++) {
					const struct axis *a = &s->axis[d];

					in_phase &= a->slot[r[d]] == phase[d];
					from += c->src.step[d] *
						(q[d].first - a->shift[r[d]] - h->axis[d].first);
				}
				if (!in_phase)
					continue;
				offset[taps] = from;
				weight[taps++] = tap;
			}
	for (int64_t k = channels - 1; k >= 0; k--)
		for (int64_t i = 0; i < taps; i++) {
			offset[k * taps + i] = offset[i] + k * h->channel;
			weight[k * taps + i] = weight[i] + k * in * s->taps;
		}
	part.depth = channels * taps;
	part.src.offset = offset;
	part.weight_offset = weight;
	part.out = (char *)c->out + at * dtype_sizes[s->dtype];
	return run_sum(s, &part);
}

/* What no tap reaches: zero, or the bias. */
static void fill(const struct shape *s, tensor *out, const tensor *bias)
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

static int sum_phases(struct shape *s, const struct held *h, struct conv_gemm *c)
{
	const struct axis *a = s->axis;
	int err = 0;

	for (int64_t z = 0; z < a[0].phases; z++)
		for (int64_t y = 0; y < a[1].phases; y++)
			for (int64_t x = 0; !err && x < a[2].phases; x++)
				err = sum_phase(s, h, c, (const int64_t[]){ z, y, x });
	return err;
}

static int cpu_convolution_input(tensor *out, const tensor *grad, const tensor *weight,
				 const tensor *bias, const struct conv_params *p)
{
	struct conv_gemm c = { .weight = weight->data,
			       .bias = bias ? bias->data : NULL,
			       .out = out->data };
	bool all = true;
	struct held h;
	struct shape s;
	int err;

	if (!out->numel)
		return 0;
	if (!has_plan(out))
		return CPU_NAME(conv_plain)(CONV_INPUT, grad, out, weight, bias, p);
	/* In and out are those of the convolution whose input's gradient this is. */
	if (shape_begin(&s, grad, out, weight, p, 2 * (weight->numel / weight->sizes[1])) < 0)
		return -thread()->error.code;
	err = grad->numel && weight->numel ? input_tiles(&s, out, grad, weight, bias) : OTHERWISE;
	if (err != OTHERWISE)
		goto out;
	for (int d = 0; d < AXES; d++) {
		gradient_axis(&s.axis[d], &h.axis[d]);
		all &= s.axis[d].phases == s.axis[d].stride;
	}
	if (!all || !grad->numel || !weight->numel)
		fill(&s, out, bias);
	err = grad->numel && weight->numel ? hold(&h, grad, c.src.step) : 0;
	if (!err && grad->numel && weight->numel) {
		c.batch = s.batch;
		c.groups = s.groups;
		c.rows = s.in / s.groups;
		c.weight_row = s.taps;
		c.weight_group = s.out / s.groups * c.rows * s.taps;
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
		let_go(&h);
	}
out:
	storage_put(s.scratch);
	return err;
}

CPU_KERNELS(K(convolution), K(convolution_input), K(convolution_weight))
