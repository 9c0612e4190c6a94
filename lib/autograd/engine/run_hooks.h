/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Runs the hooks of a node. All functions are called without the node's lock, because a hook may
 * run another backward. They return 0, or -errno with the error set.
 */
#ifndef TENSOR_AUTOGRAD_RUN_HOOKS_H
#define TENSOR_AUTOGRAD_RUN_HOOKS_H

#include "autograd/graph/node.h"

/* The gradient of output nr (owned, may be replaced; not NULL) arrived. */
int run_gradient_hooks(const tensor_node *n, uint32_t nr, tensor **grad);
/* Before the node runs; grads[] are those of its outputs, owned, and may be replaced. */
int run_before_hooks(const tensor_node *n, tensor **grads);
/* After the node; grads[] are those of its inputs, owned, and may be replaced. */
int run_after_hooks(const tensor_node *n, tensor **grads, tensor *const *output_grads);
int run_accumulated_hooks(const tensor_node *n);

#endif
