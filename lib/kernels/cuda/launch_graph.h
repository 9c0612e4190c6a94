/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of the kernels that graphs need. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_GRAPH_H
#define TENSOR_CUDA_LAUNCH_GRAPH_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* flag[1] = flag[0] if that is not UINT64_MAX, and flag[1] is. */
int cuda_launch_keep_flag(unsigned long long *flag, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
