// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Random integers, all of a range alike: number * range / 2^bits, where the few numbers that
 * would make some results likelier (those whose product leaves a remainder below 2^bits mod
 * range) are replaced with the same number of the next stream. And permutations.
 */
#include "kernels/cpu/random/random.h"

/* The first remainder that is not refused. */
static inline uint32_t refused_narrow(uint64_t range)
{
	return (uint32_t)(0x100000000 % range);
}

static inline uint64_t refused_wide(uint64_t range)
{
	return range ? -range % range : 0;
}

/* Number i of a group, from the streams above 0, until one is not refused. */
static __attribute__((noinline)) uint64_t random_again(const struct random_params *p, int i,
						       uint64_t range)
{
	uint32_t w[4];

	for (uint64_t stream = 1;; stream++) {
		philox_block(w, p->at.seed, p->at.offset + i % PHILOX_BLOCKS, stream);
		if (p->wide) {
			uint32_t *pair = w + i / PHILOX_BLOCKS * 2;
			unsigned __int128 m =
				(unsigned __int128)range * (pair[0] | (uint64_t)pair[1] << 32);

			if ((uint64_t)m >= refused_wide(range))
				return (uint64_t)(m >> 64);
		} else {
			uint64_t m = range * w[i / PHILOX_BLOCKS];

			if ((uint32_t)m >= refused_narrow(range))
				return m >> 32;
		}
	}
}

static inline uint64_t below_narrow(const uint32_t *words, const struct random_params *p, int i,
				    uint64_t range)
{
	uint64_t m = range * words[i];

	/* Remainders are mostly above the range: no division then. */
	if (unlikely((uint32_t)m < range) && (uint32_t)m < refused_narrow(range))
		return random_again(p, i, range);
	return m >> 32;
}

static inline uint64_t below_wide(const uint32_t *words, const struct random_params *p, int i,
				  uint64_t range)
{
	uint64_t number = wide_number(words, i);
	unsigned __int128 m = (unsigned __int128)range * number;

	if (unlikely(!range))
		return number;
	if (unlikely((uint64_t)m < range) && (uint64_t)m < refused_wide(range))
		return random_again(p, i, range);
	return (uint64_t)(m >> 64);
}

/* Whole groups first, in vectors; who was refused, if any, one by one afterwards. */
#define RANDINT(d, T, STORE)                                                                       \
	static inline void narrow_##d(T *restrict out, const uint32_t *words,                      \
				      const struct random_params *p)                               \
	{                                                                                          \
		uint32_t range = (uint32_t)p->range, maybe = 0;                                    \
		int64_t from = p->from;                                                            \
                                                                                                   \
		for (int i = 0; i < NARROW; i++) {                                                 \
			uint64_t m = (uint64_t)words[i] * range;                                   \
                                                                                                   \
			maybe |= (uint32_t)m < range;                                              \
			out[i] = STORE(from + (int64_t)(m >> 32));                                 \
		}                                                                                  \
		for (int i = 0; unlikely(maybe) && i < NARROW; i++)                                \
			out[i] = STORE(from + (int64_t)below_narrow(words, p, i, range));          \
	}                                                                                          \
	static inline void wide_##d(T *restrict out, const uint32_t *words,                        \
				    const struct random_params *p)                                 \
	{                                                                                          \
		for (int i = 0; i < WIDE; i++)                                                     \
			out[i] = STORE(                                                            \
				(int64_t)((uint64_t)p->from + below_wide(words, p, i, p->range))); \
	}                                                                                          \
	RANDOM_FILL(narrow_##d, T, NARROW)                                                         \
	RANDOM_FILL(wide_##d, T, WIDE)

#define TO_NUMBER(x)		(x)
#define TO_F16(x)		f32_to_f16((float)(x))
#define TO_BF16(x)		f32_to_bf16((float)(x))
#define RANDINT_NUMBER(d, T, D) RANDINT(d, T, (T)TO_NUMBER)
DTYPES_NUMBER(RANDINT_NUMBER)
RANDINT(f16, uint16_t, TO_F16)
RANDINT(bf16, uint16_t, TO_BF16)

static int cpu_randint(tensor *out, const struct random_params *p)
{
#define ROW(d, T, D) [D] = { narrow_##d##_fill, wide_##d##_fill },
	static const random_fill_fn fills[TENSOR_DTYPE_COUNT][2] = {
		DTYPES_NUMBER(ROW) ROW(u8, uint8_t, TENSOR_BOOL) ROW(f16, uint16_t, TENSOR_F16)
			ROW(bf16, uint16_t, TENSOR_BF16)
	};
#undef ROW

	if (!fills[out->dtype][0])
		return kernel_no_dtype("randint", out->dtype, "cpu");
	fills[out->dtype][p->wide](out->data, out->numel, p);
	return 0;
}

/* Element i goes to a random place among the first i + 1, and what was there to i. */
static int cpu_randperm(tensor *out, const struct random_params *params)
{
	struct random_params p = *params;
	int64_t *a = out->data, n = out->numel;
	int group = p.wide ? WIDE : NARROW;

	for (int64_t begin = 0; begin < n; begin += group) {
		uint32_t words[PHILOX_WORDS];

		philox_group(words, p.at.seed, p.at.offset);
		for (int64_t i = begin; i < n && i < begin + group; i++) {
			uint64_t j = p.wide ? below_wide(words, &p, (int)(i - begin), i + 1) :
					      below_narrow(words, &p, (int)(i - begin), i + 1);

			a[i] = a[j];
			a[j] = i;
		}
		p.at.offset += PHILOX_BLOCKS;
	}
	return 0;
}

CPU_KERNELS(K(randint), K(randperm))
