// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Pooling with windows of one size: operator functions, and composites for fewer dimensions. */
#include "ops/nn/spatial.h"

#include "family/pool.h"
#include "family/view.h"

/* ---- shapes ---- */

/* Check self's rank and that only the batch is empty. */
int pool_check_input(const struct tensor_op *op, const tensor *self, int n)
{
	bool good = self->ndim == n + 1 || self->ndim == n + 2;

	for (int d = self->ndim == n + 2; good && d < self->ndim; d++)
		good = self->sizes[d] > 0;
	if (good)
		return 0;
	return tensor_fail(EINVAL,
			   "%s: self must have %d dimensions, or %d with a batch, and only "
			   "the batch may be empty, got %s",
			   op->schema.name, n + 1, n + 2, SHAPE_STR(self));
}

int pool_get_params(const struct tensor_op *op, int n, tensor_ints kernel, tensor_ints stride,
		    tensor_ints padding, tensor_ints dilation, struct pool_params *p)
{
	p->spatial = n;
	p->count_include_pad = false;
	p->divisor = 0;
	if (spatial_list(op, "kernel_size", kernel, n, 1, 1, p->kernel) < 0 ||
	    spatial_list(op, "stride", stride.len > 0 ? stride : kernel, n, 1, 1, p->stride) < 0 ||
	    spatial_list(op, "padding", padding, n, 0, 0, p->padding) < 0 ||
	    spatial_list(op, "dilation", dilation, n, 1, 1, p->dilation) < 0)
		return error_code();
	for (int d = SPATIAL - n; d < SPATIAL; d++)
		if (p->padding[d] > ((p->kernel[d] - 1) * p->dilation[d] + 1) / 2)
			return tensor_fail(EINVAL,
					   "%s: padding must be at most half of kernel_size "
					   "%lld with dilation %lld, got %lld",
					   op->schema.name, (long long)p->kernel[d],
					   (long long)p->dilation[d], (long long)p->padding[d]);
	return 0;
}

static int64_t output_size(const struct pool_params *p, int d, int64_t size, bool ceil_mode)
{
	int64_t left = size + 2 * p->padding[d] - p->dilation[d] * (p->kernel[d] - 1) - 1;
	int64_t s = p->stride[d], out;

	left += ceil_mode ? s - 1 : 0;
	out = (left >= 0 ? left / s : -((-left + s - 1) / s)) + 1;
	/* The last window must begin within the input or the padding before it. */
	if (ceil_mode && (out - 1) * s >= size + p->padding[d])
		out--;
	return out;
}

int pool_infer(const struct tensor_op *op, const tensor *self, const struct pool_params *p,
	       bool ceil_mode, int64_t *sizes)
{
	int first = self->ndim - p->spatial;

	if (pool_check_input(op, self, p->spatial) < 0)
		return error_code();
	for (int i = 0; i < self->ndim; i++) {
		int d = SPATIAL - self->ndim + i;

		sizes[i] = i < first ? self->sizes[i] :
				       output_size(p, d, self->sizes[i], ceil_mode);
		if (i >= first && sizes[i] < 1)
			return tensor_fail(EINVAL,
					   "%s: self %s is too small for kernel_size %lld in "
					   "dimension %d",
					   op->schema.name, SHAPE_STR(self),
					   (long long)p->kernel[d], i);
	}
	return 0;
}

int pool_check_gradient(const struct tensor_op *op, const tensor *grad, const tensor *self,
			const int64_t *sizes, const tensor *indices)
{
	char text[SHAPE_TEXT];

	if (grad->ndim != self->ndim || memcmp(grad->sizes, sizes, grad->ndim * sizeof(*sizes)) ||
	    grad->dtype != self->dtype)
		return tensor_fail(EINVAL, "%s: grad_output must be %s %s, got %s %s",
				   op->schema.name, tensor_dtype_name(self->dtype),
				   format_sizes(sizes, self->ndim, text, sizeof(text)),
				   tensor_dtype_name(grad->dtype), SHAPE_STR(grad));
	if (indices && (indices->dtype != TENSOR_I64 || !sizes_equal(indices, grad)))
		return tensor_fail(EINVAL, "%s: indices must be i64 %s, got %s %s", op->schema.name,
				   SHAPE_STR(grad), tensor_dtype_name(indices->dtype),
				   SHAPE_STR(indices));
	return operand_check_device(op->schema.name, grad, self);
}

/* ---- averages ---- */

