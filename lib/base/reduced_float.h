/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Conversion between f32 and the floats of 16 and 8 bits: f16 (IEEE binary16), bf16 (the upper half
 * of an f32), e4m3fn and e5m2. Rounds to nearest, ties to even; NaN stays NaN, values out of range
 * become infinity.
 */
#ifndef TENSOR_HALF_H
#define TENSOR_HALF_H

#include <stdint.h>

static inline float bits_to_f32(uint32_t u)
{
	union {
		uint32_t u;
		float f;
	} b = { u };

	return b.f;
}

static inline uint32_t f32_to_bits(float f)
{
	union {
		float f;
		uint32_t u;
	} b = { f };

	return b.u;
}

static inline float bf16_to_f32(uint16_t h)
{
	return bits_to_f32((uint32_t)h << 16);
}

/* The upper half is f in bf16. */
static inline uint32_t f32_round_bf16(float f)
{
	uint32_t u = f32_to_bits(f), rounded = u + 0x7fff + (u >> 16 & 1);

	return f != f ? u | 0x400000 : rounded;
}

static inline uint16_t f32_to_bf16(float f)
{
	return (uint16_t)(f32_round_bf16(f) >> 16);
}

static inline float f16_to_f32(uint16_t h)
{
	/*
	 * Shifted into place, exponent and fraction are 2^112 times too small; one multiplication
	 * corrects that, also for subnormals. Infinities and NaNs keep the highest exponent.
	 */
	uint32_t shifted = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t scaled = f32_to_bits(bits_to_f32(shifted) * 0x1p112f);
	uint32_t special = shifted | 0x7f800000 | (uint32_t)(shifted > 0x0f800000) << 22;

	return bits_to_f32((shifted >= 0x0f800000 ? special : scaled) | sign);
}

static inline uint16_t f32_to_f16(float f)
{
	uint32_t u = f32_to_bits(f), magnitude = u & 0x7fffffff, sign = u >> 16 & 0x8000;
	/* Subnormal result: the sum with 0.5 has the same last place, so the addition rounds. */
	uint32_t small = f32_to_bits(bits_to_f32(magnitude) + 0.5f) - 0x3f000000;
	uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
	uint32_t h = magnitude < 0x38800000 ? small : magnitude < 0x477ff000 ? normal : 0x7c00;

	/* A NaN keeps the upper bits of its payload, as in the instruction for vectors. */
	return (uint16_t)(sign | (magnitude > 0x7f800000 ? 0x7e00 | (u >> 13 & 0x1ff) : h));
}

/*
 * The floats of 8 bits, "FP8 Formats for Deep Learning" (Micikevicius et al., 2022). e5m2 is the
 * upper half of an f16. e4m3fn has a bias of 7, no infinities and one NaN of each sign (all ones);
 * values above 448 and infinities become 448, as in PyTorch 2.15.
 */
static inline float e5m2_to_f32(uint8_t b)
{
	return f16_to_f32((uint16_t)(b << 8));
}

static inline uint8_t f32_to_e5m2(float f)
{
	/*
	 * Rounds before truncation: adds half a unit of the last place, less one bit for ties to
	 * even. The last place of a subnormal result is 2^-16.
	 */
	uint32_t u = f32_to_bits(f), magnitude = u & 0x7fffffff, sign = u >> 24 & 0x80;
	uint32_t small = f32_to_bits(bits_to_f32(magnitude) + 128) - 0x43000000;
	uint32_t normal = (magnitude - 0x38000000 + 0xfffff + (magnitude >> 21 & 1)) >> 21;
	uint32_t b = magnitude < 0x38800000 ? small : magnitude < 0x47700000 ? normal : 0x7c;

	return (uint8_t)(sign | (magnitude > 0x7f800000 ? 0x7f : b));
}

static inline float e4m3fn_to_f32(uint8_t b)
{
	/* Shifted into place, exponent and fraction are 2^120 times too small. */
	uint32_t scaled = f32_to_bits(bits_to_f32((uint32_t)(b & 0x7f) << 20) * 0x1p120f);

	return bits_to_f32(((b & 0x7f) == 0x7f ? 0x7ff00000 : scaled) | (uint32_t)(b & 0x80) << 24);
}

static inline uint8_t f32_to_e4m3fn(float f)
{
	/* The last place of a subnormal result is 2^-9. */
	uint32_t u = f32_to_bits(f), magnitude = u & 0x7fffffff, sign = u >> 24 & 0x80;
	uint32_t small = f32_to_bits(bits_to_f32(magnitude) + 16384) - 0x46800000;
	uint32_t normal = (magnitude - 0x3c000000 + 0x7ffff + (magnitude >> 20 & 1)) >> 20;
	uint32_t b = magnitude < 0x3c800000 ? small : normal;

	return (uint8_t)(sign | (magnitude > 0x7f800000	 ? 0x7f :
				 magnitude >= 0x43e00000 ? 0x7e :
							   b));
}

/*
 * Negative values convert through i64, as integers do. Values of 2^64 and more, and NaN, give the
 * greatest u64. C leaves both undefined, and processors differ.
 */
static inline uint64_t f64_to_u64(double d)
{
	if (d < 0x1p63)
		return (uint64_t)(int64_t)d;
	return d < 0x1p64 ? (uint64_t)d : UINT64_MAX;
}

#endif
