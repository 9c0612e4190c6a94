/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Lines of f16 and bf16 whose elements are contiguous across, for softmax.c: strips of two vectors,
 * converted as they are read. The sums of a strip are in registers.
 */
#ifndef TENSOR_SOFTMAX_COLUMNS_H
#define TENSOR_SOFTMAX_COLUMNS_H

#include "kernels/cpu/simd/vec_elements.h"
#include "kernels/cpu/simd/vecmath.h"

#include "iter/reduce_iter.h"

#define STRIP	   (2 * VEC_F32)
#define STRIP_ROWS 512 /* elements of the longest line of which a strip is kept on the stack */

/* Vector v of element r of a strip of operand k. */
#define STRIP_AT(k, r, v) ((uint16_t *)(data[k] + (r)*t->along.stride[k][0]) + at + (v)*VEC_F32)

/* Lines `at` and following: `vecs` vectors of them, the last of which has `last` elements. */
static inline __attribute__((always_inline)) void forward_strip(const struct reduce_iter *t,
								char *const *data, int64_t at,
								const int vecs, int64_t last,
								bool log, bool half)
{
	_Alignas(64) vec_f32 x[STRIP_ROWS][2];
	vec_f32 max[2], sum[2] = { { 0 } };
	int64_t rows = t->along.size[0];

	for (int v = 0; v < vecs; v++)
		max[v] = (vec_f32){ 0 } - INFINITY;
	for (int64_t r = 0; r < rows; r++)
		for (int v = 0; v < vecs; v++) {
			x[r][v] = vec_get_reduced(STRIP_AT(1, r, v), v < vecs - 1 ? VEC_F32 : last,
						  half);
			max[v] = vec_max_f32(max[v], x[r][v]);
		}
	for (int64_t r = 0; r < rows; r++)
		for (int v = 0; v < vecs; v++) {
			vec_f32 e = exp_f32v(x[r][v] - max[v]);

			sum[v] += e;
			x[r][v] = log ? (vec_f32)(x[r][v] - max[v]) : e;
		}
	for (int v = 0; v < vecs; v++)
		sum[v] = log ? log_f32v(sum[v]) : (vec_f32)(1 / sum[v]);
	for (int64_t r = 0; r < rows; r++)
		for (int v = 0; v < vecs; v++)
			vec_put_reduced(STRIP_AT(0, r, v),
					log ? (vec_f32)(x[r][v] - sum[v]) :
					      (vec_f32)(x[r][v] * sum[v]),
					v < vecs - 1 ? VEC_F32 : last, half);
}

/* The same of the gradient; the operands are out, the saved output and the gradient. */
static inline __attribute__((always_inline)) void backward_strip(const struct reduce_iter *t,
								 char *const *data, int64_t at,
								 const int vecs, int64_t last,
								 bool log, bool half)
{
	int64_t rows = t->along.size[0];
	vec_f32 sum[2] = { { 0 } };

	for (int64_t r = 0; r < rows; r++)
		for (int v = 0; v < vecs; v++) {
			int64_t n = v < vecs - 1 ? VEC_F32 : last;
			vec_f32 g = vec_get_reduced(STRIP_AT(2, r, v), n, half);

			sum[v] += log ? g :
					(vec_f32)(g * vec_get_reduced(STRIP_AT(1, r, v), n, half));
		}
	for (int64_t r = 0; r < rows; r++)
		for (int v = 0; v < vecs; v++) {
			int64_t n = v < vecs - 1 ? VEC_F32 : last;
			vec_f32 g = vec_get_reduced(STRIP_AT(2, r, v), n, half);
			vec_f32 y = vec_get_reduced(STRIP_AT(1, r, v), n, half);

			vec_put_reduced(STRIP_AT(0, r, v),
					log ? (vec_f32)(g - exp_f32v(y) * sum[v]) :
					      (vec_f32)((g - sum[v]) * y),
					n, half);
		}
}

/* n adjacent lines of each operand. */
#define COLUMNS(NAME, strip, log, half)                                             \
	static void NAME(const struct reduce_iter *t, char *const *data, int64_t n) \
	{                                                                           \
		int64_t at = 0;                                                     \
                                                                                    \
		for (; at + STRIP <= n; at += STRIP)                                \
			strip(t, data, at, 2, VEC_F32, log, half);                  \
		for (; at + VEC_F32 <= n; at += VEC_F32)                            \
			strip(t, data, at, 1, VEC_F32, log, half);                  \
		if (at < n)                                                         \
			strip(t, data, at, 1, n - at, log, half);                   \
	}
COLUMNS(softmax_columns_f16, forward_strip, false, true)
COLUMNS(softmax_columns_bf16, forward_strip, false, false)
COLUMNS(log_softmax_columns_f16, forward_strip, true, true)
COLUMNS(log_softmax_columns_bf16, forward_strip, true, false)
COLUMNS(softmax_gradient_columns_f16, backward_strip, false, true)
COLUMNS(softmax_gradient_columns_bf16, backward_strip, false, false)
COLUMNS(log_softmax_gradient_columns_f16, backward_strip, true, true)
COLUMNS(log_softmax_gradient_columns_bf16, backward_strip, true, false)
#undef COLUMNS

typedef void (*columns_fn)(const struct reduce_iter *t, char *const *data, int64_t n);

static columns_fn columns_of(bool backward, bool log, bool half)
{
	static const columns_fn all[2][2][2] = {
		{ { softmax_columns_bf16, softmax_columns_f16 },
		  { log_softmax_columns_bf16, log_softmax_columns_f16 } },
		{ { softmax_gradient_columns_bf16, softmax_gradient_columns_f16 },
		  { log_softmax_gradient_columns_bf16, log_softmax_gradient_columns_f16 } },
	};

	return all[backward][log][half];
}

#endif
