/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of dot and bincount. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_REDUCE_H
#define TENSOR_CUDA_LAUNCH_REDUCE_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_DOT_BLOCKS	 512 /* at most */
#define CUDA_DOT_PARTIAL 16  /* bytes of the sum of a block */

/* Strides are elements; partial has `blocks` sums. */
struct cuda_dot {
	int64_t n, a_stride, b_stride;
	bool conjugate; /* a */
	const void *a, *b;
};
int cuda_launch_dot(const struct cuda_dot *d, void *out, void *partial, int blocks, int dtype,
		    cudaStream_t stream);

/* range[0] becomes the least of n integers and range[1] the greatest one, with the sign bit
 * inverted; before they are UINT64_MAX and 0. */
int cuda_launch_count_range(const void *self, int64_t n, unsigned long long *range, int dtype,
			    cudaStream_t stream);
/* Adds the occurrences of 0 to bins - 1 to counts. */
int cuda_launch_count(const void *self, int64_t n, unsigned long long *counts, int64_t bins,
		      int dtype, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
