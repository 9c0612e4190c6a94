/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What a reduction is to the tree in reduce.c: how elements are taken in, how two results are
 * joined, what the end result is. REDUCER makes one from an associative operation.
 */
#ifndef TENSOR_CPU_REDUCE_H
#define TENSOR_CPU_REDUCE_H

#include "cpu.h"

#define LANES	   64 /* running values of a line */
#define LINE_MAX   8192 /* elements of a line before it is halved */
#define ACC_MAX	   32 /* bytes of an accumulator */

/* Elements of another dtype, or as something else, to a dense buffer; stride in bytes. */
typedef void (*reduce_fetch)(void *to, const char *from, enum tensor_dtype dtype, int64_t stride,
			     int64_t n, double p);

/* What differs by operator and dtype. */
struct reducer {
	size_t size; /* of an accumulator */
	uint8_t takes, gives; /* dtypes: of the elements, of the result */
	/* acc[0..n) becomes the value that changes nothing. */
	void (*clear)(void *acc, int64_t n);
	/* acc[i] takes in other[i]. */
	void (*combine)(void *acc, const void *other, int64_t n);
	/* acc[c] takes in element c of each row; strides in bytes. */
	void (*rows)(void *acc, const char *p, int64_t rows, int64_t row_stride, int64_t cols,
		     int64_t col_stride);
	/* acc[0] takes in n elements. */
	void (*line)(void *acc, const char *p, int64_t n, int64_t stride);
};

struct reduction {
	const struct reducer *r;
	/* Needed where elements are not what r takes; NULL: converted by dtype. */
	reduce_fetch fetch;
	/* result[i] from acc[i], n of them, over `count` elements each. NULL: acc is the result.
	 * The two may be the same memory. */
	void (*finish)(void *result, const void *acc, int64_t n, int64_t count, double p);
	double p; /* for fetch and finish */
};

/* out as kernels of reductions get it. */
int CPU_NAME(reduce)(const struct reduction *what, tensor *out, const tensor *self, uint32_t dims);

/*
 * Elements of type T, accumulators of type A. GET is element e as an A, EXPR joins x and y.
 * AT_ONCE: rows that are combined before the running values are touched, 8 or 1. gcc makes
 * vectors of a tree of additions, but not of one of choices.
 */
