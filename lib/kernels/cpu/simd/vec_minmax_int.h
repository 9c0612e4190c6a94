/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The lesser and the greater of unsigned integers in each lane. GCC unrolls short loops over arrays before it
 * could vectorize them. Like vec.h, this file depends on the width of vectors.
 */
#ifndef TENSOR_VEC_MINMAX_INT_H
#define TENSOR_VEC_MINMAX_INT_H

#include "kernels/cpu/simd/vec.h"

#if defined(__AVX512F__)
#define VEC_MINMAX_INT(OP)                                                   \
	static inline vec_u32 vec_##OP##_u32(vec_u32 x, vec_u32 y)           \
	{                                                                    \
		return (vec_u32)_mm512_##OP##_epu32((__m512i)x, (__m512i)y); \
	}                                                                    \
	static inline vec_u64 vec_##OP##_u64(vec_u64 x, vec_u64 y)           \
	{                                                                    \
		return (vec_u64)_mm512_##OP##_epu64((__m512i)x, (__m512i)y); \
	}
VEC_MINMAX_INT(min)
VEC_MINMAX_INT(max)
#undef VEC_MINMAX_INT
#else
static inline vec_u32 vec_min_u32(vec_u32 x, vec_u32 y)
{
	return VEC_PICK(x < y, x, y);
}

static inline vec_u32 vec_max_u32(vec_u32 x, vec_u32 y)
{
	return VEC_PICK(x < y, y, x);
}

static inline vec_u64 vec_min_u64(vec_u64 x, vec_u64 y)
{
	return VEC_PICK(x < y, x, y);
}

static inline vec_u64 vec_max_u64(vec_u64 x, vec_u64 y)
{
	return VEC_PICK(x < y, y, x);
}
#endif

#endif
