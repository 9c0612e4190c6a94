/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Tensors whose elements a kernel takes in the order of memory. */
#ifndef TENSOR_OPS_ITEMS_H
#define TENSOR_OPS_ITEMS_H

#include "iter/iter.h"

/* True if t has its elements at the places of p's, which may be t itself, without gaps. */
static inline bool dense_alike(const tensor *t, const tensor *p)
{
	int64_t reach = 1;

	if (t->contiguous && p->contiguous)
		return true;
	for (int i = 0; i < t->ndim; i++) {
		if (t->sizes[i] <= 1)
			continue;
		if (t->strides[i] != p->strides[i] || t->strides[i] < 0)
			return false;
		reach += (t->sizes[i] - 1) * t->strides[i];
	}
	return reach == t->numel && !tensor_overlaps_itself(t);
}

/* The number of real numbers that a floating or complex tensor has. */
static inline int64_t real_numel(const tensor *t)
{
	return t->numel << dtype_is_complex(t->dtype);
}

#endif
