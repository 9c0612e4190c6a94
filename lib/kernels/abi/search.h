/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The C types of the kernels of binary search and of runs of equal rows. Tensors are contiguous. */
#ifndef TENSOR_SEARCH_H
#define TENSOR_SEARCH_H

#include "kernels/abi/kernels.h"

/*
 * out[.., j] = the first index in sequence[..] whose element is not less than values[.., j], or,
 * with `right`, greater. out is i64 [lines, m] like values; sequence is [lines, n], or [n] for all
 * lines. sorter, NULL or i64 with the shape of sequence, is the permutation that sorts it.
 */
typedef int (*search_kernel)(tensor *out, const tensor *sequence, const tensor *values,
			     const tensor *sorter, int64_t m, bool right);
extern search_kernel type_of_searchsorted;

/*
 * Runs of equal rows among rows [n, k], in the order of order[0 .. n - 1], or in memory order for
 * NULL. Sets *runs to their number and starts[0 .. *runs - 1] to the positions of their first rows.
 */
typedef int (*runs_kernel)(const tensor *rows, const int64_t *order, int64_t *starts,
			   int64_t *runs);
extern runs_kernel type_of_unique;

#endif
