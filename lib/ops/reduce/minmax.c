// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of extrema: max, min, amax, amin, aminmax, argmax, argmin. */
#include "ops/reduce/reduce.h"

#include "family/binary.h"
#include "family/reduce.h"

static int check_ordered(const struct tensor_op *op, const tensor *self)
{
	if (likely(!dtype_is_complex(self->dtype)))
		return 0;
	return tensor_fail(EINVAL, "%s: complex numbers have no order, got %s", op->schema.name,
			   tensor_dtype_name(self->dtype));
}

/* EINVAL if out has another dtype than self: extrema are not converted. */
static int check_out_dtype(const struct tensor_op *op, const tensor *self, const tensor *out)
{
	if (!out || out->dtype == self->dtype)
		return 0;
	return tensor_fail(EINVAL, "%s: out must have self's dtype, %s, got %s", op->schema.name,
			   tensor_dtype_name(self->dtype), tensor_dtype_name(out->dtype));
}

int op_max(const struct tensor_op *op, tensor **out, tensor *self)
{
	uint32_t dims = all_dims(self);

	if (check_ordered(op, self) < 0 || reduce_check_elements(op, self, dims) < 0)
		return error_code();
	return reduce_op(op, op->kernels, out, self, dims, false, self->dtype);
}

int op_amax(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim, bool keepdim)
{
	uint32_t dims;

	if (check_ordered(op, self) < 0 || reduce_dims_mask(op, self, dim, &dims) < 0 ||
	    reduce_check_elements(op, self, dims) < 0 || check_out_dtype(op, self, *out) < 0)
		return error_code();
	return reduce_op(op, op->kernels, out, self, dims, keepdim, self->dtype);
}

int op_aminmax(const struct tensor_op *op, tensor **min, tensor **max, tensor *self, int64_t dim,
	       bool keepdim)
{
	bool given = *min;
	uint32_t dims = all_dims(self);
	int err;

	if (check_ordered(op, self) < 0 ||
	    (dim != TENSOR_NONE && reduce_dim_mask(op, self, dim, &dims) < 0) ||
	    reduce_check_elements(op, self, dims) < 0 || reduce_check_apart(op, *min, *max) < 0 ||
	    check_out_dtype(op, self, *min) < 0 || check_out_dtype(op, self, *max) < 0)
		return error_code();
	err = reduce_op(op, op->kernels, min, self, dims, keepdim, self->dtype);
	if (!err)
		err = reduce_drop_result(min, given,
					 reduce_op(op, &kernels_max_all, max, self, dims, keepdim,
						   self->dtype));
	return err;
}

/* ---- with indices ---- */

static int run_index(const struct tensor_op *op, tensor *values, tensor *indices,
		     const tensor *self, uint32_t dims)
{
	reduce_index_kernel fn = (reduce_index_kernel)op_kernel(op, op->kernels, self);
	tensor views[2];

	if (!fn)
		return error_code();
	return fn(values ? reduce_view(&views[0], values, self, dims) : NULL,
		  reduce_view(&views[1], indices, self, dims), self, dims);
}

int op_max_dim(const struct tensor_op *op, tensor **values, tensor **indices, tensor *self,
	       int64_t dim, bool keepdim)
{
	const tensor *inputs[] = { self };
	int64_t sizes[TENSOR_MAX_DIMS];
	bool given = *indices;
	struct op_output v, i;
	tensor *wide;
	uint32_t dims;
	int ndim, err;

	if (check_ordered(op, self) < 0 || reduce_dim_mask(op, self, dim, &dims) < 0 ||
	    reduce_check_elements(op, self, dims) < 0 ||
	    reduce_check_apart(op, *values, *indices) < 0)
		return error_code();
	ndim = reduce_sizes(self, dims, keepdim, sizes);
	if (output_begin_wide(op, &v, *values, self->dtype, sizes, ndim, inputs, 1) < 0)
		return error_code();
	if (output_begin(op, &i, *indices, TENSOR_I64, sizes, ndim, inputs, 1) < 0)
		return output_end(op, &v, values, error_code());
	wide = operand_widen(self);
	err = wide ? run_index(op, v.t, i.t, wide, dims) : error_code();
	tensor_put(wide);
	err = output_end(op, &i, indices, err);
	err = output_end(op, &v, values, err);
	return reduce_drop_result(indices, given, err);
}

int op_argmax(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim, bool keepdim)
{
	bool flat = dim == TENSOR_NONE;
	const tensor *inputs[] = { self };
	int64_t sizes[TENSOR_MAX_DIMS];
	struct op_output o;
	uint32_t dims = all_dims(self);
	tensor *wide, *dense = NULL;
	int err;

	if (check_ordered(op, self) < 0 || (!flat && reduce_dim_mask(op, self, dim, &dims) < 0) ||
	    reduce_check_elements(op, self, dims) < 0 ||
	    output_begin(op, &o, *out, TENSOR_I64, sizes, reduce_sizes(self, dims, keepdim, sizes),
			 inputs, 1) < 0)
		return error_code();
	wide = operand_widen(self);
	if (wide)
		dense = flat ? operand_contiguous(wide) : tensor_get(wide);
	err = dense ? run_index(op, NULL, o.t, dense, dims) : error_code();
	tensor_put(dense);
	tensor_put(wide);
	return output_end(op, &o, out, err);
}

/* ---- elementwise ---- */

tensor *composite_max_other(tensor *self, tensor *other)
{
	return call_maximum(self, other);
}

tensor *composite_min_other(tensor *self, tensor *other)
{
	return call_minimum(self, other);
}
