/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shared functions of operators on images: list arguments for spatial dimensions, convolution,
 * pooling. */
#ifndef TENSOR_SPATIAL_H
#define TENSOR_SPATIAL_H

#include "ops/op.h"

#include "kernels/abi/spatial.h"

#define SPATIAL 3

/* Expand a list argument for n spatial dimensions to SPATIAL of them. The first ones, which do not
 * exist, get `missing`. A single number is used for all n. Each must be at least `least`. */
int spatial_list(const struct tensor_op *op, const char *name, tensor_ints list, int n,
		 int64_t missing, int64_t least, int64_t *to);

/* Add a batch of size 1 to a borrowed copy of a contiguous tensor that has fewer than `ndim`
 * dimensions. */
void spatial_batch(tensor *t, int ndim);

/* Check a convolution's arguments; compute its parameters and the output's sizes (conv.c). */
int conv_infer(const struct tensor_op *op, const tensor *input, const tensor *weight,
	       const tensor *bias, tensor_ints stride, tensor_ints padding, tensor_ints dilation,
	       bool transposed, tensor_ints output_padding, int64_t groups, struct conv_params *p,
	       int64_t *sizes);

/* ---- pooling over the last n dimensions (pool.c) ---- */

int pool_check_input(const struct tensor_op *op, const tensor *self, int n);
int pool_get_params(const struct tensor_op *op, int n, tensor_ints kernel, tensor_ints stride,
		    tensor_ints padding, tensor_ints dilation, struct pool_params *p);
/* Compute the output's sizes. */
int pool_infer(const struct tensor_op *op, const tensor *self, const struct pool_params *p,
	       bool ceil_mode, int64_t *sizes);
/* pool_get_params() and pool_infer() for average pooling; divisor may be TENSOR_NONE. */
int pool_infer_average(const struct tensor_op *op, int n, const tensor *self,
		       tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
		       bool ceil_mode, bool count_include_pad, int64_t divisor,
		       struct pool_params *p, int64_t *sizes);
/* Compute the output's sizes of adaptive pooling over n dimensions (adaptive_pool.c). */
int adaptive_pool_infer(const struct tensor_op *op, const tensor *self, tensor_ints output_size,
			int n, int64_t *sizes);
/* Check a gradient against the output's `sizes`, which have self's rank. indices may be NULL. */
int pool_check_gradient(const struct tensor_op *op, const tensor *grad, const tensor *self,
			const int64_t *sizes, const tensor *indices);
/* Run the operator's kernel from `in` to a result of these sizes. */
int pool_run(const struct tensor_op *op, tensor **out, tensor *in, const int64_t *sizes,
	     const struct pool_params *p);
int pool_run_max(const struct tensor_op *op, tensor **output, tensor **indices, tensor *self,
		 const int64_t *sizes, const struct pool_params *p);
int pool_run_max_backward(const struct tensor_op *op, tensor **out, tensor *grad, tensor *self,
			  tensor *indices, int n);
/* pool_unsqueeze() adds a dimension of size 1 before the last; the result is owned. The others
 * remove it from results whose references they consume. */
tensor *pool_unsqueeze(const char *op, tensor *self);
tensor *pool_squeeze(tensor *t);
int pool_squeeze_both(tensor **output, tensor **indices);

#endif
