/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What fronts of elementwise operators share: an operator is a list of operands, each a tensor or
 * a number, which broadcast; the dtype in which it computes; and the dtype of its result.
 */
#ifndef TENSOR_OPS_POINTWISE_H
#define TENSOR_OPS_POINTWISE_H

#include "ops/op.h"

#define POINTWISE_INPUTS (ITER_OPERANDS - 1)

struct pointwise_arg {
	tensor *t; /* NULL: the number */
	tensor_scalar s;
	enum tensor_dtype dtype; /* what the kernel sees, where that is not the common dtype */
};

/* The common dtype: tensors with dimensions, then 0-d ones, then numbers, as in dtype.c. Those
 * with a dtype of their own do not count. */
enum tensor_dtype pointwise_common(const struct pointwise_arg *arg, int n);

/* Computes in `common`; a functional result is of dtype `result`. At least one is a tensor. */
int pointwise_nary(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		   tensor **out, const struct pointwise_arg *arg, int n, enum tensor_dtype common,
		   enum tensor_dtype result, const struct pointwise_params *params);
/* The same with the operator's own rule for the dtype. */
int pointwise_by_rule(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		      tensor **out, const struct pointwise_arg *arg, int n,
		      const struct pointwise_params *params);

/* One or two operands, by the operator's rule: the quick ways. */
int pointwise_unary(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		    tensor **out, tensor *self, const struct pointwise_params *params);
int pointwise_binary(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		     tensor **out, tensor *self, tensor *other,
		     const struct pointwise_params *params);
int pointwise_binary_scalar(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
			    tensor **out, tensor *self, tensor_scalar other,
			    const struct pointwise_params *params);
/* Between two ends, each of which may be missing; no end of an integer may be out of its range on
 * the far side. */
int pointwise_clamp(const struct tensor_op *op, tensor **out, tensor *self, enum tensor_dtype dtype,
		    tensor_scalar min, tensor_scalar max);

#endif
