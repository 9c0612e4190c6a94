/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shared functions of reductions. Kernels get the output with the input's rank, where reduced
 * dimensions have size 1 and stride 0, so keepdim does not concern them. */
#ifndef TENSOR_OPS_REDUCE_H
#define TENSOR_OPS_REDUCE_H

#include "ops/op.h"

static inline uint32_t all_dims(const tensor *self)
{
	return (1u << self->ndim) - 1;
}

/* Bit mask of a list of dimensions, all for an empty list. 0, or -errno with the error set. */
int reduce_dims_mask(const struct tensor_op *op, const tensor *self, tensor_ints dim,
		     uint32_t *mask);
int reduce_dim_mask(const struct tensor_op *op, const tensor *self, int64_t dim, uint32_t *mask);
/* Compute the result's sizes; returns its rank. */
int reduce_sizes(const tensor *self, uint32_t dims, bool keepdim, int64_t *sizes);
/* Number of input elements per element of the result. */
int64_t reduce_count(const tensor *self, uint32_t dims);
/* EINVAL if a non-empty result would reduce no elements. */
int reduce_check_elements(const struct tensor_op *op, const tensor *self, uint32_t dims);
/* out in the form kernels need, in `view`. */
tensor *reduce_view(tensor *view, const tensor *out, const tensor *self, uint32_t dims);

/* Complete operator function of a reduction whose kernel takes self's dtype; the result has
 * `dtype`. */
int reduce_op(const struct tensor_op *op, const struct tensor_kernel_table *kernels, tensor **out,
	      tensor *self, uint32_t dims, bool keepdim, enum tensor_dtype dtype);
/* As reduce_op(), for kernels with a scalar parameter. */
int reduce_op_with(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		   tensor **out, tensor *self, uint32_t dims, bool keepdim, enum tensor_dtype dtype,
		   double p);
/* EINVAL if two results given as out= share memory. */
int reduce_check_apart(const struct tensor_op *op, const tensor *a, const tensor *b);
/* Release a new first result after an error in the second. Returns err. */
int reduce_drop_result(tensor **first, bool was_given, int err);

#endif
