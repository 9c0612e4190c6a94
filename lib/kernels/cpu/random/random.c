// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Random floats: uniform, normal (Box and Muller) and exponential. They are computed by additions
 * and multiplications in a fixed order, so that a seed gives the same bits at every
 * instruction-set level.
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

/* ---- normal ---- */

/*
 * The sine and cosine of angle / 2^32 of a full turn. The nearest quarter turn is split off; the
 * series have arguments within an eighth of a turn.
 */
static inline void sincos_turn_f32(uint32_t angle, float *sine, float *cosine)
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

/*
 * Each pair of independent normal numbers is made of two uniform ones; the one in the logarithm is
 * never zero.
 */
static inline void normal_f32(float *restrict out, const uint32_t *words,
			      const struct random_params *p)
{
	const int pairs = NARROW / 2;
	float mean[2] = { (float)p->a, (float)p->limit }, deviation = (float)p->b;

	for (int i = 0; i < pairs; i++) {
		float u = (float)(int32_t)(words[i] >> 1) * 0x1p-31f + 0x1p-32f, s, c;
		float r = __builtin_sqrtf(-2 * log_unit_f32(u)) * deviation;
		float m = i & 1 ? mean[1] : mean[0];

		sincos_turn_f32(words[i + pairs], &s, &c);
		out[i] = r * c + m;
		out[i + pairs] = r * s + m;
	}
}

static inline void sincos_turn_f64(double turn, double *sine, double *cosine)
{
	/* Adding 1.5 * 2^52 rounds to an integer, which the low bits then hold. */
	union {
		double d;
		uint64_t u;
	} quarter = { turn * 4 + 0x1.8p52 }, a, b;
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

		sincos_turn_f64(unit_f64(lo2[i], hi2[i]), &s, &c);
		out[i] = r * c + m;
		out[i + PHILOX_BLOCKS] = r * s + m;
	}
}

/* ---- exponential ---- */

/* The numbers are never zero, so that they can be divisors. */
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

/* ---- kernels ---- */

#define LOOPS_FILE "kernels/cpu/random/random_groups.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef LOOPS_FILE
#define LOOPS_FILE "kernels/cpu/random/random_reduced_float_loops.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef LOOPS_FILE
#define LOOPS_FILE "kernels/cpu/random/random_loops.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef LOOPS_FILE

/* A complex element is two numbers. */
static int fill_floats(const char *name, tensor *out, const parallel_fn *groups,
		       const struct random_params *p)
{
	bool is_complex = dtype_is_complex(out->dtype);
	enum tensor_dtype dtype = is_complex ? dtype_real(out->dtype) : out->dtype;

	if (!groups[dtype])
		return tensor_kernel_no_dtype(name, out->dtype, "cpu");
	random_fill(out->data, out->numel * (is_complex ? 2 : 1),
		    dtype == TENSOR_F64 ? WIDE : NARROW, groups[dtype], p);
	return 0;
}

#define FLOATS(NAME)                                                                               \
	{                                                                                          \
		[TENSOR_F16] = NAME##_f16, [TENSOR_BF16] = NAME##_bf16, [TENSOR_F32] = NAME##_f32, \
		[TENSOR_F64] = NAME##_f64                                                          \
	}

static int cpu_uniform(tensor *out, const struct random_params *p)
{
	static const parallel_fn groups[TENSOR_DTYPE_COUNT] = FLOATS(uniform_groups);

	return fill_floats("uniform", out, groups, p);
}

static int cpu_normal(tensor *out, const struct random_params *p)
{
	static const parallel_fn groups[TENSOR_DTYPE_COUNT] = FLOATS(normal_groups);

	return fill_floats("normal", out, groups, p);
}

static int cpu_exponential(tensor *out, const struct random_params *p)
{
	static const parallel_fn groups[TENSOR_DTYPE_COUNT] = FLOATS(exponential_groups);

	return fill_floats("exponential", out, groups, p);
}

CPU_KERNELS(KERNEL(uniform), KERNEL(normal), KERNEL(exponential))
