/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * asin and acos for one float type (no include guard); see vec_asin.h. The includer defines V, the vector; F(x), a name with the type's
 * suffix; HALF_PI and HALF_PI_LOW, pi / 2 as a sum.
 */

/*
 * asin(|x|) is s + *low for |x| < 1/2, and pi / 2 - 2 (s + *low) above. s is |x|, or the root of (1 - |x|) / 2, whose error is in *low.
 */
static inline V F(asin_parts)(V size, V *low)
{
	V half = F(asin_splat)(0.5f), none = F(asin_splat)(0), error, root, s;
	V square = F(asin_select)(size < half, size * size, F(fnma)(size, half, half));

	root = F(asin_root)(square, &error);
	s = F(asin_select)(size < half, size, root);
	error = F(asin_select)(size < half, none, error);
	*low = F(fma)(s, square * F(asin_polynomial)(square), error);
	return s;
}

static inline V F(asin)(V x)
{
	V size = F(asin_size)(x), low, s = F(asin_parts)(size, &low);
	V rest = HALF_PI - 2 * s, y = ((HALF_PI - rest) - 2 * s) + (HALF_PI_LOW - 2 * low);

	return F(asin_sign)(F(asin_select)(size < 0.5f, s + low, rest + y), x);
}

/* pi / 2 - asin(x) for |x| < 1/2; 2 (s + low) for greater x, pi less that for smaller x. */
static inline V F(acos)(V x)
{
	V size = F(asin_size)(x), low, s = F(asin_parts)(size, &low), far, halves, factor, turn, y;

	far = F(asin_select)(x < 0, F(asin_splat)(2), F(asin_splat)(0));
	halves = F(asin_select)(size < 0.5f, F(asin_splat)(1), far);
	factor = F(asin_select)(size < 0.5f, F(asin_splat)(-1), F(asin_splat)(2));
	factor = F(asin_sign)(factor, x);
	turn = halves * HALF_PI;
	s *= factor;
	y = turn + s;
	return y + (((turn - y) + s) + (halves * HALF_PI_LOW + low * factor));
}
