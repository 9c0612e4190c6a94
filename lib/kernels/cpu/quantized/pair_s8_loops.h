/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loops of pair_s8.c for quantized elements of type T (no include guard). */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(sum)(int64_t begin, int64_t end, void *ctx)
{
	const struct pair_s8 p = *(const struct pair_s8 *)ctx;
	const T *restrict a = p.a, *restrict b = p.b;
	T *restrict out = p.out;
	float inverse = 1.0f / p.out_scale, low = (float)(LOWEST - p.out_zero),
	      high = (float)(HIGHEST - p.out_zero);

	for (int64_t i = begin; i < end; i++) {
		float x = dequantize_by_f32(a[i], p.a_zero, p.a_scale),
		      y = dequantize_by_f32(b[i], p.b_zero, p.b_scale);

		out[i] = (T)quantize_to_byte(x + y, inverse, p.out_zero, low, high);
	}
}

static void F(product)(int64_t begin, int64_t end, void *ctx)
{
	const struct pair_s8 p = *(const struct pair_s8 *)ctx;
	const T *restrict a = p.a, *restrict b = p.b;
	T *restrict out = p.out;
	float low = (float)(LOWEST - p.out_zero), high = (float)(HIGHEST - p.out_zero);

	for (int64_t i = begin; i < end; i++) {
		float x = (float)(((int32_t)a[i] - p.a_zero) * ((int32_t)b[i] - p.b_zero));

		out[i] = (T)quantize_to_byte(x * p.factor, 1, p.out_zero, low, high);
	}
}

#undef F
