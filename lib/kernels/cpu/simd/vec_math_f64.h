/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * exp, expm1, log, log1p, tanh and erf on vectors of f64. With AVX-512 they read tables in registers by
 * permutation, with errors below 1 ulp, and are inlined; vec_math_f64_fma.h has them for AVX2. Narrower vectors call SLEEF. Polynomials
 * interpolate at Chebyshev nodes. Files that include this one are compiled with
 * -ffp-contract=fast. Like vec.h, this file depends on the width of vectors.
 */
#ifndef TENSOR_VEC_MATH_F64_H
#define TENSOR_VEC_MATH_F64_H

#include "kernels/cpu/simd/vec_fma.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "kernels/cpu/simd/vec_pieces_f64.h"

/* The entries of a table of 16 that the lowest 4 bits of each lane of `at` select. */
static inline vec_f64 vec_entry_f64(const double *table, __m512i at)
{
	return (vec_f64)_mm512_permutex2var_pd(_mm512_loadu_pd(table), at,
					       _mm512_loadu_pd(table + 8));
}

/* v * 2^floor(n) */
static inline vec_f64 vec_scale_f64(vec_f64 v, vec_f64 n)
{
	return (vec_f64)_mm512_scalef_pd((__m512d)v, (__m512d)n);
}

/* v limited to [low, high]; NaN stays NaN. */
static inline vec_f64 vec_limit_f64(vec_f64 v, double low, double high)
{
	__m512d up = _mm512_max_pd(_mm512_set1_pd(low), (__m512d)v);

	return (vec_f64)_mm512_min_pd(_mm512_set1_pd(high), up);
}

/* 2^(i / 16), rounded, and what rounding removed. */
static const double exp2_table[16] = {
	1.0,
	1.0442737824274138,
	1.0905077326652577,
	1.1387886347566916,
	1.189207115002721,
	1.241857812073484,
	1.2968395546510096,
	1.3542555469368927,
	1.4142135623730951,
	1.4768261459394993,
	1.5422108254079407,
	1.6104903319492543,
	1.681792830507429,
	1.7562521603732995,
	1.8340080864093424,
	1.9152065613971474,
};
static const double exp2_table_low[16] = {
	0.0,
	8.551889705537965e-17,
	-3.046782079812471e-17,
	8.912812676025408e-17,
	3.982015231465646e-17,
	4.658027591836937e-17,
	2.5382502794888315e-17,
	7.70094837980299e-17,
	-9.667293313452913e-17,
	-3.483994556892796e-17,
	7.949834809697621e-17,
	2.4707192569797888e-17,
	8.199010020581497e-17,
	2.960140695448873e-17,
	3.283107224245627e-17,
	-1.0619946056195963e-16,
};

/* ln 2 / 16 as a sum; the product of its first part and an integer below 2^15 is exact. */
#define LN2_16_HIGH 0.04332169878489367
#define LN2_16_LOW  1.0291218489310676e-13
#define ROUND_F64   0x1.8p52 /* a sum with it is rounded to an integer */

/* exp(x) = 2^(n / 16) e^r; the lowest bits of t are those of n. Below -745.14 it is 0; see EXP_NONE_F32 in vecmath.h. */
static inline vec_f64 exp_f64v(vec_f64 x)
{
	__mmask8 some = _mm512_cmp_pd_mask((__m512d)x, _mm512_set1_pd(-745.14), _CMP_NLE_UQ);
	vec_f64 t, n, r, p, power;

	x = (vec_f64)_mm512_min_pd(_mm512_set1_pd(720), (__m512d)x);
	t = x * (16 * M_LOG2E) + ROUND_F64;
	n = t - ROUND_F64;
	r = (x - n * LN2_16_HIGH) - n * LN2_16_LOW;
	/* (e^r - 1 - r) / r^2; error of e^r 3e-17 */
	p = 0.0013889034348876907 * r + 0.008333449701475412;
	p = p * r + 0.041666666664960446;
	p = p * r + 0.16666666665301685;
	p = p * r + 0.5;
	p = p * (r * r) + r;
	power = vec_entry_f64(exp2_table, (__m512i)t);
	p = power + (power * p + vec_entry_f64(exp2_table_low, (__m512i)t));
	return (vec_f64)_mm512_maskz_scalef_pd(some, (__m512d)p, (__m512d)(n * 0.0625));
}

/*
 * 2^(n / 16) e^r - 1 as 2^(n / 16) (e^r - 1) + (2^(n / 16) - 1), where n is 0 for |x| < 0.1, and computed at half
 * size because 2^1024 overflows. `lost` is the rounding error of the difference.
 */
