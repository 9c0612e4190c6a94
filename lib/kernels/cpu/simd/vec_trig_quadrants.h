/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * sin and cos on vectors of AVX2 for one float type (no include guard): the nearest multiple of pi / 2 is removed, and sine or
 * cosine of the rest is selected. The includer defines V, the vector; I, the vector of integers; F(x), a name with the type's
 * suffix; SIGN_SHIFT, by which the second bit of a lane becomes its sign; TURN_1, TURN_2 and TURN_3, pi / 2 as a sum; PER_TURN, its
 * inverse; ROUND_TURN, a sum with which is rounded to an integer; FAR, below which that integer times TURN_1 is exact.
 */

/* sin(x + ahead pi / 2) of x with the given size, |x| below FAR; sign: x, or 0 for an even function. */
static inline V F(sin_quadrant)(V size, V sign, int ahead)
{
	V t = F(fma)(size, F(splat)(PER_TURN), F(splat)(ROUND_TURN)), n = t - ROUND_TURN;
	V first, product, r, low, z, half, one, s, c, y;
	I at = (I)t + ahead;

	/* x = n pi / 2 + r + low. The first difference is exact. */
	first = F(fnma)(n, F(splat)(TURN_1), size);
	product = n * TURN_2;
	r = first - product;
	low = ((first - r) - product) - F(fma)(n, F(splat)(TURN_2), -product);
	low = F(fnma)(n, F(splat)(TURN_3), low);
	z = r * r;
	/* The largest terms are added last, those of the cosine with the error of their sum. */
	s = r + F(fma)(r * z, F(sine)(z), low);
	half = r * 0.5;
	one = F(fnma)(half, r, F(splat)(1));
	c = F(fnma)(half, r, 1 - one);
	c = one + F(fma)(z * z, F(cosine)(z), F(fnma)(r, low, c));
	y = F(odd_turn)(at, c, s);
	return (V)((I)y ^ (((at << SIGN_SHIFT) ^ (I)sign) & F(sign_bit)));
}

static inline V F(sin)(V x)
{
	V size = F(size)(x), y = F(sin_quadrant)(size, x, 0);

	if (__builtin_expect(F(some)(~(size < FAR)), 0))
		y = F(select)(size < FAR, y, F(sleef_sin)(x));
	return y;
}

static inline V F(cos)(V x)
{
	V size = F(size)(x), y = F(sin_quadrant)(size, F(splat)(0), 1);

	if (__builtin_expect(F(some)(~(size < FAR)), 0))
		y = F(select)(size < FAR, y, F(sleef_cos)(x));
	return y;
}
