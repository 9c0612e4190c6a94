// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Distances between rows, and their gradients. Every pair is computed from its differences, not
 * from products of rows: near points keep all their digits.
 */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/distance.h"
#include "iter/parallel.h"

#include <math.h>

#define SUMS 16 /* partial sums along a row */

struct pairs {
	void *out;
	const void *x, *y, *grad, *distance;
	int64_t n, m, length;
	double p;
};

/* ACC(s, v): s and the absolute difference v. */
#define ADD_NONZERO(s, v) ((s) + ((v) != 0))
#define ADD_VALUE(s, v)	  ((s) + (v))
#define ADD_SQUARE(s, v)  ((s) + (v) * (v))
#define GREATER(s, v)	  ((v) > (s) || (v) != (v) ? (v) : (s))

#define ROW(T, NAME, ACC, JOIN, LAST)                              \
	static T NAME(const T *x, const T *y, int64_t n, double p) \
	{                                                          \
		T sum[SUMS] = { 0 };                               \
		int64_t i = 0;                                     \
                                                                   \
		for (; i + SUMS <= n; i += SUMS)                   \
			for (int j = 0; j < SUMS; j++) {           \
				T v = x[i + j] - y[i + j];         \
                                                                   \
				v = v < 0 ? -v : v;                \
				sum[j] = ACC(sum[j], v);           \
			}                                          \
		for (int j = 0; i + j < n; j++) {                  \
			T v = x[i + j] - y[i + j];                 \
                                                                   \
			v = v < 0 ? -v : v;                        \
			sum[j] = ACC(sum[j], v);                   \
		}                                                  \
		for (int s = SUMS / 2; s; s /= 2)                  \
			for (int j = 0; j < s; j++)                \
				sum[j] = JOIN(sum[j], sum[j + s]); \
		return LAST;                                       \
	}

