/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The kernel behind eigenvalues of symmetric and Hermitian matrices. */
#ifndef TENSOR_EIGH_H
#define TENSOR_EIGH_H

#include "kernels.h"

/*
 * a [.., n, n]: matrices one after the other, each with its columns contiguous; replaced by the
 * eigenvectors in its columns when vectors are wanted, else spoilt. values [.., n], contiguous,
 * of a's real dtype. upper: which triangle is read. EDOM where a matrix does not converge, ENOSYS
 * where there is no library for it.
 */
typedef int (*eigh_kernel)(tensor *values, tensor *a, bool upper, bool vectors);

#endif
