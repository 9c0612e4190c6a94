/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Products of contiguous rows of a and 5 or more columns of b, but less than a vector, for matmul_float.h: dot products,
 * of some rows and some columns at a time. Vectors of a tile of c would not be full. Up to 4 columns, the transposed
 * product is computed.
 */
#ifndef TENSOR_MATMUL_FEW_COLUMNS_H
#define TENSOR_MATMUL_FEW_COLUMNS_H

#define FEW_COLUMNS_ROWS 32		     /* rows of a, at least */
#define DOTS_A		 (LANES < 4 ? 2 : 4) /* rows of a in a tile */
#define DOTS_B		 (LANES / DOTS_A) /* columns of b, so that sum_rows() adds the sums of all lanes */
#define DOTS_SPAN	 (128 * LANES) /* products of a sum: errors grow with it */

struct few_columns {
	const struct product *p;
	const T *b; /* transposed: p->k contiguous elements of each column */
};

/*
 * The dot products of rows i to i + DOTS_A - 1 of a and columns from j on, over k from `at` to `end`; numbers beyond the last are
 * those of the last.
 */
static inline VEC dots_of_span(const struct few_columns *f, int64_t i, int64_t j, int64_t at,
			       int64_t end)
{
	const struct product *p = f->p;
	int64_t whole = end - (end - at) % LANES;
	vec_part part = PART(end - whole);
	const T *a[DOTS_A], *b[DOTS_B];
	VEC sum[LANES], x[DOTS_A], y;

#pragma GCC unroll 4
	for (int r = 0; r < DOTS_A; r++)
		a[r] = (const T *)p->a + least(i + r, p->m - 1) * p->rsa;
#pragma GCC unroll 4
	for (int c = 0; c < DOTS_B; c++)
		b[c] = f->b + least(j + c, p->n - 1) * p->k;
#pragma GCC unroll 16
	for (int s = 0; s < LANES; s++)
		sum[s] = (VEC){ 0 };
	for (; at < whole; at += LANES) {
#pragma GCC unroll 4
		for (int r = 0; r < DOTS_A; r++)
			x[r] = *(const VEC *)(a[r] + at);
#pragma GCC unroll 4
		for (int c = 0; c < DOTS_B; c++) {
			y = *(const VEC *)(b[c] + at);
#pragma GCC unroll 4
			for (int r = 0; r < DOTS_A; r++)
				sum[r * DOTS_B + c] += x[r] * y;
		}
	}
	if (whole < end) {
#pragma GCC unroll 4
		for (int r = 0; r < DOTS_A; r++)
			x[r] = LOAD(a[r] + whole, part);
#pragma GCC unroll 4
		for (int c = 0; c < DOTS_B; c++) {
			y = LOAD(b[c] + whole, part);
#pragma GCC unroll 4
			for (int r = 0; r < DOTS_A; r++)
				sum[r * DOTS_B + c] += x[r] * y;
		}
	}
	return sum_rows(sum);
}

static inline VEC dots_of_tile(const struct few_columns *f, int64_t i, int64_t j)
{
	VEC total = { 0 };

	for (int64_t at = 0; at < f->p->k; at += DOTS_SPAN)
		total += dots_of_span(f, i, j, at, least(at + DOTS_SPAN, f->p->k));
	return total;
}

static void few_columns_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct few_columns *f = ctx;
	const struct product *p = f->p;
	T alpha = (T)p->alpha, beta = (T)p->beta;

	for (int64_t i = begin; i < end; i += DOTS_A)
		for (int64_t j = 0; j < p->n; j += DOTS_B) {
			VEC sums = dots_of_tile(f, i, j) * alpha;

			for (int s = 0; s < LANES; s++) {
				int64_t x = i + s / DOTS_B, y = j + s % DOTS_B;
				T *c = (T *)p->c + x * p->rsc + y * p->csc;

				if (x < end && y < p->n)
					*c = (beta != 0 ? *added(p, c, y) * beta : 0) + sums[s];
			}
		}
	product_finish(p, begin, 0, end - begin, p->n);
}

static bool suits_few_columns(const struct product *p)
{
	return p->n > 4 && p->n / LANES == 0 && p->m >= FEW_COLUMNS_ROWS && p->csa == 1;
}

static __attribute__((noinline)) int product_by_few_columns(const struct product *p)
{
	int64_t grain = 4 * DOT_WORK / (p->n * p->k) / DOTS_A * DOTS_A;
	struct tensor_storage *mem =
		storage_alloc(TENSOR_DEVICE_CPU, p->n * p->k * sizeof(T), false);
	struct few_columns f = { .p = p };
	T *b;

	if (!mem)
		return -thread()->error.code;
	f.b = b = mem->data;
	for (int64_t k = 0; k < p->k; k++)
		for (int64_t j = 0; j < p->n; j++)
			b[j * p->k + k] = ((const T *)p->b)[k * p->rsb + j * p->csb];
	parallel_for(0, p->m, grain < DOTS_A ? DOTS_A : grain, few_columns_chunk, &f);
	storage_put(mem);
	return 0;
}

#endif
