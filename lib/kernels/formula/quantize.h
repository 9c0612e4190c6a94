/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Conversions of one element of a quantized tensor, for the CPU and for CUDA. Integers wrap. */
#ifndef TENSOR_FORMULA_QUANTIZE_H
#define TENSOR_FORMULA_QUANTIZE_H

#include "kernels/formula/dtypes.h"

#include <math.h>
#include <stdint.h>

/*
 * round(x factor) + zero, where low and high are the limits minus zero. Saturates in f32, before zero is added, so that nothing
 * overflows. NaN becomes the greatest value.
 */
FORMULA int32_t quantize_to_byte(float x, float factor, int32_t zero, float low, float high)
{
	x = rintf(x * factor);
	x = x < high ? x : high;
	x = x > low ? x : low;
	return (int32_t)x + zero;
}

/* Saturates in integers: not all limits of i32 are values of f32. */
FORMULA int32_t quantize_to_i32(float x, float factor, int32_t zero)
{
	int64_t q;

	x = rintf(x * factor);
	x = x < 0x1p33f ? x : 0x1p33f;
	x = x > -0x1p33f ? x : -0x1p33f;
	q = (int64_t)x + zero;
	q = q < INT32_MAX ? q : INT32_MAX;
	return (int32_t)(q > INT32_MIN ? q : INT32_MIN);
}

FORMULA float dequantize_by_f32(int32_t q, int32_t zero, float scale)
{
	return (float)(int32_t)((uint32_t)q - (uint32_t)zero) * scale;
}

FORMULA float dequantize_by_f64(int32_t q, int32_t zero, double scale)
{
	return (float)((double)((float)q - (float)zero) * scale);
}

#endif
