/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The shape of a convolution, and its source in the order in which taps read it. Included by conv.c
 * only.
 *
 * Along an axis with stride s, taps whose offsets have the same residue modulo s share a phase: a
 * source is copied phase by phase, with a border of zeros, so that adjacent positions read adjacent
 * elements. With stride 1 and without padding, the source is read in place.
 */
#ifndef TENSOR_CONV_SOURCE_H
#define TENSOR_CONV_SOURCE_H

#include "kernels/cpu/nn/conv/conv.h"

/*
 * One spatial dimension, and the phases of its taps. Taps that read the border for every position
 * are left out: for the single position of a 1 by 1 input, 3 by 3 taps with padding 1 are one tap.
 */
struct axis {
	int64_t in, out, stride, padding, dilation;
	int64_t extent; /* of the weight */
	int64_t taps, phases;
	int64_t *tap;	       /* [taps]: their indices in the weight, ascending */
	int64_t *phase;	       /* [phases]: residues modulo stride */
	int64_t *slot, *shift; /* [taps]: the index of its phase, and its offset in strides */
	int64_t *head,
		*next; /* [phases], [taps]: the first tap of a phase, the next of its phase, or -1 */
};

struct shape {
	int64_t batch, in, out, groups; /* channels */
	struct axis axis[AXES];
	int64_t taps, in_plane, out_plane;
	int64_t window; /* weights of a pair of channels, of which `taps` are used */
	enum tensor_dtype dtype;
	bool units; /* elements are pairs of bf16 */
	struct tensor_storage *scratch;
	int64_t *free; /* the unused rest of scratch */
};

static int64_t spatial(const tensor *t, int d)
{
	int from = t->ndim - AXES + d;

	return from < 2 ? 1 : t->sizes[from];
}

/* Whether tap r reads the input, not its border, for a position. */
static bool tap_reads(const struct axis *a, int64_t r)
{
	int64_t at = r * a->dilation - a->padding;
	int64_t first = at < 0 ? (-at + a->stride - 1) / a->stride : 0;

	return first < a->out && at + first * a->stride < a->in;
}

