/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * exp, log and functions derived from them, on vectors of f32; those of f64 are in
 * vec_math_f64.h. Inlined, they are about four
 * times as fast as calls of SLEEF, with errors of about 1 ulp. Polynomials are minimax fits
 * (weighted least squares on Chebyshev nodes, iterated) of the function in the comment. Files
 * that include this one are compiled with -ffp-contract=fast, so that multiply-add instructions
 * are used.
 */
#ifndef TENSOR_CPU_VECMATH_H
#define TENSOR_CPU_VECMATH_H

#include "kernels/cpu/simd/vec_math_f64.h"
#include "kernels/cpu/simd/vecloop.h"

/*
 * Below EXP_NONE_F32 the result is rounded to 0. It is not computed there: an instruction whose result is denormal or
 * rounded to 0 takes a hundred times as long, and masked scores, which are -infinity, are common.
 */
#define EXP_NONE_F32 (-103.98f)

#if defined(__AVX512F__)
#include "kernels/cpu/simd/vec_pieces_f32.h"
#elif defined(__AVX2__)
#include "kernels/cpu/simd/vec_math_f32_fma.h"
#endif

/* ln 2 as a sum; the product of LN2_HIGH and an integer of 8 bits is exact. */
#define LN2_HIGH 0.693359375f
#define LN2_LOW	 -2.12194440e-4f

static inline vec_f32 splat_f32(float v)
{
	return (vec_f32){ 0 } + v;
}

/* |x| */
static inline vec_f32 vec_size_f32(vec_f32 x)
{
	return (vec_f32)((vec_m32)x & 0x7fffffff);
}

/* size with the sign of x; size >= 0 */
static inline vec_f32 vec_signed_f32(vec_f32 size, vec_f32 x)
{
	return (vec_f32)(((vec_m32)x & (int32_t)0x80000000) | (vec_m32)size);
}

/*
 * Returns r, where x = n ln 2 + r, n is an integer and |r| < 0.35; *rest is expm1(r) - r and, if exact, what rounding
 * removed from r. |x| must be below 2^21.
 */
static inline __attribute__((always_inline)) vec_f32
exp_reduced_f32(vec_f32 x, vec_f32 *n, vec_f32 *rest, const bool exact)
{
	const float magic = 12582912; /* 1.5 * 2^23: a sum with it is rounded to an integer */
	vec_f32 t = x * (float)M_LOG2E + magic, k = t - magic;
	vec_f32 first = x - k * LN2_HIGH, r = first - k * LN2_LOW;
	/* (e^r - 1 - r) / r^2; relative error of the result 3e-9 */
	vec_f32 p = 0.00139504729f * r + 0.00836888421f;

	p = p * r + 0.041666206f;
	p = p * r + 0.166665182f;
	p = p * r + 0.5f;
	*n = k;
	*rest = p * (r * r);
	if (exact)
		*rest += (first - r) - k * LN2_LOW;
	return r;
}

/* expm1(r) of the same r. */
static inline vec_f32 expm1_reduced_f32(vec_f32 x, vec_f32 *n)
{
	vec_f32 rest, r = exp_reduced_f32(x, n, &rest, false);

	return r + rest;
}

#if defined(__AVX512F__)
/* 2^(i / 16), rounded, and what rounding removed. */
static const float exp2_table_f32[16] = {
	1,	     1.04427373f, 1.09050775f, 1.13878858f, 1.18920708f, 1.24185777f,
	1.29683959f, 1.35425556f, 1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f,
	1.68179286f, 1.75625217f, 1.8340081f,  1.91520655f,
};
static const float exp2_table_low_f32[16] = {
	0,
	4.83347016e-08f,
	-1.30775399e-08f,
	5.38622231e-08f,
	3.79763527e-08f,
	4.4968381e-08f,
	-4.01899953e-08f,
	-1.01233493e-08f,
	2.4203235e-08f,
	-4.50089885e-08f,
	8.07090483e-09f,
	9.83621717e-09f,
	-2.47553267e-08f,
	-9.23577037e-09f,
	-1.1239278e-08f,
	9.84532811e-09f,
};

