/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Loops over bf16 without a conversion of the operands, for calls whose operands are all bf16: those of loops.h. x, y
 * and z are float. An input of stride 0 points to a float: a scalar need not be exact in bf16.
 *
 * Two adjacent elements are read as a word. A shift or a mask makes an f32 of each, so that no vector has to be widened
 * or narrowed.
 */
#ifndef TENSOR_CPU_LOOPS_BF16_H
#define TENSOR_CPU_LOOPS_BF16_H

#include "base/reduced_float.h"
#include "kernels/cpu/simd/cpu.h"

typedef uint32_t bf16_pair __attribute__((aligned(2), may_alias));

static inline float bf16_low(uint32_t pair)
{
	return bits_to_f32(pair << 16);
}

static inline float bf16_high(uint32_t pair)
{
	return bits_to_f32(pair & 0xffff0000);
}

static inline uint32_t bf16_make_pair(float low, float high)
{
	return f32_round_bf16(low) >> 16 | (f32_round_bf16(high) & 0xffff0000);
}

/* An element of an input, which is a float if the input has stride 0. */
static inline float bf16_or_f32(const char *p, int64_t stride, int64_t i)
{
	return stride ? bf16_to_f32(*(const uint16_t *)(p + i * stride)) : *(const float *)p;
}

/*
 * A row of n adjacent elements. READ declares words of the inputs, and INPUTS(OF) the inputs, each of them OF(p), where
 * p is the pointer to its elements.
 */
#define BF16_READ(p)	uint32_t p##_pair = ((const bf16_pair *)p)[i]
#define BF16_OF_LOW(p)	bf16_low(p##_pair)
#define BF16_OF_HIGH(p) bf16_high(p##_pair)
#define BF16_OF_LAST(p) bf16_to_f32(p[last])
#define BF16_ROW(n, READ, INPUTS, po, EXPR)                                               \
	{                                                                                 \
		int64_t last = (n)-1;                                                     \
		IVDEP for (int64_t i = 0; i < (n) / 2; i++)                               \
		{                                                                         \
			float low_, high_;                                                \
			READ;                                                             \
			BF16_RESULT(low_, INPUTS(BF16_OF_LOW), EXPR);                     \
			BF16_RESULT(high_, INPUTS(BF16_OF_HIGH), EXPR);                   \
			((bf16_pair *)(po))[i] = bf16_make_pair(low_, high_);             \
		}                                                                         \
		if ((n)&1)                                                                \
			BF16_RESULT((po)[last], INPUTS(BF16_OF_LAST), f32_to_bf16(EXPR)); \
	}
#define BF16_RESULT(OUT, INPUTS, EXPR) \
	{                              \
		INPUTS;                \
		OUT = (EXPR);          \
	}

#define BF16_X(OF)   float x = OF(pa)
#define BF16_Y(OF)   float y = OF(pb)
#define BF16_XY(OF)  float x = OF(pa), y = OF(pb)
#define BF16_XYZ(OF) float x = OF(pa), y = OF(pb), z = OF(pc)

