/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Windows of struct cuda_windows in kernels. */
#ifndef TENSOR_CUDA_WINDOWS_CUH
#define TENSOR_CUDA_WINDOWS_CUH

#include "kernels/cuda/half.cuh"
#include "kernels/cuda/launch_spatial.h"

/* Divides position i of a plane of those sizes. */
static __device__ inline void place_of(uint32_t i, const int (&size)[3], int (&at)[3])
{
	const uint32_t line = i / (uint32_t)size[2];

	at[2] = (int)(i - line * (uint32_t)size[2]);
	at[0] = (int)(line / (uint32_t)size[1]);
	at[1] = (int)(line - (uint32_t)at[0] * (uint32_t)size[1]);
}

/* The element that tap k of output o reads along dimension d; outside of the image it is not below
 * the size as an unsigned number. */
static __device__ inline uint32_t read_by(const cuda_windows &w, int d, int o, int k)
{
	return (uint32_t)(o * w.stride[d] - w.padding[d] + k * w.dilation[d]);
}

/* Sets *o to the output that reads element i by tap k. False: there is none. */
static __device__ inline bool reader_of(const cuda_windows &w, int d, int i, int k, int *o)
{
	const int t = i + w.padding[d] - k * w.dilation[d];

	*o = w.stride[d] == 1 ? t : t / w.stride[d];
	return t >= 0 && *o < w.out[d] && *o * w.stride[d] == t;
}

#endif
