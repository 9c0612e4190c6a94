// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of reductions: extrema, products, variances, norms. */
#include "autograd/formulas/formulas.h"

#include "family/binary.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/cat.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/stat.h"
#include "family/scan.h"
#include "family/ternary.h"
#include "family/unary.h"
#include "family/view.h"

#include <math.h>

static tensor_ints sizes_of(tensor *t)
{
	return (tensor_ints){ t->sizes, t->ndim };
}

static uint32_t mask_of(tensor_ints dim, int64_t ndim)
{
	uint32_t mask = 0;

	for (int64_t i = 0; ndim && i < dim.len; i++)
		mask |= 1u << (dim.data[i] < 0 ? dim.data[i] + ndim : dim.data[i]);
	return dim.len <= 0 ? ~0u : mask;
}

static double count_of(tensor_ints sizes, tensor_ints dim)
{
	uint32_t mask = mask_of(dim, sizes.len);
	double n = 1;

	for (int64_t i = 0; i < sizes.len; i++)
		n *= mask >> i & 1 ? (double)sizes.data[i] : 1;
	return n;
}

/* Restore a result's or gradient's reduced dimensions with size 1. */
tensor *formula_restore_dims(tensor *t, tensor_ints sizes, tensor_ints dim, bool keepdim)
{
	uint32_t mask = mask_of(dim, sizes.len);

	for (int d = 0; t && !keepdim && d < sizes.len; d++)
		if (mask >> d & 1)
			t = tensor_unsqueeze(t, d);
	return t;
}

tensor *nansum_backward(tensor *grad, tensor *self, tensor_ints dim, bool keepdim)
{
	return where_backward(sum_backward(grad, sizes_of(self), dim, keepdim),
			      tensor_eq(self, self), true);
}

/* ---- extrema: equal elements share the gradient ---- */

tensor *amax_backward(tensor *grad, tensor *self, tensor *result, tensor_ints dim, bool keepdim)
{
	tensor_ints sizes = sizes_of(self);
	tensor *mask = tensor_eq(self, formula_restore_dims(result, sizes, dim, keepdim));
	tensor *count;

	mask = tensor_to(mask, TENSOR_OPTIONS(.dtype = self->dtype));
	count = tensor_sum_dim(mask, dim, true);
	return tensor_mul(mask, tensor_div(formula_restore_dims(grad, sizes, dim, keepdim), count));
}

tensor *aminmax_backward(tensor *const *grads, tensor *self, tensor *min, tensor *max, int64_t dim,
			 bool keepdim)
{
	tensor_ints dims = { &dim, dim == TENSOR_NONE ? 0 : 1 };
	tensor *low = NULL, *high = NULL;

	if (grads[0])
		low = amax_backward(grads[0], self, min, dims, keepdim);
	if (grads[1])
		high = amax_backward(grads[1], self, max, dims, keepdim);
	if (grads[0] && grads[1])
		return tensor_add(low, high);
	return grads[0] ? low : high;
}

/* ---- products ---- */

/* Product of all other elements along dim: those before times those after. */
static tensor *other_products(tensor *self, int64_t dim)
{
	int64_t n = self->sizes[dim];
	tensor *one = tensor_ones_like(tensor_narrow(self, dim, 0, 1), TENSOR_OPTIONS(0));
	tensor *left = tensor_cumprod(tensor_narrow(self, dim, 0, n - 1), dim);
	tensor *right = tensor_cumprod(tensor_narrow(formula_flip(self, dim), dim, 0, n - 1), dim);

	left = tensor_cat(TENSOR_LIST(one, left), dim);
	right = formula_flip(tensor_cat(TENSOR_LIST(one, right), dim), dim);
	return tensor_mul(left, right);
}

tensor *prod_dim_backward(tensor *grad, tensor *self, tensor *result, int64_t dim, bool keepdim)
{
	tensor_ints sizes, dims = { &dim, 1 };

	if (!self)
		return NULL;
	if (!self->ndim)
		return grad;
	sizes = sizes_of(self);
	if (dim < 0)
		dim += self->ndim;
	grad = formula_restore_dims(grad, sizes, dims, keepdim);
	if (!self->sizes[dim])
		return tensor_mul(self, grad);
	if (formula_has_zero(self))
		return tensor_mul(grad, formula_conj(other_products(self, dim)));
	result = formula_restore_dims(result, sizes, dims, keepdim);
	return tensor_mul(grad, formula_conj(tensor_div(result, self)));
}

tensor *prod_backward(tensor *grad, tensor *self, tensor *result)
{
	tensor *flat;

	if (!self->ndim)
		return grad;
	if (!formula_has_zero(self))
		return tensor_mul(grad, formula_conj(tensor_div(result, self)));
	flat = tensor_reshape(self, TENSOR_INTS(-1));
	return flat ? tensor_view(prod_dim_backward(grad, flat, result, 0, false), sizes_of(self)) :
		      NULL;
}

/* ---- variances ---- */

tensor *var_backward(tensor *grad, tensor *self, tensor_ints dim, tensor_scalar correction,
		     bool keepdim)
{
	tensor_ints sizes = sizes_of(self);
	double c = correction.kind == TENSOR_SCALAR_NONE ? 1 : scalar_double(correction);
	double rest = count_of(sizes, dim) - c;
	tensor *centred = tensor_sub(self, tensor_mean_dim(self, dim, true));

	/* As in PyTorch, a correction above the count is not limited if dimensions are given; over
	 * all elements the gradient is +inf then, NaN at the mean. */
	if (rest <= 0 && dim.len < 0) {
		rest = 0;
		centred = dtype_is_complex(self->dtype) ? centred : tensor_abs(centred);
	}
	grad = formula_restore_dims(grad, sizes, dim, keepdim);
	return tensor_mul(tensor_mul_scalar(grad, formula_scalar(2 / rest)), centred);
}

