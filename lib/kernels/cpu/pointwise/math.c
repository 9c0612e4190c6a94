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

#include "kernels/formula/math.h"

CPU_KERNELS(K(exp), K(exp2), K(expm1), K(log), K(log2), K(log10), K(log1p), K(tanh), K(sigmoid),
	    K(sqrt), K(rsqrt), K(reciprocal))
