// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas: second derivatives of activation functions. */
#include "autograd/formulas/formulas.h"

#include "family/activation.h"
#include "family/binary.h"
#include "family/compare.h"
#include "family/pointwise.h"
#include "family/unary.h"

#include <math.h>

static tensor *product(tensor *grad, tensor *grad_output, tensor *slope)
{
	return tensor_mul(tensor_mul(grad, grad_output), slope);
}

/* 1 - t */
static tensor *rest(tensor *t)
{
	return tensor_rsub_scalar(t, number(1), number(1));
}

/* With s = sigmoid(x): s (1 - s) (2 + x (1 - 2 s)) */
tensor *silu_double_backward(tensor *grad, tensor *grad_output, tensor *self)
{
	tensor *s = tensor_sigmoid(self);
	tensor *slope =
		tensor_mul(tensor_mul(s, rest(s)), plus(tensor_mul(self, one_minus_twice(s)), 2));

	return product(grad, conjugate(grad_output), conjugate(slope));
}

/* With t = tanh(softplus(x)): s (1 - t^2) (2 + x (1 - s - 2 t s)) */
tensor *mish_double_backward(tensor *grad, tensor *grad_output, tensor *self)
{
	tensor *s = tensor_sigmoid(self);
	tensor *t = tensor_tanh(tensor_softplus(self, tensor_scalar_int(1), tensor_scalar_int(20)));
	tensor *bend = tensor_sub(rest(s), times(tensor_mul(t, s), 2));
	tensor *slope =
		tensor_mul(tensor_mul(s, rest(tensor_square(t))), plus(tensor_mul(self, bend), 2));

	return product(grad, grad_output, slope);
}

tensor *hardswish_double_backward(tensor *grad, tensor *grad_output, tensor *self)
{
	tensor *mask = tensor_logical_and(tensor_gt_scalar(self, number(-3)),
					  tensor_lt_scalar(self, number(3)));

	return where_only(mask, times(tensor_mul(grad, grad_output), 1. / 3));
}

/* The normal density is the derivative of the distribution function: gelu'' = (2 - x^2) pdf(x). */
static tensor *gelu_exact_bend(tensor *x)
{
	tensor *square = tensor_square(x);
	tensor *pdf = times(tensor_exp(times(square, -0.5)), M_2_SQRTPI * M_SQRT1_2 / 2);

	return tensor_mul(tensor_rsub_scalar(square, number(2), number(1)), pdf);
}

/*
 * With t = tanh(u(x)), the second derivative of x (1 + t) / 2 is t' + x t'' / 2, where
 * t' = (1 - t^2) u' and t'' = (1 - t^2) (u'' - 2 t u'^2).
 */
static tensor *gelu_tanh_bend(tensor *x)
{
	const double k = M_SQRT2 * M_2_SQRTPI / 2, c = 0.044715;
	tensor *square = tensor_square(x);
	tensor *t = tensor_tanh(tensor_mul(times(x, k), plus(times(square, c), 1)));
	tensor *u1 = plus(times(square, 3 * c * k), k), *u2 = times(x, 6 * c * k);
	tensor *bend = tensor_sub(u2, times(tensor_mul(t, tensor_square(u1)), 2));

	return tensor_mul(rest(tensor_square(t)), tensor_add(u1, times(tensor_mul(x, bend), 0.5)));
}

tensor *gelu_double_backward(tensor *grad, tensor *grad_output, tensor *self,
			     const char *approximate)
{
	bool exact = !strcmp(approximate, "none");

	return product(grad, grad_output, exact ? gelu_exact_bend(self) : gelu_tanh_bend(self));
}

tensor *elu_double_backward(tensor *grad, tensor *grad_output, tensor_scalar alpha,
			    tensor_scalar scale, tensor_scalar input_scale, bool is_result,
			    tensor *self_or_result)
{
	double in = scalar_double(input_scale), low = scalar_double(alpha) * scalar_double(scale);
	tensor *below = tensor_lt_scalar(self_or_result, number(0)), *slope;
	tensor *both = tensor_mul(grad, grad_output);

	if (is_result)
		return where_only(below, times(both, in));
	slope = times(tensor_exp(times(self_or_result, in)), low * in * in);
	return where_only(below, tensor_mul(both, slope));
}

tensor *softplus_double_backward(tensor *grad, tensor *grad_output, tensor *self,
				 tensor_scalar beta, tensor_scalar threshold)
{
	tensor *x = tensor_mul_scalar(self, beta), *s = tensor_sigmoid(x);
	tensor *slope = tensor_mul_scalar(tensor_mul(s, rest(s)), beta);

	return where_only(tensor_le_scalar(x, threshold), product(grad, grad_output, slope));
}

tensor *log_sigmoid_double_backward(tensor *grad, tensor *grad_output, tensor *self)
{
	tensor *s = tensor_sigmoid(self);

	return tensor_neg(product(grad, grad_output, tensor_mul(s, rest(s))));
}

/* sigmoid_backward is grad_output conj((1 - y) y), a function of conj(y): the result is conjugated.
 */
tensor *sigmoid_double_backward(tensor *grad, tensor *grad_output, tensor *output)
{
	return tensor_mul(tensor_mul(conjugate(grad), grad_output),
			  one_minus_twice(conjugate(output)));
}

tensor *tanh_double_backward(tensor *grad, tensor *grad_output, tensor *output)
{
	return times(tensor_mul(tensor_mul(conjugate(grad), grad_output), conjugate(output)), -2);
}
