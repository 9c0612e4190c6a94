/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The C types of the kernels of convolution, pooling and interpolation. See kernels.h. */
#ifndef TENSOR_KERNELS_SPATIAL_H
#define TENSOR_KERNELS_SPATIAL_H

#include "kernels/abi/grid.h"
#include "kernels/abi/kernels.h"

/*
 * Convolutions of contiguous tensors [batch, channels, 1 to 3 spatial dimensions]. params has three
 * spatial dimensions; if the tensors have fewer, these are the last ones. Arguments:
 *   convolution         out, input, weight, bias      out[k, p] = bias[k] + sum weight[k, c, r]
 *                                                       input[c, p stride - padding + r dilation]
 *   convolution_input   gradient of input, gradient of out, weight, bias: the transposed
 *                       convolution, with a bias for each channel
 *   convolution_weight  gradient of weight, gradient of out, input, NULL
 * weight is [out channels, input channels / groups, taps]; bias may be NULL.
 */
struct conv_params {
	int64_t stride[3], padding[3], dilation[3], groups;
};
typedef int (*convolution_kernel)(tensor *result, const tensor *a, const tensor *b,
				  const tensor *bias, const struct conv_params *params);
extern convolution_kernel type_of_convolution, type_of_convolution_input,
	type_of_convolution_weight;
/*
 * For a and b of bf16 or f16, contiguous: the dtype of the result, and of a bias, with which the backend's three kernels take
 * them as they are, which is f32 or theirs; TENSOR_DTYPE_NONE if they must be widened. sizes: of the result, which is the
 * gradient of a weight, [out, channels of one group, ..], if `of_weight`: a and b are both images then.
 */
typedef enum tensor_dtype (*convolution_reduced_kernel)(const tensor *a, const tensor *b,
							const int64_t *sizes,
							const struct conv_params *params,
							bool of_weight);
extern convolution_reduced_kernel type_of_convolution_reduced;

/*
 * Pooling over the last `spatial` (2 or 3) dimensions of contiguous tensors, separately for each
 * plane. params has three dimensions, as above. Indices are i64 and count within a plane of the
 * input; the backward fails with ERANGE if one is out of range. Arguments:
 *   avg_pool, adaptive_avg_pool              out, input
 *   avg_pool_backward, adaptive_..._backward gradient of input, gradient of out
 *   max_pool, adaptive_max_pool              out, indices, input
 *   max_pool_backward                        gradient of input, gradient of out, indices
 */
struct pool_params {
	int spatial;
	int64_t kernel[3], stride[3], padding[3], dilation[3];
	bool count_include_pad;
	int64_t divisor; /* 0: the number of elements of the window */
};
typedef int (*pool_kernel)(tensor *out, const tensor *in, const struct pool_params *params);
extern pool_kernel type_of_adaptive_avg_pool, type_of_adaptive_avg_pool_backward, type_of_avg_pool,
	type_of_avg_pool_backward;
typedef int (*max_pool_kernel)(tensor *out, tensor *indices, const tensor *self,
			       const struct pool_params *params);
extern max_pool_kernel type_of_adaptive_max_pool, type_of_max_pool;
typedef int (*max_pool_backward_kernel)(tensor *out, const tensor *grad, const tensor *indices,
					const struct pool_params *params);
extern max_pool_backward_kernel type_of_max_pool_backward;

/*
 * Interpolation over the last `spatial` dimensions of contiguous tensors: upsample from input to
 * out, upsample_backward from the gradient of out to that of input. scale is the ratio of output to
 * input for three dimensions, as above; 0: computed from the sizes.
 */
enum upsample_mode {
	UPSAMPLE_NEAREST,
	UPSAMPLE_NEAREST_EXACT, /* by the centres of positions */
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
extern upsample_kernel type_of_upsample, type_of_upsample_backward;

/*
 * im2col: out [batch, channels * taps, places] from self [batch, channels, h, w]; col2im: its
 * gradient, with the arguments exchanged. All tensors are contiguous.
 */
struct columns_params {
	int64_t kernel[2], dilation[2], padding[2], stride[2];
};
typedef int (*columns_kernel)(tensor *out, const tensor *self, const struct columns_params *params);
extern columns_kernel type_of_col2im, type_of_im2col;

/*
 * input [n, c, h, w]; grid [n, y, x, 2], coordinates x and y from -1 to 1; grad and out [n, c, y,
 * x]. grad_input and grad_grid may be NULL.
 */
typedef int (*grid_sampler_kernel)(tensor *out, const tensor *input, const tensor *grid,
				   const struct grid_params *params);
extern grid_sampler_kernel type_of_grid_sampler_2d;
typedef int (*grid_sampler_backward_kernel)(tensor *grad_input, tensor *grad_grid,
					    const tensor *grad, const tensor *input,
					    const tensor *grid, const struct grid_params *params);
extern grid_sampler_backward_kernel type_of_grid_sampler_2d_backward;

#endif
