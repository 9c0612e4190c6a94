// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Arithmetic of sparse tensors: rows of a product with a dense matrix, single elements of a dense
 * product, sums of what stands at one place. A row of the result belongs to one chunk, which adds
 * in the order of the elements: the bits do not depend on the threads.
 */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"
#include "kernels/cpu/simd/vec.h"

struct spmm {
	int64_t m, n, lda, ldo;
	const int64_t *crow, *col;
	const void *values, *dense;
	void *out;
	double alpha, beta;
};

/* ---- CSR times dense ---- */

/* Columns j to j + count of row i, at most WIDTH. */
#define WIDTH 16

#define ROWS(d, T, D)                                                                      \
	static void columns_##d(const struct spmm *s, int64_t i, int64_t j, int64_t count) \
	{                                                                                  \
		const T *values = s->values, *dense = (const T *)s->dense + j;             \
		T *out = (T *)s->out + i * s->ldo + j, sum[WIDTH] = { 0 };                 \
		T alpha = (T)s->alpha, beta = (T)s->beta;                                  \
                                                                                           \
		for (int64_t p = s->crow[i]; p < s->crow[i + 1]; p++) {                    \
			const T *row = dense + s->col[p] * s->lda;                         \
			T v = values[p];                                                   \
                                                                                           \
			for (int64_t k = 0; k < count; k++)                                \
				sum[k] = (T)(sum[k] + v * row[k]);                         \
		}                                                                          \
		for (int64_t k = 0; k < count; k++)                                        \
			out[k] = (T)(s->beta == 0 ? alpha * sum[k] :                       \
						    beta * out[k] + alpha * sum[k]);       \
	}                                                                                  \
	static void rows_##d(int64_t begin, int64_t end, void *ctx)                        \
	{                                                                                  \
		const struct spmm *s = ctx;                                                \
                                                                                           \
		for (int64_t i = begin; i < end; i++)                                      \
			for (int64_t j = 0; j < s->n; j += WIDTH)                          \
				columns_##d(s, i, j, s->n - j < WIDTH ? s->n - j : WIDTH); \
	}
DTYPES_INT(ROWS)
DTYPES_COMPLEX(ROWS)

/*
 * Floating point keeps four vectors of sums in registers; what is left of a row's columns goes by
 * single vectors, the last of them in part.
 */
