/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Matrix instructions for a warp, on f16 and bf16 with sums of f32. Fragments are those of PTX's
 * mma.m16n8k16: with g = lane / 4 and t = lane % 4, a[0] has elements (g, 2 t) and (g, 2 t + 1) of a
 * [16, 16], a[1] those 8 rows below, a[2] those 8 columns to the right, a[3] both; b[0] elements
 * (2 t, g) and (2 t + 1, g) of b [16, 8], b[1] those 8 rows below; c elements (g, 2 t), (g, 2 t + 1)
 * and those 8 rows below of [16, 8].
 */
#ifndef TENSOR_CUDA_MMA_CUH
#define TENSOR_CUDA_MMA_CUH

#include "kernels/cuda/half.cuh"

#include <type_traits>

/* Two elements of a register. */
template <class X> static __device__ inline uint32_t pair_of(float low, float high)
{
	return (uint32_t)X(low).bits | (uint32_t)X(high).bits << 16;
}

#ifdef TENSOR_CUDA_EMULATED

template <class X> static __device__ inline float element_of(uint32_t pair, int which)
{
	X x;

	x.bits = (uint16_t)(pair >> 16 * which);
	return (float)x;
}

/* c += a b */
template <class X>
static __device__ inline void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
	const int lane = cuda_host_lane(), g = lane / 4, t = lane % 4;

	for (int k = 0; k < 16; k += 2) {
		const int pair = k % 8 / 2, high = k / 8;
		const uint32_t top = __shfl_sync(~0u, a[2 * high], g * 4 + pair);
		const uint32_t bottom = __shfl_sync(~0u, a[2 * high + 1], g * 4 + pair);
		const uint32_t left = __shfl_sync(~0u, b[high], 8 * t + pair);
		const uint32_t right = __shfl_sync(~0u, b[high], 8 * t + 4 + pair);

		for (int i = 0; i < 2; i++) {
			c[0] += element_of<X>(top, i) * element_of<X>(left, i);
			c[1] += element_of<X>(top, i) * element_of<X>(right, i);
			c[2] += element_of<X>(bottom, i) * element_of<X>(left, i);
			c[3] += element_of<X>(bottom, i) * element_of<X>(right, i);
		}
	}
}

/*
 * Four matrices [8, 8] in shared memory: r[j] has elements (g, 2 t) and (g, 2 t + 1) of matrix j, with
 * TRANSPOSED (2 t, g) and (2 t + 1, g). `row`: the address of row lane % 8 of matrix lane / 8.
 */
template <bool TRANSPOSED, class X>
static __device__ inline void load_matrices(uint32_t (&r)[4], const X *row)
{
	const int lane = cuda_host_lane(), g = lane / 4, t = lane % 4;

	for (int j = 0; j < 4; j++) {
		const int first = 8 * j + (TRANSPOSED ? 2 * t : g);
		const X *low = (const X *)__shfl_sync(~0u, (uintptr_t)row, first);
		const X *high = (const X *)__shfl_sync(~0u, (uintptr_t)row, first + TRANSPOSED);

		r[j] = TRANSPOSED ? low[g].bits | (uint32_t)high[g].bits << 16 :
				    low[2 * t].bits | (uint32_t)low[2 * t + 1].bits << 16;
	}
}

#else

template <class X>
static __device__ inline void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
	if (std::is_same<X, bf16>::value)
		asm volatile(
			"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
			"{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
			: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
			: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	else
		asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
			     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
			     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <bool TRANSPOSED, class X>
static __device__ inline void load_matrices(uint32_t (&r)[4], const X *row)
{
	const unsigned at = (unsigned)__cvta_generic_to_shared(row);

	if (TRANSPOSED)
		asm volatile(
			"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
			: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
			: "r"(at)
			: "memory");
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
			     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
			     : "r"(at)
			     : "memory");
}

#endif

#endif
