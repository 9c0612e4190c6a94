/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Elements of bf16 and f16 in kernels: number<T> has the type that elements of type T are computed
 * in, and the conversions from and to it. They round as those of base/reduced_float.h.
 */
#ifndef TENSOR_CUDA_HALF_CUH
#define TENSOR_CUDA_HALF_CUH

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/types.cuh"

template <class T> struct number {
	typedef T compute;

	static __device__ inline T load(T x)
	{
		return x;
	}
	static __device__ inline T store(T x)
	{
		return x;
	}
};

template <class T> struct reduced_number {
	typedef float compute;

	static __device__ inline float load(T x)
	{
		return x;
	}
	static __device__ inline T store(float x)
	{
		return T(x);
	}
};

template <> struct number<f16> : reduced_number<f16> {
};
template <> struct number<bf16> : reduced_number<bf16> {
};

#define FOR_REDUCED_FLOATS(X) \
	X(TENSOR_F16, f16)    \
	X(TENSOR_BF16, bf16)
#define FOR_ALL_FLOATS(X) FOR_FLOATS(X) FOR_REDUCED_FLOATS(X)

#endif
