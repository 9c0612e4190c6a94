/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The kernels of CUDA that are formulas, by file of lib/kernels/formula; the includer defines X (no
 * include guard). */

/* activation.h */
X(elu_backward_result)
X(hardshrink)
X(hardsigmoid)
X(hardsigmoid_backward)
X(hardswish)
X(hardswish_backward)
X(hardtanh_backward)
X(leaky_relu)
X(leaky_relu_backward)
X(log_sigmoid_backward)
X(relu)
X(relu_backward)
X(shrink_backward)
X(sigmoid_backward)
X(softshrink)
X(tanh_backward)
X(threshold)

/* activation_exp.h */
X(elu)
X(elu_backward)
X(gelu)
X(gelu_backward)
X(gelu_tanh)
X(gelu_tanh_backward)
X(log_sigmoid)
X(log_sigmoid_buffer)
X(mish)
X(mish_backward)
X(silu)
X(silu_backward)
X(softplus)
X(softplus_backward)

/* arith.h */
X(add)
X(add_alpha)
X(div)
X(mul)
X(neg)
X(sub)

/* bitwise.h */
X(bitwise_and)
X(bitwise_left_shift)
X(bitwise_not)
X(bitwise_or)
X(bitwise_right_shift)
X(bitwise_xor)
X(logical_and)
X(logical_or)
X(logical_xor)

/* compare.h */
X(eq)
X(ge)
X(gt)
X(le)
X(lt)
X(ne)
X(where)

/* counts.h */
X(divide_counts)

/* divide.h */
X(div_floor)
X(div_trunc)
X(fmod)
X(remainder)

/* logs.h */
X(logaddexp)
X(logaddexp2)
X(xlogy)

/* math.h */
X(exp)
X(exp2)
X(expm1)
X(log)
X(log10)
X(log1p)
X(log2)
X(reciprocal)
X(rsqrt)
X(sigmoid)
X(sqrt)
X(tanh)

/* minmax.h */
X(clamp)
X(clamp_tensor)
X(fmax)
X(fmin)
X(maximum)
X(minimum)

/* power.h */
X(copysign)
X(cube)
X(inverse_square)
X(nextafter)
X(pow)

/* round.h */
X(ceil)
X(floor)
X(frac)
X(round)
X(round_decimals)
X(trunc)

/* sign.h */
X(abs)
X(angle)
X(conj_physical)
X(isfinite)
X(isinf)
X(isnan)
X(isneginf)
X(isposinf)
X(logical_not)
X(sgn)
X(sign)
X(signbit)
X(square)

/* special.h */
X(digamma)
X(erf)
X(erfc)
X(erfinv)
X(lgamma)
X(polygamma)

/* ternary.h */
X(addcdiv)
X(addcmul)
X(lerp)
X(nan_to_num)

/* trig.h */
X(acos)
X(acosh)
X(asin)
X(asinh)
X(atan)
X(atan2)
X(atanh)
X(cos)
X(cosh)
X(hypot)
X(sin)
X(sinh)
X(tan)
