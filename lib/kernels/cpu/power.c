// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Powers; copysign, which like them takes a number apart. */
#include "complex_mul.h"
#include "vecloop.h"

#include <tgmath.h>

/* By squaring, wrapping. A negative exponent leaves something of 1 and -1 only. */
#define POWER(d, T, D)                                                                            \
	static inline T power_##d(T base, T exponent)                                             \
	{                                                                                         \
		T result = 1;                                                                     \
                                                                                                  \
		if ((int64_t)exponent < 0)                                                        \
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

VEC_SLEEF_2(pow)
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

CPU_KERNELS(K(pow), K(cube), K(inverse_square), K(copysign))
