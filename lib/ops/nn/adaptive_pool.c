// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Adaptive pooling: the caller gives the output's size, and windows divide the input evenly. */
#include "ops/nn/spatial.h"

#include "family/pool.h"
#include "family/reduce.h"

/* Compute the output's sizes: output_size in the spatial dimensions, self's in the others. */
int adaptive_pool_infer(const struct tensor_op *op, const tensor *self, tensor_ints output_size,
			int n, int64_t *sizes)
{
	int64_t size[SPATIAL];

	if (spatial_list(op, "output_size", output_size, n, 1, 0, size) < 0 ||
	    pool_check_input(op, self, n) < 0)
		return error_code();
	for (int i = 0; i < self->ndim; i++)
		sizes[i] = i < self->ndim - n ? self->sizes[i] : size[SPATIAL - self->ndim + i];
	return 0;
}

/* Check everything but the gradient's spatial sizes, which are the output's and may have any value.
 */
static int check_gradient(const struct tensor_op *op, const tensor *grad, const tensor *self,
			  const tensor *indices, int n)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	if (pool_check_input(op, self, n) < 0)
		return error_code();
	for (int i = 0; i < self->ndim; i++)
		sizes[i] = i < self->ndim - n || grad->ndim != self->ndim ? self->sizes[i] :
									    grad->sizes[i];
	return pool_check_gradient(op, grad, self, sizes, indices);
}

static int adaptive_avg_pool(const struct tensor_op *op, int n, tensor **out, tensor *self,
			     tensor_ints output_size)
{
	const struct pool_params p = { .spatial = n };
	int64_t sizes[TENSOR_MAX_DIMS];

	if (adaptive_pool_infer(op, self, output_size, n, sizes) < 0)
		return error_code();
	return pool_run(op, out, self, sizes, &p);
}

static int adaptive_avg_pool_backward(const struct tensor_op *op, int n, tensor **out,
				      tensor *grad_output, tensor *self)
{
	const struct pool_params p = { .spatial = n };

	if (check_gradient(op, grad_output, self, NULL, n) < 0)
		return error_code();
	return pool_run(op, out, grad_output, self->sizes, &p);
}

static int adaptive_max_pool(const struct tensor_op *op, int n, tensor **output, tensor **indices,
			     tensor *self, tensor_ints output_size)
{
	const struct pool_params p = { .spatial = n };
	int64_t sizes[TENSOR_MAX_DIMS];

	if (adaptive_pool_infer(op, self, output_size, n, sizes) < 0)
		return error_code();
	return pool_run_max(op, output, indices, self, sizes, &p);
}

static int adaptive_max_pool_backward(const struct tensor_op *op, int n, tensor **out,
				      tensor *grad_output, tensor *self, tensor *indices)
{
	if (check_gradient(op, grad_output, self, indices, n) < 0)
		return error_code();
	return pool_run_max_backward(op, out, grad_output, self, indices, n);
}

int op_adaptive_avg_pool2d(const struct tensor_op *op, tensor **out, tensor *self,
			   tensor_ints output_size)
{
	return adaptive_avg_pool(op, 2, out, self, output_size);
}

int op_adaptive_avg_pool2d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				    tensor *self)
{
	return adaptive_avg_pool_backward(op, 2, out, grad_output, self);
}

int op_adaptive_max_pool2d(const struct tensor_op *op, tensor **output, tensor **indices,
			   tensor *self, tensor_ints output_size)
{
	return adaptive_max_pool(op, 2, output, indices, self, output_size);
}

int op_adaptive_max_pool2d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				    tensor *self, tensor *indices)
{
	return adaptive_max_pool_backward(op, 2, out, grad_output, self, indices);
}

int op_adaptive_avg_pool3d(const struct tensor_op *op, tensor **out, tensor *self,
			   tensor_ints output_size)
{
	return adaptive_avg_pool(op, 3, out, self, output_size);
}

int op_adaptive_avg_pool3d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				    tensor *self)
{
	return adaptive_avg_pool_backward(op, 3, out, grad_output, self);
}

int op_adaptive_max_pool3d(const struct tensor_op *op, tensor **output, tensor **indices,
			   tensor *self, tensor_ints output_size)
{
	return adaptive_max_pool(op, 3, output, indices, self, output_size);
}

int op_adaptive_max_pool3d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				    tensor *self, tensor *indices)
{
	return adaptive_max_pool_backward(op, 3, out, grad_output, self, indices);
}

/* ---- composites ---- */

static bool all_one(tensor_ints size)
{
	for (int64_t i = 0; i < size.len; i++)
		if (size.data[i] != 1)
			return false;
	return size.len > 0;
}

tensor *composite_adaptive_avg_pool2d(tensor *self, tensor_ints output_size)
{
	if (all_one(output_size) && (self->ndim == 3 || self->ndim == 4) && self->numel)
		return call_mean_dim(self, TENSOR_INTS(-2, -1), true, TENSOR_DTYPE_NONE);
	return call__adaptive_avg_pool2d(self, output_size);
}

tensor *composite_adaptive_avg_pool3d(tensor *self, tensor_ints output_size)
{
	if (all_one(output_size) && (self->ndim == 4 || self->ndim == 5) && self->numel)
		return call_mean_dim(self, TENSOR_INTS(-3, -2, -1), true, TENSOR_DTYPE_NONE);
	return call__adaptive_avg_pool3d(self, output_size);
}

static int check_length(const char *op, tensor_ints output_size)
{
	if (output_size.len == 1)
		return 0;
	return tensor_fail(EINVAL, "%s: output_size must have one number, got %lld", op,
			   (long long)output_size.len);
}

tensor *composite_adaptive_avg_pool1d(tensor *self, tensor_ints output_size)
{
	tensor *flat, *result;

	if (check_length("adaptive_avg_pool1d", output_size) < 0)
		return NULL;
	flat = pool_unsqueeze("adaptive_avg_pool1d", self);
	result = flat ? call_adaptive_avg_pool2d(flat, TENSOR_INTS(1, output_size.data[0])) : NULL;
	tensor_put(flat);
	return pool_squeeze(result);
}

int composite_adaptive_max_pool1d(tensor *self, tensor_ints output_size, tensor **output,
				  tensor **indices)
{
	tensor *flat;
	int err;

	if (check_length("adaptive_max_pool1d", output_size) < 0)
		return error_code();
	flat = pool_unsqueeze("adaptive_max_pool1d", self);
	err = flat ? call_adaptive_max_pool2d(flat, TENSOR_INTS(1, output_size.data[0]), output,
					      indices) :
		     error_code();
	tensor_put(flat);
	return err < 0 ? err : pool_squeeze_both(output, indices);
}
