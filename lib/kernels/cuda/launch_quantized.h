/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of quantized tensors. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_QUANTIZED_H
#define TENSOR_CUDA_LAUNCH_QUANTIZED_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* n elements. The arrays are NULL for one channel; exact, the scales in f64, is then NULL as well. */
struct cuda_quant {
	const void *in;
	void *out;
	int64_t n, channels, inner;
	float one_scale;
	int32_t one_zero;
	const float *scale;
	const double *exact;
	const int32_t *zero;
};
/* dtype: of the quantized elements. */
int cuda_launch_quantize(const struct cuda_quant *q, int dtype, cudaStream_t stream);
int cuda_launch_dequantize(const struct cuda_quant *q, int dtype, cudaStream_t stream);

/* As struct gemm_s8 and struct requantize; w_zero, scale and bias are on the device. */
struct cuda_gemm_s8 {
	int64_t m, n, k, count, groups, out_step;
	const uint8_t *x;
	const int8_t *w;
	uint8_t *out;
	int64_t out_row, out_column;
	int32_t x_zero;
	const int32_t *w_zero;
	const float *scale, *bias;
	bool bias_reciprocal;
	float out_scale;
	int32_t out_zero, low, high;
};
int cuda_launch_gemm_s8(const struct cuda_gemm_s8 *p, cudaStream_t stream);

/* As struct patches. */
struct cuda_patches {
	int64_t images, channels, height, width, kh, kw, oh, ow;
	int64_t stride[2], padding[2], dilation[2];
	uint8_t fill;
};
int cuda_launch_patches(uint8_t *out, const uint8_t *image, const struct cuda_patches *p,
			cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
