/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loops of batch_norm.c, included by norm_each.h for elements of type X (no include guard). */

/*
 * For each channel the sum of (x - centre)^2, of x (centre NULL) or of grad (x - centre), in f64.
 * Inner elements are summed in vectors; if there is one, vectors are of adjacent channels.
 */
static void F(channel_sums)(const struct batch *t, int64_t begin, int64_t end, const T *centre,
			    const X *grad, double *sum)
{
	int64_t s = t->inner, c = t->channels;

	for (int64_t k = begin; k < end; k++)
		sum[k - begin] = 0;
	for (int64_t i = 0; i < t->n; i++) {
		const X *x = (const X *)t->x + i * c * s, *g = grad ? grad + i * c * s : NULL;

		if (s != 1) {
			for (int64_t k = begin; k < end; k++) {
				const X *at = x + k * s;

				sum[k - begin] += g ? F(sum_centred)(g + k * s, at, centre[k], s) :
						  centre ? F(sum_squares)(at, centre[k], s) :
							   F(sum)(at, s);
			}
		} else if (g) {
			IVDEP for (int64_t k = begin; k < end; k++)
				sum[k - begin] += (double)ONE(g[k]) * (ONE(x[k]) - centre[k]);
		} else if (centre) {
			IVDEP for (int64_t k = begin; k < end; k++) sum[k - begin] +=
				(double)(ONE(x[k]) - centre[k]) * (ONE(x[k]) - centre[k]);
		} else {
			IVDEP for (int64_t k = begin; k < end; k++) sum[k - begin] += ONE(x[k]);
		}
	}
}

static void F(batch_stats)(int64_t begin, int64_t end, void *ctx)
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

static void F(batch_apply)(int64_t begin, int64_t end, void *ctx)
{
	const struct batch *t = ctx;
	const T *mean = t->mean, *invstd = t->invstd, *weight = t->weight, *bias = t->bias;
	int64_t s = t->inner, c = t->channels;

	/* A row is one channel of one element of the batch, or all its channels if s is 1. */
	for (int64_t r = begin; r < end; r++) {
		if (s == 1) {
			const X *x = (const X *)t->x + r * c;
			X *out = (X *)t->out + r * c;

			for (int64_t k = 0; k < c; k++) {
				T a = invstd[k] * (weight ? weight[k] : 1);

				out[k] = ROUND((ONE(x[k]) - mean[k]) * a + (bias ? bias[k] : 0));
			}
			continue;
		}
		int64_t k = r % c;
		T a = invstd[k] * (weight ? weight[k] : 1), b = bias ? bias[k] : 0;

		F(affine)((X *)t->out + r * s, (const X *)t->x + r * s, s, mean[k], a, b);
	}
}

/* The sums of grad and of grad (x - mean) over lines of inner elements, of which each is in the cache for the second one. */
static void F(line_grad_sums)(const struct batch *t, int64_t begin, int64_t end, double *plain,
			      double *centred)
{
	int64_t s = t->inner, c = t->channels;
	const T *mean = t->mean;

	for (int64_t k = begin; k < end; k++)
		plain[k - begin] = centred[k - begin] = 0;
	for (int64_t i = 0; i < t->n; i++)
		for (int64_t k = begin; k < end; k++) {
			const X *g = (const X *)t->grad + (i * c + k) * s;
			const X *x = (const X *)t->x + (i * c + k) * s;

			plain[k - begin] += F(sum)(g, s);
			centred[k - begin] += F(sum_centred)(g, x, mean[k], s);
		}
}

/* The sums of grad and of grad (x - mean). */
static void F(batch_grad_sums)(int64_t begin, int64_t end, void *ctx)
{
	const struct batch *t = ctx;
	struct batch plain = *t;
	double *sum = t->sums + 2 * begin;

	plain.x = t->grad;
	if (t->inner != 1) {
		F(line_grad_sums)(t, begin, end, sum, sum + (end - begin));
	} else {
		F(channel_sums)(&plain, begin, end, NULL, NULL, sum);
		F(channel_sums)(t, begin, end, t->mean, t->grad, sum + (end - begin));
	}
	for (int64_t k = begin; k < end; k++) {
		double plain_sum = sum[k - begin], centred = sum[end - begin + k - begin];

		((T *)t->sum_grad)[k] = (T)plain_sum;
		((T *)t->sum_product)[k] = (T)(centred * ((const T *)t->invstd)[k]);
	}
}

/* Training: dx = invstd w (g - mean(g) - x^ mean(g x^)). Evaluation: dx = invstd w g. */
static void F(batch_dx)(int64_t begin, int64_t end, void *ctx)
{
	const struct batch *t = ctx;
	const T *invstd = t->invstd, *weight = t->weight, *mean = t->mean;
	int64_t s = t->inner, c = t->channels;
	T n = (T)(t->n * s);

	for (int64_t r = begin; r < end; r++) {
		int64_t k = r % c;
		const X *x = (const X *)t->x + r * s, *g = (const X *)t->grad + r * s;
		X *dx = (X *)t->out + r * s;
		struct F(gradient_factors) f = { .weight = 1, .mean = mean[k] };

		f.scale = invstd[k] * (weight ? weight[k] : 1);
		if (!t->train) {
			F(affine)(dx, g, s, 0, f.scale, (T)-0.0); /* g scale, to the sign of zero */
			continue;
		}
		f.plain = ((const T *)t->sum_grad)[k] / n;
		f.centred = ((const T *)t->sum_product)[k] / n * invstd[k];
		F(gradient)(dx, g, x, s, f);
	}
}
