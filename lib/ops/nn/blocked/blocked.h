/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Blocked tensors: oneDNN chooses the order of their elements, which only its plugin knows
 * (lib/kernels/onednn). The operators here check arguments and call the plugin's table.
 *
 * An operator with a strided and a blocked operand returns the layout of the first.
 */
#ifndef TENSOR_OPS_BLOCKED_H
#define TENSOR_OPS_BLOCKED_H

#include "ops/op.h"

#include "kernels/abi/onednn.h"

static inline bool is_blocked(const tensor *t)
{
	return t->layout == TENSOR_BLOCKED;
}

/* The plugin, opened on the first call. NULL with the error set if it cannot be opened; never NULL
 * while a blocked tensor exists. */
const struct onednn_plugin *blocked_plugin(const char *op);

/* Dense copy of a blocked tensor, or contiguous form of a strided one. Owned. NULL if t is NULL. */
tensor *blocked_dense(const char *op, tensor *t);
/* self if it is blocked, else its contiguous form. Owned. */
tensor *blocked_operand(tensor *t);
/* Uninitialized tensor of these sizes with t's layout and dtype. Owned. */
tensor *blocked_empty_like(const char *op, const tensor *t, const int64_t *sizes, int ndim);
/* Strided tensor on the memory of t, which must be in row-major order. Owned. */
tensor *blocked_plain(const tensor *t, const int64_t *sizes, int ndim);
/* Set *out to the result, whose reference is consumed. EOPNOTSUPP for the in-place and out forms.
 */
int blocked_deliver(const struct tensor_op *op, tensor **out, tensor *result);
/* -EOPNOTSUPP for the out form, and for the in-place form unless `inplace`. */
int blocked_need_form(const struct tensor_op *op, bool inplace);
/* -EINVAL if t has no elements. */
int blocked_need_elements(const char *op, const tensor *t);

#endif
