/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Helpers of the generated functions of operators that call another operator for each tensor of a
 * list. */
#ifndef TENSOR_EACH_H
#define TENSOR_EACH_H

#include "dispatch/dispatch.h"

/* -EINVAL for empty lists or lists of different lengths. */
int each_begin(const char *op, tensor_ints lengths);
/* -EINVAL for a tensor with dimensions. */
int each_scalar(const char *op, const tensor *t);
/* Release results[0..n - 1] after a failure at position n. */
int each_failed(tensor **results, int64_t n) __attribute__((cold));

#endif
