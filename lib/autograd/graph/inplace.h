/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* In-place changes of tensors with history. */
#ifndef TENSOR_AUTOGRAD_INPLACE_H
#define TENSOR_AUTOGRAD_INPLACE_H

#include "autograd/graph/view.h"

/*
 * Checks whether self may be changed in place by op; need: the call is recorded. Allocates what
 * inplace_result() needs. 0, or -errno.
 */
int inplace_check_named(const char *op, tensor *self, bool need);
static inline int inplace_check(const struct tensor_op *op, tensor *self, bool need)
{
	return inplace_check_named(op->schema.name, self, need);
}
/*
 * Continues the history of self, or of the base that self is a view of, with n, whose reference is
 * consumed. 0, or -errno.
 */
int inplace_result(tensor_node *n, tensor *self);
/*
 * A CopySlices node for the base of self: it runs inner, whose reference is consumed, on the part of
 * the gradient that belongs to the view self. NULL with the error set.
 */
tensor_node *copy_slices_new(tensor_node *inner, tensor *self);

#endif
