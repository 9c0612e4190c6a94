/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Gradients of softmax and log_softmax on lines of adjacent f16 or bf16, which are converted in registers. Included by
 * softmax.c only.
 */
#ifndef TENSOR_SOFTMAX_ADJACENT_H
#define TENSOR_SOFTMAX_ADJACENT_H

#include "kernels/cpu/simd/vec_reduced_float.h"
#include "kernels/cpu/simd/vecmath.h"

#define INLINE static inline __attribute__((always_inline))

/* Lanes of term_f32() from element i on, of n elements. */
INLINE vec_f32 adjacent_term(const uint16_t *g, const uint16_t *y, int64_t i, int64_t n,
			     const bool log, const bool half)
{
	int64_t lanes = n - i < VEC_F32 ? n - i : VEC_F32;
	vec_f32 v = vec_get_reduced(g + i, lanes, half);

	return log ? v : (vec_f32)(v * vec_get_reduced(y + i, lanes, half));
}

/* The sum of the terms of n elements. */
INLINE float adjacent_sum(const uint16_t *g, const uint16_t *y, int64_t n, const bool log,
			  const bool half)
{
	vec_f32 sum[4] = { { 0 } };
	int64_t i = 0;

	for (; i + 4 * VEC_F32 <= n; i += 4 * VEC_F32)
#pragma GCC unroll 4
		for (int k = 0; k < 4; k++)
			sum[k] += adjacent_term(g, y, i + k * VEC_F32, i + 4 * VEC_F32, log, half);
	for (; i < n; i += VEC_F32)
		sum[0] += adjacent_term(g, y, i, n, log, half);
	return add_lanes_f32((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* n elements of the gradient, at most a vector. */
INLINE void adjacent_vector(uint16_t *out, const uint16_t *g, const uint16_t *y, int64_t n,
			    float sum, const bool log, const bool half)
{
	vec_f32 a = vec_get_reduced(g, n, half), b = vec_get_reduced(y, n, half);

	vec_put_reduced(out, log ? (vec_f32)(a - exp_f32v(b) * sum) : (vec_f32)((a - sum) * b), n,
			half);
}

/* The gradient of a line, whose sum is that of blocks in f64. */
INLINE void adjacent_line(uint16_t *out, const uint16_t *g, const uint16_t *y, int64_t n,
			  const bool log, const bool half)
{
	double sum = 0;
	int64_t i = 0;

	for (int64_t b = 0; b < n; b += LONG_BLOCK)
		sum += adjacent_sum(g + b, y + b, n - b < LONG_BLOCK ? n - b : LONG_BLOCK, log,
				    half);
	for (; i + VEC_F32 <= n; i += VEC_F32)
		adjacent_vector(out + i, g + i, y + i, VEC_F32, (float)sum, log, half);
	if (i < n)
		adjacent_vector(out + i, g + i, y + i, n - i, (float)sum, log, half);
}

/* By constants, so that each has a loop of its own. */
static void adjacent_gradient(uint16_t *out, const uint16_t *g, const uint16_t *y, int64_t n,
			      bool log, bool half)
{
	if (log && half)
		adjacent_line(out, g, y, n, true, true);
	else if (log)
		adjacent_line(out, g, y, n, true, false);
	else if (half)
		adjacent_line(out, g, y, n, false, true);
	else
		adjacent_line(out, g, y, n, false, false);
}

#undef INLINE

#endif
