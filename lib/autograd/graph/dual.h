/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Dual tensors: a tensor with the forward key has a tangent, its derivative in the direction of the tangents of the
 * inputs. The tangent has the shape, dtype, device and strides of the tensor, so that a view of the one is a view of
 * the other.
 */
#ifndef TENSOR_AUTOGRAD_DUAL_H
#define TENSOR_AUTOGRAD_DUAL_H

#include "autograd/graph/output.h"

/* NULL for none; borrowed. */
static inline tensor *tangent_of(const tensor *t)
{
	return t->keys & FORWARD_BIT ? t->tangent : NULL;
}

/* Gives t, which has none, the tangent or a copy of it with the strides of t. 0, or -errno. */
int dual_set(tensor *t, tensor *tangent);
/* The tangent of t, made of zeros if it has none; that of a view is a view of that of its base. NULL with the error
 * set. */
tensor *dual_tangent(tensor *t);

/* ALSO_DUAL for the gradients of a backward that propagates tangents. */
static inline unsigned accept_dual_gradients(void)
{
	return thread()->modes.dual_gradients ? ALSO_DUAL : 0;
}

/* The thread's state while functions of autograd compute primals and tangents: the forward key is excluded. */
struct forward_guard {
	uint32_t exclude;
	bool grad_enabled;
};
struct forward_guard forward_guard_enter(bool grad_enabled);
void forward_guard_leave(struct forward_guard g);

#endif
