/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A vector of f32 as two of f64 and back, for functions of f32 that are computed in f64. Like vec.h, this file depends on the width of
 * vectors.
 */
#ifndef TENSOR_VEC_HALVES_H
#define TENSOR_VEC_HALVES_H

#include "kernels/cpu/simd/vec.h"

static inline vec_f64 vec_low_f64(vec_f32 v)
{
#if defined(__AVX512F__)
	return (vec_f64)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v));
#elif defined(__AVX2__)
	return (vec_f64)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
#else
	return (vec_f64)_mm_cvtps_pd((__m128)v);
#endif
}

static inline vec_f64 vec_high_f64(vec_f32 v)
{
#if defined(__AVX512F__)
	return (vec_f64)_mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)v, 1)));
#elif defined(__AVX2__)
	return (vec_f64)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
#else
	return (vec_f64)_mm_cvtps_pd(_mm_movehl_ps((__m128)v, (__m128)v));
#endif
}

static inline vec_f32 vec_join_f32(vec_f64 low, vec_f64 high)
{
#if defined(__AVX512F__)
	__m256d a = _mm256_castps_pd(_mm512_cvtpd_ps((__m512d)low));

	return (vec_f32)_mm512_insertf64x4(_mm512_castpd256_pd512(a),
					   _mm256_castps_pd(_mm512_cvtpd_ps((__m512d)high)), 1);
#elif defined(__AVX2__)
	return (vec_f32)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high),
					_mm256_cvtpd_ps((__m256d)low));
#else
	return (vec_f32)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)low), _mm_cvtpd_ps((__m128d)high));
#endif
}

#endif
