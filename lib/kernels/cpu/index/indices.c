// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The check of all indices of a call, and its error message. See indices.h. */
#include "kernels/cpu/index/indices.h"

#include "iter/parallel.h"

/* Negative if one of n indices is out of range; `stride` and `narrow` are constants for most calls. */
static inline __attribute__((always_inline)) int64_t
some_outside(const char *p, int64_t stride, bool narrow, int64_t n, int64_t wrap, int64_t last)
{
	int64_t outside = last;

	for (int64_t i = 0; i < n; i++, p += stride)
		outside |= index_outside(
			index_wrapped(narrow ? *(const int32_t *)p : *(const int64_t *)p, wrap),
			last);
	return outside;
}

/* Whether n indices of tensor k are in range. They are read again when they are used, and checked again. */
static bool row_in_range(const struct indices *x, int k, const char *p, int64_t stride, int64_t n)
{
	int64_t wrap = x->wrap ? x->limit[k] : 0, last = x->limit[k] - 1;

	if (x->narrow)
		return some_outside(p, stride, true, n, wrap, last) >= 0;
	if (stride == sizeof(int64_t))
		return some_outside(p, sizeof(int64_t), false, n, wrap, last) >= 0;
	return some_outside(p, stride, false, n, wrap, last) >= 0;
}

/* A row of `stride` bytes between indices, divided among threads. */
struct check {
	struct indices *x;
	const char *p;
	int64_t stride;
};

static void check_part(int64_t begin, int64_t end, void *ctx)
{
	const struct check *c = ctx;

	for (int k = 0; k < c->x->n; k++)
		if (!row_in_range(c->x, k, c->p + k * c->x->slab + begin * c->stride, c->stride,
				  end - begin))
			c->x->bad = true;
}

bool indices_in_range(struct indices *x, const tensor *index)
{
	int64_t pos[TENSOR_MAX_DIMS] = { 0 };
	int last = index->ndim - 1;
	int64_t size = (int64_t)itemsize(index);
	struct check c = { .x = x, .stride = last < 0 ? 0 : index->strides[last] * size };
	int64_t row = last < 0 ? 1 : index->sizes[last];

	if (!index->numel)
		return true;
	if (index->contiguous) {
		last = 0;
		c.stride = size;
		row = index->numel;
	}
	for (;;) {
		int d = last - 1;

		c.p = index->data;
		for (int k = 0; k < last; k++)
			c.p += pos[k] * index->strides[k] * size;
		parallel_for(0, row, ITER_GRAIN, check_part, &c);
		if (x->bad)
			return false;
		while (d >= 0 && ++pos[d] == index->sizes[d])
			pos[d--] = 0;
		if (d < 0)
			return true;
	}
}

int indices_refuse(const struct indices *x, const tensor *index, const int *dims)
{
	int64_t pos[TENSOR_MAX_DIMS] = { 0 };
	char text[SHAPE_TEXT];

	for (int64_t n = 0; n < index->numel * x->n; n++) {
		int64_t at = 0, i, k = n / index->numel, limit = x->limit[k];
		const char *p;

		for (int d = 0; d < index->ndim; d++)
			at += pos[d] * index->strides[d];
		p = (const char *)index->data + at * (int64_t)itemsize(index) + k * x->slab;
		i = x->narrow ? *(const int32_t *)p : *(const int64_t *)p;
		if (i < (x->wrap ? -limit : 0) || i >= limit)
			return tensor_fail(ERANGE,
					   "%s: index %lld at position %s is out of range "
					   "for dimension %d of size %lld",
					   x->name, (long long)i,
					   format_sizes(pos, index->ndim, text, sizeof(text)),
					   dims[k], (long long)limit);
		for (int d = index->ndim - 1; d >= 0 && ++pos[d] == index->sizes[d]; d--)
			pos[d] = 0;
	}
	return tensor_fail(EINVAL, "%s: index changed while it was read", x->name);
}
