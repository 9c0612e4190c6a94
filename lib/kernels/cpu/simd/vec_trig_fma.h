/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* sin, cos and tan on vectors of AVX2 with multiply-adds, included by vec_trig.h. */
#ifndef TENSOR_VEC_TRIG_FMA_H
#define TENSOR_VEC_TRIG_FMA_H

#include "kernels/cpu/simd/vec_fma.h"

#define splat_v64(v) ((vec_f64)_mm256_set1_pd(v))
#define splat_v32(v) ((vec_f32)_mm256_set1_ps(v))
#define select_v64   vec_select_f64
#define select_v32   vec_select_f32
#define sign_bit_v64 INT64_MIN
#define sign_bit_v32 INT32_MIN

/* (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 for z = r^2; errors of the results 2^-57 and 2^-60. */
static inline vec_f64 sine_v64(vec_f64 z)
{
	vec_f64 square = z * z, p;

	p = fma_v64(square, splat_v64(-7.5854864852359384e-13),
		    fma_v64(z, splat_v64(1.6058510875319195e-10),
			    splat_v64(-2.505210610025599e-08)));
	p = fma_v64(p, square,
		    fma_v64(z, splat_v64(2.7557319218954762e-06),
			    splat_v64(-0.00019841269841264567)));
	return fma_v64(p, square,
		       fma_v64(z, splat_v64(0.0083333333333333315),
			       splat_v64(-0.16666666666666666)));
}

static inline vec_f64 cosine_v64(vec_f64 z)
{
	vec_f64 square = z * z, p;

	p = fma_v64(z, splat_v64(-1.1380868171449914e-11), splat_v64(2.0876121534608454e-09));
	p = fma_v64(p, square,
		    fma_v64(z, splat_v64(-2.7557317151858866e-07),
			    splat_v64(2.480158729853226e-05)));
	return fma_v64(p, square,
		       fma_v64(z, splat_v64(-0.0013888888888887241),
			       splat_v64(0.041666666666666664)));
}

/* The same with errors of 2^-28 and 2^-30. */
static inline vec_f32 sine_v32(vec_f32 z)
{
	vec_f32 p = fma_v32(z, splat_v32(2.72437819e-06f), splat_v32(-0.00019840039f));

	p = fma_v32(p, z, splat_v32(0.00833333191f));
	return fma_v32(p, z, splat_v32(-0.166666672f));
}

static inline vec_f32 cosine_v32(vec_f32 z)
{
	vec_f32 p = fma_v32(z, splat_v32(2.4542871e-05f), splat_v32(-0.00138882792f));

	return fma_v32(p, z, splat_v32(0.0416666642f));
}

static inline vec_f64 size_v64(vec_f64 x)
{
	return (vec_f64)((vec_m64)x & INT64_MAX);
}

static inline vec_f32 size_v32(vec_f32 x)
{
	return (vec_f32)((vec_m32)x & INT32_MAX);
}

static inline bool some_v64(vec_m64 lanes)
{
	return _mm256_movemask_pd((__m256d)lanes);
}

static inline bool some_v32(vec_m32 lanes)
{
	return _mm256_movemask_ps((__m256)lanes);
}

/* a where the lowest bit of `at` is set, else b. */
static inline vec_f64 odd_turn_v64(vec_m64 at, vec_f64 a, vec_f64 b)
{
	return (vec_f64)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)(at << 63));
}

static inline vec_f32 odd_turn_v32(vec_m32 at, vec_f32 a, vec_f32 b)
{
	return (vec_f32)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)(at << 31));
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
#define I	   vec_m64
#define F(x)	   x##_v64
#define SIGN_SHIFT 62
#define TURN_1	   0x1.921fb54442d18p+0
#define TURN_2	   0x1.1a62633145c07p-54
#define TURN_3	   -0x1.f1976b7ed8fbcp-110
#define PER_TURN   0x1.45f306dc9c883p-1
#define ROUND_TURN 0x1.8p52
#define FAR	   0x1p30
#include "kernels/cpu/simd/vec_quotient.h"
#include "kernels/cpu/simd/vec_trig_quadrants.h"
#undef V
#undef I
#undef F
#undef SIGN_SHIFT
#undef TURN_1
#undef TURN_2
#undef TURN_3
#undef PER_TURN
#undef ROUND_TURN
#undef FAR

#define V	   vec_f32
#define I	   vec_m32
#define F(x)	   x##_v32
#define SIGN_SHIFT 30
#define TURN_1	   0x1.921fb6p+0f
#define TURN_2	   -0x1.777a5cp-25f
#define TURN_3	   -0x1.ee59dap-50f
#define PER_TURN   0x1.45f306p-1f
#define ROUND_TURN 0x1.8p23f
#define FAR	   0x1p13f
#include "kernels/cpu/simd/vec_quotient.h"
#include "kernels/cpu/simd/vec_trig_quadrants.h"
#undef V
#undef I
#undef F
#undef SIGN_SHIFT
#undef TURN_1
#undef TURN_2
#undef TURN_3
#undef PER_TURN
#undef ROUND_TURN
#undef FAR

#endif
