/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Tiles (tiles.h) whose units are four bytes, unsigned in a and signed in b, with sums in i32: TDPBUSD. T is int32_t. */
#ifndef TENSOR_TILES_BYTES_H
#define TENSOR_TILES_BYTES_H

#define TILE_INSTRUCTION "tdpbusd"
#define TILE_FEATURE	 (1u << 25)
#define TILE_BYTES	 (TILE_SIDE * (int64_t)sizeof(T)) /* of a row */

#include "kernels/cpu/simd/tiles.h"

/* Sums wrap around, as those of the instruction. */
static void model_dot(T *sum, const T *a, const T *b)
{
	for (int i = 0; i < TILE_SIDE; i++)
		for (int k = 0; k < TILE_SIDE; k++)
			for (int j = 0; j < TILE_SIDE; j++) {
				const uint8_t *x = (const uint8_t *)(a + i * TILE_SIDE + k);
				const int8_t *y = (const int8_t *)(b + k * TILE_SIDE + j);
				uint32_t total = (uint32_t)sum[i * TILE_SIDE + j];

				for (int byte = 0; byte < 4; byte++)
					total += (uint32_t)(x[byte] * y[byte]);
				sum[i * TILE_SIDE + j] = (T)total;
			}
}

/* Bytes of both signs, of which the unsigned are above 127, too. */
static T example_unit(int i, bool b)
{
	return (T)((uint32_t)(i + 1) * (b ? 0x9e3779b1u : 0x85ebca6bu));
}

#endif
