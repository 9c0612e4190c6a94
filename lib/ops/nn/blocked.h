/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Blocked tensors: the order of their elements is oneDNN's choice, known to its plugin alone
 * (lib/kernels/onednn). Fronts check arguments here and call the plugin's table.
 *
 * A strided tensor beside a blocked one: the result has the layout of the first.
 */
#ifndef TENSOR_OPS_BLOCKED_H
#define TENSOR_OPS_BLOCKED_H

#include "ops/op.h"

#include "kernels/abi/onednn.h"

static inline bool is_blocked(const tensor *t)
{
	return t->layout == TENSOR_BLOCKED;
}

/* The plugin, opened when it is first asked for; NULL with the error set. There is one wherever there
 * is a blocked tensor. */
const struct onednn_plugin *onednn(const char *op);

/* A dense copy of a blocked tensor, or a contiguous form of a strided one. Owned; NULL passes. */
tensor *blocked_dense(const char *op, tensor *t);
/* self itself when it is blocked, else its contiguous form; owned. */
tensor *blocked_operand(tensor *t);
/* An uninitialized tensor of these sizes with t's layout and dtype; owned. */
tensor *blocked_empty_like(const char *op, const tensor *t, const int64_t *sizes, int ndim);
/* Strided, on the memory of t, which must be in row-major order; owned. */
tensor *blocked_plain(const tensor *t, const int64_t *sizes, int ndim);
/* Sets *out to a result and takes it over; refuses the in-place and out forms. */
int blocked_deliver(const struct tensor_op *op, tensor **out, tensor *result);
/* -EOPNOTSUPP for the out form (and the in-place one unless it is there). */
int blocked_need_form(const struct tensor_op *op, bool inplace);
/* Both of one dtype, and nothing of size 0. */
int blocked_need_elements(const char *op, const tensor *t);

#endif
