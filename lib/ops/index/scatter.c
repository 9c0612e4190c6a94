// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of scatter, index_copy and index_fill. A scalar source is one element with
 * stride 0. */
#include "ops/index/indexing.h"

#include "family/copy.h"
#include "family/scatter.h"

/* ---- scatter ---- */

static int call_scatter_kernel(const struct tensor_op *op, tensor_kernel fn, tensor *out, int d,
			       const tensor *index, const tensor *source, const void *mode)
{
	return ((scatter_kernel)fn)(op->schema.name, out, d, index, source,
				    *(const enum scatter_mode *)mode);
}

tensor *index_repeated(const tensor *self, tensor_scalar value, const int64_t *sizes, int ndim)
{
	const int64_t strides[TENSOR_MAX_DIMS] = { 0 };
	tensor *one = tensor_new(self->device, self->dtype, NULL, 0), *t = NULL;

	if (one && call_fill__Scalar(one, value))
		t = tensor_new_view(one, sizes, strides, ndim, 0);
	tensor_put(one);
	return t;
}

int index_check_scatter(const struct tensor_op *op, const tensor *self, int d, const tensor *index,
			const tensor *src)
{
	if (index_check(op, index) < 0 || (src && index_check_same_dtype(op, "src", self, src) < 0))
		return error_code();
	if (index->numel && (index_check_within(op, index, "self", self, d) < 0 ||
			     (src && index_check_within(op, index, "src", src, -1) < 0)))
		return error_code();
	return 0;
}

static int scatter(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		   tensor *index, tensor *src, enum scatter_mode mode)
{
	int d = wrap_dim(op->schema.name, dim, self->ndim);

	if (d < 0 || index_check_scatter(op, self, d, index, src) < 0)
		return error_code();
	return index_put_into(op, out, self, d, index, src, call_scatter_kernel, &mode);
}

static int scatter_value(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
			 tensor *index, tensor_scalar value, enum scatter_mode mode)
{
	tensor *src = index_repeated(self, value, index->sizes, index->ndim);
	int err = src ? scatter(op, out, self, dim, index, src, mode) : error_code();

	tensor_put(src);
	return err;
}

int op_scatter_src(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		   tensor *index, tensor *src)
{
	return scatter(op, out, self, dim, index, src, SCATTER_SET);
}

int op_scatter_value(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		     tensor *index, tensor_scalar value)
{
	return scatter_value(op, out, self, dim, index, value, SCATTER_SET);
}

/* ---- index_copy, index_fill: scatter with a vector of positions ---- */

int op_index_copy(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		  tensor *index, tensor *source)
{
	const enum scatter_mode mode = SCATTER_SET;
	int d = wrap_dim(op->schema.name, dim, self->ndim);

	if (d < 0 || index_check_vector(op, index) < 0 ||
	    index_check_same_dtype(op, "source", self, source) < 0 ||
	    index_check_source(op, self, d, index, source) < 0)
		return error_code();
	return index_put_into(op, out, self, d, index, source, call_scatter_kernel, &mode);
}

static int call_index_put_kernel(const struct tensor_op *op, tensor_kernel fn, tensor *out, int d,
				 const tensor *index, const tensor *source, const void *unused)
{
	const int64_t sizes[] = { 1, index->numel }, strides[] = { 0, index->strides[0] };
	tensor *at = tensor_new_view((tensor *)index, sizes, strides, 2, index->offset);
	int err =
		at ? ((index_put_kernel)fn)(op->schema.name, out, at, &d, 1, source, SCATTER_SET) :
		     error_code();

	tensor_put(at);
	return err;
}

/* As in PyTorch, negative positions count from the end here, so the kernel of index_put is used. */
int op_index_fill(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		  tensor *index, tensor_scalar value)
{
	int d = wrap_dim(op->schema.name, dim, self->ndim), err;
	tensor *source, *wide;
	int64_t sizes[TENSOR_MAX_DIMS];

	if (d < 0 || index_check_vector(op, index) < 0)
		return error_code();
	if (value.kind == TENSOR_SCALAR_COMPLEX && !dtype_is_complex(self->dtype))
		return tensor_fail(EINVAL, "%s: a complex value cannot be stored in %s",
				   op->schema.name, tensor_dtype_name(self->dtype));
	memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
	sizes[d] = index->numel;
	wide = operand_cast(index, TENSOR_I64);
	/* A 0-d self is a vector of one element, which the index may contain more than once. */
	source = wide ? index_repeated(self, value, sizes, self->ndim ? self->ndim : 1) : NULL;
	err = source ? index_put_into_like(op, out, self, d, wide, source, call_index_put_kernel,
					   NULL) :
		       error_code();
	tensor_put(source);
	tensor_put(wide);
	return err;
}

int op_index_fill_tensor(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
			 tensor *index, tensor *value)
{
	_Alignas(16) char element[16];
	tensor_scalar v;

	if (value->ndim)
		return tensor_fail(EINVAL, "%s: value must be 0-d, got shape %s", op->schema.name,
				   SHAPE_STR(value));
	if (tensor_copy_to(value, element, itemsize(value)) < 0)
		return error_code();
	if (element_load(element, value->dtype, &v) < 0)
		return tensor_kernel_no_dtype(op->schema.name, value->dtype, "cpu");
	return op_index_fill(op, out, self, dim, index, v);
}
