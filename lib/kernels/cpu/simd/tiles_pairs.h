/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Tiles (tiles.h) whose units are pairs of bf16, with sums in f32: TDPBF16PS. T is float. */
#ifndef TENSOR_TILES_PAIRS_H
#define TENSOR_TILES_PAIRS_H

#define TILE_INSTRUCTION "tdpbf16ps"
#define TILE_FEATURE	 (1u << 22)

#include "kernels/cpu/simd/tiles.h"
#include "kernels/cpu/simd/vec_reduced_float.h"

/*
 * Whether vectors multiply pairs of bf16 at least as fast as f32. Intel's processors with AMX (Sapphire Rapids and
 * later), also where it is hidden, begin the instruction every second cycle, a multiply-add of f32 twice in a cycle, so that
 * f32 takes half the time. TENSOR_CPU_TILES=pairs: for tests on those.
 */
static bool fast_pairs(void)
{
	const char *want = secure_getenv("TENSOR_CPU_TILES");

	return vec_has_pairs() && (!__builtin_cpu_is("intel") || __builtin_cpu_is("cooperlake") ||
				   (want && !strcmp(want, "pairs")));
}

static bool chosen_pairs;

static void choose_pairs(void)
{
	chosen_pairs = fast_pairs();
}

/* Whether a product of bf16 with m rows is one of pairs, by vectors or by tiles, and not of elements widened to f32. */
static bool pairs_for(int64_t m)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose_pairs);
	return chosen_pairs || (vec_has_pairs() && tiles_for(m));
}

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
