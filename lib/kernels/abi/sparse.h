/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Kernels of sparse tensors. */
#ifndef TENSOR_KERNELS_SPARSE_H
#define TENSOR_KERNELS_SPARSE_H

#include "core/tensor_impl.h"

/*
 * Indices are contiguous i64 tensors on the device of the values. spmm: out[m, n] = beta * out + alpha * S @ dense, S [m, k] in
 * compressed rows, crow [m + 1] and col [nnz]; rows of out and dense are contiguous. sampled_mm: out[p] = dot product
 * of row at[0, p] of a and row at[1, p] of b, rows contiguous, at [2, nnz]. sum_runs: out[r] = sum of values[order[p]] over p
 * from starts[r] to starts[r + 1], in order; order [nnz], starts of at least runs + 1 elements. spgemm: the values of a product of two
 * matrices in compressed rows, in the order of the columns that the result has; only the CPU has it.
 */
typedef int (*spmm_kernel)(tensor *out, const tensor *crow, const tensor *col, const tensor *values,
			   const tensor *dense, double alpha, double beta);
extern spmm_kernel type_of_spmm;
typedef int (*sampled_mm_kernel)(tensor *out, const tensor *at, const tensor *a, const tensor *b);
extern sampled_mm_kernel type_of_sampled_mm;
typedef int (*sum_runs_kernel)(tensor *out, const tensor *values, const tensor *order,
			       const tensor *starts);
extern sum_runs_kernel type_of_sum_runs;

struct spgemm {
	int64_t m, n; /* of the result */
	const int64_t *crow, *col, *a_crow, *a_col, *b_crow, *b_col;
	const tensor *a, *b; /* values */
	tensor *out;
};
typedef int (*spgemm_kernel)(const struct spgemm *p);
extern spgemm_kernel type_of_spgemm;

#endif