#define REDUCER(NAME, T, TAKES, A, GIVES, IDENTITY, AT_ONCE, GET, EXPR)                           \
	static inline A NAME##_op(A x, A y)                                                       \
	{                                                                                         \
		return (EXPR);                                                                    \
	}                                                                                         \
                                                                                                  \
	static inline A NAME##_get(T e)                                                           \
	{                                                                                         \
		return (GET);                                                                     \
	}                                                                                         \
                                                                                                  \
	static void NAME##_clear(void *acc, int64_t n)                                            \
	{                                                                                         \
		for (int64_t i = 0; i < n; i++)                                                   \
			((A *)acc)[i] = (IDENTITY);                                               \
	}                                                                                         \
                                                                                                  \
	static void NAME##_combine(void *acc, const void *other, int64_t n)                       \
	{                                                                                         \
		A *restrict a = acc;                                                              \
		const A *restrict b = other;                                                      \
                                                                                                  \
		for (int64_t i = 0; i < n; i++)                                                   \
			a[i] = NAME##_op(a[i], b[i]);                                             \
	}                                                                                         \
                                                                                                  \
	static inline A NAME##_op4(T x, T y, T z, T w)                                            \
	{                                                                                         \
		return NAME##_op(NAME##_op(NAME##_get(x), NAME##_get(y)),                         \
				 NAME##_op(NAME##_get(z), NAME##_get(w)));                        \
	}                                                                                         \
                                                                                                  \
	static inline __attribute__((always_inline)) void NAME##_dense(                           \
		A *restrict a, const char *restrict p, int64_t rows, int64_t rs, int64_t cols)    \
	{                                                                                         \
		for (; (AT_ONCE) == 8 && rows >= 8; rows -= 8, p += 8 * rs) {                     \
			const T *r0 = (const T *)p, *r1 = (const T *)(p + rs);                    \
			const T *r2 = (const T *)(p + 2 * rs), *r3 = (const T *)(p + 3 * rs);     \
			const T *r4 = (const T *)(p + 4 * rs), *r5 = (const T *)(p + 5 * rs);     \
			const T *r6 = (const T *)(p + 6 * rs), *r7 = (const T *)(p + 7 * rs);     \
                                                                                                  \
			for (int64_t c = 0; c < cols; c++)                                        \
				a[c] = NAME##_op(                                                 \
					a[c], NAME##_op(NAME##_op4(r0[c], r1[c], r2[c], r3[c]),   \
							NAME##_op4(r4[c], r5[c], r6[c], r7[c]))); \
		}                                                                                 \
		for (; rows > 0; rows--, p += rs)                                                 \
			for (int64_t c = 0; c < cols; c++)                                        \
				a[c] = NAME##_op(a[c], NAME##_get(((const T *)p)[c]));            \
	}                                                                                         \
                                                                                                  \
	static void NAME##_rows(void *acc, const char *p, int64_t rows, int64_t rs, int64_t cols, \
				int64_t cs)                                                       \
	{                                                                                         \
		A *a = acc;                                                                       \
                                                                                                  \
		if (cs == sizeof(T)) {                                                            \
			NAME##_dense(a, p, rows, rs, cols);                                       \
			return;                                                                   \
		}                                                                                 \
		for (int64_t c = 0; c < cols; c++, p += cs)                                       \
			for (int64_t r = 0; r < rows; r++)                                        \
				a[c] = NAME##_op(a[c], NAME##_get(*(const T *)(p + r * rs)));     \
	}                                                                                         \
                                                                                                  \
	static inline A NAME##_eight(const char *p, int64_t s)                                    \
	{                                                                                         \
		return NAME##_op(NAME##_op4(*(const T *)p, *(const T *)(p + s),                   \
					    *(const T *)(p + 2 * s), *(const T *)(p + 3 * s)),    \
				 NAME##_op4(*(const T *)(p + 4 * s), *(const T *)(p + 5 * s),     \
					    *(const T *)(p + 6 * s), *(const T *)(p + 7 * s)));   \
	}                                                                                         \
                                                                                                  \
	/* In steps that the compiler knows the length of. */                                     \
	static inline __attribute__((always_inline)) void NAME##_fold(A *lane, int64_t half)      \
	{                                                                                         \
		for (int64_t k = 0; k < half; k++)                                                \
			lane[k] = NAME##_op(lane[k], lane[k + half]);                             \
	}                                                                                         \
                                                                                                  \
	static void NAME##_line(void *acc, const char *p, int64_t n, int64_t s)                   \
	{                                                                                         \
		A lane[LANES], sum = *(A *)acc;                                                   \
                                                                                                  \
		NAME##_clear(lane, LANES);                                                        \
		if (s == sizeof(T) && n >= LANES) {                                               \
			NAME##_dense(lane, p, n / LANES, LANES * sizeof(T), LANES);               \
			p += n / LANES * LANES * sizeof(T);                                       \
			n %= LANES;                                                               \
			NAME##_fold(lane, LANES / 2);                                             \
			NAME##_fold(lane, LANES / 4);                                             \
			NAME##_fold(lane, LANES / 8);                                             \
		}                                                                                 \
		for (; n >= LANES; n -= LANES, p += LANES * s)                                    \
			for (int64_t k = 0; k < 8; k++)                                           \
				lane[k] = NAME##_op(lane[k], NAME##_eight(p + 8 * k * s, s));     \
		for (; n >= 8; n -= 8, p += 8 * s)                                                \
			for (int64_t k = 0; k < 8; k++)                                           \
				lane[k] = NAME##_op(lane[k], NAME##_get(*(const T *)(p + k * s)));\
		NAME##_fold(lane, 4);                                                             \
		NAME##_fold(lane, 2);                                                             \
		NAME##_fold(lane, 1);                                                             \
		for (; n > 0; n--, p += s)                                                        \
			sum = NAME##_op(sum, NAME##_get(*(const T *)p));                          \
		*(A *)acc = NAME##_op(sum, lane[0]);                                              \
	}                                                                                         \
                                                                                                  \
	static const struct reducer NAME = {                                                      \
		sizeof(A), TAKES, GIVES, NAME##_clear, NAME##_combine, NAME##_rows, NAME##_line,  \
	};

#endif