#define DISTANCE(d, T, D)                                                                          \
	ROW(T, zero_##d, ADD_NONZERO, ADD_VALUE, sum[0])                                           \
	ROW(T, one_##d, ADD_VALUE, ADD_VALUE, sum[0])                                              \
	ROW(T, two_##d, ADD_SQUARE, ADD_VALUE, (T)sqrt(sum[0]))                                    \
	ROW(T, infinite_##d, GREATER, GREATER, sum[0])                                             \
	static T power_##d(const T *x, const T *y, int64_t n, double p)                            \
	{                                                                                          \
		double sum = 0;                                                                    \
                                                                                                   \
		for (int64_t i = 0; i < n; i++)                                                    \
			sum += pow(fabs((double)x[i] - (double)y[i]), p);                          \
		return (T)pow(sum, 1 / p);                                                         \
	}                                                                                          \
	typedef T (*row_##d)(const T *, const T *, int64_t, double);                               \
	static row_##d pick_##d(double p)                                                          \
	{                                                                                          \
		return p == 0	? zero_##d :                                                       \
		       p == 1	? one_##d :                                                        \
		       p == 2	? two_##d :                                                        \
		       isinf(p) ? infinite_##d :                                                   \
				  power_##d;                                                       \
	}                                                                                          \
	/* rows begin to end of all batches */                                                     \
	static void cdist_##d(int64_t begin, int64_t end, void *ctx)                               \
	{                                                                                          \
		const struct pairs *t = ctx;                                                       \
		row_##d fn = pick_##d(t->p);                                                       \
                                                                                                   \
		for (int64_t r = begin; r < end; r++)                                              \
			for (int64_t j = 0; j < t->m; j++)                                         \
				((T *)t->out)[r * t->m + j] =                                      \
					fn((const T *)t->x + r * t->length,                        \
					   (const T *)t->y + (r / t->n * t->m + j) * t->length,    \
					   t->length, t->p);                                       \
	}                                                                                          \
	static void pdist_##d(int64_t begin, int64_t end, void *ctx)                               \
	{                                                                                          \
		const struct pairs *t = ctx;                                                       \
		row_##d fn = pick_##d(t->p);                                                       \
                                                                                                   \
		for (int64_t i = begin; i < end; i++) {                                            \
			T *out = (T *)t->out + i * t->n - i * (i + 1) / 2;                         \
                                                                                                   \
			for (int64_t j = i + 1; j < t->n; j++)                                     \
				*out++ = fn((const T *)t->x + i * t->length,                       \
					    (const T *)t->x + j * t->length, t->length, t->p);     \
		}                                                                                  \
	}                                                                                          \
	/* to += g times the derivative of the distance of x from y */                             \
	static void slope_##d(T *to, T g, const T *x, const T *y, int64_t n, double p, T distance) \
	{                                                                                          \
		for (int64_t i = 0; i < n; i++) {                                                  \
			double v = (double)x[i] - (double)y[i], a = fabs(v), s;                    \
                                                                                                   \
			if (p == 0 || (distance == 0 && p != 1) || v == 0)                         \
				continue;                                                          \
			s = v > 0 ? 1 : -1;                                                        \
			if (p == 2)                                                                \
				s = v / distance;                                                  \
			else if (isinf(p))                                                         \
				s = (T)a == distance ? s : 0;                                      \
			else if (p != 1)                                                           \
				s *= pow(a / (double)distance, p - 1);                             \
			to[i] += (T)(g * s);                                                       \
		}                                                                                  \
	}                                                                                          \
	static void cdist_dx_##d(int64_t begin, int64_t end, void *ctx)                            \
	{                                                                                          \
		const struct pairs *t = ctx;                                                       \
                                                                                                   \
		for (int64_t r = begin; r < end; r++) {                                            \
			T *dx = (T *)t->out + r * t->length;                                       \
                                                                                                   \
			memset(dx, 0, t->length * sizeof(T));                                      \
			for (int64_t j = 0; j < t->m; j++)                                         \
				slope_##d(dx, ((const T *)t->grad)[r * t->m + j],                  \
					  (const T *)t->x + r * t->length,                         \
					  (const T *)t->y + (r / t->n * t->m + j) * t->length,     \
					  t->length, t->p,                                         \
					  ((const T *)t->distance)[r * t->m + j]);                 \
		}                                                                                  \
	}                                                                                          \
	static void pdist_dx_##d(int64_t begin, int64_t end, void *ctx)                            \
	{                                                                                          \
		const struct pairs *t = ctx;                                                       \
                                                                                                   \
		for (int64_t i = begin; i < end; i++) {                                            \
			T *dx = (T *)t->out + i * t->length;                                       \
                                                                                                   \
			memset(dx, 0, t->length * sizeof(T));                                      \
			for (int64_t j = 0; j < t->n; j++) {                                       \
				int64_t a = i < j ? i : j, b = i < j ? j : i;                      \
				int64_t k = a * t->n - a * (a + 1) / 2 + b - a - 1;                \
                                                                                                   \
				if (i != j)                                                        \
					slope_##d(dx, ((const T *)t->grad)[k],                     \
						  (const T *)t->x + i * t->length,                 \
						  (const T *)t->x + j * t->length, t->length,      \
						  t->p, ((const T *)t->distance)[k]);              \
			}                                                                          \
		}                                                                                  \
	}
DTYPES_FLOAT(DISTANCE)

static int run(const char *name, const struct pairs *t, int64_t rows, enum tensor_dtype dtype,
	       parallel_fn f32, parallel_fn f64)
{
	int64_t work = t->m * t->length + 1,
		grain = ITER_GRAIN / (work < ITER_GRAIN ? work : ITER_GRAIN);

	if (dtype != TENSOR_F32 && dtype != TENSOR_F64)
		return kernel_no_dtype(name, dtype, "cpu");
	parallel_for(0, rows, grain, dtype == TENSOR_F32 ? f32 : f64, (void *)t);
	return 0;
}

static int cpu_cdist(tensor *out, const tensor *x, const tensor *y, double p)
{
	const struct pairs t = { .out = out->data,
				 .x = x->data,
				 .y = y->data,
				 .n = x->sizes[1],
				 .m = y->sizes[1],
				 .length = x->sizes[2],
				 .p = p };

	return run("cdist", &t, x->sizes[0] * t.n, x->dtype, cdist_f32, cdist_f64);
}

static int cpu_cdist_backward(tensor *dx, const tensor *grad, const tensor *x, const tensor *y,
			      double p, const tensor *distance)
{
	const struct pairs t = { .out = dx->data,
				 .x = x->data,
				 .y = y->data,
				 .grad = grad->data,
				 .distance = distance->data,
				 .n = x->sizes[1],
				 .m = y->sizes[1],
				 .length = x->sizes[2],
				 .p = p };

	return run("cdist_backward", &t, x->sizes[0] * t.n, x->dtype, cdist_dx_f32, cdist_dx_f64);
}

static int cpu_pdist(tensor *out, const tensor *x, double p)
{
	const struct pairs t = { .out = out->data,
				 .x = x->data,
				 .n = x->sizes[0],
				 .m = x->sizes[0],
				 .length = x->sizes[1],
				 .p = p };

	return run("pdist", &t, t.n, x->dtype, pdist_f32, pdist_f64);
}

static int cpu_pdist_backward(tensor *dx, const tensor *grad, const tensor *x, double p,
			      const tensor *distance)
{
	const struct pairs t = { .out = dx->data,
				 .x = x->data,
				 .grad = grad->data,
				 .distance = distance->data,
				 .n = x->sizes[0],
				 .m = x->sizes[0],
				 .length = x->sizes[1],
				 .p = p };

	return run("pdist_backward", &t, t.n, x->dtype, pdist_dx_f32, pdist_dx_f64);
}

CPU_KERNELS(K(cdist), K(cdist_backward), K(pdist), K(pdist_backward))
