// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Random floats: uniform, normal (Box and Muller) and exponential. Products and sums only, in one
 * order, so that a seed gives the same bits at every level.
 */
#include "kernels/cpu/random/random.h"

/* ---- uniform ---- */

static inline void uniform_f32(float *restrict out, const uint32_t *words,
			       const struct random_params *p)
{
	float from = (float)p->a, length = (float)p->b, limit = (float)p->limit;

	for (int i = 0; i < NARROW; i++) {
		float v = (float)(int32_t)(words[i] >> 8) * 0x1p-24f * length + from;

		out[i] = v > limit ? limit : v;
	}
}

static inline void uniform_f64(double *restrict out, const uint32_t *words,
			       const struct random_params *p)
{
	for (int k = 0; k < WIDE; k += PHILOX_BLOCKS) {
		const uint32_t *lo = words + 2 * k, *hi = lo + PHILOX_BLOCKS;

		for (int i = 0; i < PHILOX_BLOCKS; i++) {
			double v = unit_f64(lo[i], hi[i]) * p->b + p->a;

			out[k + i] = v > p->limit ? p->limit : v;
		}
	}
}

RANDOM_FILL(uniform_f32, float, NARROW)
RANDOM_FILL(uniform_f64, double, WIDE)

/* As many bits as the fraction of the dtype has: rounding would make the last value likelier. */
#define UNIFORM_HALF(d, BITS)                                                            \
	static inline void uniform_##d(uint16_t *restrict out, const uint32_t *words,    \
				       const struct random_params *p)                    \
	{                                                                                \
		float from = (float)p->a, length = (float)p->b, limit = (float)p->limit; \
                                                                                         \
		for (int i = 0; i < NARROW; i++) {                                       \
			float v = (float)(int32_t)(words[i] >> (32 - (BITS)));           \
                                                                                         \
			v = v * (1.0f / (1 << (BITS))) * length + from;                  \
			out[i] = f32_to_##d(v > limit ? limit : v);                      \
		}                                                                        \
	}                                                                                \
	RANDOM_FILL(uniform_##d, uint16_t, NARROW)
UNIFORM_HALF(f16, 11)
UNIFORM_HALF(bf16, 8)

/* ---- normal ---- */

/* sin and cos of a whole turn's fraction angle / 2^32; of -1/8 ... 1/8 of a turn as series. */
static inline void turn_f32(uint32_t angle, float *sine, float *cosine)
{
	uint32_t quarter = (angle + 0x20000000) >> 30;
	float x = (float)(int32_t)(angle - (quarter << 30)) * (float)(6.283185307179586 / 0x1p32);
	float z = x * x;
	float s = x +
		  x * z * (-1.0f / 6 + z * (1.0f / 120 + z * (-1.0f / 5040 + z * (1.0f / 362880))));
	float c = 1 +
		  z * (-0.5f + z * (1.0f / 24 +
				    z * (-1.0f / 720 + z * (1.0f / 40320 - z * (1.0f / 3628800)))));
	float a = quarter & 1 ? c : s, b = quarter & 1 ? s : c;

	*sine = bits_to_f32(f32_to_bits(a) ^ (quarter & 2) << 30);
	*cosine = bits_to_f32(f32_to_bits(b) ^ ((quarter + 1) & 2) << 30);
}

/* Two independent normal numbers from two uniform ones. The first is never zero. */
static inline void normal_f32(float *restrict out, const uint32_t *words,
			      const struct random_params *p)
{
	const int pairs = NARROW / 2;
	float mean[2] = { (float)p->a, (float)p->limit }, deviation = (float)p->b;

	for (int i = 0; i < pairs; i++) {
		float u = (float)(int32_t)(words[i] >> 1) * 0x1p-31f + 0x1p-32f, s, c;
		float r = __builtin_sqrtf(-2 * log_unit_f32(u)) * deviation;
		float m = i & 1 ? mean[1] : mean[0];

		turn_f32(words[i + pairs], &s, &c);
		out[i] = r * c + m;
		out[i + pairs] = r * s + m;
	}
}

static inline void turn_f64(double turn, double *sine, double *cosine)
{
	union {
		double d;
		uint64_t u;
	} quarter = { turn * 4 + 0x1.8p52 }, a, b; /* rounds, and leaves a whole number's bits */
	double x = (turn * 4 - (quarter.d - 0x1.8p52)) * 1.57079632679489661923, z = x * x;
	double s = 0, c = 0;
	uint64_t odd = -(quarter.u & 1);

	for (int k = 17; k > 1; k -= 2)
		s = -z / (double)(k * (k - 1)) * (1 + s);
	for (int k = 18; k > 0; k -= 2)
		c = -z / (double)(k * (k - 1)) * (1 + c);
	s = x + x * s;
	c = 1 + c;
	a.d = s;
	b.d = c;
	quarter.u &= 3;
	odd &= a.u ^ b.u;
	a.u ^= odd ^ (quarter.u & 2) << 62;
	b.u ^= odd ^ ((quarter.u + 1) & 2) << 62;
	*sine = a.d;
	*cosine = b.d;
}

static inline void normal_f64(double *restrict out, const uint32_t *words,
			      const struct random_params *p)
{
	const uint32_t *lo = words, *hi = lo + PHILOX_BLOCKS;
	const uint32_t *lo2 = hi + PHILOX_BLOCKS, *hi2 = lo2 + PHILOX_BLOCKS;

	for (int i = 0; i < PHILOX_BLOCKS; i++) {
		double s, c,
			r = __builtin_sqrt(-2 * log_unit_f64(1 - unit_f64(lo[i], hi[i]))) * p->b;
		double m = i & 1 ? p->limit : p->a;

		turn_f64(unit_f64(lo2[i], hi2[i]), &s, &c);
		out[i] = r * c + m;
		out[i + PHILOX_BLOCKS] = r * s + m;
	}
}

RANDOM_FLOATS(normal)

/* ---- exponential ---- */

/* Never zero, so that it may be divided by. */
static inline void exponential_f32(float *restrict out, const uint32_t *words,
				   const struct random_params *p)
{
	float scale = (float)(1 / p->a);

	for (int i = 0; i < NARROW; i++) {
		float u = (float)(int32_t)(words[i] >> 1) * 0x1p-31f + 0x1p-32f;
		float v = -log_unit_f32(u);

		out[i] = (v > 0x1p-25f ? v : 0x1p-25f) * scale;
	}
}

static inline void exponential_f64(double *restrict out, const uint32_t *words,
				   const struct random_params *p)
{
	double scale = 1 / p->a;

	for (int k = 0; k < WIDE; k += PHILOX_BLOCKS) {
		const uint32_t *lo = words + 2 * k, *hi = lo + PHILOX_BLOCKS;

		for (int i = 0; i < PHILOX_BLOCKS; i++) {
			double v = -log_unit_f64(1 - unit_f64(lo[i], hi[i]));

			out[k + i] = (v > 0x1p-54 ? v : 0x1p-54) * scale;
		}
	}
}

RANDOM_FLOATS(exponential)

/* ---- kernels ---- */

#define RANDOM_KERNEL(NAME)                                                                       \
	static int cpu_##NAME(tensor *out, const struct random_params *p)                         \
	{                                                                                         \
		static const random_fill_fn fills[TENSOR_DTYPE_COUNT] = {                         \
			[TENSOR_F16] = NAME##_f16_fill, [TENSOR_BF16] = NAME##_bf16_fill,         \
			[TENSOR_F32] = NAME##_f32_fill, [TENSOR_F64] = NAME##_f64_fill,           \
			[TENSOR_C64] = NAME##_f32_fill, [TENSOR_C128] = NAME##_f64_fill           \
		};                                                                                \
                                                                                                  \
		if (!fills[out->dtype])                                                           \
			return kernel_no_dtype(#NAME, out->dtype, "cpu");                         \
		fills[out->dtype](out->data, out->numel * (dtype_is_complex(out->dtype) ? 2 : 1), \
				  p);                                                             \
		return 0;                                                                         \
	}
RANDOM_KERNEL(uniform)
RANDOM_KERNEL(normal)
RANDOM_KERNEL(exponential)

CPU_KERNELS(K(uniform), K(normal), K(exponential))
