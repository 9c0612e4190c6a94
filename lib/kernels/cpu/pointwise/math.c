// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Exponentials, logarithms and roots; sigmoid and tanh. */
#include "kernels/cpu/simd/vec_logs.h"

#include <tgmath.h>

VEC_SLEEF_1(exp2)

#define V    vec_f32
#define F(x) x##_f32v
#include "kernels/formula/sigmoid_float.h"
#undef V
#undef F
#define V    vec_f64
#define F(x) x##_f64v
#include "kernels/formula/sigmoid_float.h"
#undef V
#undef F

#if defined(__AVX512F__)
#include "kernels/cpu/simd/vec_sqrt.h"
#define SQRT_FLOATS                                                                    \
	VEC_LOOP_1(sqrt, f32, float, vec_f32, VEC_F32, (void)params, vec_sqrt_f32(x))  \
	VEC_LOOP_1(sqrt, f64, double, vec_f64, VEC_F64, (void)params, vec_sqrt_f64(x)) \
	UNARY_BF16_WITH(sqrt, NO_PARAMS, sqrt(x))                                      \
	UNARY_F16_WITH(sqrt, NO_PARAMS, sqrt(x))
#endif

#include "kernels/formula/math.h"

CPU_KERNELS(K(exp), K(exp2), K(expm1), K(log), K(log2), K(log10), K(log1p), K(tanh), K(sigmoid),
	    K(sqrt), K(rsqrt), K(reciprocal))