/* exp(x) = 2^(n / 16) e^r; the lowest bits of t are those of n. */
static inline vec_f32 exp_f32v(vec_f32 x)
{
	__mmask16 some = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(EXP_NONE_F32), _CMP_NLE_UQ);
	const float magic = 12582912; /* as in expm1_reduced_f32() */
	vec_f32 t, n, r, p, power;

	x = (vec_f32)_mm512_min_ps(_mm512_set1_ps(89), (__m512)x);
	t = x * (float)(16 * M_LOG2E) + magic;
	n = t - magic;
	r = (x - n * 0.0433216989f) + n * 1.19040894e-10f;
	/* (e^r - 1 - r) / r^2; error of e^r 2^-27.6 */
	p = 0.166668698f * r + 0.500010192f;
	p = p * (r * r) + r;
	power = vec_entry_f32(exp2_table_f32, (__m512i)t);
	p = power + (power * p + vec_entry_f32(exp2_table_low_f32, (__m512i)t));
	return (vec_f32)_mm512_maskz_scalef_ps(some, (__m512)p, (__m512)(n * 0.0625f));
}
#elif !defined(__AVX2__)
static inline vec_f32 exp_f32v(vec_f32 x)
{
	vec_m32 none = x <= EXP_NONE_F32;
	vec_f32 n, rest, r, y;

	x = vec_select_f32(x > 89, splat_f32(89), x);
	r = exp_reduced_f32((vec_f32)((vec_m32)x & ~none), &n, &rest, true);
	y = (r + rest) + 1;
	return (vec_f32)((vec_m32)vec_scale_f32(y, n) & ~none);
}
#endif

/*
 * 2^n e^r - 1 as 2^n (e^r - 1) + (2^n - 1), computed at half size because 2^128 overflows. `lost` is the rounding error of the
 * difference, and the sum of the two largest terms is added with its error.
 */
static inline vec_f32 expm1_f32v(vec_f32 x)
{
	vec_f32 n, rest, r = exp_reduced_f32(vec_limit_f32(x, -20, 89), &n, &rest, true);
	vec_f32 half = vec_scale_f32(splat_f32(0.5f), n), less = half - 0.5f, y = half * r + less;
	vec_f32 lost = vec_select_f32(half > 0.5f, (half - less) - 0.5f, half - (less + 0.5f));

	lost += half * r + (less - y);
	y = 2 * (y + (half * rest + lost));
	return vec_select_f32(vec_size_f32(x) < 0x1p-25f, x, y);
}

/*
 * log(x + more) of finite x > 0, from x = 2^e m with m between sqrt(1/2) and sqrt(2). more: what x lost by rounding, or
 * a constant 0.
 */
static inline __attribute__((always_inline)) vec_f32 log_sum_f32(vec_f32 x, vec_f32 more,
								 const bool sum)
{
	vec_m32 tiny = x < 0x1p-126f, bits, e;
	vec_f32 f, z, p, k;

	bits = (vec_m32)vec_select_f32(tiny, x * 0x1p23f, x);
	e = (bits - 0x3f3504f3) >> 23;
	f = (vec_f32)(bits - (e << 23)) - 1;
	k = __builtin_convertvector(e + (tiny & -23), vec_f32);
	z = f * f;
	/* (log(1 + f) - f + f^2 / 2) / f^3; relative error of the result 7e-10 */
	p = 0.067464903f * f - 0.116756156f;
	p = p * f + 0.11888212f;
	p = p * f - 0.124055982f;
	p = p * f + 0.142195463f;
	p = p * f - 0.166679949f;
	p = p * f + 0.200021192f;
	p = p * f - 0.250000089f;
	p = p * f + 0.333333135f;
	p = p * f * z + k * LN2_LOW - 0.5f * z;
	if (sum)
		p += more / x;
	return f + p + k * LN2_HIGH;
}

static inline vec_f32 log_positive_f32(vec_f32 x)
{
	return log_sum_f32(x, (vec_f32){ 0 }, false);
}

