/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* abs, sign, sgn, square, conj, angle; tests for NaN, infinities and signs. */
UNARY_BITS(same, x)
UNARY_SIGNED(abs, x < 0 ? -x : x)
UNARY_FLOAT(abs, fabs(x))
UNARY_COMPLEX_REAL(abs, cabs(x))
/* f16 and bf16 have the sign bit in the same place. */
UNARY_LOOP(abs_reduced_float, uint16_t, uint16_t, x & 0x7fff)
POINTWISE_REAL(abs, AT_SIGNED(abs), AT_FLOAT(abs), AT_COMPLEX(abs), AT_BITS_UNSIGNED(same),
	       AT_DTYPE(TENSOR_BF16, abs_reduced_float), AT_DTYPE(TENSOR_F16, abs_reduced_float))

UNARY_UNSIGNED(sign, x != 0)
UNARY_SIGNED(sign, (x > 0) - (x < 0))
UNARY_FLOAT(sign, (x > 0) - (x < 0))
UNARY_COMPLEX(sgn, x == 0 ? 0 : x / fabs(x))
POINTWISE(sign, AT_INT(sign), AT_FLOAT(sign), AT_DTYPE(TENSOR_BOOL, same_w8))
POINTWISE(sgn, AT_INT(sign), AT_FLOAT(sign), AT_COMPLEX(sgn), AT_DTYPE(TENSOR_BOOL, same_w8))

UNARY_BITS(square, x *x)
UNARY_FLOAT(square, x *x)
UNARY_COMPLEX(square, COMPLEX_MUL(x, x))
POINTWISE(square, AT_BITS(square), AT_FLOAT(square), AT_COMPLEX(square))

UNARY_COMPLEX(conj, conj(x))
UNARY_LOOP(same_f32, float, float, x)
UNARY_LOOP(same_f64, double, double, x)
POINTWISE(conj_physical, AT_BITS(same), AT_FLOAT(same), AT_COMPLEX(conj),
	  AT_DTYPE(TENSOR_BOOL, same_w8))

UNARY_FLOAT(angle, x < 0 ? M_PI : x != x ? x : 0)
UNARY_COMPLEX_REAL(angle, carg(x))
POINTWISE_REAL(angle, AT_FLOAT(angle), AT_COMPLEX(angle))

/* ---- result bool ---- */

TEST_BITS(never, x != x)
TEST_BITS(always, x == x)
#define AT_INTEGRAL(N) AT_BITS(N), AT_DTYPE(TENSOR_BOOL, N##_w8)

TEST_FLOAT(isnan, x != x)
TEST_COMPLEX(isnan, x != x)
PREDICATE(isnan, AT_INTEGRAL(never), AT_FLOAT(isnan), AT_COMPLEX(isnan))

TEST_FLOAT(isinf, fabs(x) == INFINITY)
TEST_COMPLEX(isinf, (fabs(creal(x)) == INFINITY) | (fabs(cimag(x)) == INFINITY))
PREDICATE(isinf, AT_INTEGRAL(never), AT_FLOAT(isinf), AT_COMPLEX(isinf))

TEST_FLOAT(isfinite, fabs(x) < INFINITY)
TEST_COMPLEX(isfinite, (fabs(creal(x)) < INFINITY) & (fabs(cimag(x)) < INFINITY))
PREDICATE(isfinite, AT_INTEGRAL(always), AT_FLOAT(isfinite), AT_COMPLEX(isfinite))

TEST_FLOAT(isposinf, x == INFINITY)
PREDICATE(isposinf, AT_INTEGRAL(never), AT_FLOAT(isposinf))
TEST_FLOAT(isneginf, x == -INFINITY)
PREDICATE(isneginf, AT_INTEGRAL(never), AT_FLOAT(isneginf))

UNARY_LOOP(signbit_i8, int8_t, uint8_t, x < 0)
UNARY_LOOP(signbit_i16, int16_t, uint8_t, x < 0)
UNARY_LOOP(signbit_i32, int32_t, uint8_t, x < 0)
UNARY_LOOP(signbit_i64, int64_t, uint8_t, x < 0)
UNARY_LOOP(signbit_f32, float, uint8_t, signbit(x) != 0)
UNARY_LOOP(signbit_f64, double, uint8_t, signbit(x) != 0)
PREDICATE(signbit, AT_SIGNED(signbit), AT_FLOAT(signbit), AT_DTYPE(TENSOR_BOOL, never_w8),
	  AT_BITS_UNSIGNED(never))

TEST_BITS(logical_not, !x)
TEST_FLOAT(logical_not, !x)
TEST_COMPLEX(logical_not, x == 0)
PREDICATE(logical_not, AT_INTEGRAL(logical_not), AT_FLOAT(logical_not), AT_COMPLEX(logical_not))
