// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Pooling of blocked tensors, and mkldnn_max_pool of strided ones. */
#include "ops/nn/blocked/blocked.h"

#include "ops/nn/spatial.h"

#include "family/blocked.h"
#include "family/pool.h"

/* True if a window reaches past the padding: oneDNN would count those positions in the average. */
static bool reaches_out(const tensor *self, const int64_t *sizes, const struct pool_params *p)
{
	for (int i = self->ndim - p->spatial; i < self->ndim; i++) {
		int d = SPATIAL - self->ndim + i;

		if ((sizes[i] - 1) * p->stride[d] + p->kernel[d] >
		    self->sizes[i] + 2 * p->padding[d])
			return true;
	}
	return false;
}

/* Set p to the common window of an adaptive pooling; false if the windows differ in size. */
static bool even_windows(const tensor *self, const int64_t *sizes, struct pool_params *p)
{
	for (int d = 0; d < SPATIAL; d++)
		p->stride[d] = p->dilation[d] = p->kernel[d] = 1, p->padding[d] = 0;
	for (int i = self->ndim - p->spatial; i < self->ndim; i++) {
		int d = SPATIAL - self->ndim + i;

		if (!sizes[i] || self->sizes[i] % sizes[i])
			return false;
		p->kernel[d] = p->stride[d] = self->sizes[i] / sizes[i];
	}
	return true;
}

/* max_pool without the indices, on strided tensors. */
static int max_pool_without_indices(const struct tensor_op *op, tensor **out, tensor *self,
				    const int64_t *sizes, const struct pool_params *p)
{
	tensor *indices = NULL;
	int err = pool_run_max(op, out, &indices, self, sizes, p);

	tensor_put(indices);
	return err;
}

/* Pool a dense copy and convert the result. */
static int pool_by_dense(const struct tensor_op *op, tensor **out, tensor *self,
			 const int64_t *sizes, const struct pool_params *p, bool max)
{
	tensor *dense = blocked_dense(op->schema.name, self), *t = NULL;
	int err = !dense ? error_code() :
		  max	 ? max_pool_without_indices(op, &t, dense, sizes, p) :
			   pool_run(op, &t, dense, sizes, p);

	tensor_put(dense);
	if (err)
		return err;
	*out = call_to_mkldnn(t, TENSOR_DTYPE_NONE);
	tensor_put(t);
	return *out ? 0 : error_code();
}

static bool is_batch(const tensor *self, const struct pool_params *p)
{
	return self->ndim == p->spatial + 2 && self->numel;
}

/* ---- averages ---- */

static int blocked_average(const struct tensor_op *op, tensor **out, tensor *self,
			   const int64_t *sizes, const struct pool_params *p)
{
	return blocked_deliver(
		op, out,
		blocked_plugin(op->schema.name)->pool(op->schema.name, self, sizes, p, false));
}

static int blocked_avg_pool(const struct tensor_op *op, int n, tensor **out, tensor *self,
			    tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
			    bool ceil_mode, bool count_include_pad, int64_t divisor_override)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	struct pool_params p;

	if (pool_infer_average(op, n, self, kernel_size, stride, padding, ceil_mode,
			       count_include_pad, divisor_override, &p, sizes) < 0 ||
	    blocked_need_form(op, false) < 0)
		return error_code();
	if (!is_batch(self, &p) || p.divisor ||
	    (p.count_include_pad && reaches_out(self, sizes, &p)))
		return pool_by_dense(op, out, self, sizes, &p, false);
	return blocked_average(op, out, self, sizes, &p);
}

int op_blocked_avg_pool2d(const struct tensor_op *op, tensor **out, tensor *self,
			  tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
			  bool ceil_mode, bool count_include_pad, int64_t divisor_override)
{
	return blocked_avg_pool(op, 2, out, self, kernel_size, stride, padding, ceil_mode,
				count_include_pad, divisor_override);
}

int op_blocked_avg_pool3d(const struct tensor_op *op, tensor **out, tensor *self,
			  tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
			  bool ceil_mode, bool count_include_pad, int64_t divisor_override)
{
	return blocked_avg_pool(op, 3, out, self, kernel_size, stride, padding, ceil_mode,
				count_include_pad, divisor_override);
}

static int blocked_adaptive_avg_pool(const struct tensor_op *op, int n, tensor **out, tensor *self,
				     tensor_ints output_size)
{
	const struct pool_params p = { .spatial = n };
	struct pool_params windows = p;
	int64_t sizes[TENSOR_MAX_DIMS];

	if (adaptive_pool_infer(op, self, output_size, n, sizes) < 0 ||
	    blocked_need_form(op, false) < 0)
		return error_code();
	if (!is_batch(self, &p) || !even_windows(self, sizes, &windows))
		return pool_by_dense(op, out, self, sizes, &p, false);
	return blocked_average(op, out, self, sizes, &windows);
}

