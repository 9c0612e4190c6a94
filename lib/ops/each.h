/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* For the generated functions of operators that call another for each tensor of a list. */
#ifndef TENSOR_EACH_H
#define TENSOR_EACH_H

#include "dispatch/dispatch.h"

/* -EINVAL for lists without a tensor, or of different lengths. */
int each_begin(const char *op, tensor_ints lengths);
/* -EINVAL for a tensor with dimensions. */
int each_number(const char *op, const tensor *t);
/* Releases the results before the one that failed, at position n. */
int each_failed(tensor **results, int64_t n) __attribute__((cold));

#endif
