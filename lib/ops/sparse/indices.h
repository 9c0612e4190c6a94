/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Index arithmetic of sparse tensors. Indices are i64, contiguous: [d, nnz] for d sparse
 * dimensions (COO), or compressed rows and columns (CSR). A key is an index's position in
 * row-major order of the sparse dimensions.
 */
#ifndef TENSOR_SPARSE_KERNELS_H
#define TENSOR_SPARSE_KERNELS_H

#include "core/tensor_impl.h"

/* Is every index inside? 0, or -EINVAL with the first that is not in the error record. */
int sparse_check_indices(const char *op, const int64_t *indices, int d, int64_t nnz,
			 const int64_t *sizes);
/* crow [m + 1] from 0 to nnz, ascending; columns ascending within a row and below n. */
int sparse_check_rows(const char *op, const int64_t *crow, const int64_t *col, int64_t m, int64_t n,
		      int64_t nnz);

void sparse_keys(int64_t *keys, const int64_t *indices, int d, int64_t nnz, const int64_t *sizes);
void sparse_indices(int64_t *indices, const int64_t *keys, int d, int64_t nnz,
		    const int64_t *sizes);
/* Each key greater than the one before? */
bool sparse_ascending(const int64_t *keys, int64_t n);
/* sorted[i] = keys[order[i]], equal keys in their old order. 0 or -errno. */
int sparse_sort(int64_t *sorted, int64_t *order, const int64_t *keys, int64_t n);
/* starts[r] is where the r-th run of equal keys begins in sorted[n], starts[runs] = n; keys[r]
 * its key. Returns the number of runs. keys may be sorted itself. */
int64_t sparse_runs(int64_t *starts, int64_t *keys, const int64_t *sorted, int64_t n);

/* Compressed rows of ascending row indices, and back. */
void sparse_compress(int64_t *crow, int64_t m, const int64_t *rows, int64_t nnz);
void sparse_expand(int64_t *rows, const int64_t *crow, int64_t m);

/* at[i] is where wanted[i] stands in the ascending keys[n], or -1. */
void sparse_find(int64_t *at, const int64_t *wanted, int64_t count, const int64_t *keys, int64_t n);

/* ---- kernels of a backend ---- */

/*
 * spmm: out[m, n] = beta out + alpha S dense, S [m, k] by compressed rows; rows of out and dense are
 * contiguous. sampled_mm: out[p] = row row[p] of a times row col[p] of b, rows contiguous.
 * sum_runs: out[r] = the sum of values[order[p]] for p from starts[r] to starts[r + 1], in order.
 */
typedef int (*spmm_kernel)(tensor *out, const int64_t *crow, const int64_t *col,
			   const tensor *values, const tensor *dense, double alpha, double beta);
typedef int (*sampled_mm_kernel)(tensor *out, const int64_t *row, const int64_t *col,
				 const tensor *a, const tensor *b);
typedef int (*sum_runs_kernel)(tensor *out, const tensor *values, const int64_t *order,
			       const int64_t *starts);

/* ---- blocks of bytes, whatever their dtype ---- */

/* to[at[i]] = from[i]; to[i] = from[at[i]], zeros where at[i] is -1. Blocks of `bytes`. */
void sparse_scatter(void *to, const void *from, const int64_t *at, int64_t n, size_t bytes);
void sparse_gather(void *to, const void *from, const int64_t *at, int64_t n, size_t bytes);
/* Which blocks of `block` elements of dtype are not all zero: their numbers, a new i64 [found]. */
tensor *sparse_nonzero(const void *data, int64_t blocks, int64_t block, enum tensor_dtype dtype);

#endif
