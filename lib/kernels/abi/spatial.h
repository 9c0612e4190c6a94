/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* C types of the kernels of convolution, pooling and interpolation: as kernels.h. */
#ifndef TENSOR_KERNELS_SPATIAL_H
#define TENSOR_KERNELS_SPATIAL_H

#include "kernels/abi/kernels.h"

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

/*
 * Interpolation over the last `spatial` dimensions of contiguous tensors: upsample from input to
 * out, upsample_backward from out's gradient to input's. scale is output over input for three
 * dimensions, the missing ones first; 0: as the sizes say.
 */
enum upsample_mode {
	UPSAMPLE_NEAREST,
	UPSAMPLE_NEAREST_EXACT, /* of the positions' centres */
	UPSAMPLE_LINEAR,
	UPSAMPLE_CUBIC,
};
struct upsample_params {
	int spatial;
	enum upsample_mode mode;
	bool align_corners;
	double scale[3];
};
typedef int (*upsample_kernel)(tensor *out, const tensor *in, const struct upsample_params *params);

/* Columns of an image: im2col from self to out, col2im the sum that goes back. All tensors are
 * contiguous and have a batch. */
struct columns_params {
	int64_t kernel[2], dilation[2], padding[2], stride[2];
};
typedef int (*columns_kernel)(tensor *out, const tensor *self, const struct columns_params *params);

/* input [n, c, h, w], grid [n, y, x, 2] with x first, -1 to 1; grad and out [n, c, y, x]. Results
 * that are not wanted are NULL. */
enum grid_mode { GRID_BILINEAR, GRID_NEAREST, GRID_BICUBIC };
enum grid_padding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };
struct grid_params {
	enum grid_mode mode;
	enum grid_padding padding;
	bool align_corners;
};
typedef int (*grid_sampler_kernel)(tensor *out, const tensor *input, const tensor *grid,
				   const struct grid_params *params);
typedef int (*grid_sampler_backward_kernel)(tensor *grad_input, tensor *grad_grid,
					    const tensor *grad, const tensor *input,
					    const tensor *grid, const struct grid_params *params);

#endif
