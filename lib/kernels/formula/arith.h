/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* add, sub, mul, div, neg. Integers wrap. */
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
BINARY_FLOATS(div, x / y)
/* A zero divisor divides the real and the imaginary part. */
BINARY_COMPLEX(div,
	       y == 0 ? COMPLEX_OF(x, creal(x) / fabs(creal(y)), cimag(x) / fabs(creal(y))) : x / y)

/* x + alpha * y; a: alpha */
#define ALPHA_INT(d, T, D) \
	BINARY_LOOP_WITH(add_alpha_##d, T, T, T alpha = PARAM_I(T, params, a), (T)(x + alpha * y))
#define ALPHA_FLOAT(d, T, D) \
	BINARY_LOOP_WITH(add_alpha_##d, T, T, T alpha = PARAM_F(T, params, a), x + alpha * y)
#define ALPHA_COMPLEX(d, T, D)                                                 \
	BINARY_LOOP_WITH(add_alpha_##d, T, T, T alpha = PARAM_F(T, params, a), \
			 x + COMPLEX_MUL(alpha, y))
BINARY_LOOP_WITH(add_alpha_bool, uint8_t, uint8_t, uint8_t alpha = PARAM_I(int64_t, params, a) != 0,
		 x | (alpha & y))
DTYPES_WRAPPING(ALPHA_INT)
DTYPES_FLOAT(ALPHA_FLOAT)
DTYPES_COMPLEX(ALPHA_COMPLEX)

#define ADD(d, T, D)   AT_DTYPE(D, add_##d),
#define SUB(d, T, D)   AT_DTYPE(D, sub_##d),
#define MUL(d, T, D)   AT_DTYPE(D, mul_##d),
#define NEG(d, T, D)   AT_DTYPE(D, neg_##d),
#define ALPHA(d, T, D) AT_DTYPE(D, add_alpha_##d),

BINARY_BF16(add, x + y)
BINARY_BF16(sub, x - y)
BINARY_BF16(mul, x *y)
BINARY_F16(add, x + y)
BINARY_F16(sub, x - y)
BINARY_F16(mul, x *y)
/* f16 and bf16 have the sign bit in the same place. */
UNARY_LOOP(neg_reduced_float, uint16_t, uint16_t, x ^ 0x8000)

#define NUMBERS(X, N) DTYPES_WRAPPING(X) AT_WRAPPED(N) DTYPES_FLOAT(X) DTYPES_COMPLEX(X)

POINTWISE(add, NUMBERS(ADD, add) AT_DTYPE(TENSOR_BOOL, add_bool), AT_REDUCED(add))
POINTWISE(add_alpha, NUMBERS(ALPHA, add_alpha) AT_DTYPE(TENSOR_BOOL, add_alpha_bool))
POINTWISE(sub, NUMBERS(SUB, sub) AT_REDUCED(sub))
POINTWISE(mul, NUMBERS(MUL, mul) AT_DTYPE(TENSOR_BOOL, mul_bool), AT_REDUCED(mul))
POINTWISE(div, AT_FLOATS(div), AT_COMPLEX(div))
POINTWISE(neg, NUMBERS(NEG, neg) AT_DTYPE(TENSOR_BF16, neg_reduced_float),
	  AT_DTYPE(TENSOR_F16, neg_reduced_float))
