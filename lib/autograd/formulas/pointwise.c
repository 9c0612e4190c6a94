// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of elementwise operators. Those of activation functions: activation.c. */
#include "autograd/formulas/formulas.h"

#include "family/binary.h"
#include "family/compare.h"
#include "family/factory.h"
#include "family/pointwise.h"
#include "family/ternary.h"
#include "family/unary.h"

tensor *formula_mul_conj(tensor *grad, tensor *slope)
{
	return tensor_mul(grad, formula_conj(slope));
}

tensor *formula_div_conj(tensor *grad, tensor *t)
{
	return tensor_div(grad, formula_conj(t));
}

tensor *formula_add(tensor *t, double v)
{
	return tensor_add_scalar(t, formula_scalar(v));
}

tensor *formula_mul(tensor *t, double v)
{
	return tensor_mul_scalar(t, formula_scalar(v));
}

tensor *formula_rsqrt_add(tensor *t, double v)
{
	return tensor_rsqrt(formula_add(t, v));
}

tensor *formula_zeros_like(tensor *grad)
{
	return tensor_zeros_like(grad, TENSOR_OPTIONS(0));
}

tensor *formula_where(tensor *mask, tensor *grad)
{
	return where_backward(grad, mask, true);
}

/* ---- one operand ---- */

tensor *abs_backward(tensor *grad, tensor *self)
{
	return tensor_mul(grad, tensor_sgn(self));
}

/* Only the component of dz perpendicular to z changes z / |z|: (g - s Re(conj(s) g)) / |z| for s =
 * z / |z|. */
tensor *sgn_backward(tensor *grad, tensor *self, tensor *result)
{
	tensor *w, *re, *across, *size;

	if (!dtype_is_complex(self->dtype))
		return formula_zeros_like(grad);
	w = tensor_mul(grad, formula_conj(result));
	re = formula_mul(tensor_add(w, formula_conj(w)), 0.5);
	size = tensor_abs(self);
	across = tensor_div(tensor_sub(grad, tensor_mul(result, re)), size);
	return tensor_masked_fill(across, tensor_eq_scalar(size, formula_scalar(0)),
				  formula_scalar(0));
}

/* i z / |z|^2 */
tensor *angle_backward(tensor *grad, tensor *self)
{
	tensor *size, *turned;

	if (!dtype_is_complex(self->dtype))
		return formula_zeros_like(grad);
	size = tensor_abs(self);
	turned = tensor_mul_scalar(tensor_div(self, tensor_square(size)),
				   tensor_scalar_complex(0, 1));
	return tensor_masked_fill(tensor_mul(grad, turned),
				  tensor_eq_scalar(size, formula_scalar(0)), formula_scalar(0));
}

/* ---- two operands ---- */

tensor *div_mode_self_backward(tensor *grad, tensor *other, const char *mode)
{
	return mode ? formula_zeros_like(grad) : formula_div_conj(grad, other);
}

tensor *div_mode_other_backward(tensor *grad, tensor *self, tensor *other, const char *mode)
{
	if (mode)
		return formula_zeros_like(grad);
	return tensor_neg(formula_mul_conj(grad, tensor_div(tensor_div(self, other), other)));
}

tensor *div_mode_scalar_backward(tensor *grad, tensor_scalar other, const char *mode)
{
	return mode ? formula_zeros_like(grad) :
		      tensor_div_scalar(grad, formula_conj_scalar(other));
}

/* grad * numerator / (self^2 + other^2), 0 at the origin. */
tensor *atan2_backward(tensor *grad, tensor *self, tensor *other, tensor *numerator)
{
	tensor *r = tensor_add(tensor_square(self), tensor_square(other));
	tensor *inverse = tensor_masked_fill(
		tensor_reciprocal(r), tensor_eq_scalar(r, formula_scalar(0)), formula_scalar(0));

	return tensor_mul(tensor_mul(grad, numerator), inverse);
}

/* grad / 2 where `tie` is true, else `given`. */
static tensor *shared_when(tensor *tie, tensor *given, tensor *grad)
{
	return tensor_where(tie, formula_mul(grad, 0.5), given);
}

tensor *maximum_backward(tensor *grad, tensor *self, tensor *other)
{
	return tensor_masked_fill(shared_when(tensor_eq(self, other), grad, grad),
				  tensor_lt(self, other), formula_scalar(0));
}

tensor *minimum_backward(tensor *grad, tensor *self, tensor *other)
{
	return tensor_masked_fill(shared_when(tensor_eq(self, other), grad, grad),
				  tensor_gt(self, other), formula_scalar(0));
}

/* 1 - weight */
tensor *lerp_self_backward(tensor *grad, tensor_scalar weight)
{
	double re = 1 - scalar_double(weight), im = scalar_imag(weight);

	return tensor_mul_scalar(grad,
				 im == 0 ? formula_scalar(re) : tensor_scalar_complex(re, im));
}

/* Equal operands share the gradient. If one operand is NaN the other gets it; if both are, the
 * first. */
tensor *fmax_backward(tensor *grad, tensor *chosen, tensor *other, bool first)
{
	tensor *a = first ? chosen : other, *b = first ? other : chosen;
	tensor *mask = tensor_logical_or(tensor_ge(a, b), tensor_isnan(b));

	return shared_when(tensor_eq(a, b), where_backward(grad, mask, first), grad);
}

tensor *fmin_backward(tensor *grad, tensor *chosen, tensor *other, bool first)
{
	tensor *a = first ? chosen : other, *b = first ? other : chosen;
	tensor *mask = tensor_logical_or(tensor_le(a, b), tensor_isnan(b));

	return shared_when(tensor_eq(a, b), where_backward(grad, mask, first), grad);
}

