/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The CPU's random words (base/philox.h) in kernels. */
#ifndef TENSOR_CUDA_PHILOX_CUH
#define TENSOR_CUDA_PHILOX_CUH

#include "kernels/cuda/half.cuh"
#include "kernels/cuda/launch_random.h"

/* As philox_block() in base/philox.h. */
static __device__ inline void philox(uint32_t (&out)[4], uint64_t key, uint64_t block,
				     uint64_t stream = 0)
{
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = (uint32_t)stream,
		 c3 = (uint32_t)(stream >> 32);

#pragma unroll
	for (int i = 0; i < 10; i++) {
		const uint64_t p0 = (uint64_t)0xd2511f53u * c0, p1 = (uint64_t)0xcd9e8d57u * c2;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

enum { PHILOX_GROUP = 16 }; /* blocks of a group */

/* The arguments with the seed and offset of a replay of a graph. */
template <class A> static __device__ inline A replayed(A a)
{
	if (a.at) {
		a.seed = a.at[0];
		a.offset += a.at[1];
	}
	return a;
}

#endif
