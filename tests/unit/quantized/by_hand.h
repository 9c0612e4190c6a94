/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Operands of the tests of quantized products, and their results by plain loops. */
#ifndef TEST_QUANTIZED_BY_HAND_H
#define TEST_QUANTIZED_BY_HAND_H

#include "check.h"

#include <stdlib.h>

/* Pseudo-random bytes from 0 to n - 1. */
static tensor *bytes(tensor_ints shape, unsigned n, int shift, enum tensor_dtype dtype)
{
	int64_t numel = 1;
	uint8_t *p;
	tensor *t;

	for (int64_t i = 0; i < shape.len; i++)
		numel *= shape.data[i];
	p = malloc(numel + 1);
	for (int64_t i = 0; i < numel; i++)
		p[i] = (uint8_t)((uint64_t)(i + 7) * 2654435761u / 1024 % n + shift);
	t = ok(tensor_from_data(p, shape, TENSOR_OPTIONS(.dtype = dtype)));
	free(p);
	return t;
}

/* The same in plain integer arithmetic, for one element. */
static int requantize_by_hand(int64_t sum, float scale, float bias, float out_scale, int out_zero,
			      int low)
{
	double q = rint((double)(((float)sum + bias * (1.0f / scale)) * (scale / out_scale))) +
		   out_zero;

	return q < low ? low : q > 255 ? 255 : (int)q;
}

struct layer {
	int64_t images, channels, out, groups, height, width, kh, kw, stride, padding, dilation;
};

/* Element [image, o, y, x] of a convolution, its zero points 9 of x and `zero` of the weight. */
static int64_t sum_by_hand(const struct layer *l, const uint8_t *x, const int8_t *w, int zero,
			   int64_t image, int64_t o, int64_t y0, int64_t x0)
{
	int64_t depth = l->channels / l->groups, first = o / (l->out / l->groups) * depth, sum = 0;

	for (int64_t c = 0; c < depth; c++)
		for (int64_t k = 0; k < l->kh * l->kw; k++) {
			int64_t y = y0 * l->stride - l->padding + k / l->kw * l->dilation;
			int64_t at = x0 * l->stride - l->padding + k % l->kw * l->dilation;

			if (y >= 0 && y < l->height && at >= 0 && at < l->width)
				sum += (x[((image * l->channels + first + c) * l->height + y) *
						  l->width +
					  at] -
					9) *
				       (w[(o * depth + c) * l->kh * l->kw + k] - zero);
		}
	return sum;
}

#endif
