/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Dot products of unsigned with signed bytes, exact in i32, on vectors of the level's width. Where
 * processors of this level may have an instruction for the whole, functions exist in a second form,
 * with the attribute DOT_FAST; dot_has_fast() tests for the instruction. Like vec.h, this file
 * depends on the width of vectors.
 */
#ifndef TENSOR_VEC_I8_H
#define TENSOR_VEC_I8_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512BW__)
#define DOT_BYTES 64
#define DOT_ROWS  4
typedef __m512i dot_bytes, dot_sums;

static inline dot_sums dot_zero(void)
{
	return _mm512_setzero_si512();
}

static inline dot_bytes dot_load(const void *p)
{
	return _mm512_loadu_si512(p);
}

/* n <= DOT_BYTES bytes, the others zero. */
static inline dot_bytes dot_load_part(const void *p, int64_t n)
{
	return _mm512_maskz_loadu_epi8(~0ull >> (64 - n), p);
}

static inline dot_sums dot_add(dot_sums sum, dot_bytes u, dot_bytes s)
{
	__m512i u0 = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(u));
	__m512i u1 = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(u, 1));
	__m512i s0 = _mm512_cvtepi8_epi16(_mm512_castsi512_si256(s));
	__m512i s1 = _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(s, 1));

	return _mm512_add_epi32(sum, _mm512_add_epi32(_mm512_madd_epi16(u0, s0),
						      _mm512_madd_epi16(u1, s1)));
}

#define DOT_FAST __attribute__((target("avx512vnni")))
static inline bool dot_has_fast(void)
{
	return __builtin_cpu_supports("avx512vnni");
}

DOT_FAST static inline dot_sums dot_add_fast(dot_sums sum, dot_bytes u, dot_bytes s)
{
	return _mm512_dpbusd_epi32(sum, u, s);
}

/* The totals of the lanes of four sums. */
static inline __m128i dot_total(dot_sums a, dot_sums b, dot_sums c, dot_sums d)
{
	__m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
	__m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
	__m512i all =
		_mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
	__m256i half =
		_mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));

	return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}
#elif defined(__AVX2__)
#define DOT_BYTES 32
#define DOT_ROWS  2
typedef __m256i dot_bytes, dot_sums;

static inline dot_sums dot_zero(void)
{
	return _mm256_setzero_si256();
}

static inline dot_bytes dot_load(const void *p)
{
	return _mm256_loadu_si256(p);
}

static inline dot_sums dot_add(dot_sums sum, dot_bytes u, dot_bytes s)
{
	__m256i u0 = _mm256_cvtepu8_epi16(_mm256_castsi256_si128(u));
	__m256i u1 = _mm256_cvtepu8_epi16(_mm256_extracti128_si256(u, 1));
	__m256i s0 = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(s));
	__m256i s1 = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(s, 1));

	return _mm256_add_epi32(sum, _mm256_add_epi32(_mm256_madd_epi16(u0, s0),
						      _mm256_madd_epi16(u1, s1)));
}

static inline __m128i dot_total(dot_sums a, dot_sums b, dot_sums c, dot_sums d)
{
	__m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));

	return _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}
#else
#define DOT_BYTES 16
#define DOT_ROWS  2
typedef __m128i dot_bytes, dot_sums;

static inline dot_sums dot_zero(void)
{
	return _mm_setzero_si128();
}

static inline dot_bytes dot_load(const void *p)
{
	return _mm_loadu_si128(p);
}

static inline dot_sums dot_add(dot_sums sum, dot_bytes u, dot_bytes s)
{
	__m128i u0 = _mm_cvtepu8_epi16(u), u1 = _mm_cvtepu8_epi16(_mm_srli_si128(u, 8));
	__m128i s0 = _mm_cvtepi8_epi16(s), s1 = _mm_cvtepi8_epi16(_mm_srli_si128(s, 8));

	return _mm_add_epi32(sum, _mm_add_epi32(_mm_madd_epi16(u0, s0), _mm_madd_epi16(u1, s1)));
}

static inline __m128i dot_total(dot_sums a, dot_sums b, dot_sums c, dot_sums d)
{
	return _mm_hadd_epi32(_mm_hadd_epi32(a, b), _mm_hadd_epi32(c, d));
}
#endif

#ifndef __AVX512BW__
static inline dot_bytes dot_load_part(const void *p, int64_t n)
{
	uint8_t part[DOT_BYTES] = { 0 };

	memcpy(part, p, n);
	return dot_load(part);
}
#endif

#endif