static inline vec_f64 expm1_f64v(vec_f64 x)
{
	vec_f64 t, n, r, p, half, low, y, lost;
	vec_m64 far;

	x = vec_limit_f64(x, -40, 709.9);
	t = x * (16 * M_LOG2E) + ROUND_F64;
	n = t - ROUND_F64;
	far = (n > 2) | (n < -2);
	n = (vec_f64)((vec_m64)n & far);
	t = (vec_f64)((vec_m64)t & far);
	r = (x - n * LN2_16_HIGH) - n * LN2_16_LOW;
	/* (e^r - 1 - r) / r^2; relative error of the result 6e-18 */
	p = 2.756324408188392e-06 * r + 2.4808104768772295e-05;
	p = p * r + 0.0001984126940341481;
	p = p * r + 0.0013888888407236407;
	p = p * r + 0.008333333333343688;
	p = p * r + 0.041666666666780566;
	p = p * r + 0.16666666666666666;
	p = p * r + 0.49999999999999994;
	p = p * (r * r) + r;
	n = n * 0.0625 - 1;
	half = vec_scale_f64(vec_entry_f64(exp2_table, (__m512i)t), n);
	low = vec_scale_f64(vec_entry_f64(exp2_table_low, (__m512i)t), n);
	y = half - 0.5;
	lost = vec_select_f64(half > 0.5, (half - y) - 0.5, half - (y + 0.5));
	y = 2 * (y + (half * p + low + lost));
	return vec_select_f64((vec_f64)_mm512_abs_pd((__m512d)x) < 0x1p-54, x, y);
}

/* -log(1 + i / 16), rounded to a multiple of 2^-42, and what rounding removed. */
static const double log_table[16] = {
	0.0,
	-0.06062462181648698,
	-0.11778303565643,
	-0.17185025692674571,
	-0.22314355131425145,
	-0.2719337154835557,
	-0.31845373111855224,
	-0.3629054936893681,
	-0.40546510810827385,
	-0.4462871026285029,
	-0.4855078157816024,
	-0.5232481437644765,
	-0.5596157879353996,
	-0.5947071077466717,
	-0.6286086594222979,
	-0.6613984822454313,
};
static const double log_table_low[16] = {
	0.0,
	5.213620639136504e-14,
	4.654729747598445e-14,
	8.649239607212071e-14,
	4.169796584527195e-14,
	-8.604306772808733e-14,
	1.7625431312172662e-14,
	-3.6708569716349383e-16,
	1.094708713660664e-13,
	8.33959316905439e-14,
	-9.840465278232627e-14,
	-7.135550660118121e-14,
	-2.3119493838005378e-14,
	-2.1107989157842298e-14,
	-7.620483823189371e-14,
	6.628791790390747e-14,
};

/*
 * log(x), or log(x + *lost), where *lost is a rounding error of x, is k ln 2 + first + r + low. x = 2^e m, and c is 1 / m rounded
 * to a multiple of 1/32: log(x) = e ln 2 - log(c) + log(1 + r), r = c m - 1, |r| <= 1/32. If x is near 1, k and first are zero.
 */
struct vec_log_table_f64 {
	vec_f64 k, first, r, low;
};

