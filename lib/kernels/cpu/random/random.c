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
		float v = unit_f32(words[i]) * length + from;

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
 * Each pair of independent normal numbers is made of two uniform ones; the one in the logarithm is
 * never zero.
 */
static inline void normal_f32(float *restrict out, const uint32_t *words,
			      const struct random_params *p)
{
	const int pairs = NARROW / 2;
	float mean[2] = { (float)p->a, (float)p->limit }, deviation = (float)p->b;

	for (int i = 0; i < pairs; i++) {
		float u = positive_unit_f32(words[i]), s, c;
		float r = __builtin_sqrtf(-2 * log_unit_f32(u)) * deviation;
		float m = i & 1 ? mean[1] : mean[0];

		sincos_turn_f32(words[i + pairs], &s, &c);
		out[i] = r * c + m;
		out[i + pairs] = r * s + m;
	}
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
		float u = positive_unit_f32(words[i]);
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
