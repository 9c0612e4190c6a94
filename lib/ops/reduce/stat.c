// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of variance, norm and logsumexp. */
#include "ops/reduce/reduce.h"

#include "family/factory.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/reinterpret.h"
#include "family/stat.h"
#include "family/ternary.h"
#include "family/unary.h"
#include "family/view.h"

#include <math.h>

/* ---- variance ---- */

static int check_float(const struct tensor_op *op, const tensor *self)
{
	if (likely(!dtype_is_integral(self->dtype)))
		return 0;
	return tensor_fail(EINVAL, "%s: a floating dtype is needed, got %s", op->schema.name,
			   tensor_dtype_name(self->dtype));
}

static double correction_of(tensor_scalar s)
{
	return s.kind == TENSOR_SCALAR_NONE ? 1 : scalar_double(s);
}

static int variance(const struct tensor_op *op, tensor **out, tensor *self, uint32_t dims,
		    bool keepdim, double correction)
{
	if (check_float(op, self) < 0)
		return error_code();
	return reduce_op_with(op, op->kernels, out, self, dims, keepdim, dtype_real(self->dtype),
			      correction);
}

int op_var(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim,
	   tensor_scalar correction, bool keepdim)
{
	uint32_t dims;

	if (reduce_dims_mask(op, self, dim, &dims) < 0)
		return error_code();
	return variance(op, out, self, dims, keepdim, correction_of(correction));
}

int op_var_mean(const struct tensor_op *op, tensor **out, tensor **mean, tensor *self,
		tensor_ints dim, tensor_scalar correction, bool keepdim)
{
	bool given = *out;
	uint32_t dims;
	int err;

	if (reduce_dims_mask(op, self, dim, &dims) < 0 || reduce_check_apart(op, *out, *mean) < 0)
		return error_code();
	err = variance(op, out, self, dims, keepdim, correction_of(correction));
	if (!err)
		err = reduce_drop_result(out, given,
					 reduce_op(op, &kernels_mean, mean, self, dims, keepdim,
						   self->dtype));
	return err;
}

tensor *composite_var(tensor *self, bool unbiased)
{
	return call_var_correction(self, TENSOR_NO_INTS, tensor_scalar_int(unbiased), false);
}

tensor *composite_var_dim(tensor *self, tensor_ints dim, bool unbiased, bool keepdim)
{
	return call_var_correction(self, dim, tensor_scalar_int(unbiased), keepdim);
}

tensor *composite_std(tensor *self, bool unbiased)
{
	return call_std_correction(self, TENSOR_NO_INTS, tensor_scalar_int(unbiased), false);
}

tensor *composite_std_dim(tensor *self, tensor_ints dim, bool unbiased, bool keepdim)
{
	return call_std_correction(self, dim, tensor_scalar_int(unbiased), keepdim);
}

int composite_var_mean(tensor *self, bool unbiased, tensor **var, tensor **mean)
{
	return call_var_mean_correction(self, TENSOR_NO_INTS, tensor_scalar_int(unbiased), false,
					var, mean);
}

int composite_var_mean_dim(tensor *self, tensor_ints dim, bool unbiased, bool keepdim, tensor **var,
			   tensor **mean)
{
	return call_var_mean_correction(self, dim, tensor_scalar_int(unbiased), keepdim, var, mean);
}

int composite_std_mean(tensor *self, bool unbiased, tensor **std, tensor **mean)
{
	return call_std_mean_correction(self, TENSOR_NO_INTS, tensor_scalar_int(unbiased), false,
					std, mean);
}

int composite_std_mean_dim(tensor *self, tensor_ints dim, bool unbiased, bool keepdim, tensor **std,
			   tensor **mean)
{
	return call_std_mean_correction(self, dim, tensor_scalar_int(unbiased), keepdim, std, mean);
}

/* ---- logsumexp ---- */

