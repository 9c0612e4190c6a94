/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of one pass over all tensors of a list. See launch.h and kernels/abi/list.h. */
#ifndef TENSOR_CUDA_LAUNCH_LIST_H
#define TENSOR_CUDA_LAUNCH_LIST_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_LIST_ITEMS	 64
#define CUDA_LIST_BLOCKS 64 /* for an item, at most */

enum cuda_list_method {
	CUDA_LIST_SCALE,
	CUDA_LIST_CLAMP,
	CUDA_LIST_LERP,
	CUDA_LIST_UNSCALE,
	CUDA_LIST_NORM_1,
	CUDA_LIST_NORM_2,
	CUDA_LIST_NORM_MAX,
	CUDA_LIST_NORM_P
};

/* Items of one dtype. partial: `blocks` results for each item, of methods that have one. */
struct cuda_list {
	enum cuda_list_method method;
	double value, *partial;
	int n, blocks;
	struct {
		int64_t n;
		void *x;
		const void *y;
	} item[CUDA_LIST_ITEMS];
};
int cuda_launch_list(const struct cuda_list *l, int dtype, cudaStream_t stream);
/* *result = the combination of n partial results in their order. */
int cuda_launch_list_total(enum cuda_list_method method, const double *partial, int64_t n,
			   double *result, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
