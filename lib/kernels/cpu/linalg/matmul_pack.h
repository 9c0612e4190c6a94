/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Packing for matmul_float.h, whose T, VEC, MASK and LANES it uses: blocks of a matrix are copied
 * to the order in which a tile reads them, and transposed in registers if necessary.
 */
#ifndef TENSOR_MATMUL_PACK_H
#define TENSOR_MATMUL_PACK_H

#include "kernels/cpu/linalg/gemm_transpose.h"

/* ---- panels of b ---- */

/* Copies n <= LANES contiguous columns of k elements to k rows of `width` elements. */
static void pack_transposed(T *to, const T *b, int64_t csb, int64_t k, int64_t n, int64_t width)
{
	for (int64_t p = 0; p < k; p += LANES) {
		int64_t rows = k - p < LANES ? k - p : LANES;
		vec_part part = PART(rows);
		VEC row[LANES];

		if (n == LANES && rows == LANES) {
#pragma GCC unroll 16
			for (int i = 0; i < LANES; i++)
				row[i] = *(const VEC *)(b + i * csb + p);
			transpose_lanes(row);
#pragma GCC unroll 16
			for (int i = 0; i < LANES; i++)
				*(VEC *)(to + (p + i) * width) = row[i];
			continue;
		}
		for (int i = 0; i < LANES; i++)
			row[i] = i < n ? LOAD(b + i * csb + p, part) : (VEC){ 0 };
		transpose_lanes(row);
		for (int64_t i = 0; i < rows; i++)
			*(VEC *)(to + (p + i) * width) = row[i];
	}
}

/* Copies k rows of n <= width columns to rows of `width` elements, padded with zeros. */
static inline void pack_panel(T *to, const T *b, int64_t rsb, int64_t csb, int64_t k, int64_t n,
			      int64_t width)
{
	vec_part part;

	if (csb != 1 && rsb == 1) {
		for (int64_t j = 0; j < width; j += LANES)
			pack_transposed(to + j, b + j * csb, csb, k, n - j < LANES ? n - j : LANES,
					width);
		return;
	}
	if (csb != 1) {
		for (int64_t p = 0; p < k; p++, to += width, b += rsb)
			for (int64_t j = 0; j < width; j++)
				to[j] = j < n ? b[j * csb] : 0;
		return;
	}
	part = PART(n - (width - LANES));
	for (int64_t p = 0; p < k; p++, to += width, b += rsb) {
		for (int64_t j = 0; j < width - LANES; j += LANES)
			*(VEC *)(to + j) = *(const VEC *)(b + j);
		*(VEC *)(to + width - LANES) = LOAD(b + width - LANES, part);
	}
}

#ifdef STORE_HALVES
/* Packs two groups of LANES / 2 rows of k elements, which one transposition handles. */
static void pack_two_groups(T *to, const T *a, int64_t rsa, int64_t k)
{
	T *other = to + LANES / 2 * k;

	for (int64_t p = 0; p < k; p += LANES) {
		int64_t columns = k - p < LANES ? k - p : LANES;
		vec_part part = PART(columns);
		VEC row[LANES];

#pragma GCC unroll 16
		for (int i = 0; i < LANES; i++)
			row[i] = LOAD(a + i * rsa + p, part);
		transpose_lanes(row);
		for (int64_t i = 0; i < columns; i++, to += LANES / 2, other += LANES / 2)
			STORE_HALVES(to, other, row[i]);
	}
}
#endif

/*
 * Packs m rows of k elements of a, in the groups of rows that compute_tiles() forms: within a group
 * the elements of all its rows for the first k, then for the next. Writes up to one vector beyond
 * the end.
 */
static __attribute__((unused)) void pack_rows(T *to, const T *a, int64_t rsa, int64_t csa,
					      int64_t m, int64_t k, int group)
{
	int64_t count = (m + group - 1) / group;

	for (int64_t i = 0, rows; i < count; i++, a += rows * rsa, to += rows * k, m -= rows) {
		rows = m / (count - i);
#ifdef STORE_HALVES
		if (csa == 1 && 2 * rows == LANES && i + 1 < count &&
		    (m - rows) / (count - i - 1) == rows) {
			pack_two_groups(to, a, rsa, k);
			rows *= 2;
			i++;
			continue;
		}
#endif
		/*
		 * The last vector of a row may write beyond it: into the next row, which is packed
		 * later. Several vectors in a row must fit exactly.
		 */
		if (csa == 1 && (rows <= LANES || rows % LANES == 0))
			for (int64_t j = 0; j < rows; j += LANES)
				pack_transposed(to + j, a + j * rsa, rsa, k,
						rows - j < LANES ? rows - j : LANES, rows);
		else
			for (int64_t p = 0; p < k; p++)
				for (int64_t x = 0; x < rows; x++)
					to[p * rows + x] = a[p * csa + x * rsa];
	}
}

/* The same for contiguous columns of a: reads one column after the other, for all groups. */
static __attribute__((unused)) void pack_columns(T *to, const T *a, int64_t csa, int64_t m,
						 int64_t k, int group)
{
	int64_t count = (m + group - 1) / group;

	for (int64_t p = 0; p < k; p++, a += csa) {
		int64_t left = m;
		const T *from = a;
		T *at = to;

		for (int64_t i = 0, rows; i < count; i++, at += rows * k, left -= rows) {
			rows = left / (count - i);
			if (rows == 8)
				memcpy(at + p * 8, from, 8 * sizeof(T));
			else
				for (int64_t x = 0; x < rows; x++)
					at[p * rows + x] = from[x];
			from += rows;
		}
	}
}

#endif
