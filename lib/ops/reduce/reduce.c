// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of reductions: sum, mean, prod, any, all and others; functions shared by all
 * reductions. */
#include "ops/reduce/reduce.h"

#include "family/binary.h"
#include "family/reduce.h"

int reduce_dims_mask(const struct tensor_op *op, const tensor *self, tensor_ints dim,
		     uint32_t *mask)
{
	*mask = 0;
	for (int64_t i = 0; i < dim.len; i++) {
		int d = wrap_dim(op->schema.name, dim.data[i], self->ndim);

		if (d < 0)
			return error_code();
		if (*mask >> d & 1)
			return tensor_fail(EINVAL, "%s: dimension %d appears twice in dim",
					   op->schema.name, d);
		*mask |= 1u << d;
	}
	if (dim.len <= 0)
		*mask = all_dims(self);
	*mask &= all_dims(self); /* a 0-d tensor has no dimension to reduce */
	return 0;
}

int reduce_dim_mask(const struct tensor_op *op, const tensor *self, int64_t dim, uint32_t *mask)
{
	return reduce_dims_mask(op, self, (tensor_ints){ &dim, 1 }, mask);
}

int reduce_sizes(const tensor *self, uint32_t dims, bool keepdim, int64_t *sizes)
{
	int n = 0;

	for (int d = 0; d < self->ndim; d++) {
		if (!(dims >> d & 1))
			sizes[n++] = self->sizes[d];
		else if (keepdim)
			sizes[n++] = 1;
	}
	return n;
}

int64_t reduce_count(const tensor *self, uint32_t dims)
{
	int64_t n = 1;

	for (int d = 0; d < self->ndim; d++)
		n *= dims >> d & 1 ? self->sizes[d] : 1;
	return n;
}

int reduce_check_elements(const struct tensor_op *op, const tensor *self, uint32_t dims)
{
	if (likely(reduce_count(self, dims)))
		return 0;
	return tensor_fail(EINVAL, "%s: there are no elements to reduce in self %s",
			   op->schema.name, SHAPE_STR(self));
}

int reduce_check_apart(const struct tensor_op *op, const tensor *a, const tensor *b)
{
	if (!a || tensor_overlap(a, b) == OVERLAP_NONE)
		return 0;
	return tensor_fail(EINVAL, "%s: %s and %s share memory", op->schema.name,
			   op->schema.args[op->schema.nargs - 2].name,
			   op->schema.args[op->schema.nargs - 1].name);
}

int reduce_drop_result(tensor **first, bool was_given, int err)
{
	if (err && !was_given) {
		tensor_put(*first);
		*first = NULL;
	}
	return err;
}

tensor *reduce_view(tensor *view, const tensor *out, const tensor *self, uint32_t dims)
{
	bool keepdim = out->ndim == self->ndim;
	int k = 0;

	view->refs = 1;
	view->keys = out->keys;
	view->dtype = out->dtype;
	view->layout = out->layout;
	view->ndim = self->ndim;
	view->contiguous = out->contiguous;
	view->device = out->device;
	view->owns_storage = view->differentiable_view = false;
	view->data = out->data;
	view->storage = out->storage;
	view->offset = out->offset;
	view->numel = out->numel;
	view->base = NULL;
	view->autograd_meta = NULL;
	view->ext = NULL;
	for (int d = 0; d < self->ndim; d++) {
		bool reduced = dims >> d & 1;

		view->sizes[d] = reduced ? 1 : self->sizes[d];
		view->strides[d] = reduced ? 0 : out->strides[k];
		k += keepdim || !reduced;
	}
	return view;
}

static int run_kernel(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		      tensor *out, const tensor *self, uint32_t dims)
{
	reduce_kernel fn = (reduce_kernel)op_kernel(op, kernels, self);
	tensor view;

	return fn ? fn(reduce_view(&view, out, self, dims), self, dims) : error_code();
}

int reduce_op(const struct tensor_op *op, const struct tensor_kernel_table *kernels, tensor **out,
	      tensor *self, uint32_t dims, bool keepdim, enum tensor_dtype dtype)
{
	const tensor *inputs[] = { self };
	int64_t sizes[TENSOR_MAX_DIMS];
	int ndim = reduce_sizes(self, dims, keepdim, sizes);
	struct op_output o;

	if (output_begin(op, &o, *out, dtype, sizes, ndim, inputs, 1) < 0)
		return error_code();
	return output_end(op, &o, out, run_kernel(op, kernels, o.t, self, dims));
}

int reduce_op_with(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		   tensor **out, tensor *self, uint32_t dims, bool keepdim, enum tensor_dtype dtype,
		   double p)
{
	reduce_with_kernel fn = (reduce_with_kernel)op_kernel(op, kernels, self);
	const tensor *inputs[] = { self };
	int64_t sizes[TENSOR_MAX_DIMS];
	int ndim = reduce_sizes(self, dims, keepdim, sizes);
	struct op_output o;
	tensor view;

	if (!fn || output_begin(op, &o, *out, dtype, sizes, ndim, inputs, 1) < 0)
		return error_code();
	return output_end(op, &o, out, fn(reduce_view(&view, o.t, self, dims), self, dims, p));
}

/* ---- sum, mean, prod ---- */

/* Kernels of other devices need the input in the dtype of the sum, which is also the output's. */
static int sum_elsewhere(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
			 tensor **out, tensor *self, uint32_t dims, bool keepdim,
			 enum tensor_dtype in, enum tensor_dtype result)
{
	enum tensor_dtype acc = dtype_is_integral(in) ? TENSOR_I64 : in;
	const tensor *inputs[] = { self };
	int64_t sizes[TENSOR_MAX_DIMS];
	int ndim = reduce_sizes(self, dims, keepdim, sizes), err;
	struct op_output o;
	tensor *cast, *t;

