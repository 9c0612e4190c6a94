/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Sums of f16 and bf16 at indices: rows, and groups of elements that meet no element of the same group, are
 * converted and rounded together. Included by put.c only.
 */
#ifndef TENSOR_PUT_DISTINCT_H
#define TENSOR_PUT_DISTINCT_H

#include "kernels/cpu/simd/vec_distinct.h"
#include "kernels/cpu/simd/vec_reduced_float.h"

/* A contiguous row of `to` becomes its sum with alpha times `from`; f16 if half, bf16 otherwise. */
static inline __attribute__((always_inline)) void put_add_row(uint16_t *to, const uint16_t *from,
							      int64_t n, float alpha, bool half)
{
	for (int64_t i = 0; i < n; i += VEC_F32) {
		int64_t m = n - i < VEC_F32 ? n - i : VEC_F32;
		vec_f32 y = vec_get_reduced(to + i, m, half);

		y += alpha * vec_get_reduced(from + i, m, half);
		vec_put_reduced(to + i, y, m, half);
	}
}

#ifdef DISTINCT_GROUP
_Static_assert(DISTINCT_GROUP == VEC_F32, "a group is a vector");

#define DISTINCT_LEAST 400 /* positions from which a group seldom has the same one twice */

/* Elements at[k] of o become their sums with alpha times elements k of s. */
static inline __attribute__((always_inline)) void
put_group(uint16_t *o, const int64_t *at, const uint16_t *s, float alpha, bool half)
{
	vec_reduced_float v = { 0 };
	vec_f32 y;

	/* Loads of at[] take less time than extracting them from vectors, or than keeping them all in registers. */
	__asm__ volatile("" : "+r"(at) : : "memory");
#pragma GCC unroll 16
	for (int k = 0; k < DISTINCT_GROUP; k++)
		v[k] = o[at[k]];
	y = half ? vec_from_f16(v) : vec_from_bf16(v);
	y += alpha * vec_get_reduced(s, VEC_F32, half);
	v = half ? vec_to_f16(y) : vec_to_bf16(y);
	__asm__ volatile("" : "+r"(at) : : "memory");
#pragma GCC unroll 16
	for (int k = 0; k < DISTINCT_GROUP; k++)
		o[at[k]] = v[k];
}

static inline void put_one(uint16_t *to, uint16_t from, float alpha, bool half)
{
	if (half)
		*to = f32_to_f16(f16_to_f32(*to) + alpha * f16_to_f32(from));
	else
		*to = f32_to_bf16(bf16_to_f32(*to) + alpha * bf16_to_f32(from));
}

/*
 * Adds elements of a row at contiguous indices: all n, or fewer if many elements of a group meet. Returns their
 * number, or -1 at an index that is not below limit.
 */
static inline __attribute__((always_inline)) int64_t
put_distinct_row(uint16_t *o, const int64_t *index, const uint16_t *s, int64_t n, int64_t limit,
		 float alpha, bool half)
{
	int64_t at[DISTINCT_GROUP], i = 0, repeated = 0;

	for (; i + DISTINCT_GROUP <= n && 4 * DISTINCT_GROUP * repeated <= i + 1024;
	     i += DISTINCT_GROUP) {
		if (unlikely(!vec_read_indices(at, index + i, limit)))
			return -1;
		if (likely(vec_distinct(at))) {
			put_group(o, at, s + i, alpha, half);
			continue;
		}
		for (int k = 0; k < DISTINCT_GROUP; k++)
			put_one(&o[at[k]], s[i + k], alpha, half);
		repeated++;
	}
	return i;
}

/* The same for elements that are f16 if half, bf16 otherwise. */
static __attribute__((noinline)) int64_t put_distinct(uint16_t *o, const int64_t *index,
						      const uint16_t *s, int64_t n, int64_t limit,
						      float alpha, bool half)
{
	if (half)
		return put_distinct_row(o, index, s, n, limit, alpha, true);
	if (alpha == 1)
		return put_distinct_row(o, index, s, n, limit, 1, false);
	return put_distinct_row(o, index, s, n, limit, alpha, false);
}
#endif

#endif
