/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Rounding. Integers are copied. */
UNARY_BITS(same, x)

#define ROUNDING(f, EXPR, ...) \
	UNARY_FLOATS(f, EXPR)  \
	POINTWISE(f, AT_FLOATS(f), AT_BITS(same), ##__VA_ARGS__)
ROUNDING(ceil, ceil(x))
ROUNDING(floor, floor(x))
ROUNDING(trunc, trunc(x))
UNARY_COMPLEX(round, COMPLEX_OF(x, rint(creal(x)), rint(cimag(x))))
ROUNDING(round, rint(x), AT_COMPLEX(round)) /* half to even */

UNARY_FLOAT(frac, x - trunc(x))
POINTWISE(frac, AT_FLOAT(frac))

/* To decimal places after the point (a: 10^places) or before it (b: 10^places); the other is 1. */
#define DECIMALS(T) T up = PARAM_F(T, params, a), down = PARAM_F(T, params, b)
UNARY_FLOAT_WITH(round_decimals, DECIMALS, down == 1 ? rint(x * up) / up : rint(x / down) * down)
POINTWISE(round_decimals, AT_FLOAT(round_decimals))
