// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fronts of reductions: sum, mean, max, argmax. Kernels see the output with the input's rank,
 * reduced dimensions with size 1 and stride 0, so that they need not know about keepdim.
 */
#include "front.h"

static uint32_t all_dims(const tensor *self)
{
	return (1u << self->ndim) - 1;
}

/* The dimensions of a list, all of them for an empty one. 0, or -errno with the error set. */
static int dims_mask(const struct tensor_op *op, const tensor *self, tensor_ints dim,
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
	*mask &= all_dims(self); /* of a 0-d tensor there is nothing to name */
	return 0;
}

static int dim_mask(const struct tensor_op *op, const tensor *self, int64_t dim, uint32_t *mask)
{
	return dims_mask(op, self, (tensor_ints){&dim, 1}, mask);
}

/* The result's shape; its rank. */
static int result_sizes(const tensor *self, uint32_t dims, bool keepdim, int64_t *sizes)
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

/* out as kernels take it. */
static tensor *kernel_view(tensor *view, const tensor *out, const tensor *self, uint32_t dims)
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
	view->grad = NULL;
	view->ext = NULL;
	for (int d = 0; d < self->ndim; d++) {
		bool reduced = dims >> d & 1;

		view->sizes[d] = reduced ? 1 : self->sizes[d];
		view->strides[d] = reduced ? 0 : out->strides[k];
		k += keepdim || !reduced;
	}
	return view;
}

static int run(const struct tensor_op *op, tensor *out, const tensor *self, uint32_t dims)
{
	reduce_kernel fn = (reduce_kernel)op_loop(op, op->loops, self);
	tensor view;

	return fn ? fn(kernel_view(&view, out, self, dims), self, dims) : error_code();
}

/* ---- sum and mean ----------------------------------------------------------------- */

static bool is_integral(enum tensor_dtype d)
{
	return d <= TENSOR_I64;
}

/* The kernel's own result goes into another dtype than that it computes in. */
static int run_apart(const struct tensor_op *op, tensor *out, const tensor *self, uint32_t dims,
		     enum tensor_dtype acc)
{
	tensor *t = tensor_new(out->device, acc, out->sizes, out->ndim);
	int err = t ? run(op, t, self, dims) : error_code();

	if (!err)
		err = front_copy(out, t);
	tensor_put(t);
	return err;
}

static int divide(const struct tensor_op *op, tensor *t, int64_t n)
{
	pointwise_kernel fn = (pointwise_kernel)op_loop(op, &loops_div, t);
	const tensor *ops[] = {t, t, NULL};
	_Alignas(16) char value[16];
	struct tensor_iter it;

	if (!fn)
		return error_code();
	if (element_store(value, t->dtype, tensor_scalar_float((double)n)) < 0)
		return kernel_no_dtype(op->schema.name, t->dtype, "cpu");
	it.dtype = t->dtype;
	iter_scalar(&it, 2, value);
	iter_build(&it, ops, 3);
	return fn(&it, NULL);
}

static int64_t reduced_count(const tensor *self, uint32_t dims)
{
	int64_t n = 1;

	for (int d = 0; d < self->ndim; d++)
		n *= dims >> d & 1 ? self->sizes[d] : 1;
	return n;
}

static int sum(const struct tensor_op *op, tensor **out, tensor *self, uint32_t dims, bool keepdim,
	       enum tensor_dtype dtype, bool mean)
{
	enum tensor_dtype in = dtype ? dtype : self->dtype;
	enum tensor_dtype acc = is_integral(in) ? TENSOR_I64 : in, result = dtype ? dtype : acc;
	const tensor *inputs[] = {self};
	int64_t sizes[TENSOR_MAX_DIMS];
	int ndim = result_sizes(self, dims, keepdim, sizes), err = 0;
	tensor *cast = NULL;
	struct front_out o;

	if (front_begin(op, &o, *out, result, sizes, ndim, inputs, 1) < 0)
		return error_code();
	/* Kernels add integers of any kind as i64. */
	if (unlikely(self->dtype != in && !(in == TENSOR_I64 && is_integral(self->dtype)))) {
		self = cast = front_cast(self, in);
		err = cast ? 0 : error_code();
	}
	if (!err)
		err = likely(acc == result) ? run(op, o.t, self, dims) :
					      run_apart(op, o.t, self, dims, acc);
	if (!err && mean)
		err = divide(op, o.t, reduced_count(self, dims));
	tensor_put(cast);
	return front_end(op, &o, out, err);
}

int front_sum(const struct tensor_op *op, tensor **out, tensor *self, enum tensor_dtype dtype)
{
	return sum(op, out, self, all_dims(self), false, dtype, false);
}

