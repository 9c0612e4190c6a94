/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shared functions of indexing operators: checks of an index, and writes through one. */
#ifndef TENSOR_INDEXING_H
#define TENSOR_INDEXING_H

#include "kernels/abi/index.h"
#include "ops/op.h"

/* t, or a 0-d tensor as a vector of one element. Owned. */
tensor *index_at_least_1d(const tensor *t);

/* Check that the index is i32 or i64; index_check_vector() also checks that it is 0-d or 1-d. */
int index_check(const struct tensor_op *op, const tensor *index);
int index_check_vector(const struct tensor_op *op, const tensor *index);
int index_check_same_dtype(const struct tensor_op *op, const char *name, const tensor *self,
			   const tensor *t);
/* Check that index has the rank of t and is no larger in any dimension but free_dim (-1: none). */
int index_check_within(const struct tensor_op *op, const tensor *index, const char *name,
		       const tensor *t, int free_dim);
/* Check that source has self's shape, with the length of index in dimension d. */
int index_check_source(const struct tensor_op *op, const tensor *self, int d, const tensor *index,
		       const tensor *source);

/* index_check_within() for self and src, for scatter. src is NULL for a scalar. */
int index_check_scatter(const struct tensor_op *op, const tensor *self, int d, const tensor *index,
			const tensor *src);
/* One element of self's dtype, expanded to these sizes. Owned. */
tensor *index_repeated(const tensor *self, tensor_scalar value, const int64_t *sizes, int ndim);

/* Calls the kernel fn of the operator on tensors of at least one dimension. */
typedef int (*put_call)(const struct tensor_op *op, tensor_kernel fn, tensor *out, int d,
			const tensor *index, const tensor *source, const void *ctx);
/* The result is self, or a copy of it, with the source written through the index. */
int index_put_into(const struct tensor_op *op, tensor **out, tensor *self, int d,
		   const tensor *index, const tensor *source, put_call call, const void *ctx);
/* As index_put_into(); a functional result has self's order of dimensions. */
int index_put_into_like(const struct tensor_op *op, tensor **out, tensor *self, int d,
			const tensor *index, const tensor *source, put_call call, const void *ctx);

#endif
