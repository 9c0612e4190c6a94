/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * log2 and log10 on vectors of one float type (no include guard). The includer defines V, the vector; F(x), a name with the type's
 * suffix; the logarithms of e and of 2 to base 10, and that of e to base 2, as sums, LOG10_E, LOG10_2 and LOG2_E with suffixes _HIGH
 * and _LOW. The product of LOG10_2_HIGH and an exponent is exact.
 */

/* log(x) as k log(2) + (high + low) log(e), in the base of these logarithms. */
static inline V F(vec_log_sum_of)(struct F(vec_log) l, V whole, V low, V e_high, V e_low)
{
	V part = l.high * e_high, y = whole + part;

	low += F(vec_fma)(l.high, e_high, -part) + (l.high * e_low + l.low * e_high);
	return y + (((whole - y) + part) + low);
}

static inline V F(vec_log2_sum)(struct F(vec_log) l)
{
	return F(vec_log_sum_of)(l, l.k, (V){ 0 }, (V){ 0 } + LOG2_E_HIGH, (V){ 0 } + LOG2_E_LOW);
}

static inline V F(vec_log10_sum)(struct F(vec_log) l)
{
	return F(vec_log_sum_of)(l, l.k * LOG10_2_HIGH, l.k * LOG10_2_LOW, (V){ 0 } + LOG10_E_HIGH,
				 (V){ 0 } + LOG10_E_LOW);
}

static inline V F(vec_log2)(V x)
{
	if (__builtin_expect(F(vec_log_usual)(x), 1))
		return F(vec_log2_sum)(F(vec_log_normal)(x));
	return F(vec_log_special)(F(vec_log2_sum)(F(vec_log_parts)(x)), x);
}

static inline V F(vec_log10)(V x)
{
	if (__builtin_expect(F(vec_log_usual)(x), 1))
		return F(vec_log10_sum)(F(vec_log_normal)(x));
	return F(vec_log_special)(F(vec_log10_sum)(F(vec_log_parts)(x)), x);
}
