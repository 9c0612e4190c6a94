/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The kernels of CUDA that are formulas of lib/kernels/formula, by file: X(name). */
#ifndef TENSOR_CUDA_FORMULAS_H
#define TENSOR_CUDA_FORMULAS_H

#define CUDA_ACTIVATION(X)                                                                        \
	X(elu_backward_result)                                                                    \
	X(hardshrink)                                                                             \
	X(hardsigmoid) X(hardsigmoid_backward) X(hardswish) X(hardswish_backward)                 \
		X(hardtanh_backward) X(leaky_relu) X(leaky_relu_backward) X(log_sigmoid_backward) \
			X(relu) X(relu_backward) X(shrink_backward) X(sigmoid_backward)           \
				X(softshrink) X(tanh_backward) X(threshold)
#define CUDA_ACTIVATION_EXP(X)                                                          \
	X(elu)                                                                          \
	X(elu_backward)                                                                 \
	X(gelu) X(gelu_backward) X(gelu_tanh) X(gelu_tanh_backward) X(log_sigmoid)      \
		X(log_sigmoid_buffer) X(mish) X(mish_backward) X(silu) X(silu_backward) \
			X(softplus) X(softplus_backward)
#define CUDA_ARITH(X) X(add) X(add_alpha) X(div) X(mul) X(neg) X(sub)
#define CUDA_BITWISE(X)                                                                   \
	X(bitwise_and)                                                                    \
	X(bitwise_left_shift)                                                             \
	X(bitwise_not) X(bitwise_or) X(bitwise_right_shift) X(bitwise_xor) X(logical_and) \
		X(logical_or) X(logical_xor)
#define CUDA_COMPARE(X) X(eq) X(ge) X(gt) X(le) X(lt) X(ne) X(where)
#define CUDA_DIVIDE(X)	X(div_floor) X(div_trunc) X(fmod) X(remainder)
#define CUDA_LOGS(X)	X(logaddexp) X(logaddexp2) X(xlogy)
#define CUDA_MATH(X)                                                                        \
	X(exp)                                                                              \
	X(exp2)                                                                             \
	X(expm1) X(log) X(log10) X(log1p) X(log2) X(reciprocal) X(rsqrt) X(sigmoid) X(sqrt) \
		X(tanh)
#define CUDA_MINMAX(X) X(clamp) X(clamp_tensor) X(fmax) X(fmin) X(maximum) X(minimum)
#define CUDA_POWER(X)  X(copysign) X(cube) X(inverse_square) X(nextafter) X(pow)
#define CUDA_ROUND(X)  X(ceil) X(floor) X(frac) X(round) X(round_decimals) X(trunc)
#define CUDA_SIGN(X)                                                                          \
	X(abs)                                                                                \
	X(angle)                                                                              \
	X(conj_physical) X(isfinite) X(isinf) X(isnan) X(isneginf) X(isposinf) X(logical_not) \
		X(sgn) X(sign) X(signbit) X(square)
#define CUDA_SPECIAL(X) X(digamma) X(erf) X(erfc) X(erfinv) X(lgamma) X(polygamma)
#define CUDA_TERNARY(X) X(addcdiv) X(addcmul) X(lerp) X(nan_to_num)
#define CUDA_TRIG(X) \
	X(acos)      \
	X(acosh)     \
	X(asin) X(asinh) X(atan) X(atan2) X(atanh) X(cos) X(cosh) X(hypot) X(sin) X(sinh) X(tan)

#define CUDA_FORMULAS(X)                                                                       \
	CUDA_ACTIVATION(X)                                                                     \
	CUDA_ACTIVATION_EXP(X)                                                                 \
	CUDA_ARITH(X) CUDA_BITWISE(X) CUDA_COMPARE(X) CUDA_DIVIDE(X) CUDA_LOGS(X) CUDA_MATH(X) \
		CUDA_MINMAX(X) CUDA_POWER(X) CUDA_ROUND(X) CUDA_SIGN(X) CUDA_SPECIAL(X)        \
			CUDA_TERNARY(X) CUDA_TRIG(X)

#endif
