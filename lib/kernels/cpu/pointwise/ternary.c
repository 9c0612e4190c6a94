// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* lerp, addcmul, addcdiv; nan_to_num. */
#include "kernels/cpu/simd/complex_mul.h"
#include "kernels/cpu/simd/loops.h"

#include <tgmath.h>

/* From the nearer end, so that weight z = 1 gives exactly y. */
#define LERP(near, x, y, z) (((near) ? (x) : (y)) + ((near) ? (z) : (z)-1) * ((y) - (x)))
#define LERP_COMPLEX(near, x, y, z) \
	((near) ? (x) + COMPLEX_MUL(z, (y) - (x)) : (y)-COMPLEX_MUL((y) - (x), 1 - (z)))
TERNARY_FLOAT_WITH(lerp, NO_DECL, LERP(fabs(z) < (float)0.5, x, y, z))
TERNARY_COMPLEX_WITH(lerp, NO_DECL,
		     LERP_COMPLEX(creal(z) * creal(z) + cimag(z) * cimag(z) < (float)0.25, x, y, z))
TERNARY_BF16_WITH(lerp, NO_DECL, LERP(fabsf(z) < 0.5f, x, y, z))
POINTWISE(lerp, AT_FLOAT(lerp), AT_COMPLEX(lerp), AT_BF16(lerp))

#define VALUE_F(T) T value = PARAM_F(T, params, a)
#define VALUE_I(T) T value = PARAM_I(T, params, a)
TERNARY_FLOAT_WITH(addcmul, VALUE_F, x + value * y * z)
TERNARY_COMPLEX_WITH(addcmul, VALUE_F, x + COMPLEX_MUL(COMPLEX_MUL(value, y), z))
TERNARY_INT_WITH(addcmul, VALUE_I, x + value * y * z)
TERNARY_BF16_WITH(addcmul, VALUE_F, x + value * y * z)
POINTWISE(addcmul, AT_INT(addcmul), AT_FLOAT(addcmul), AT_COMPLEX(addcmul), AT_BF16(addcmul))

TERNARY_FLOAT_WITH(addcdiv, VALUE_F, x + value * y / z)
TERNARY_COMPLEX_WITH(addcdiv, VALUE_F, x + COMPLEX_MUL(value, y) / z)
TERNARY_BF16_WITH(addcdiv, VALUE_F, x + value * y / z)
POINTWISE(addcdiv, AT_FLOAT(addcdiv), AT_COMPLEX(addcdiv), AT_BF16(addcdiv))

/* a replaces NaN, b and c replace the infinities. */
#define FINITE(x, nan, up, down) \
	(IS_NAN(x) ? (nan) : (x) == INFINITY ? (up) : (x) == -INFINITY ? (down) : (x))
#define REPLACEMENTS(T) \
	T nan = PARAM_F(T, params, a), up = PARAM_F(T, params, b), down = PARAM_F(T, params, c)
UNARY_FLOAT_WITH(nan_to_num, REPLACEMENTS, FINITE(x, nan, up, down))
UNARY_LOOP_WITH(nan_to_num_c64, float complex, float complex, REPLACEMENTS(float),
		CMPLXF(FINITE(crealf(x), nan, up, down), FINITE(cimagf(x), nan, up, down)))
UNARY_LOOP_WITH(nan_to_num_c128, double complex, double complex, REPLACEMENTS(double),
		CMPLX(FINITE(creal(x), nan, up, down), FINITE(cimag(x), nan, up, down)))
UNARY_BITS(same, x)
POINTWISE(nan_to_num, AT_BITS(same), AT_FLOAT(nan_to_num),
	  AT_COMPLEX(nan_to_num), [TENSOR_BOOL] = same_w8)

CPU_KERNELS(K(lerp), K(addcmul), K(addcdiv), K(nan_to_num))
