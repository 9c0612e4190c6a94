/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Products of few rows of a and a large b whose rows are contiguous, for matmul_float.h: their time is that of reading
 * b. A page of each of some rows of b is read at once; tiles, which read three vectors of each row, miss the TLB for
 * each row and leave the processor's prefetching nothing to follow.
 */
#ifndef TENSOR_MATMUL_FEW_ROWS_H
#define TENSOR_MATMUL_FEW_ROWS_H

#define FEW_ROWS  16			       /* rows of a, at most */
#define FEW_LEAST (1 << 23)		       /* bytes of b, at least */
#define ONE_LEAST (1 << 22)		       /* the same for one row of a */
#define ONE_WIDTH 512			       /* and columns of b */
#define FEW_SUMS  (32768 / (int64_t)sizeof(T)) /* elements of c whose sums stay in a cache */
#define FEW_SPAN  1024 /* rows of b whose products a sum has: errors grow with it */
#define FEW_WIDTH 1024 /* columns of c, at most */
#define ROWS_OF_B 4    /* that are read side by side */

/* Adds products of `rows` rows of b, from row k on, to sums of n columns from column j on. */
static inline __attribute__((always_inline)) void add_rows_of_b(const struct product *p, T *sums,
								int64_t width, int64_t k,
								const int rows, int64_t j,
								int64_t n)
{
	const T *b = (const T *)p->b + k * p->rsb + j, *a = (const T *)p->a + k * p->csa;

	for (int64_t i = 0; i < n; i += LANES) {
		vec_part part = PART(n - i < LANES ? n - i : LANES);
		VEC row[ROWS_OF_B];

#pragma GCC unroll 4
		for (int r = 0; r < rows; r++)
			__builtin_prefetch(b + (r + ROWS_OF_B) * p->rsb + i);
#pragma GCC unroll 4
		for (int r = 0; r < rows; r++)
			row[r] = n - i >= LANES ? *(const VEC *)(b + r * p->rsb + i) :
						  LOAD(b + r * p->rsb + i, part);
		for (int64_t x = 0; x < p->m; x++) {
			T *to = sums + x * width + i;
			VEC sum = { 0 };

			/* Sums of a few products are added: errors are smaller than in one long sum. */
#pragma GCC unroll 4
			for (int r = 0; r < rows; r++)
				sum = MULADD(sum, BROADCAST(a[x * p->rsa + r * p->csa]), row[r]);
			*(VEC *)to += sum;
		}
	}
}

/* sums = products of the rows of b from k to end. */
static inline __attribute__((always_inline)) void sum_few_rows(const struct product *p, T *sums,
							       int64_t width, int64_t k,
							       int64_t end, int64_t j, int64_t n)
{
	memset(sums, 0, p->m * width * sizeof(T));
	for (; k + ROWS_OF_B <= end; k += ROWS_OF_B)
		add_rows_of_b(p, sums, width, k, ROWS_OF_B, j, n);
	for (; k < end; k++)
		add_rows_of_b(p, sums, width, k, 1, j, n);
}

static void few_rows_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct product *p = ctx;
	const T alpha = (T)p->alpha, beta = (T)p->beta;
	int64_t width = FEW_SUMS / p->m < FEW_WIDTH ? FEW_SUMS / p->m / LANES * LANES : FEW_WIDTH;
	_Alignas(64) T totals[FEW_SUMS], sums[FEW_SUMS];

	for (int64_t j = begin; j < end; j += width) {
		int64_t n = end - j < width ? end - j : width;

		memset(totals, 0, p->m * width * sizeof(T));
		for (int64_t k = 0; k < p->k; k += FEW_SPAN) {
			sum_few_rows(p, sums, width, k, least(k + FEW_SPAN, p->k), j, n);
			for (int64_t i = 0; i < p->m * width; i += LANES)
				*(VEC *)(totals + i) += *(const VEC *)(sums + i);
		}
		for (int64_t x = 0; x < p->m; x++) {
			T *c = (T *)p->c + x * p->rsc + j;
			const T *add = added(p, c, j);

			for (int64_t i = 0; i < n; i += LANES) {
				vec_part lanes = PART(least(n - i, LANES));
				VEC r = rounded(*(const VEC *)(totals + x * width + i) * alpha);

				if (beta != 0)
					r += LOAD(add + i, lanes) * beta;
				STORE(c + i, lanes, r);
			}
		}
		product_finish(p, 0, j, p->m, n);
	}
}

static bool suits_few_rows(const struct product *p)
{
	if (p->m > FEW_ROWS || p->csb != 1 || p->csc != 1)
		return false;
	return p->n >= (p->m == 1 ? ONE_WIDTH : FEW_WIDTH) &&
	       p->k * p->n * (int64_t)sizeof(T) >= (p->m == 1 ? ONE_LEAST : FEW_LEAST);
}

/* Chunks of few columns would read less than a page of a row. One thread reads whole rows. */
static __attribute__((noinline)) int product_by_few_rows(const struct product *p)
{
	parallel_for(0, p->n, tensor_get_num_threads() == 1 ? FEW_WIDTH : FEW_WIDTH / 2,
		     few_rows_chunk, (void *)p);
	return 0;
}

#endif
