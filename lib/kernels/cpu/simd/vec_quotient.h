/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * (a + a_low) / (b + b_low) for one float type (no include guard), where the second terms are less than the first; error below 0.55 ulp.
 * The includer defines V, the vector, and F(x), a name with the type's suffix.
 */
static inline V F(quotient)(V a, V a_low, V b, V b_low)
{
	V above = a + a_low, above_low = (a - above) + a_low;
	V below = b + b_low, below_low = (b - below) + b_low, inverse = 1 / below,
	  y = above * inverse;
	V rest = F(fnma)(y, below, above) + F(fnma)(y, below_low, above_low);

	return F(fma)(rest, inverse, y);
}
