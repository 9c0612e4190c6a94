/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Windows of images on the host: from tensors and parameters to struct cuda_windows. */
#ifndef TENSOR_CUDA_WINDOWS_H
#define TENSOR_CUDA_WINDOWS_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launch_spatial.h"

/*
 * Sets the sizes of the last `spatial` dimensions of both tensors, and planes of them; kernel,
 * stride, padding and dilation may be NULL: 1, 1, 0 and 1. Fails with EOPNOTSUPP if offsets within a
 * plane need more than 32 bits. w->wide is set for `images` times the larger plane.
 */
int cuda_windows_of(struct cuda_windows *w, const char *op, const tensor *in, const tensor *out,
		    int spatial, const int64_t *kernel, const int64_t *stride,
		    const int64_t *padding, const int64_t *dilation, int64_t images);

#endif