	if (output_begin(op, &o, *out, result, sizes, ndim, inputs, 1) < 0)
		return error_code();
	cast = dtype_is_integral(self->dtype) && dtype_is_integral(in) ? tensor_get(self) :
									 operand_cast(self, in);
	t = acc == result ? tensor_get(o.t) : tensor_new(o.t->device, acc, sizes, ndim);
	err = cast && t ? run_kernel(op, kernels, t, cast, dims) : error_code();
	if (!err && t != o.t)
		err = operand_copy(o.t, t);
	tensor_put(t);
	tensor_put(cast);
	return output_end(op, &o, out, err);
}

static int sum(const struct tensor_op *op, tensor **out, tensor *self, uint32_t dims, bool keepdim,
	       enum tensor_dtype dtype)
{
	enum tensor_dtype in = dtype ? dtype : self->dtype;
	enum tensor_dtype result = !dtype && dtype_is_integral(in) ? TENSOR_I64 : in;

	if (unlikely(self->device.type != TENSOR_CPU))
		return sum_elsewhere(op, op->kernels, out, self, dims, keepdim, in, result);
	return reduce_op(op, op->kernels, out, self, dims, keepdim, result);
}

int op_sum(const struct tensor_op *op, tensor **out, tensor *self, enum tensor_dtype dtype)
{
	return sum(op, out, self, all_dims(self), false, dtype);
}

int op_sum_dim(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim,
	       bool keepdim, enum tensor_dtype dtype)
{
	uint32_t dims;

	if (reduce_dims_mask(op, self, dim, &dims) < 0)
		return error_code();
	return sum(op, out, self, dims, keepdim, dtype);
}

int op_prod_dim(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim, bool keepdim,
		enum tensor_dtype dtype)
{
	return op_sum_dim(op, out, self, (tensor_ints){ &dim, 1 }, keepdim, dtype);
}

static int divide(const struct tensor_op *op, tensor *t, int64_t n)
{
	pointwise_kernel fn = (pointwise_kernel)op_kernel(op, &kernels_div, t);
	const tensor *ops[] = { t, t, NULL };
	_Alignas(16) char value[16];
	struct tensor_iter it;

	if (!fn)
		return error_code();
	if (tensor_element_store(value, dtype_wide(t->dtype), tensor_scalar_float((double)n)) < 0)
		return tensor_kernel_no_dtype(op->schema.name, t->dtype, "cpu");
	it.dtype = t->dtype;
	iter_scalar(&it, 2, value);
	iter_build(&it, ops, 3);
	return fn(&it, NULL);
}

static int mean(const struct tensor_op *op, tensor **out, tensor *self, uint32_t dims, bool keepdim,
		enum tensor_dtype dtype)
{
	enum tensor_dtype result = dtype ? dtype : self->dtype;
	bool given = *out;
	int err;

	if (dtype_is_integral(result))
		return tensor_fail(EINVAL, "%s: a floating dtype is needed, got %s%s",
				   op->schema.name, tensor_dtype_name(result),
				   dtype ? "" : "; give one as dtype");
	if (likely(self->device.type == TENSOR_CPU))
		return reduce_op(op, &kernels_mean, out, self, dims, keepdim, result);
	if (kernels_mean.fn[backend_key(self)])
		return sum_elsewhere(op, &kernels_mean, out, self, dims, keepdim, result, result);
	err = sum_elsewhere(op, op->kernels, out, self, dims, keepdim, result, result);
	if (!err)
		err = divide(op, *out, reduce_count(self, dims));
	return reduce_drop_result(out, given, err);
}

int op_mean(const struct tensor_op *op, tensor **out, tensor *self, enum tensor_dtype dtype)
{
	return mean(op, out, self, all_dims(self), false, dtype);
}

int op_mean_dim(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim,
		bool keepdim, enum tensor_dtype dtype)
{
	uint32_t dims;

	if (reduce_dims_mask(op, self, dim, &dims) < 0)
		return error_code();
	return mean(op, out, self, dims, keepdim, dtype);
}

/* ---- count_nonzero, any, all ---- */

int op_count_nonzero_dim(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim)
{
	uint32_t dims;

	if (reduce_dims_mask(op, self, dim, &dims) < 0)
		return error_code();
	return reduce_op(op, op->kernels, out, self, dims, false, TENSOR_I64);
}

int op_count_nonzero(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim)
{
	return op_count_nonzero_dim(op, out, self,
				    (tensor_ints){ &dim, dim == TENSOR_NONE ? 0 : 1 });
}

static int any(const struct tensor_op *op, tensor **out, tensor *self, uint32_t dims, bool keepdim)
{
	return reduce_op(op, op->kernels, out, self, dims, keepdim,
			 self->dtype == TENSOR_U8 ? TENSOR_U8 : TENSOR_BOOL);
}

int op_any(const struct tensor_op *op, tensor **out, tensor *self)
{
	return any(op, out, self, all_dims(self), false);
}

int op_any_dims(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim,
		bool keepdim)
{
	uint32_t dims;

	if (reduce_dims_mask(op, self, dim, &dims) < 0)
		return error_code();
	/* Unlike sum, any over an empty list of dimensions reduces none. */
	return any(op, out, self, dim.len ? dims : 0, keepdim);
}

int op_any_dim(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim, bool keepdim)
{
	return op_any_dims(op, out, self, (tensor_ints){ &dim, 1 }, keepdim);
}
