/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Trigonometric and hyperbolic functions and their inverses, real and complex. */
#define TRIG(f)                \
	VEC_UNARY(f, f)        \
	UNARY_COMPLEX(f, f(x)) \
	POINTWISE(f, AT_FLOAT(f), AT_COMPLEX(f))

TRIG(sin)
TRIG(cos)
TRIG(tan)
TRIG(asin)
TRIG(acos)
TRIG(atan)
TRIG(sinh)
TRIG(cosh)
TRIG(atanh)
TRIG(acosh)
TRIG(asinh)

VEC_BINARY(atan2, atan2)
POINTWISE(atan2, AT_FLOAT(atan2))
VEC_BINARY(hypot, hypot)
POINTWISE(hypot, AT_FLOAT(hypot))
