/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Tiles (tiles.h) whose units are pairs of bf16, with sums in f32: TDPBF16PS. T is float. */
#ifndef TENSOR_TILES_PAIRS_H
#define TENSOR_TILES_PAIRS_H

#define TILE_INSTRUCTION "tdpbf16ps"
#define TILE_FEATURE	 (1u << 22)

#include "kernels/cpu/simd/tiles.h"

/* The half of a unit as f32; subnormals are zero. */
static inline T model_half(const T *unit, bool high)
{
	uint32_t bits;

	memcpy(&bits, unit, sizeof(bits));
	bits = high ? bits & 0xffff0000 : bits << 16;
	return bits & 0x7f800000 ? bits_to_f32(bits) : 0;
}

static void model_dot(T *sum, const T *a, const T *b)
{
	for (int i = 0; i < TILE_SIDE; i++)
		for (int k = 0; k < TILE_SIDE; k++)
			for (int half = 0; half < 2; half++) {
				T x = model_half(a + i * TILE_SIDE + k, half);

				for (int j = 0; j < TILE_SIDE; j++)
					sum[i * TILE_SIDE + j] +=
						x * model_half(b + k * TILE_SIDE + j, half);
			}
}

/* Two small integers. */
static T example_unit(int i, bool b)
{
	T low = (T)(b ? i % 3 - 1 : i % 5 - 2), high = (T)(b ? i % 11 - 5 : i % 7 - 3);

	return bits_to_f32(f32_to_bits(high) | f32_to_bits(low) >> 16);
}

#endif