/* grad * e^self / (e^self + e^other). */
tensor *logaddexp_backward(tensor *grad, tensor *self, tensor *other)
{
	return formula_div_conj(grad, formula_add(tensor_exp(tensor_sub(other, self)), 1));
}

tensor *logaddexp2_backward(tensor *grad, tensor *self, tensor *other)
{
	return formula_div_conj(grad, formula_add(tensor_exp2(tensor_sub(other, self)), 1));
}

tensor *xlogy_self_backward(tensor *grad, tensor *self, tensor *other)
{
	tensor *flat_there = tensor_logical_and(tensor_eq_scalar(self, formula_scalar(0)),
						tensor_le_scalar(other, formula_scalar(0)));

	return tensor_masked_fill(tensor_xlogy(grad, other), flat_there, formula_scalar(0));
}

tensor *copysign_backward(tensor *grad, tensor *self, tensor *result)
{
	tensor *ratio = tensor_div(result, self);

	return tensor_mul(grad, tensor_masked_fill(ratio, tensor_eq_scalar(self, formula_scalar(0)),
						   formula_scalar(0)));
}

/* ---- powers ---- */

tensor *pow_backward_self(tensor *grad, tensor *self, tensor *exponent)
{
	tensor *slope = tensor_mul(exponent, tensor_pow(self, formula_add(exponent, -1)));

	slope = tensor_masked_fill(slope, tensor_eq_scalar(exponent, formula_scalar(0)),
				   formula_scalar(0));
	return formula_mul_conj(grad, slope);
}

/* 0 to a power >= 0 does not change with the exponent. */
tensor *pow_backward_exponent(tensor *grad, tensor *self, tensor *exponent, tensor *result)
{
	tensor *zero = tensor_eq_scalar(self, formula_scalar(0)), *slope;

	if (!dtype_is_complex(exponent->dtype))
		zero = tensor_logical_and(zero, tensor_ge_scalar(exponent, formula_scalar(0)));
	slope = tensor_mul(result, tensor_log(self));
	return formula_mul_conj(grad, tensor_masked_fill(slope, zero, formula_scalar(0)));
}

static tensor_scalar minus_one(tensor_scalar s)
{
	if (s.kind >= TENSOR_SCALAR_FLOAT)
		s.d -= 1;
	else
		s = tensor_scalar_int(s.i - 1);
	return s;
}

tensor *pow_scalar_backward(tensor *grad, tensor *self, tensor_scalar exponent)
{
	if (scalar_double(exponent) == 0 && !scalar_imag(exponent))
		return formula_zeros_like(grad);
	return formula_mul_conj(
		grad, tensor_mul_scalar(tensor_pow_scalar(self, minus_one(exponent)), exponent));
}

tensor *scalar_pow_backward(tensor *grad, tensor_scalar self, tensor *exponent, tensor *result)
{
	tensor *base =
		tensor_full(TENSOR_SCALAR_SHAPE, self,
			    TENSOR_OPTIONS(.dtype = result->dtype, .device = result->device));

	return pow_backward_exponent(grad, base, exponent, result);
}

/*
 * ---- clamp ----
 *
 * Scalar limits: self gets the gradient strictly between the limits. Tensor limits: the chosen
 * operand gets it; self and an equal limit share it if min <= max. NaN in self keeps the gradient.
 */

tensor *clamp_backward(tensor *grad, tensor *self, tensor_scalar min, tensor_scalar max)
{
	tensor *mask = NULL, *below;

	if (min.kind)
		mask = tensor_gt_scalar(self, min);
	if (max.kind) {
		below = tensor_lt_scalar(self, max);
		mask = mask ? tensor_logical_and(mask, below) : below;
	}
	return formula_where(mask, grad);
}

tensor *clamp_tensor_backward(tensor *grad, tensor *self, tensor *min, tensor *max)
{
	tensor *tie, *outside;

	if (max == tensor_none)
		return maximum_backward(grad, self, min);
	if (min == tensor_none)
		return minimum_backward(grad, self, max);
	tie = tensor_logical_or(tensor_eq(self, min), tensor_eq(self, max));
	tie = tensor_logical_and(tie, tensor_lt(min, max));
	outside = tensor_logical_or(tensor_lt(self, min), tensor_gt(self, max));
	return tensor_masked_fill(shared_when(tie, grad, grad), outside, formula_scalar(0));
}

tensor *clamp_tensor_min_backward(tensor *grad, tensor *self, tensor *min, tensor *max)
{
	tensor *chosen, *tie;

	if (max == tensor_none)
		return maximum_backward(grad, min, self);
	chosen = tensor_logical_and(tensor_lt(self, min), tensor_le(min, max));
	tie = tensor_logical_and(tensor_eq(self, min), tensor_lt(min, max));
	return shared_when(tie, formula_where(chosen, grad), grad);
}

tensor *clamp_tensor_max_backward(tensor *grad, tensor *self, tensor *min, tensor *max)
{
	tensor *chosen, *tie;

	if (min == tensor_none)
		return minimum_backward(grad, max, self);
	chosen = tensor_logical_and(tensor_gt(self, max), tensor_le(min, max));
	chosen = tensor_logical_or(chosen, tensor_lt(max, min));
	tie = tensor_logical_and(tensor_eq(self, max), tensor_lt(min, max));
	return shared_when(tie, formula_where(chosen, grad), grad);
}
