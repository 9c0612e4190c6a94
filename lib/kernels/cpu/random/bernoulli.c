// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * bernoulli with one probability or with one for each element, and dropout. With one probability
 * the result is true if a random number of 32 bits does not exceed a limit.
 */
#include "kernels/cpu/random/random.h"

struct coin {
	uint32_t last; /* the largest number for true */
	bool never;    /* p is 0: no number is for true */
};

static struct coin coin_of(double p)
{
	uint64_t n = (uint64_t)(p * 0x1p32 + 0.5);

	return (struct coin){ .last = (uint32_t)(n - 1), .never = !n };
}

#define LOOPS_FILE "kernels/cpu/random/bernoulli_loops.h"
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef LOOPS_FILE

static int cpu_bernoulli(tensor *out, const struct random_params *p)
{
#define ENTRY(d, T, D) [D] = bernoulli_groups_##d,
	static const parallel_fn groups[TENSOR_DTYPE_COUNT] = {
		DTYPES_NUMBER(ENTRY) ENTRY(u8, uint8_t, TENSOR_BOOL)
			ENTRY(f16, uint16_t, TENSOR_F16) ENTRY(bf16, uint16_t, TENSOR_BF16)
	};
#undef ENTRY

	if (!groups[out->dtype])
		return tensor_kernel_no_dtype("bernoulli", out->dtype, "cpu");
	random_fill(out->data, out->numel, NARROW, groups[out->dtype], p);
	return 0;
}

/* ---- a probability for each element ---- */

struct bernoulli_each {
	const struct random_params *p;
	uint8_t *out;
	const void *prob;
	int64_t n;
	atomic_int bad; /* a probability was outside of [0, 1] */
};

/* Number i of a group, in [0, 1). */
static inline float unit_of_group_f32(const uint32_t *words, int i)
{
	return unit_f32(words[i]);
}

static inline double unit_of_group_f64(const uint32_t *words, int i)
{
	return unit_f64(words[wide_word(i)], words[wide_word(i) + PHILOX_BLOCKS]);
}

#define LOOPS_FILE "kernels/cpu/random/bernoulli_each_loops.h"
#include "kernels/cpu/simd/each_float.h"
#undef LOOPS_FILE

static int cpu_bernoulli_each(tensor *out, const tensor *p, const struct random_params *params)
{
	bool wide = p->dtype == TENSOR_F64;
	int64_t group = wide ? WIDE : NARROW;
	struct bernoulli_each e = {
		.p = params, .out = out->data, .prob = p->data, .n = out->numel
	};

	parallel_for(0, (e.n + group - 1) / group, RANDOM_GRAIN,
		     wide ? bernoulli_each_f64 : bernoulli_each_f32, &e);
	if (e.bad)
		return tensor_fail(EINVAL, "bernoulli: probabilities must be within [0, 1]");
	return 0;
}

/* ---- dropout ---- */

struct dropout {
	const struct random_params *p;
	char *out;
	const char *in;
	uint8_t *mask;
	int64_t n;
};

#define LOOPS_FILE "kernels/cpu/random/dropout_loops.h"
#define PARTS	   1 /* numbers in an element */
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef PARTS

#define PARTS	 2
#define LOAD(x)	 (x)
#define STORE(x) (x)
#define T	 float
#define C	 float
#define SUFFIX	 c64
#include LOOPS_FILE
#undef T
#undef C
#undef SUFFIX
#define T      double
#define C      double
#define SUFFIX c128
#include LOOPS_FILE
#undef T
#undef C
#undef SUFFIX
#undef LOAD
#undef STORE
#undef PARTS
#undef LOOPS_FILE

static int cpu_native_dropout(tensor *out, tensor *mask, const tensor *input,
			      const struct random_params *p)
{
	static const parallel_fn groups[TENSOR_DTYPE_COUNT] = {
		[TENSOR_F32] = dropout_f32, [TENSOR_F64] = dropout_f64,
		[TENSOR_F16] = dropout_f16, [TENSOR_BF16] = dropout_bf16,
		[TENSOR_C64] = dropout_c64, [TENSOR_C128] = dropout_c128
	};
	struct dropout f = { p, out->data, input->data, mask->data, out->numel };

	if (!groups[out->dtype])
		return tensor_kernel_no_dtype("native_dropout", out->dtype, "cpu");
	parallel_for(0, (f.n + NARROW - 1) / NARROW, RANDOM_GRAIN, groups[out->dtype], &f);
	return 0;
}

CPU_KERNELS(KERNEL(bernoulli), KERNEL(bernoulli_each), KERNEL(native_dropout))
