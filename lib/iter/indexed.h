/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Shape of self[..., i, j, ...] with index tensors i, j of one shape, by NumPy's rule: the
 * dimensions of the indices replace the indexed dimensions if those are adjacent, else they come
 * first; the other dimensions of self keep their order.
 */
#ifndef TENSOR_INDEXED_H
#define TENSOR_INDEXED_H

#include "core/tensor_impl.h"

struct indexed {
	int ndim;
	int first; /* first dimension of the result that comes from the indices */
	int count; /* number of those dimensions */
	int64_t sizes[TENSOR_MAX_DIMS];
	/* source dimension in self, -1 for a dimension of the indices */
	int8_t from[TENSOR_MAX_DIMS];
};

/*
 * Sets up r; inline, because plugins use it. at: i64 [n, shape of the indices]; dims: the n indexed
 * dimensions, ascending. Returns 0, or -errno with the error set.
 */
static inline int indexed_build(struct indexed *r, const char *op, const tensor *self,
				const tensor *at, const int *dims, int n)
{
	bool together = dims[n - 1] - dims[0] == n - 1;
	uint32_t mask = 0;
	int d = 0;

	r->count = at->ndim - 1;
	r->first = together ? dims[0] : 0;
	r->ndim = self->ndim - n + r->count;
	if (r->ndim > TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "%s: the result has %d dimensions, at most %d", op,
				   r->ndim, TENSOR_MAX_DIMS);
	for (int k = 0; k < n; k++)
		mask |= 1u << dims[k];
	for (int i = 0; i < r->ndim; i++) {
		if (i >= r->first && i < r->first + r->count) {
			r->sizes[i] = at->sizes[i - r->first + 1];
			r->from[i] = -1;
			continue;
		}
		while (mask >> d & 1)
			d++;
		r->sizes[i] = self->sizes[d];
		r->from[i] = (int8_t)d++;
	}
	return 0;
}

#endif
