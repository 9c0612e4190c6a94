/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * sin and cos for one float type (no include guard), with tables of 16 turns of pi / 16 in registers; see vec_trig.h. The
 * includer defines V, the vector; M, a mask of lanes; F(x), a name with the type's suffix; TURN_1, TURN_2 and TURN_3, pi / 16
 * as a sum; PER_TURN, its inverse; ROUND_TURN, a sum with which is rounded to an integer.
 */

/* sin(x + ahead pi / 16) of x with the given size, |x| below FAR_TURN; sign: x, or 0 for an even function. */
static inline V F(sin_turn)(V size, V sign, const int ahead)
{
	V t = F(fma)(size, F(splat)(PER_TURN), F(splat)(ROUND_TURN));
	V n = t - ROUND_TURN, first, r, low, z, s, c, sines, cosines, y, lost, less;
	__m512i at = F(ahead)(t, ahead);

	/* x = n pi / 16 + r + low, |r| <= pi / 32. The first difference is exact. */
	first = F(fnma)(n, F(splat)(TURN_1), size);
	t = n * TURN_2;
	r = first - t;
	low = ((first - r) - t) - F(fma)(n, F(splat)(TURN_2), -t);
	low = F(fnma)(n, F(splat)(TURN_3), low);
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
