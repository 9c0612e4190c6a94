/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shared functions of the normalization operators, whose kernels need contiguous f32 or f64. */
#ifndef TENSOR_NORM_H
#define TENSOR_NORM_H

#include "ops/op.h"
#include "ops/memory_format.h"

/* t contiguous and in `dtype`. Owned. NULL if t is NULL. */
tensor *norm_operand(tensor *t, enum tensor_dtype dtype);
/* The dtype in which the kernels of batch_norm and group_norm, and layer_norm's but for its gradient, get input: the CPU
 * and CUDA convert f16 and bf16 themselves. */
enum tensor_dtype norm_kernel_dtype(const tensor *input);
/* Convert a result to its final dtype; consumes t, which may be NULL. */
tensor *norm_result(tensor *t, enum tensor_dtype dtype);
/* Fill `header` with t's memory under another contiguous shape, for a kernel. NULL if t is NULL. */
tensor *norm_shape(tensor *header, const tensor *t, tensor_ints sizes);
/* Check that input is floating point, and that weight and bias (each may be NULL) have `n` elements
 * and input's dtype, or f32 if input is a reduced float. */
int norm_check(const struct tensor_op *op, const tensor *input, const tensor *weight,
	       const tensor *bias, int64_t n);
/* dtype of mean and rstd: input's, or f32 for a reduced float input with f32 weights. */
enum tensor_dtype norm_stat_dtype(const tensor *input, const tensor *weight, const tensor *bias);
/* Convert the results of a forward operator (output, mean, rstd) to their dtypes. Sets all or none.
 * Returns err, or the error of the conversion. */
int norm_forward_end(tensor **results, enum tensor_dtype dtype, enum tensor_dtype stat,
		     bool channels_last, int err);

/* Operands and results of a backward kernel. */
struct norm_backward {
	tensor *grad, *x, *mean, *rstd, *weight; /* in the form the kernels need */
	tensor *dx, *dweight, *dbias;		 /* NULL: not wanted */
	bool complete;				 /* all allocations succeeded */
};

/* Check the arguments of a backward operator. mean and rstd have `rows` elements. */
int norm_check_backward(const struct tensor_op *op, const tensor *grad_out, const tensor *input,
			const tensor *mean, const tensor *rstd, int64_t rows);
/* Allocate operands and results: grad, x and dx in `dtype`, the others in f32 or f64. dweight and dbias
 * get the shape `affine`. */
void norm_backward_begin(struct norm_backward *b, tensor *grad_out, tensor *input, tensor *mean,
			 tensor *rstd, tensor *weight, enum tensor_dtype dtype, tensor_ints affine,
			 uint64_t mask);
/* Set out[0..2] to dx, dweight and dbias, the latter two in `dtype`. Sets all or none. */
int norm_backward_end(struct norm_backward *b, const tensor *input, enum tensor_dtype dtype,
		      uint64_t mask, tensor **out, int err);

#endif
