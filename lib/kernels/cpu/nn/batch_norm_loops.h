/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of batch_norm.c for elements of type T (no include guard; the includer defines T, V,
 * LANES, F).
 */
#include "kernels/cpu/nn/moments.h"

/*
 * For each channel the sum of (x - centre)^2, of x (centre NULL) or of grad (x - centre), in f64.
 * Inner elements are summed in vectors; if there is one, vectors are of adjacent channels.
 */
static void F(channel_sums)(const struct batch *t, int64_t begin, int64_t end, const T *centre,
			    const T *grad, double *sum)
{
	int64_t s = t->inner, c = t->channels;

	for (int64_t k = begin; k < end; k++)
		sum[k - begin] = 0;
	for (int64_t i = 0; i < t->n; i++) {
		const T *x = (const T *)t->x + i * c * s, *g = grad ? grad + i * c * s : NULL;

		if (s != 1) {
			for (int64_t k = begin; k < end; k++) {
				const T *at = x + k * s;

				sum[k - begin] += g ? F(sum_centred)(g + k * s, at, centre[k], s) :
						  centre ? F(sum_squares)(at, centre[k], s) :
							   F(sum)(at, s);
			}
		} else if (g) {
			IVDEP for (int64_t k = begin; k < end; k++)
				sum[k - begin] += (double)g[k] * (x[k] - centre[k]);
		} else if (centre) {
			IVDEP for (int64_t k = begin; k < end; k++)
				sum[k - begin] += (double)(x[k] - centre[k]) * (x[k] - centre[k]);
		} else {
			IVDEP for (int64_t k = begin; k < end; k++) sum[k - begin] += x[k];
		}
	}
}

static void F(stats)(int64_t begin, int64_t end, void *ctx)
{
	const struct batch *t = ctx;
	T *mean = t->mean, *var = t->var;
	double *sum = t->sums + 2 * begin, n = (double)(t->n * t->inner);

	F(channel_sums)(t, begin, end, NULL, NULL, sum);
	for (int64_t k = begin; k < end; k++)
		mean[k] = (T)(sum[k - begin] / n);
	F(channel_sums)(t, begin, end, mean, NULL, sum);
	for (int64_t k = begin; k < end; k++)
		var[k] = (T)(sum[k - begin] / n);
}

static void F(apply)(int64_t begin, int64_t end, void *ctx)
{
	const struct batch *t = ctx;
	const T *mean = t->mean, *invstd = t->invstd, *weight = t->weight, *bias = t->bias;
	int64_t s = t->inner, c = t->channels;

	/* A row is one channel of one element of the batch, or all its channels if s is 1. */
	for (int64_t r = begin; r < end; r++) {
		if (s == 1) {
			const T *x = (const T *)t->x + r * c;
			T *out = (T *)t->out + r * c;

			for (int64_t k = 0; k < c; k++)
				out[k] = (x[k] - mean[k]) * (invstd[k] * (weight ? weight[k] : 1)) +
					 (bias ? bias[k] : 0);
			continue;
		}
		const T *x = (const T *)t->x + r * s;
		T *out = (T *)t->out + r * s;
		int64_t k = r % c;
		T m = mean[k], a = invstd[k] * (weight ? weight[k] : 1), b = bias ? bias[k] : 0;

		IVDEP for (int64_t i = 0; i < s; i++) out[i] = (x[i] - m) * a + b;
	}
}

/* The sums of grad and of grad (x - mean). */
static void F(grad_sums)(int64_t begin, int64_t end, void *ctx)
{
	const struct batch *t = ctx;
	struct batch plain = *t;
	double *sum = t->sums + 2 * begin;

	plain.x = t->grad;
	F(channel_sums)(&plain, begin, end, NULL, NULL, sum);
	F(channel_sums)(t, begin, end, t->mean, t->grad, sum + (end - begin));
	for (int64_t k = begin; k < end; k++) {
		double plain_sum = sum[k - begin], centred = sum[end - begin + k - begin];

		((T *)t->sum_grad)[k] = (T)plain_sum;
		((T *)t->sum_product)[k] = (T)(centred * ((const T *)t->invstd)[k]);
	}
}

/* Training: dx = invstd w (g - mean(g) - x^ mean(g x^)). Evaluation: dx = invstd w g. */
static void F(dx)(int64_t begin, int64_t end, void *ctx)
{
	const struct batch *t = ctx;
	const T *invstd = t->invstd, *weight = t->weight, *mean = t->mean;
	int64_t s = t->inner, c = t->channels;
	T n = (T)(t->n * s);

	for (int64_t r = begin; r < end; r++) {
		int64_t k = r % c;
		const T *x = (const T *)t->x + r * s, *g = (const T *)t->grad + r * s;
		T *dx = (T *)t->out + r * s, m = mean[k];
		T scale = invstd[k] * (weight ? weight[k] : 1);
		T a = t->train ? ((const T *)t->sum_grad)[k] / n : 0;
		T b = t->train ? ((const T *)t->sum_product)[k] / n * invstd[k] : 0;

		if (!t->train)
			IVDEP for (int64_t i = 0; i < s; i++) dx[i] = g[i] * scale;
		else
			IVDEP for (int64_t i = 0; i < s; i++)
				dx[i] = (g[i] - a - (x[i] - m) * b) * scale;
	}
}

#undef T
#undef V
#undef LANES
#undef F