int front_sum_dim(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim,
		  bool keepdim, enum tensor_dtype dtype)
{
	uint32_t dims;

	if (dims_mask(op, self, dim, &dims) < 0)
		return error_code();
	return sum(op, out, self, dims, keepdim, dtype, false);
}

static int check_mean(const struct tensor_op *op, const tensor *self, enum tensor_dtype dtype)
{
	if (!is_integral(dtype ? dtype : self->dtype))
		return 0;
	return tensor_fail(EINVAL, "%s: a floating dtype is needed, got %s%s", op->schema.name,
			   tensor_dtype_name(dtype ? dtype : self->dtype),
			   dtype ? "" : "; give one as dtype");
}

int front_mean(const struct tensor_op *op, tensor **out, tensor *self, enum tensor_dtype dtype)
{
	if (check_mean(op, self, dtype) < 0)
		return error_code();
	return sum(op, out, self, all_dims(self), false, dtype, true);
}

int front_mean_dim(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim,
		   bool keepdim, enum tensor_dtype dtype)
{
	uint32_t dims;

	if (check_mean(op, self, dtype) < 0 || dims_mask(op, self, dim, &dims) < 0)
		return error_code();
	return sum(op, out, self, dims, keepdim, dtype, true);
}

/* ---- max and argmax ----------------------------------------------------------------- */

/* There is no greatest of nothing. */
static int check_elements(const struct tensor_op *op, const tensor *self, uint32_t dims)
{
	if (likely(reduced_count(self, dims)))
		return 0;
	return tensor_fail(EINVAL, "%s: there are no elements to reduce in self %s",
			   op->schema.name, SHAPE_STR(self));
}

int front_max(const struct tensor_op *op, tensor **out, tensor *self)
{
	const tensor *inputs[] = {self};
	uint32_t dims = all_dims(self);
	struct front_out o;

	if (check_elements(op, self, dims) < 0 ||
	    front_begin(op, &o, *out, self->dtype, NULL, 0, inputs, 1) < 0)
		return error_code();
	return front_end(op, &o, out, run(op, o.t, self, dims));
}

static int run_index(const struct tensor_op *op, tensor *values, tensor *indices,
		     const tensor *self, uint32_t dims)
{
	reduce_index_kernel fn = (reduce_index_kernel)op_loop(op, op->loops, self);
	tensor views[2];

	if (!fn)
		return error_code();
	return fn(values ? kernel_view(&views[0], values, self, dims) : NULL,
		  kernel_view(&views[1], indices, self, dims), self, dims);
}

int front_max_dim(const struct tensor_op *op, tensor **values, tensor **indices, tensor *self,
		  int64_t dim, bool keepdim)
{
	const tensor *inputs[] = {self};
	int64_t sizes[TENSOR_MAX_DIMS];
	struct front_out v, i;
	uint32_t dims;
	int ndim, err;

	if (dim_mask(op, self, dim, &dims) < 0 || check_elements(op, self, dims) < 0)
		return error_code();
	ndim = result_sizes(self, dims, keepdim, sizes);
	if (*values && tensor_overlap(*values, *indices) != OVERLAP_NONE)
		return tensor_fail(EINVAL, "%s: values and indices share memory",
				   op->schema.name);
	if (front_begin(op, &v, *values, self->dtype, sizes, ndim, inputs, 1) < 0)
		return error_code();
	if (front_begin(op, &i, *indices, TENSOR_I64, sizes, ndim, inputs, 1) < 0)
		return front_end(op, &v, values, error_code());
	err = front_end(op, &i, indices, run_index(op, v.t, i.t, self, dims));
	err = front_end(op, &v, values, err);
	if (err && !i.given) {
		tensor_put(*indices);
		*indices = NULL;
	}
	return err;
}

int front_argmax(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim, bool keepdim)
{
	bool flat = dim == TENSOR_NONE;
	const tensor *inputs[] = {self};
	int64_t sizes[TENSOR_MAX_DIMS];
	struct front_out o;
	uint32_t dims = all_dims(self);
	tensor *dense;
	int err;

	if ((!flat && dim_mask(op, self, dim, &dims) < 0) || check_elements(op, self, dims) < 0 ||
	    front_begin(op, &o, *out, TENSOR_I64, sizes, result_sizes(self, dims, keepdim, sizes),
			inputs, 1) < 0)
		return error_code();
	dense = flat ? front_contiguous(self) : tensor_get(self);
	err = dense ? run_index(op, NULL, o.t, dense, dims) : error_code();
	tensor_put(dense);
	return front_end(op, &o, out, err);
}
