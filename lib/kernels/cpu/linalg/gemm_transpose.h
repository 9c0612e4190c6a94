/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Transposition of LANES vectors VEC in registers, and sums of their lanes by the same exchanges.
 * MASK is the type of the indices of a shuffle.
 */
#ifndef TENSOR_GEMM_TRANSPOSE_H
#define TENSOR_GEMM_TRANSPOSE_H

#define FOUR(X, s, j)  X(s, j), X(s, j + 1), X(s, j + 2), X(s, j + 3)
#define EIGHT(X, s, j) FOUR(X, s, j), FOUR(X, s, j + 4)
#if LANES == 16
#define EACH_LANE(X, s) EIGHT(X, s, 0), EIGHT(X, s, 8)
#elif LANES == 8
#define EACH_LANE(X, s) EIGHT(X, s, 0)
#elif LANES == 4
#define EACH_LANE(X, s) FOUR(X, s, 0)
#else
#define EACH_LANE(X, s) X(s, 0), X(s, 1)
#endif
#define LOW(s, j)  ((j) & (s) ? LANES + (j) - (s) : (j))
#define HIGH(s, j) ((j) & (s) ? LANES + (j) : (j) + (s))

#define EXCHANGE(s)                                                         \
	case s:                                                             \
		*x = __builtin_shuffle(u, v, (MASK){ EACH_LANE(LOW, s) });  \
		*y = __builtin_shuffle(u, v, (MASK){ EACH_LANE(HIGH, s) }); \
		break;

/*
 * Transposes blocks of s by s lanes of two rows whose numbers differ in bit s: swaps the blocks off
 * the diagonal.
 */
static inline __attribute__((always_inline)) void exchange(VEC *x, VEC *y, const int s)
{
	VEC u = *x, v = *y;

	switch (s) {
		EXCHANGE(1)
		EXCHANGE(2)
		EXCHANGE(4)
		EXCHANGE(8)
	}
}

/* row[i][j] = row[j][i] */
static inline __attribute__((always_inline)) void transpose_lanes(VEC *row)
{
#pragma GCC unroll 4
	for (int s = LANES / 2; s > 0; s /= 2)
#pragma GCC unroll 16
		for (int i = 0; i < LANES; i++)
			if (!(i & s))
				exchange(&row[i], &row[i + s], s);
}

/* Lane i of the result is the sum of the lanes of row i: rows are added after each exchange. */
static inline __attribute__((always_inline)) VEC sum_rows(VEC *row)
{
#pragma GCC unroll 4
	for (int s = LANES / 2; s > 0; s /= 2)
#pragma GCC unroll 16
		for (int i = 0; i < s; i++) {
			exchange(&row[i], &row[i + s], s);
			row[i] += row[i + s];
		}
	return row[0];
}

#endif
