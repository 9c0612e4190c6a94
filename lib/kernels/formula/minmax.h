/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* maximum, minimum, fmax, fmin, clamp. */
/* maximum and minimum: the result is NaN if an element is. */
BINARY_INT(maximum, x > y ? x : y)
BINARY_INT(minimum, x < y ? x : y)
BINARY_FLOATS(maximum, (x > y) | (x != x) ? x : y)
BINARY_FLOATS(minimum, (x < y) | (x != x) ? x : y)
POINTWISE(maximum, AT_INT(maximum), AT_FLOATS(maximum), AT_DTYPE(TENSOR_BOOL, maximum_u8))
POINTWISE(minimum, AT_INT(minimum), AT_FLOATS(minimum), AT_DTYPE(TENSOR_BOOL, minimum_u8))

/* fmax and fmin: the result is NaN if both elements are. */
BINARY_FLOAT(fmax, (x >= y) | (y != y) ? x : y)
BINARY_FLOAT(fmin, (x <= y) | (y != y) ? x : y)
POINTWISE(fmax, AT_INT(maximum), AT_FLOAT(fmax), AT_DTYPE(TENSOR_BOOL, maximum_u8))
POINTWISE(fmin, AT_INT(minimum), AT_FLOAT(fmin), AT_DTYPE(TENSOR_BOOL, minimum_u8))

/* a: low, b: high; neither is NaN. */
#define CLAMP_PARAMS_F(T)   T low = PARAM_F(T, params, a), high = PARAM_F(T, params, b)
#define CLAMP_PARAMS_I(T)   T low = PARAM_I(T, params, a), high = PARAM_I(T, params, b)
#define AT_LEAST(x, low)    ((x) < (low) ? (low) : (x))
#define CLAMP(x, low, high) (AT_LEAST(x, low) > (high) ? (high) : AT_LEAST(x, low))
UNARY_FLOATS_WITH(clamp, CLAMP_PARAMS_F, CLAMP(x, low, high))
#define CLAMP_INT(d, T, D) UNARY_LOOP_WITH(clamp_##d, T, T, CLAMP_PARAMS_I(T), CLAMP(x, low, high))
DTYPES_INT(CLAMP_INT)
POINTWISE(clamp, AT_INT(clamp), AT_FLOATS(clamp))

/* y: low, z: high; the result is NaN if any of the three is. */
#define AT_LEAST_NAN(T, x, low) (((x) < (low)) | IS_NAN(low) ? (T)(low) : (T)(x))
#define CLAMP_TENSOR(d, T, D)                                                      \
	TERNARY_LOOP_WITH(clamp_tensor_##d, T, T, T, NO_PARAMS(T),                 \
			  (AT_LEAST_NAN(T, x, y) > z) | (IS_NAN(z) & !IS_NAN(x)) ? \
				  z :                                              \
				  AT_LEAST_NAN(T, x, y))
DTYPES_FLOAT(CLAMP_TENSOR)
#define CLAMP_TENSOR_INT(d, T, D) \
	TERNARY_LOOP_WITH(clamp_tensor_##d, T, T, T, NO_PARAMS(T), CLAMP(x, y, z))
DTYPES_INT(CLAMP_TENSOR_INT)
POINTWISE(clamp_tensor, AT_INT(clamp_tensor), AT_FLOAT(clamp_tensor))
