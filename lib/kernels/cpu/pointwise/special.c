// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * erf, erfc, erfinv, lgamma, digamma, polygamma. Functions that SLEEF does not have are computed
 * element by element, in double.
 */
#include "kernels/cpu/simd/vecmath.h"

#include <tgmath.h>

VEC_SLEEF_1(lgamma)

static inline vec_f32 erfc_v32(vec_f32 x)
{
	return (vec_f32)SLEEF_F32_(erfc, _u15)((sleef_f32)x);
}

static inline vec_f64 erfc_v64(vec_f64 x)
{
	return (vec_f64)SLEEF_F64_(erfc, _u15)((sleef_f64)x);
}

#include "kernels/formula/special.h"

CPU_KERNELS(K(erf), K(erfc), K(erfinv), K(lgamma), K(digamma), K(polygamma))
