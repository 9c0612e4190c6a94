/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * atan for one float type (no include guard); see vec_atan.h. The includer defines V, the vector; F(x), a name with the type's suffix;
 * ATAN_ROWS of the table; HALF_PI and HALF_PI_LOW, pi / 2 as a sum; ROUND_PIECE, a sum with which is rounded to an integer; LARGE,
 * whose inverse is normal.
 */

static inline V F(atan)(V x)
{
	V size = F(at_most)(F(size)(x), LARGE), u, lost, t, p, low, point, turn, sum, y;
	F(atan_mask) far = F(atan_above)(size, F(splat)(1));

	/* u + lost is |x|, or 1 / |x| where that is below 1. */
	u = F(atan_inverse)(far, size);
	lost = F(atan_keep)(far, F(fnma)(u, size, F(splat)(1)) * u);
	F(atan_index) at = (F(atan_index))F(fma)(u, F(splat)(15), F(splat)(ROUND_PIECE));

	t = u - F(entry)(F(atan_table)[0], at);
	p = F(entry)(F(atan_table)[2], at);
#pragma GCC unroll 16
	for (int i = 3; i < ATAN_ROWS; i++)
		p = F(fma)(p, t, F(entry)(F(atan_table)[i], at));
	low = F(fma)(t, p, F(fma)(lost, p, lost));
	/* atan(u) = point + t + low, or pi / 2 less that; the largest terms are added with the errors of their sums. */
	point = F(atan_minus)(far, F(entry)(F(atan_table)[1], at));
	t = F(atan_minus)(far, t);
	turn = F(atan_keep)(far, F(splat)(HALF_PI));
	low = F(atan_minus)(far, low) + F(atan_keep)(far, F(splat)(HALF_PI_LOW));
	sum = turn + point;
	y = sum + t;
	low += ((turn - sum) + point) + ((sum - y) + t);
	return F(turn_sign)(y + low, F(no_turn)(), x);
}
