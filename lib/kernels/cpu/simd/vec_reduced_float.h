/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Vectors of f16 and bf16: conversions to vectors of f32, and back with one rounding to nearest.
 * Like vec.h, this file depends on the width of vectors.
 */
#ifndef TENSOR_VEC_REDUCED_FLOAT_H
#define TENSOR_VEC_REDUCED_FLOAT_H

#include "kernels/cpu/simd/vec.h"

#include "base/reduced_float.h"

#include <stdbool.h>
#include <string.h>

typedef uint16_t vec_reduced_float
	__attribute__((vector_size(VEC_BYTES / 2), aligned(2), may_alias));

/* The first n elements, the others zero; does not read beyond them. */
static inline vec_reduced_float vec_load_reduced_float(const uint16_t *p, int64_t n)
{
#if defined(__AVX512BW__) && defined(__AVX512VL__)
	return (vec_reduced_float)_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p);
#else
	vec_reduced_float v = { 0 };

	memcpy(&v, p, n * sizeof(*p));
	return v;
#endif
}

static inline void vec_store_reduced_float(uint16_t *p, vec_reduced_float v, int64_t n)
{
#if defined(__AVX512BW__) && defined(__AVX512VL__)
	_mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), (__m256i)v);
#else
	memcpy(p, &v, n * sizeof(*p));
#endif
}

/* By intrinsic: GCC 12 splits __builtin_convertvector() to 256 and 512 bits into two conversions. */
static inline vec_u32 vec_widen_u16(vec_reduced_float v)
{
#if defined(__AVX512F__)
	return (vec_u32)_mm512_cvtepu16_epi32((__m256i)v);
#elif defined(__AVX2__)
	return (vec_u32)_mm256_cvtepu16_epi32((__m128i)v);
#else
	return __builtin_convertvector(v, vec_u32);
#endif
}

/* The upper 16 bits of each lane. */
static inline vec_reduced_float vec_upper_u16(vec_u32 v)
{
#if defined(__AVX512F__)
	return (vec_reduced_float)_mm512_cvtepi32_epi16((__m512i)(v >> 16));
#elif defined(__AVX2__)
	__m256i high = _mm256_srli_epi32((__m256i)v, 16);

	return (vec_reduced_float)_mm_packus_epi32(_mm256_castsi256_si128(high),
						   _mm256_extracti128_si256(high, 1));
#else
	return __builtin_convertvector(v >> 16, vec_reduced_float);
#endif
}

static inline vec_f32 vec_from_bf16(vec_reduced_float v)
{
	return (vec_f32)(vec_widen_u16(v) << 16);
}

static inline vec_f32 vec_from_f16(vec_reduced_float v)
{
#if defined(__AVX512F__)
	return (vec_f32)_mm512_cvtph_ps((__m256i)v);
#elif defined(__F16C__)
	return (vec_f32)_mm256_cvtph_ps((__m128i)v);
#else
	vec_f32 r;

	for (int i = 0; i < VEC_F32; i++)
		r[i] = f16_to_f32(v[i]);
	return r;
#endif
}

/* Lanes whose upper 16 bits are f32_to_bf16() of those of v. */
static inline vec_u32 vec_round_bf16(vec_f32 v)
{
	vec_u32 u = (vec_u32)v;
#if defined(__AVX512F__)
	__mmask16 nan = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q);
	__mmask16 odd = _mm512_test_epi32_mask((__m512i)u, _mm512_set1_epi32(0x10000));
	__m512i rounded = (__m512i)(u + 0x7fff);

	rounded = _mm512_mask_sub_epi32(rounded, odd, rounded, _mm512_set1_epi32(-1));
	return (vec_u32)_mm512_mask_or_epi32(rounded, nan, (__m512i)u, _mm512_set1_epi32(0x400000));
#else
	vec_u32 rounded = u + 0x7fff + (u >> 16 & 1), nan = (vec_u32)(v != v);

	return ((u | 0x400000) & nan) | (rounded & ~nan);
#endif
}

/* f32_to_bf16() of each lane. */
static inline vec_reduced_float vec_to_bf16(vec_f32 v)
{
	return vec_upper_u16(vec_round_bf16(v));
}

/*
 * 2 * VEC_F32 adjacent bf16 as a vector of words: the elements with even numbers are the lower halves, those with odd
 * numbers the upper ones. No conversion moves bits between lanes.
 */
