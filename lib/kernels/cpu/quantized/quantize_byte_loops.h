/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* quantize for a run of one channel, to u8 and i8 (no include guard). */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(quantize_run)(T *out, const float *in, int64_t n, float scale, int32_t zero)
{
	float inverse = 1.0f / scale, low = (float)(LOWEST - (int64_t)zero);
	float high = (float)(HIGHEST - (int64_t)zero);

	for (int64_t i = 0; i < n; i++)
		out[i] = (T)quantize_to_byte(in[i], inverse, zero, low, high);
}

#undef F