/* y = log(x) of x > 0, or the result for other x. */
static inline vec_f32 log_or_limit_f32(vec_f32 y, vec_f32 x)
{
	vec_f32 outside = vec_select_f32(x == 0, splat_f32(-INFINITY), splat_f32(NAN));

	y = vec_select_f32(x == INFINITY, x, y);
	return vec_select_f32(x > 0, y, outside);
}

#if defined(__AVX512F__)
/*
 * log(x), x = 2^e m with m in [0.75, 1.5). The highest bits of m's fraction select c, a multiple of 1/32 near 1 / m, and
 * log(x) = e ln 2 - log(c) + log(1 + r), r = c m - 1, is exact, -0.038 < r <= 1/16. If x is near 1, c = 1 and all but the
 * last term are zero. -log(c) is a multiple of 2^-17 and what is left; from m < 1, whose exponent is 1 less, the terms have ln 2.
 */
#define LOG_2_HIGH 0.693145752f /* a multiple of 2^-17 */
#define LOG_2_LOW  1.42860682e-06f
static const float log_factor_f32[16] = { 1,	    0.90625f, 0.875f,  0.8125f, 0.78125f, 0.75f,
					  0.71875f, 0.6875f,  1.3125f, 1.25f,	1.21875f, 1.15625f,
					  1.125f,   1.09375f, 1.0625f, 1 };
static const float log_high_f32[16] = { 0,
					0.0984420776f,
					0.133529663f,
					0.207641602f,
					0.246856689f,
					0.28768158f,
					0.330238342f,
					0.374694824f,
					0.421211243f,
					0.470001221f,
					0.495323181f,
					0.547966003f,
					0.575363159f,
					0.603530884f,
					0.632522583f,
					0.693145752f };
static const float log_low_f32[16] = { 0,
				       -2.00482347e-06f,
				       1.72953859e-06f,
				       -2.23678426e-06f,
				       3.3884784e-06f,
				       4.92861937e-07f,
				       3.34458542e-06f,
				       -1.37477734e-06f,
				       2.22240052e-06f,
				       2.40854261e-06f,
				       -1.74392232e-06f,
				       -8.32702521e-07f,
				       9.85723874e-07f,
				       4.1380812e-06f,
				       -2.4264302e-08f,
				       1.42860682e-06f };

/* See vec_log_table_f32(). */
struct vec_log_table_f32 {
	__m512 m;
	vec_f32 e, first, first_low, r, low;
};

