/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * asin and acos on vectors, asin_v32() and so on, with errors below 0.7 ulp, for processors with multiply-add instructions;
 * narrower vectors call SLEEF. Polynomials interpolate at Chebyshev nodes.
 */
#ifndef TENSOR_VEC_ASIN_H
#define TENSOR_VEC_ASIN_H

#include "kernels/cpu/simd/vec_fma.h"

#if defined(__AVX2__) && defined(__FMA__)
#define asin_select_v64	  vec_select_f64
#define asin_select_v32	  vec_select_f32
#define asin_splat_v64(v) ((vec_f64){ 0 } + (v))
#define asin_splat_v32(v) ((vec_f32){ 0 } + (v))

static inline vec_f64 asin_size_v64(vec_f64 x)
{
	return (vec_f64)((vec_m64)x & INT64_MAX);
}

static inline vec_f32 asin_size_v32(vec_f32 x)
{
	return (vec_f32)((vec_m32)x & INT32_MAX);
}

/* v with its sign changed where x is negative. */
static inline vec_f64 asin_sign_v64(vec_f64 v, vec_f64 x)
{
	return (vec_f64)((vec_m64)v ^ ((vec_m64)x & INT64_MIN));
}

static inline vec_f32 asin_sign_v32(vec_f32 v, vec_f32 x)
{
	return (vec_f32)((vec_m32)v ^ ((vec_m32)x & INT32_MIN));
}

/* (asin(s) / s - 1) / z of z = s^2 up to 1/4; errors of the results 2^-57 and 2^-28. */
static inline vec_f64 asin_polynomial_v64(vec_f64 z)
{
	vec_f64 square = z * z, even = fma_v64(square, asin_splat_v64(0.028757851367421566),
					       asin_splat_v64(0.017400879442694021));
	vec_f64 odd = fma_v64(square, asin_splat_v64(-0.014851887071247204),
			      asin_splat_v64(0.0054575067186403581));

	even = fma_v64(even, square, asin_splat_v64(0.010322814350185779));
	even = fma_v64(even, square, asin_splat_v64(0.013971212973552933));
	even = fma_v64(even, square, asin_splat_v64(0.022372172942149889));
	even = fma_v64(even, square, asin_splat_v64(0.044642857146355429));
	even = fma_v64(even, square, asin_splat_v64(0.16666666666666669));
	odd = fma_v64(odd, square, asin_splat_v64(0.011479177415184906));
	odd = fma_v64(odd, square, asin_splat_v64(0.017352392720869973));
	odd = fma_v64(odd, square, asin_splat_v64(0.030381944138531247));
	odd = fma_v64(odd, square, asin_splat_v64(0.074999999999984329));
	return fma_v64(odd, z, even);
}

static inline vec_f32 asin_polynomial_v32(vec_f32 z)
{
	vec_f32 p = fma_v32(z, asin_splat_v32(0.0336908475f), asin_splat_v32(0.0171492379f));

	p = fma_v32(p, z, asin_splat_v32(0.0311006624f));
	p = fma_v32(p, z, asin_splat_v32(0.0445994027f));
	p = fma_v32(p, z, asin_splat_v32(0.0750009418f));
	return fma_v32(p, z, asin_splat_v32(0.166666657f));
}

/* The root of v, which is 0 or at least 2^-54 (f32: 2^-25), and what it lacks in *error; NaN for negative v. */
#if defined(__AVX512F__)
/* As in vec_sqrt.h. */
static inline vec_f64 asin_root_v64(vec_f64 v, vec_f64 *error)
{
	__mmask8 some = _mm512_cmp_pd_mask((__m512d)v, _mm512_setzero_pd(), _CMP_NEQ_UQ);
	vec_f64 inverse = (vec_f64)_mm512_maskz_rsqrt14_pd(some, (__m512d)v), root = v * inverse;

	inverse *= 0.5;
	for (int i = 0; i < 2; i++) {
		vec_f64 rest = vec_fnma_f64(root, inverse, asin_splat_v64(0.5));

		root = vec_fma_f64(root, rest, root);
		inverse = vec_fma_f64(inverse, rest, inverse);
	}
	*error = vec_fnma_f64(root, root, v) * inverse;
	return root;
}

static inline vec_f32 asin_root_v32(vec_f32 v, vec_f32 *error)
{
	__mmask16 some = _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
	vec_f32 inverse = (vec_f32)_mm512_maskz_rsqrt14_ps(some, (__m512)v), root = v * inverse,
		rest;

	inverse *= 0.5f;
	rest = vec_fnma_f32(root, inverse, asin_splat_v32(0.5f));
	root = vec_fma_f32(root, rest, root);
	inverse = vec_fma_f32(inverse, rest, inverse);
	*error = vec_fnma_f32(root, root, v) * inverse;
	return root;
}
#else
/* The numbers added to the root make no difference to the error, and keep it 0 where the root is. */
static inline vec_f64 asin_root_v64(vec_f64 v, vec_f64 *error)
{
	vec_f64 root = (vec_f64)_mm256_sqrt_pd((__m256d)v);

	*error = vec_fnma_f64(root, root, v) * (0.5 / (root + 0x1p-60));
	return root;
}

static inline vec_f32 asin_root_v32(vec_f32 v, vec_f32 *error)
{
	vec_f32 root = (vec_f32)_mm256_sqrt_ps((__m256)v);

	*error = vec_fnma_f32(root, root, v) * (0.5f / (root + 0x1p-30f));
	return root;
}
#endif

#define V	    vec_f64
#define F(x)	    x##_v64
#define HALF_PI	    0x1.921fb54442d18p0
#define HALF_PI_LOW 0x1.1a62633145c07p-54
#include "kernels/cpu/simd/vec_asin_float.h"
#undef V
#undef F
#undef HALF_PI
#undef HALF_PI_LOW

#define V	    vec_f32
#define F(x)	    x##_v32
#define HALF_PI	    0x1.921fb6p0f
#define HALF_PI_LOW -0x1.777a5cp-25f
#include "kernels/cpu/simd/vec_asin_float.h"
#undef V
#undef F
#undef HALF_PI
#undef HALF_PI_LOW
#else
VEC_SLEEF_1(asin)
VEC_SLEEF_1(acos)
#endif

#endif
