/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A backward for a batch of gradients of the outputs. */
#ifndef TENSOR_AUTOGRAD_BATCHED_H
#define TENSOR_AUTOGRAD_BATCHED_H

#include <tensor/autograd.h>

typedef int (*backward_fn)(tensor_list outputs, tensor *const *output_grads, tensor_list inputs,
			   tensor **grads, unsigned flags);

/* Calls backward, which is tensor_backward_ex(), for the samples of output_grads; flags without
 * TENSOR_GRADS_BATCHED. */
int backward_batched(backward_fn backward, tensor_list outputs, tensor *const *output_grads,
		     tensor_list inputs, tensor **grads, unsigned flags);

#endif
