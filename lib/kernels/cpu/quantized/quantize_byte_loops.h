/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* quantize for a run of one channel, to u8 and i8 (no include guard). */
#define F(name) CPU_PASTE(name, SUFFIX)

/*
 * Saturates in f32, before zero_point is added, so that nothing overflows. NaN becomes the greatest
 * value.
 */
static void F(quantize_run)(T *out, const float *in, int64_t n, float scale, int32_t zero)
{
	float inverse = 1.0f / scale, low = (float)(LOWEST - (int64_t)zero);
	float high = (float)(HIGHEST - (int64_t)zero);

	for (int64_t i = 0; i < n; i++) {
		float x = __builtin_rintf(in[i] * inverse);

		x = x < high ? x : high;
		x = x > low ? x : low;
		out[i] = (T)((int32_t)x + zero);
	}
}

#undef F
