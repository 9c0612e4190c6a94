/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of norm.c for elements of type T (no include guard; the includer defines T, V, LANES,
 * F).
 */
#include "kernels/cpu/nn/moments.h"

/* Sets *mean to that of n elements; returns 1 / sqrt(variance + eps). */
static inline T F(rstd_of)(const T *x, int64_t n, double eps, T *mean)
{
	double centre = F(sum)(x, n) / (double)n;
	double variance = F(sum_squares)(x, (T)centre, n) / (double)n;

	*mean = (T)centre;
	return (T)(1 / sqrt(variance + eps));
}

/* ---- layer_norm ---- */

static void F(layer_rows)(int64_t begin, int64_t end, void *ctx)
{
	const struct layer *l = ctx;
	const T *weight = l->weight, *bias = l->bias;
	int64_t n = l->n;

	for (int64_t r = begin; r < end; r++) {
		const T *x = (const T *)l->x + r * n;
		T *out = (T *)l->out + r * n;
		T mean, rstd = F(rstd_of)(x, n, l->eps, &mean);

		((T *)l->mean)[r] = mean;
		((T *)l->rstd)[r] = rstd;
		if (weight && bias)
			IVDEP for (int64_t i = 0; i < n; i++)
				out[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
		else if (weight)
			IVDEP for (int64_t i = 0; i < n; i++)
				out[i] = (x[i] - mean) * rstd * weight[i];
		else if (bias)
			IVDEP for (int64_t i = 0; i < n; i++)
				out[i] = (x[i] - mean) * rstd + bias[i];
		else
			IVDEP for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd;
	}
}

/* dx = rstd (g - mean(g) - x^ mean(g x^)), where g is grad * weight and x^ = (x - mean) rstd. */
static void F(layer_dx)(int64_t begin, int64_t end, void *ctx)
{
	const struct layer *l = ctx;
	const T *weight = l->weight;
	int64_t n = l->n;
	T *product = l->scratch ? (T *)l->scratch + begin / l->grain * n : NULL;

	for (int64_t r = begin; r < end; r++) {
		const T *x = (const T *)l->x + r * n, *g = (const T *)l->grad + r * n;
		T *dx = (T *)l->out + r * n, mean = ((const T *)l->mean)[r];
		T rstd = ((const T *)l->rstd)[r], a, b;

		if (weight) {
			IVDEP for (int64_t i = 0; i < n; i++) product[i] = g[i] * weight[i];
			g = product;
		}
		a = (T)(F(sum)(g, n) / (double)n);
		b = (T)(F(sum_centred)(g, x, mean, n) / (double)n) * rstd * rstd;
		IVDEP for (int64_t i = 0; i < n; i++) dx[i] = (g[i] - a - (x[i] - mean) * b) * rstd;
	}
}

/* Adds rows begin to end to the lines of dweight and dbias of their chunk. */
static void F(layer_dweight)(int64_t begin, int64_t end, void *ctx)
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

static void F(groups)(int64_t begin, int64_t end, void *ctx)
{
	const struct groups *g = ctx;
	int64_t n = g->channels * g->inner;

	for (int64_t k = begin; k < end; k++) {
		const T *x = (const T *)g->x + k * n;
		T *out = (T *)g->out + k * n;
		T mean, rstd = F(rstd_of)(x, n, g->eps, &mean);
		int64_t first = k % g->groups * g->channels;

		((T *)g->mean)[k] = mean;
		((T *)g->rstd)[k] = rstd;
		if (g->inner == 1) {
			const T *weight = g->weight ? (const T *)g->weight + first : NULL;
			const T *bias = g->bias ? (const T *)g->bias + first : NULL;

			IVDEP for (int64_t c = 0; c < n; c++)
				out[c] = (x[c] - mean) * (rstd * (weight ? weight[c] : 1)) +
					 (bias ? bias[c] : 0);
			continue;
		}
		for (int64_t c = 0; c < g->channels; c++, x += g->inner, out += g->inner) {
			T a = rstd * (g->weight ? ((const T *)g->weight)[first + c] : 1);
			T b = g->bias ? ((const T *)g->bias)[first + c] : 0;

			IVDEP for (int64_t i = 0; i < g->inner; i++) out[i] = (x[i] - mean) * a + b;
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
		const T *x = (const T *)g->x + k * n, *grad = (const T *)g->grad + k * n;
		const T *weight = g->weight ? (const T *)g->weight + k % g->groups * g->channels :
					      NULL;
		T mean = ((const T *)g->mean)[k], rstd = ((const T *)g->rstd)[k];
		T *sums = (T *)g->sums + 2 * k * g->channels;
		double plain = 0, centred = 0;
		T a, b;

		for (int64_t c = 0; c < g->channels; c++) {
			int64_t at = c * g->inner;
			double s = g->inner ? grad[at] : 0,
			       t = g->inner ? s * (x[at] - mean) * rstd : 0;

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
			T *dx = (T *)g->out + k * n + at, w = weight ? weight[c] : 1;

			if (g->inner == 1) {
				*dx = (grad[at] * w - a - (x[at] - mean) * b) * rstd;
				continue;
			}
			IVDEP for (int64_t i = 0; i < g->inner; i++)
				dx[i] = (grad[at + i] * w - a - (x[at + i] - mean) * b) * rstd;
		}
	}
}

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
#undef V
#undef LANES
#undef F
