/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * exp, expm1, log, log1p, tanh and erf on vectors of four f64, for processors that have AVX2 and multiply-add instructions but
 * no AVX-512. exp and log are polynomials whose highest terms are added with the error of the sum; tanh and erf are polynomials
 * in pieces of the axis. Lanes with a special argument or result are rare, and a vector without one does not compute them.
 * Polynomials interpolate at Chebyshev nodes.
 */
#ifndef TENSOR_VEC_MATH_F64_FMA_H
#define TENSOR_VEC_MATH_F64_FMA_H

#include "kernels/cpu/simd/vec_pieces_f64_fma.h"
#include "kernels/cpu/simd/vec_fma.h"

/* ln 2 as a sum; the product of its first part and an integer below 2^11 is exact. */
#define LN2_HIGH_F64 0.6931471805598903
#define LN2_LOW_F64  5.497923018708371e-14
#define ROUND_F64    0x1.8p52 /* a sum with it is rounded to an integer, which is in its lowest bits */

static inline vec_f64 vec_splat_f64(double v)
{
	return (vec_f64)_mm256_set1_pd(v);
}

static inline vec_f64 vec_size_f64(vec_f64 x)
{
	return (vec_f64)_mm256_andnot_pd(_mm256_set1_pd(-0.0), (__m256d)x);
}

/* v limited to [low, high]; NaN stays NaN. */
static inline vec_f64 vec_limit_f64(vec_f64 v, double low, double high)
{
	__m256d up = _mm256_max_pd(_mm256_set1_pd(low), (__m256d)v);

	return (vec_f64)_mm256_min_pd(_mm256_set1_pd(high), up);
}

/* The lesser of v and high; NaN stays NaN. */
static inline vec_f64 vec_at_most_f64(vec_f64 v, double high)
{
	return (vec_f64)_mm256_min_pd(_mm256_set1_pd(high), (__m256d)v);
}

/* Whether a lane is true. */
static inline bool vec_some_f64(vec_m64 lanes)
{
	return _mm256_movemask_pd((__m256d)lanes);
}

/* 2^(n + more) of the integer n in the lowest bits of t, where it is normal. */
static inline vec_f64 vec_power_f64(vec_f64 t, int64_t more)
{
	return (vec_f64)(((vec_m64)t + (1023 + more)) << 52);
}

/* x = n ln 2 + r + low, |r| <= ln(2) / 2; t has n in its lowest bits, and p is (e^r - 1 - r) / r^2. */
struct vec_exp_f64 {
	vec_f64 t, r, low, p;
};

static inline struct vec_exp_f64 vec_exp_parts_f64(vec_f64 x)
{
	vec_f64 t = vec_fma_f64(x, vec_splat_f64(M_LOG2E), vec_splat_f64(ROUND_F64));
	vec_f64 n = t - ROUND_F64, r, square, low, p;
	vec_f64 first = vec_fnma_f64(n, vec_splat_f64(LN2_HIGH_F64), x); /* exact */

	r = vec_fnma_f64(n, vec_splat_f64(LN2_LOW_F64), first);
	low = vec_fnma_f64(n, vec_splat_f64(LN2_LOW_F64), first - r);
	square = r * r;
	/* error of e^r 2^-61, of e^r - 1 2^-60 */
	p = (2.0915442297780116e-09 * r + 2.5106274733573296e-08) * square +
	    (2.75572718102198e-07 * r + 2.7557252833516911e-06);
	p = p * (square * square) +
	    ((2.4801587327007187e-05 * r + 0.00019841269876864356) * square +
	     (0.0013888888888883327 * r + 0.0083333333333255443));
	p = (p * square + (0.041666666666666671 * r + 0.16666666666666671)) * r + 0.5;
	return (struct vec_exp_f64){ t, r, low, p };
}

/*
 * y times 2^n, n in the lowest bits of t, in two steps, because 2^n or the result may not be normal. Below -745.14 the result is
 * 0; it is not computed, see EXP_NONE_F32 in vecmath.h.
 */
