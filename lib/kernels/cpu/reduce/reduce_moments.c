// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Reductions whose running result is more than a number: variances (count, mean, sum of squared
 * distances from it) and logsumexp (greatest element, sum of exponentials of what is below it).
 * A block is read twice while it is in the cache; blocks are joined by Chan's formula (T. F.
 * Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing
 * sample variances", 1979).
 */
#include "kernels/cpu/reduce/reduce.h"
#include "kernels/cpu/simd/vecmath.h"

#include <math.h>

#define WIDTH 16   /* running values */
#define CHUNK 2048 /* elements that stay in the cache between two readings */

/* ---- variance ---- */

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

#define MOMENTS(d, T, D)                                                                          \
	static double sum_##d(const T *x, int64_t n)                                              \
	{                                                                                         \
		double lane[WIDTH] = { 0 }, sum = 0;                                              \
		int64_t i = 0;                                                                    \
                                                                                                  \
		for (; i + WIDTH <= n; i += WIDTH)                                                \
			for (int64_t k = 0; k < WIDTH; k++)                                       \
				lane[k] += (double)x[i + k];                                      \
		for (; i < n; i++)                                                                \
			sum += (double)x[i];                                                      \
		for (int64_t k = 0; k < WIDTH; k++)                                               \
			sum += lane[k];                                                           \
		return sum;                                                                       \
	}                                                                                         \
                                                                                                  \
	static double squares_##d(const T *x, int64_t n, double mean)                             \
	{                                                                                         \
		double lane[WIDTH] = { 0 }, sum = 0;                                              \
		int64_t i = 0;                                                                    \
                                                                                                  \
		for (; i + WIDTH <= n; i += WIDTH)                                                \
			for (int64_t k = 0; k < WIDTH; k++)                                       \
				lane[k] += ((double)x[i + k] - mean) * ((double)x[i + k] - mean); \
		for (; i < n; i++)                                                                \
			sum += ((double)x[i] - mean) * ((double)x[i] - mean);                     \
		for (int64_t k = 0; k < WIDTH; k++)                                               \
			sum += lane[k];                                                           \
		return sum;                                                                       \
	}                                                                                         \
                                                                                                  \
	static void moments_##d##_line(void *acc, const char *p, int64_t n, int64_t s)            \
	{                                                                                         \
		T buf[CHUNK];                                                                     \
                                                                                                  \
		for (int64_t i = 0; i < n; i += CHUNK, p += CHUNK * s) {                          \
			int64_t m = n - i < CHUNK ? n - i : CHUNK;                                \
			const T *x = (const T *)p;                                                \
			double mean;                                                              \
                                                                                                  \
			if (s != sizeof(T)) {                                                     \
				for (int64_t k = 0; k < m; k++)                                   \
					buf[k] = *(const T *)(p + k * s);                         \
				x = buf;                                                          \
			}                                                                         \
			mean = sum_##d(x, m) / (double)m;                                         \
			moments_join(acc, (double)m, mean, squares_##d(x, m, mean));              \
		}                                                                                 \
	}                                                                                         \
                                                                                                  \
	static void moments_##d##_some(struct moments *acc, const char *p, int64_t rows,          \
				       int64_t rs, int64_t cols, int64_t cs)                      \
	{                                                                                         \
		double mean[CHUNK / 8] = { 0 }, m2[CHUNK / 8] = { 0 };                            \
                                                                                                  \
		for (int64_t r = 0; r < rows; r++)                                                \
			for (int64_t c = 0; c < cols; c++)                                        \
				mean[c] += (double)*(const T *)(p + r * rs + c * cs);             \
		for (int64_t c = 0; c < cols; c++)                                                \
			mean[c] /= (double)rows;                                                  \
		for (int64_t r = 0; r < rows; r++) {                                              \
			for (int64_t c = 0; c < cols; c++) {                                      \
				double x = (double)*(const T *)(p + r * rs + c * cs) - mean[c];   \
                                                                                                  \
				m2[c] += x * x;                                                   \
			}                                                                         \
		}                                                                                 \
		for (int64_t c = 0; c < cols; c++)                                                \
			moments_join(&acc[c], (double)rows, mean[c], m2[c]);                      \
	}                                                                                         \
                                                                                                  \
	static void moments_##d##_rows(void *acc, const char *p, int64_t rows, int64_t rs,        \
				       int64_t cols, int64_t cs)                                  \
	{                                                                                         \
		if (!rows)                                                                        \
			return;                                                                   \
		for (int64_t c = 0; c < cols; c += CHUNK / 8) {                                   \
			int64_t n = cols - c < CHUNK / 8 ? cols - c : CHUNK / 8;                  \
                                                                                                  \
			if (cs == sizeof(T))                                                      \
				moments_##d##_some((struct moments *)acc + c, p + c * cs, rows,   \
						   rs, n, sizeof(T));                             \
			else                                                                      \
				moments_##d##_some((struct moments *)acc + c, p + c * cs, rows,   \
						   rs, n, cs);                                    \
		}                                                                                 \
	}                                                                                         \
                                                                                                  \
	EACH_LINE(moments_##d, sizeof(struct moments))                                            \
                                                                                                  \
	static const struct reducer moments_##d = {                                               \
		sizeof(struct moments),                                                           \
		D,                                                                                \
		TENSOR_F64,                                                                       \
		moments_clear,                                                                    \
		moments_combine,                                                                  \
		moments_##d##_rows,                                                               \
		moments_##d##_lines,                                                              \
	};
