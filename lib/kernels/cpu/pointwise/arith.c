// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* add, sub, mul, div, neg. Integers wrap. */
#include "kernels/cpu/simd/complex_mul.h"
#include "kernels/cpu/simd/loops.h"

#include <math.h>

#define ARITH(d, T, D)                         \
	BINARY_LOOP(add_##d, T, T, (T)(x + y)) \
	BINARY_LOOP(sub_##d, T, T, (T)(x - y)) \
	UNARY_LOOP(neg_##d, T, T, (T)(-x))
#define PRODUCT(d, T, D)	 BINARY_LOOP(mul_##d, T, T, (T)(x * y))
#define PRODUCT_COMPLEX(d, T, D) BINARY_LOOP(mul_##d, T, T, COMPLEX_MUL(x, y))
DTYPES_WRAPPING(ARITH)
DTYPES_WRAPPING(PRODUCT)
DTYPES_FLOAT(ARITH)
DTYPES_FLOAT(PRODUCT)
DTYPES_COMPLEX(ARITH)
DTYPES_COMPLEX(PRODUCT_COMPLEX)

BINARY_LOOP(add_bool, uint8_t, uint8_t, x | y)
/* All bytes but 0 are true. */
BINARY_LOOP(mul_bool, uint8_t, uint8_t, (x != 0) & (y != 0))
BINARY_LOOP(div_f32, float, float, x / y)
BINARY_LOOP(div_f64, double, double, x / y)
/* A zero divisor divides the real and the imaginary part. */
BINARY_LOOP(div_c64, float complex, float complex,
	    y == 0 ? CMPLXF(crealf(x) / fabsf(crealf(y)), cimagf(x) / fabsf(crealf(y))) : x / y)
BINARY_LOOP(div_c128, double complex, double complex,
	    y == 0 ? CMPLX(creal(x) / fabs(creal(y)), cimag(x) / fabs(creal(y))) : x / y)

/* x + alpha * y; a: alpha */
#define ALPHA_INT(d, T, D) \
	BINARY_LOOP_WITH(add_alpha_##d, T, T, T alpha = PARAM_I(T, params, a), (T)(x + alpha * y))
#define ALPHA_FLOAT(d, T, D)                                                                \
	BINARY_LOOP_WITH(add_alpha_##d, T, T, T alpha = (T)scalar_double(PARAM(params, a)), \
			 x + alpha * y)
#define ALPHA_COMPLEX(d, T, D)                                                 \
	BINARY_LOOP_WITH(add_alpha_##d, T, T, T alpha = PARAM_F(T, params, a), \
			 x + COMPLEX_MUL(alpha, y))
BINARY_LOOP_WITH(add_alpha_bool, uint8_t, uint8_t,
		 uint8_t alpha = scalar_int(PARAM(params, a)) != 0, x | (alpha & y))
DTYPES_WRAPPING(ALPHA_INT)
DTYPES_FLOAT(ALPHA_FLOAT)
DTYPES_COMPLEX(ALPHA_COMPLEX)

#define ADD(d, T, D)   [D] = add_##d,
#define SUB(d, T, D)   [D] = sub_##d,
#define MUL(d, T, D)   [D] = mul_##d,
#define NEG(d, T, D)   [D] = neg_##d,
#define ALPHA(d, T, D) [D] = add_alpha_##d,

#define DIV(d, T, D) [D] = div_##d,
BINARY_BF16(add, x + y)
BINARY_BF16(sub, x - y)
BINARY_BF16(mul, x *y)
BINARY_BF16(div, x / y)
/* f16 and bf16 have the sign bit in the same place. */
UNARY_LOOP(neg_reduced_float, uint16_t, uint16_t, x ^ 0x8000)

#define NUMBERS(X, N) DTYPES_WRAPPING(X) AT_WRAPPED(N) DTYPES_FLOAT(X) DTYPES_COMPLEX(X)

POINTWISE(add, NUMBERS(ADD, add)[TENSOR_BOOL] = add_bool, AT_BF16(add))
POINTWISE(add_alpha, NUMBERS(ALPHA, add_alpha)[TENSOR_BOOL] = add_alpha_bool)
POINTWISE(sub, NUMBERS(SUB, sub) AT_BF16(sub))
POINTWISE(mul, NUMBERS(MUL, mul)[TENSOR_BOOL] = mul_bool, AT_BF16(mul))
POINTWISE(div, DTYPES_FLOAT(DIV) DTYPES_COMPLEX(DIV) AT_BF16(div))
POINTWISE(neg, NUMBERS(NEG, neg)[TENSOR_BF16] = neg_reduced_float, [TENSOR_F16] = neg_reduced_float)

CPU_KERNELS(K(add), K(add_alpha), K(sub), K(mul), K(div), K(neg))
