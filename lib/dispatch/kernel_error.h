/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Errors of kernels of all backends. */
#ifndef TENSOR_KERNEL_ERROR_H
#define TENSOR_KERNEL_ERROR_H

#include <tensor/types.h>

/* Sets the error that the kernel does not support dtype; returns -EOPNOTSUPP. */
int tensor_kernel_no_dtype(const char *name, enum tensor_dtype dtype, const char *backend)
	__attribute__((cold));

/* Sets the error that a device cannot run its kernel of that name, so that the CPU may; returns -EOPNOTSUPP. */
int tensor_kernel_missing(const char *name, const char *why) __attribute__((cold));

#endif
