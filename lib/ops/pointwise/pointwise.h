/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shared functions of elementwise operators: a list of operands that broadcast, each a tensor or a
 * scalar; the dtype of the computation; the dtype of the result. */
#ifndef TENSOR_OPS_POINTWISE_H
#define TENSOR_OPS_POINTWISE_H

#include "ops/op.h"

#define POINTWISE_INPUTS (ITER_OPERANDS - 1)

struct pointwise_arg {
	tensor *t; /* NULL: a scalar */
	tensor_scalar s;
	enum tensor_dtype dtype; /* dtype for the kernel if it is not the common one */
};

/* Common dtype by promotion of tensors with dimensions, then 0-d tensors, then scalars, as in
 * dtype.c. Operands with their own dtype are ignored. */
enum tensor_dtype pointwise_common(const struct pointwise_arg *arg, int n);

/* Compute in `common`; a functional result has dtype `result`. At least one operand is a tensor. */
int pointwise_nary(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		   tensor **out, const struct pointwise_arg *arg, int n, enum tensor_dtype common,
		   enum tensor_dtype result, const struct pointwise_params *params);
/* As pointwise_nary(), with the operator's own dtype rule. */
int pointwise_by_rule(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		      tensor **out, const struct pointwise_arg *arg, int n,
		      const struct pointwise_params *params);

/* Fast paths for one or two operands, with the operator's dtype rule. */
int pointwise_unary(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		    tensor **out, tensor *self, const struct pointwise_params *params);
int pointwise_binary(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		     tensor **out, tensor *self, tensor *other,
		     const struct pointwise_params *params);
int pointwise_binary_scalar(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
			    tensor **out, tensor *self, tensor_scalar other,
			    const struct pointwise_params *params);
/* Clamp between two limits, each optional. For integers, a limit beyond the dtype's range is an
 * error if no value could satisfy it. */
int pointwise_clamp(const struct tensor_op *op, tensor **out, tensor *self, enum tensor_dtype dtype,
		    tensor_scalar min, tensor_scalar max);

#endif
