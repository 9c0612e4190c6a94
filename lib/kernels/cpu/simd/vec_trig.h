/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * sin, cos and tan on vectors, sin_v32() and so on. With AVX-512 they read sin and cos of multiples of pi / 16 from tables in
 * registers by permutation, with errors below 0.55 ulp; vec_trig_fma.h has them for AVX2. Far from 0, and for narrower vectors,
 * SLEEF computes them. The roundings are part of the algorithm, so multiply-adds are explicit.
 */
#ifndef TENSOR_VEC_TRIG_H
#define TENSOR_VEC_TRIG_H

#include "kernels/cpu/simd/vec_fma.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define TURNS	 16 /* entries of a table: half a circle */
#define COS_TURN 8  /* cos(x) = sin(x + 8 pi / 16) */

/* sin(i pi / 16), rounded, and what rounding removed; cos has the same values. */
static const double sin_table_v64[TURNS] = {
	0.0,
	0.19509032201612828,
	0.3826834323650898,
	0.5555702330196022,
	0.7071067811865476,
	0.8314696123025452,
	0.9238795325112867,
	0.9807852804032304,
	1.0,
	0.9807852804032304,
	0.9238795325112867,
	0.8314696123025452,
	0.7071067811865476,
	0.5555702330196022,
	0.3826834323650898,
	0.19509032201612828,
};
static const double sin_table_low_v64[TURNS] = {
	0.0,
	-7.991079068461731e-18,
	-1.0050772696461588e-17,
	4.709410940561677e-17,
	-4.833646656726457e-17,
	1.4073856984728024e-18,
	1.7645047084336677e-17,
	1.8546939997825006e-17,
	0.0,
	1.8546939997825006e-17,
	1.7645047084336677e-17,
	1.4073856984728024e-18,
	-4.833646656726457e-17,
	4.709410940561677e-17,
	-1.0050772696461588e-17,
	-7.991079068461731e-18,
};
static const double cos_table_v64[TURNS] = {
	1.0,
	0.9807852804032304,
	0.9238795325112867,
	0.8314696123025452,
	0.7071067811865476,
	0.5555702330196022,
	0.3826834323650898,
	0.19509032201612828,
	0.0,
	-0.19509032201612828,
	-0.3826834323650898,
	-0.5555702330196022,
	-0.7071067811865476,
	-0.8314696123025452,
	-0.9238795325112867,
	-0.9807852804032304,
};
static const double cos_table_low_v64[TURNS] = {
	0.0,
	1.8546939997825006e-17,
	1.7645047084336677e-17,
	1.4073856984728024e-18,
	-4.833646656726457e-17,
	4.709410940561677e-17,
	-1.0050772696461588e-17,
	-7.991079068461731e-18,
	0.0,
	7.991079068461731e-18,
	1.0050772696461588e-17,
	-4.709410940561677e-17,
	4.833646656726457e-17,
	-1.4073856984728024e-18,
	-1.7645047084336677e-17,
	-1.8546939997825006e-17,
};

static const float sin_table_v32[TURNS] = { 0,
					    0.195090324f,
					    0.382683426f,
					    0.555570245f,
					    0.707106769f,
					    0.831469595f,
					    0.923879504f,
					    0.980785251f,
					    1,
					    0.980785251f,
					    0.923879504f,
					    0.831469595f,
					    0.707106769f,
					    0.555570245f,
					    0.382683426f,
					    0.195090324f };
static const float sin_table_low_v32[TURNS] = { 0,
						-1.67047143e-09f,
						6.22335072e-09f,
						-1.17695214e-08f,
						1.21016175e-08f,
						1.68702634e-08f,
						2.83074897e-08f,
						2.97394731e-08f,
						0,
						2.97394731e-08f,
						2.83074897e-08f,
						1.68702634e-08f,
						1.21016175e-08f,
						-1.17695214e-08f,
						6.22335072e-09f,
						-1.67047143e-09f };
