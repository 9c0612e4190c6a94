/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The product of a CSR matrix and a dense one for f32 and f64 (no include guard; see each_float.h).
 * Four vectors of a row are summed in registers; the rest of the columns is computed by single
 * vectors, the last of which may be partial.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

#define V CPU_PASTE(vec, SUFFIX)
#define W (VEC_BYTES / (int)sizeof(T)) /* lanes of V */

/* *out = alpha sum + beta *out, for the lanes of part. */
static void F(spmm_store)(const struct spmm *s, T *out, vec_part part, V sum)
{
	sum *= (T)s->alpha;
	if (s->beta != 0)
		sum += (T)s->beta * F(vec_load)(out, part);
	F(vec_store)(out, part, sum);
}

/* 4 W columns of a row, whose elements of the CSR matrix are begin to end. */
static void F(spmm_four_vectors)(const struct spmm *s, int64_t begin, int64_t end, const T *dense,
				 T *out)
{
	const T *values = s->values;
	V a = { 0 }, b = { 0 }, c = { 0 }, e = { 0 };
	vec_part all = F(vec_part)(W);

	for (int64_t p = begin; p < end; p++) {
		const V *row = (const V *)(dense + s->col[p] * s->lda);
		T v = values[p];

		a += v * row[0];
		b += v * row[1];
		c += v * row[2];
		e += v * row[3];
	}
	F(spmm_store)(s, out, all, a);
	F(spmm_store)(s, out + W, all, b);
	F(spmm_store)(s, out + 2 * W, all, c);
	F(spmm_store)(s, out + 3 * W, all, e);
}

/* The next W columns, or the `left` ones that remain. */
static void F(spmm_one_vector)(const struct spmm *s, int64_t begin, int64_t end, const T *dense,
			       T *out, int64_t left)
{
	const T *values = s->values;
	vec_part part = F(vec_part)(left < W ? left : W);
	V sum = { 0 };

	for (int64_t p = begin; p < end; p++)
		sum += values[p] * F(vec_load)(dense + s->col[p] * s->lda, part);
	F(spmm_store)(s, out, part, sum);
}

/*
 * The only column: a dot product with gathered elements. Four sums hide the latency of additions.
 */
static void F(spmm_dot)(const struct spmm *s, int64_t begin, int64_t end, T *out)
{
	const T *values = s->values, *dense = s->dense;
	T sum[4] = { 0 };
	int64_t p = begin;

	for (; p + 4 <= end; p += 4)
		for (int k = 0; k < 4; k++)
			sum[k] += values[p + k] * dense[s->col[p + k] * s->lda];
	for (; p < end; p++)
		sum[0] += values[p] * dense[s->col[p] * s->lda];
	sum[0] = (T)s->alpha * (sum[0] + sum[1] + (sum[2] + sum[3]));
	*out = s->beta == 0 ? sum[0] : (T)s->beta * *out + sum[0];
}

static void F(spmm)(int64_t begin, int64_t end, void *ctx)
{
	const struct spmm *s = ctx;

	for (int64_t i = begin; i < end; i++) {
		int64_t first = s->crow[i], last = s->crow[i + 1], j = 0;
		const T *dense = s->dense;
		T *out = (T *)s->out + i * s->ldo;

		if (s->n == 1)
			F(spmm_dot)(s, first, last, out), j = 1;
		for (; j + 4 * W <= s->n; j += 4 * W)
			F(spmm_four_vectors)(s, first, last, dense + j, out + j);
		for (; j < s->n; j += W)
			F(spmm_one_vector)(s, first, last, dense + j, out + j, s->n - j);
	}
}

#undef F
#undef V
#undef W
