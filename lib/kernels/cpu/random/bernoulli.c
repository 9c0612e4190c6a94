// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Coin tosses: bernoulli with one probability and with one for each element, and dropout. One
 * probability is a number of 32 bits that the random one must not exceed.
 */
#include "kernels/cpu/random/random.h"

struct coin {
	uint32_t last; /* the largest number that is true */
	bool never;
};

static struct coin coin_of(double p)
{
	uint64_t n = (uint64_t)(p * 0x1p32 + 0.5);

	return (struct coin){ .last = (uint32_t)(n - 1), .never = !n };
}

#define BERNOULLI(d, T, ONE)                                                     \
	static inline void bernoulli_##d(T *restrict out, const uint32_t *words, \
					 const struct random_params *p)          \
	{                                                                        \
		struct coin coin = coin_of(p->a);                                \
		T one = coin.never ? 0 : (T)(ONE);                               \
                                                                                 \
		for (int i = 0; i < NARROW; i++)                                 \
			out[i] = words[i] <= coin.last ? one : (T)0;             \
	}                                                                        \
	RANDOM_FILL(bernoulli_##d, T, NARROW)
#define BERNOULLI_NUMBER(d, T, D) BERNOULLI(d, T, 1)
DTYPES_NUMBER(BERNOULLI_NUMBER)
BERNOULLI(f16, uint16_t, 0x3c00)
BERNOULLI(bf16, uint16_t, 0x3f80)

static int cpu_bernoulli(tensor *out, const struct random_params *p)
{
#define ROW(d, T, D) [D] = bernoulli_##d##_fill,
	static const random_fill_fn fills[TENSOR_DTYPE_COUNT] = {
		DTYPES_NUMBER(ROW) ROW(u8, uint8_t, TENSOR_BOOL) ROW(f16, uint16_t, TENSOR_F16)
			ROW(bf16, uint16_t, TENSOR_BF16)
	};
#undef ROW

	if (!fills[out->dtype])
		return kernel_no_dtype("bernoulli", out->dtype, "cpu");
	fills[out->dtype](out->data, out->numel, p);
	return 0;
}

/* ---- a probability for each element ---- */

struct each {
	const struct random_params *p;
	uint8_t *out;
	const void *prob;
	int64_t n;
	atomic_int bad; /* a probability was none */
};

#define EACH(d, T, N, UNIT)                                                                      \
	static void each_##d(int64_t begin, int64_t end, void *ctx)                              \
	{                                                                                        \
		struct each *e = ctx;                                                            \
		int bad = 0;                                                                     \
                                                                                                 \
		for (int64_t g = begin; g < end; g++) {                                          \
			const T *prob = (const T *)e->prob + g * (N);                            \
			int64_t left = e->n - g * (N);                                           \
			int n = left < (N) ? (int)left : (N);                                    \
			uint32_t words[PHILOX_WORDS];                                            \
                                                                                                 \
			philox_group(words, e->p->at.seed, e->p->at.offset + PHILOX_BLOCKS * g); \
			for (int i = 0; i < n; i++) {                                            \
				T unit = UNIT;                                                   \
                                                                                                 \
				bad |= !(prob[i] >= 0 && prob[i] <= 1);                          \
				e->out[g * (N) + i] = unit < prob[i];                            \
			}                                                                        \
		}                                                                                \
		if (bad)                                                                         \
			atomic_store_explicit(&e->bad, 1, memory_order_relaxed);                 \
	}
EACH(f32, float, NARROW, (float)(int32_t)(words[i] >> 8) * 0x1p-24f)
EACH(f64, double, WIDE, unit_f64(words[wide_word(i)], words[wide_word(i) + PHILOX_BLOCKS]))

static int cpu_bernoulli_each(tensor *out, const tensor *p, const struct random_params *params)
{
	bool wide = p->dtype == TENSOR_F64;
	int64_t group = wide ? WIDE : NARROW;
	struct each e = { .p = params, .out = out->data, .prob = p->data, .n = out->numel };

	parallel_for(0, (e.n + group - 1) / group, RANDOM_GRAIN, wide ? each_f64 : each_f32, &e);
	if (e.bad)
		return tensor_fail(EINVAL, "bernoulli: probabilities must be within [0, 1]");
	return 0;
}

/* ---- dropout ---- */

struct drop {
	const struct random_params *p;
	char *out;
	const char *in;
	uint8_t *mask;
	int64_t n;
};

/* PARTS components for an element: two of a complex one. As PyTorch computes it: what is dropped
 * is multiplied with zero, and a NaN stays one. */
#define DROP(d, T, C, PARTS, LOAD, STORE)                                                     \
	static void drop_##d(int64_t begin, int64_t end, void *ctx)                           \
	{                                                                                     \
		const struct drop *f = ctx;                                                   \
		const struct random_params *p = f->p;                                         \
		struct coin coin = coin_of(p->a);                                             \
		C scale = (C)p->b;                                                            \
                                                                                              \
		for (int64_t g = begin; g < end; g++) {                                       \
			T *restrict out = (T *)f->out + g * NARROW * (PARTS);                 \
			const T *restrict in = (const T *)f->in + g * NARROW * (PARTS);       \
			uint8_t *restrict mask = f->mask + g * NARROW;                        \
			int64_t left = f->n - g * NARROW;                                     \
			int n = left < NARROW ? (int)left : NARROW;                           \
			uint32_t words[PHILOX_WORDS];                                         \
                                                                                              \
			philox_group(words, p->at.seed, p->at.offset + PHILOX_BLOCKS * g);    \
			for (int i = 0; i < NARROW; i++)                                      \
				words[i] = (words[i] <= coin.last) & !coin.never;             \
			for (int i = 0; i < n; i++)                                           \
				mask[i] = (uint8_t)words[i];                                  \
			for (int i = 0; i < n * (PARTS); i++)                                 \
				out[i] = STORE(LOAD(in[i]) * (C)(int32_t)words[i / (PARTS)] * \
					       scale);                                        \
		}                                                                             \
	}
#define SELF(x) (x)
DROP(f32, float, float, 1, SELF, SELF)
DROP(f64, double, double, 1, SELF, SELF)
DROP(f16, uint16_t, float, 1, f16_to_f32, f32_to_f16)
DROP(bf16, uint16_t, float, 1, bf16_to_f32, f32_to_bf16)
DROP(c64, float, float, 2, SELF, SELF)
DROP(c128, double, double, 2, SELF, SELF)

static int cpu_native_dropout(tensor *out, tensor *mask, const tensor *input,
			      const struct random_params *p)
{
	static const parallel_fn drops[TENSOR_DTYPE_COUNT] = {
		[TENSOR_F32] = drop_f32,   [TENSOR_F64] = drop_f64, [TENSOR_F16] = drop_f16,
		[TENSOR_BF16] = drop_bf16, [TENSOR_C64] = drop_c64, [TENSOR_C128] = drop_c128
	};
	struct drop f = { p, out->data, input->data, mask->data, out->numel };

	if (!drops[out->dtype])
		return kernel_no_dtype("native_dropout", out->dtype, "cpu");
	parallel_for(0, (f.n + NARROW - 1) / NARROW, RANDOM_GRAIN, drops[out->dtype], &f);
	return 0;
}

CPU_KERNELS(K(bernoulli), K(bernoulli_each), K(native_dropout))
