/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The shape of self[..., i, j, ...] with tensors of indices i, j of one shape: the indices'
 * dimensions stand where the indexed ones stood when those are neighbours, else in front; the
 * other dimensions of self follow in order.
 */
#ifndef TENSOR_INDEXED_H
#define TENSOR_INDEXED_H

#include "core/tensor_impl.h"

struct indexed {
	int ndim;
	int first; /* dimension of the result where those of the indices begin */
	int count; /* number of those */
	int64_t sizes[TENSOR_MAX_DIMS];
	int8_t from[TENSOR_MAX_DIMS]; /* self's dimension, -1 for one of the indices */
};

/* at: i64 [n, indices' shape], dims: the n indexed dimensions, ascending. */
int indexed_build(struct indexed *r, const char *op, const tensor *self, const tensor *at,
		  const int *dims, int n);

#endif
