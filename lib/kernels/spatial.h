/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* C types of the kernels of convolution, pooling and interpolation: as kernels.h. */
#ifndef TENSOR_KERNELS_SPATIAL_H
#define TENSOR_KERNELS_SPATIAL_H

#include "kernels.h"

/*
 * Convolutions. Contiguous tensors [batch, channels, 1 to 3 spatial dimensions], whose sizes have
 * been checked; params are for three spatial dimensions, those that are missing are the first.
 *   convolution         out, input, weight, bias      out[k, p] = bias[k] + sum weight[k, c, r]
 *                                                       input[c, p stride - padding + r dilation]
 *   convolution_input   input's gradient, out's gradient, weight, bias: the transposed sum, plus
 *                       a bias for each channel
 *   convolution_weight  weight's gradient, out's gradient, input, NULL
 * weight is [out channels, input channels / groups, taps]; bias may be NULL.
 */
struct conv_params {
	int64_t stride[3], padding[3], dilation[3], groups;
};
typedef int (*convolution_kernel)(tensor *result, const tensor *a, const tensor *b,
				  const tensor *bias, const struct conv_params *params);

/*
 * Pooling over the last `spatial` (2 or 3) dimensions of contiguous tensors, the planes before them
 * each for itself; params are for three dimensions as above. Indices are i64 and count within a
 * plane of the input. EINVAL for one that is out of range.
 *   avg_pool, adaptive_avg_pool              out, input
 *   avg_pool_backward, adaptive_..._backward input's gradient, out's gradient
 *   max_pool, adaptive_max_pool              out, indices, input
 *   max_pool_backward                        input's gradient, out's gradient, indices
 */
struct pool_params {
	int spatial;
	int64_t kernel[3], stride[3], padding[3], dilation[3];
	bool count_include_pad;
	int64_t divisor; /* 0: the number of elements */
};
typedef int (*pool_kernel)(tensor *out, const tensor *in, const struct pool_params *params);
typedef int (*max_pool_kernel)(tensor *out, tensor *indices, const tensor *self,
			       const struct pool_params *params);
typedef int (*max_pool_backward_kernel)(tensor *out, const tensor *grad, const tensor *indices,
					const struct pool_params *params);

#endif
