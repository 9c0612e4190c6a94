/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Filling memory with random numbers, a Philox group at a time. Chunks of parallel work are whole
 * groups, and every number follows from its place alone.
 */
#ifndef TENSOR_CPU_RANDOM_H
#define TENSOR_CPU_RANDOM_H

#include "iter/parallel.h"
#include "kernels/abi/random.h"
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/random/philox_vec.h"

#include "base/reduced_float.h"

#define RANDOM_GRAIN 512		/* groups in a chunk of parallel work */
#define NARROW	     PHILOX_WORDS	/* elements in a group, of 32 bits each */
#define WIDE	     (PHILOX_WORDS / 2) /* of 64 */

struct random_fill {
	const struct random_params *p;
	char *out;
	int64_t n;
};

/*
 * NAME##_fill(): n elements of T, N of them in a group. NAME(T *out, const uint32_t *words,
 * const struct random_params *) makes a whole group's from its words; at.offset is then the
 * group's first block.
 */
#define RANDOM_FILL(NAME, T, N)                                                      \
	static void NAME##_groups(int64_t begin, int64_t end, void *ctx)             \
	{                                                                            \
		const struct random_fill *f = ctx;                                   \
		struct random_params p = *f->p;                                      \
                                                                                     \
		for (int64_t g = begin; g < end; g++) {                              \
			T *out = (T *)f->out + g * (N), part[N];                     \
			int64_t left = f->n - g * (N);                               \
			uint32_t words[PHILOX_WORDS];                                \
                                                                                     \
			p.at.offset = f->p->at.offset + PHILOX_BLOCKS * g;           \
			philox_group(words, p.at.seed, p.at.offset);                 \
			if (left >= (N)) {                                           \
				NAME(out, words, &p);                                \
				continue;                                            \
			}                                                            \
			NAME(part, words, &p);                                       \
			memcpy(out, part, left * sizeof(T));                         \
		}                                                                    \
	}                                                                            \
                                                                                     \
	static void NAME##_fill(char *out, int64_t n, const struct random_params *p) \
	{                                                                            \
		parallel_for(0, (n + (N)-1) / (N), RANDOM_GRAIN, NAME##_groups,      \
			     &(struct random_fill){ p, out, n });                    \
	}

/* The same for the halves, by way of NAME's floats. */
#define RANDOM_FILL_HALF(NAME, d)                                                    \
	static inline void NAME##_##d(uint16_t *restrict out, const uint32_t *words, \
				      const struct random_params *p)                 \
	{                                                                            \
		float v[NARROW];                                                     \
                                                                                     \
		NAME##_f32(v, words, p);                                             \
		for (int i = 0; i < NARROW; i++)                                     \
			out[i] = f32_to_##d(v[i]);                                   \
	}                                                                            \
	RANDOM_FILL(NAME##_##d, uint16_t, NARROW)

/* NAME for the float dtypes, from NAME_f32() and NAME_f64(). */
#define RANDOM_FLOATS(NAME)                    \
	RANDOM_FILL(NAME##_f32, float, NARROW) \
	RANDOM_FILL(NAME##_f64, double, WIDE)  \
	RANDOM_FILL_HALF(NAME, f16)            \
	RANDOM_FILL_HALF(NAME, bf16)

typedef void (*random_fill_fn)(char *out, int64_t n, const struct random_params *p);

/* Number i of 64 bits in a group is its words lo and hi. */
static inline int wide_word(int i)
{
	return i / PHILOX_BLOCKS * 2 * PHILOX_BLOCKS + i % PHILOX_BLOCKS;
}

static inline uint64_t wide_number(const uint32_t *words, int i)
{
	int w = wide_word(i);

	return words[w] | (uint64_t)words[w + PHILOX_BLOCKS] << 32;
}

/* [0, 1) in steps of 2^-53 from a number of 64 bits. */
static inline double unit_f64(uint32_t lo, uint32_t hi)
{
	return ((int32_t)(hi >> 5) * 0x1p26 + (int32_t)(lo >> 6)) * 0x1p-53;
}

/* A natural logarithm for 2^-53 <= x <= 1: 2 atanh(f / (2 + f)) of the fraction as a series. The
 * same operations at every level, and so the same bits. */
static inline float log_unit_f32(float x)
{
	int32_t bits = (int32_t)f32_to_bits(x), e = (bits - 0x3f3504f3) >> 23;
	float f = bits_to_f32((uint32_t)(bits - (e << 23))) - 1;
	float s = f / (2 + f), z = s * s;
	float tail = z * (2.0f / 3 + z * (2.0f / 5 + z * (2.0f / 7 + z * (2.0f / 9))));

	return (float)e * 0.693147180559945309f + (2 * s + s * tail);
}

static inline double log_unit_f64(double x)
{
	union {
		double d;
		uint64_t u;
	} b = { x };
	/* The exponent, without an integer's conversion, which not every level has. */
	uint64_t up = b.u + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
	union {
		uint64_t u;
		double d;
	} m = { (up & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd },
	  e = { (up >> 52) | 0x4330000000000000 };
	double f = m.d - 1, s = f / (2 + f), z = s * s, tail = 0;

	for (int k = 23; k >= 3; k -= 2)
		tail = z * (2.0 / k + tail);
	return (e.d - (0x1p52 + 1023)) * 0.693147180559945309417 + (2 * s + s * tail);
}

#endif
