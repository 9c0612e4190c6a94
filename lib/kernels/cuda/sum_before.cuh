/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Prefix sums over the threads of a block of BLOCK. */
#ifndef TENSOR_CUDA_SUM_BEFORE_CUH
#define TENSOR_CUDA_SUM_BEFORE_CUH

#include "kernels/cuda/device.cuh"

/* The sum of the values of the threads before this one; *all is that of all. */
template <class T> static __device__ inline T sum_before(T v, T *all)
{
	__shared__ T s[BLOCK];
	const unsigned t = threadIdx.x;
	const T own = v;

	__syncthreads(); /* wait for the readers of the previous call */
	s[t] = v;
	__syncthreads();
	for (unsigned d = 1; d < BLOCK; d *= 2) {
		if (t >= d)
			v += s[t - d];
		__syncthreads();
		s[t] = v;
		__syncthreads();
	}
	*all = s[BLOCK - 1];
	return v - own;
}

#endif
