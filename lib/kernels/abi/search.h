/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Kernels that look for things in what is sorted. All tensors are contiguous. */
#ifndef TENSOR_SEARCH_H
#define TENSOR_SEARCH_H

#include "kernels/abi/kernels.h"

/*
 * out[.., j] = the first position in sequence[..] (of n elements) whose element is not less than
 * values[.., j], or, for right, greater. out is i64 like values [lines, m]; sequence is [lines, n] or
 * [n] for all; sorter is NULL or i64 like sequence: the order in which that is sorted.
 */
typedef int (*search_kernel)(tensor *out, const tensor *sequence, const tensor *values,
			     const tensor *sorter, int64_t m, bool right);

/*
 * rows [n, k] in the order of order[0..n), or as they are for NULL: starts[0..*runs) become the
 * places where a row begins that differs from the one before.
 */
typedef int (*runs_kernel)(const tensor *rows, const int64_t *order, int64_t *starts,
			   int64_t *runs);

#endif