MOMENTS(f32, float, TENSOR_F32)
MOMENTS(f64, double, TENSOR_F64)

/* Of complex numbers: squared absolute values of distances. */
struct complex_moments {
	double n;
	double complex mean;
	double m2;
};

static void complex_clear(void *acc, int64_t n)
{
	memset(acc, 0, n * sizeof(struct complex_moments));
}

static double square(double complex z)
{
	return __real__ z * __real__ z + __imag__ z * __imag__ z;
}

static void complex_combine(void *acc, const void *other, int64_t n)
{
	struct complex_moments *a = acc;
	const struct complex_moments *b = other;

	for (int64_t i = 0; i < n; i++) {
		double total = a[i].n + b[i].n;
		double complex delta = b[i].mean - a[i].mean;

		if (!b[i].n)
			continue;
		a[i].mean += delta * (b[i].n / total);
		a[i].m2 += b[i].m2 + square(delta) * (a[i].n * b[i].n / total);
		a[i].n = total;
	}
}

static void complex_line(void *acc, const char *p, int64_t n, int64_t s)
{
	struct complex_moments m = { .n = (double)n };

	if (!n)
		return;
	for (int64_t i = 0; i < n; i++)
		m.mean += *(const double complex *)(p + i * s);
	m.mean /= (double)n;
	for (int64_t i = 0; i < n; i++)
		m.m2 += square(*(const double complex *)(p + i * s) - m.mean);
	complex_combine(acc, &m, 1);
}

static void complex_rows(void *acc, const char *p, int64_t rows, int64_t rs, int64_t cols,
			 int64_t cs)
{
	for (int64_t c = 0; c < cols; c++)
		complex_line((struct complex_moments *)acc + c, p + c * cs, rows, rs);
}

EACH_LINE(complex, sizeof(struct complex_moments))

static const struct reducer moments_complex = {
	sizeof(struct complex_moments),
	TENSOR_C128,
	TENSOR_F64,
	complex_clear,
	complex_combine,
	complex_rows,
	complex_lines,
};

static void complex_variance(void *result, const void *acc, int64_t n, int64_t count, double p)
{
	const struct complex_moments *a = acc;
	double rest = (double)count - p > 0 ? (double)count - p : 0;

	for (int64_t i = 0; i < n; i++)
		((double *)result)[i] = a[i].m2 / rest;
}

static void complex_deviation(void *result, const void *acc, int64_t n, int64_t count, double p)
{
	complex_variance(result, acc, n, count, p);
	for (int64_t i = 0; i < n; i++)
		((double *)result)[i] = sqrt(((double *)result)[i]);
}

/* p is the correction: what is taken from the count. */
static void variance(void *result, const void *acc, int64_t n, int64_t count, double p)
{
	const struct moments *a = acc;
	double rest = (double)count - p > 0 ? (double)count - p : 0;

	for (int64_t i = 0; i < n; i++)
		((double *)result)[i] = a[i].m2 / rest;
}

static void deviation(void *result, const void *acc, int64_t n, int64_t count, double p)
{
	const struct moments *a = acc;
	double rest = (double)count - p > 0 ? (double)count - p : 0;

	for (int64_t i = 0; i < n; i++)
		((double *)result)[i] = sqrt(a[i].m2 / rest);
}

static int moments(const char *name, tensor *out, const tensor *self, uint32_t dims, double p,
		   bool root)
{
	struct reduction what = { .finish = root ? deviation : variance, .p = p };

	if (unlikely(dtype_is_integral(self->dtype)))
		return kernel_no_dtype(name, self->dtype, "cpu");
	what.r = self->dtype == TENSOR_F64 ? &moments_f64 : &moments_f32;
	if (dtype_is_complex(self->dtype)) {
		what.r = &moments_complex;
		what.finish = root ? complex_deviation : complex_variance;
	}
	return CPU_NAME(reduce)(&what, out, self, dims);
}

static int cpu_var(tensor *out, const tensor *self, uint32_t dims, double correction)
{
	return moments("var", out, self, dims, correction, false);
}

