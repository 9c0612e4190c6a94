/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Operators that a device has no kernel for, on the CPU. */
#ifndef TENSOR_HOST_FALLBACK_H
#define TENSOR_HOST_FALLBACK_H

/*
 * For the CUDA plugin, after it has registered its kernels: operators of CUDA without a kernel run on
 * the CPU from now on, unless tensor_cuda_set_fallback() forbids it. 0 or -errno.
 */
int tensor_register_cuda_fallback(void);

#endif
