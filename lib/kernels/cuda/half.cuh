/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Elements of bf16 and f16 in kernels: number<T> has the type that elements of type T are computed
 * in, and the conversions from and to it. They round as those of base/reduced_float.h.
 */
#ifndef TENSOR_CUDA_HALF_CUH
#define TENSOR_CUDA_HALF_CUH

#include "kernels/cuda/device.cuh"

#ifdef TENSOR_CUDA_EMULATED
#include "base/reduced_float.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

struct bf16 {
	uint16_t bits;
};

struct f16 {
	uint16_t bits;
};

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

template <> struct number<bf16> {
	typedef float compute;

	static __device__ inline float load(bf16 x)
	{
#ifdef TENSOR_CUDA_EMULATED
		return bf16_to_f32(x.bits);
#else
		return __uint_as_float((uint32_t)x.bits << 16);
#endif
	}
	static __device__ inline bf16 store(float x)
	{
		bf16 r;

#ifdef TENSOR_CUDA_EMULATED
		r.bits = f32_to_bf16(x);
#else
		r.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
#endif
		return r;
	}
};

template <> struct number<f16> {
	typedef float compute;

	static __device__ inline float load(f16 x)
	{
#ifdef TENSOR_CUDA_EMULATED
		return f16_to_f32(x.bits);
#else
		return __half2float(__ushort_as_half(x.bits));
#endif
	}
	static __device__ inline f16 store(float x)
	{
		f16 r;

#ifdef TENSOR_CUDA_EMULATED
		r.bits = f32_to_f16(x);
#else
		r.bits = __half_as_ushort(__float2half_rn(x));
#endif
		return r;
	}
};

#define FOR_REDUCED_FLOATS(X) \
	X(TENSOR_F16, f16)    \
	X(TENSOR_BF16, bf16)
#define FOR_ALL_FLOATS(X) FOR_FLOATS(X) FOR_REDUCED_FLOATS(X)

#endif
