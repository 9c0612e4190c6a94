/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of group_norm, and those of layer_norm but its gradients, for elements of type X; included by norm_each.h
 * (no include guard).
 */
/* Sets *mean to that of n elements; returns 1 / sqrt(variance + eps). */
static inline T F(rstd_of)(const X *x, int64_t n, double eps, T *mean)
{
	double centre = F(sum)(x, n) / (double)n;
	double variance = F(sum_squares)(x, (T)centre, n) / (double)n;

	*mean = (T)centre;
	return (T)(1 / sqrt(variance + eps));
}

/* out = (x - mean) rstd weight + bias; both may be NULL. */
static void F(layer_row)(X *out, const X *x, int64_t n, T mean, T rstd, const T *weight,
			 const T *bias)
{
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		V v = (F(vec_get)(x + i) - mean) * rstd;

		if (weight)
			v *= *(const V *)(weight + i);
		if (bias)
			v += *(const V *)(bias + i);
		F(vec_put)(out + i, v);
	}
	for (; i < n; i++) {
		T v = (ONE(x[i]) - mean) * rstd;

		if (weight)
			v *= weight[i];
		if (bias)
			v += bias[i];
		out[i] = ROUND(v);
	}
}

static void F(layer_rows)(int64_t begin, int64_t end, void *ctx)
{
	const struct layer *l = ctx;

	for (int64_t r = begin; r < end; r++) {
		const X *x = (const X *)l->x + r * l->n;
		T mean, rstd = F(rstd_of)(x, l->n, l->eps, &mean);

		((T *)l->mean)[r] = mean;
		((T *)l->rstd)[r] = rstd;
		F(layer_row)((X *)l->out + r * l->n, x, l->n, mean, rstd, l->weight, l->bias);
	}
}

static void F(groups)(int64_t begin, int64_t end, void *ctx)
{
	const struct groups *g = ctx;
	int64_t n = g->channels * g->inner;

	for (int64_t k = begin; k < end; k++) {
		const X *x = (const X *)g->x + k * n;
		X *out = (X *)g->out + k * n;
		T mean, rstd = F(rstd_of)(x, n, g->eps, &mean);
		int64_t first = k % g->groups * g->channels;

		((T *)g->mean)[k] = mean;
		((T *)g->rstd)[k] = rstd;
		if (g->inner == 1) {
			const T *weight = g->weight ? (const T *)g->weight + first : NULL;
			const T *bias = g->bias ? (const T *)g->bias + first : NULL;

			IVDEP for (int64_t c = 0; c < n; c++) out[c] =
				ROUND((ONE(x[c]) - mean) * (rstd * (weight ? weight[c] : 1)) +
				      (bias ? bias[c] : 0));
			continue;
		}
		for (int64_t c = 0; c < g->channels; c++, x += g->inner, out += g->inner) {
			T a = rstd * (g->weight ? ((const T *)g->weight)[first + c] : 1);
			T b = g->bias ? ((const T *)g->bias)[first + c] : 0;

			F(affine)(out, x, g->inner, mean, a, b);
		}
	}
}

/*
 * For each group: dx, and for each of its channels the sums of grad and of grad x^, from which
 * groups_total() computes dbias and dweight.
 */
static void F(groups_dx)(int64_t begin, int64_t end, void *ctx)
{
	const struct groups *g = ctx;
	int64_t n = g->channels * g->inner;

	for (int64_t k = begin; k < end; k++) {
		const X *x = (const X *)g->x + k * n, *grad = (const X *)g->grad + k * n;
		const T *weight = g->weight ? (const T *)g->weight + k % g->groups * g->channels :
					      NULL;
		T mean = ((const T *)g->mean)[k], rstd = ((const T *)g->rstd)[k];
		T *sums = (T *)g->sums + 2 * k * g->channels;
		double plain = 0, centred = 0;
		T a, b;

		for (int64_t c = 0; c < g->channels; c++) {
			int64_t at = c * g->inner;
			double s = g->inner ? ONE(grad[at]) : 0,
			       t = g->inner ? s * (ONE(x[at]) - mean) * rstd : 0;

			if (g->inner > 1) {
				s = F(sum)(grad + at, g->inner);
				t = F(sum_centred)(grad + at, x + at, mean, g->inner) * rstd;
			}

			sums[2 * c] = (T)s;
			sums[2 * c + 1] = (T)t;
			plain += s * (weight ? weight[c] : 1);
			centred += t * (weight ? weight[c] : 1);
		}
		if (!g->out)
			continue;
		a = (T)(plain / (double)n);
		b = (T)(centred / (double)n) * rstd;
		for (int64_t c = 0; c < g->channels; c++) {
			int64_t at = c * g->inner;
			X *dx = (X *)g->out + k * n + at;
			T w = weight ? weight[c] : 1;

			if (g->inner == 1)
				*dx = ROUND((ONE(grad[at]) * w - a - (ONE(x[at]) - mean) * b) *
					    rstd);
			else
				F(gradient)
			(dx, grad + at, x + at, g->inner,
			 (struct F(gradient_factors)){ w, mean, a, b, rstd });
		}
	}
}