/* The taps, all or only those that read the input. */
static void axis_taps(struct axis *a, bool all)
{
	a->taps = 0;
	for (int64_t r = 0; r < a->extent; r++)
		if (all || tap_reads(a, r))
			a->tap[a->taps++] = r;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Sets phases and their taps. A filter may have as many phases as taps, and 100,000 of them: no loop over both. */
static void axis_phases(struct axis *a)
{
	/* Taps this far apart have the same residue; until the end, head[] has the phase of each residue. */
	int64_t period = a->stride / common_divisor(a->stride, a->dilation);

	memset(a->head, -1, a->extent * sizeof(*a->head));
	for (int64_t r = 0; r < a->taps; r++) {
		int64_t offset = a->tap[r] * a->dilation, *f = &a->head[a->tap[r] % period];

		if (*f < 0) {
			*f = a->phases++;
			a->phase[*f] = offset % a->stride;
		}
		a->slot[r] = *f;
		a->shift[r] = offset / a->stride;
	}
	memset(a->head, -1, a->extent * sizeof(*a->head));
	for (int64_t r = a->taps - 1; r >= 0; r--) {
		a->next[r] = a->head[a->slot[r]];
		a->head[a->slot[r]] = r;
	}
}

#define FAR 4 /* times the sizes of input and output */

/* Takes n numbers of the scratch. */
static int64_t *shape_take(struct shape *s, int64_t n)
{
	int64_t *p = s->free;

	s->free += n;
	return p;
}

/* Whether there are functions for the dtype; conv_plain() computes the others. */
static bool has_plan(const tensor *t)
{
	return t->dtype == TENSOR_F32 || t->dtype == TENSOR_F64;
}

/* Whether a source with a border for all taps is much larger than those that are read and computed. */
static bool axis_is_far(const struct axis *a)
{
	return a->dilation * (a->extent - 1) / a->stride > FAR * (a->in + a->out);
}

/*
 * Sets the taps and phases of all axes. Taps are left out if at most one of `part` taps is used, or if they are far
 * outside of the input.
 */
static void shape_taps(struct shape *s, int64_t part)
{
	bool all, far = false;

	for (int d = 0; d < AXES; d++) {
		struct axis *a = &s->axis[d];

		a->tap = shape_take(s, a->extent);
		a->phase = shape_take(s, a->extent);
		a->slot = shape_take(s, a->extent);
		a->shift = shape_take(s, a->extent);
		a->head = shape_take(s, a->extent);
		a->next = shape_take(s, a->extent);
		axis_taps(a, false);
		s->taps *= a->taps;
		far |= axis_is_far(a);
	}
	all = part * s->taps > s->window && !far;
	for (int d = 0; d < AXES; d++) {
		axis_taps(&s->axis[d], all);
		axis_phases(&s->axis[d]);
	}
	if (all)
		s->taps = s->window;
}

/*
 * The shape of y = x * w. extra: numbers that the caller will take from the scratch; part: see
 * shape_taps().
 */
static int shape_begin(struct shape *s, const tensor *y, const tensor *x, const tensor *w,
		       const struct conv_params *p, int64_t extra, int64_t part)
{
	int64_t n = extra;

	*s = (struct shape){ .batch = x->sizes[0],
			     .in = x->sizes[1],
			     .out = y->sizes[1],
			     .groups = p->groups,
			     .taps = 1,
			     .window = 1,
			     .in_plane = 1,
			     .out_plane = 1,
			     .dtype = x->dtype };
	for (int d = 0; d < AXES; d++) {
		struct axis *a = &s->axis[d];

		*a = (struct axis){ .in = spatial(x, d),
				    .out = spatial(y, d),
				    .extent = spatial(w, d),
				    .stride = p->stride[d],
				    .padding = p->padding[d],
				    .dilation = p->dilation[d] };
		s->window *= a->extent;
		s->in_plane *= a->in;
		s->out_plane *= a->out;
		n += 8 * a->extent;
	}
	s->scratch = storage_alloc(TENSOR_DEVICE_CPU, n * sizeof(*s->free), false);
	if (!s->scratch)
		return -thread()->error.code;
	s->free = s->scratch->data;
	shape_taps(s, part);
	return 0;
}

/* Whether conv_depth.h computes the convolution, which has no function for pairs. */
static bool shape_is_depthwise(const struct shape *s, int64_t rows, int64_t depth)
{
	return !s->units && s->dtype != TENSOR_BF16 && conv_is_depthwise(rows, depth, s->groups);
}

/* The index in the window of a tap, r[d] along each axis. */
static int64_t window_index(const struct shape *s, const int64_t *r)
{
	const struct axis *a = s->axis;

	return (a[0].tap[r[0]] * a[1].extent + a[1].tap[r[1]]) * a[2].extent + a[2].tap[r[2]];
}

/*
 * The offsets of the taps of `channels` channels in the weight, for the order of source_of_input();
 * NULL if no tap is left out. They take channels * taps numbers of the scratch.
 */
static const int64_t *weight_offsets(struct shape *s, int64_t channels)
{
	int64_t *offset, n = 0;

	if (s->taps == s->window)
		return NULL;
	offset = shape_take(s, channels * s->taps);
	for (int64_t c = 0; c < channels; c++)
		for (int64_t z = 0; z < s->axis[0].taps; z++)
			for (int64_t y = 0; y < s->axis[1].taps; y++)
				for (int64_t x = 0; x < s->axis[2].taps; x++)
					offset[n++] = c * s->window +
						      window_index(s, (const int64_t[]){ z, y, x });
	return offset;
}

/* ---- phases of the gradient of the input ---- */

/*
 * The positions of a phase along an axis: `count` positions from `at` on, stride apart. Tap r reads
 * the gradient from first - shift[r] on.
 */
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

/* ---- sources ---- */

/* A tensor as taps read it: copied by phases, or in place. */
struct source {
	struct conv_axis axis[AXES];
	int64_t channel, image;
	const void *data;
	struct tensor_storage *copy; /* NULL: in place, or copied later */
	struct conv_copy later;
};

/* Whether the tensor itself has one phase without a border. */
static bool read_in_place(const struct conv_axis *a)
{
	for (int d = 0; d < AXES; d++, a++)
		if (a->phases != 1 || a->stride != 1 || a->first + a->phase[0] < 0 ||
		    a->first + a->phase[0] + a->extent > a->size)
			return false;
	return true;
}

/*
 * Rounds n up to an odd number of cache lines, so that channels use different sets of the cache. Few elements, which
 * rounding could double, do so unless n is a number of lines.
 */
static int64_t odd_lines(int64_t n)
{
	if (n <= 64 && n % 16)
		return n;
	return ((n + 15) / 16 | 1) * 16;
}

/*
 * Sets up h and src for t, by the axes of h. If `depthwise`, each task copies the planes that it reads,
 * which stay in the nearest cache, unless they are read in place.
 */
static int source_make(struct source *h, const tensor *t, struct conv_source *src, bool depthwise)
{
	int64_t *step = src->step;
	const struct conv_axis *a = h->axis;
	int64_t blocks = a[0].phases * a[1].phases * a[2].phases;
	struct conv_copy copy = { .planes = t->sizes[0] * t->sizes[1], .axis = a, .in = t->data };

	h->copy = NULL;
	src->copy = NULL;
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
		copy.pitch = h->channel;
		h->image = t->sizes[1] * h->channel;
		if (depthwise) {
			h->data = NULL;
			h->later = copy;
			src->copy = &h->later;
			return 0;
		}
		h->copy = storage_alloc(TENSOR_DEVICE_CPU, copy.planes * h->channel * itemsize(t),
					false);
		if (!h->copy)
			return -thread()->error.code;
		h->data = copy.out = h->copy->data;
		if (t->dtype == TENSOR_BF16)
			CPU_NAME(conv_copy_bf16)(&copy);
		else if (t->dtype == TENSOR_F32)
			CPU_NAME(conv_copy_f32)(&copy);
		else
			CPU_NAME(conv_copy_f64)(&copy);
	}
	h->image = t->sizes[1] * h->channel;
	return 0;
}

