// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Quantising and dequantising, with one scale or one for each channel. */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"
#include "kernels/abi/quantized.h"

struct job {
	const struct quant *q;
	const void *in;
	void *out;
};

/*
 * n elements of one channel. Saturation is in floating point, before zero_point is added, so that
 * nothing overflows; NaN becomes the greatest.
 */
#define QUANTIZE(d, T, LOW, HIGH)                                                     \
	static void quantize_run_##d(T *out, const float *in, int64_t n, float scale, \
				     int32_t zero)                                    \
	{                                                                             \
		float inverse = 1.0f / scale, low = (float)((LOW) - (int64_t)zero);   \
		float high = (float)((HIGH) - (int64_t)zero);                         \
                                                                                      \
		for (int64_t i = 0; i < n; i++) {                                     \
			float x = __builtin_rintf(in[i] * inverse);                   \
                                                                                      \
			x = x < high ? x : high;                                      \
			x = x > low ? x : low;                                        \
			out[i] = (T)((int32_t)x + zero);                              \
		}                                                                     \
	}
QUANTIZE(u8, uint8_t, 0, 255)
QUANTIZE(i8, int8_t, -128, 127)

/* i32 has numbers that f32 has not. */
static void quantize_run_i32(int32_t *out, const float *in, int64_t n, float scale, int32_t zero)
{
	float inverse = 1.0f / scale;

	for (int64_t i = 0; i < n; i++) {
		float x = __builtin_rintf(in[i] * inverse);
		int64_t q;

		x = x < 0x1p33f ? x : 0x1p33f;
		x = x > -0x1p33f ? x : -0x1p33f;
		q = (int64_t)x + zero;
		q = q < INT32_MAX ? q : INT32_MAX;
		out[i] = (int32_t)(q > INT32_MIN ? q : INT32_MIN);
	}
}

#define DEQUANTIZE(d, T)                                                                          \
	static void dequantize_run_##d(float *out, const T *in, int64_t n, float scale,           \
				       int32_t zero)                                              \
	{                                                                                         \
		for (int64_t i = 0; i < n; i++)                                                   \
			out[i] = (float)((int32_t)in[i] - zero) * scale;                          \
	}                                                                                         \
	static void exact_run_##d(float *out, const T *in, int64_t n, double scale, int32_t zero) \
	{                                                                                         \
		for (int64_t i = 0; i < n; i++)                                                   \
			out[i] = (float)((double)((float)in[i] - (float)zero) * scale);           \
	}
DEQUANTIZE(u8, uint8_t)
DEQUANTIZE(i8, int8_t)
DEQUANTIZE(i32, int32_t)

/* A chunk in runs of one channel. */
#define CHUNK(NAME, SCALE, d, TO, FROM)                                                         \
	static void NAME##_##d(int64_t begin, int64_t end, void *ctx)                           \
	{                                                                                       \
		const struct job *job = ctx;                                                    \
		const struct quant *q = job->q;                                                 \
                                                                                                \
		for (int64_t i = begin; i < end;) {                                             \
			int64_t c = i / q->inner % q->channels;                                 \
			int64_t next = q->channels == 1 ? end : (i / q->inner + 1) * q->inner;  \
                                                                                                \
			next = next < end ? next : end;                                         \
			NAME##_run_##d((TO *)job->out + i, (const FROM *)job->in + i, next - i, \
				       q->SCALE[c], q->zero_point[c]);                          \
			i = next;                                                               \
		}                                                                               \
	}
CHUNK(quantize, scale, u8, uint8_t, float)
CHUNK(quantize, scale, i8, int8_t, float)
CHUNK(quantize, scale, i32, int32_t, float)
CHUNK(dequantize, scale, u8, float, uint8_t)
CHUNK(dequantize, scale, i8, float, int8_t)
CHUNK(dequantize, scale, i32, float, int32_t)
CHUNK(exact, exact, u8, float, uint8_t)
CHUNK(exact, exact, i8, float, int8_t)
CHUNK(exact, exact, i32, float, int32_t)

static int run(parallel_fn fn, tensor *out, const tensor *self, const struct quant *q)
{
	struct job job = { q, self->data, out->data };

	parallel_for(0, self->numel, ITER_GRAIN, fn, &job);
	return 0;
}

static int cpu_quantize(tensor *out, const tensor *self, const struct quant *q)
{
	return run(out->dtype == TENSOR_U8 ? quantize_u8 :
		   out->dtype == TENSOR_I8 ? quantize_i8 :
					     quantize_i32,
		   out, self, q);
}

static int cpu_dequantize(tensor *out, const tensor *self, const struct quant *q)
{
	if (q->exact)
		return run(self->dtype == TENSOR_U8 ? exact_u8 :
			   self->dtype == TENSOR_I8 ? exact_i8 :
						      exact_i32,
			   out, self, q);
	return run(self->dtype == TENSOR_U8 ? dequantize_u8 :
		   self->dtype == TENSOR_I8 ? dequantize_i8 :
					      dequantize_i32,
		   out, self, q);
}

CPU_KERNELS(K(quantize), K(dequantize))