static const float cos_table_v32[TURNS] = { 1,
					    0.980785251f,
					    0.923879504f,
					    0.831469595f,
					    0.707106769f,
					    0.555570245f,
					    0.382683426f,
					    0.195090324f,
					    0,
					    -0.195090324f,
					    -0.382683426f,
					    -0.555570245f,
					    -0.707106769f,
					    -0.831469595f,
					    -0.923879504f,
					    -0.980785251f };
static const float cos_table_low_v32[TURNS] = { 0,
						2.97394731e-08f,
						2.83074897e-08f,
						1.68702634e-08f,
						1.21016175e-08f,
						-1.17695214e-08f,
						6.22335072e-09f,
						-1.67047143e-09f,
						0,
						1.67047143e-09f,
						-6.22335072e-09f,
						1.17695214e-08f,
						-1.21016175e-08f,
						-1.68702634e-08f,
						-2.83074897e-08f,
						-2.97394731e-08f };

static inline vec_f64 splat_v64(double v)
{
	return (vec_f64){ 0 } + v;
}

static inline vec_f32 splat_v32(float v)
{
	return (vec_f32){ 0 } + v;
}

/* (sin(r) - r) / r^3 and (cos(r) - 1) / r^2 for z = r^2; errors of the results 2^-65 and 2^-62. */
static inline vec_f64 sine_v64(vec_f64 z)
{
	vec_f64 p =
		fma_v64(z, splat_v64(2.755247111395781e-06), splat_v64(-0.00019841269548061537));

	p = fma_v64(p, z, splat_v64(0.008333333333327659));
	return fma_v64(p, z, splat_v64(-0.16666666666666666));
}

static inline vec_f64 cosine_v64(vec_f64 z)
{
	vec_f64 p = fma_v64(z, splat_v64(2.479625446325642e-05), splat_v64(-0.0013888888566366301));

	p = fma_v64(p, z, splat_v64(0.04166666666660425));
	return fma_v64(p, z, splat_v64(-0.5));
}

/* The same with errors of 2^-35 and 2^-32. */
static inline vec_f32 sine_v32(vec_f32 z)
{
	return fma_v32(z, splat_v32(0.00833141354f), splat_v32(-0.166666664f));
}

static inline vec_f32 cosine_v32(vec_f32 z)
{
	return fma_v32(z, splat_v32(0.0416532286f), splat_v32(-0.5f));
}

/* The integer in the lowest bits of a sum with ROUND_TURN, plus `ahead`. */
static inline __m512i ahead_v64(vec_f64 t, int ahead)
{
	return _mm512_add_epi64((__m512i)t, _mm512_set1_epi64(ahead));
}

static inline __m512i ahead_v32(vec_f32 t, int ahead)
{
	return _mm512_add_epi32((__m512i)t, _mm512_set1_epi32(ahead));
}

/* The entries of a table that the lowest 4 bits of each lane of `at` select. */
static inline vec_f64 entry_v64(const double *table, __m512i at)
{
	return (vec_f64)_mm512_permutex2var_pd(_mm512_loadu_pd(table), at,
					       _mm512_loadu_pd(table + 8));
}

static inline vec_f32 entry_v32(const float *table, __m512i at)
{
	return (vec_f32)_mm512_permutexvar_ps(at, _mm512_loadu_ps(table));
}

/* v, negated where the half circle is odd, bit 4 of `at`, and where `sign` is negative. */
static inline vec_f64 turn_sign_v64(vec_f64 v, __m512i at, vec_f64 sign)
{
	__m512i flip = _mm512_slli_epi64(at, 59) ^ (__m512i)sign;

	return (vec_f64)_mm512_ternarylogic_epi64((__m512i)v, flip, _mm512_set1_epi64(INT64_MIN),
						  0x78);
}

