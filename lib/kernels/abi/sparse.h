/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Kernels of sparse tensors. */
#ifndef TENSOR_KERNELS_SPARSE_H
#define TENSOR_KERNELS_SPARSE_H

#include "core/tensor_impl.h"

/*
 * spmm: out[m, n] = beta * out + alpha * S @ dense, S [m, k] in compressed rows; rows of out and
 * dense are contiguous. sampled_mm: out[p] = dot product of row row[p] of a and row col[p] of b,
 * rows contiguous. sum_runs: out[r] = sum of values[order[p]] over p from starts[r] to starts[r +
 * 1], in order.
 */
typedef int (*spmm_kernel)(tensor *out, const int64_t *crow, const int64_t *col,
			   const tensor *values, const tensor *dense, double alpha, double beta);
extern spmm_kernel type_of_spmm;
typedef int (*sampled_mm_kernel)(tensor *out, const int64_t *row, const int64_t *col,
				 const tensor *a, const tensor *b);
extern sampled_mm_kernel type_of_sampled_mm;
typedef int (*sum_runs_kernel)(tensor *out, const tensor *values, const int64_t *order,
			       const int64_t *starts);
extern sum_runs_kernel type_of_sum_runs;

#endif
