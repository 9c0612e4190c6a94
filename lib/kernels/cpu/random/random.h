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
#include "kernels/formula/random.h"

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

#endif
