/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Groups of DISTINCT_GROUP indices of which no two are the same: elements at them can be read, changed and written
 * together. DISTINCT_GROUP is defined where there is an instruction that compares them all.
 */
#ifndef TENSOR_VEC_DISTINCT_H
#define TENSOR_VEC_DISTINCT_H

#include "kernels/cpu/simd/vec.h"

#include <stdbool.h>

#if defined(__AVX512CD__)
#define DISTINCT_GROUP 16

/* Reads the indices of a group once, to at[]; false if one is not below limit. */
static inline bool vec_read_indices(int64_t *at, const void *from, int64_t limit)
{
	const __m512i *p = from;
	__m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 1);
	__m512i most = _mm512_set1_epi64(limit);

	/* The compiler must not read them again. */
	__asm__("" : "+v"(a), "+v"(b));
	_mm512_storeu_si512(at, a);
	_mm512_storeu_si512(at + 8, b);
	return (_mm512_cmplt_epu64_mask(a, most) & _mm512_cmplt_epu64_mask(b, most)) == 0xff;
}

/* False if two of the indices are the same; it may be false for indices that are 2^32 apart, too. */
static inline bool vec_distinct(const int64_t *at)
{
	__m512i low = _mm512_castsi256_si512(_mm512_cvtepi64_epi32(_mm512_loadu_si512(at)));
	__m512i all = _mm512_inserti64x4(low, _mm512_cvtepi64_epi32(_mm512_loadu_si512(at + 8)), 1);
	__m512i same = _mm512_conflict_epi32(all);

	return !_mm512_test_epi32_mask(same, same);
}
#endif

#endif