static int cpu_std(tensor *out, const tensor *self, uint32_t dims, double correction)
{
	return moments("std", out, self, dims, correction, true);
}

/* ---- logsumexp ---- */

/* max is -infinity and sum zero for no element. What is not finite stays out of the exponent. */
#define LOGSUMEXP(d, T, D, V, N, EXPV, EXP, LOG)                                                   \
	struct lse_##d {                                                                           \
		T max, sum;                                                                        \
	};                                                                                         \
                                                                                                   \
	static void lse_##d##_clear(void *acc, int64_t n)                                          \
	{                                                                                          \
		for (int64_t i = 0; i < n; i++)                                                    \
			((struct lse_##d *)acc)[i] = (struct lse_##d){ (T)-INFINITY, 0 };          \
	}                                                                                          \
                                                                                                   \
	static void lse_##d##_join(struct lse_##d *a, T max, T sum)                                \
	{                                                                                          \
		T top = (max > a->max) | (max != max) ? max : a->max;                              \
                                                                                                   \
		if (!a->sum && a->max == (T)-INFINITY) {                                           \
			a->sum = sum;                                                              \
		} else if (top - top == 0) {                                                       \
			a->sum = a->sum * EXP(a->max - top) + sum * EXP(max - top);                \
		} else {                                                                           \
			a->sum += sum;                                                             \
		}                                                                                  \
		a->max = top;                                                                      \
	}                                                                                          \
                                                                                                   \
	static void lse_##d##_combine(void *acc, const void *other, int64_t n)                     \
	{                                                                                          \
		const struct lse_##d *b = other;                                                   \
                                                                                                   \
		for (int64_t i = 0; i < n; i++)                                                    \
			lse_##d##_join((struct lse_##d *)acc + i, b[i].max, b[i].sum);             \
	}                                                                                          \
                                                                                                   \
	static void lse_##d##_dense(struct lse_##d *a, const T *x, int64_t n)                      \
	{                                                                                          \
		V none = (V){ 0 } - (T)INFINITY, top = none, total = { 0 };                        \
		T max, lane[N], sum = 0;                                                           \
		int64_t whole = n / N * N, rest = n - whole;                                       \
		vec_part part = vec_part_##d(rest);                                                \
		V last = rest ? vec_load_##d(x + whole, part) : none;                              \
                                                                                                   \
		*(V *)lane = last;                                                                 \
		for (int64_t k = rest; k < N; k++)                                                 \
			lane[k] = (T)-INFINITY;                                                    \
		last = *(V *)lane;                                                                 \
		for (int64_t i = 0; i < whole; i += N)                                             \
			top = vec_max_##d(top, *(const V *)(x + i));                               \
		*(V *)lane = vec_max_##d(top, last);                                               \
		max = lane[0];                                                                     \
		for (int64_t k = 1; k < N; k++)                                                    \
			max = (lane[k] > max) | (lane[k] != lane[k]) ? lane[k] : max;              \
		if (max - max != 0) {                                                              \
			lse_##d##_join(a, max, 1);                                                 \
			return;                                                                    \
		}                                                                                  \
		for (int64_t i = 0; i < whole; i += N)                                             \
			total += EXPV(*(const V *)(x + i) - max);                                  \
		*(V *)lane = total + EXPV(last - max);                                             \
		for (int64_t k = 0; k < N; k++)                                                    \
			sum += lane[k];                                                            \
		lse_##d##_join(a, max, sum);                                                       \
	}                                                                                          \
                                                                                                   \
	static void lse_##d##_line(void *acc, const char *p, int64_t n, int64_t s)                 \
	{                                                                                          \
		_Alignas(64) T buf[CHUNK];                                                         \
                                                                                                   \
		for (int64_t i = 0; i < n; i += CHUNK, p += CHUNK * s) {                           \
			int64_t m = n - i < CHUNK ? n - i : CHUNK;                                 \
			const T *x = (const T *)p;                                                 \
                                                                                                   \
			if (s != sizeof(T)) {                                                      \
				for (int64_t k = 0; k < m; k++)                                    \
					buf[k] = *(const T *)(p + k * s);                          \
				x = buf;                                                           \
			}                                                                          \
			lse_##d##_dense(acc, x, m);                                                \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	/* Columns side by side, at most CHUNK / 4, as many as a whole number of vectors. */       \
	static void lse_##d##_some(struct lse_##d *a, const char *p, int64_t rows, int64_t rs,     \
				   int64_t cols)                                                   \
	{                                                                                          \
		_Alignas(64) T max[CHUNK / 4], sum[CHUNK / 4], e[CHUNK / 4];                       \
		int64_t whole = (cols + N - 1) / N * N;                                            \
                                                                                                   \
		for (int64_t c = 0; c < whole; c++) {                                              \
			max[c] = c < cols ? (T)-INFINITY : 0;                                      \
			sum[c] = e[c] = 0;                                                         \
		}                                                                                  \
		for (int64_t r = 0; r < rows; r++) {                                               \
			const T *x = (const T *)(p + r * rs);                                      \
                                                                                                   \
			for (int64_t c = 0; c < cols; c++)                                         \
				max[c] = (x[c] > max[c]) | (x[c] != x[c]) ? x[c] : max[c];         \
		}                                                                                  \
		for (int64_t r = 0; r < rows; r++) {                                               \
			const T *x = (const T *)(p + r * rs);                                      \
                                                                                                   \
			for (int64_t c = 0; c < cols; c++)                                         \
				e[c] = x[c] - max[c];                                              \
			for (int64_t c = 0; c < whole; c += N)                                     \
				*(V *)(e + c) = EXPV(*(const V *)(e + c));                         \
			for (int64_t c = 0; c < cols; c++)                                         \
				sum[c] += e[c];                                                    \
		}                                                                                  \
		for (int64_t c = 0; c < cols; c++)                                                 \
			lse_##d##_join(&a[c], max[c], max[c] - max[c] == 0 ? sum[c] : 1);          \
	}                                                                                          \
                                                                                                   \
	/* Columns that do not lie side by side. */                                                \
	static void lse_##d##_turned(struct lse_##d *a, const char *p, int64_t rows, int64_t rs,   \
				     int64_t cols, int64_t cs)                                     \
	{                                                                                          \
		T e[16 * CHUNK_COLS];                                                              \
                                                                                                   \
		for (int64_t r = 0; r < rows; r += 16, p += 16 * rs) {                             \
			int64_t n = rows - r < 16 ? rows - r : 16;                                 \
                                                                                                   \
			for (int64_t c = 0; c < cols; c++)                                         \
				for (int64_t k = 0; k < n; k++)                                    \
					e[k * CHUNK_COLS + c] = *(const T *)(p + c * cs + k * rs); \
			lse_##d##_some(a, (const char *)e, n, CHUNK_COLS * sizeof(T), cols);       \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	static void lse_##d##_rows(void *acc, const char *p, int64_t rows, int64_t rs,             \
				   int64_t cols, int64_t cs)                                       \
	{                                                                                          \
		struct lse_##d *a = acc;                                                           \
                                                                                                   \
		for (int64_t c = 0; rows && cs == sizeof(T) && c < cols; c += CHUNK / 4)           \
			lse_##d##_some(a + c, p + c * cs, rows, rs,                                \
				       cols - c < CHUNK / 4 ? cols - c : CHUNK / 4);               \
		for (int64_t c = 0; cs != sizeof(T) && c < cols; c += CHUNK_COLS)                  \
			lse_##d##_turned(a + c, p + c * cs, rows, rs,                              \
					 cols - c < CHUNK_COLS ? cols - c : CHUNK_COLS, cs);       \
	}                                                                                          \
	static void lse_##d##_finish(void *result, const void *acc, int64_t n, int64_t count,      \
				     double p)                                                     \
	{                                                                                          \
		const struct lse_##d *a = acc;                                                     \
                                                                                                   \
		for (int64_t i = 0; i < n; i++)                                                    \
			((T *)result)[i] = a[i].max - a[i].max == 0 ? a[i].max + LOG(a[i].sum) :   \
								      a[i].max;                    \
	}                                                                                          \
                                                                                                   \
	EACH_LINE(lse_##d, sizeof(struct lse_##d))                                                 \
                                                                                                   \
	static const struct reducer lse_##d = {                                                    \
		sizeof(struct lse_##d), D, D, lse_##d##_clear, lse_##d##_combine, lse_##d##_rows,  \
		lse_##d##_lines,                                                                   \
	};
LOGSUMEXP(f32, float, TENSOR_F32, vec_f32, VEC_F32, exp_f32v, expf, logf)
LOGSUMEXP(f64, double, TENSOR_F64, vec_f64, VEC_F64, exp_f64v, exp, log)

static int cpu_logsumexp(tensor *out, const tensor *self, uint32_t dims)
{
	static const struct reduction narrow = { .r = &lse_f32, .finish = lse_f32_finish };
	static const struct reduction wide = { .r = &lse_f64, .finish = lse_f64_finish };

	if (unlikely(dtype_is_complex(self->dtype)))
		return kernel_no_dtype("logsumexp", self->dtype, "cpu");
	return CPU_NAME(reduce)(out->dtype == TENSOR_F64 ? &wide : &narrow, out, self, dims);
}

CPU_KERNELS(K(var), K(std), K(logsumexp))
