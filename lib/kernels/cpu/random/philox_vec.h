/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* philox_group() computes a group of Philox blocks in vectors; base/philox.h defines a group. */
#ifndef TENSOR_PHILOX_VEC_H
#define TENSOR_PHILOX_VEC_H

#include "base/philox.h"
#include "kernels/cpu/simd/vec.h"

#define PHILOX_LANES ((int)(VEC_BYTES / 8)) /* blocks in a vector: 64-bit lanes with a word each */

/* The lower halves of the lanes of two vectors. */
static inline vec_u32 philox_pack(vec_u64 a, vec_u64 b)
{
	vec_u32 even;

	for (int i = 0; i < 2 * PHILOX_LANES; i++)
		even[i] = 2 * i;
	return __builtin_shuffle((vec_u32)a, (vec_u32)b, even);
}

/* r[k * PHILOX_BLOCKS + b] = word k of block `block` + b */
static inline void philox_group(uint32_t *r, uint64_t key, uint64_t block)
{
	const vec_u64 m0 = (vec_u64){} + PHILOX_M0, m1 = (vec_u64){} + PHILOX_M1;
	vec_u64 lane;

	for (int i = 0; i < PHILOX_LANES; i++)
		lane[i] = i;
	for (int b = 0; b < PHILOX_BLOCKS; b += 2 * PHILOX_LANES) {
		vec_u64 c0 = lane + (block + b), d0 = c0 + PHILOX_LANES;
		vec_u64 c1 = c0 >> 32, d1 = d0 >> 32;
		vec_u64 c2 = {}, c3 = {}, d2 = {}, d3 = {};
		uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

		for (int i = 0; i < 10; i++) {
			vec_u64 p0 = vec_mul_halves(c0, m0), p1 = vec_mul_halves(c2, m1);
			vec_u64 q0 = vec_mul_halves(d0, m0), q1 = vec_mul_halves(d2, m1);

			c0 = (p1 >> 32) ^ c1 ^ k0;
			d0 = (q1 >> 32) ^ d1 ^ k0;
			c2 = (p0 >> 32) ^ c3 ^ k1;
			d2 = (q0 >> 32) ^ d3 ^ k1;
			c1 = p1;
			d1 = q1;
			c3 = p0;
			d3 = q0;
			k0 += PHILOX_W0;
			k1 += PHILOX_W1;
		}
		*(vec_u32 *)(r + b) = philox_pack(c0, d0);
		*(vec_u32 *)(r + b + PHILOX_BLOCKS) = philox_pack(c1, d1);
		*(vec_u32 *)(r + b + 2 * PHILOX_BLOCKS) = philox_pack(c2, d2);
		*(vec_u32 *)(r + b + 3 * PHILOX_BLOCKS) = philox_pack(c3, d3);
	}
}

#endif