static inline vec_f32 turn_sign_v32(vec_f32 v, __m512i at, vec_f32 sign)
{
	__m512i flip = _mm512_slli_epi32(at, 27) ^ (__m512i)sign;

	return (vec_f32)_mm512_ternarylogic_epi32((__m512i)v, flip, _mm512_set1_epi32(INT32_MIN),
						  0x78);
}

static inline vec_f64 size_v64(vec_f64 x)
{
	return (vec_f64)_mm512_abs_pd((__m512d)x);
}

static inline vec_f32 size_v32(vec_f32 x)
{
	return (vec_f32)_mm512_abs_ps((__m512)x);
}

/*
 * Lanes whose size is at least FAR, and NaN. Below, the integer next to 16 x / pi is off by at most 1 % of a turn, and
 * what the three parts of pi / 16 leave of x is below 2^-30 of the result.
 */
#define FAR_V64 0x1p30
#define FAR_V32 0x1p13f

static inline __mmask8 far_turn_v64(vec_f64 size)
{
	return _mm512_cmp_pd_mask((__m512d)size, _mm512_set1_pd(FAR_V64), _CMP_NLT_UQ);
}

static inline __mmask16 far_turn_v32(vec_f32 size)
{
	return _mm512_cmp_ps_mask((__m512)size, _mm512_set1_ps(FAR_V32), _CMP_NLT_UQ);
}

static inline vec_f64 mask_v64(__mmask8 m, vec_f64 a, vec_f64 b)
{
	return (vec_f64)_mm512_mask_mov_pd((__m512d)b, m, (__m512d)a);
}

static inline vec_f32 mask_v32(__mmask16 m, vec_f32 a, vec_f32 b)
{
	return (vec_f32)_mm512_mask_mov_ps((__m512)b, m, (__m512)a);
}

#define FAR_SLEEF(f)                                        \
	static inline vec_f64 sleef_##f##_v64(vec_f64 x)    \
	{                                                   \
		return (vec_f64)SLEEF_F64(f)((sleef_f64)x); \
	}                                                   \
	static inline vec_f32 sleef_##f##_v32(vec_f32 x)    \
	{                                                   \
		return (vec_f32)SLEEF_F32(f)((sleef_f32)x); \
	}
FAR_SLEEF(sin)
FAR_SLEEF(cos)
FAR_SLEEF(tan)

#define V	   vec_f64
#define M	   __mmask8
#define F(x)	   x##_v64
#define TURN_1	   0x1.921fb54442d18p-3
#define TURN_2	   0x1.1a62633145c07p-57
#define TURN_3	   -0x1.f1976b7ed8fbcp-113
#define PER_TURN   0x1.45f306dc9c883p2
#define ROUND_TURN 0x1.8p52
#include "kernels/cpu/simd/vec_quotient.h"
#include "kernels/cpu/simd/vec_trig_turns.h"
#undef V
#undef M
#undef F
#undef TURN_1
#undef TURN_2
#undef TURN_3
#undef PER_TURN
#undef ROUND_TURN

#define V	   vec_f32
#define M	   __mmask16
#define F(x)	   x##_v32
#define TURN_1	   0x1.921fb6p-3f
#define TURN_2	   -0x1.777a5cp-28f
#define TURN_3	   -0x1.ee59dap-53f
#define PER_TURN   0x1.45f306p2f
#define ROUND_TURN 0x1.8p23f
#include "kernels/cpu/simd/vec_quotient.h"
#include "kernels/cpu/simd/vec_trig_turns.h"
#undef V
#undef M
#undef F
#undef TURN_1
#undef TURN_2
#undef TURN_3
#undef PER_TURN
#undef ROUND_TURN
#elif defined(__AVX2__) && defined(__FMA__)
#include "kernels/cpu/simd/vec_trig_fma.h"
#else
VEC_SLEEF_1(sin)
VEC_SLEEF_1(cos)
VEC_SLEEF_1(tan)
#endif

#endif
