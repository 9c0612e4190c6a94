/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shared by the pooling kernels: the shape, windows, and the outputs that read a tap. */
#ifndef TENSOR_POOL_H
#define TENSOR_POOL_H

#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/spatial.h"

#include "iter/parallel.h"

#define POOL_CHUNK 256 /* outputs of a row that are computed together */

struct pool_shape {
	const struct pool_params *p;
	int64_t planes, in[3], out[3], in_plane, out_plane;
};

static inline int64_t pool_size(const tensor *t, int d, int spatial)
{
	return d < 3 - spatial ? 1 : t->sizes[t->ndim - 3 + d];
}

/* out and in are those of the forward operation. */
static inline struct pool_shape pool_shape_of(const tensor *out, const tensor *in,
					      const struct pool_params *p)
{
	struct pool_shape s = { .p = p, .planes = 1, .in_plane = 1, .out_plane = 1 };

	for (int i = 0; i < in->ndim - p->spatial; i++)
		s.planes *= in->sizes[i];
	for (int d = 0; d < 3; d++) {
		s.in[d] = pool_size(in, d, p->spatial);
		s.out[d] = pool_size(out, d, p->spatial);
		s.in_plane *= s.in[d];
		s.out_plane *= s.out[d];
	}
	return s;
}

/* n / by, rounded up, for n >= 0; divisions by the usual strides and dilations are avoided. */
static inline int64_t pool_ceil(int64_t n, int64_t by)
{
	if (by == 1)
		return n;
	return by == 2 ? (n + 1) >> 1 : (n + by - 1) / by;
}

/* The window of an output along a dimension: taps `from` to `until` are within the input. */
struct pool_window {
	int64_t start; /* position of tap 0; negative in the padding */
	int64_t from, until;
};

static inline struct pool_window pool_window_of(const struct pool_shape *s, int d, int64_t o)
{
	int64_t step = s->p->dilation[d], start = o * s->p->stride[d] - s->p->padding[d];
	int64_t from = start < 0 ? pool_ceil(-start, step) : 0;
	int64_t until = start < s->in[d] ? pool_ceil(s->in[d] - start, step) : 0;

	if (until > s->p->kernel[d])
		until = s->p->kernel[d];
	return (struct pool_window){ start, from, until < from ? from : until };
}

/* Reduces outputs *begin to *end of a row to those for which tap k is within the input. */
static inline void pool_served(const struct pool_shape *s, int64_t k, int64_t *begin, int64_t *end)
{
	int64_t shift = s->p->padding[2] - k * s->p->dilation[2], stride = s->p->stride[2];
	int64_t from = shift > 0 ? pool_ceil(shift, stride) : 0;
	int64_t until = s->in[2] + shift > 0 ? pool_ceil(s->in[2] + shift, stride) : 0;

	*begin = from > *begin ? from : *begin;
	*end = until < *end ? until : *end;
}

/* From the row of outputs (*oz, *oy) to the next one; true if that is the first of another plane. */
static inline bool pool_next_row(const struct pool_shape *s, int64_t *oz, int64_t *oy)
{
	if (++*oy < s->out[1])
		return false;
	*oy = 0;
	if (++*oz < s->out[0])
		return false;
	*oz = 0;
	return true;
}

/* Rows of outputs in a chunk of parallel work. */
static inline int64_t pool_grain(const struct pool_shape *s)
{
	int64_t work = s->out[2] * s->p->kernel[0] * s->p->kernel[1] * s->p->kernel[2] + 1;

	return work < ITER_GRAIN ? ITER_GRAIN / work : 1;
}

static inline int64_t pool_plane_grain(const struct pool_shape *s)
{
	int64_t work = s->in_plane + s->out_plane + 1;

	return work < ITER_GRAIN ? ITER_GRAIN / work : 1;
}

#endif