int pool_run(const struct tensor_op *op, tensor **out, tensor *in, const int64_t *sizes,
	     const struct pool_params *p)
{
	const tensor *inputs[] = { in };
	tensor *dense = NULL;
	struct op_output o;
	pool_kernel fn;
	int err;

	if (output_begin_dense(op, &o, *out, in->dtype, sizes, in->ndim, inputs, 1) < 0)
		return error_code();
	if (p->spatial == 2 &&
	    in->ndim == 4) /* PyTorch's 3-d average pooling returns contiguous results */
		output_keep_format(&o, in);
	fn = (pool_kernel)op_kernel(op, op->kernels, o.t);
	if (fn)
		dense = operand_dense(in);
	err = dense ? fn(o.t, dense, p) : error_code();
	tensor_put(dense);
	return output_end(op, &o, out, err);
}

static int avg_params(const struct tensor_op *op, int n, tensor_ints kernel, tensor_ints stride,
		      tensor_ints padding, bool count_include_pad, int64_t divisor,
		      struct pool_params *p)
{
	if (pool_get_params(op, n, kernel, stride, padding, TENSOR_INTS(1), p) < 0)
		return error_code();
	p->count_include_pad = count_include_pad;
	if (divisor == 0)
		return tensor_fail(EINVAL, "%s: divisor_override must not be zero",
				   op->schema.name);
	p->divisor = divisor == TENSOR_NONE ? 0 : divisor;
	return 0;
}

/* PyTorch's avg_pool3d requires the window to fit the input without padding. */
static int check_cover(const struct tensor_op *op, const tensor *self, const struct pool_params *p)
{
	for (int i = self->ndim - p->spatial; p->spatial == 3 && i < self->ndim; i++)
		if (self->sizes[i] < p->kernel[SPATIAL - self->ndim + i])
			return tensor_fail(EINVAL,
					   "%s: self must be at least as large as "
					   "kernel_size, got %s with %lld in dimension %d",
					   op->schema.name, SHAPE_STR(self),
					   (long long)p->kernel[SPATIAL - self->ndim + i], i);
	return 0;
}

int pool_infer_average(const struct tensor_op *op, int n, const tensor *self,
		       tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
		       bool ceil_mode, bool count_include_pad, int64_t divisor,
		       struct pool_params *p, int64_t *sizes)
{
	if (avg_params(op, n, kernel_size, stride, padding, count_include_pad, divisor, p) < 0 ||
	    pool_infer(op, self, p, ceil_mode, sizes) < 0)
		return error_code();
	return check_cover(op, self, p);
}

static int avg_pool(const struct tensor_op *op, int n, tensor **out, tensor *self,
		    tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
		    bool ceil_mode, bool count_include_pad, int64_t divisor_override)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	struct pool_params p;

	if (pool_infer_average(op, n, self, kernel_size, stride, padding, ceil_mode,
			       count_include_pad, divisor_override, &p, sizes) < 0)
		return error_code();
	return pool_run(op, out, self, sizes, &p);
}

static int avg_pool_backward(const struct tensor_op *op, int n, tensor **out, tensor *grad_output,
			     tensor *self, tensor_ints kernel_size, tensor_ints stride,
			     tensor_ints padding, bool ceil_mode, bool count_include_pad,
			     int64_t divisor_override)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	struct pool_params p;

	if (avg_params(op, n, kernel_size, stride, padding, count_include_pad, divisor_override,
		       &p) < 0 ||
	    pool_infer(op, self, &p, ceil_mode, sizes) < 0 ||
	    pool_check_gradient(op, grad_output, self, sizes, NULL) < 0)
		return error_code();
	return pool_run(op, out, grad_output, self->sizes, &p);
}

int op_avg_pool2d(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints kernel_size,
		  tensor_ints stride, tensor_ints padding, bool ceil_mode, bool count_include_pad,
		  int64_t divisor_override)
{
	return avg_pool(op, 2, out, self, kernel_size, stride, padding, ceil_mode,
			count_include_pad, divisor_override);
}

int op_avg_pool2d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			   tensor *self, tensor_ints kernel_size, tensor_ints stride,
			   tensor_ints padding, bool ceil_mode, bool count_include_pad,
			   int64_t divisor_override)
{
	return avg_pool_backward(op, 2, out, grad_output, self, kernel_size, stride, padding,
				 ceil_mode, count_include_pad, divisor_override);
}

int op_avg_pool3d(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints kernel_size,
		  tensor_ints stride, tensor_ints padding, bool ceil_mode, bool count_include_pad,
		  int64_t divisor_override)
{
	return avg_pool(op, 3, out, self, kernel_size, stride, padding, ceil_mode,
			count_include_pad, divisor_override);
}

int op_avg_pool3d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			   tensor *self, tensor_ints kernel_size, tensor_ints stride,
			   tensor_ints padding, bool ceil_mode, bool count_include_pad,
			   int64_t divisor_override)
{
	return avg_pool_backward(op, 3, out, grad_output, self, kernel_size, stride, padding,
				 ceil_mode, count_include_pad, divisor_override);
}

/* ---- maxima ---- */

