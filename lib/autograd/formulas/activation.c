// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of activation functions: derivatives that overwrite the gradient, second derivatives. */
#include "autograd/formulas/formulas.h"

#include "family/activation.h"
#include "family/binary.h"
#include "family/compare.h"
#include "family/loss.h"
#include "family/mm.h"
#include "family/pointwise.h"
#include "family/softmax.h"
#include "family/unary.h"

#include <math.h>

tensor *formula_softmax_backward(tensor *grad, tensor *result, int64_t dim)
{
	if (formula_may_overwrite(grad, result))
		return tensor_softmax_backward_data_out(grad, grad, result, dim, result->dtype);
	return tensor_softmax_backward(grad, result, dim);
}

tensor *formula_gelu_backward(tensor *grad, tensor *self, const char *approximate)
{
	if (formula_may_overwrite(grad, self))
		return tensor_gelu_backward_opt_out(grad, grad, self, approximate);
	return tensor_gelu_backward_opt(grad, self, approximate);
}

tensor *addmm_pointwise_backward(tensor *grad, tensor *self, tensor *mat1, tensor *mat2,
				 const char *activation, tensor_scalar beta, tensor_scalar alpha)
{
	tensor *x;

	if (!strcmp(activation, "none"))
		return grad;
	x = tensor_addmm_opt(self, mat1, mat2, beta, alpha);
	if (!strcmp(activation, "relu"))
		return tensor_relu_backward(grad, x);
	if (!strcmp(activation, "silu"))
		return tensor_silu_backward(grad, formula_conj(x));
	return tensor_gelu_backward_opt(grad, x, strcmp(activation, "gelu") ? "tanh" : "none");
}

static tensor *product(tensor *grad, tensor *grad_output, tensor *slope)
{
	return tensor_mul(tensor_mul(grad, grad_output), slope);
}

/* 1 - t */
static tensor *rest(tensor *t)
{
	return tensor_rsub_scalar(t, formula_scalar(1), formula_scalar(1));
}

/* With s = sigmoid(x): s (1 - s) (2 + x (1 - 2 s)) */
tensor *silu_double_backward(tensor *grad, tensor *grad_output, tensor *self)
{
	tensor *s = tensor_sigmoid(self);
	tensor *slope = tensor_mul(tensor_mul(s, rest(s)),
				   formula_add(tensor_mul(self, formula_one_minus_twice(s)), 2));

	return product(grad, formula_conj(grad_output), formula_conj(slope));
}

/* With t = tanh(softplus(x)): s (1 - t^2) (2 + x (1 - s - 2 t s)) */
tensor *mish_double_backward(tensor *grad, tensor *grad_output, tensor *self)
{
	tensor *s = tensor_sigmoid(self);
	tensor *t = tensor_tanh(tensor_softplus(self, tensor_scalar_int(1), tensor_scalar_int(20)));
	tensor *bend = tensor_sub(rest(s), formula_mul(tensor_mul(t, s), 2));
	tensor *slope = tensor_mul(tensor_mul(s, rest(tensor_square(t))),
				   formula_add(tensor_mul(self, bend), 2));

	return product(grad, grad_output, slope);
}

tensor *hardswish_double_backward(tensor *grad, tensor *grad_output, tensor *self)
{
	tensor *mask = tensor_logical_and(tensor_gt_scalar(self, formula_scalar(-3)),
					  tensor_lt_scalar(self, formula_scalar(3)));

	return formula_where(mask, formula_mul(tensor_mul(grad, grad_output), 1. / 3));
}

/* The normal density is the derivative of the distribution function: gelu'' = (2 - x^2) pdf(x). */
static tensor *gelu_exact_bend(tensor *x)
{
	tensor *square = tensor_square(x);
	tensor *pdf =
		formula_mul(tensor_exp(formula_mul(square, -0.5)), M_2_SQRTPI * M_SQRT1_2 / 2);

	return tensor_mul(tensor_rsub_scalar(square, formula_scalar(2), formula_scalar(1)), pdf);
}

/*
 * With t = tanh(u(x)), the second derivative of x (1 + t) / 2 is t' + x t'' / 2, where
 * t' = (1 - t^2) u' and t'' = (1 - t^2) (u'' - 2 t u'^2).
 */
static tensor *gelu_tanh_bend(tensor *x)
{
	const double k = M_SQRT2 * M_2_SQRTPI / 2, c = 0.044715;
	tensor *square = tensor_square(x);
	tensor *t =
		tensor_tanh(tensor_mul(formula_mul(x, k), formula_add(formula_mul(square, c), 1)));
	tensor *u1 = formula_add(formula_mul(square, 3 * c * k), k),
	       *u2 = formula_mul(x, 6 * c * k);
	tensor *bend = tensor_sub(u2, formula_mul(tensor_mul(t, tensor_square(u1)), 2));

	return tensor_mul(rest(tensor_square(t)),
			  tensor_add(u1, formula_mul(tensor_mul(x, bend), 0.5)));
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
	tensor *below = tensor_lt_scalar(self_or_result, formula_scalar(0)), *slope;
	tensor *both = tensor_mul(grad, grad_output);

	if (is_result)
		return formula_where(below, formula_mul(both, in));
	slope = formula_mul(tensor_exp(formula_mul(self_or_result, in)), low * in * in);
	return formula_where(below, tensor_mul(both, slope));
}

tensor *softplus_double_backward(tensor *grad, tensor *grad_output, tensor *self,
				 tensor_scalar beta, tensor_scalar threshold)
{
	tensor *x = tensor_mul_scalar(self, beta), *s = tensor_sigmoid(x);
	tensor *slope = tensor_mul_scalar(tensor_mul(s, rest(s)), beta);

	return formula_where(tensor_le_scalar(x, threshold), product(grad, grad_output, slope));
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
	return tensor_mul(tensor_mul(formula_conj(grad), grad_output),
			  formula_one_minus_twice(formula_conj(output)));
}

tensor *tanh_double_backward(tensor *grad, tensor *grad_output, tensor *output)
{
	return formula_mul(
		tensor_mul(tensor_mul(formula_conj(grad), grad_output), formula_conj(output)), -2);
}
