/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of the kernels of Fourier transforms. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_FFT_H
#define TENSOR_CUDA_LAUNCH_FFT_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Multiplies n numbers, f64 or f32. */
int cuda_launch_fft_scale(void *data, int64_t n, double scale, bool is_double, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
