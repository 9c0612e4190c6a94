/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Shared functions of linear algebra operators. Each operator function opens a scope, which owns
 * the tensors it makes, and ends with linalg_leave(). Kernels get column-major matrices
 * (lib/kernels/abi/lapack.h).
 */
#ifndef TENSOR_OPS_LINALG_H
#define TENSOR_OPS_LINALG_H

#include "ops/op.h"

#include "kernels/abi/lapack.h"

/* Close the scope of an operator function: return the results, or copy them to the caller's
 * tensors. Fails if err is set or a result is NULL. Returns 0, or -errno with the error set. */
int linalg_leave(const struct tensor_op *op, struct tensor_scope_guard *guard,
		 const struct op_result *results, int n, int err);

/* EINVAL unless a has at least two dimensions and dtype f32, f64, c64 or c128. */
int linalg_check_matrix(const char *op, const tensor *a);
/* As linalg_check_matrix(), and the last two dimensions have equal size. */
int linalg_check_square(const char *op, const tensor *a);

/* EINVAL unless a is square, a @ b (left) or b @ a is defined, and both have one dtype and device.
 */
int linalg_check_system(const char *op, const tensor *a, const tensor *b, bool left);

/* The functions below return tensors of the open scope, or NULL with the error set. A NULL argument
 * gives NULL. */

/* New column-major matrices: batch sizes of like, then m and n. Uninitialized. */
tensor *linalg_columns_new(const tensor *like, enum tensor_dtype dtype, int64_t m, int64_t n);
/* Column-major copy. */
tensor *linalg_columns(tensor *a);
/* Column-major copy, or a itself if it is column-major and no other process can write to it. */
tensor *linalg_columns_of(tensor *a);
/* New contiguous tensor: batch sizes of like, then n unless n is -1. Uninitialized. */
tensor *linalg_vectors_new(const tensor *like, enum tensor_dtype dtype, int64_t n);
/* i32 zeros, one per matrix of like. */
tensor *linalg_info_new(const tensor *like);
/* a expanded to the batch sizes that a and b broadcast to. */
tensor *linalg_expanded(const char *op, tensor *a, const tensor *b);

/* Expand both sides of a system checked by linalg_check_system() to a common batch. *a becomes
 * column-major, *b a column-major copy. 0, or -errno with the error set. */
int linalg_system(const char *op, tensor **a, tensor **b);

/* EDOM for NaN and infinities: LAPACK's iterations may not end with them, and its argument check ends the process. a is the
 * private copy for LAPACK. Waits for a device. */
int linalg_check_finite(const char *op, tensor *a);
/* EDOM if an element of info [..] is not 0; the error names the matrix and `why`. Waits for a device. */
int linalg_check_info(const char *op, const tensor *info, const char *why);

#endif
