// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * dropout and bernoulli, with the CPU's numbers (base/philox.h). A thread computes a block of four
 * words: numbers b, 16 + b, 32 + b and 48 + b of its group of 64, so that adjacent threads have
 * adjacent elements.
 */
#include "kernels/cuda/random/philox.cuh"

enum { BLOCKS = PHILOX_GROUP, GROUP = 64 }; /* blocks and numbers of a group */

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
__global__ void dropout_kernel(cuda_random given, int64_t blocks, T *out, uint8_t *mask,
			       const T *in, typename number<T>::compute scale)
{
	typedef typename number<T>::compute C;
	const cuda_random r = replayed(given);

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

template <class T> __global__ void bernoulli_kernel(cuda_random given, int64_t blocks, T *out)
{
	typedef typename number<T>::compute C;
	const cuda_random r = replayed(given);

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
