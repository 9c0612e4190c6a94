/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * erf, erfc, erfinv, lgamma, digamma, polygamma. The last two and erfinv are computed in double, one by one unless the
 * includer has loops of its own, SPECIAL_FLOATS.
 */
VEC_UNARY_INLINE(erf)
VEC_UNARY(erfc, erfc)
VEC_UNARY(lgamma, lgamma)
POINTWISE(erf, AT_FLOAT(erf), AT_BF16(erf))
POINTWISE(erfc, AT_FLOAT(erfc))
POINTWISE(lgamma, AT_FLOAT(lgamma))

/*
 * A first approximation with an error of 2e-3 (S. Winitzki, "A handy approximation for the error
 * function and its inverse", 2008), then Halley's iteration, which triples the number of digits.
 * For |x| near 1, erfc(y) = 1 - |x| is solved instead, where the difference is exact.
 */
FORMULA double erf_inverse(double x)
{
	const double a = 0.147, size = fabs(x);
	double l, t, y;

	if (size == 1)
		return copysign((double)INFINITY, x);
	if (!(size < 1))
		return (double)NAN;
	if (x == 0)
		return x;
	l = log1p(-size * size);
	t = 2 / (M_PI * a) + l / 2;
	y = sqrt(sqrt(t * t - l / a) - t);
	for (int i = 0; i < 3; i++) {
		double miss = size < 0.5 ? erf(y) - size : (1 - size) - erfc(y);
		double step = miss * exp(y * y) / M_2_SQRTPI;

		y -= step / (1 + y * step);
	}
	return copysign(y, x);
}

/* For x > 0: the asymptotic series for x >= 10, and the recurrence below. */
FORMULA double digamma_positive(double x)
{
	double up = 0, series, z;

	while (x < 10)
		up -= 1 / x++;
	if (isinf(x))
		return x;
	z = 1 / (x * x);
	series = z * (1. / 12 -
		      z * (1. / 120 -
			   z * (1. / 252 -
				z * (1. / 240 - z * (1. / 132 - z * (691. / 32760 - z / 12))))));
	return up + log(x) - 0.5 / x - series;
}

/* Below 0 by the reflection formula. */
FORMULA double digamma(double x)
{
	if (x == 0)
		return copysign((double)INFINITY, -x);
	if (!(x < 0))
		return digamma_positive(x);
	if (x == trunc(x))
		return (double)NAN;
	return digamma_positive(1 - x) - M_PI / tan(M_PI * (x - trunc(x)));
}

/* The Bernoulli number of 2 (k + 1), k < 8. */
FORMULA double bernoulli(int k)
{
	switch (k) {
	case 0:
		return 1. / 6;
	case 1:
		return -1. / 30;
	case 2:
		return 1. / 42;
	case 3:
		return -1. / 30;
	case 4:
		return 5. / 66;
	case 5:
		return -691. / 2730;
	case 6:
		return 7. / 6;
	default:
		return -3617. / 510;
	}
}

#define FEW 64 /* terms that are added one by one */

/* The least x for which the terms of zeta_near() after the first eight are below 2^-54 of the sum. */
FORMULA double zeta_series_from(double s)
{
	return s < 3 ? 10 : 8 + 1.6 * s;
}

/*
 * The sum of (x + k)^-s over k >= 0, for x > -FEW: terms of small x are added, the rest is the
 * Euler-Maclaurin series, unless it is too small to matter.
 */
FORMULA double zeta_near(double s, double x)
{
	double sum = 0, term, power, from = zeta_series_from(s);

	while (x < from) {
		if (x == 0)
			return (double)INFINITY;
		power = pow(x++, -s);
		sum += power;
		if (x > 1 && power * x <= 0x1p-56 * fabs(sum))
			return sum;
	}
	power = pow(x, -s);
	sum += pow(x, 1 - s) / (s - 1) + power / 2;
	term = power * s / x / 2;
	for (int k = 0; k < 8; k++) {
		sum += bernoulli(k) * term;
		term *= (s + 2 * k + 1) * (s + 2 * k + 2) / ((2 * k + 3) * (2 * k + 4) * x * x);
	}
	return sum;
}

/*
 * The same for any x and integral s. For large negative x, the terms up to 0 are, with the sign
 * (-1)^s, the difference of two sums for positive x.
 */
FORMULA double zeta(double s, double x)
{
	double first = x - floor(x);

	if (x > -FEW || !isfinite(x))
		return isinf(x) && x < 0 ? (double)NAN : zeta_near(s, x);
	if (first == 0)
		return (double)INFINITY;
	return zeta_near(s, first) +
	       (fmod(s, 2.) ? -1 : 1) * (zeta_near(s, 1 - first) - zeta_near(s, 1 - x));
}

/* The n-th derivative of digamma, n >= 1. */
FORMULA double polygamma(double n, double x)
{
	double sign = fmod(n, 2.) ? 1 : -1;

	return x != x ? x : sign * round(tgamma(n + 1)) * zeta(n + 1, x);
}

#ifndef SPECIAL_FLOATS
/* a: n */
#define ORDER(T) double order = (double)PARAM_I(int64_t, params, a)
#define SPECIAL_FLOATS                                          \
	UNARY_FLOAT_WITH(polygamma, ORDER, polygamma(order, x)) \
	UNARY_FLOAT(erfinv, erf_inverse(x))                     \
	UNARY_FLOAT(digamma, digamma(x))
#endif
SPECIAL_FLOATS
POINTWISE(polygamma, AT_FLOAT(polygamma))
POINTWISE(erfinv, AT_FLOAT(erfinv))
POINTWISE(digamma, AT_FLOAT(digamma))
