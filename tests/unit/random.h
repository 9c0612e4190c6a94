/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Helpers of the tests of random numbers. Seeds are fixed, so that a test always passes or always
 * fails.
 */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include "check.h"

#define SEED 20240229
#define N    100000

static inline int fresh(void **state)
{
	tensor_manual_seed(SEED);
	return 0;
}

static inline bool same_bits(tensor *a, tensor *b)
{
	size_t n = tensor_numel(a) * tensor_itemsize(tensor_dtype(a));
	char *x = malloc(n), *y = malloc(n);
	bool same;

	assert_done(tensor_copy_to(a, x, n));
	assert_done(tensor_copy_to(b, y, n));
	same = !memcmp(x, y, n);
	free(x);
	free(y);
	return same;
}

static inline double chi_square(const double *v, int64_t n, int64_t from, int64_t bins)
{
	int64_t *count = calloc(bins, sizeof(*count));
	double expected = (double)n / bins, sum = 0;

	for (int64_t i = 0; i < n; i++) {
		assert_true(v[i] >= from && v[i] < from + bins);
		count[(int64_t)v[i] - from]++;
	}
	for (int64_t b = 0; b < bins; b++)
		sum += (count[b] - expected) * (count[b] - expected) / expected;
	free(count);
	return sum;
}

/*
 * The chi-square statistic is within 4 standard deviations of its mean: bins - 1, variance 2 *
 * (bins - 1).
 */
static inline void assert_alike(const double *v, int64_t n, int64_t from, int64_t bins)
{
	double x = chi_square(v, n, from, bins);

	assert_true(fabs(x - (bins - 1)) < 4 * sqrt(2.0 * (bins - 1)));
}

#endif
