/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What fronts of reductions share. Kernels see the output with the input's rank, reduced
 * dimensions with size 1 and stride 0, so that they need not know about keepdim.
 */
#ifndef TENSOR_OPS_REDUCE_H
#define TENSOR_OPS_REDUCE_H

#include "ops/op.h"

static inline uint32_t all_dims(const tensor *self)
{
	return (1u << self->ndim) - 1;
}

/* The dimensions of a list, all of them for an empty one. 0, or -errno with the error set. */
int dims_mask(const struct tensor_op *op, const tensor *self, tensor_ints dim, uint32_t *mask);
int dim_mask(const struct tensor_op *op, const tensor *self, int64_t dim, uint32_t *mask);
/* The result's shape; its rank. */
int reduced_sizes(const tensor *self, uint32_t dims, bool keepdim, int64_t *sizes);
/* How many elements go into one of the result. */
int64_t reduced_count(const tensor *self, uint32_t dims);
/* EINVAL where results would be of nothing. */
int check_elements(const struct tensor_op *op, const tensor *self, uint32_t dims);
/* out as kernels take it. */
tensor *reduced_view(tensor *view, const tensor *out, const tensor *self, uint32_t dims);

/* The whole front of a reduction whose kernel takes self's dtype: a result of `dtype`. */
int reduce_op(const struct tensor_op *op, const struct tensor_kernel_table *kernels, tensor **out,
	      tensor *self, uint32_t dims, bool keepdim, enum tensor_dtype dtype);
/* The same for kernels with a number. */
int reduce_op_with(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		   tensor **out, tensor *self, uint32_t dims, bool keepdim, enum tensor_dtype dtype,
		   double p);
/* Of two results given as out=: they must not share memory. */
int check_apart(const struct tensor_op *op, const tensor *a, const tensor *b);
/* After an error in the second of two results: releases a new first one. Returns err. */
int drop_result(tensor **first, bool was_given, int err);

#endif
