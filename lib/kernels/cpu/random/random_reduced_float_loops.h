/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Groups of f16 and bf16 numbers (no include guard; see each_reduced_float.h): normal and
 * exponential numbers are those of f32, rounded.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/*
 * A uniform number has as many random bits as the significand of the dtype: rounding a longer one
 * would make the largest value more likely.
 */
static inline void F(uniform)(uint16_t *restrict out, const uint32_t *words,
			      const struct random_params *p)
{
	const int bits = D == TENSOR_F16 ? 11 : 8;
	float from = (float)p->a, length = (float)p->b, limit = (float)p->limit;

	for (int i = 0; i < NARROW; i++) {
		float v = (float)(int32_t)(words[i] >> (32 - bits));

		v = v * (1.0f / (float)(1 << bits)) * length + from;
		out[i] = STORE(v > limit ? limit : v);
	}
}

static inline void F(normal)(uint16_t *restrict out, const uint32_t *words,
			     const struct random_params *p)
{
	float v[NARROW];

	normal_f32(v, words, p);
	for (int i = 0; i < NARROW; i++)
		out[i] = STORE(v[i]);
}

static inline void F(exponential)(uint16_t *restrict out, const uint32_t *words,
				  const struct random_params *p)
{
	float v[NARROW];

	exponential_f32(v, words, p);
	for (int i = 0; i < NARROW; i++)
		out[i] = STORE(v[i]);
}

#undef F