static void source_release(struct source *h)
{
	if (h->copy)
		storage_put(h->copy);
}

/*
 * Sets up h and src for the input of a forward convolution. The offsets take channels * taps
 * numbers of the scratch.
 */
static int source_of_input(struct shape *s, struct source *h, const tensor *x,
			   struct conv_source *src, bool depthwise)
{
	int64_t channels = s->in / s->groups, *offset = shape_take(s, channels * s->taps), block,
		least[AXES], n = 0;

	for (int d = 0; d < AXES; d++) {
		const struct axis *a = &s->axis[d];
		int64_t most = a->taps ? a->shift[a->taps - 1] : 0; /* shifts ascend */

		least[d] = a->taps ? a->shift[0] : 0;
		h->axis[d] = (struct conv_axis){ .size = a->in,
						 .first = least[d] * a->stride - a->padding,
						 .stride = a->stride,
						 .extent = a->out + most - least[d],
						 .phases = a->phases,
						 .phase = a->phase };
	}
	if (source_make(h, x, src, depthwise) < 0)
		return -thread()->error.code;
	block = h->axis[0].extent * h->axis[1].extent * h->axis[2].extent;
	for (int64_t c = 0; c < channels; c++)
		for (int64_t z = 0; z < s->axis[0].taps; z++)
			for (int64_t y = 0; y < s->axis[1].taps; y++)
				for (int64_t r = 0; r < s->axis[2].taps; r++) {
					int64_t f = s->axis[0].slot[z];

					f = f * s->axis[1].phases + s->axis[1].slot[y];
					f = f * s->axis[2].phases + s->axis[2].slot[r];
					offset[n++] =
						c * h->channel + f * block +
						(s->axis[0].shift[z] - least[0]) * src->step[0] +
						(s->axis[1].shift[y] - least[1]) * src->step[1] +
						s->axis[2].shift[r] - least[2];
				}
	src->data = h->data;
	src->image = h->image;
	src->group = channels * h->channel;
	src->offset = offset;
	return 0;
}

#endif
