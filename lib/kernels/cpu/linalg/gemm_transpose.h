/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Blocks of LANES vectors VEC turned in registers, so that rows become columns, and added up on the
 * way; MASK is the vector of integers that a shuffle wants.
 */
#ifndef TENSOR_MATMUL_TURN_H
#define TENSOR_MATMUL_TURN_H

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

/* Of two rows whose numbers differ in the bit s: swaps what lies off the diagonal. */
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

/* Rows become columns. */
static inline __attribute__((always_inline)) void turn(VEC *row)
{
#pragma GCC unroll 4
	for (int s = LANES / 2; s > 0; s /= 2)
#pragma GCC unroll 16
		for (int i = 0; i < LANES; i++)
			if (!(i & s))
				exchange(&row[i], &row[i + s], s);
}

/* Lane i of the result is the sum of row i: turned, and added on the way. */
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
