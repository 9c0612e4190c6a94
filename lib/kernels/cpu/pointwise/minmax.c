// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The greater, the less, and both: clamp. */
#include "kernels/cpu/simd/loops.h"

/* NaN wins. */
BINARY_INT(maximum, x > y ? x : y)
BINARY_INT(minimum, x < y ? x : y)
BINARY_FLOAT(maximum, (x > y) | (x != x) ? x : y)
BINARY_FLOAT(minimum, (x < y) | (x != x) ? x : y)
BINARY_BF16(maximum, (x > y) | (x != x) ? x : y)
BINARY_BF16(minimum, (x < y) | (x != x) ? x : y)
POINTWISE(maximum, AT_INT(maximum), AT_FLOAT(maximum), AT_BF16(maximum), [TENSOR_BOOL] = maximum_u8)
POINTWISE(minimum, AT_INT(minimum), AT_FLOAT(minimum), AT_BF16(minimum), [TENSOR_BOOL] = minimum_u8)

/* NaN loses. */
BINARY_FLOAT(fmax, (x >= y) | (y != y) ? x : y)
BINARY_FLOAT(fmin, (x <= y) | (y != y) ? x : y)
POINTWISE(fmax, AT_INT(maximum), AT_FLOAT(fmax), [TENSOR_BOOL] = maximum_u8)
POINTWISE(fmin, AT_INT(minimum), AT_FLOAT(fmin), [TENSOR_BOOL] = minimum_u8)

/* Between two numbers, neither of which is NaN. */
#define ENDS_F(T) T low = PARAM_F(T, a), high = PARAM_F(T, b)
#define ENDS_I(T) T low = PARAM_I(T, a), high = PARAM_I(T, b)
#define CLAMP_LOW (x < low ? low : x)
UNARY_FLOAT_WITH(clamp, ENDS_F, CLAMP_LOW > high ? high : CLAMP_LOW)
#define CLAMP_BETWEEN(d, T, D) \
	UNARY_LOOP_WITH(clamp_##d, T, T, ENDS_I(T), CLAMP_LOW > high ? high : CLAMP_LOW)
DTYPES_INT(CLAMP_BETWEEN)
UNARY_BF16_WITH(clamp, ENDS_F(float), CLAMP_LOW > high ? high : CLAMP_LOW)
POINTWISE(clamp, AT_INT(clamp), AT_FLOAT(clamp), AT_BF16(clamp))

/* Between tensors: NaN in any of the three wins. */
#define CLAMP_UP(T) ((x < y) | (y != y) ? (T)y : (T)x)
#define CLAMP_TENSOR(d, T, D)                                      \
	TERNARY_LOOP_WITH(clamp_tensor_##d, T, T, T, (void)params, \
			  (CLAMP_UP(T) > z) | ((z != z) & (x == x)) ? z : CLAMP_UP(T))
DTYPES_FLOAT(CLAMP_TENSOR)
#define CLAMP_INTS(d, T, D)                                        \
	TERNARY_LOOP_WITH(clamp_tensor_##d, T, T, T, (void)params, \
			  (x < y ? y : x) > z ? z : (x < y ? y : x))
DTYPES_INT(CLAMP_INTS)
POINTWISE(clamp_tensor, AT_INT(clamp_tensor), AT_FLOAT(clamp_tensor))

CPU_KERNELS(K(maximum), K(minimum), K(fmax), K(fmin), K(clamp), K(clamp_tensor))
