/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Sums over a contiguous line, for normalization: vectors of partial sums within a block, blocks
 * in f64. Included once for each element type T, with vectors V of LANES and names F(x).
 */

#define MOMENT_BLOCK 2048 /* elements that are summed in T */

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

/* The sum of VECTOR(i), of the LANES elements from i, and of SCALAR(i) for the rest. */
#define MOMENT_SUM(NAME, PARAMS, VECTOR, SCALAR)                                           \
	static double F(NAME) PARAMS                                                       \
	{                                                                                  \
		double total = 0;                                                          \
                                                                                           \
		for (int64_t begin = 0; begin < n; begin += MOMENT_BLOCK) {                \
			int64_t end = n - begin < MOMENT_BLOCK ? n : begin + MOMENT_BLOCK; \
			int64_t i = begin;                                                 \
			V s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };                  \
			T rest = 0;                                                        \
                                                                                           \
			for (; i + 4 * LANES <= end; i += 4 * LANES) {                     \
				s0 += VECTOR(i);                                           \
				s1 += VECTOR(i + LANES);                                   \
				s2 += VECTOR(i + 2 * LANES);                               \
				s3 += VECTOR(i + 3 * LANES);                               \
			}                                                                  \
			for (; i + LANES <= end; i += LANES)                               \
				s0 += VECTOR(i);                                           \
			for (; i < end; i++)                                               \
				rest += SCALAR(i);                                         \
			total += F(lanes)(s0, s1, s2, s3) + rest;                          \
		}                                                                          \
		return total;                                                              \
	}

#define AT(p, i) (*(const V *)((p) + (i)))
#define ONE(i)	 AT(x, i)
#define ONE_S(i) x[i]
MOMENT_SUM(sum, (const T *x, int64_t n), ONE, ONE_S)
#define SQUARE(i)                         \
	({                                \
		V c_ = AT(x, i) - centre; \
		c_ *c_;                   \
	})
#define SQUARE_S(i) ((x[i] - centre) * (x[i] - centre))
MOMENT_SUM(sum_squares, (const T *x, T centre, int64_t n), SQUARE, SQUARE_S)
/* sum of x (y - centre) */
#define CENTRED(i)   (AT(x, i) * (AT(y, i) - centre))
#define CENTRED_S(i) (x[i] * (y[i] - centre))
MOMENT_SUM(sum_centred, (const T *x, const T *y, T centre, int64_t n), CENTRED, CENTRED_S)
#undef ONE
#undef ONE_S
#undef SQUARE
#undef SQUARE_S
#undef CENTRED
#undef CENTRED_S
#undef AT
#undef MOMENT_SUM
#undef MOMENT_BLOCK
