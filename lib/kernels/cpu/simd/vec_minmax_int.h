/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The lesser and the greater of integers in each lane. GCC unrolls short loops over arrays before it
 * could vectorize them, and compiles a comparison and a selection to several instructions. Like
 * vec.h, this file depends on the width of vectors.
 */
#ifndef TENSOR_VEC_MINMAX_INT_H
#define TENSOR_VEC_MINMAX_INT_H

#include "kernels/cpu/simd/vec.h"

#define VEC_INT(d, T) \
	typedef T vec_##d __attribute__((vector_size(VEC_BYTES), aligned(sizeof(T)), may_alias));
VEC_INT(u8, uint8_t)
VEC_INT(u16, uint16_t)
VEC_INT(i8, int8_t)
VEC_INT(i16, int16_t)
VEC_INT(i32, int32_t)
VEC_INT(i64, int64_t)
#undef VEC_INT

/* vec_min_d() and vec_max_d() by instructions named MIN and MAX on registers R. */
#define VEC_MINMAX_BY(d, R, MIN, MAX)                           \
	static inline vec_##d vec_min_##d(vec_##d x, vec_##d y) \
	{                                                       \
		return (vec_##d)MIN((R)x, (R)y);                \
	}                                                       \
	static inline vec_##d vec_max_##d(vec_##d x, vec_##d y) \
	{                                                       \
		return (vec_##d)MAX((R)x, (R)y);                \
	}
/* The same by comparisons. */
#define VEC_MINMAX_PICK(d)                                      \
	static inline vec_##d vec_min_##d(vec_##d x, vec_##d y) \
	{                                                       \
		return VEC_PICK(x < y, x, y);                   \
	}                                                       \
	static inline vec_##d vec_max_##d(vec_##d x, vec_##d y) \
	{                                                       \
		return VEC_PICK(x < y, y, x);                   \
	}

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define VEC_MINMAX(d, e) VEC_MINMAX_BY(d, __m512i, _mm512_min_##e, _mm512_max_##e)
VEC_MINMAX(u64, epu64)
VEC_MINMAX(i64, epi64)
#elif defined(__AVX2__)
#define VEC_MINMAX(d, e) VEC_MINMAX_BY(d, __m256i, _mm256_min_##e, _mm256_max_##e)
VEC_MINMAX_PICK(u64)
VEC_MINMAX_PICK(i64)
#else
#define VEC_MINMAX(d, e) VEC_MINMAX_BY(d, __m128i, _mm_min_##e, _mm_max_##e)
VEC_MINMAX_PICK(u64)
VEC_MINMAX_PICK(i64)
#endif
VEC_MINMAX(u8, epu8)
VEC_MINMAX(u16, epu16)
VEC_MINMAX(u32, epu32)
VEC_MINMAX(i8, epi8)
VEC_MINMAX(i16, epi16)
VEC_MINMAX(i32, epi32)
#undef VEC_MINMAX
#undef VEC_MINMAX_BY
#undef VEC_MINMAX_PICK

#endif
