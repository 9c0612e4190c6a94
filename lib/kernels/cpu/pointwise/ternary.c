// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Three operands: lerp, addcmul, addcdiv; and nan_to_num, which has three numbers. */
#include "kernels/cpu/simd/complex_mul.h"
#include "kernels/cpu/simd/loops.h"

#include <tgmath.h>

/* From the end that is nearer, so that weight 1 gives y exactly. */
#define LERP(NEAR)	   (NEAR) ? x + z *(y - x) : y - (y - x) * (1 - z)
#define LERP_COMPLEX(NEAR) (NEAR) ? x + COMPLEX_MUL(z, y - x) : y - COMPLEX_MUL(y - x, 1 - z)
TERNARY_FLOAT_WITH(lerp, NO_DECL, LERP(fabs(z) < (float)0.5))
TERNARY_COMPLEX_WITH(lerp, NO_DECL,
		     LERP_COMPLEX(creal(z) * creal(z) + cimag(z) * cimag(z) < (float)0.25))
POINTWISE(lerp, AT_FLOAT(lerp), AT_COMPLEX(lerp))

#define VALUE_F(T) T value = PARAM_F(T, a)
#define VALUE_I(T) T value = PARAM_I(T, a)
TERNARY_FLOAT_WITH(addcmul, VALUE_F, x + value * y * z)
TERNARY_COMPLEX_WITH(addcmul, VALUE_F, x + COMPLEX_MUL(COMPLEX_MUL(value, y), z))
TERNARY_INT_WITH(addcmul, VALUE_I, x + value * y * z)
POINTWISE(addcmul, AT_INT(addcmul), AT_FLOAT(addcmul), AT_COMPLEX(addcmul))

TERNARY_FLOAT_WITH(addcdiv, VALUE_F, x + value * y / z)
TERNARY_COMPLEX_WITH(addcdiv, VALUE_F, x + COMPLEX_MUL(value, y) / z)
POINTWISE(addcdiv, AT_FLOAT(addcdiv), AT_COMPLEX(addcdiv))

/* a for NaN, b and c for the infinities. */
#define FINITE(x) ((x) != (x) ? nan : (x) == INFINITY ? up : (x) == -INFINITY ? down : (x))
#define FILLS(T)  T nan = PARAM_F(T, a), up = PARAM_F(T, b), down = PARAM_F(T, c)
UNARY_FLOAT_WITH(nan_to_num, FILLS, FINITE(x))
UNARY_LOOP_WITH(nan_to_num_c64, float complex, float complex, FILLS(float),
		CMPLXF(FINITE(crealf(x)), FINITE(cimagf(x))))
UNARY_LOOP_WITH(nan_to_num_c128, double complex, double complex, FILLS(double),
		CMPLX(FINITE(creal(x)), FINITE(cimag(x))))
UNARY_BITS(same, x)
POINTWISE(nan_to_num, AT_BITS(same), AT_FLOAT(nan_to_num),
	  AT_COMPLEX(nan_to_num), [TENSOR_BOOL] = same_w8)

CPU_KERNELS(K(lerp), K(addcmul), K(addcdiv), K(nan_to_num))