/* log(x) = e ln 2 + first + first_low + r + low, x = 2^e m. */
static inline struct vec_log_table_f32 vec_log_table_f32(vec_f32 x)
{
	__m512 m = _mm512_getmant_ps((__m512)x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
	__m512i at = _mm512_srli_epi32((__m512i)m, 19);
	vec_f32 c = vec_entry_f32(log_factor_f32, at);
	vec_f32 r = (vec_f32)_mm512_fmsub_ps(m, (__m512)c, _mm512_set1_ps(1)), p;

	/* (log(1 + r) - r) / r^2; relative error of the result 2^-32 */
	p = -0.158252013f * r + 0.20021326f;
	p = p * r - 0.250013162f;
	p = p * r + 0.333333256f;
	p = p * r - 0.499999998f;
	return (struct vec_log_table_f32){ .m = m,
					   .e = (vec_f32)_mm512_getexp_ps((__m512)x),
					   .first = vec_entry_f32(log_high_f32, at),
					   .first_low = vec_entry_f32(log_low_f32, at),
					   .r = r,
					   .low = p * (r * r) };
}

/* y, a logarithm of x, or -infinity for zeros, infinity for infinity, NaN for negative numbers and NaN. */
static inline vec_f32 vec_log_special_f32(vec_f32 y, vec_f32 x)
{
	return (vec_f32)_mm512_fixupimm_ps((__m512)y, (__m512)x, _mm512_set1_epi32(0x03530422), 0);
}

static inline vec_f32 log_f32v(vec_f32 x)
{
	struct vec_log_table_f32 l = vec_log_table_f32(x);
	vec_f32 high = l.e * LOG_2_HIGH + l.first, y = high + l.r;

	return vec_log_special_f32(
		y + (((high - y) + l.r) + (l.e * LOG_2_LOW + l.first_low + l.low)), x);
}

/* For vec_logs.h: log(x) = k ln 2 + high + low. Where m < 1, k is e + 1, and the terms lose their ln 2. */
struct vec_log_f32 {
	vec_f32 k, high, low;
};

static inline struct vec_log_f32 vec_log_parts_f32(vec_f32 x)
{
	struct vec_log_table_f32 l = vec_log_table_f32(x);
	__mmask16 less = _mm512_cmp_ps_mask(l.m, _mm512_set1_ps(1), _CMP_LT_OQ);
	vec_f32 k = (vec_f32)_mm512_mask_add_ps((__m512)l.e, less, (__m512)l.e, _mm512_set1_ps(1));
	vec_f32 first = (vec_f32)_mm512_mask_sub_ps((__m512)l.first, less, (__m512)l.first,
						    _mm512_set1_ps(LOG_2_HIGH));
	vec_f32 first_low = (vec_f32)_mm512_mask_sub_ps(
		(__m512)l.first_low, less, (__m512)l.first_low, _mm512_set1_ps(LOG_2_LOW));
	vec_f32 high = first + l.r;

	return (struct vec_log_f32){ k, high, ((first - high) + l.r) + first_low + l.low };
}
#elif !defined(__AVX2__)
static inline vec_f32 log_f32v(vec_f32 x)
{
	return log_or_limit_f32(log_positive_f32(x), x);
}
#endif

static inline vec_f32 log1p_f32v(vec_f32 x)
{
	vec_f32 u = 1 + x, lost = vec_select_f32(x < 1e8f, x - (u - 1), splat_f32(0));
	vec_f32 y = log_or_limit_f32(log_sum_f32(u, lost, true), u);

	return vec_select_f32(x == 0, x, y);
}

#if defined(__AVX512F__)
static inline vec_f32 tanh_f32v(vec_f32 x)
{
	vec_f32 near = vec_limit_f32(x, -9.02f, 9.02f);
	vec_f32 at = vec_limit_f32((vec_f32)_mm512_abs_ps((__m512)near) + 0.994f, 1, 15.5f);

	return vec_pieces_f32(tanh_pieces_f32, ARRAY_SIZE(tanh_pieces_f32), near,
			      _mm512_srli_epi32((__m512i)at, 21));
}
#else
static inline vec_f32 tanh_f32v(vec_f32 x)
{
	vec_f32 size = vec_size_f32(x), z = x * x, far;
	/* (tanh(x) / x - 1) / x^2 below 0.63; relative error of the result 5e-9 */
	vec_f32 p = -0.00566075416f * z + 0.0206019729f;

	p = p * z - 0.0537292175f;
	p = p * z + 0.133313283f;
	p = p * z - 0.333332777f;
	far = 1 - 2 / (exp_f32v(2 * size) + 1);
	far = vec_signed_f32(far, x);
	far = vec_select_f32(size < 0.625f, x + x * (z * p), far);
	return vec_select_f32(x == 0, x, far);
}
#endif

static inline vec_f32 erf_f32v(vec_f32 x)
{
	vec_f32 size = vec_size_f32(x), z = x * x, a, p, g, n;

	/* erf(x) / x - 1 below 1; relative error of the result 2e-9 */
	p = 7.85384691e-05f * z - 0.000801018905f;
	p = p * z + 0.00518832728f;
	p = p * z - 0.026853811f;
	p = p * z + 0.112835854f;
	p = p * z - 0.37612626f;
	p = p * z + 0.128379166f;
	/* -log(erfc(x)) from 1 to 4, above which erf is 1; error of the result 2e-9 */
	a = vec_limit_f32(size, 0, 4.05f);
	g = -0.000191508021f * a + 0.00299957697f;
	g = g * a - 0.0220521353f;
	g = g * a + 0.103567161f;
	g = g * a + 0.637599766f;
	g = g * a + 1.12742627f;
	g = g * a + 0.000256406463f;
	g = expm1_reduced_f32(-g, &n) + 1;
	g = 1 - vec_scale_f32(g, n);
	g = vec_signed_f32(g, x);
	return vec_select_f32(size < 1, x + x * p, g);
}

/*
 * normal_tail_f32v() is the cumulative distribution function of the normal distribution at -a, for
 * a >= 0: 2^n p, where -h is its binary logarithm, n the integer nearest to -h, and p = 2^-(h + n).
 * The result is 0 for a > 5.9, where it is below half an ulp of 1.
 */
static inline vec_f32 normal_tail_power_f32(vec_f32 a, vec_f32 p, vec_f32 n)
{
	return vec_select_f32(a > 5.9f, splat_f32(0), vec_scale_f32(p, n));
}

/* The integer nearest to -h. */
static inline vec_f32 whole_part_f32(vec_f32 h)
{
	const float magic = 12582912; /* as in expm1_reduced_f32() */

	return (magic - h) - magic;
}

static inline vec_f32 normal_tail_f32v(vec_f32 a)
{
	vec_f32 h, n, r, p;

	/* h for a <= 5.9; error 5e-8 near zero, and 1 ulp above */
	h = -2.41459652e-09f * a + 9.09024607e-08f;
	h = h * a - 1.51808263e-06f;
	h = h * a + 1.46840102e-05f;
	h = h * a - 8.82582244e-05f;
	h = h * a + 0.000299754378f;
	h = h * a - 1.31178058e-05f;
	h = h * a - 0.00695576472f;
	h = h * a + 0.0524598993f;
	h = h * a + 0.459211409f;
	h = h * a + 1.15110564f;
	h = h * a + 0.99999994f;
	n = whole_part_f32(h);
	r = h + n;
	/* 2^-r; relative error 2e-9 */
	p = 0.000153458104f * r - 0.00133999312f;
	p = p * r + 0.00961848896f;
	p = p * r - 0.0555032878f;
	p = p * r + 0.240226469f;
	p = p * r - 0.693147206f;
	p = p * r + 1;
	return normal_tail_power_f32(a, p, n);
}

/* The same for results that are rounded to bf16: relative error 8e-6, 1/500 of its ulp. */
static inline vec_f32 normal_tail_bf16v(vec_f32 a)
{
	vec_f32 h, n, r, p;

	h = 1.80890538e-06f * a - 6.11295327e-05f;
	h = h * a + 0.000927271962f;
	h = h * a - 0.00849703141f;
	h = h * a + 0.0539421402f;
	h = h * a + 0.458477885f;
	h = h * a + 1.15124738f;
	h = h * a + 0.99999547f;
	n = whole_part_f32(h);
	r = h + n;
	p = 0.00957010002f * r - 0.0559178602f;
	p = p * r + 0.240247449f;
	p = p * r - 0.693121815f;
	p = p * r + 0.999999261f;
	return normal_tail_power_f32(a, p, n);
}

/* x times the distribution function at x, which is 1 for x > 5.9; -0 where that is 0. */
#define GELU_OF(x, tail)            \
	vec_select_f32(x > 5.9f, x, \
		       vec_at_least_f32(x, -0.0f) - vec_size_f32(x) * tail(vec_size_f32(x)))

static inline vec_f32 gelu_f32v(vec_f32 x)
{
	return GELU_OF(x, normal_tail_f32v);
}

static inline vec_f32 gelu_bf16v(vec_f32 x)
{
	return GELU_OF(x, normal_tail_bf16v);
}

static inline vec_f32 normal_cdf_f32v(vec_f32 x)
{
	vec_f32 tail = normal_tail_f32v(vec_size_f32(x));

	return vec_select_f32(x > 0, 1 - tail, tail);
}

/* Loops NAME_f32(), NAME_bf16() and NAME_f64() over NAME_f32v() and NAME_f64v(). */
#define VEC_UNARY_INLINE(NAME)                                                       \
	VEC_LOOP_1(NAME, f32, float, vec_f32, VEC_F32, (void)params, NAME##_f32v(x)) \
	VEC_LOOP_1_BF16(NAME, (void)params, NAME##_f32v(x))                          \
	VEC_LOOP_1(NAME, f64, double, vec_f64, VEC_F64, (void)params, NAME##_f64v(x))

#endif
