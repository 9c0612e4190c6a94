/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Elements in memory whose type kernels do not compute in: f16 and bf16, which are loaded as f32
 * and rounded once when they are stored.
 */
#ifndef TENSOR_CUDA_TYPES_CUH
#define TENSOR_CUDA_TYPES_CUH

#include <stdint.h>

/* The conversions of the CPU, as functions of both processors. */
#ifdef __CUDACC__
#define inline inline __host__ __device__
#endif
#include "base/reduced_float.h"
#undef inline

struct f16 {
	uint16_t bits;

	f16() = default;
	__host__ __device__ explicit f16(float v)
	{
#ifdef __CUDA_ARCH__
		asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
#else
		bits = f32_to_f16(v);
#endif
	}
	__host__ __device__ operator float() const
	{
#ifdef __CUDA_ARCH__
		float v;

		asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
		return v;
#else
		return f16_to_f32(bits);
#endif
	}
};

struct bf16 {
	uint16_t bits;

	bf16() = default;
	__host__ __device__ explicit bf16(float v) : bits(f32_to_bf16(v))
	{
	}
	__host__ __device__ operator float() const
	{
		return bf16_to_f32(bits);
	}
};

#endif
