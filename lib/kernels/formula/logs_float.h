/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * logaddexp, logaddexp2 and xlogy for one float type (no include guard). The includer defines T, V
 * and F as for activation_exp_float.h.
 */

/* most + log(1 + e^-distance); equal infinities are not subtracted. */
FORMULA V F(logaddexp)(V x, V y)
{
	V far = F(select)(x > y, y - x, x - y), most = F(select)(x > y, x, y);
	V sum = most + F(log1p)(F(exp)(far));

	return F(select)(x == y, x + (T)M_LN2, sum);
}

FORMULA V F(logaddexp2)(V x, V y)
{
	V far = F(select)(x > y, y - x, x - y), most = F(select)(x > y, x, y);
	V sum = most + F(log1p)(F(exp2)(far)) * (T)M_LOG2E;

	return F(select)(x == y, x + 1, sum);
}

/* x log(y); 0 for x = 0, unless y is NaN */
FORMULA V F(xlogy)(V x, V y)
{
	V product = x * F(log)(y);

	return F(select)(x == 0, F(select)(y == y, F(splat)(0), y), product);
}
