/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Loops over f16 without blocks in memory, for calls whose operands are all f16: those of loops.h for
 * bf16, with conversions of F16_LANES elements at a time, for which there are instructions. x, y and z
 * are float. An input of stride 0 points to a float: a scalar need not be exact in f16.
 */
#ifndef TENSOR_CPU_LOOPS_F16_H
#define TENSOR_CPU_LOOPS_F16_H

#include "base/reduced_float.h"
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vec.h"

#define F16_LANES 16

static inline __attribute__((always_inline)) void f16_read(float *to, const uint16_t *from)
{
	for (int64_t i = vec_f16_to_f32(to, from, F16_LANES); i < F16_LANES; i++)
		to[i] = f16_to_f32(from[i]);
}

static inline __attribute__((always_inline)) void f16_write(uint16_t *to, const float *from)
{
	for (int64_t i = vec_f32_to_f16(to, from, F16_LANES); i < F16_LANES; i++)
		to[i] = f32_to_f16(from[i]);
}

/* An element of an input, which is a float if the input has stride 0. */
static inline float f16_or_f32(const char *p, int64_t stride, int64_t i)
{
	return stride ? f16_to_f32(*(const uint16_t *)(p + i * stride)) : *(const float *)p;
}

/* F16_LANES elements from i on of an input whose elements are adjacent, or which is one float. */
static inline __attribute__((always_inline)) void f16_read_or_repeat(float *to, const char *p,
								     int64_t stride, int64_t i)
{
	if (stride)
		f16_read(to, (const uint16_t *)p + i);
	else
		for (int k = 0; k < F16_LANES; k++)
			to[k] = *(const float *)p;
}

/* Groups of a row, as long as there are F16_LANES elements: LANE declares the inputs of lane k. */
#define F16_GROUPS(O, n, i, READ, LANE, EXPR, WRITE)      \
	for (; i + F16_LANES <= (n); i += F16_LANES) {    \
		O out[F16_LANES];                         \
		READ;                                     \
		IVDEP for (int k = 0; k < F16_LANES; k++) \
		{                                         \
			LANE;                             \
			out[k] = (EXPR);                  \
		}                                         \
		WRITE;                                    \
	}

#define UNARY_F16_WITH(NAME, DECL, EXPR)                                                        \
	ITER_LOOP(NAME##_f16)                                                                   \
	{                                                                                       \
		int64_t so = s0[0], sa = s0[1];                                                 \
		DECL(float);                                                                    \
		for (int64_t j = 0; j < n1; j++) {                                              \
			char *o = data[0] + j * s1[0], *a = data[1] + j * s1[1];                \
			float in[F16_LANES];                                                    \
			int64_t i = 0;                                                          \
			if (so == 2 && sa == 2)                                                 \
				F16_GROUPS(float, n0, i, f16_read(in, (const uint16_t *)a + i), \
					   float x = in[k], EXPR,                               \
					   f16_write((uint16_t *)o + i, out))                   \
			for (; i < n0; i++) {                                                   \
				float x = f16_to_f32(*(const uint16_t *)(a + i * sa));          \
				ONE_BY_ONE;                                                     \
				*(uint16_t *)(o + i * so) = f32_to_f16(EXPR);                   \
			}                                                                       \
		}                                                                               \
	}

/* A row of two inputs; WRITE stores the group out[] of type O, ONE(v) is the element of type R of a result v. */
#define BINARY_F16_ROW(R, O, o, so, a, sa, b, sb, n, WRITE, ONE, EXPR)                      \
	{                                                                                   \
		float u[F16_LANES], v[F16_LANES];                                           \
		int64_t i = 0;                                                              \
		if ((so) == sizeof(R) && (sa) == 2 && (sb) == 2)                            \
			F16_GROUPS(O, n, i, f16_read(u, (const uint16_t *)(a) + i);         \
				   f16_read(v, (const uint16_t *)(b) + i), float x = u[k];  \
				   float y = v[k], EXPR, WRITE)                             \
		else if ((so) == sizeof(R) && ((sa) == 2 || !(sa)) && ((sb) == 2 || !(sb))) \
			F16_GROUPS(O, n, i, f16_read_or_repeat(u, a, sa, i);                \
				   f16_read_or_repeat(v, b, sb, i), float x = u[k];         \
				   float y = v[k], EXPR, WRITE)                             \
		for (; i < (n); i++) {                                                      \
			float x = f16_or_f32(a, sa, i), y = f16_or_f32(b, sb, i);           \
			ONE_BY_ONE;                                                         \
			*(R *)((o) + i * (so)) = ONE(EXPR);                                 \
		}                                                                           \
	}

#define BINARY_F16_TO(NAME, R, O, WRITE, ONE, EXPR)                                     \
	ITER_LOOP(NAME##_f16)                                                           \
	{                                                                               \
		int64_t so = s0[0], sa = s0[1], sb = s0[2];                             \
		for (int64_t j = 0; j < n1; j++) {                                      \
			char *o = data[0] + j * s1[0];                                  \
			const char *a = data[1] + j * s1[1], *b = data[2] + j * s1[2];  \
			BINARY_F16_ROW(R, O, o, so, a, sa, b, sb, n0, WRITE, ONE, EXPR) \
		}                                                                       \
	}
#define BINARY_F16(NAME, EXPR) \
	BINARY_F16_TO(NAME, uint16_t, float, f16_write((uint16_t *)o + i, out), f32_to_f16, EXPR)
#define RELATION_F16(NAME, EXPR) \
	BINARY_F16_TO(NAME, uint8_t, uint8_t, memcpy(o + i, out, sizeof(out)), (uint8_t), EXPR)

/* Three inputs: only z may have stride 0. */
#define TERNARY_F16_ROW(o, so, a, sa, b, sb, c, sc, n, EXPR)                                  \
	{                                                                                     \
		float u[F16_LANES], v[F16_LANES], w[F16_LANES];                               \
		int64_t i = 0;                                                                \
		if ((so) == 2 && (sa) == 2 && (sb) == 2 && ((sc) == 2 || !(sc)))              \
			F16_GROUPS(float, n, i, f16_read(u, (const uint16_t *)(a) + i);       \
				   f16_read(v, (const uint16_t *)(b) + i);                    \
				   f16_read_or_repeat(w, c, sc, i), float x = u[k];           \
				   float y = v[k];                                            \
				   float z = w[k], EXPR, f16_write((uint16_t *)(o) + i, out)) \
		for (; i < (n); i++) {                                                        \
			float x = f16_or_f32(a, sa, i), y = f16_or_f32(b, sb, i);             \
			float z = f16_or_f32(c, sc, i);                                       \
			ONE_BY_ONE;                                                           \
			*(uint16_t *)((o) + i * (so)) = f32_to_f16(EXPR);                     \
		}                                                                             \
	}
#define TERNARY_F16_WITH(NAME, DECL, EXPR)                                             \
	ITER_LOOP(NAME##_f16)                                                          \
	{                                                                              \
		int64_t so = s0[0], sa = s0[1], sb = s0[2], sc = s0[3];                \
		DECL(float);                                                           \
		for (int64_t j = 0; j < n1; j++) {                                     \
			char *o = data[0] + j * s1[0];                                 \
			const char *a = data[1] + j * s1[1], *b = data[2] + j * s1[2]; \
			const char *c = data[3] + j * s1[3];                           \
			TERNARY_F16_ROW(o, so, a, sa, b, sb, c, sc, n0, EXPR)          \
		}                                                                      \
	}
#define AT_F16(N) AT_DTYPE(TENSOR_F16, N##_f16)

#endif
