// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Products of integer matrices, modulo their width. */
#include "kernels/cpu/linalg/matmul.h"

#include "iter/parallel.h"

#define BLOCK 64 /* of k and n */

static int64_t grain(const struct product *p)
{
	int64_t work = p->n * (p->k + 1),
		rows = ITER_GRAIN / (work < ITER_GRAIN ? work : ITER_GRAIN);

	return rows < BLOCK ? BLOCK : rows;
}

/* Rows begin to end of c. b is copied block by block, so that its strides do not matter. */
#define PRODUCT(d, T, D)                                                                         \
	static void block_##d(T *c, int64_t csc, const T *a, int64_t csa, const T *b, int64_t n, \
			      int64_t k, T alpha)                                                \
	{                                                                                        \
		T sum[BLOCK] = { 0 };                                                            \
                                                                                                 \
		for (int64_t p = 0; p < k; p++) {                                                \
			T x = a[p * csa];                                                        \
                                                                                                 \
			for (int64_t j = 0; j < BLOCK; j++)                                      \
				sum[j] = (T)(sum[j] + x * b[p * BLOCK + j]);                     \
		}                                                                                \
		for (int64_t j = 0; j < n; j++)                                                  \
			c[j * csc] = (T)(c[j * csc] + alpha * sum[j]);                           \
	}                                                                                        \
	static void rows_##d(int64_t begin, int64_t end, void *ctx)                              \
	{                                                                                        \
		const struct product *q = ctx;                                                   \
		T alpha = (T)q->alpha_int, beta = (T)q->beta_int;                                \
		T block[BLOCK * BLOCK];                                                          \
                                                                                                 \
		for (int64_t i = begin; i < end; i++) {                                          \
			T *c = (T *)q->c + i * q->rsc;                                           \
                                                                                                 \
			for (int64_t j = 0; j < q->n; j++)                                       \
				c[j * q->csc] = beta ? (T)(beta * c[j * q->csc]) : 0;            \
		}                                                                                \
		for (int64_t j = 0; j < q->n; j += BLOCK)                                        \
			for (int64_t p = 0; p < q->k; p += BLOCK) {                              \
				int64_t n = q->n - j < BLOCK ? q->n - j : BLOCK;                 \
				int64_t k = q->k - p < BLOCK ? q->k - p : BLOCK;                 \
				const T *b = (const T *)q->b + p * q->rsb + j * q->csb;          \
                                                                                                 \
				for (int64_t x = 0; x < k; x++)                                  \
					for (int64_t y = 0; y < BLOCK; y++)                      \
						block[x * BLOCK + y] =                           \
							y < n ? b[x * q->rsb + y * q->csb] : 0;  \
				for (int64_t i = begin; i < end; i++)                            \
					block_##d((T *)q->c + i * q->rsc + j * q->csc, q->csc,   \
						  (const T *)q->a + i * q->rsa + p * q->csa,     \
						  q->csa, block, n, k, alpha);                   \
			}                                                                        \
	}                                                                                        \
	int CPU_NAME(matmul_##d)(const struct product *p)                                        \
	{                                                                                        \
		struct product q = *p;                                                           \
                                                                                                 \
		parallel_for(0, p->m, grain(p), rows_##d, &q);                                   \
		return 0;                                                                        \
	}
DTYPES_WRAPPING(PRODUCT)