#define UNARY_BF16_WITH(NAME, DECL, EXPR)                                              \
	ITER_LOOP(NAME##_bf16)                                                         \
	{                                                                              \
		int64_t so = s0[0], sa = s0[1];                                        \
		DECL(float);                                                           \
		for (int64_t j = 0; j < n1; j++) {                                     \
			char *o = data[0] + j * s1[0], *a = data[1] + j * s1[1];       \
			uint16_t *po = (uint16_t *)o;                                  \
			const uint16_t *pa = (const uint16_t *)a;                      \
			if (so == 2 && sa == 2)                                        \
				BF16_ROW(n0, BF16_READ(pa), BF16_X, po, EXPR)          \
			else                                                           \
				ROW_STRIDED(i, n0, INPUT(uint16_t, u, a, i *sa);       \
					    float x = bf16_to_f32(u), uint16_t, o, so, \
					    f32_to_bf16(EXPR))                         \
		}                                                                      \
	}
/* The entry of a POINTWISE table for these loops. */
#define AT_BF16(N) AT_DTYPE(TENSOR_BF16, N##_bf16)

/* The rest of a loop over two inputs, whose ROW computes n0 elements from a and b at o. */
#define BINARY_BF16_ROWS(NAME, ROW, VALUE)                                             \
	ITER_LOOP(NAME##_bf16)                                                         \
	{                                                                              \
		int64_t so = s0[0], sa = s0[1], sb = s0[2];                            \
		for (int64_t j = 0; j < n1; j++) {                                     \
			char *o = data[0] + j * s1[0];                                 \
			const char *a = data[1] + j * s1[1], *b = data[2] + j * s1[2]; \
			const uint16_t *pa = (const uint16_t *)a;                      \
			const uint16_t *pb = (const uint16_t *)b;                      \
			ROW(o, so, a, sa, b, sb, n0, VALUE)                            \
		}                                                                      \
	}

/* A row of two inputs at a and b, pointers to which are pa and pb. */
#define BINARY_BF16_ROW(o, so, a, sa, b, sb, n, EXPR)                                 \
	{                                                                             \
		uint16_t *po = (uint16_t *)(o);                                       \
		if ((so) == 2 && (sa) == 2 && (sb) == 2) {                            \
			BF16_ROW(n, BF16_READ(pa); BF16_READ(pb), BF16_XY, po, EXPR)  \
		} else if ((so) == 2 && (sa) == 2 && !(sb)) {                         \
			float y = *(const float *)(b);                                \
			BF16_ROW(n, BF16_READ(pa), BF16_X, po, EXPR)                  \
		} else if ((so) == 2 && (sb) == 2 && !(sa)) {                         \
			float x = *(const float *)(a);                                \
			BF16_ROW(n, BF16_READ(pb), BF16_Y, po, EXPR)                  \
		} else                                                                \
			ROW_STRIDED(i, n, float x = bf16_or_f32(a, sa, i);            \
				    float y = bf16_or_f32(b, sb, i), uint16_t, o, so, \
				    f32_to_bf16(EXPR))                                \
	}
#define BINARY_BF16(NAME, EXPR) BINARY_BF16_ROWS(NAME, BINARY_BF16_ROW, EXPR)

/* The same for a result of bool. */
#define RELATION_BF16_ROW(o, so, a, sa, b, sb, n, VALUE)                                    \
	{                                                                                   \
		uint8_t *po = (uint8_t *)(o);                                               \
		if ((so) == 1 && (sa) == 2 && (sb) == 2)                                    \
			ROW_DENSE(i, n, , float x = bf16_to_f32(pa[i]);                     \
				  float y = bf16_to_f32(pb[i]), po[i], VALUE)               \
		else if ((so) == 1 && (sa) == 2 && !(sb))                                   \
			ROW_DENSE(i, n, float y = *(const float *)(b),                      \
				  float x = bf16_to_f32(pa[i]), po[i], VALUE)               \
		else if ((so) == 1 && (sb) == 2 && !(sa))                                   \
			ROW_DENSE(i, n, float x = *(const float *)(a),                      \
				  float y = bf16_to_f32(pb[i]), po[i], VALUE)               \
		else                                                                        \
			ROW_STRIDED(i, n, float x = bf16_or_f32(a, sa, i);                  \
				    float y = bf16_or_f32(b, sb, i), uint8_t, o, so, VALUE) \
	}
#define RELATION_BF16(NAME, EXPR) BINARY_BF16_ROWS(NAME, RELATION_BF16_ROW, EXPR)

/* The row of three inputs: only z may have stride 0. */
#define TERNARY_BF16_ROW(o, so, a, sa, b, sb, c, sc, n, EXPR)                            \
	{                                                                                \
		bool two = (so) == 2 && (sa) == 2 && (sb) == 2;                          \
		const uint16_t *pa = (const uint16_t *)(a), *pb = (const uint16_t *)(b); \
		const uint16_t *pc = (const uint16_t *)(c);                              \
		uint16_t *po = (uint16_t *)(o);                                          \
		if (two && (sc) == 2) {                                                  \
			BF16_ROW(n, BF16_READ(pa); BF16_READ(pb);                        \
				 BF16_READ(pc), BF16_XYZ, po, EXPR)                      \
		} else if (two && !(sc)) {                                               \
			float z = *(const float *)(c);                                   \
			BF16_ROW(n, BF16_READ(pa); BF16_READ(pb), BF16_XY, po, EXPR)     \
		} else                                                                   \
			ROW_STRIDED(i, n, float x = bf16_or_f32(a, sa, i);               \
				    float y = bf16_or_f32(b, sb, i);                     \
				    float z = bf16_or_f32(c, sc, i), uint16_t, o, so,    \
				    f32_to_bf16(EXPR))                                   \
	}
#define TERNARY_BF16_WITH(NAME, DECL, EXPR)                                            \
	ITER_LOOP(NAME##_bf16)                                                         \
	{                                                                              \
		int64_t so = s0[0], sa = s0[1], sb = s0[2], sc = s0[3];                \
		DECL(float);                                                           \
		for (int64_t j = 0; j < n1; j++) {                                     \
			char *o = data[0] + j * s1[0];                                 \
			const char *a = data[1] + j * s1[1], *b = data[2] + j * s1[2]; \
			const char *c = data[3] + j * s1[3];                           \
			TERNARY_BF16_ROW(o, so, a, sa, b, sb, c, sc, n0, EXPR)         \
		}                                                                      \
	}

#endif
