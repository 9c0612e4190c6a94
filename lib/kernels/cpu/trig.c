// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Trigonometric and hyperbolic functions and their inverses, real and complex. */
#include "vecloop.h"

#include <tgmath.h>

#define TRIG(f)                                                                                   \
	VEC_SLEEF_1(f)                                                                            \
	VEC_UNARY(f, f)                                                                           \
	UNARY_COMPLEX(f, f(x))                                                                    \
	POINTWISE(f, AT_FLOAT(f), AT_COMPLEX(f))

TRIG(sin)
TRIG(cos)
TRIG(tan)
TRIG(asin)
TRIG(acos)
TRIG(atan)
TRIG(sinh)
TRIG(cosh)
TRIG(asinh)
TRIG(acosh)
TRIG(atanh)

VEC_SLEEF_2(atan2)
VEC_BINARY(atan2, atan2)
POINTWISE(atan2, AT_FLOAT(atan2))

static inline vec_f32 hypot_v32(vec_f32 x, vec_f32 y)
{
	return (vec_f32)SLEEF_F32_(hypot, _u05)((sleef_f32)x, (sleef_f32)y);
}

static inline vec_f64 hypot_v64(vec_f64 x, vec_f64 y)
{
	return (vec_f64)SLEEF_F64_(hypot, _u05)((sleef_f64)x, (sleef_f64)y);
}
VEC_BINARY(hypot, hypot)
POINTWISE(hypot, AT_FLOAT(hypot))

CPU_KERNELS(K(sin), K(cos), K(tan), K(asin), K(acos), K(atan), K(sinh), K(cosh), K(asinh),
	    K(acosh), K(atanh), K(atan2), K(hypot))
