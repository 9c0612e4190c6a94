/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Errors that kernels of all backends report with the same text. */
#ifndef TENSOR_KERNEL_ERROR_H
#define TENSOR_KERNEL_ERROR_H

#include <tensor/types.h>

/* Returns -EOPNOTSUPP with the error set: the kernel `name` of a backend has no code for dtype. */
int kernel_no_dtype(const char *name, enum tensor_dtype dtype, const char *backend)
	__attribute__((cold));

#endif
