/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Reading and checking of index tensors (struct cuda_indices). */
#ifndef TENSOR_CUDA_INDEX_CUH
#define TENSOR_CUDA_INDEX_CUH

#include "kernels/cuda/half.cuh"
#include "kernels/cuda/report.cuh"

/*
 * struct cuda_dims for N operands, in 64 bits, as walk in device.cuh. The loop is not unrolled:
 * kernels that seek several positions stay small.
 */
template <int N> struct seeker {
	int ndim;
	uint64_t numel;
	uint64_t size[TENSOR_MAX_DIMS];
	int64_t stride[N][TENSOR_MAX_DIMS];

	explicit seeker(const cuda_dims &d) : ndim(d.ndim), numel((uint64_t)d.numel)
	{
		for (int k = 0; k < TENSOR_MAX_DIMS; k++) {
			size[k] = k < d.ndim ? (uint64_t)d.size[k] : 1;
			for (int n = 0; n < N; n++)
				stride[n][k] = k < d.ndim ? d.stride[n][k] : 0;
		}
	}

	/* Adds position i's offsets to off. */
	__device__ inline void seek(uint64_t i, int64_t *off) const
	{
		int k = 0;

#pragma unroll 1
		for (; k < ndim - 1; k++) {
			const uint64_t q = i / size[k];

#pragma unroll
			for (int n = 0; n < N; n++)
				off[n] += (int64_t)(i - q * size[k]) * stride[n][k];
			i = q;
		}
#pragma unroll
		for (int n = 0; n < N; n++)
			off[n] += (int64_t)i * stride[n][k];
	}
};

static __device__ inline int64_t read_index(const cuda_indices &x, const void *index, int64_t at)
{
	return x.wide ? ((const int64_t *)index)[at] : (int64_t)((const int32_t *)index)[at];
}

/* Adds the index's movement to *to. False: it is out of range. */
static __device__ inline bool add_index(const cuda_indices &x, int k, int64_t index, int64_t *to)
{
	if (x.wrap && index < 0)
		index += x.limit[k];
	if (index < 0 || index >= x.limit[k])
		return false;
	*to += index * x.step[k];
	return true;
}

/* Adds all indices at offset `at` to *to. False: one is out of range; reports it. */
static __device__ inline bool add_indices(const cuda_indices &x, const void *index, int64_t at,
					  uint64_t position, const cuda_report &bad, int64_t *to)
{
	for (int k = 0; k < x.n; k++) {
		const int64_t i = read_index(x, index, at + k * x.slab);

		if (add_index(x, k, i, to))
			continue;
		report_value(bad, CUDA_BAD_INDEX, position * (uint64_t)x.n + (uint64_t)k, i,
			     x.limit[k]);
		return false;
	}
	return true;
}

#endif