static inline vec_f64 vec_exp_far_f64(vec_f64 x, vec_f64 y, vec_f64 t)
{
	vec_f64 n = t - ROUND_F64, half = n * 0.5 + ROUND_F64;
	vec_f64 rest = (n - (half - ROUND_F64)) + ROUND_F64;

	y = (vec_f64)((vec_m64)y & ~(x <= -745.14));
	return y * vec_power_f64(half, 0) * vec_power_f64(rest, 0);
}

static inline vec_f64 exp_f64v(vec_f64 x)
{
	struct vec_exp_f64 e = vec_exp_parts_f64(vec_limit_f64(x, -746, 710));
	vec_f64 y = 1 + e.r, low = ((1 - y) + e.r) + e.low;

	y += e.p * (e.r * e.r) + low;
	if (__builtin_expect(vec_some_f64(~(vec_size_f64(x) < 708)), 0))
		return vec_exp_far_f64(x, y, e.t);
	return (vec_f64)((vec_m64)y + ((vec_m64)e.t << 52));
}

/* 2^n e^r - 1 as 2^n (e^r - 1) + (2^n - 1), computed at half size because 2^1024 overflows. */
static inline vec_f64 expm1_f64v(vec_f64 x)
{
	struct vec_exp_f64 e = vec_exp_parts_f64(vec_limit_f64(x, -40, 709.9));
	vec_f64 half = vec_power_f64(e.t, -1), less = half - 0.5, y, lost;

	lost = vec_select_f64(half > 0.5, (half - less) - 0.5, half - (less + 0.5));
	y = vec_fma_f64(half, e.r, less);
	lost += vec_fma_f64(half, e.r, less - y);
	y = 2 * (y + (half * (e.p * (e.r * e.r) + e.low) + lost));
	return vec_select_f64(vec_size_f64(x) < 0x1p-54, x, y);
}

/* log(x) = k ln 2 + high + low, where k is an integer and |high| < 0.35. */
struct vec_log_f64 {
	vec_f64 k, high, low;
};

/* The parts of log(x) for normal x = 2^k m, m = 1 + f between sqrt(1/2) and sqrt(2). lost: if not NULL, a rounding
 * error of x. */
static inline struct vec_log_f64 vec_log_lossy_f64(vec_f64 x, const vec_f64 *lost)
{
	const vec_m64 root = (vec_m64)vec_splat_f64(M_SQRT1_2), one = (vec_m64)vec_splat_f64(1);
	vec_m64 bits = (vec_m64)x + (one - root), e = (vec_m64)((vec_u64)bits >> 52);
	vec_f64 f = (vec_f64)((bits & 0xfffffffffffff) + root) - 1, s, z, square, p, half;
	struct vec_log_f64 l;

	l.k = (vec_f64)(e | (vec_m64)vec_splat_f64(0x1p52)) - (0x1p52 + 1023);
	half = 0.5 * f;
	s = f / (2 + f);
	z = s * s;
	square = z * z;
	/* (log(1 + f) - 2 s) / s^3; relative error of the result 2^-57 */
	p = 0.14630031364122861 * square + (0.15330617306743305 * z + 0.18182922513515942);
	p = p * square + (0.22222210674238516 * z + 0.28571428628810996);
	p = p * square + (0.39999999999893221 * z + 0.66666666666666696);
	l.high = vec_fnma_f64(half, f, f);
	l.low = vec_fnma_f64(half, f, f - l.high) + s * (half * f + p * z);
	if (lost)
		l.low += *lost / x;
	return l;
}

static inline struct vec_log_f64 vec_log_normal_f64(vec_f64 x)
{
	return vec_log_lossy_f64(x, NULL);
}

/* y, a logarithm of x, with the results of zeros, negative numbers, infinity and NaN. */
static inline vec_f64 vec_log_special_f64(vec_f64 y, vec_f64 x)
{
	vec_f64 outside = vec_select_f64(x == 0, vec_splat_f64(-INFINITY), vec_splat_f64(NAN));

	y = vec_select_f64(x == INFINITY, x, y);
	return vec_select_f64(x > 0, y, outside);
}

/* log(x) of x with the given parts. */
static inline vec_f64 vec_log_sum_f64(struct vec_log_f64 l)
{
	vec_f64 whole = l.k * LN2_HIGH_F64, y = whole + l.high;

	return y + (((whole - y) + l.high) + (l.k * LN2_LOW_F64 + l.low));
}

