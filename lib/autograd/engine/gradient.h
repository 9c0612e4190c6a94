/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Operations on gradients that are no part of a formula. */
#ifndef TENSOR_AUTOGRAD_GRADIENT_H
#define TENSOR_AUTOGRAD_GRADIENT_H

#include "autograd/graph/node.h"

/*
 * Converts gradient i (borrowed) of the node from to the shape, dtype and device of output nr of
 * the node to; owned. NULL with the error set if it does not fit.
 */
tensor *gradient_fit(const tensor_node *from, int i, tensor *grad, const tensor_node *to,
		     unsigned nr);
/* Adds a gradient, which it consumes, to that of the leaf of an AccumulateGrad. 0, or -errno. */
int gradient_accumulate(tensor_node *node, tensor *grad, bool record);
/* a + b, which are consumed; in place if one of them is unshared. NULL with the error set. */
tensor *gradient_add(tensor *a, tensor *b, bool record);
/* before + grad, or a copy of grad if before is NULL; owned. NULL with the error set. Recorded if the
 * thread records. */
tensor *gradient_sum(tensor *before, tensor *grad);

#endif
