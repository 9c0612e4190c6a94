/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Reading indices, for the loops of take.c and put.c: positions are checked and converted to
 * offsets in bytes.
 *
 * A loop reads indices once, to private memory, and checks them there, because another process that
 * shares the tensor may write to it at any time.
 */
#ifndef TENSOR_CPU_INDICES_H
#define TENSOR_CPU_INDICES_H

#include "kernels/abi/index.h"
#include "iter/indexed.h"
#include "kernels/cpu/simd/cpu.h"

#define INDEX_BLOCK 256

struct indices {
	const char *name;		/* of the operator */
	int n;				/* index tensors, one for each indexed dimension */
	bool narrow;			/* indices are i32; only if n is 1 */
	bool wrap;			/* negative indices count from the end */
	int64_t slab;			/* bytes from one index tensor to the next */
	int64_t step[TENSOR_MAX_DIMS];	/* bytes between positions of the indexed dimensions */
	int64_t limit[TENSOR_MAX_DIMS]; /* sizes of these dimensions */
	_Atomic bool bad;		/* an index was out of range */
};

/* Counts a negative index from the end. wrap: the size of the dimension, or 0, which leaves it negative. */
static inline int64_t index_wrapped(int64_t v, int64_t wrap)
{
	return v + (v >> 63 & wrap);
}

/* Negative if v < 0 or v > last. */
static inline int64_t index_outside(int64_t v, int64_t last)
{
	return v | (last - v);
}

/*
 * Reads n <= INDEX_BLOCK elements of index tensor k and sets at[] to their offsets. Returns
 * false if one is out of range.
 */
static inline bool indices_read(const struct indices *x, int k, const char *p, int64_t stride,
				int64_t n, int64_t *at)
{
	int64_t step = x->step[k], wrap = x->wrap ? x->limit[k] : 0;
	int64_t last = x->limit[k] - 1, outside = last;

	if (x->narrow) {
		for (int64_t i = 0; i < n; i++)
			at[i] = *(const volatile int32_t *)(p + i * stride);
	} else if (stride == sizeof(int64_t)) {
		memcpy(at, p, n * sizeof(*at));
		__asm__ volatile(""
				 :
				 : "r"(at)
				 : "memory"); /* the compiler must not read p again */
	} else {
		for (int64_t i = 0; i < n; i++)
			at[i] = *(const volatile int64_t *)(p + i * stride);
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t v = index_wrapped(at[i], wrap);

		outside |= index_outside(v, last);
		at[i] = v * step;
	}
	return outside >= 0;
}

/*
 * Sets at[] to the offsets of n <= INDEX_BLOCK positions, summed over all indexed dimensions; p
 * points into the first index tensor. Sets x->bad and returns false if an index is out of range.
 */
static inline bool indices_fetch(struct indices *x, const char *p, int64_t stride, int64_t n,
				 int64_t *at)
{
	bool fine = indices_read(x, 0, p, stride, n, at);
	int64_t more[INDEX_BLOCK];

	for (int k = 1; k < x->n; k++) {
		fine &= indices_read(x, k, p + k * x->slab, stride, n, more);
		for (int64_t i = 0; i < n; i++)
			at[i] += more[i];
	}
	if (unlikely(!fine))
		x->bad = true;
	return fine;
}

/*
 * The same for `rows` rows of n positions, n * rows <= INDEX_BLOCK: element i of row r is
 * at[r * *step + i].
 */
static inline bool indices_fetch_rows(struct indices *x, const char *p, int64_t stride,
				      int64_t row_stride, int64_t n, int64_t rows, int64_t *at,
				      int64_t *step)
{
	*step = row_stride ? n : 0;
	if (!row_stride || row_stride == n * stride)
		return indices_fetch(x, p, stride, row_stride ? n * rows : n, at);
	for (int64_t r = 0; r < rows; r++)
		if (!indices_fetch(x, p + r * row_stride, stride, n, at + r * n))
			return false;
	return true;
}

/* t with the sizes of `shape`, and stride 0 in the dimensions of the mask `fixed`. */
static inline struct tensor walk_view(const tensor *t, const tensor *shape, uint32_t fixed)
{
	struct tensor v = *t;

	v.ndim = shape->ndim;
	v.numel = shape->numel;
	v.contiguous = !fixed && t->contiguous && sizes_equal(t, shape);
	for (int i = 0; i < shape->ndim; i++) {
		v.sizes[i] = shape->sizes[i];
		if (fixed >> i & 1)
			v.strides[i] = 0;
	}
	return v;
}

/* A vector of indices with the sizes of `shape`, and stride 0 in all dimensions but d. */
static inline struct tensor walk_spread(const tensor *index, const tensor *shape, int d)
{
	struct tensor v = walk_view(index, shape, 0);

	v.contiguous = false;
	for (int i = 0; i < shape->ndim; i++)
		v.strides[i] = i == d ? index->strides[0] : 0;
	return v;
}

/* Describes n index tensors, stored in one as at[n, ...], for dimensions dims[] of self. */
static inline void indices_describe(struct indices *x, const tensor *self, const tensor *at,
				    const int *dims, int n)
{
	x->n = n;
	x->wrap = true;
	x->slab = at->strides[0] * (int64_t)itemsize(at);
	for (int k = 0; k < n; k++) {
		x->step[k] = self->strides[dims[k]] * (int64_t)itemsize(self);
		x->limit[k] = self->sizes[dims[k]];
	}
}

/* Sets *from and *walked to self and the first index tensor with the sizes of the result, and *first
 * to the first index tensor with its own sizes. */
static inline void indices_walk(const struct indexed *r, const tensor *self, const tensor *at,
				struct tensor *from, struct tensor *walked, struct tensor *first)
{
	int64_t numel = 1;

	*from = *self;
	*walked = *first = *at;
	from->ndim = walked->ndim = r->ndim;
	from->contiguous = walked->contiguous = first->contiguous = false;
	first->ndim = at->ndim - 1;
	first->numel = 1;
	for (int i = 0; i < first->ndim; i++) {
		first->sizes[i] = at->sizes[i + 1];
		first->strides[i] = at->strides[i + 1];
		first->numel *= first->sizes[i];
	}
	for (int i = 0; i < r->ndim; i++) {
		int d = r->from[i];

		numel *= r->sizes[i];
		from->sizes[i] = walked->sizes[i] = r->sizes[i];
		from->strides[i] = d < 0 ? 0 : self->strides[d];
		walked->strides[i] = d < 0 ? at->strides[i - r->first + 1] : 0;
	}
	from->numel = walked->numel = numel;
}

/*
 * Checks all indices, so that nothing is written if one is out of range; index is the first
 * tensor.
 */
bool CPU_NAME(indices_in_range)(struct indices *x, const tensor *index);
/* Fails with the error for the first index out of range. dims[k] is the dimension of tensor k. */
int CPU_NAME(indices_refuse)(const struct indices *x, const tensor *index, const int *dims);

#define indices_in_range CPU_NAME(indices_in_range)
#define indices_refuse	 CPU_NAME(indices_refuse)

#endif
