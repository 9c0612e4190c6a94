/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Uniform, normal and exponential numbers from random words. Only additions, multiplications,
 * divisions and square roots in a fixed order, so that a seed gives the same bits at every
 * instruction-set level and on CUDA.
 */
#ifndef TENSOR_FORMULA_RANDOM_H
#define TENSOR_FORMULA_RANDOM_H

#include "base/reduced_float.h"

#include <math.h>
#include <stdint.h>

/* ---- from one word, in f32 ---- */

/* A number in [0, 1), a multiple of 2^-24. */
static inline float unit_f32(uint32_t word)
{
	return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

/* A number in (0, 1), for a logarithm. */
static inline float positive_unit_f32(uint32_t word)
{
	return (float)(int32_t)(word >> 1) * 0x1p-31f + 0x1p-32f;
}

/*
 * The natural logarithm of 2^-53 <= x <= 1. log(1 + f) = 2 atanh(f / (2 + f)) as a series.
 */
static inline float log_unit_f32(float x)
{
	int32_t bits = (int32_t)f32_to_bits(x), e = (bits - 0x3f3504f3) >> 23;
	float f = bits_to_f32((uint32_t)bits - ((uint32_t)e << 23)) - 1;
	float s = f / (2 + f), z = s * s;
	float tail = z * (2.0f / 3 + z * (2.0f / 5 + z * (2.0f / 7 + z * (2.0f / 9))));

	return (float)e * 0.693147180559945309f + (2 * s + s * tail);
}

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

/* ---- from two words, in f64 ---- */

/* A number in [0, 1), a multiple of 2^-53. */
static inline double unit_f64(uint32_t lo, uint32_t hi)
{
	return ((int32_t)(hi >> 5) * 0x1p26 + (int32_t)(lo >> 6)) * 0x1p-53;
}

union f64_bits {
	double d;
	uint64_t u;
};

static inline double log_unit_f64(double x)
{
	union f64_bits b = { x }, m, e;
	/*
	 * The exponent becomes a double by its bits: v2 and v3 cannot convert vectors of int64_t.
	 */
	uint64_t up = b.u + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
	double f, s, z, tail = 0;

	m.u = (up & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd;
	e.u = (up >> 52) | 0x4330000000000000;
	f = m.d - 1;
	s = f / (2 + f);
	z = s * s;
	for (int k = 23; k >= 3; k -= 2)
		tail = z * (2.0 / k + tail);
	return (e.d - (0x1p52 + 1023)) * 0.693147180559945309417 + (2 * s + s * tail);
}

static inline void sincos_turn_f64(double turn, double *sine, double *cosine)
{
	/* Adding 1.5 * 2^52 rounds to an integer, which the low bits then hold. */
	union f64_bits quarter = { turn * 4 + 0x1.8p52 }, a, b;
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

#endif
