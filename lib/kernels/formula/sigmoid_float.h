/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The logistic function for one float type; V and F are those of activation_exp_float.h (no include
 * guard). */
FORMULA V F(sigmoid)(V x)
{
	return 1 / (1 + F(exp)(-x));
}
