/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Dot products of four unsigned with four signed bytes in each lane of 32 bits, exact, on vectors of the level's width. Where
 * processors of this level may have an instruction for it, functions exist in a second form, with the attribute DOT_FAST;
 * dot_has_fast() tests for the instruction. Like vec.h, this file depends on the width of vectors.
 */
#ifndef TENSOR_VEC_I8_H
#define TENSOR_VEC_I8_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512BW__)
#define DOT_BYTES 64
#define DOT_ROWS \
	6 /* rows of a tile, and at most so many vectors of columns: the registers hold their sums */
#define DOT_WIDTH 4
#elif defined(__AVX2__)
#define DOT_BYTES 32
#define DOT_ROWS  4
#define DOT_WIDTH 2
#else
#define DOT_BYTES 16
#define DOT_ROWS  4
#define DOT_WIDTH 2
#endif
#define DOT_LANES (DOT_BYTES / 4)

typedef int32_t dot_vec __attribute__((vector_size(DOT_BYTES), aligned(1), may_alias));
typedef uint32_t dot_bits __attribute__((vector_size(DOT_BYTES), aligned(1), may_alias));
typedef int16_t dot_halves __attribute__((vector_size(DOT_BYTES), aligned(1), may_alias));
typedef uint16_t dot_unsigned_halves __attribute__((vector_size(DOT_BYTES), aligned(1), may_alias));

/* The four bytes at p in each lane. */
static inline dot_vec dot_spread(const uint8_t *p)
{
	int32_t four;

	memcpy(&four, p, sizeof(four));
	return (dot_vec){ 0 } + four;
}

/* The sums of the products of adjacent numbers of 16 bits. */
static inline dot_vec dot_pairs(dot_halves a, dot_halves b)
{
#if DOT_BYTES == 64
	return (dot_vec)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif DOT_BYTES == 32
	return (dot_vec)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#else
	return (dot_vec)_mm_madd_epi16((__m128i)a, (__m128i)b);
#endif
}

/* sum + the products of the bytes of u and s: those of even bytes, then those of odd ones. */
static inline dot_vec dot_add(dot_vec sum, dot_vec u, dot_vec s)
{
	dot_unsigned_halves x = (dot_unsigned_halves)u;
	dot_halves w = (dot_halves)s;
	dot_vec even = dot_pairs((dot_halves)(x & 255),
				 (dot_halves)((dot_halves)((dot_unsigned_halves)w << 8) >> 8));
	dot_vec odd = dot_pairs((dot_halves)(x >> 8), w >> 8);

	return (dot_vec)((dot_bits)sum + (dot_bits)even + (dot_bits)odd);
}

#if DOT_BYTES == 64
#define DOT_FAST __attribute__((target("avx512vnni")))
static inline bool dot_has_fast(void)
{
	return __builtin_cpu_supports("avx512vnni");
}

DOT_FAST static inline dot_vec dot_add_fast(dot_vec sum, dot_vec u, dot_vec s)
{
	return (dot_vec)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)u, (__m512i)s);
}
#endif

/* The bytes, or pairs of them, of the lower and the upper half of each 16 bytes of a and b, alternately. */
#if DOT_BYTES == 64
#define DOT_MERGE(name, op)                                          \
	static inline dot_vec name(dot_vec a, dot_vec b)             \
	{                                                            \
		return (dot_vec)_mm512_##op((__m512i)a, (__m512i)b); \
	}
#elif DOT_BYTES == 32
#define DOT_MERGE(name, op)                                          \
	static inline dot_vec name(dot_vec a, dot_vec b)             \
	{                                                            \
		return (dot_vec)_mm256_##op((__m256i)a, (__m256i)b); \
	}
#else
#define DOT_MERGE(name, op)                                       \
	static inline dot_vec name(dot_vec a, dot_vec b)          \
	{                                                         \
		return (dot_vec)_mm_##op((__m128i)a, (__m128i)b); \
	}
#endif
DOT_MERGE(dot_low_bytes, unpacklo_epi8)
DOT_MERGE(dot_high_bytes, unpackhi_epi8)
DOT_MERGE(dot_low_pairs, unpacklo_epi16)
DOT_MERGE(dot_high_pairs, unpackhi_epi16)

#endif