int pool_run_max(const struct tensor_op *op, tensor **output, tensor **indices, tensor *self,
		 const int64_t *sizes, const struct pool_params *p)
{
	const tensor *inputs[] = { self };
	struct op_output v, i;
	tensor *dense = NULL;
	max_pool_kernel fn;
	int err;

	if (*output && tensor_overlap(*output, *indices) != OVERLAP_NONE)
		return tensor_fail(EINVAL, "%s: output and indices share memory", op->schema.name);
	if (output_begin_dense(op, &v, *output, self->dtype, sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	if (output_begin_dense(op, &i, *indices, TENSOR_I64, sizes, self->ndim, inputs, 1) < 0)
		return output_end(op, &v, output, error_code());
	if (self->ndim == p->spatial + 2) {
		output_keep_format(&v, self);
		output_keep_format(&i, self);
	}
	fn = (max_pool_kernel)op_kernel(op, op->kernels, v.t);
	if (fn)
		dense = operand_dense(self);
	err = dense ? fn(v.t, i.t, dense, p) : error_code();
	tensor_put(dense);
	err = output_end(op, &i, indices, err);
	err = output_end(op, &v, output, err);
	if (err && !i.given) {
		tensor_put(*indices);
		*indices = NULL;
	}
	return err;
}

int pool_run_max_backward(const struct tensor_op *op, tensor **out, tensor *grad, tensor *self,
			  tensor *indices, int n)
{
	const struct pool_params p = { .spatial = n };
	const tensor *inputs[] = { grad, indices };
	tensor *dense = NULL, *places = NULL;
	max_pool_backward_kernel fn;
	struct op_output o;
	int err;

	if (output_begin_dense(op, &o, *out, self->dtype, self->sizes, self->ndim, inputs, 2) < 0)
		return error_code();
	fn = (max_pool_backward_kernel)op_kernel(op, op->kernels, o.t);
	if (fn)
		dense = operand_dense(grad);
	if (dense)
		places = operand_contiguous(indices);
	err = places ? fn(o.t, dense, places, &p) : error_code();
	tensor_put(dense);
	tensor_put(places);
	return output_end(op, &o, out, err);
}

static int max_pool(const struct tensor_op *op, int n, tensor **output, tensor **indices,
		    tensor *self, tensor_ints kernel_size, tensor_ints stride, tensor_ints padding,
		    tensor_ints dilation, bool ceil_mode)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	struct pool_params p;

	if (pool_get_params(op, n, kernel_size, stride, padding, dilation, &p) < 0 ||
	    pool_infer(op, self, &p, ceil_mode, sizes) < 0)
		return error_code();
	return pool_run_max(op, output, indices, self, sizes, &p);
}

static int max_pool_backward(const struct tensor_op *op, int n, tensor **out, tensor *grad_output,
			     tensor *self, tensor_ints kernel_size, tensor_ints stride,
			     tensor_ints padding, tensor_ints dilation, bool ceil_mode,
			     tensor *indices)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	struct pool_params p;

	if (pool_get_params(op, n, kernel_size, stride, padding, dilation, &p) < 0 ||
	    pool_infer(op, self, &p, ceil_mode, sizes) < 0 ||
	    pool_check_gradient(op, grad_output, self, sizes, indices) < 0)
		return error_code();
	return pool_run_max_backward(op, out, grad_output, self, indices, n);
}

int op_max_pool2d_with_indices(const struct tensor_op *op, tensor **output, tensor **indices,
			       tensor *self, tensor_ints kernel_size, tensor_ints stride,
			       tensor_ints padding, tensor_ints dilation, bool ceil_mode)
{
	return max_pool(op, 2, output, indices, self, kernel_size, stride, padding, dilation,
			ceil_mode);
}

int op_max_pool2d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			   tensor *self, tensor_ints kernel_size, tensor_ints stride,
			   tensor_ints padding, tensor_ints dilation, bool ceil_mode,
			   tensor *indices)
{
	return max_pool_backward(op, 2, out, grad_output, self, kernel_size, stride, padding,
				 dilation, ceil_mode, indices);
}

int op_max_pool3d_with_indices(const struct tensor_op *op, tensor **output, tensor **indices,
			       tensor *self, tensor_ints kernel_size, tensor_ints stride,
			       tensor_ints padding, tensor_ints dilation, bool ceil_mode)
{
	return max_pool(op, 3, output, indices, self, kernel_size, stride, padding, dilation,
			ceil_mode);
}

int op_max_pool3d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			   tensor *self, tensor_ints kernel_size, tensor_ints stride,
			   tensor_ints padding, tensor_ints dilation, bool ceil_mode,
			   tensor *indices)
{
	return max_pool_backward(op, 3, out, grad_output, self, kernel_size, stride, padding,
				 dilation, ceil_mode, indices);
}

/* ---- composites ---- */

