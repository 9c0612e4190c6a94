/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Kernels of linear algebra on batches of matrices, as LAPACK has them.
 *
 * A matrix argument is "by columns": [.., m, n] with strides (1, m) in the last two dimensions and
 * one matrix directly after the other, of f32, f64, c64 or c128. Other arguments are contiguous.
 * No argument has 0 elements; info [..] is i32: 0, or which step failed, as LAPACK says it.
 * Return 0, ENOSYS without the library, ENOMEM, or EINVAL for matrices of more than 2^30 rows.
 */
#ifndef TENSOR_KERNELS_LAPACK_H
#define TENSOR_KERNELS_LAPACK_H

#include "kernels/abi/kernels.h"

/* a [.., n, n] becomes the eigenvectors in its columns if vectors are wanted, else its contents
 * are lost. values [.., n], real. upper: which triangle is read. EDOM if there is no convergence.
 */
typedef int (*eigh_kernel)(tensor *values, tensor *a, bool upper, bool vectors);
/* a [.., n, n]: its contents are lost. values [.., n] and vectors [.., n, n], by columns or NULL,
 * complex. */
typedef int (*eig_kernel)(tensor *values, tensor *vectors, tensor *a, tensor *info);
/* a [.., m, n] becomes its factors; pivots [.., min(m, n)], i32, counted from 1. */
typedef int (*lu_factor_kernel)(tensor *a, tensor *pivots, tensor *info);
/* b [.., n, k] becomes the solution for factors [.., n, n]. trans: 'N', 'T' or 'C'. The caller has
 * checked that every pivot is one of 1 .. n. */
typedef int (*lu_solve_kernel)(tensor *lu, tensor *pivots, tensor *b, char trans);
/* a [.., n, n]: the triangle that is read becomes the factor, the other one stays. */
typedef int (*cholesky_kernel)(tensor *a, bool upper, tensor *info);
/* b [.., n, k] becomes the solution for a factor [.., n, n]. */
typedef int (*cholesky_solve_kernel)(tensor *factor, tensor *b, bool upper);

/* How the triangular matrix of a system is meant. */
struct triangle {
	bool upper, left, unit;
};

/* b [.., m, n] becomes x of a x = b, or of x a = b where it is not left. */
typedef int (*triangular_kernel)(tensor *a, tensor *b, const struct triangle *how);
/* a [.., m, n] becomes R above reflectors; tau [.., min(m, n)] of a's dtype. */
typedef int (*qr_kernel)(tensor *a, tensor *tau);
/* a [.., m, n], m >= n: the first k = size of tau columns are reflectors; becomes their product's
 * first n columns. */
typedef int (*householder_kernel)(tensor *a, tensor *tau);
/* a [.., m, n]: its contents are lost. s [.., min(m, n)], real; u and vh by columns, [.., m, m] and
 * [.., n, n], or both reduced to min(m, n), or both NULL. */
typedef int (*svd_kernel)(tensor *u, tensor *s, tensor *vh, tensor *a, tensor *info);

#endif
