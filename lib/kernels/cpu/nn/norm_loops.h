/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The gradients of layer_norm, and the sums of group_norm, for elements of type T (no include guard; the
 * includer defines T and F).
 */
/* ---- layer_norm ---- */

/*
 * dx = rstd (g - mean(g) - x^ mean(g x^)) of a row of n elements, where g is grad * weight, which is stored in `product`, and
 * x^ = (x - mean) rstd.
 */
static void F(layer_dx)(T *dx, const T *x, const T *g, int64_t n, T mean, T rstd, const T *weight,
			T *product)
{
	T a, b;

	if (weight) {
		IVDEP for (int64_t i = 0; i < n; i++) product[i] = g[i] * weight[i];
		g = product;
	}
	a = (T)(F(sum)(g, n) / (double)n);
	b = (T)(F(sum_centred)(g, x, mean, n) / (double)n) * rstd * rstd;
	IVDEP for (int64_t i = 0; i < n; i++) dx[i] = (g[i] - a - (x[i] - mean) * b) * rstd;
}

/* The gradients of rows begin to end, which are a chunk: dweight and dbias are added to its lines. */
static void F(layer_gradients)(int64_t begin, int64_t end, void *ctx)
{
	const struct layer *l = ctx;
	int64_t n = l->n, chunk = begin / l->grain;
	T *dweight = l->dweight ? (T *)l->dweight + chunk * n : NULL;
	T *dbias = l->dbias ? (T *)l->dbias + chunk * n : NULL;

	if (dweight)
		memset(dweight, 0, n * sizeof(T));
	if (dbias)
		memset(dbias, 0, n * sizeof(T));
	for (int64_t r = begin; r < end; r++) {
		const T *x = (const T *)l->x + r * n, *g = (const T *)l->grad + r * n;
		T mean = ((const T *)l->mean)[r], rstd = ((const T *)l->rstd)[r];

		if (l->out)
			F(layer_dx)
		((T *)l->out + r * n, x, g, n, mean, rstd, l->weight, (T *)l->scratch + chunk * n);
		if (dweight)
			IVDEP for (int64_t i = 0; i < n; i++)
				dweight[i] += g[i] * ((x[i] - mean) * rstd);
		if (dbias)
			IVDEP for (int64_t i = 0; i < n; i++) dbias[i] += g[i];
	}
}

/* out = the sum of `chunks` lines, added in order. */
static void F(add_lines)(T *out, const T *lines, int64_t chunks, int64_t n)
{
	memset(out, 0, n * sizeof(T));
	for (int64_t c = 0; c < chunks; c++, lines += n)
		IVDEP for (int64_t i = 0; i < n; i++) out[i] += lines[i];
}

/* ---- group_norm ---- */

/* The sums of one channel over the batch; which: 0 for dbias, 1 for dweight. */
static void F(groups_total)(const struct groups *g, T *out, int64_t batch, int which)
{
	int64_t channels = g->groups * g->channels;

	for (int64_t c = 0; c < channels; c++) {
		double total = 0;

		for (int64_t i = 0; i < batch; i++)
			total += ((const T *)g->sums)[2 * (i * channels + c) + which];
		out[c] = (T)total;
	}
}

#undef T
#undef F