/* Output of a pooling that also returned indices, which are released. */
static tensor *without_indices(int err, tensor *output, tensor *indices)
{
	if (err < 0)
		return NULL;
	tensor_put(indices);
	return output;
}

tensor *composite_max_pool1d(tensor *self, tensor_ints kernel_size, tensor_ints stride,
			     tensor_ints padding, tensor_ints dilation, bool ceil_mode)
{
	tensor *output = NULL, *indices = NULL;
	int err = call_max_pool1d_with_indices(self, kernel_size, stride, padding, dilation,
					       ceil_mode, &output, &indices);

	return without_indices(err, output, indices);
}

tensor *composite_max_pool2d(tensor *self, tensor_ints kernel_size, tensor_ints stride,
			     tensor_ints padding, tensor_ints dilation, bool ceil_mode)
{
	tensor *output = NULL, *indices = NULL;
	int err = call_max_pool2d_with_indices(self, kernel_size, stride, padding, dilation,
					       ceil_mode, &output, &indices);

	return without_indices(err, output, indices);
}

tensor *composite_max_pool3d(tensor *self, tensor_ints kernel_size, tensor_ints stride,
			     tensor_ints padding, tensor_ints dilation, bool ceil_mode)
{
	tensor *output = NULL, *indices = NULL;
	int err = call_max_pool3d_with_indices(self, kernel_size, stride, padding, dilation,
					       ceil_mode, &output, &indices);

	return without_indices(err, output, indices);
}

/* A list argument for one dimension, extended to two; the added one has no effect. */
struct wide_list {
	int64_t v[2];
	tensor_ints list;
};

static int widen(const char *op, const char *name, tensor_ints given, int64_t first, bool optional,
		 struct wide_list *w)
{
	if (given.len != 1 && !(optional && given.len <= 0))
		return tensor_fail(EINVAL, "%s: %s must have one number, got %lld", op, name,
				   (long long)given.len);
	w->v[0] = first;
	w->v[1] = given.len == 1 ? given.data[0] : 0;
	w->list = (tensor_ints){ w->v, given.len == 1 ? 2 : 0 };
	return 0;
}

/* self with a dimension of size 1 before the last. Owned. */
tensor *pool_unsqueeze(const char *op, tensor *self)
{
	if (self->ndim == 2 || self->ndim == 3)
		return call_unsqueeze(self, -2);
	return tensor_fail_null(EINVAL,
				"%s: self must have 2 dimensions, or 3 with a batch, got %s", op,
				SHAPE_STR(self));
}

/* Removes it again; consumes the reference. */
tensor *pool_squeeze(tensor *t)
{
	tensor *result = t ? call_squeeze_dim(t, -2) : NULL;

	tensor_put(t);
	return result;
}

tensor *composite_avg_pool1d(tensor *self, tensor_ints kernel_size, tensor_ints stride,
			     tensor_ints padding, bool ceil_mode, bool count_include_pad)
{
	struct wide_list k, s, p;
	tensor *flat, *result;

	if (widen("avg_pool1d", "kernel_size", kernel_size, 1, false, &k) < 0 ||
	    widen("avg_pool1d", "stride", stride, 1, true, &s) < 0 ||
	    widen("avg_pool1d", "padding", padding, 0, false, &p) < 0)
		return NULL;
	flat = pool_unsqueeze("avg_pool1d", self);
	result = flat ? call_avg_pool2d(flat, k.list, s.list, p.list, ceil_mode, count_include_pad,
					TENSOR_NONE) :
			NULL;
	tensor_put(flat);
	return pool_squeeze(result);
}

int composite_max_pool1d_with_indices(tensor *self, tensor_ints kernel_size, tensor_ints stride,
				      tensor_ints padding, tensor_ints dilation, bool ceil_mode,
				      tensor **output, tensor **indices)
{
	struct wide_list k, s, p, d;
	tensor *flat;
	int err;

	if (widen("max_pool1d", "kernel_size", kernel_size, 1, false, &k) < 0 ||
	    widen("max_pool1d", "stride", stride, 1, true, &s) < 0 ||
	    widen("max_pool1d", "padding", padding, 0, false, &p) < 0 ||
	    widen("max_pool1d", "dilation", dilation, 1, false, &d) < 0)
		return error_code();
	flat = pool_unsqueeze("max_pool1d", self);
	err = flat ? call_max_pool2d_with_indices(flat, k.list, s.list, p.list, d.list, ceil_mode,
						  output, indices) :
		     error_code();
	tensor_put(flat);
	return err < 0 ? err : pool_squeeze_both(output, indices);
}

int pool_squeeze_both(tensor **output, tensor **indices)
{
	*output = pool_squeeze(*output);
	*indices = pool_squeeze(*indices);
	if (*output && *indices)
		return 0;
	tensor_put(*output);
	tensor_put(*indices);
	*output = *indices = NULL;
	return error_code();
}
