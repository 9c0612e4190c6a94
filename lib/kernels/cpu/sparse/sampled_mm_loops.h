/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loop of sampled_mm for elements of type T (no include guard; see each_int.h). */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(sampled_mm)(int64_t begin, int64_t end, void *ctx)
{
	const struct sampled *s = ctx;

	for (int64_t p = begin; p < end; p++) {
		const T *a = (const T *)s->a + s->row[p] * s->lda;
		const T *b = (const T *)s->b + s->col[p] * s->ldb;
		T sum[WIDTH] = { 0 };
		int64_t j = 0;

		for (; j + WIDTH <= s->k; j += WIDTH)
			for (int k = 0; k < WIDTH; k++)
				sum[k] = (T)(sum[k] + a[j + k] * b[j + k]);
		for (; j < s->k; j++)
			sum[j % WIDTH] = (T)(sum[j % WIDTH] + a[j] * b[j]);
		for (int k = 1; k < WIDTH; k++)
			sum[0] = (T)(sum[0] + sum[k]);
		((T *)s->out)[p] = sum[0];
	}
}

#undef F