/* Subtract the largest real part before exp(), if it is finite. */
static tensor *complex_logsumexp(tensor *self, tensor_ints dim, bool keepdim)
{
	tensor *zero =
		tensor_zeros(TENSOR_SCALAR_SHAPE, TENSOR_OPTIONS(.dtype = dtype_real(self->dtype),
								 .device = self->device));
	tensor *top, *sum;

	if (!self->numel)
		return tensor_log(tensor_sum_dim(self, dim, keepdim));
	top = tensor_amax(tensor_select(tensor_view_as_real(self), -1, 0), dim, true);
	top = tensor_where(tensor_isfinite(top), top, zero);
	sum = tensor_log(tensor_sum_dim(tensor_exp(tensor_sub(self, top)), dim, true));
	sum = tensor_add(sum, top);
	if (keepdim || !self->ndim)
		return sum;
	return dim.len ? tensor_squeeze_dims(sum, dim) : tensor_view(sum, TENSOR_SCALAR_SHAPE);
}

static int logsumexp_complex(const struct tensor_op *op, tensor **out, tensor *self,
			     tensor_ints dim, bool keepdim)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *t = scope_leave_with(&guard, complex_logsumexp(self, dim, keepdim));
	struct op_output o;
	int err;

	if (!t || !*out) {
		*out = t;
		return t ? 0 : error_code();
	}
	err = output_begin_apart(op, &o, *out, t->dtype, t->sizes, t->ndim,
				 (const tensor *[]){ self }, 1);
	if (!err)
		err = output_end(op, &o, out, operand_copy(o.t, t));
	tensor_put(t);
	return err;
}

int op_logsumexp(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim,
		 bool keepdim)
{
	enum tensor_dtype common = self->dtype;
	uint32_t dims;

	if (reduce_dims_mask(op, self, dim, &dims) < 0)
		return error_code();
	if (dtype_is_complex(self->dtype))
		return logsumexp_complex(op, out, self, dim, keepdim);
	return reduce_op(op, op->kernels, out, self, dims, keepdim, op_result_dtype(op, &common));
}

/* ---- norms ---- */

static int check_norm(const struct tensor_op *op, const tensor *self, tensor_scalar ord,
		      enum tensor_dtype dtype, uint32_t dims)
{
	double p = scalar_double(ord);

	if (check_float(op, self) < 0)
		return error_code();
	if (ord.kind == TENSOR_SCALAR_COMPLEX)
		return tensor_fail(EINVAL, "%s: ord must be real", op->schema.name);
	if (dtype &&
	    (dtype_is_integral(dtype) || dtype_is_complex(dtype) != dtype_is_complex(self->dtype)))
		return tensor_fail(EINVAL, "%s: dtype must be of self's kind, %s, got %s",
				   op->schema.name, tensor_dtype_name(self->dtype),
				   tensor_dtype_name(dtype));
	if ((p < 0 || p == INFINITY) && !reduce_count(self, dims))
		return reduce_check_elements(op, self, dims);
	return 0;
}

int op_vector_norm(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar ord,
		   tensor_ints dim, bool keepdim, enum tensor_dtype dtype)
{
	enum tensor_dtype in = dtype ? dtype : self->dtype;
	uint32_t dims;
	tensor *cast;
	int err;

	if (reduce_dims_mask(op, self, dim, &dims) < 0 ||
	    check_norm(op, self, ord, dtype, dims) < 0)
		return error_code();
	cast = operand_cast(self, in);
	err = cast ? reduce_op_with(op, op->kernels, out, cast, dims, keepdim, dtype_real(in),
				    scalar_double(ord)) :
		     error_code();
	tensor_put(cast);
	return err;
}

static tensor_scalar order_of(tensor_scalar p)
{
	return p.kind == TENSOR_SCALAR_NONE ? tensor_scalar_int(2) : p;
}

tensor *composite_norm(tensor *self, tensor_scalar p)
{
	return call_linalg_vector_norm(self, order_of(p), TENSOR_NO_INTS, false, TENSOR_DTYPE_NONE);
}

tensor *composite_norm_dim(tensor *self, tensor_scalar p, tensor_ints dim, bool keepdim)
{
	return call_linalg_vector_norm(self, order_of(p), dim, keepdim, TENSOR_DTYPE_NONE);
}

tensor *composite_norm_dtype(tensor *self, tensor_scalar p, enum tensor_dtype dtype)
{
	return call_linalg_vector_norm(self, order_of(p), TENSOR_NO_INTS, false, dtype);
}

tensor *composite_norm_dim_dtype(tensor *self, tensor_scalar p, tensor_ints dim, bool keepdim,
				 enum tensor_dtype dtype)
{
	return call_linalg_vector_norm(self, order_of(p), dim, keepdim, dtype);
}
