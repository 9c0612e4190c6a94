/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * sin, cos and tan on vectors of AVX2 for one float type (no include guard): the nearest multiple of pi / 2 is removed, and sine or
 * cosine of the rest is selected. The includer defines V, the vector; I, the vector of integers; F(x), a name with the type's
 * suffix; SIGN_SHIFT, by which the second bit of a lane becomes its sign; TURN_1, TURN_2 and TURN_3, pi / 2 as a sum; PER_TURN, its
 * inverse; ROUND_TURN, a sum with which is rounded to an integer; FAR, below which that integer times TURN_1 is exact.
 */

/*
 * For x >= 0 below FAR, x = n pi / 2 + r + low: sin(r + low) = sine + sine_low - r^2 / 2 low, cos(r + low) = cosine + cosine_low; t has
 * n in its lowest bits. sine is r.
 */
struct F(quadrant) {
	V t, sine, sine_low, cosine, cosine_low, low;
};

static inline struct F(quadrant) F(quadrant)(V size)
{
	V t = F(fma)(size, F(splat)(PER_TURN), F(splat)(ROUND_TURN)), n = t - ROUND_TURN;
	V first, product, r, low, z, half, one, c;

	first = F(fnma)(n, F(splat)(TURN_1), size); /* exact */
	product = n * TURN_2;
	r = first - product;
	low = ((first - r) - product) - F(fma)(n, F(splat)(TURN_2), -product);
	low = F(fnma)(n, F(splat)(TURN_3), low);
	z = r * r;
	half = r * 0.5;
	one = F(fnma)(half, r, F(splat)(1));
	c = F(fnma)(half, r, 1 - one);
	return (struct F(quadrant)){ .t = t,
				     .sine = r,
				     .sine_low = F(fma)(r * z, F(sine)(z), low),
				     .cosine = one,
				     .cosine_low = F(fma)(z * z, F(cosine)(z), F(fnma)(r, low, c)),
				     .low = low };
}

/* sin(x + ahead pi / 2) of x with the given size, |x| below FAR; sign: x, or 0 for an even function. */
static inline V F(sin_quadrant)(V size, V sign, int ahead)
{
	struct F(quadrant) q = F(quadrant)(size);
	I at = (I)q.t + ahead;
	V y = F(odd_turn)(at, q.cosine + q.cosine_low, q.sine + q.sine_low);

	return (V)((I)y ^ (((at << SIGN_SHIFT) ^ (I)sign) & F(sign_bit)));
}

/* tan(r + low), or -1 / tan(r + low) where n is odd. The errors of sine and cosine add up: no term is left out. */
static inline V F(tan_quadrant)(V size, V sign)
{
	struct F(quadrant) q = F(quadrant)(size);
	I at = (I)q.t;
	V sine_low = F(fnma)(q.sine * q.sine * 0.5, q.low, q.sine_low);
	V above = F(odd_turn)(at, q.cosine, q.sine),
	  above_low = F(odd_turn)(at, q.cosine_low, sine_low);
	V below = F(odd_turn)(at, -q.sine, q.cosine),
	  below_low = F(odd_turn)(at, -sine_low, q.cosine_low);
	V y = F(quotient)(above, above_low, below, below_low);

	return (V)((I)y ^ ((I)sign & F(sign_bit)));
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

static inline V F(tan)(V x)
{
	V size = F(size)(x), y = F(tan_quadrant)(size, x);

	if (__builtin_expect(F(some)(~(size < FAR)), 0))
		y = F(select)(size < FAR, y, F(sleef_tan)(x));
	return y;
}
