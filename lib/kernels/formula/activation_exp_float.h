/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Activation functions that use exp(), log1p(), tanh() or erf(), and their gradients, on vectors of
 * one float type. Included once for each type (no include guard). The includer
 * defines
 *
 *   T, V      the element type, and a vector of it
 *   F(name)   the name of a function of this type; F(exp), F(expm1), F(log1p), F(tanh),
 *             F(normal_cdf) and F(select)(mask, a, b) are defined before
 *   LOOP_1, LOOP_2  VEC_LOOP_1 and VEC_LOOP_2 for this type: (name, declarations, expression)
 *
 * In gradients, x is the incoming gradient and y the input of the function.
 */

#include "kernels/formula/sigmoid_float.h"

/* -|x| */
FORMULA V F(negative_size)(V x)
{
	return F(select)(x < 0, x, -x);
}

LOOP_1(silu, NO_PARAMS(T), x / (1 + F(exp)(-x)))

FORMULA V F(silu_grad)(V g, V x)
{
	V s = F(sigmoid)(x);

	return g * s * (1 + x * (1 - s));
}
LOOP_2(silu_backward, NO_PARAMS(T), F(silu_grad)(x, y))

/*
 * n = e (e + 2), where e = exp(x): tanh(log(1 + e)) = n / (n + 2), without cancellation. For x > 20
 * that is 1.
 */
FORMULA V F(mish_n)(V x)
{
	V e = F(exp)(F(select)(x > 20, F(splat)(20), x));

	return e * (e + 2);
}

FORMULA V F(mish_value)(V x)
{
	V n = F(mish_n)(x);

	return F(select)(x > 20, x, x * n / (n + 2));
}
LOOP_1(mish, NO_PARAMS(T), F(mish_value)(x))

FORMULA V F(mish_grad)(V g, V x)
{
	V n = F(mish_n)(x), t = n / (n + 2), slope = 4 * (n + 1) / ((n + 2) * (n + 2));

	return F(select)(x > 20, g, g * (t + x * F(sigmoid)(x) * slope));
}
LOOP_2(mish_backward, NO_PARAMS(T), F(mish_grad)(x, y))

/* a: beta; b: threshold; for x * beta > threshold the result is x */
#define SOFTPLUS_PARAMS                 \
	T beta = PARAM_F(T, params, a); \
	T threshold = PARAM_F(T, params, b)
LOOP_1(softplus, SOFTPLUS_PARAMS,
       F(select)(x *beta > threshold, x, F(log1p)(F(exp)(x *beta)) / beta))

FORMULA V F(softplus_grad)(V g, V x, T beta, T threshold)
{
	V z = F(exp)(x * beta);

	return F(select)(x * beta > threshold, g, g * z / (z + 1));
}
LOOP_2(softplus_backward, SOFTPLUS_PARAMS, F(softplus_grad)(x, y, beta, threshold))
#undef SOFTPLUS_PARAMS

LOOP_1(log_sigmoid, NO_PARAMS(T),
       F(select)(x > 0, F(splat)(0), x) - F(log1p)(F(exp)(F(negative_size)(x))))
/* exp(-|x|), which is saved for log_sigmoid_backward. */
LOOP_1(log_sigmoid_buffer, NO_PARAMS(T), F(exp)(F(negative_size)(x)))

/* a: alpha; b: scale; c: scale of the input */
#define ELU_PARAMS                               \
	T scale = PARAM_F(T, params, b);         \
	T slope = PARAM_F(T, params, a) * scale; \
	T scale_in = PARAM_F(T, params, c)
LOOP_1(elu, ELU_PARAMS, F(select)(x <= 0, F(expm1)(x *scale_in) * slope, x *scale))
LOOP_2(elu_backward, ELU_PARAMS,
       F(select)(y <= 0, x *scale_in *slope *F(exp)(y *scale_in), x *scale))
#undef ELU_PARAMS

FORMULA V F(gelu_grad)(V g, V x)
{
	V cdf = F(normal_cdf)(x);
	V pdf = F(exp)(x * x * (T)-0.5) * (T)(M_2_SQRTPI * M_SQRT1_2 * 0.5);

	return g * (cdf + x * pdf);
}
LOOP_2(gelu_backward, NO_PARAMS(T), F(gelu_grad)(x, y))

/* The approximation by tanh of D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016. */
#define GELU_INNER(x) ((T)(M_SQRT2 * M_2_SQRTPI * 0.5) * (x + (T)0.044715 * x * x * x))
LOOP_1(gelu_tanh, NO_PARAMS(T), (T)0.5 * x * (1 + F(tanh)(GELU_INNER(x))))

FORMULA V F(gelu_tanh_grad)(V g, V x)
{
	V t = F(tanh)(GELU_INNER(x));
	V inner = (T)(M_SQRT2 * M_2_SQRTPI * 0.5) * (1 + (T)(3 * 0.044715) * x * x);

	return g * ((T)0.5 * (1 + t) + (T)0.5 * x * (1 - t * t) * inner);
}
LOOP_2(gelu_tanh_backward, NO_PARAMS(T), F(gelu_tanh_grad)(x, y))

#undef T
#undef V
#undef F
#undef LOOP_1
#undef LOOP_2
