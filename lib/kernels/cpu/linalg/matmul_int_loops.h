/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Products of integer matrices with elements of type T (no include guard; see each_wrapping.h):
 * matmul_i32_v4() etc.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* n elements of a row of c += alpha * k elements of a row of a times a block of b. */
static void F(add_block)(T *c, int64_t csc, const T *a, int64_t csa, const T *b, int64_t n,
			 int64_t k, T alpha)
{
	T sum[BLOCK] = { 0 };

	for (int64_t p = 0; p < k; p++) {
		T x = a[p * csa];

		for (int64_t j = 0; j < BLOCK; j++)
			sum[j] = (T)(sum[j] + x * b[p * BLOCK + j]);
	}
	for (int64_t j = 0; j < n; j++)
		c[j * csc] = (T)(c[j * csc] + alpha * sum[j]);
}

/* Copies k rows of n elements of b to rows of BLOCK elements, padded with zeros. */
static void F(copy_block)(T *block, const T *b, int64_t rsb, int64_t csb, int64_t n, int64_t k)
{
	for (int64_t x = 0; x < k; x++)
		for (int64_t y = 0; y < BLOCK; y++)
			block[x * BLOCK + y] = y < n ? b[x * rsb + y * csb] : 0;
}

/* Rows begin to end of c. b is copied in blocks, which makes its rows contiguous. */
static void F(rows)(int64_t begin, int64_t end, void *ctx)
{
	const struct product *q = ctx;
	T alpha = (T)q->alpha_int, beta = (T)q->beta_int;
	T block[BLOCK * BLOCK];

	for (int64_t i = begin; i < end; i++) {
		T *c = (T *)q->c + i * q->rsc;

		for (int64_t j = 0; j < q->n; j++)
			c[j * q->csc] = beta ? (T)(beta * c[j * q->csc]) : 0;
	}
	for (int64_t j = 0; j < q->n; j += BLOCK)
		for (int64_t p = 0; p < q->k; p += BLOCK) {
			int64_t n = q->n - j < BLOCK ? q->n - j : BLOCK;
			int64_t k = q->k - p < BLOCK ? q->k - p : BLOCK;
			const T *b = (const T *)q->b + p * q->rsb + j * q->csb;

			F(copy_block)(block, b, q->rsb, q->csb, n, k);
			for (int64_t i = begin; i < end; i++) {
				T *c = (T *)q->c + i * q->rsc + j * q->csc;
				const T *a = (const T *)q->a + i * q->rsa + p * q->csa;

				F(add_block)(c, q->csc, a, q->csa, block, n, k, alpha);
			}
		}
}

int CPU_NAME(F(matmul))(const struct product *p)
{
	struct product q = *p;

	parallel_for(0, p->m, rows_of_chunk(p), F(rows), &q);
	return 0;
}

#undef F
