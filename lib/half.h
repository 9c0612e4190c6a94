/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The two 16-bit floats as bits: f16 (IEEE binary16) and bf16 (the upper half of an f32). To them
 * rounds to nearest, ties to even; NaN stays NaN, what is too large becomes infinity.
 */
#ifndef TENSOR_HALF_H
#define TENSOR_HALF_H

#include <stdint.h>

static inline float bits_to_f32(uint32_t u)
{
	union {
		uint32_t u;
		float f;
	} b = {u};

	return b.f;
}

static inline uint32_t f32_to_bits(float f)
{
	union {
		float f;
		uint32_t u;
	} b = {f};

	return b.u;
}

static inline float bf16_to_f32(uint16_t h)
{
	return bits_to_f32((uint32_t)h << 16);
}

static inline uint16_t f32_to_bf16(float f)
{
	uint32_t u = f32_to_bits(f), rounded = u + 0x7fff + (u >> 16 & 1);

	return (uint16_t)((f != f ? u | 0x400000 : rounded) >> 16);
}

static inline float f16_to_f32(uint16_t h)
{
	/* Exponent and fraction moved into place are 2^112 times too small, which one product
	 * mends, for subnormals too. Infinities and NaNs keep the highest exponent. */
	uint32_t shifted = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t scaled = f32_to_bits(bits_to_f32(shifted) * 0x1p112f);
	uint32_t special = shifted | 0x7f800000 | (uint32_t)(shifted > 0x0f800000) << 22;

	return bits_to_f32((shifted >= 0x0f800000 ? special : scaled) | sign);
}

static inline uint16_t f32_to_f16(float f)
{
	uint32_t u = f32_to_bits(f), magnitude = u & 0x7fffffff, sign = u >> 16 & 0x8000;
	/* A subnormal result: adding 0.5 puts its last place at that of the sum, which rounds. */
	uint32_t small = f32_to_bits(bits_to_f32(magnitude) + 0.5f) - 0x3f000000;
	uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
	uint32_t h = magnitude < 0x38800000 ? small : magnitude < 0x477ff000 ? normal : 0x7c00;

	return (uint16_t)(sign | (magnitude > 0x7f800000 ? 0x7e00 : h));
}

#endif
