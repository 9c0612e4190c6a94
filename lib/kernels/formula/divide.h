/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Integral quotients, rounded down (div_floor) or towards zero (div_trunc), and remainders with the
 * sign of the divisor (remainder) or of the dividend (fmod). Division of integers by zero is an
 * error; the least integer divided by -1 wraps.
 */
/* Loops over integers set a flag of the call if a divisor is zero. */
#define ZERO_FLAG(T) FLAG_TYPE zero = PARAM_FLAG(params)
/* The quotient, or `minus` if y is -1, or 0 and *zero set if y is 0. */
#define GUARDED(zero, y, quotient, minus) \
	((y) == 0 ? (SET_FLAG(zero), 0) : NEGATIVE(y) && (int64_t)(y) == -1 ? (minus) : (quotient))
/* Whether the quotient is negative and not exact. */
#define UNEVEN(x, y) (((x) % (y) != 0) & (NEGATIVE(x) != NEGATIVE(y)))

BINARY_INT_WITH(div_trunc, ZERO_FLAG, GUARDED(zero, y, x / y, -x))
BINARY_INT_WITH(div_floor, ZERO_FLAG, GUARDED(zero, y, x / y - UNEVEN(x, y), -x))
BINARY_INT_WITH(fmod, ZERO_FLAG, GUARDED(zero, y, x % y, 0))
BINARY_INT_WITH(remainder, ZERO_FLAG, GUARDED(zero, y, x % y + (UNEVEN(x, y) ? y : 0), 0))

VEC_BINARY(fmod, fmod)
BINARY_FLOAT(div_trunc, trunc(x / y))

/*
 * div_floor and remainder of floats from m = fmod(x, y), which is exact. The quotient
 * (x - m) / y is within rounding errors of an integer; it is rounded to that integer, and
 * reduced by 1 if m and y have different signs.
 */
#define FLOOR_OF(T)                                                                            \
	FORMULA T floor_of_##T(T x, T y, T m)                                                  \
	{                                                                                      \
		T q = (x - m) / y - ((m != 0) & ((y < 0) != (m < 0)) ? 1 : 0);                 \
		T whole = floor(q);                                                            \
                                                                                               \
		whole += q - whole > (T)0.5 ? 1 : 0;                                           \
		whole = q != 0 ? whole : copysign((T)0, x / y);                                \
		/* SLEEF's fmod() returns NaN for zero and for some subnormal divisors. */     \
		return (y == 0) | ((m != m) & (fabs(x) + fabs(y) < INFINITY)) ? x / y : whole; \
	}                                                                                      \
	FORMULA T remainder_of_##T(T x, T y, T m)                                              \
	{                                                                                      \
		return (m != 0) & ((y < 0) != (m < 0)) ? m + y : m;                            \
	}
FLOOR_OF(float)
FLOOR_OF(double)

AFTER_FMOD(div_floor, f32, float, floor_of)
AFTER_FMOD(div_floor, f64, double, floor_of)
AFTER_FMOD(remainder, f32, float, remainder_of)
AFTER_FMOD(remainder, f64, double, remainder_of)

DIVISION(div_trunc)
DIVISION(div_floor)
DIVISION(fmod)
DIVISION(remainder)
