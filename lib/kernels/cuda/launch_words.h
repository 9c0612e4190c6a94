/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The launcher of words that the host passes to the device. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_WORDS_H
#define TENSOR_CUDA_LAUNCH_WORDS_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Copies n words of 32 bits from the host to the device, at most CUDA_WORDS_MOST. They are an argument of the launch: a copy from
 * pageable memory would have to wait until CUDA has read it, and cannot be captured.
 */
#define CUDA_WORDS_MOST 960
int cuda_launch_words(void *to, const void *from, int n, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
