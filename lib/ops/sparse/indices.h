/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Index arithmetic of sparse tensors. Indices are contiguous i64: [d, nnz] for d sparse dimensions
 * (COO), or compressed rows and columns (CSR). A key is an index's position in row-major order of
 * the sparse dimensions.
 */
#ifndef TENSOR_SPARSE_KERNELS_H
#define TENSOR_SPARSE_KERNELS_H

#include "kernels/abi/sparse.h"
#include "core/tensor_impl.h"

/* Check that every index is in range. 0, or -EINVAL with the first invalid one in the error record.
 */
int sparse_check_indices(const char *op, const int64_t *indices, int d, int64_t nnz,
			 const int64_t *sizes);
/* Check that crow [m + 1] ascends from 0 to nnz, and that columns ascend within each row and are
 * below n. */
int sparse_check_rows(const char *op, const int64_t *crow, const int64_t *col, int64_t m, int64_t n,
		      int64_t nnz);

void sparse_keys(int64_t *keys, const int64_t *indices, int d, int64_t nnz, const int64_t *sizes);
void sparse_indices(int64_t *indices, const int64_t *keys, int d, int64_t nnz,
		    const int64_t *sizes);
/* True if each key is greater than the one before. */
bool sparse_ascending(const int64_t *keys, int64_t n);
/* Stable sort: sorted[i] = keys[order[i]]. 0 or -errno. */
int sparse_sort(int64_t *sorted, int64_t *order, const int64_t *keys, int64_t n);
/* Find runs of equal keys in sorted[n]: run r begins at starts[r] and has key keys[r]; starts[runs]
 * = n. Returns the number of runs. keys may be the same array as sorted. */
int64_t sparse_runs(int64_t *starts, int64_t *keys, const int64_t *sorted, int64_t n);

/* Convert ascending row indices to compressed rows, and back. */
void sparse_compress(int64_t *crow, int64_t m, const int64_t *rows, int64_t nnz);
void sparse_expand(int64_t *rows, const int64_t *crow, int64_t m);

/* The columns of the product of two matrices in compressed rows: a new i64 [nnz], ascending in each row; crow [m + 1] becomes its rows. */
tensor *sparse_product_columns(int64_t *crow, const int64_t *a_crow, const int64_t *a_col,
			       const int64_t *b_crow, const int64_t *b_col, int64_t m, int64_t n);
/* The transpose of a matrix [m, n]: element p of it is element order[p] of the matrix. */
void sparse_transpose_rows(int64_t *to_crow, int64_t *to_col, int64_t *order, const int64_t *crow,
			   const int64_t *col, int64_t m, int64_t n);
/*
 * The union of two ascending arrays, as sparse_runs() and sparse_sort() find it in a followed by b. keys, order and starts have room for
 * one more than all elements. Returns the number of runs.
 */
int64_t sparse_merge(int64_t *keys, int64_t *order, int64_t *starts, const int64_t *a, int64_t na,
		     const int64_t *b, int64_t nb);

/* at[i] = position of wanted[i] in the ascending keys[n], or -1. */
void sparse_find(int64_t *at, const int64_t *wanted, int64_t count, const int64_t *keys, int64_t n);

/* ---- blocks of bytes of any dtype ---- */

/* Scatter: to[at[i]] = from[i]. Gather: to[i] = from[at[i]], zeros where at[i] is -1. Blocks of
 * `bytes`. */
void sparse_scatter(void *to, const void *from, const int64_t *at, int64_t n, size_t bytes);
void sparse_gather(void *to, const void *from, const int64_t *at, int64_t n, size_t bytes);
/* Positions of the blocks, of `block` elements of dtype each, that are not all zero: a new i64
 * [found]. */
tensor *sparse_nonzero(const void *data, int64_t blocks, int64_t block, enum tensor_dtype dtype);

/* ---- tensors of a device (indices_device.c); results are owned ---- */

/* Keys of indices; indices [2, nnz] of compressed rows. */
tensor *sparse_keys_on_device(tensor *indices, const int64_t *sizes);
tensor *sparse_expand_on_device(tensor *crow, tensor *col);
/* As sparse_check_indices() and sparse_check_rows(). These wait, as does the one with the largest index of each row. */
int sparse_check_indices_on_device(const char *op, tensor *indices, const int64_t *sizes);
int sparse_check_rows_on_device(const char *op, tensor *crow, tensor *col, int64_t m, int64_t n);
int sparse_largest_indices_on_device(tensor *indices, int64_t *largest);
/* Rows from[0] to from[n - 1] of indices, zeros for -1; also of the host. */
tensor *sparse_rows_of_indices(tensor *indices, const int *from, int n);

#endif
