/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A vector as wide as this compilation's registers, and SLEEF's functions on it (error below
 * 1 ulp). This is the one place that knows how wide that is.
 */
#ifndef TENSOR_VEC_H
#define TENSOR_VEC_H

#include <sleef.h>

#if defined(__AVX512F__)
#define VEC_BYTES 64
typedef __m512 sleef_f32;
typedef __m512d sleef_f64;
#define SLEEF_F32(f) Sleef_##f##f16_u10
#define SLEEF_F64(f) Sleef_##f##d8_u10
#elif defined(__AVX2__)
#define VEC_BYTES 32
typedef __m256 sleef_f32;
typedef __m256d sleef_f64;
#define SLEEF_F32(f) Sleef_##f##f8_u10
#define SLEEF_F64(f) Sleef_##f##d4_u10
#else
#define VEC_BYTES 16
typedef __m128 sleef_f32;
typedef __m128d sleef_f64;
#define SLEEF_F32(f) Sleef_##f##f4_u10
#define SLEEF_F64(f) Sleef_##f##d2_u10
#endif

typedef float vec_f32 __attribute__((vector_size(VEC_BYTES), aligned(4), may_alias));
typedef double vec_f64 __attribute__((vector_size(VEC_BYTES), aligned(8), may_alias));
#define VEC_F32 (VEC_BYTES / 4)
#define VEC_F64 (VEC_BYTES / 8)

#endif