static inline struct vec_log_table_f64 vec_log_table_f64(vec_f64 x, const vec_f64 *lost)
{
	vec_f64 e = (vec_f64)_mm512_getexp_pd((__m512d)x), r, p, low;
	__m512d m = _mm512_getmant_pd((__m512d)x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
	__m512d c = _mm512_roundscale_pd(_mm512_rcp14_pd(m), 0x58);
	__m512i at = _mm512_srli_epi64((__m512i)c, 48);

	r = (vec_f64)_mm512_fmsub_pd(m, c,
				     _mm512_set1_pd(1)); /* the product has more bits than r */
	/* (log(1 + r) - r) / r^2; relative error of the result 3e-17 */
	p = 0.11128887020950118 * r - 0.12519553164013045;
	p = p * r + 0.1428570343232779;
	p = p * r - 0.16666654728210686;
	p = p * r + 0.20000000002120102;
	p = p * r - 0.25000000002332057;
	p = p * r + 0.3333333333333327;
	p = p * r - 0.4999999999999993;
	low = p * (r * r) + vec_entry_f64(log_table_low, at);
	if (lost) { /* added to r, it would be rounded twice; its error is lost r^2 */
		vec_f64 more = vec_scale_f64(*lost, -e) * (vec_f64)c;

		low += more - more * r;
	}
	return (struct vec_log_table_f64){ .k = e - (vec_f64)_mm512_getexp_pd(c),
					   .first = vec_entry_f64(log_table, at),
					   .r = r,
					   .low = low };
}

/* y, a logarithm of x, or -infinity for zeros, infinity for infinity, NaN for negative numbers and NaN. */
static inline vec_f64 vec_log_special_f64(vec_f64 y, vec_f64 x)
{
	return (vec_f64)_mm512_fixupimm_pd((__m512d)y, (__m512d)x, _mm512_set1_epi64(0x03530422),
					   0);
}

static inline vec_f64 log_sum_f64(vec_f64 x, const vec_f64 *lost)
{
	struct vec_log_table_f64 l = vec_log_table_f64(x, lost);
	vec_f64 high = l.k * 0.6931471805598903 + l.first, y = high + l.r;

	return vec_log_special_f64(y + (((high - y) + l.r) + (l.k * 5.497923018708371e-14 + l.low)),
				   x);
}

/* For vec_logs.h: log(x) = k ln 2 + high + low. */
struct vec_log_f64 {
	vec_f64 k, high, low;
};

static inline struct vec_log_f64 vec_log_parts_f64(vec_f64 x)
{
	struct vec_log_table_f64 l = vec_log_table_f64(x, NULL);
	vec_f64 high = l.first + l.r;

	return (struct vec_log_f64){ l.k, high, l.low + ((l.first - high) + l.r) };
}

static inline vec_f64 log_f64v(vec_f64 x)
{
	return log_sum_f64(x, NULL);
}

static inline vec_f64 log1p_f64v(vec_f64 x)
{
	__m512d one = _mm512_set1_pd(1);
	vec_f64 more = (vec_f64)_mm512_max_pd(one, (__m512d)x);
	vec_f64 less = (vec_f64)_mm512_min_pd(one, (__m512d)x);
	vec_f64 u = x + 1, lost = less - (u - more), y = log_sum_f64(u, &lost);

	return vec_select_f64((vec_f64)_mm512_abs_pd((__m512d)x) < 0x1p-54, x, y);
}

/* The function whose pieces are in the table, for |x| within them; `at` selects the pieces. */
static inline vec_f64 vec_pieces_f64(const double (*table)[PIECES], int rows, vec_f64 x, __m512i at)
{
	vec_f64 size = (vec_f64)_mm512_abs_pd((__m512d)x), c = vec_entry_f64(table[0], at);
	vec_f64 t = size - c, p = vec_entry_f64(table[2], at), y;

#pragma GCC unroll 16
	for (int i = 3; i < rows; i++)
		p = p * t + vec_entry_f64(table[i], at);
	y = vec_select_f64(c == 0, size, vec_entry_f64(table[1], at)) + t * p;
	/* The sign of x: bits of y where the mask is 0. */
	return (vec_f64)_mm512_ternarylogic_epi64((__m512i)y, _mm512_set1_epi64(INT64_MIN),
						  (__m512i)x, 0xb8);
}

static inline vec_f64 erf_f64v(vec_f64 x)
{
	vec_f64 near = vec_limit_f64(x, -5.95, 5.95);
	vec_f64 size = (vec_f64)_mm512_abs_pd((__m512d)near);
	vec_f64 at = (size * (8. / 3) - 0.5) + 0x1.8p52; /* the sum is rounded to an integer */

	return vec_pieces_f64(erf_pieces, ARRAY_SIZE(erf_pieces), near, (__m512i)at);
}

static inline vec_f64 tanh_f64v(vec_f64 x)
{
	vec_f64 near = vec_limit_f64(x, -19.1, 19.1);
	vec_f64 size = (vec_f64)_mm512_abs_pd((__m512d)near);
	vec_f64 at = vec_limit_f64(size + 0.994, 1, 15.5);

	return vec_pieces_f64(tanh_pieces, ARRAY_SIZE(tanh_pieces), near,
			      _mm512_srli_epi64((__m512i)at, 50));
}
#elif defined(__AVX2__) && defined(__FMA__)
#include "kernels/cpu/simd/vec_math_f64_fma.h"
#else
#define SLEEF_F64V(f)                                       \
	static inline vec_f64 f##_f64v(vec_f64 x)           \
	{                                                   \
		return (vec_f64)SLEEF_F64(f)((sleef_f64)x); \
	}
SLEEF_F64V(expm1)
SLEEF_F64V(log)
SLEEF_F64V(tanh)
SLEEF_F64V(erf)

/* SLEEF's exp is infinite for the greatest x with a finite result: 2 exp(x - ln 2), ln 2 as a sum. */
static inline vec_f64 exp_f64v(vec_f64 x)
{
	vec_m64 large = x > 709.7827;
	vec_f64 less = vec_select_f64(large, x - 0.6931471805598903, x);
	vec_f64 y = (vec_f64)SLEEF_F64(exp)((sleef_f64)less);

	return vec_select_f64(large, 2 * (y * (1 - 5.497923018708371e-14)), y);
}

/* SLEEF's log1p overflows for the greatest x, where log1p(x) = log(x). */
static inline vec_f64 log1p_f64v(vec_f64 x)
{
	vec_f64 small = vec_select_f64(x > 1e20, (vec_f64){ 0 }, x);

	return vec_select_f64(x > 1e20, log_f64v(x), (vec_f64)SLEEF_F64(log1p)((sleef_f64)small));
}
#endif

static inline vec_f64 normal_cdf_f64v(vec_f64 x)
{
	return 0.5 * (1 + erf_f64v(x * M_SQRT1_2));
}

static inline vec_f64 gelu_f64v(vec_f64 x)
{
	return x * normal_cdf_f64v(x);
}

#endif