typedef uint32_t vec_bf16_words __attribute__((vector_size(VEC_BYTES), aligned(2), may_alias));

static inline vec_f32 vec_even_bf16(vec_bf16_words w)
{
	return (vec_f32)(w << 16);
}

static inline vec_f32 vec_odd_bf16(vec_bf16_words w)
{
	return (vec_f32)(w & 0xffff0000);
}

static inline vec_bf16_words vec_join_bf16(vec_f32 even, vec_f32 odd)
{
	vec_u32 low = vec_round_bf16(even) >> 16, high = vec_round_bf16(odd);
#if defined(__AVX512BW__)
	return (vec_bf16_words)_mm512_mask_blend_epi16(0xaaaaaaaa, (__m512i)low, (__m512i)high);
#else
	return (vec_bf16_words)(low | (high & 0xffff0000));
#endif
}

static inline vec_reduced_float vec_to_f16(vec_f32 v)
{
#if defined(__AVX512F__)
	return (vec_reduced_float)_mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__F16C__)
	return (vec_reduced_float)_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
#else
	vec_reduced_float r;

	for (int i = 0; i < VEC_F32; i++)
		r[i] = f32_to_f16(v[i]);
	return r;
#endif
}

/* The first n <= VEC_F32 elements at p, f16 if half, as f32; and back. Elements behind them are neither read nor written. */
static inline __attribute__((always_inline)) vec_f32 vec_get_reduced(const uint16_t *p, int64_t n,
								     bool half)
{
	vec_reduced_float v = n == VEC_F32 ? *(const vec_reduced_float *)p :
					     vec_load_reduced_float(p, n);

	return half ? vec_from_f16(v) : vec_from_bf16(v);
}

static inline __attribute__((always_inline)) void vec_put_reduced(uint16_t *p, vec_f32 v, int64_t n,
								  bool half)
{
	vec_reduced_float r = half ? vec_to_f16(v) : vec_to_bf16(v);

	if (n == VEC_F32)
		*(vec_reduced_float *)p = r;
	else
		vec_store_reduced_float(p, r, n);
}

/*
 * Pairs of bf16, each in the lane of an f32, for the instruction that adds both products of two
 * pairs. VEC_PAIRS is defined where processors of this level may have it; cpu_pairs() tests for it.
 */
#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define VEC_PAIRS

/* Assembler, because GCC 12 spills each sum to memory if the intrinsic is used. */
static inline vec_f32 vec_add_pairs(vec_f32 sum, vec_f32 x, vec_f32 y)
{
	__asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
	return sum;
}

/* Rounds to nearest; subnormals become zero, as in vec_add_pairs(). */
static inline vec_reduced_float vec_round_pairs(vec_f32 v)
{
	vec_reduced_float r;

	__asm__("vcvtneps2bf16 %1, %0" : "=v"(r) : "v"(v));
	return r;
}

/* One pair in all lanes, copied as an integer: as a float it may be a signaling NaN. */
static inline vec_f32 vec_broadcast_pair(const float *p)
{
	int32_t bits;

	memcpy(&bits, p, sizeof(bits));
	return (vec_f32)_mm512_set1_epi32(bits);
}

/* n <= 2 * VEC_F32 elements, the others zero. */
static inline vec_f32 vec_load_pairs(const uint16_t *p, int64_t n)
{
	__mmask32 part = n < 32 ? (1u << n) - 1 : ~0u;

	return (vec_f32)_mm512_maskz_loadu_epi16(part, p);
}

/* Pairs of elements i and n + i of v, for i < n <= VEC_F32. */
static inline vec_f32 vec_pair_halves(vec_f32 v, int64_t n)
{
	__m512i pair = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	__m512i index = _mm512_or_si512(
		pair, _mm512_slli_epi32(_mm512_add_epi32(pair, _mm512_set1_epi32((int)n)), 16));

	return (vec_f32)_mm512_permutexvar_epi16(index, (__m512i)v);
}

/* Pairs of an element of `low`, in the lower bits, and one of `high`. */
static inline vec_f32 vec_make_pairs(vec_reduced_float low, vec_reduced_float high)
{
	return (vec_f32)(vec_widen_u16(high) << 16 | vec_widen_u16(low));
}
#endif

#endif
