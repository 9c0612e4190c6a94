// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * dropout and bernoulli, with the CPU's numbers (base/philox.h). A thread computes a block of four
 * words: numbers b, 16 + b, 32 + b and 48 + b of its group of 64, so that adjacent threads have
 * adjacent elements.
 */
#include "kernels/cuda/launch_nn.h"
#include "kernels/cuda/half.cuh"

/* As philox_block() in base/philox.h, with stream 0. */
static __device__ inline void philox(uint32_t (&out)[4], uint64_t key, uint64_t block)
{
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = 0, c3 = 0;

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

enum { BLOCKS = 16, GROUP = 64 }; /* blocks and numbers of a group */

/* Element k of this thread's four, of block i of all. */
static __device__ inline int64_t element_of(int64_t i, int k)
{
	return i / BLOCKS * GROUP + k * BLOCKS + i % BLOCKS;
}

static __device__ inline bool is_true(const cuda_random &r, uint32_t word)
{
	return word <= r.last && !r.never;
}

/* A dropped element is multiplied by zero, so that NaN stays NaN. */
template <class T>
__global__ void dropout_kernel(cuda_random r, int64_t blocks, T *out, uint8_t *mask, const T *in,
			       typename number<T>::compute scale)
{
	typedef typename number<T>::compute C;

	for (int64_t i = first_element<int64_t>(); i < blocks; i += element_step<int64_t>()) {
		uint32_t words[4];
		T x[4];

#pragma unroll
		for (int k = 0; k < 4; k++)
			if (element_of(i, k) < r.n)
				x[k] = in[element_of(i, k)];
		philox(words, r.seed, r.offset + (uint64_t)i);
#pragma unroll
		for (int k = 0; k < 4; k++) {
			const int64_t at = element_of(i, k);
			const bool kept = is_true(r, words[k]);

			if (at >= r.n)
				continue;
			mask[at] = kept;
			out[at] = number<T>::store(number<T>::load(x[k]) * (C)kept * scale);
		}
	}
}

template <class T> __global__ void bernoulli_kernel(cuda_random r, int64_t blocks, T *out)
{
	typedef typename number<T>::compute C;

	for (int64_t i = first_element<int64_t>(); i < blocks; i += element_step<int64_t>()) {
		uint32_t words[4];

		philox(words, r.seed, r.offset + (uint64_t)i);
#pragma unroll
		for (int k = 0; k < 4; k++)
			if (element_of(i, k) < r.n)
				out[element_of(i, k)] = number<T>::store((C)is_true(r, words[k]));
	}
}

static int64_t blocks_of(const cuda_random *r)
{
	return (r->n + GROUP - 1) / GROUP * BLOCKS;
}

int cuda_launch_dropout(const cuda_random *r, void *out, uint8_t *mask, const void *in,
			double scale, int dtype, cudaStream_t stream)
{
	const int64_t blocks = blocks_of(r);

	switch (dtype) {
#define X(D, T)                                                                              \
	case D:                                                                              \
		return launch(dropout_kernel<T>, grid_for(blocks, BLOCK), BLOCK, stream, *r, \
			      blocks, (T *)out, mask, (const T *)in,                         \
			      (typename number<T>::compute)scale);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_bernoulli(const cuda_random *r, void *out, int dtype, cudaStream_t stream)
{
	const int64_t blocks = blocks_of(r);

	switch (dtype) {
#define X(D, T)                                                                                \
	case D:                                                                                \
		return launch(bernoulli_kernel<T>, grid_for(blocks, BLOCK), BLOCK, stream, *r, \
			      blocks, (T *)out);
		X(TENSOR_BOOL, uint8_t)
		FOR_NUMBERS(X)
		FOR_REDUCED_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
