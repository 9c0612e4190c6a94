/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* lerp, addcmul, addcdiv; nan_to_num. */
/* From the nearer end, so that weight z = 1 gives exactly y. */
#define LERP(near, x, y, z) (((near) ? (x) : (y)) + ((near) ? (z) : (z)-1) * ((y) - (x)))
#define LERP_COMPLEX(near, x, y, z) \
	((near) ? (x) + COMPLEX_MUL(z, (y) - (x)) : (y)-COMPLEX_MUL((y) - (x), 1 - (z)))
TERNARY_FLOATS_WITH(lerp, NO_PARAMS, LERP(fabs(z) < (float)0.5, x, y, z))
TERNARY_COMPLEX_WITH(lerp, NO_PARAMS,
		     LERP_COMPLEX(creal(z) * creal(z) + cimag(z) * cimag(z) < (float)0.25, x, y, z))
POINTWISE(lerp, AT_FLOATS(lerp), AT_COMPLEX(lerp))

#define VALUE_F(T) T value = PARAM_F(T, params, a)
#define VALUE_I(T) T value = PARAM_I(T, params, a)
TERNARY_FLOATS_WITH(addcmul, VALUE_F, x + value * y * z)
TERNARY_COMPLEX_WITH(addcmul, VALUE_F, x + COMPLEX_MUL(COMPLEX_MUL(value, y), z))
TERNARY_INT_WITH(addcmul, VALUE_I, x + value * y * z)
POINTWISE(addcmul, AT_INT(addcmul), AT_FLOATS(addcmul), AT_COMPLEX(addcmul))

TERNARY_FLOATS_WITH(addcdiv, VALUE_F, x + value * y / z)
TERNARY_COMPLEX_WITH(addcdiv, VALUE_F, x + COMPLEX_MUL(value, y) / z)
POINTWISE(addcdiv, AT_FLOATS(addcdiv), AT_COMPLEX(addcdiv))

/* a replaces NaN, b and c replace the infinities. */
#define FINITE(x, nan, up, down) \
	(IS_NAN(x) ? (nan) : (x) == INFINITY ? (up) : (x) == -INFINITY ? (down) : (x))
#define REPLACEMENTS(T) \
	T nan = PARAM_F(T, params, a), up = PARAM_F(T, params, b), down = PARAM_F(T, params, c)
UNARY_FLOAT_WITH(nan_to_num, REPLACEMENTS, FINITE(x, nan, up, down))
#define FINITE_COMPLEX(x) \
	COMPLEX_OF(x, FINITE(creal(x), nan, up, down), FINITE(cimag(x), nan, up, down))
UNARY_LOOP_WITH(nan_to_num_c64, complex_f32, complex_f32, REPLACEMENTS(float), FINITE_COMPLEX(x))
UNARY_LOOP_WITH(nan_to_num_c128, complex_f64, complex_f64, REPLACEMENTS(double), FINITE_COMPLEX(x))
UNARY_BITS(same, x)
POINTWISE(nan_to_num, AT_BITS(same), AT_FLOAT(nan_to_num), AT_COMPLEX(nan_to_num),
	  AT_DTYPE(TENSOR_BOOL, same_w8))
