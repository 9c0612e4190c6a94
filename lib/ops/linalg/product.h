/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Checks shared by the products of matrices, vectors and batches. */
#ifndef TENSOR_OPS_PRODUCT_H
#define TENSOR_OPS_PRODUCT_H

#include "ops/op.h"

/* Set the error of the checks below and return it. */
int product_bad_rank(const struct tensor_op *op, const char *name, const tensor *t, int ndim)
	__attribute__((cold));
int product_bad_dtype(const struct tensor_op *op, const char *name_a, const tensor *a,
		      const char *name_b, const tensor *b) __attribute__((cold));

/* EINVAL unless t has ndim dimensions, 1 to 3. */
static inline int product_check_rank(const struct tensor_op *op, const char *name, const tensor *t,
				     int ndim)
{
	return likely(t->ndim == ndim) ? 0 : product_bad_rank(op, name, t, ndim);
}

/* EINVAL unless a and b have one dtype. */
static inline int product_check_dtype(const struct tensor_op *op, const char *name_a,
				      const tensor *a, const char *name_b, const tensor *b)
{
	return likely(a->dtype == b->dtype) ? 0 : product_bad_dtype(op, name_a, a, name_b, b);
}

#endif