#define ROWS_VECTOR(d, T, W)                                                                   \
	static void finish_##d(const struct spmm *s, T *out, vec_part part, vec_##d sum)       \
	{                                                                                      \
		sum *= (T)s->alpha;                                                            \
		if (s->beta != 0)                                                              \
			sum += (T)s->beta * vec_load_##d(out, part);                           \
		vec_store_##d(out, part, sum);                                                 \
	}                                                                                      \
	static void four_##d(const struct spmm *s, int64_t begin, int64_t end, const T *dense, \
			     T *out)                                                           \
	{                                                                                      \
		const T *values = s->values;                                                   \
		vec_##d a = { 0 }, b = { 0 }, c = { 0 }, e = { 0 };                            \
		vec_part all = vec_part_##d(W);                                                \
                                                                                               \
		for (int64_t p = begin; p < end; p++) {                                        \
			const vec_##d *row = (const vec_##d *)(dense + s->col[p] * s->lda);    \
			T v = values[p];                                                       \
                                                                                               \
			a += v * row[0];                                                       \
			b += v * row[1];                                                       \
			c += v * row[2];                                                       \
			e += v * row[3];                                                       \
		}                                                                              \
		finish_##d(s, out, all, a);                                                    \
		finish_##d(s, out + W, all, b);                                                \
		finish_##d(s, out + 2 * W, all, c);                                            \
		finish_##d(s, out + 3 * W, all, e);                                            \
	}                                                                                      \
	static void one_##d(const struct spmm *s, int64_t begin, int64_t end, const T *dense,  \
			    T *out, int64_t count)                                             \
	{                                                                                      \
		const T *values = s->values;                                                   \
		vec_part part = vec_part_##d(count);                                           \
		vec_##d sum = { 0 };                                                           \
                                                                                               \
		for (int64_t p = begin; p < end; p++)                                          \
			sum += values[p] * vec_load_##d(dense + s->col[p] * s->lda, part);     \
		finish_##d(s, out, part, sum);                                                 \
	}                                                                                      \
	/* One column: a dot product with elements gathered, four sums for four in flight. */  \
	static void dot_##d(const struct spmm *s, int64_t begin, int64_t end, T *out)          \
	{                                                                                      \
		const T *values = s->values, *dense = s->dense;                                \
		T sum[4] = { 0 };                                                              \
		int64_t p = begin;                                                             \
                                                                                               \
		for (; p + 4 <= end; p += 4)                                                   \
			for (int k = 0; k < 4; k++)                                            \
				sum[k] += values[p + k] * dense[s->col[p + k] * s->lda];       \
		for (; p < end; p++)                                                           \
			sum[0] += values[p] * dense[s->col[p] * s->lda];                       \
		sum[0] = (T)s->alpha * (sum[0] + sum[1] + (sum[2] + sum[3]));                  \
		*out = s->beta == 0 ? sum[0] : (T)s->beta * *out + sum[0];                     \
	}                                                                                      \
	static void rows_##d(int64_t begin, int64_t end, void *ctx)                            \
	{                                                                                      \
		const struct spmm *s = ctx;                                                    \
                                                                                               \
		for (int64_t i = begin; i < end; i++) {                                        \
			int64_t first = s->crow[i], last = s->crow[i + 1], j = 0;              \
			const T *dense = s->dense;                                             \
			T *out = (T *)s->out + i * s->ldo;                                     \
                                                                                               \
			if (s->n == 1)                                                         \
				dot_##d(s, first, last, out), j = 1;                           \
			for (; j + 4 * W <= s->n; j += 4 * W)                                  \
				four_##d(s, first, last, dense + j, out + j);                  \
			for (; j < s->n; j += W)                                               \
				one_##d(s, first, last, dense + j, out + j,                    \
					s->n - j < W ? s->n - j : W);                          \
		}                                                                              \
	}
ROWS_VECTOR(f32, float, VEC_F32)
ROWS_VECTOR(f64, double, VEC_F64)

/* out[m, n] = beta out + alpha S dense: S by crow, col and values; rows of both contiguous. */
static int cpu_spmm(tensor *out, const int64_t *crow, const int64_t *col, const tensor *values,
		    const tensor *dense, double alpha, double beta)
{
	static const parallel_fn rows[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = rows_##d,
		DTYPES_NUMBER(ENTRY) DTYPES_COMPLEX(ENTRY)
#undef ENTRY
	};
	struct spmm s = { .m = out->sizes[0],
			  .n = out->sizes[1],
			  .lda = dense->strides[0],
			  .ldo = out->strides[0],
			  .crow = crow,
			  .col = col,
			  .values = values->data,
			  .dense = dense->data,
			  .out = out->data,
			  .alpha = alpha,
			  .beta = beta };
	int64_t work;

	if (!rows[out->dtype])
		return kernel_no_dtype("spmm", out->dtype, "cpu");
	if (!s.m || !s.n)
		return 0;
	work = (crow[s.m] / s.m + 1) * s.n;
	parallel_for(0, s.m, work < ITER_GRAIN ? ITER_GRAIN / work : 1, rows[out->dtype], &s);
	return 0;
}

/* ---- single elements of a product ---- */

struct sampled {
	const int64_t *row, *col;
	int64_t k, lda, ldb;
	const void *a, *b;
	void *out;
};

