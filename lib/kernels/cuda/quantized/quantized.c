// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Quantized tensors: the scales and zero points of channels, which are in host memory, go to scratch memory by launches. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_quantized.h"
#include "kernels/cuda/launch_words.h"

/* An array of a channel's parameters, and where its address on the device goes. */
struct part {
	const void *from;
	size_t bytes;
	const void **to;
};

static int send_words(const struct cuda_call *c, uint32_t *to, const void *from, size_t words)
{
	int err = 0;

	for (size_t at = 0, n; at < words && !err; at += n) {
		n = words - at < CUDA_WORDS_MOST ? words - at : CUDA_WORDS_MOST;
		err = cuda_check(c->op, cuda_launch_words(to + at, (const char *)from + 4 * at,
							  (int)n, c->stream));
	}
	return err;
}

static int send_parts(const struct cuda_call *c, const struct part *parts, int n, void **scratch)
{
	size_t all = 0, at = 0;
	int err;

	for (int i = 0; i < n; i++)
		all += (parts[i].bytes + 15) / 16 * 16;
	err = cuda_scratch(c, all, scratch);
	for (int i = 0; i < n && !err; i++) {
		void *to = (char *)*scratch + at;

		err = send_words(c, to, parts[i].from, parts[i].bytes / 4);
		*parts[i].to = to;
		at += (parts[i].bytes + 15) / 16 * 16;
	}
	return err;
}

/* ---- conversions ---- */

typedef int (*launcher)(const struct cuda_quant *q, int dtype, cudaStream_t stream);

static int convert(const char *op, launcher fn, tensor *out, const tensor *self,
		   const struct quant *q, int dtype)
{
	struct cuda_quant k = { .in = self->data,
				.out = out->data,
				.n = self->numel,
				.channels = q->channels,
				.inner = q->inner };
	const size_t n = (size_t)q->channels;
	const struct part parts[] = {
		{ q->exact, n * sizeof(*q->exact), (const void **)&k.exact },
		{ q->scale, n * sizeof(*q->scale), (const void **)&k.scale },
		{ q->zero_point, n * sizeof(*q->zero_point), (const void **)&k.zero },
	};
	void *scratch = NULL;
	struct cuda_call c;
	int err;

	if (!self->numel)
		return 0;
	err = cuda_begin_with(&c, op, out->device.index, out, self);
	if (err)
		return err;
	if (q->exact) {
		err = send_parts(&c, parts, 3, &scratch);
	} else {
		k.one_scale = q->scale[0];
		k.one_zero = q->zero_point[0];
	}
	if (!err)
		err = cuda_launched(&c, fn(&k, dtype, c.stream), (enum tensor_dtype)dtype);
	cuda_scratch_free(&c, scratch);
	return cuda_end(&c, err);
}

int cuda_quantize(tensor *out, const tensor *self, const struct quant *q)
{
	return convert("quantize", cuda_launch_quantize, out, self, q, out->dtype);
}

int cuda_dequantize(tensor *out, const tensor *self, const struct quant *q)
{
	return convert("dequantize", cuda_launch_dequantize, out, self, q, self->dtype);
}

/* ---- products ---- */

int cuda_gemm_s8(const struct gemm_s8 *p)
{
	const struct requantize *q = p->requantize;
	struct cuda_gemm_s8 k = { .m = p->m,
				  .n = p->n,
				  .k = p->k,
				  .count = p->count,
				  .groups = p->groups,
				  .out_step = p->out_step,
				  .x = p->x,
				  .w = p->w,
				  .out = p->out,
				  .out_row = p->out_row,
				  .out_column = p->out_column,
				  .x_zero = q->x_zero,
				  .bias = q->bias,
				  .bias_reciprocal = q->bias_reciprocal,
				  .out_scale = q->out_scale,
				  .out_zero = q->out_zero,
				  .low = q->low,
				  .high = q->high };
	const size_t n = (size_t)(p->n * (p->count < p->groups ? p->count : p->groups));
	const struct part parts[] = {
		{ q->w_zero, n * sizeof(*q->w_zero), (const void **)&k.w_zero },
		{ q->scale, n * sizeof(*q->scale), (const void **)&k.scale },
	};
	void *scratch = NULL;
	struct cuda_call c;
	int err;

	if (!p->m || !p->n || !p->count)
		return 0;
	err = cuda_begin_all(&c, "gemm_s8", p->tensors[0]->device.index, p->tensors, 4);
	if (err)
		return err;
	err = send_parts(&c, parts, 2, &scratch);
	if (!err)
		err = cuda_check(c.op, cuda_launch_gemm_s8(&k, c.stream));
	cuda_scratch_free(&c, scratch);
	return cuda_end(&c, err);
}

int cuda_patches_u8(uint8_t *out, const uint8_t *image, const struct patches *p)
{
	const struct cuda_patches k = { .images = p->images,
					.channels = p->channels,
					.height = p->height,
					.width = p->width,
					.kh = p->kh,
					.kw = p->kw,
					.oh = p->oh,
					.ow = p->ow,
					.stride = { p->stride[0], p->stride[1] },
					.padding = { p->padding[0], p->padding[1] },
					.dilation = { p->dilation[0], p->dilation[1] },
					.fill = p->fill };
	struct cuda_call c;
	int err;

	if (p->images * p->channels * p->kh * p->kw * p->oh * p->ow == 0)
		return 0;
	err = cuda_begin_all(&c, "patches_u8", p->tensors[0]->device.index, p->tensors, 2);
	return err ? err :
		     cuda_end(&c, cuda_check(c.op, cuda_launch_patches(out, image, &k, c.stream)));
}
