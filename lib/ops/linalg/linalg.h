/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What fronts of linear algebra share. Each works in a scope, which owns the tensors that it makes,
 * and ends with linalg_leave(). Kernels get matrices by columns (lib/kernels/abi/lapack.h).
 */
#ifndef TENSOR_OPS_LINALG_H
#define TENSOR_OPS_LINALG_H

#include "ops/op.h"

#include "kernels/abi/lapack.h"

/*
 * Ends the scope of a front: hands the results on, or copies them into those that the caller gave.
 * err, or a result that is NULL: fails. Returns 0 or -errno with the error set.
 */
int linalg_leave(const struct tensor_op *op, struct tensor_scope_guard *guard,
		 const struct op_result *results, int n, int err);

/* 0 or EINVAL: at least two dimensions, of f32, f64, c64 or c128. */
int linalg_check_matrix(const char *op, const tensor *a);
/* The same, and the last two of one size. */
int linalg_check_square(const char *op, const tensor *a);

/* 0 or EINVAL: a is square, b fits on its right, or left of it where it is not left, and both are
 * of one dtype and device. */
int linalg_check_system(const char *op, const tensor *a, const tensor *b, bool left);

/* All below return tensors of the open scope, or NULL with the error set; a NULL argument is passed
 * on. */

/* A new tensor by columns: batch sizes of like, then m and n. Uninitialised. */
tensor *linalg_columns_new(const tensor *like, enum tensor_dtype dtype, int64_t m, int64_t n);
/* A copy by columns. */
tensor *linalg_columns(tensor *a);
/* The same, or a itself where it already is by columns and no other process can write to it. */
tensor *linalg_columns_of(tensor *a);
/* A new contiguous tensor: batch sizes of like, then n; without n, where that is -1. Uninitialised.
 */
tensor *linalg_vectors_new(const tensor *like, enum tensor_dtype dtype, int64_t n);
/* i32 zeros, one for each matrix of like. */
tensor *linalg_info_new(const tensor *like);
/* a with the batch sizes that a and b broadcast to. */
tensor *linalg_expanded(const char *op, tensor *a, const tensor *b);

/* Both sides of a system that linalg_check_system() passed, of one batch: *b becomes a copy by
 * columns, *a is by columns. -errno with the error set. */
int linalg_system(const char *op, tensor **a, tensor **b);

/* EDOM where an element of info [..] is not 0, with the matrix's number and why. */
int linalg_check_info(const char *op, const tensor *info, const char *why);

#endif
