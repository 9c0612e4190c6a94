/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The product of a CSR matrix and a dense one for integers and complex numbers (no include guard).
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* Columns j to j + count of row i; count <= WIDTH. */
static void F(spmm_columns)(const struct spmm *s, int64_t i, int64_t j, int64_t count)
{
	const T *values = s->values, *dense = (const T *)s->dense + j;
	T *out = (T *)s->out + i * s->ldo + j, sum[WIDTH] = { 0 };
	T alpha = (T)s->alpha, beta = (T)s->beta;

	for (int64_t p = s->crow[i]; p < s->crow[i + 1]; p++) {
		const T *row = dense + s->col[p] * s->lda;
		T v = values[p];

		for (int64_t k = 0; k < count; k++)
			sum[k] = (T)(sum[k] + v * row[k]);
	}
	for (int64_t k = 0; k < count; k++)
		out[k] = (T)(s->beta == 0 ? alpha * sum[k] : beta * out[k] + alpha * sum[k]);
}

static void F(spmm)(int64_t begin, int64_t end, void *ctx)
{
	const struct spmm *s = ctx;

	for (int64_t i = begin; i < end; i++)
		for (int64_t j = 0; j < s->n; j += WIDTH)
			F(spmm_columns)(s, i, j, s->n - j < WIDTH ? s->n - j : WIDTH);
}

#undef F
