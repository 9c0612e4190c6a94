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

/* Set up r. at: i64 [n, shape of the indices]; dims: the n indexed dimensions, ascending. Returns
 * 0, or -errno with the error set. */
int indexed_build(struct indexed *r, const char *op, const tensor *self, const tensor *at,
		  const int *dims, int n);

#endif
