/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Results of products of f16 and bf16, for matmul_reduced_float.h: sums in f32 are scaled and rounded once. */
#ifndef TENSOR_MATMUL_REDUCED_ROUND_H
#define TENSOR_MATMUL_REDUCED_ROUND_H

#include "kernels/cpu/linalg/matmul_reduced_pack.h"

/* n lanes of c = round(beta * add + alpha * sum); add may be c. */
static inline void round_lanes(const struct reduced_product *h, uint16_t *c, const uint16_t *add,
			       VEC sum, int64_t n)
{
	const T alpha = (T)h->p->alpha, beta = (T)h->p->beta;

	sum = rounded(sum * alpha);
	if (beta != 0)
		sum += widen(h, vec_load_reduced_float(add, n)) * beta;
	if (n == LANES)
		*(vec_reduced_float *)c = narrow(h, sum);
	else
		vec_store_reduced_float(c, narrow(h, sum), n);
}

/* What beta multiplies for the elements of c from column j on: those, or the bias. */
static inline const uint16_t *added(const struct product *p, const uint16_t *c, int64_t j)
{
	return p->bias ? (const uint16_t *)p->bias + j : c;
}

/* The same for a c whose rows are not contiguous, from column j on. */
static inline void round_scattered(const struct reduced_product *h, uint16_t *c, int64_t j, VEC sum,
				   int64_t n)
{
	int64_t csc = h->p->csc;
	uint16_t line[LANES];

	for (int64_t i = 0; i < n; i++)
		line[i] = c[i * csc];
	round_lanes(h, line, added(h->p, line, j), sum, n);
	for (int64_t i = 0; i < n; i++)
		c[i * csc] = line[i];
}

/* Writes m rows of n sums, `pitch` apart, to c at (row, column). */
static void round_rows(const struct reduced_product *h, const T *sums, int64_t pitch, int64_t row,
		       int64_t column, int64_t m, int64_t n)
{
	const struct product *p = h->p;
	uint16_t *c = (uint16_t *)p->c + row * p->rsc + column * p->csc;

	for (int64_t i = 0; i < m; i++, c += p->rsc, sums += pitch)
		for (int64_t j = 0; j < n; j += LANES) {
			int64_t lanes = least(n - j, LANES);

			if (p->csc == 1)
				round_lanes(h, c + j, added(p, c, column) + j,
					    *(const VEC *)(sums + j), lanes);
			else
				round_scattered(h, c + j * p->csc, column + j,
						*(const VEC *)(sums + j), lanes);
		}
}

/* Prefetches rows of c, which are read after the sums are computed. */
static void fetch_rows(const struct reduced_product *h, int64_t row, int64_t column, int64_t m,
		       int64_t n)
{
	const struct product *p = h->p;
	const uint16_t *c = (const uint16_t *)p->c + row * p->rsc + column;

	for (int64_t i = 0; i < m && p->csc == 1; i++, c += p->rsc) {
		__builtin_prefetch(c, 1);
		__builtin_prefetch(c + n - 1, 1);
	}
}

#endif
