/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Vectors of eight f32 at a level whose vectors have sixteen: a processor computes twice as many of them at once,
 * which is faster for rows of eight elements or less. VEC_HALF is defined where there are any.
 */
#ifndef TENSOR_VEC_HALF_H
#define TENSOR_VEC_HALF_H

#include "kernels/cpu/simd/vec.h"

#if defined(__AVX512VL__)
#define VEC_HALF 8

typedef float vec_f32_half __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t vec_s32_half __attribute__((vector_size(32)));

static inline vec_f32_half vec_load_f32_half(const float *p, vec_part part)
{
	return (vec_f32_half)_mm256_maskz_loadu_ps((__mmask8)part, p);
}

static inline void vec_store_f32_half(float *p, vec_part part, vec_f32_half v)
{
	_mm256_mask_storeu_ps(p, (__mmask8)part, (__m256)v);
}
#endif

#endif
