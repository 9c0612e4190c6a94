/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Philox 4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3; SC 2011): ten rounds
 * map a counter of 128 bits and a key of 64 bits to 128 random bits.
 *
 * The lower half of the counter is the number of a block and the upper half a stream; the key is
 * the seed. Stream 0 has the random numbers; stream k replaces a number that was rejected k times
 * (random_below() in kernels/cpu/random/random_int.c).
 *
 * Blocks are used in groups of sixteen: word k of block b is number 16 * k + b of the 64 numbers of
 * the group, so vectors of up to sixteen words need no transposition. A number of 64 bits is two
 * words, the lower one first: 32 of them in a group.
 */
#ifndef TENSOR_PHILOX_H
#define TENSOR_PHILOX_H

#include <stdint.h>

#define PHILOX_M0 0xd2511f53u
#define PHILOX_M1 0xcd9e8d57u
#define PHILOX_W0 0x9e3779b9u
#define PHILOX_W1 0xbb67ae85u

#define PHILOX_BLOCKS 16 /* in a group */
#define PHILOX_WORDS  (4 * PHILOX_BLOCKS)

static inline void philox_block(uint32_t out[4], uint64_t key, uint64_t block, uint64_t stream)
{
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32);
	uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);

	for (int i = 0; i < 10; i++) {
		uint64_t p0 = (uint64_t)PHILOX_M0 * c0, p1 = (uint64_t)PHILOX_M1 * c2;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += PHILOX_W0;
		k1 += PHILOX_W1;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

#endif
