/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * sin, cos and tan for one float type (no include guard), with tables of 16 turns of pi / 16 in registers; see vec_trig.h. The
 * includer defines V, the vector; M, a mask of lanes; F(x), a name with the type's suffix; TURN_1, TURN_2 and TURN_3, pi / 16
 * as a sum; PER_TURN, its inverse; ROUND_TURN, a sum with which is rounded to an integer.
 */

/* x = n pi / 16 + r + *low, |r| <= pi / 32, for x >= 0 below FAR_TURN. Returns r; the lowest bits of *t are those of n. */
static inline V F(turn_rest)(V size, V *t, V *low)
{
	V n, first, product, r;

	*t = F(fma)(size, F(splat)(PER_TURN), F(splat)(ROUND_TURN));
	n = *t - ROUND_TURN;
	first = F(fnma)(n, F(splat)(TURN_1), size); /* exact */
	product = n * TURN_2;
	r = first - product;
	*low = ((first - r) - product) - F(fma)(n, F(splat)(TURN_2), -product);
	*low = F(fnma)(n, F(splat)(TURN_3), *low);
	return r;
}

/* sin(x + ahead pi / 16) of x with the given size, |x| below FAR_TURN; sign: x, or 0 for an even function. */
static inline V F(sin_turn)(V size, V sign, const int ahead)
{
	V t, low, r = F(turn_rest)(size, &t, &low), z, s, c, sines, cosines, y, lost, less;
	__m512i at = F(ahead)(t, ahead);

	/* With S and C, sin and cos of the turns: S + C r, rounded once, and what that lost and the other terms. */
	sines = F(entry)(F(sin_table), at);
	cosines = F(entry)(F(cos_table), at);
	y = F(fma)(cosines, r, sines);
	lost = F(fma)(cosines, r, sines - y);
	z = r * r;
	s = F(fma)(r * z, F(sine)(z), low);
	c = z * F(cosine)(z);
	less = F(fma)(F(entry)(F(cos_table_low), at), r, F(entry)(F(sin_table_low), at));
	less = F(fma)(sines, c, less);
	less = F(fma)(cosines, s, less);
	return F(turn_sign)(y + (less + lost), at, sign);
}

/*
 * tan(x) as the quotient of sin(x) and cos(x), which are sums like the one above, and of their small terms. After half a circle both
 * change their signs.
 */
static inline V F(tan_turn)(V size, V sign)
{
	V t, low, r = F(turn_rest)(size, &t, &low), z = r * r, s, c, above, above_low, below,
		  below_low;
	__m512i at = F(ahead)(t, 0);
	V sines = F(entry)(F(sin_table), at), cosines = F(entry)(F(cos_table), at);
	V sines_low = F(entry)(F(sin_table_low), at), cosines_low = F(entry)(F(cos_table_low), at);

	s = F(fma)(r * z, F(sine)(z), low);
	c = z * F(cosine)(z);
	above = F(fma)(cosines, r, sines);
	above_low = F(fma)(cosines, r, sines - above) + F(fma)(cosines_low, r, sines_low);
	above_low = F(fma)(cosines, s, F(fma)(sines, c, above_low));
	below = F(fnma)(sines, r, cosines);
	below_low = F(fnma)(sines, r, cosines - below) + F(fnma)(sines_low, r, cosines_low);
	below_low = F(fnma)(sines, s, F(fma)(cosines, c, below_low));
	return F(turn_sign)(F(quotient)(above, above_low, below, below_low), _mm512_setzero_si512(),
			    sign);
}

static inline V F(sin)(V x)
{
	V size = F(size)(x), y = F(sin_turn)(size, x, 0);
	M far = F(far_turn)(size);

	if (__builtin_expect(far, 0))
		y = F(mask)(far, F(sleef_sin)(x), y);
	return y;
}

static inline V F(cos)(V x)
{
	V size = F(size)(x), y = F(sin_turn)(size, F(splat)(0), COS_TURN);
	M far = F(far_turn)(size);

	if (__builtin_expect(far, 0))
		y = F(mask)(far, F(sleef_cos)(x), y);
	return y;
}

static inline V F(tan)(V x)
{
	V size = F(size)(x), y = F(tan_turn)(size, x);
	M far = F(far_turn)(size);

	if (__builtin_expect(far, 0))
		y = F(mask)(far, F(sleef_tan)(x), y);
	return y;
}
