/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of the kernels of convolution, pooling and interpolation. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_SPATIAL_H
#define TENSOR_CUDA_LAUNCH_SPATIAL_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Windows of an image: tap k of output o reads element o * stride - padding + k * dilation along
 * each of three dimensions. `wide`: positions in the largest tensor need 64 bits.
 */
struct cuda_windows {
	int in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
	int64_t in_plane, out_plane, taps;
	bool wide;
};

/* ---- columns: a row for each tap of each plane, with the element that it reads for each output ---- */

/* Image i, plane c, tap t and output o are at i * image_step + (c * taps + t) * row_step + o of the
 * columns, and image i, plane c, element e at i * planes_step + c * in_plane + e of the images. */
struct cuda_columns {
	struct cuda_windows w;
	int64_t images, planes, planes_step, image_step, row_step;
};
int cuda_launch_im2col(const struct cuda_columns *c, void *columns, const void *images,
		       int itemsize, cudaStream_t stream);
/* Sums the columns of each element, in the order of the taps, and bias[plane] unless that is NULL. */
int cuda_launch_col2im(const struct cuda_columns *c, void *images, const void *columns,
		       const void *bias, int dtype, cudaStream_t stream);

/* ---- convolutions by loops over the taps, see kernels/abi/spatial.h ---- */

struct cuda_conv {
	struct cuda_windows w;
	int64_t batch, groups, in, out; /* in, out: channels of a group */
};
int cuda_launch_conv(const struct cuda_conv *c, void *result, const void *input, const void *weight,
		     const void *bias, int dtype, cudaStream_t stream);
int cuda_launch_conv_input(const struct cuda_conv *c, void *result, const void *grad,
			   const void *weight, const void *bias, int dtype, cudaStream_t stream);
/* Blocks for each element of the weight's first two dimensions. */
int cuda_conv_weight_split(const struct cuda_conv *c);
/* partial has `split` times the elements of the result, unless split is 1. */
int cuda_launch_conv_weight(const struct cuda_conv *c, void *result, const void *grad,
			    const void *input, void *partial, int split, int dtype,
			    cudaStream_t stream);

/* ---- pooling of `planes` planes ---- */

struct cuda_pool {
	struct cuda_windows w; /* adaptive pooling: the sizes alone */
	int64_t planes, divisor;
	bool count_include_pad;
};
int cuda_launch_max_pool(const struct cuda_pool *p, void *out, int64_t *indices, const void *in,
			 int dtype, cudaStream_t stream);
int cuda_launch_avg_pool(const struct cuda_pool *p, void *out, const void *in, int dtype,
			 cudaStream_t stream);
int cuda_launch_avg_pool_backward(const struct cuda_pool *p, void *out, const void *grad, int dtype,
				  cudaStream_t stream);
int cuda_launch_adaptive_avg_pool(const struct cuda_pool *p, void *out, const void *in, int dtype,
				  cudaStream_t stream);
int cuda_launch_adaptive_avg_pool_backward(const struct cuda_pool *p, void *out, const void *grad,
					   int dtype, cudaStream_t stream);
int cuda_launch_adaptive_max_pool(const struct cuda_pool *p, void *out, int64_t *indices,
				  const void *in, int dtype, cudaStream_t stream);

/* ---- padding of the last three dimensions; steps are elements ---- */

/* `wide` is the padded tensor, `core` the unpadded one. */
struct cuda_pad_shape {
	bool reflect; /* else the element at the edge */
	int64_t wide[3], core[3], wide_step[3], core_step[3], before[3];
};
/* Operand 0 of `planes` is the padded tensor, 1 the unpadded one. */
int cuda_launch_pad(const struct cuda_dims *planes, const struct cuda_pad_shape *s, void *out,
		    const void *in, int itemsize, cudaStream_t stream);
int cuda_launch_pad_backward(const struct cuda_dims *planes, const struct cuda_pad_shape *s,
			     void *out, const void *grad, int dtype, cudaStream_t stream);

/* ---- interpolation of `planes` planes: enum upsample_mode of kernels/abi/spatial.h ---- */

enum cuda_upsample_mode {
	CUDA_UPSAMPLE_NEAREST,
	CUDA_UPSAMPLE_NEAREST_EXACT,
	CUDA_UPSAMPLE_LINEAR,
	CUDA_UPSAMPLE_CUBIC
};
struct cuda_upsample {
	struct cuda_windows w; /* the sizes alone */
	int64_t planes;
	enum cuda_upsample_mode mode;
	bool align;
	int taps; /* elements that an output reads along a dimension */
	double scale[3];
	int64_t entries; /* of the tables: outputs of all dimensions times taps */
	void *scratch;	 /* 12 bytes for each */
};
int cuda_launch_upsample(const struct cuda_upsample *u, void *out, const void *in, int dtype,
			 cudaStream_t stream);
int cuda_launch_upsample_backward(const struct cuda_upsample *u, void *out, const void *grad,
				  int dtype, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
