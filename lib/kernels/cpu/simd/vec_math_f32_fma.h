/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * exp and logarithms on vectors of eight f32, for processors that have AVX2 and multiply-add instructions but no AVX-512: as in
 * vec_math_f64_fma.h, with fewer terms.
 */
#ifndef TENSOR_VEC_MATH_F32_FMA_H
#define TENSOR_VEC_MATH_F32_FMA_H

#include "kernels/cpu/simd/vec_fma.h"

#define ROUND_F32 \
	12582912.f /* 1.5 * 2^23: a sum with it is rounded to an integer, which is in its lowest bits */

static inline vec_f32 vec_splat_f32(float v)
{
	return (vec_f32)_mm256_set1_ps(v);
}

/* Whether a lane is true. */
static inline bool vec_some_f32(vec_m32 lanes)
{
	return _mm256_movemask_ps((__m256)lanes);
}

/* 2^n of the integer n in the lowest bits of t, where it is normal. */
static inline vec_f32 vec_power_f32(vec_f32 t)
{
	return (vec_f32)(((vec_m32)t + 127) << 23);
}

/* e^r 2^n: x = n ln 2 + r, and t, which is stored, has n in its lowest bits. Returns e^r. */
static inline vec_f32 vec_exp_part_f32(vec_f32 x, vec_f32 *t)
{
	vec_f32 n, first, r, square, low, p, y;

	*t = vec_fma_f32(x, vec_splat_f32((float)M_LOG2E), vec_splat_f32(ROUND_F32));
	n = *t - ROUND_F32;
	first = vec_fnma_f32(n, vec_splat_f32(0.693147182f), x); /* exact */
	r = vec_fnma_f32(n, vec_splat_f32(-1.9046543e-09f), first);
	low = vec_fnma_f32(n, vec_splat_f32(-1.9046543e-09f), first - r);
	square = r * r;
	/* (e^r - 1 - r) / r^2; error of e^r 2^-26.5 at the ends, where it is least exact */
	p = 0.00139269268f * square + (0.00836377405f * r + 0.0416665487f);
	p = p * square + (0.166665733f * r + 0.5f);
	y = 1 + r;
	return y + (p * square + (((1 - y) + r) + low));
}

/* exp(x) where the result or 2^n may not be normal, which is rare. */
static inline vec_f32 vec_exp_far_f32(vec_f32 x)
{
	vec_f32 near = vec_limit_f32(x, -104, 89), t, half, rest, y = vec_exp_part_f32(near, &t);

	half = (t - ROUND_F32) * 0.5f + ROUND_F32;
	rest = ((t - ROUND_F32) - (half - ROUND_F32)) + ROUND_F32;
	/* 0 before the multiplication: an instruction with a denormal result takes a hundred times as long. */
	y = (vec_f32)((vec_m32)y & ~(x <= EXP_NONE_F32));
	return y * vec_power_f32(half) * vec_power_f32(rest);
}

static inline vec_f32 exp_f32v(vec_f32 x)
{
	vec_f32 size = (vec_f32)((vec_m32)x & 0x7fffffff), t, y;

	if (__builtin_expect(vec_some_f32(~(size < 87)), 0))
		return vec_exp_far_f32(x);
	y = vec_exp_part_f32(x, &t);
	return (vec_f32)((vec_m32)y + ((vec_m32)t << 23));
}

/* log(x) = k ln 2 + high + low, where k is an integer and |high| < 0.35. */
struct vec_log_f32 {
	vec_f32 k, high, low;
};

/* The parts of log(x) for normal x = 2^k m, m = 1 + f between sqrt(1/2) and sqrt(2). */
static inline struct vec_log_f32 vec_log_normal_f32(vec_f32 x)
{
	const vec_m32 root = (vec_m32)vec_splat_f32((float)M_SQRT1_2);
	vec_m32 bits = (vec_m32)x + ((vec_m32)vec_splat_f32(1) - root);
	vec_f32 f = (vec_f32)((bits & 0x7fffff) + root) - 1, half = 0.5f * f, z = f * f, p;
	struct vec_log_f32 l;

	l.k = __builtin_convertvector((bits >> 23) - 127, vec_f32);
	/* (log(1 + f) - f + f^2 / 2) / f^3; relative error of the result 7e-10 */
	p = 0.067464903f * z + (-0.116756156f * f + 0.11888212f);
	p = p * z + (-0.124055982f * f + 0.142195463f);
	p = p * z + (-0.166679949f * f + 0.200021192f);
	p = p * z + (-0.250000089f * f + 0.333333135f);
	l.high = vec_fnma_f32(half, f, f);
	l.low = vec_fnma_f32(half, f, f - l.high) + p * (f * z);
	return l;
}

/* Whether all lanes are normal positive numbers. */
static inline bool vec_log_usual_f32(vec_f32 x)
{
	return !vec_some_f32(~((x >= 0x1p-126f) & (x < INFINITY)));
}

/* The parts of log(x) for x > 0. */
static inline struct vec_log_f32 vec_log_parts_f32(vec_f32 x)
{
	vec_m32 tiny = x < 0x1p-126f;
	struct vec_log_f32 l = vec_log_normal_f32(vec_select_f32(tiny, x * 0x1p23f, x));

	l.k -= (vec_f32)((vec_m32)vec_splat_f32(23) & tiny);
	return l;
}

/* y, a logarithm of x, with the results of zeros, negative numbers, infinity and NaN. */
static inline vec_f32 vec_log_special_f32(vec_f32 y, vec_f32 x)
{
	vec_f32 outside = vec_select_f32(x == 0, vec_splat_f32(-INFINITY), vec_splat_f32(NAN));

	y = vec_select_f32(x == INFINITY, x, y);
	return vec_select_f32(x > 0, y, outside);
}

/* log(x) of x with the given parts. */
static inline vec_f32 vec_log_sum_f32(struct vec_log_f32 l)
{
	vec_f32 whole = l.k * 0.693145752f, y = whole + l.high;

	return y + (((whole - y) + l.high) + (l.k * 1.42860682e-06f + l.low));
}

static inline vec_f32 log_f32v(vec_f32 x)
{
	if (__builtin_expect(vec_log_usual_f32(x), 1))
		return vec_log_sum_f32(vec_log_normal_f32(x));
	return vec_log_special_f32(vec_log_sum_f32(vec_log_parts_f32(x)), x);
}

#endif
