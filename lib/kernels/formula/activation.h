/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Activation functions, and gradients of activation functions, that need only arithmetic; those
 * that need exp() or erf() are in activation_exp.c. In gradients, x is the incoming gradient and y
 * the input of the function, or its saved result.
 */
/* Only x < 0 is replaced, so that NaN stays NaN. */
UNARY_UNSIGNED(relu, x)
UNARY_SIGNED(relu, x < 0 ? 0 : x)
UNARY_FLOATS(relu, x < 0 ? 0 : x)
POINTWISE(relu, AT_INT(relu), AT_FLOATS(relu))

#define RELU6(x) ((x) < 0 ? 0 : (x) > 6 ? 6 : (x))

/*
 * x / 6, where x is 0, NaN or at least the epsilon of its type. With fused multiply-add the quotient by the rounded
 * reciprocal is corrected by its remainder, which gives the correctly rounded quotient (Markstein 1990) in less time
 * than a division.
 */
FORMULA float sixth_f32(float x)
{
#ifdef __FP_FAST_FMAF
	const float r = 1.0f / 6;
	float q = x * r;

	return __builtin_fmaf(__builtin_fmaf(-6, q, x), r, q);
#else
	return x / 6;
#endif
}

FORMULA double sixth_f64(double x)
{
#ifdef __FP_FAST_FMA
	const double r = 1.0 / 6;
	double q = x * r;

	return __builtin_fma(__builtin_fma(-6, q, x), r, q);
#else
	return x / 6;
#endif
}

#define SIXTH(x) ((__typeof__(x))(sizeof(x) == sizeof(float) ? sixth_f32(x) : sixth_f64(x)))
UNARY_FLOATS(hardsigmoid, SIXTH(RELU6(x + 3)))
UNARY_FLOATS(hardswish, x *SIXTH(RELU6(x + 3)))
BINARY_FLOAT(hardsigmoid_backward, (y > -3) & (y < 3) ? x / 6 : 0)
BINARY_FLOAT(hardswish_backward, y <= -3 ? 0 : y < 3 ? x * (y / 3 + (__typeof__(x))0.5) : x)
POINTWISE(hardsigmoid, AT_FLOATS(hardsigmoid))
POINTWISE(hardswish, AT_FLOATS(hardswish))
POINTWISE(hardsigmoid_backward, AT_FLOAT(hardsigmoid_backward))
POINTWISE(hardswish_backward, AT_FLOAT(hardswish_backward))

#define SLOPE(T) T slope = PARAM_F(T, params, a)
UNARY_FLOAT_WITH(leaky_relu, SLOPE, x > 0 ? x : x * slope)
BINARY_FLOAT_WITH(leaky_relu_backward, SLOPE, y > 0 ? x : x * slope)
POINTWISE(leaky_relu, AT_FLOAT(leaky_relu))
POINTWISE(leaky_relu_backward, AT_FLOAT(leaky_relu_backward))

#define ENDS(T) T low = PARAM_F(T, params, a), high = PARAM_F(T, params, b)
BINARY_FLOAT_WITH(hardtanh_backward, ENDS, (y <= low) | (y >= high) ? 0 : x)
POINTWISE(hardtanh_backward, AT_FLOAT(hardtanh_backward))

/* x where y > a, else b. With y = x that is threshold, with b = 0 its gradient. */
#define LIMIT_F(T) T limit = PARAM_F(T, params, a), other = PARAM_F(T, params, b)
#define LIMIT_I(T) T limit = PARAM_I(T, params, a), other = PARAM_I(T, params, b)
BINARY_FLOAT_WITH(threshold, LIMIT_F, y <= limit ? other : x)
BINARY_INT_WITH(threshold, LIMIT_I, y <= limit ? other : x)
POINTWISE(threshold, AT_INT(threshold), AT_FLOAT(threshold))

#define LAMBDA(T) T lambda = PARAM_F(T, params, a)
UNARY_FLOAT_WITH(hardshrink, LAMBDA, (x >= -lambda) & (x <= lambda) ? 0 : x)
UNARY_FLOAT_WITH(softshrink, LAMBDA,
		 x > lambda  ? x - lambda :
		 x < -lambda ? x + lambda :
		 x != x	     ? x :
			       0)
BINARY_FLOAT_WITH(shrink_backward, LAMBDA, (y >= -lambda) & (y <= lambda) ? 0 : x)
POINTWISE(hardshrink, AT_FLOAT(hardshrink))
POINTWISE(softshrink, AT_FLOAT(softshrink))
POINTWISE(shrink_backward, AT_FLOAT(shrink_backward))

/* Gradients from the saved result y. */
BINARY_FLOATS(relu_backward, y <= 0 ? 0 : x)
POINTWISE(relu_backward, AT_FLOATS(relu_backward))
BINARY_FLOATS(tanh_backward, x *(1 - y * y))
BINARY_COMPLEX(tanh_backward, COMPLEX_MUL(x, conj(1 - COMPLEX_MUL(y, y))))
POINTWISE(tanh_backward, AT_FLOATS(tanh_backward), AT_COMPLEX(tanh_backward))
BINARY_FLOATS(sigmoid_backward, x *(1 - y) * y)
BINARY_COMPLEX(sigmoid_backward, COMPLEX_MUL(x, conj(COMPLEX_MUL(1 - y, y))))
POINTWISE(sigmoid_backward, AT_FLOATS(sigmoid_backward), AT_COMPLEX(sigmoid_backward))

/* a: alpha; b: scale; c: scale of the input. y is the saved result, negative where the input is. */
#define ELU_PARAMS(T) \
	T alpha = PARAM_F(T, params, a), scale = PARAM_F(T, params, b), in = PARAM_F(T, params, c)
BINARY_FLOAT_WITH(elu_backward_result, ELU_PARAMS,
		  y <= 0 ? x * in * (y + alpha * scale) : x * scale)
POINTWISE(elu_backward_result, AT_FLOAT(elu_backward_result))

/* z is exp(-|y|), saved by log_sigmoid. */
TERNARY_FLOAT_WITH(log_sigmoid_backward, NO_PARAMS, x *(y < 0 ? 1 - z / (1 + z) : z / (1 + z)))
POINTWISE(log_sigmoid_backward, AT_FLOAT(log_sigmoid_backward))
