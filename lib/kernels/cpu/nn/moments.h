/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Functions of a contiguous line, for normalization: the sums F(sum), F(sum_squares) and
 * F(sum_centred), of which a block is summed in vectors of T and the sums of blocks in f64, the
 * normalized line F(affine) and its gradient F(gradient). Included by norm_each.h for each type.
 */
#ifndef TENSOR_MOMENTS_H
#define TENSOR_MOMENTS_H

#include "kernels/cpu/simd/vec_elements.h"

#define MOMENT_BLOCK 2048 /* elements summed in T */

enum moment { MOMENT_SUM, MOMENT_SQUARES, MOMENT_CENTRED };

#endif

static inline double F(lanes)(V a, V b, V c, V d)
{
	V sum = (a + b) + (c + d);

	if (VEC_BYTES >= 64)
		sum += VEC_CROSS(V, sum, 4);
	if (VEC_BYTES >= 32)
		sum += VEC_CROSS(V, sum, 2);
	sum += VEC_CROSS(V, sum, 1);
	return sizeof(T) == 8 ? (double)sum[0] : (double)sum[0] + (double)sum[1];
}

/* The terms of LANES elements; x itself for MOMENT_SUM. */
static inline __attribute__((always_inline)) V F(vector_terms)(const X *x, const X *y, T centre,
							       enum moment moment)
{
	V v = F(vec_get)(x);

	if (moment == MOMENT_SUM)
		return v;
	if (moment == MOMENT_CENTRED)
		return v * (F(vec_get)(y) - centre);
	v -= centre;
	return v * v;
}

static inline __attribute__((always_inline)) T F(scalar_term)(T x, T y, T centre,
							      enum moment moment)
{
	return moment == MOMENT_SUM	? x :
	       moment == MOMENT_CENTRED ? x * (y - centre) :
					  (x - centre) * (x - centre);
}

/* The sum of n terms. Inlined with a constant moment. */
static inline __attribute__((always_inline)) double F(moment)(const X *x, const X *y, T centre,
							      int64_t n, enum moment moment)
{
	double total = 0;

	for (int64_t begin = 0; begin < n; begin += MOMENT_BLOCK) {
		int64_t end = n - begin < MOMENT_BLOCK ? n : begin + MOMENT_BLOCK, i = begin;
		V s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };
		T rest = 0;

		for (; i + 4 * LANES <= end; i += 4 * LANES) {
			int64_t j = i + LANES, k = j + LANES, l = k + LANES;

			s0 += F(vector_terms)(x + i, y + i, centre, moment);
			s1 += F(vector_terms)(x + j, y + j, centre, moment);
			s2 += F(vector_terms)(x + k, y + k, centre, moment);
			s3 += F(vector_terms)(x + l, y + l, centre, moment);
		}
		for (; i + LANES <= end; i += LANES)
			s0 += F(vector_terms)(x + i, y + i, centre, moment);
		for (; i < end; i++)
			rest += F(scalar_term)(ONE(x[i]), ONE(y[i]), centre, moment);
		total += F(lanes)(s0, s1, s2, s3) + rest;
	}
	return total;
}

static double F(sum)(const X *x, int64_t n)
{
	return F(moment)(x, x, 0, n, MOMENT_SUM);
}

/* The sum of (x - centre)^2. */
static double F(sum_squares)(const X *x, T centre, int64_t n)
{
	return F(moment)(x, x, centre, n, MOMENT_SQUARES);
}

/* The sum of x (y - centre). */
static double F(sum_centred)(const X *x, const X *y, T centre, int64_t n)
{
	return F(moment)(x, y, centre, n, MOMENT_CENTRED);
}

/* out = (x - m) a + b */
static void F(affine)(X *out, const X *x, int64_t n, T m, T a, T b)
{
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES)
		F(vec_put)(out + i, (F(vec_get)(x + i) - m) * a + b);
	if (i < n)
		F(vec_put_part)(out + i, (F(vec_get_part)(x + i, n - i) - m) * a + b, n - i);
}

struct F(gradient_factors) {
	T weight, mean, plain, centred, scale;
};

static inline V F(gradient_of)(V g, V x, const struct F(gradient_factors) * f)
{
	return (g * f->weight - f->plain - (x - f->mean) * f->centred) * f->scale;
}

/* dx = (g weight - plain - (x - mean) centred) scale */
static void F(gradient)(X *dx, const X *g, const X *x, int64_t n, struct F(gradient_factors) f)
{
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES)
		F(vec_put)(dx + i, F(gradient_of)(F(vec_get)(g + i), F(vec_get)(x + i), &f));
	if (i < n)
		F(vec_put_part)
	(dx + i, F(gradient_of)(F(vec_get_part)(g + i, n - i), F(vec_get_part)(x + i, n - i), &f),
	 n - i);
}
