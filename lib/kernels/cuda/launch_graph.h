/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of the kernels that graphs need. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_GRAPH_H
#define TENSOR_CUDA_LAUNCH_GRAPH_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_WORDS 64

/* Sets n words of 64 bits on the device, at most CUDA_WORDS. The values are arguments of the launch. */
int cuda_launch_words(void *to, const uint64_t *values, int n, cudaStream_t stream);
/* flag[1] = flag[0] if that is not UINT64_MAX, and flag[1] is. */
int cuda_launch_keep_flag(unsigned long long *flag, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
