/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Channels last. */
#ifndef TENSOR_MEMORY_FORMAT_H
#define TENSOR_MEMORY_FORMAT_H

#include "core/tensor_impl.h"

/* Checks a memory format for a tensor of ndim dimensions. 0, or -EINVAL with the error set. */
int memory_format_check(unsigned format, int ndim);

/* Whether t is [n, c, h, w] or [n, c, d, h, w] and its channels are the innermost dimension. */
bool memory_channels_last(const tensor *t);

/* The strides of such a tensor of 4 or 5 dimensions. */
void memory_channels_last_strides(const int64_t *sizes, int ndim, int64_t *strides);

#endif
