/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Kernels of linear algebra on batches of matrices, with the conventions of LAPACK.
 *
 * Matrices are column-major: [.., m, n] with strides (1, m) in the last two dimensions, contiguous
 * batches, of f32, f64, c64 or c128. Other arguments are contiguous. No argument has 0 elements.
 * info [..] (i32) is LAPACK's: 0, or the step that failed.
 * Kernels return 0, -ENOSYS without the library, -ENOMEM, or -EINVAL for more than 2^30 rows.
 */
#ifndef TENSOR_KERNELS_LAPACK_H
#define TENSOR_KERNELS_LAPACK_H

#include "kernels/abi/kernels.h"

/*
 * values [.., n], real, are the eigenvalues of a [.., n, n], of which the upper or lower triangle
 * is read. With `vectors` the columns of a become the eigenvectors, else a is overwritten. Fails
 * with EDOM if the algorithm does not converge.
 */
typedef int (*eigh_kernel)(tensor *values, tensor *a, bool upper, bool vectors);
extern eigh_kernel type_of__linalg_eigh;
/* values [.., n] and vectors? [.., n, n] are complex. a [.., n, n] is overwritten. */
typedef int (*eig_kernel)(tensor *values, tensor *vectors, tensor *a, tensor *info);
extern eig_kernel type_of_linalg_eig;
/* a [.., m, n] becomes its factors; pivots [.., min(m, n)] (i32) count from 1. */
typedef int (*lu_factor_kernel)(tensor *a, tensor *pivots, tensor *info);
extern lu_factor_kernel type_of_linalg_lu_factor;
/*
 * b [.., n, k] becomes the solution for the factors lu [.., n, n]. trans: 'N', 'T' or 'C'. The
 * caller has checked that all pivots are 1 to n.
 */
typedef int (*lu_solve_kernel)(tensor *lu, tensor *pivots, tensor *b, char trans);
extern lu_solve_kernel type_of_linalg_lu_solve;
/* The upper or lower triangle of a [.., n, n] becomes the factor; the other one is not changed. */
typedef int (*cholesky_kernel)(tensor *a, bool upper, tensor *info);
extern cholesky_kernel type_of_linalg_cholesky;
/* b [.., n, k] becomes the solution for the Cholesky factor [.., n, n]. */
typedef int (*cholesky_solve_kernel)(tensor *factor, tensor *b, bool upper);
extern cholesky_solve_kernel type_of_cholesky_solve;

/* A triangular matrix: upper or lower, left or right of the unknown, with ones on the diagonal. */
struct triangle {
	bool upper, left, unit;
};

/* b [.., m, n] becomes x of a x = b, or of x a = b unless how->left. */
typedef int (*triangular_kernel)(tensor *a, tensor *b, const struct triangle *how);
extern triangular_kernel type_of_linalg_solve_triangular;
/* a [.., m, n] becomes R and the reflectors below it; tau [.., min(m, n)] has the dtype of a. */
typedef int (*qr_kernel)(tensor *a, tensor *tau);
extern qr_kernel type_of_geqrf;
/*
 * The first k columns of a [.., m, n], m >= n, are reflectors, with tau [.., k]. a becomes the
 * first n columns of their product.
 */
typedef int (*householder_kernel)(tensor *a, tensor *tau);
extern householder_kernel type_of_linalg_householder_product;
/*
 * s [.., min(m, n)], real; u [.., m, m] and vh [.., n, n], or both reduced to min(m, n), or both
 * NULL. a [.., m, n] is overwritten. The driver is chosen on devices alone; gesvda has no full u and vh of m != n.
 */
enum svd_driver { SVD_GESVD, SVD_GESVDJ, SVD_GESVDA };
typedef int (*svd_kernel)(tensor *u, tensor *s, tensor *vh, tensor *a, tensor *info,
			  enum svd_driver driver);
extern svd_kernel type_of__linalg_svd;

#endif
