/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* What fronts over images share: lists of numbers for spatial dimensions, and pooling. */
#ifndef TENSOR_SPATIAL_H
#define TENSOR_SPATIAL_H

#include "ops/op.h"

#include "kernels/abi/spatial.h"

#define SPATIAL 3

/*
 * A list argument for n spatial dimensions, for all SPATIAL of them: the missing ones come first
 * and get `missing`. One number counts for all n. Each must be at least `least`.
 */
int spatial_list(const struct tensor_op *op, const char *name, tensor_ints list, int n,
		 int64_t missing, int64_t least, int64_t *to);

/* A borrowed copy of a contiguous tensor gets a batch of one if it has not `ndim` dimensions. */
void spatial_batch(tensor *t, int ndim);

/* What a convolution's arguments say, checked: parameters and the output's sizes (conv.c). */
int convolution_infer(const struct tensor_op *op, const tensor *input, const tensor *weight,
		      const tensor *bias, tensor_ints stride, tensor_ints padding,
		      tensor_ints dilation, bool transposed, tensor_ints output_padding,
		      int64_t groups, struct conv_params *p, int64_t *sizes);

/* ---- pooling over the last n dimensions (pool.c) ---- */

int pool_check_input(const struct tensor_op *op, const tensor *self, int n);
int pool_get_params(const struct tensor_op *op, int n, tensor_ints kernel, tensor_ints stride,
		    tensor_ints padding, tensor_ints dilation, struct pool_params *p);
/* The output's sizes. */
int pool_infer(const struct tensor_op *op, const tensor *self, const struct pool_params *p,
	       bool ceil_mode, int64_t *sizes);
/* pool_get_params() and pool_infer() of average pooling; divisor may be TENSOR_NONE. */
int pool_infer_average(const struct tensor_op *op, int n, const tensor *self,
		       tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
		       bool ceil_mode, bool count_include_pad, int64_t divisor,
		       struct pool_params *p, int64_t *sizes);
/* The output's sizes of adaptive pooling over n dimensions (adaptive_pool.c). */
int adaptive_pool_infer(const struct tensor_op *op, const tensor *self, tensor_ints output_size,
			int n, int64_t *sizes);
/* sizes are those of the output, of self's rank; indices may be NULL. */
int pool_check_gradient(const struct tensor_op *op, const tensor *grad, const tensor *self,
			const int64_t *sizes, const tensor *indices);
/* The operator's kernel from `in` to a result of these sizes. */
int pool_run(const struct tensor_op *op, tensor **out, tensor *in, const int64_t *sizes,
	     const struct pool_params *p);
int pool_run_max(const struct tensor_op *op, tensor **output, tensor **indices, tensor *self,
		 const int64_t *sizes, const struct pool_params *p);
int pool_run_max_backward(const struct tensor_op *op, tensor **out, tensor *grad, tensor *self,
			  tensor *indices, int n);
/* A dimension of size 1 before the last one, and without it again. The first gives an owned
 * tensor; the others take over references. */
tensor *pool_unsqueeze(const char *op, tensor *self);
tensor *pool_squeeze(tensor *t);
int pool_squeeze_both(tensor **output, tensor **indices);

#endif