#define SAMPLED(d, T, D)                                                            \
	static void sampled_##d(int64_t begin, int64_t end, void *ctx)              \
	{                                                                           \
		const struct sampled *s = ctx;                                      \
                                                                                    \
		for (int64_t p = begin; p < end; p++) {                             \
			const T *a = (const T *)s->a + s->row[p] * s->lda;          \
			const T *b = (const T *)s->b + s->col[p] * s->ldb;          \
			T sum[WIDTH] = { 0 };                                       \
			int64_t j = 0;                                              \
                                                                                    \
			for (; j + WIDTH <= s->k; j += WIDTH)                       \
				for (int k = 0; k < WIDTH; k++)                     \
					sum[k] = (T)(sum[k] + a[j + k] * b[j + k]); \
			for (; j < s->k; j++)                                       \
				sum[j % WIDTH] = (T)(sum[j % WIDTH] + a[j] * b[j]); \
			for (int k = 1; k < WIDTH; k++)                             \
				sum[0] = (T)(sum[0] + sum[k]);                      \
			((T *)s->out)[p] = sum[0];                                  \
		}                                                                   \
	}
DTYPES_NUMBER(SAMPLED)
DTYPES_COMPLEX(SAMPLED)

/* out[p] = the dot product of row row[p] of a and row col[p] of b; contiguous rows. */
static int cpu_sampled_mm(tensor *out, const int64_t *row, const int64_t *col, const tensor *a,
			  const tensor *b)
{
	static const parallel_fn loops[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = sampled_##d,
		DTYPES_NUMBER(ENTRY) DTYPES_COMPLEX(ENTRY)
#undef ENTRY
	};
	struct sampled s = { row,	    col,     a->sizes[1], a->strides[0],
			     b->strides[0], a->data, b->data,	  out->data };
	int64_t work = s.k + 1;

	if (!loops[out->dtype])
		return kernel_no_dtype("sampled_mm", out->dtype, "cpu");
	parallel_for(0, out->numel, work < ITER_GRAIN ? ITER_GRAIN / work : 1, loops[out->dtype],
		     &s);
	return 0;
}

/* ---- elements of one place ---- */

struct runs {
	const int64_t *starts, *order;
	int64_t block;
	const void *values;
	void *out;
};

#define SUM_RUNS(d, T, ADD)                                                                  \
	static void runs_##d(int64_t begin, int64_t end, void *ctx)                          \
	{                                                                                    \
		const struct runs *s = ctx;                                                  \
                                                                                             \
		for (int64_t r = begin; r < end; r++) {                                      \
			T *out = (T *)s->out + r * s->block;                                 \
			int64_t p = s->starts[r];                                            \
                                                                                             \
			memcpy(out, (const T *)s->values + s->order[p] * s->block,           \
			       s->block * sizeof(T));                                        \
			for (p++; p < s->starts[r + 1]; p++) {                               \
				const T *in = (const T *)s->values + s->order[p] * s->block; \
                                                                                             \
				for (int64_t k = 0; k < s->block; k++)                       \
					out[k] = (T)(out[k] ADD in[k]);                      \
			}                                                                    \
		}                                                                            \
	}
#define SUM_RUNS_NUMBER(d, T, D) SUM_RUNS(d, T, +)
DTYPES_NUMBER(SUM_RUNS_NUMBER)
DTYPES_COMPLEX(SUM_RUNS_NUMBER)
SUM_RUNS(b8, uint8_t, |)

/* out[r] = the sum of values[order[p]] for p from starts[r] to starts[r + 1], in this order. */
static int cpu_sum_runs(tensor *out, const tensor *values, const int64_t *order,
			const int64_t *starts)
{
	static const parallel_fn loops[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = runs_##d,
		DTYPES_ALL(ENTRY)
#undef ENTRY
	};
	int64_t n = out->sizes[0];
	struct runs s = { starts, order, n ? out->numel / n : 0, values->data, out->data };

	if (!loops[out->dtype])
		return kernel_no_dtype("coalesce", out->dtype, "cpu");
	parallel_for(0, n, s.block < ITER_GRAIN / 4 ? ITER_GRAIN / 4 / (s.block + 1) : 1,
		     loops[out->dtype], &s);
	return 0;
}

CPU_KERNELS(K(spmm), K(sampled_mm), K(sum_runs))
