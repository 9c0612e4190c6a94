/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What fronts of quantised tensors hand to kernels. q = round(x / scale) + zero_point, rounded to
 * the nearest even and saturated; x = (q - zero_point) * scale, in f32.
 */
#ifndef TENSOR_QUANTIZED_KERNELS_H
#define TENSOR_QUANTIZED_KERNELS_H

#include "core/tensor_impl.h"

/*
 * Scales and zero points by channel: element i of a contiguous tensor belongs to channel
 * i / inner % channels. One channel: all elements. Several are dequantised with scales in f64.
 */
struct quant {
	const float *scale;
	const double *exact; /* NULL for one channel */
	const int32_t *zero_point;
	int64_t channels, inner;
};

/* f32 to u8, i8 or i32, and back; contiguous. */
typedef int (*quantize_kernel)(tensor *out, const tensor *self, const struct quant *q);
typedef int (*dequantize_kernel)(tensor *out, const tensor *self, const struct quant *q);

/* What becomes of a product's sums. Arrays are by output channel. */
struct requantize {
	int32_t x_zero;
	const int32_t *w_zero;
	const float *scale;   /* of x times that of w */
	const float *bias;    /* f32, or NULL */
	bool bias_reciprocal; /* one scale for all channels: the bias is multiplied by 1 / scale */
	float out_scale;
	int32_t out_zero, low, high; /* the result's range; a low of out_zero is relu */
};

/*
 * out[i, j] = requantised sum over k of (x[i, k] - x_zero) (w[j, k] - w_zero[j]); x u8 [m, k], w i8
 * [n, k], both with contiguous rows of k bytes; out u8 or i8 with strides by row and by column.
 */
struct product_i8 {
	int64_t m, n, k;
	const uint8_t *x;
	const int8_t *w;
	uint8_t *out;
	int64_t out_row, out_column;
	const struct requantize *requantize;
};
typedef int (*product_i8_kernel)(const struct product_i8 *p);

/* Patches of an image under a kernel, padded with `fill`: out [oh * ow, channels * kh * kw]. */
struct patches {
	int64_t channels, height, width, kh, kw, oh, ow;
	int64_t stride[2], padding[2], dilation[2];
	uint8_t fill;
};
typedef int (*patches_kernel)(uint8_t *out, const uint8_t *image, const struct patches *p);

#endif
