// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* quantize and dequantize, with one scale for the tensor or one for each channel. */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"
#include "kernels/abi/quantized.h"
#include "kernels/formula/quantize.h"

struct job {
	const struct quant *q;
	const void *in;
	void *out;
};

/* Consecutive elements of one channel. */
struct run {
	int64_t begin, n, channel;
};

/* The run that begins with element `begin`, at most to `end`; of 0 elements if they are equal. */
static struct run first_run(const struct quant *q, int64_t begin, int64_t end)
{
	int64_t next = q->channels == 1 ? end : (begin / q->inner + 1) * q->inner;

	return (struct run){ begin, (next < end ? next : end) - begin,
			     begin / q->inner % q->channels };
}

static struct run next_run(const struct quant *q, struct run r, int64_t end)
{
	return first_run(q, r.begin + r.n, end);
}

static void quantize_run_i32(int32_t *out, const float *in, int64_t n, float scale, int32_t zero)
{
	float inverse = 1.0f / scale;

	for (int64_t i = 0; i < n; i++)
		out[i] = quantize_to_i32(in[i], inverse, zero);
}

#define T	uint8_t
#define SUFFIX	u8
#define LOWEST	0
#define HIGHEST UINT8_MAX
#include "kernels/cpu/quantized/quantize_byte_loops.h"
#include "kernels/cpu/quantized/quantize_loops.h"
#undef T
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

#define T	int8_t
#define SUFFIX	i8
#define LOWEST	INT8_MIN
#define HIGHEST INT8_MAX
#include "kernels/cpu/quantized/quantize_byte_loops.h"
#include "kernels/cpu/quantized/quantize_loops.h"
#undef T
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

#define T      int32_t
#define SUFFIX i32
#include "kernels/cpu/quantized/quantize_loops.h"
#undef T
#undef SUFFIX

static int for_elements(parallel_fn fn, tensor *out, const tensor *self, const struct quant *q)
{
	struct job job = { q, self->data, out->data };

	parallel_for(0, self->numel, ITER_GRAIN, fn, &job);
	return 0;
}

static int cpu_quantize(tensor *out, const tensor *self, const struct quant *q)
{
	return for_elements(out->dtype == TENSOR_U8 ? quantize_u8 :
			    out->dtype == TENSOR_I8 ? quantize_i8 :
						      quantize_i32,
			    out, self, q);
}

static int cpu_dequantize(tensor *out, const tensor *self, const struct quant *q)
{
	if (q->exact)
		return for_elements(self->dtype == TENSOR_U8 ? dequantize_exact_u8 :
				    self->dtype == TENSOR_I8 ? dequantize_exact_i8 :
							       dequantize_exact_i32,
				    out, self, q);
	return for_elements(self->dtype == TENSOR_U8 ? dequantize_u8 :
			    self->dtype == TENSOR_I8 ? dequantize_i8 :
						       dequantize_i32,
			    out, self, q);
}

CPU_KERNELS(KERNEL(quantize), KERNEL(dequantize))
