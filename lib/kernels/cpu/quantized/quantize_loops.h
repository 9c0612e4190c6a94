/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of quantize.c for quantized elements of type T (no include guard). They process
 * elements begin to end in runs of one channel.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(quantize)(int64_t begin, int64_t end, void *ctx)
{
	const struct job *job = ctx;
	const struct quant *q = job->q;

	for (struct run r = first_run(q, begin, end); r.n; r = next_run(q, r, end)) {
		T *out = (T *)job->out + r.begin;
		const float *in = (const float *)job->in + r.begin;

		F(quantize_run)(out, in, r.n, q->scale[r.channel], q->zero_point[r.channel]);
	}
}

static void F(dequantize_run)(float *out, const T *in, int64_t n, float scale, int32_t zero)
{
	for (int64_t i = 0; i < n; i++)
		out[i] = dequantize_by_f32((int32_t)in[i], zero, scale);
}

static void F(dequantize)(int64_t begin, int64_t end, void *ctx)
{
	const struct job *job = ctx;
	const struct quant *q = job->q;

	for (struct run r = first_run(q, begin, end); r.n; r = next_run(q, r, end)) {
		float *out = (float *)job->out + r.begin;
		const T *in = (const T *)job->in + r.begin;

		F(dequantize_run)(out, in, r.n, q->scale[r.channel], q->zero_point[r.channel]);
	}
}

/* Dequantization with a scale in f64, for several channels. */
static void F(dequantize_exact_run)(float *out, const T *in, int64_t n, double scale, int32_t zero)
{
	for (int64_t i = 0; i < n; i++)
		out[i] = dequantize_by_f64((int32_t)in[i], zero, scale);
}

static void F(dequantize_exact)(int64_t begin, int64_t end, void *ctx)
{
	const struct job *job = ctx;
	const struct quant *q = job->q;

	for (struct run r = first_run(q, begin, end); r.n; r = next_run(q, r, end)) {
		float *out = (float *)job->out + r.begin;
		const T *in = (const T *)job->in + r.begin;

		F(dequantize_exact_run)
		(out, in, r.n, q->exact[r.channel], q->zero_point[r.channel]);
	}
}

#undef F
