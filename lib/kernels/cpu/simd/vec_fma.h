/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* a b + c and c - a b on vectors, rounded once; for processors with multiply-add instructions. */
#ifndef TENSOR_VEC_FMA_H
#define TENSOR_VEC_FMA_H

#include "kernels/cpu/simd/vecloop.h"

#if defined(__AVX512F__)
static inline vec_f32 vec_fma_f32(vec_f32 a, vec_f32 b, vec_f32 c)
{
	return (vec_f32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

static inline vec_f32 vec_fnma_f32(vec_f32 a, vec_f32 b, vec_f32 c)
{
	return (vec_f32)_mm512_fnmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

static inline vec_f64 vec_fma_f64(vec_f64 a, vec_f64 b, vec_f64 c)
{
	return (vec_f64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}

static inline vec_f64 vec_fnma_f64(vec_f64 a, vec_f64 b, vec_f64 c)
{
	return (vec_f64)_mm512_fnmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#elif defined(__AVX2__) && defined(__FMA__)
static inline vec_f32 vec_fma_f32(vec_f32 a, vec_f32 b, vec_f32 c)
{
	return (vec_f32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

static inline vec_f32 vec_fnma_f32(vec_f32 a, vec_f32 b, vec_f32 c)
{
	return (vec_f32)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

static inline vec_f64 vec_fma_f64(vec_f64 a, vec_f64 b, vec_f64 c)
{
	return (vec_f64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}

static inline vec_f64 vec_fnma_f64(vec_f64 a, vec_f64 b, vec_f64 c)
{
	return (vec_f64)_mm256_fnmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#endif

/* By the suffixes of trigonometric functions. */
#define fma_v64	 vec_fma_f64
#define fma_v32	 vec_fma_f32
#define fnma_v64 vec_fnma_f64
#define fnma_v32 vec_fnma_f32

#endif
