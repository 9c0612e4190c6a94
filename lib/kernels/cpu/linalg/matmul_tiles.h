/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Blocks of a bf16 product by tiles (tiles_pairs.h), for matmul_reduced_float.h with units of two
 * elements. b is packed as for vectors.
 */
#ifndef TENSOR_MATMUL_TILES_H
#define TENSOR_MATMUL_TILES_H

#if UNIT == 2
#include "kernels/cpu/simd/tiles_pairs.h"

/* A unit of each of n rows; their elements are `step` apart along k, k of them exist. */
static inline VEC units_of_rows(const struct reduced_product *h, const uint16_t *s, int64_t row,
				int64_t step, int64_t n, int64_t k)
{
	VEC units = { 0 };

	if (row == 1)
		return units_across(h, s, step, n, k);
	for (int64_t i = 0; i < n; i++)
		units[i] = unit_at(h, s + i * row, step, k);
	return units;
}

/* Rows of `depth` units, `depth` + TILE_PAD apart; what does not exist is zero. */
static void pack_tile_rows(const struct reduced_product *h, T *to, int64_t begin, int64_t m)
{
	const struct product *p = h->p;
	int64_t pitch = h->depth + TILE_PAD;
	const uint16_t *a = (const uint16_t *)p->a + begin * p->rsa;

	for (int64_t i = 0; i < m;
	     i += TILE_SIDE, a += TILE_SIDE * p->rsa, to += TILE_SIDE * pitch) {
		int64_t n = least(m - i, TILE_SIDE);

		for (int64_t u = 0; u < h->depth; u += TILE_SIDE) {
			int64_t left = p->k - u * UNIT;
			VEC row[TILE_SIDE];

			for (int64_t r = 0; r < TILE_SIDE; r++) {
				const uint16_t *s = a + r * p->rsa + u * UNIT * p->csa;

				if (p->csa == 1)
					row[r] =
						r < n && left > 0 ?
							units_along(h, s,
								    least(left, TILE_SIDE * UNIT)) :
							(VEC){ 0 };
				else
					row[r] = left > r * UNIT ?
							 units_of_rows(h,
								       a + (u + r) * UNIT * p->csa,
								       p->rsa, p->csa, n,
								       left - r * UNIT) :
							 (VEC){ 0 };
			}
			if (p->csa != 1)
				transpose_lanes(row);
			for (int64_t r = 0; r < TILE_SIDE; r++)
				*(VEC *)(to + r * pitch + u) = row[r];
		}
	}
}

#else
#include "kernels/cpu/simd/tiles_none.h"

static inline void pack_tile_rows(const struct reduced_product *h, T *to, int64_t begin, int64_t m)
{
}
#endif

#endif
