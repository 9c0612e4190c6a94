/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* pow, cube, inverse_square, copysign, nextafter. */
/* By squaring; products wrap. With a negative exponent, the result is 0 unless base is 1 or -1. */
#define POWER(d, T, D)                                                                            \
	FORMULA T power_##d(T base, T exponent)                                                   \
	{                                                                                         \
		T result = 1;                                                                     \
                                                                                                  \
		if (NEGATIVE(exponent))                                                           \
			return base == 1 ? 1 : (int64_t)base == -1 ? (exponent & 1 ? -1 : 1) : 0; \
		for (; exponent; exponent = (T)(exponent >> 1)) {                                 \
			if (exponent & 1)                                                         \
				result = (T)(result * base);                                      \
			base = (T)(base * base);                                                  \
		}                                                                                 \
		return result;                                                                    \
	}                                                                                         \
	BINARY_LOOP(pow_##d, T, T, power_##d(x, y))
DTYPES_INT(POWER)

VEC_BINARY(pow, pow)
BINARY_COMPLEX(pow, (y == 0) & (x - x == 0) ? 1 : pow(x, y))
POINTWISE(pow, AT_INT(pow), AT_FLOAT(pow), AT_COMPLEX(pow))

UNARY_BITS(cube, x *x *x)
UNARY_FLOAT(cube, x *x *x)
UNARY_COMPLEX(cube, COMPLEX_MUL(COMPLEX_MUL(x, x), x))
POINTWISE(cube, AT_BITS(cube), AT_FLOAT(cube), AT_COMPLEX(cube))
UNARY_FLOAT(inverse_square, 1 / (x * x))
UNARY_COMPLEX(inverse_square, 1 / COMPLEX_MUL(x, x))
POINTWISE(inverse_square, AT_FLOAT(inverse_square), AT_COMPLEX(inverse_square))

BINARY_FLOAT(copysign, copysign(x, y))
POINTWISE(copysign, AT_FLOAT(copysign))

BINARY_FLOAT(nextafter, nextafter(x, y))

/* The bits of an f16 or bf16 as an integer in the same order. */
FORMULA int reduced_float_order(uint16_t x)
{
	return x & 0x8000 ? -(x & 0x7fff) : x;
}

/* nextafter on the bits of f16 or bf16; infinity: the bits of infinity in that dtype. */
FORMULA uint16_t nextafter_bits(uint16_t x, uint16_t y, uint16_t infinity)
{
	if ((x & 0x7fff) > infinity)
		return x;
	if ((y & 0x7fff) > infinity || reduced_float_order(x) == reduced_float_order(y))
		return y;
	if (!(x & 0x7fff))
		return (y & 0x8000) | 1;
	return (reduced_float_order(x) < reduced_float_order(y)) == !(x & 0x8000) ? x + 1 : x - 1;
}
BINARY_LOOP(nextafter_f16, uint16_t, uint16_t, nextafter_bits(x, y, 0x7c00))
BINARY_LOOP(nextafter_bf16, uint16_t, uint16_t, nextafter_bits(x, y, 0x7f80))