int op_blocked_adaptive_avg_pool2d(const struct tensor_op *op, tensor **out, tensor *self,
				   tensor_ints output_size)
{
	return blocked_adaptive_avg_pool(op, 2, out, self, output_size);
}

int op_blocked_adaptive_avg_pool3d(const struct tensor_op *op, tensor **out, tensor *self,
				   tensor_ints output_size)
{
	return blocked_adaptive_avg_pool(op, 3, out, self, output_size);
}

tensor *kernel_blocked_adaptive_avg_pool2d(tensor *self, tensor_ints output_size)
{
	return call__adaptive_avg_pool2d(self, output_size);
}

tensor *kernel_blocked_adaptive_avg_pool3d(tensor *self, tensor_ints output_size)
{
	return call__adaptive_avg_pool3d(self, output_size);
}

/* ---- maxima ---- */

/* True if a window lies entirely in the padding. Its maximum is -inf, which oneDNN does not
 * compute. */
static bool has_empty_window(const tensor *self, const int64_t *sizes, const struct pool_params *p)
{
	for (int i = self->ndim - p->spatial; i < self->ndim; i++) {
		int d = SPATIAL - self->ndim + i;

		for (int64_t o = 0; p->dilation[d] > 1 && o < sizes[i]; o++) {
			int64_t at = o * p->stride[d] - p->padding[d], k = 0;

			while (at < 0 && ++k < p->kernel[d])
				at += p->dilation[d];
			if (at < 0 || at >= self->sizes[i])
				return true;
		}
	}
	return false;
}

static int strided_max_pool(const struct tensor_op *op, int n, tensor **out, tensor *self,
			    tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
			    tensor_ints dilation, bool ceil_mode)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	struct pool_params p;

	if (pool_get_params(op, n, kernel_size, stride, padding, dilation, &p) < 0 ||
	    pool_infer(op, self, &p, ceil_mode, sizes) < 0)
		return error_code();
	return max_pool_without_indices(op, out, self, sizes, &p);
}

static int blocked_max_pool(const struct tensor_op *op, int n, tensor **out, tensor *self,
			    tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
			    tensor_ints dilation, bool ceil_mode)
{
	const char *name = op->schema.name;
	int64_t sizes[TENSOR_MAX_DIMS];
	struct pool_params p;

	if (pool_get_params(op, n, kernel_size, stride, padding, dilation, &p) < 0 ||
	    pool_infer(op, self, &p, ceil_mode, sizes) < 0)
		return error_code();
	if (!is_batch(self, &p) || has_empty_window(self, sizes, &p))
		return pool_by_dense(op, out, self, sizes, &p, true);
	return blocked_deliver(op, out, blocked_plugin(name)->pool(name, self, sizes, &p, true));
}

int op_mkldnn_max_pool2d(const struct tensor_op *op, tensor **out, tensor *self,
			 tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
			 tensor_ints dilation, bool ceil_mode)
{
	return strided_max_pool(op, 2, out, self, kernel_size, stride, padding, dilation,
				ceil_mode);
}

int op_blocked_max_pool2d(const struct tensor_op *op, tensor **out, tensor *self,
			  tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
			  tensor_ints dilation, bool ceil_mode)
{
	return blocked_max_pool(op, 2, out, self, kernel_size, stride, padding, dilation,
				ceil_mode);
}

tensor *kernel_blocked_max_pool2d(tensor *self, tensor_ints kernel_size, tensor_ints stride,
				  tensor_ints padding, tensor_ints dilation, bool ceil_mode)
{
	return call_mkldnn_max_pool2d(self, kernel_size, stride, padding, dilation, ceil_mode);
}

int op_mkldnn_max_pool3d(const struct tensor_op *op, tensor **out, tensor *self,
			 tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
			 tensor_ints dilation, bool ceil_mode)
{
	return strided_max_pool(op, 3, out, self, kernel_size, stride, padding, dilation,
				ceil_mode);
}

int op_blocked_max_pool3d(const struct tensor_op *op, tensor **out, tensor *self,
			  tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
			  tensor_ints dilation, bool ceil_mode)
{
	return blocked_max_pool(op, 3, out, self, kernel_size, stride, padding, dilation,
				ceil_mode);
}

tensor *kernel_blocked_max_pool3d(tensor *self, tensor_ints kernel_size, tensor_ints stride,
				  tensor_ints padding, tensor_ints dilation, bool ceil_mode)
{
	return call_mkldnn_max_pool3d(self, kernel_size, stride, padding, dilation, ceil_mode);
}
