/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers for linear algebra. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_LINALG_H
#define TENSOR_CUDA_LAUNCH_LINALG_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* to[i] = first + i * step bytes, for functions on batches, which take arrays of pointers. */
int cuda_launch_pointers(void **to, void *first, int64_t step, int64_t n, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
