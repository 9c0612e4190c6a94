// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * nonzero, masked_select and masked_scatter: a block counts the true elements of each chunk of the
 * mask, one block sums the counts before each chunk, and each chunk's elements follow in order.
 */
#include "kernels/cuda/index/index.cuh"
#include "kernels/cuda/launch_mask.h"
#include "kernels/cuda/sum_before.cuh"

__global__ void __launch_bounds__(BLOCK)
	mask_count_kernel(const uint8_t *mask, int64_t n, int64_t *first)
{
	const int64_t from = (int64_t)blockIdx.x * CUDA_MASK_CHUNK;
	const int64_t to = from + CUDA_MASK_CHUNK < n ? from + CUDA_MASK_CHUNK : n;
	uint32_t count = 0, all;

	for (int64_t i = from + threadIdx.x; i < to; i += BLOCK)
		count += mask[i] != 0;
	sum_before(count, &all);
	if (threadIdx.x == 0)
		first[blockIdx.x] = all;
}

/* first[i] becomes the sum of those before, first[chunks] that of all. */
__global__ void __launch_bounds__(BLOCK) mask_sum_kernel(int64_t chunks, int64_t *first)
{
	int64_t total = 0, all;

	for (int64_t tile = 0; tile < chunks; tile += BLOCK) {
		const int64_t i = tile + threadIdx.x;
		const int64_t before = sum_before(i < chunks ? first[i] : (int64_t)0, &all);

		if (i < chunks)
			first[i] = total + before;
		total += all;
	}
	if (threadIdx.x == 0)
		first[chunks] = total;
}

/* Calls each(element, its rank among all true ones) for the true elements of a chunk. */
template <class F>
static __device__ inline void for_each_true(const uint8_t *mask, int64_t n, const int64_t *first,
					    F each)
{
	const int64_t from = (int64_t)blockIdx.x * CUDA_MASK_CHUNK;
	int64_t rank = first[blockIdx.x];

	for (int64_t tile = from; tile < from + CUDA_MASK_CHUNK && tile < n; tile += BLOCK) {
		const int64_t i = tile + threadIdx.x;
		const uint32_t here = i < n && mask[i] != 0;
		uint32_t all;
		const uint32_t before = sum_before(here, &all);

		if (here)
			each(i, rank + before);
		rank += all;
	}
}

/* Column d of the result is at d * total. */
struct nonzero_shape {
	int ndim;
	int64_t total, size[TENSOR_MAX_DIMS];
};

__global__ void __launch_bounds__(BLOCK)
	nonzero_kernel(const uint8_t *mask, int64_t n, const int64_t *first, nonzero_shape s,
		       int64_t *out)
{
	for_each_true(mask, n, first, [&](int64_t i, int64_t rank) {
		for (int d = s.ndim - 1; d >= 0; d--) {
			const int64_t rest = i / s.size[d];

			out[d * s.total + rank] = i - rest * s.size[d];
			i = rest;
		}
	});
}

template <class T>
__global__ void __launch_bounds__(BLOCK)
	masked_kernel(const uint8_t *mask, int64_t n, const int64_t *first, bool select, T *to,
		      const T *from)
{
	for_each_true(mask, n, first, [=](int64_t i, int64_t rank) {
		if (select)
			to[rank] = from[i];
		else
			to[i] = from[rank];
	});
}

/* ---- launches ---- */

static unsigned chunks_of(int64_t n)
{
	return (unsigned)((n + CUDA_MASK_CHUNK - 1) / CUDA_MASK_CHUNK);
}

int cuda_launch_mask_count(const uint8_t *mask, int64_t n, int64_t *first, cudaStream_t stream)
{
	const int err = launch(mask_count_kernel, chunks_of(n), BLOCK, stream, mask, n, first);

	return err ? err : launch(mask_sum_kernel, 1, BLOCK, stream, (int64_t)chunks_of(n), first);
}

int cuda_launch_nonzero(const uint8_t *mask, int64_t n, const int64_t *first, const int64_t *sizes,
			int ndim, int64_t total, int64_t *out, cudaStream_t stream)
{
	nonzero_shape s = { ndim, total, {} };

	for (int d = 0; d < ndim; d++)
		s.size[d] = sizes[d];
	return launch(nonzero_kernel, chunks_of(n), BLOCK, stream, mask, n, first, s, out);
}

int cuda_launch_masked(const uint8_t *mask, int64_t n, const int64_t *first, bool select, void *to,
		       const void *from, int itemsize, cudaStream_t stream)
{
	switch (itemsize) {
#define X(N, T)                                                                              \
	case N:                                                                              \
		return launch(masked_kernel<T>, chunks_of(n), BLOCK, stream, mask, n, first, \
			      select, (T *)to, (const T *)from);
		FOR_BITS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
