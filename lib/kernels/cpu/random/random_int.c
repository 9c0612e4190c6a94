// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * randint and randperm. A result is number * range / 2^bits (D. Lemire, Fast random integer
 * generation in an interval, TOMACS 2019). For equal probabilities a number is rejected if the low
 * half of the product is below 2^bits mod range; the same number of the next stream replaces it.
 */
#include "kernels/cpu/random/random.h"

/* The least low half of a product that is not rejected, for 32 and for 64 bits. */
static inline uint32_t reject_below_narrow(uint64_t range)
{
	return (uint32_t)(0x100000000 % range);
}

static inline uint64_t reject_below_wide(uint64_t range)
{
	return range ? -range % range : 0;
}

/* Number i of a group below range, from the first stream above 0 where it is not rejected. */
static __attribute__((noinline)) uint64_t next_stream_below(const struct random_params *p, int i,
							    uint64_t range)
{
	uint32_t w[4];

	for (uint64_t stream = 1;; stream++) {
		philox_block(w, p->at.seed, p->at.offset + i % PHILOX_BLOCKS, stream);
		if (p->wide) {
			uint32_t *pair = w + i / PHILOX_BLOCKS * 2;
			unsigned __int128 m =
				(unsigned __int128)range * (pair[0] | (uint64_t)pair[1] << 32);

			if ((uint64_t)m >= reject_below_wide(range))
				return (uint64_t)(m >> 64);
		} else {
			uint64_t m = range * w[i / PHILOX_BLOCKS];

			if ((uint32_t)m >= reject_below_narrow(range))
				return m >> 32;
		}
	}
}

/* Number i of a group, reduced to [0, range); a range of 0 is 2^64. */
static inline uint64_t below_narrow(const uint32_t *words, const struct random_params *p, int i,
				    uint64_t range)
{
	uint64_t m = range * words[i];

	/* The bound is below the range: no division if the low half is not. */
	if (unlikely((uint32_t)m < range) && (uint32_t)m < reject_below_narrow(range))
		return next_stream_below(p, i, range);
	return m >> 32;
}

static inline uint64_t below_wide(const uint32_t *words, const struct random_params *p, int i,
				  uint64_t range)
{
	uint64_t number = wide_number(words, i);
	unsigned __int128 m = (unsigned __int128)range * number;

	if (unlikely(!range))
		return number;
	if (unlikely((uint64_t)m < range) && (uint64_t)m < reject_below_wide(range))
		return next_stream_below(p, i, range);
	return (uint64_t)(m >> 64);
}

#define LOOPS_FILE "kernels/cpu/random/random_int_loops.h"
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef LOOPS_FILE

static int cpu_randint(tensor *out, const struct random_params *p)
{
#define ENTRY(d, T, D) [D] = { narrow_groups_##d, wide_groups_##d },
	static const parallel_fn groups[TENSOR_DTYPE_COUNT][2] = {
		DTYPES_NUMBER(ENTRY) ENTRY(u8, uint8_t, TENSOR_BOOL)
			ENTRY(f16, uint16_t, TENSOR_F16) ENTRY(bf16, uint16_t, TENSOR_BF16)
	};
#undef ENTRY

	if (!groups[out->dtype][0])
		return tensor_kernel_no_dtype("randint", out->dtype, "cpu");
	random_fill(out->data, out->numel, p->wide ? WIDE : NARROW, groups[out->dtype][p->wide], p);
	return 0;
}

/* Fisher and Yates: element i is swapped with a random one of the first i + 1. */
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

CPU_KERNELS(KERNEL(randint), KERNEL(randperm))
