/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* What the fronts of normalizations share: their kernels want contiguous f32 or f64. */
#ifndef TENSOR_NORM_H
#define TENSOR_NORM_H

#include "ops/op.h"
#include "ops/memory_format.h"

/* t as kernels want it, in `dtype`; owned. NULL stays NULL. */
tensor *norm_operand(tensor *t, enum tensor_dtype dtype);
/* A result in its final dtype; takes over t, which may be NULL. */
tensor *norm_result(tensor *t, enum tensor_dtype dtype);
/* t's memory as another contiguous shape, for a kernel, in `header`; NULL for NULL. */
tensor *norm_shape(tensor *header, const tensor *t, tensor_ints sizes);
/* input is floating; weight and bias, which may be NULL, have `n` elements and input's dtype, or
 * f32 beside a half. */
int norm_check(const struct tensor_op *op, const tensor *input, const tensor *weight,
	       const tensor *bias, int64_t n);
/* The dtype of statistics: input's, but f32 for a half with f32 weights. */
enum tensor_dtype norm_stat_dtype(const tensor *input, const tensor *weight, const tensor *bias);
/* The results of a forward front, output, mean and rstd, in their dtypes; all or none. Returns
 * err, or what went wrong here. */
int norm_forward_end(tensor **results, enum tensor_dtype dtype, enum tensor_dtype stat,
		     bool channels_last, int err);

/* What the backward fronts do around their kernel: operands and results, which belong together. */
struct norm_backward {
	tensor *grad, *x, *mean, *rstd, *weight; /* as kernels want them */
	tensor *dx, *dweight, *dbias;		 /* NULL: not wanted */
	bool complete;				 /* all memory was there */
};

/* mean and rstd have `rows` elements. */
int norm_check_backward(const struct tensor_op *op, const tensor *grad_out, const tensor *input,
			const tensor *mean, const tensor *rstd, int64_t rows);
/* dweight and dbias get the shape `affine`. */
void norm_backward_begin(struct norm_backward *b, tensor *grad_out, tensor *input, tensor *mean,
			 tensor *rstd, tensor *weight, tensor_ints affine, uint64_t mask);
/* Fills out[0..2] with dx, dweight and dbias, the latter two in `dtype`; all or none. */
int norm_backward_end(struct norm_backward *b, const tensor *input, enum tensor_dtype dtype,
		      uint64_t mask, tensor **out, int err);

#endif
