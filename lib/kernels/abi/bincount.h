/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The C type of the kernel of bincount. */
#ifndef TENSOR_BINCOUNT_H
#define TENSOR_BINCOUNT_H

#include "kernels/abi/kernels.h"

/*
 * self is contiguous, of integers other than u64, with at least one element. counts is in the memory of
 * its device. If counts is NULL, sets
 * *least and *most to the range of self; otherwise adds the occurrences of 0 to n - 1 to counts[] and
 * ignores other elements.
 */
typedef int (*bincount_kernel)(const tensor *self, int64_t *counts, int64_t n, int64_t *least,
			       int64_t *most);
extern bincount_kernel type_of_bincount;

#endif
