// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Variance and standard deviation. An accumulator holds the count, the mean, and the sum of squared
 * distances from the mean. A block is read twice while it is in the cache; blocks are joined by
 * Chan's formula (T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise
 * algorithm for computing sample variances", 1979).
 */
#include "kernels/cpu/reduce/reduce.h"

#include <math.h>

#define WIDTH	16	    /* partial sums of a line */
#define CHUNK	2048	    /* elements that stay in the cache between two readings */
#define COLUMNS (CHUNK / 8) /* columns that are reduced together */

struct moments {
	double n, mean, m2;
};

static void moments_clear(void *acc, int64_t n)
{
	memset(acc, 0, n * sizeof(struct moments));
}

static void moments_join(struct moments *a, double n, double mean, double m2)
{
	double total = a->n + n, delta = mean - a->mean;

	if (!n)
		return;
	a->mean += delta * (n / total);
	a->m2 += m2 + delta * delta * (a->n * n / total);
	a->n = total;
}

static void moments_combine(void *acc, const void *other, int64_t n)
{
	struct moments *a = acc;
	const struct moments *b = other;

	for (int64_t i = 0; i < n; i++)
		moments_join(&a[i], b[i].n, b[i].mean, b[i].m2);
}

#define LOOPS_FILE "kernels/cpu/reduce/reduce_moments_loops.h"
#include "kernels/cpu/simd/each_float.h"

/* Complex elements: m2 is the sum of squared absolute values of distances. */
struct complex_moments {
	double n;
	double complex mean;
	double m2;
};

static void complex_moments_clear(void *acc, int64_t n)
{
	memset(acc, 0, n * sizeof(struct complex_moments));
}

static double squared_abs(double complex z)
{
	return __real__ z * __real__ z + __imag__ z * __imag__ z;
}

static void complex_moments_combine(void *acc, const void *other, int64_t n)
{
	struct complex_moments *a = acc;
	const struct complex_moments *b = other;

	for (int64_t i = 0; i < n; i++) {
		double total = a[i].n + b[i].n;
		double complex delta = b[i].mean - a[i].mean;

		if (!b[i].n)
			continue;
		a[i].mean += delta * (b[i].n / total);
		a[i].m2 += b[i].m2 + squared_abs(delta) * (a[i].n * b[i].n / total);
		a[i].n = total;
	}
}

static void complex_moments_line(void *acc, const char *p, int64_t n, int64_t s)
{
	struct complex_moments m = { .n = (double)n };

	if (!n)
		return;
	for (int64_t i = 0; i < n; i++)
		m.mean += *(const double complex *)(p + i * s);
	m.mean /= (double)n;
	for (int64_t i = 0; i < n; i++)
		m.m2 += squared_abs(*(const double complex *)(p + i * s) - m.mean);
	complex_moments_combine(acc, &m, 1);
}

static void complex_moments_rows(void *acc, const char *p, int64_t rows, int64_t rs, int64_t cols,
				 int64_t cs)
{
	for (int64_t c = 0; c < cols; c++)
		complex_moments_line((struct complex_moments *)acc + c, p + c * cs, rows, rs);
}

static void complex_moments_lines(void *acc, const char *p, int64_t lines, int64_t ls, int64_t n,
				  int64_t s)
{
	each_line(complex_moments_line, acc, sizeof(struct complex_moments), p, lines, ls, n, s);
}

static const struct reducer complex_moments_reducer = {
	sizeof(struct complex_moments),
	TENSOR_C128,
	TENSOR_F64,
	complex_moments_clear,
	complex_moments_combine,
	complex_moments_rows,
	complex_moments_lines,
};

/* m2 divided by the count less p, the correction. */
static void complex_variance(void *result, const void *acc, int64_t n, int64_t count, double p)
{
	const struct complex_moments *a = acc;
	double rest = (double)count - p > 0 ? (double)count - p : 0;

	for (int64_t i = 0; i < n; i++)
		((double *)result)[i] = a[i].m2 / rest;
}

static void variance(void *result, const void *acc, int64_t n, int64_t count, double p)
{
	const struct moments *a = acc;
	double rest = (double)count - p > 0 ? (double)count - p : 0;

	for (int64_t i = 0; i < n; i++)
		((double *)result)[i] = a[i].m2 / rest;
}

static void replace_by_roots(double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = sqrt(x[i]);
}

static void complex_deviation(void *result, const void *acc, int64_t n, int64_t count, double p)
{
	complex_variance(result, acc, n, count, p);
	replace_by_roots(result, n);
}

static void deviation(void *result, const void *acc, int64_t n, int64_t count, double p)
{
	variance(result, acc, n, count, p);
	replace_by_roots(result, n);
}

static int reduce_moments(const char *name, tensor *out, const tensor *self, uint32_t dims,
			  double p, bool root)
{
	struct reduction what = { .finish = root ? deviation : variance, .p = p };

	if (unlikely(dtype_is_integral(self->dtype)))
		return tensor_kernel_no_dtype(name, self->dtype, "cpu");
	what.r = self->dtype == TENSOR_F64 ? &moments_f64 : &moments_f32;
	if (dtype_is_complex(self->dtype)) {
		what.r = &complex_moments_reducer;
		what.finish = root ? complex_deviation : complex_variance;
	}
	return CPU_NAME(reduce)(&what, out, self, dims);
}

static int cpu_var(tensor *out, const tensor *self, uint32_t dims, double correction)
{
	return reduce_moments("var", out, self, dims, correction, false);
}

static int cpu_std(tensor *out, const tensor *self, uint32_t dims, double correction)
{
	return reduce_moments("std", out, self, dims, correction, true);
}

CPU_KERNELS(KERNEL(var), KERNEL(std))
