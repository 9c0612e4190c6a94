/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Stores the lower and the upper half of a vector to two addresses. Like vec.h, this file depends
 * on the width of vectors. */
#ifndef TENSOR_VEC_SPLIT_H
#define TENSOR_VEC_SPLIT_H

#include "kernels/cpu/simd/vec.h"

static inline void vec_store_halves_f32(float *low, float *high, vec_f32 v)
{
#if defined(__AVX512F__)
	_mm256_storeu_ps(low, _mm512_castps512_ps256((__m512)v));
	_mm256_storeu_pd((double *)high, _mm512_extractf64x4_pd((__m512d)v, 1));
#elif defined(__AVX2__)
	_mm_storeu_ps(low, _mm256_castps256_ps128((__m256)v));
	_mm_storeu_ps(high, _mm256_extractf128_ps((__m256)v, 1));
#else
	_mm_storel_pi((__m64 *)low, (__m128)v);
	_mm_storeh_pi((__m64 *)high, (__m128)v);
#endif
}

#endif
