// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * mm: looks at the strides, hands floating point to its kernels (matmul_f32.c, matmul_f64.c) and
 * multiplies integers itself, modulo their width.
 */
#include "matmul.h"

#include "../parallel.h"

#define BLOCK 64 /* of k and n, for integers */

static void swap(int64_t *x, int64_t *y)
{
	int64_t tmp = *x;

	*x = *y;
	*y = tmp;
}

/* c^T = b^T a^T */
static void transpose(struct product *p)
{
	const void *a = p->a;

	p->a = p->b;
	p->b = a;
	swap(&p->m, &p->n);
	swap(&p->rsa, &p->csb);
	swap(&p->csa, &p->rsb);
	swap(&p->rsc, &p->csc);
}

/* ---- integers -------------------------------------------------------------------------- */

/* Rows begin to end of c. b is copied block by block, so that its strides do not matter. */
#define PRODUCT(d, T, D)                                                                          \
	static void block_##d(T *c, int64_t csc, const T *a, int64_t csa, const T *b, int64_t n,  \
			      int64_t k, T alpha)                                                 \
	{                                                                                         \
		T sum[BLOCK] = {0};                                                               \
                                                                                                  \
		for (int64_t p = 0; p < k; p++) {                                                 \
			T x = a[p * csa];                                                         \
                                                                                                  \
			for (int64_t j = 0; j < BLOCK; j++)                                       \
				sum[j] = (T)(sum[j] + x * b[p * BLOCK + j]);                      \
		}                                                                                 \
		for (int64_t j = 0; j < n; j++)                                                   \
			c[j * csc] = (T)(c[j * csc] + alpha * sum[j]);                            \
	}                                                                                         \
	static void rows_##d(int64_t begin, int64_t end, void *ctx)                               \
	{                                                                                         \
		const struct product *q = ctx;                                                    \
		T alpha = (T)(int64_t)q->alpha, beta = (T)(int64_t)q->beta;                       \
		T block[BLOCK * BLOCK];                                                           \
                                                                                                  \
		for (int64_t i = begin; i < end; i++) {                                           \
			T *c = (T *)q->c + i * q->rsc;                                            \
                                                                                                  \
			for (int64_t j = 0; j < q->n; j++)                                        \
				c[j * q->csc] = beta ? (T)(beta * c[j * q->csc]) : 0;             \
		}                                                                                 \
		for (int64_t j = 0; j < q->n; j += BLOCK)                                         \
			for (int64_t p = 0; p < q->k; p += BLOCK) {                               \
				int64_t n = q->n - j < BLOCK ? q->n - j : BLOCK;                  \
				int64_t k = q->k - p < BLOCK ? q->k - p : BLOCK;                  \
				const T *b = (const T *)q->b + p * q->rsb + j * q->csb;           \
                                                                                                  \
				for (int64_t x = 0; x < k; x++)                                   \
					for (int64_t y = 0; y < BLOCK; y++)                       \
						block[x * BLOCK + y] =                            \
							y < n ? b[x * q->rsb + y * q->csb] : 0;   \
				for (int64_t i = begin; i < end; i++)                             \
					block_##d((T *)q->c + i * q->rsc + j * q->csc, q->csc,    \
						  (const T *)q->a + i * q->rsa + p * q->csa,      \
						  q->csa, block, n, k, alpha);                    \
			}                                                                         \
	}
DTYPES_INT(PRODUCT)

static int mm_int(struct product *p, enum tensor_dtype dtype)
{
	static const parallel_fn rows[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = rows_##d,
		DTYPES_INT(ENTRY)
#undef ENTRY
	};
	int64_t work = p->n * (p->k + 1), grain = ITER_GRAIN / (work < ITER_GRAIN ? work : ITER_GRAIN);

	if (!rows[dtype])
		return kernel_no_dtype("mm", dtype, "cpu");
	parallel_for(0, p->m, grain < BLOCK ? BLOCK : grain, rows[dtype], p);
	return 0;
}

/* ---- mm ------------------------------------------------------------------------------------ */

/*
 * Kernels write rows of c, a vector at a time: where columns of c are what is contiguous, or rows
 * are shorter than the columns and than most vectors, the transposed product suits them better.
 */
static bool better_transposed(const struct product *p)
{
	if (p->n <= 4)
		return p->m > p->n;
	return p->m > 4 && p->csc != 1 && p->rsc == 1;
}

static int cpu_mm(tensor *out, const tensor *a, const tensor *b, double alpha, double beta)
{
	struct product p = {.m = a->sizes[0],
			    .n = b->sizes[1],
			    .k = a->sizes[1],
			    .a = a->data,
			    .b = b->data,
			    .c = out->data,
			    .rsa = a->strides[0],
			    .csa = a->strides[1],
			    .rsb = b->strides[0],
			    .csb = b->strides[1],
			    .rsc = out->strides[0],
			    .csc = out->strides[1],
			    .alpha = alpha,
			    .beta = beta};

	if (!p.m || !p.n)
		return 0;
	if (better_transposed(&p))
		transpose(&p);
	if (out->dtype == TENSOR_F32)
		return CPU_NAME(matmul_f32)(&p);
	if (out->dtype == TENSOR_F64)
		return CPU_NAME(matmul_f64)(&p);
	return mm_int(&p, out->dtype);
}

CPU_KERNELS(K(mm))