/* A standard deviation of 0 has gradient 0. */
tensor *std_backward(tensor *grad, tensor *self, tensor *result, tensor_ints dim,
		     tensor_scalar correction, bool keepdim)
{
	tensor *twice = tensor_mul_scalar(result, formula_scalar(2));

	grad = where_backward(tensor_div(grad, twice), tensor_eq_scalar(result, formula_scalar(0)),
			      false);
	return var_backward(grad, self, dim, correction, keepdim);
}

tensor *var_mean_backward(tensor *const *grads, tensor *self, tensor *std, tensor_ints dim,
			  tensor_scalar correction, bool keepdim)
{
	tensor *first = NULL, *second = NULL;

	if (grads[0])
		first = std ? std_backward(grads[0], self, std, dim, correction, keepdim) :
			      var_backward(grads[0], self, dim, correction, keepdim);
	if (grads[1])
		second = mean_backward(grads[1], sizes_of(self), dim, keepdim);
	if (grads[0] && grads[1])
		return tensor_add(first, second);
	return grads[0] ? first : second;
}

/* ---- logsumexp and norms ---- */

tensor *logsumexp_backward(tensor *grad, tensor *self, tensor *result, tensor_ints dim,
			   bool keepdim)
{
	tensor_ints sizes = sizes_of(self);
	tensor *share =
		tensor_exp(tensor_sub(self, formula_restore_dims(result, sizes, dim, keepdim)));

	return formula_mul_conj(formula_restore_dims(grad, sizes, dim, keepdim), share);
}

/* -1, 0 or 1; t / |t| for complex numbers. */
static tensor *sign_of(tensor *t)
{
	tensor *zero = formula_zeros_for(t, TENSOR_SCALAR_SHAPE);
	tensor *one = tensor_ones_like(zero, TENSOR_OPTIONS(0));

	if (dtype_is_complex(t->dtype))
		return tensor_sgn(t);
	return tensor_where(tensor_gt_scalar(t, formula_scalar(0)), one,
			    tensor_where(tensor_lt_scalar(t, formula_scalar(0)), tensor_neg(one),
					 zero));
}

static enum tensor_dtype norm_dtype(const tensor *self, const tensor *result)
{
	if (result->dtype == TENSOR_F64)
		return dtype_is_complex(self->dtype) ? TENSOR_C128 : TENSOR_F64;
	return dtype_wide(self->dtype);
}

tensor *vector_norm_backward(tensor *grad, tensor *self, tensor *result, tensor_scalar ord,
			     tensor_ints dim, bool keepdim)
{
	double p = scalar_double(ord);
	tensor *zero, *abs, *sign, *factor, *mask;
	tensor_ints sizes;

	if (!self || !result)
		return NULL;
	sizes = sizes_of(self);
	/* Compute in the dtype of the norm: a reduced float would round every power and quotient,
	 * and the largest element equals the result only in that dtype. */
	self = tensor_to(self, TENSOR_OPTIONS(.dtype = norm_dtype(self, result)));
	zero = formula_zeros_for(self, TENSOR_SCALAR_SHAPE);
	grad = formula_restore_dims(grad, sizes, dim, keepdim);
	result = formula_restore_dims(result, sizes, dim, keepdim);
	if (!self || !grad || !result)
		return NULL;
	if (p == 0)
		return tensor_mul(self, tensor_zeros_like(self, TENSOR_OPTIONS(0)));
	if (p == 2) {
		/* A norm of 0 has gradient 0, whose derivative is also 0: replace the divisor by 1.
		 */
		mask = tensor_eq_scalar(result, formula_scalar(0));
		result = tensor_where(mask, tensor_ones_like(result, TENSOR_OPTIONS(0)), result);
		return tensor_where(mask, zero, tensor_mul(self, tensor_div(grad, result)));
	}
	sign = sign_of(self);
	if (p == 1)
		return tensor_mul(sign, grad);
	abs = tensor_abs(self);
	if (isinf(p)) {
		mask = tensor_logical_or(tensor_eq(abs, result), tensor_isnan(abs));
		mask = tensor_to(mask, TENSOR_OPTIONS(.dtype = result->dtype));
		factor = tensor_div(mask, tensor_sum_dim(mask, dim, true));
		return tensor_mul(sign, tensor_mul(factor, grad));
	}
	/* x |x|^(p - 2) / norm^(p - 1): the power multiplies the rounding error of a reduced norm. */
	if (dtype_is_reduced_float(result->dtype))
		result = tensor_linalg_vector_norm_opt(self, ord, dim, true, 0);
	abs = tensor_where(tensor_eq_scalar(abs, formula_scalar(0)),
			   tensor_ones_like(abs, TENSOR_OPTIONS(0)), abs);
	factor = tensor_pow_scalar(tensor_div(abs, result), formula_scalar(p - 1));
	factor = tensor_mul(sign, tensor_mul(factor, grad));
	return tensor_where(tensor_eq_scalar(self, formula_scalar(0)), zero, factor);
}
