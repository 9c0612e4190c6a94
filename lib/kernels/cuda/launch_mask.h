/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of kernels with a mask of n elements, bool or u8, contiguous. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_MASK_H
#define TENSOR_CUDA_LAUNCH_MASK_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_MASK_CHUNK 4096 /* elements of a chunk */

/* first[i] becomes the number of true elements before chunk i; the one after the last chunk that of
 * all. */
int cuda_launch_mask_count(const uint8_t *mask, int64_t n, int64_t *first, cudaStream_t stream);
/* out [ndim, total]: the positions of the true elements. */
int cuda_launch_nonzero(const uint8_t *mask, int64_t n, const int64_t *first, const int64_t *sizes,
			int ndim, int64_t total, int64_t *out, cudaStream_t stream);
/* select: to = the elements of `from` where the mask is true; else to = `from`, in order, there. */
int cuda_launch_masked(const uint8_t *mask, int64_t n, const int64_t *first, bool select, void *to,
		       const void *from, int itemsize, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
