/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * erfinv, digamma and polygamma on vectors; those of f32 are computed in f64. Lanes outside of the usual arguments are
 * computed by the functions of formula/special.h, which the includer includes afterwards.
 */
#ifndef TENSOR_VEC_SPECIAL_H
#define TENSOR_VEC_SPECIAL_H

#include "kernels/cpu/simd/vec_fma.h"
#include "kernels/cpu/simd/vec_halves.h"
#include "kernels/cpu/simd/vecmath.h"

static inline double erf_inverse(double x);
static inline double digamma(double x);
static inline double polygamma(double n, double x);

/* f(x), in two vectors of f64. */
#define BY_HALVES(x, f) vec_join_f32(f(vec_low_f64(x)), f(vec_high_f64(x)))

/* y with f(x) in the lanes of the mask. */
static inline vec_f64 vec_lanes_by(vec_f64 y, vec_m64 lanes, vec_f64 x, double (*f)(double))
{
	if (likely(!vec_byte_bits((vec_u64)lanes)))
		return y;
	for (int i = 0; i < VEC_F64; i++)
		if (lanes[i])
			y[i] = f(x[i]);
	return y;
}

/*
 * erfinv(x) / x - ERFINV_FIRST of w = -log(1 - x^2) from 0 to 6.25, in powers of w - 1/2: coefficients, the highest first. They interpolate
 * at Chebyshev nodes; errors of the results 2^-56 and 2^-27.
 */
#define ERFINV_FIRST 1.0048226839771299
static const double erfinv_near_f64[] = {
	-1.9123778045391186e-23, 9.1704256897394433e-22,  -1.3883771636906545e-20,
	-9.1480620323263572e-20, 7.0219993522280634e-18,  -1.3212596136029124e-16,
	1.427073789833765e-15,	 -9.7311189610140007e-15, 4.0083045380812409e-14,
	-8.316570943736079e-14,	 1.5802969174883369e-13,  -2.0372218736032506e-12,
	8.3108330228281922e-12,	 5.4956648314517547e-11,  -3.9034948425216429e-10,
	-1.9627967175292973e-09, 1.9458243535402858e-08,  6.2943306096196296e-08,
	-9.5616086319165736e-07, -1.5434220756927434e-06, 4.7276047098710924e-05,
	-8.4419679123889892e-06, -0.0024718596040262152,  0.0079141083554341331,
	0.24176249324891647,	 7.306496512457539e-17,
};
static const double erfinv_near_f32[] = {
	-1.2570814414523687e-11, 4.0166887053661326e-10, -4.8448297096444892e-09,
	2.0221301965098695e-08,	 9.2258223238460718e-08, -1.0633620196790886e-06,
	-1.3717101642337008e-06, 4.7164113216877447e-05, -8.4609261401837224e-06,
	-0.0024718093216660624,	 0.0079141015940357978,	 0.24176248854037855,
	2.6213219996892286e-10,
};

static inline __attribute__((always_inline)) vec_f64 erfinv_by(vec_f64 x, const double *c,
							       int terms)
{
#if defined(__FMA__)
	vec_f64 w = -log_f64v(vec_fnma_f64(x, x, (vec_f64){ 0 } + 1)); /* rounded once */
#else
	vec_f64 w = -log_f64v((1 - x) * (1 + x));
#endif
	vec_f64 u = w - 0.5, p = (vec_f64){ 0 } + c[0], first = (vec_f64){ 0 } + ERFINV_FIRST, all;

#pragma GCC unroll 32
	for (int i = 1; i < terms; i++)
		p = p * u + c[i];
	all = first + p;
	p = (first - all) + p;
	return vec_lanes_by(x * all + x * p, ~(w < 6.25), x, erf_inverse);
}

static inline vec_f64 erfinv_v64(vec_f64 x)
{
	return erfinv_by(x, erfinv_near_f64, ARRAY_SIZE(erfinv_near_f64));
}

static inline vec_f64 erfinv_short_f64(vec_f64 x)
{
	return erfinv_by(x, erfinv_near_f32, ARRAY_SIZE(erfinv_near_f32));
}

static inline vec_f32 erfinv_v32(vec_f32 x)
{
	return BY_HALVES(x, erfinv_short_f64);
}

#define LEAST_SERIES 10 /* below it, terms are added one by one */

/*
 * The series of digamma_positive(). The sum of 1 / (x + k) is that of the first term, which is the greatest, and the fraction
 * sum / product.
 */
static inline vec_f64 digamma_v64(vec_f64 x)
{
	vec_m64 outside = ~(x > 0);
	vec_f64 at = vec_select_f64(outside, (vec_f64){ 0 } + LEAST_SERIES, x), inverse, z, series;
	vec_f64 sum = { 0 }, product = (vec_f64){ 0 } + 1, first;
	vec_m64 before = at < LEAST_SERIES;

	first = vec_select_f64(before, 1 / at, sum);
	at = vec_select_f64(before, at + 1, at);
	for (vec_m64 low = at < LEAST_SERIES; vec_byte_bits((vec_u64)low);
	     low = at < LEAST_SERIES) {
		sum = vec_select_f64(low, sum * at + product, sum);
		product = vec_select_f64(low, product * at, product);
		at = vec_select_f64(low, at + 1, at);
	}
	inverse = 1 / at;
	z = inverse * inverse;
	series = 691. / 32760 - z / 12;
	series = 1. / 132 - z * series;
	series = 1. / 240 - z * series;
	series = 1. / 252 - z * series;
	series = 1. / 120 - z * series;
	series = 1. / 12 - z * series;
	at = log_f64v(at) - 0.5 * inverse - z * series - sum / product - first;
	return vec_lanes_by(at, outside, x, digamma);
}

