/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The C types of the kernels of quantized tensors. q = round(x / scale) + zero_point, rounded to
 * nearest even and saturated; x = (q - zero_point) * scale, in f32. Scales and zero points are in host memory, also for a
 * kernel of a device.
 */
#ifndef TENSOR_QUANTIZED_KERNELS_H
#define TENSOR_QUANTIZED_KERNELS_H

#include "core/tensor_impl.h"

/*
 * Scales and zero points by channel: element i of a contiguous tensor belongs to channel
 * i / inner % channels. With several channels, dequantize uses the scales in f64.
 */
struct quant {
	const float *scale;
	const double *exact; /* the scales in f64; NULL for one channel */
	const int32_t *zero_point;
	int64_t channels, inner;
};

/* Conversions from f32 to u8, i8 or i32, and back, of contiguous tensors. */
typedef int (*quantize_kernel)(tensor *out, const tensor *self, const struct quant *q);
extern quantize_kernel type_of_quantize;
typedef int (*dequantize_kernel)(tensor *out, const tensor *self, const struct quant *q);
extern dequantize_kernel type_of_dequantize;

/* The conversion of the sums of a product. Arrays have an element for each output channel. */
struct requantize {
	int32_t x_zero;
	const int32_t *w_zero;
	const float *scale;   /* the scale of x times that of w */
	const float *bias;    /* f32, in the memory of the tensors, or NULL */
	bool bias_reciprocal; /* one scale for all channels: multiply bias by 1 / scale */
	float out_scale;
	int32_t out_zero, low, high; /* limits of the result; low == out_zero is relu */
};

/*
 * out[i, j] = requantized sum over k of (x[i, k] - x_zero) (w[j, k] - w_zero[j]); x u8 [m, k], w i8
 * [n, k], both with contiguous rows of k bytes; out u8 or i8 with strides by row and by column. Product p of `count` has x from
 * row p * m, w and the arrays of `requantize` from row p % groups * n, and out from p * out_step.
 */
struct gemm_s8 {
	int64_t m, n, k, count, groups, out_step;
	const uint8_t *x;
	const int8_t *w;
	uint8_t *out;
	int64_t out_row, out_column;
	const struct requantize *requantize;
	/* The tensors that the pointers belong to, for backends with streams: out, x, w, and bias or NULL. */
	const tensor *tensors[4];
};
typedef int (*gemm_s8_kernel)(const struct gemm_s8 *p);
extern gemm_s8_kernel type_of_gemm_s8;

/* im2col of bytes, padded with `fill`: of each image [channels, height, width] out [oh * ow, channels * kh * kw]. */
struct patches {
	int64_t images, channels, height, width, kh, kw, oh, ow;
	int64_t stride[2], padding[2], dilation[2];
	uint8_t fill;
	const tensor *tensors[2]; /* out and image belong to them */
};
typedef int (*patches_kernel)(uint8_t *out, const uint8_t *image, const struct patches *p);
extern patches_kernel type_of_patches_u8;

/*
 * gemm_s8 and patches_u8 are kernels of devices. On the CPU a product reads the images in place, and weights that pack_s8 has reordered: i8
 * [groups * n, shape.channels, kh, kw], of which packed is a new tensor of bytes. Its order depends on the instruction-set level.
 */
struct product_s8 {
	struct patches shape; /* channels: those of one group; fill: the zero point of x */
	int64_t groups, n;    /* n output channels of each group */
	bool channels_last; /* x [images, height, width, channels] and out likewise; else channels precede rows and columns */
	const uint8_t *x;
	uint8_t *out;
	const tensor *packed;
	const struct requantize *requantize;
};
typedef tensor *(*pack_s8_kernel)(const int8_t *w, int64_t groups, int64_t n, int64_t channels,
				  int64_t taps);
extern pack_s8_kernel type_of_pack_s8;
typedef int (*product_s8_kernel)(const struct product_s8 *p);
extern product_s8_kernel type_of_product_s8;

/*
 * out = a + b, or with `product` a * b, of dequantized numbers, quantized; contiguous u8 or i8 of one size. The integers are those that
 * separate operators find: a sum uses the scales of a and b, a product the factor, which is the product of both scales over that of out.
 */
struct pair_s8 {
	int64_t n;
	const void *a, *b;
	void *out;
	bool product, is_signed;
	float a_scale, b_scale, out_scale, factor;
	int32_t a_zero, b_zero, out_zero;
};
typedef int (*pair_s8_kernel)(const struct pair_s8 *p);
extern pair_s8_kernel type_of_pair_s8;

#endif