/* Whether all lanes are normal positive numbers. */
static inline bool vec_log_usual_f64(vec_f64 x)
{
	return !vec_some_f64(~((x >= 0x1p-1022) & (x < INFINITY)));
}

/* The parts of log(x) for x > 0. */
static inline struct vec_log_f64 vec_log_parts_f64(vec_f64 x)
{
	vec_m64 tiny = x < 0x1p-1022;
	struct vec_log_f64 l = vec_log_normal_f64(vec_select_f64(tiny, x * 0x1p54, x));

	l.k -= (vec_f64)((vec_m64)vec_splat_f64(54) & tiny);
	return l;
}

static inline vec_f64 log_f64v(vec_f64 x)
{
	if (__builtin_expect(vec_log_usual_f64(x), 1))
		return vec_log_sum_f64(vec_log_normal_f64(x));
	return vec_log_special_f64(vec_log_sum_f64(vec_log_parts_f64(x)), x);
}

static inline vec_f64 log1p_f64v(vec_f64 x)
{
	vec_f64 one = vec_splat_f64(1), u = x + 1;
	vec_f64 more = (vec_f64)_mm256_max_pd((__m256d)one, (__m256d)x);
	vec_f64 less = (vec_f64)_mm256_min_pd((__m256d)one, (__m256d)x), lost = less - (u - more);
	vec_f64 y = vec_log_sum_f64(vec_log_lossy_f64(u, &lost));

	y = vec_log_special_f64(y, u);
	return vec_select_f64(vec_size_f64(x) < 0x1p-54, x, y);
}

/* Numbers k and k + 1 of each lane's row. */
static inline void vec_pair_f64(const double *const *row, int k, vec_f64 *a, vec_f64 *b)
{
	__m256d even = _mm256_set_m128d(_mm_loadu_pd(row[2] + k), _mm_loadu_pd(row[0] + k));
	__m256d odd = _mm256_set_m128d(_mm_loadu_pd(row[3] + k), _mm_loadu_pd(row[1] + k));

	*a = (vec_f64)_mm256_unpacklo_pd(even, odd);
	*b = (vec_f64)_mm256_unpackhi_pd(even, odd);
}

/* The function whose pieces of slope |x| + 2 are in the table; the last one ends at x = end. */
static inline vec_f64 vec_pieces_f64(const double (*table)[PIECE_ROW], int pieces, vec_f64 x,
				     double slope, double end)
{
	vec_f64 size = vec_size_f64(x), near = vec_at_most_f64(size, end);
	vec_f64 c, point, steep, t, square, p, y, z = size * slope + 2;
	/* The exponent and 3 bits of z count pieces from 2; those of NaN become those of the last piece. */
	double last = (double)(1 << (pieces - 1) / 8) * (2 + (pieces - 1) % 8 * 0.25);
	vec_u64 at = (vec_u64)_mm256_min_pd((__m256d)z, _mm256_set1_pd(last)) >> 49;
	const double *row[VEC_F64];

	for (int i = 0; i < VEC_F64; i++)
		row[i] = table[at[i] - (1024 << 3)];
	vec_pair_f64(row, 0, &c, &point);
	vec_pair_f64(row, 2, &steep, &p);
	t = near - c;
	square = t * t;
	/* Two terms at a time, which is a shorter chain of dependent instructions than one at a time. */
#pragma GCC unroll 8
	for (int k = 4; k < PIECE_NUMBERS; k += 2) {
		vec_f64 high, low;

		vec_pair_f64(row, k, &high, &low);
		p = p * square + (high * t + low);
	}
	/* t s has no rounding error, and t p is small where the function is. */
	y = point + vec_fma_f64(t, p, t * steep);
	return (vec_f64)((vec_m64)y | ((vec_m64)x & INT64_MIN));
}

static inline vec_f64 erf_f64v(vec_f64 x)
{
	return vec_pieces_f64(erf_pieces, ARRAY_SIZE(erf_pieces), x, 3, 5.95);
}

static inline vec_f64 tanh_f64v(vec_f64 x)
{
	return vec_pieces_f64(tanh_pieces, ARRAY_SIZE(tanh_pieces), x, 2, 19.1);
}

#endif