static inline vec_f32 digamma_v32(vec_f32 x)
{
	return BY_HALVES(x, digamma_v64);
}

#define ORDER_MOST    20 /* powers of greater orders could overflow */
#define FRACTION_MOST 10 /* and products of powers of orders above this one */

/*
 * What polygamma of one order needs: (-1)^(n + 1) n!, the least x of the series of zeta_near(), and its coefficients after the
 * power of x.
 */
struct polygamma_order {
	int64_t n;
	double factor, from, series[8];
};

static double bernoulli(int k);
static double zeta_series_from(double s);

static inline struct polygamma_order polygamma_order(int64_t n)
{
	struct polygamma_order o = { .n = n,
				     .factor = (n & 1 ? 1 : -1) * round(tgamma(n + 1.)),
				     .from = zeta_series_from(n + 1.) };
	double term = (n + 1.) / 2;

	for (int k = 0; k < 8; k++) {
		o.series[k] = bernoulli(k) * term;
		term *= (n + 2. * k + 2) * (n + 2. * k + 3) / ((2. * k + 3) * (2. * k + 4));
	}
	return o;
}

/* x^n, n >= 1 */
static inline vec_f64 vec_power_f64_int(vec_f64 x, int64_t n)
{
	vec_f64 y = x;

	for (int64_t bit = 1ll << (63 - __builtin_clzll((uint64_t)n)) >> 1; bit; bit >>= 1)
		y = n & bit ? y * y * x : y * y;
	return y;
}

/* For at > 0 and orders up to ORDER_MOST. The sum over small at is the fraction sum / product. */
static inline vec_f64 polygamma_positive_f64(vec_f64 at, const struct polygamma_order *o)
{
	vec_f64 sum = { 0 }, product = (vec_f64){ 0 } + 1, first, inverse, power, z, series;
	vec_m64 before = at < o->from;

	first = vec_select_f64(before, 1 / vec_power_f64_int(at, o->n + 1), sum);
	at = vec_select_f64(before, at + 1, at);
	for (vec_m64 low = at < o->from; vec_byte_bits((vec_u64)low); low = at < o->from) {
		power = vec_power_f64_int(at, o->n + 1);
		if (o->n <= FRACTION_MOST) {
			sum = vec_select_f64(low, sum * power + product, sum);
			product = vec_select_f64(low, product * power, product);
		} else {
			sum = vec_select_f64(low, sum + 1 / power, sum);
		}
		at = vec_select_f64(low, at + 1, at);
	}
	inverse = 1 / at;
	z = inverse * inverse;
	power = vec_power_f64_int(inverse, o->n);
	series = (vec_f64){ 0 } + o->series[7];
	for (int k = 6; k >= 0; k--)
		series = series * z + o->series[k];
	sum = sum / product + power * (1. / (double)o->n + inverse * (0.5 + inverse * series));
	return (sum + first) * o->factor;
}

static inline vec_f64 polygamma_v64(vec_f64 x, const struct polygamma_order *o)
{
	vec_m64 all = (vec_m64){ 0 } - 1, outside = o->n > ORDER_MOST ? all : ~(x > 0);
	vec_f64 y = x, from = (vec_f64){ 0 } + o->from;

	if (o->n <= ORDER_MOST)
		y = polygamma_positive_f64(vec_select_f64(outside, from, x), o);
	if (likely(!vec_byte_bits((vec_u64)outside)))
		return y;
	for (int i = 0; i < VEC_F64; i++)
		if (outside[i])
			y[i] = polygamma((double)o->n, x[i]);
	return y;
}

static inline vec_f32 polygamma_v32(vec_f32 x, const struct polygamma_order *o)
{
	return vec_join_f32(polygamma_v64(vec_low_f64(x), o), polygamma_v64(vec_high_f64(x), o));
}

/* a: n */
#define POLYGAMMA_ORDER struct polygamma_order order = polygamma_order(PARAM_I(int64_t, params, a))
#define SPECIAL_FLOATS                                                        \
	VEC_UNARY(erfinv, erfinv)                                             \
	VEC_UNARY(digamma, digamma)                                           \
	VEC_LOOP_1(polygamma, f32, float, vec_f32, VEC_F32, POLYGAMMA_ORDER,  \
		   polygamma_v32(x, &order))                                  \
	VEC_LOOP_1(polygamma, f64, double, vec_f64, VEC_F64, POLYGAMMA_ORDER, \
		   polygamma_v64(x, &order))

#endif
