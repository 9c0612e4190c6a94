/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Filling memory with random numbers, one Philox group at a time. A number depends on the seed, the
 * offset and its index only, and chunks of parallel work are whole groups: the result does not
 * depend on the number of threads.
 */
#ifndef TENSOR_CPU_RANDOM_H
#define TENSOR_CPU_RANDOM_H

#include "iter/parallel.h"
#include "kernels/abi/random.h"
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/random/philox_vec.h"

#include "base/reduced_float.h"

#define RANDOM_GRAIN 512		/* groups in a chunk of parallel work */
#define NARROW	     PHILOX_WORDS	/* elements of a group that take 32 random bits each */
#define WIDE	     (PHILOX_WORDS / 2) /* elements of a group that take 64 */

struct random_fill {
	const struct random_params *p;
	char *out;
	int64_t n;
};

/*
 * Fills n elements by groups(), which fills the groups begin to end of a struct random_fill; see
 * random_groups.h. A group has `count` elements.
 */
static inline void random_fill(void *out, int64_t n, int count, parallel_fn groups,
			       const struct random_params *p)
{
	struct random_fill f = { p, out, n };

	parallel_for(0, (n + count - 1) / count, RANDOM_GRAIN, groups, &f);
}

/*
 * The 64-bit number i of a group has its low half in word wide_word(i) and its high half
 * PHILOX_BLOCKS words later.
 */
static inline int wide_word(int i)
{
	return i / PHILOX_BLOCKS * 2 * PHILOX_BLOCKS + i % PHILOX_BLOCKS;
}

static inline uint64_t wide_number(const uint32_t *words, int i)
{
	int w = wide_word(i);

	return words[w] | (uint64_t)words[w + PHILOX_BLOCKS] << 32;
}

/* A number in [0, 1), a multiple of 2^-53, from 64 random bits. */
static inline double unit_f64(uint32_t lo, uint32_t hi)
{
	return ((int32_t)(hi >> 5) * 0x1p26 + (int32_t)(lo >> 6)) * 0x1p-53;
}

/*
 * The natural logarithm of 2^-53 <= x <= 1. log(1 + f) = 2 atanh(f / (2 + f)) as a series. The
 * operations are the same at every instruction-set level, so the results have the same bits.
 */
static inline float log_unit_f32(float x)
{
	int32_t bits = (int32_t)f32_to_bits(x), e = (bits - 0x3f3504f3) >> 23;
	float f = bits_to_f32((uint32_t)(bits - (e << 23))) - 1;
	float s = f / (2 + f), z = s * s;
	float tail = z * (2.0f / 3 + z * (2.0f / 5 + z * (2.0f / 7 + z * (2.0f / 9))));

	return (float)e * 0.693147180559945309f + (2 * s + s * tail);
}

static inline double log_unit_f64(double x)
{
	union {
		double d;
		uint64_t u;
	} b = { x };
	/*
	 * The exponent becomes a double by its bits: v2 and v3 cannot convert vectors of int64_t.
	 */
	uint64_t up = b.u + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
	union {
		uint64_t u;
		double d;
	} m = { (up & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd },
	  e = { (up >> 52) | 0x4330000000000000 };
	double f = m.d - 1, s = f / (2 + f), z = s * s, tail = 0;

	for (int k = 23; k >= 3; k -= 2)
		tail = z * (2.0 / k + tail);
	return (e.d - (0x1p52 + 1023)) * 0.693147180559945309417 + (2 * s + s * tail);
}

#endif
