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
 * NULL. Sets *runs to their number, starts[0 .. *runs - 1] to the positions of their first rows, and
 * numbers[i], unless it is NULL, to the run of row i.
 */
typedef int (*runs_kernel)(const tensor *rows, const int64_t *order, int64_t *starts,
			   int64_t *numbers, int64_t *runs);
extern runs_kernel type_of_unique;

/*
 * The runs of equal elements of self, contiguous and not complex, in ascending order. scratch has
 * 32 bytes for each element. Sets *runs to their number; firsts[r], the position of the first
 * element of run r, and starts[r], the number of elements before it, are in scratch. numbers, unless
 * it is NULL, gets the run of each element.
 */
struct unique_runs {
	int64_t runs;
	const int64_t *firsts, *starts;
};
typedef int (*unique_elements_kernel)(const tensor *self, void *scratch, int64_t *numbers,
				      struct unique_runs *result);
extern unique_elements_kernel type_of_unique_elements;

/*
 * order [n], i64: the places of the rows of [n, k], contiguous and not complex, in lexicographic order. Equal rows keep their
 * order. Elements are ordered as by sort: NaN is the greatest, zeros are equal.
 */
typedef int (*sort_rows_kernel)(tensor *order, const tensor *rows);
extern sort_rows_kernel type_of_sort_rows;

#endif
