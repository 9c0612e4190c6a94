/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * One node of a backward: hooks, its formula with the gradients that arrived, and the gradients that it passes to the
 * nodes of its inputs. All functions return 0, or -errno.
 */
#ifndef TENSOR_AUTOGRAD_RUN_NODE_H
#define TENSOR_AUTOGRAD_RUN_NODE_H

#include "autograd/engine/task.h"

/* Adds a gradient (consumed; NULL: undefined) to those that arrived for output nr of a node. */
int task_accumulate(struct task *k, uint32_t to, uint32_t nr, tensor *grad);
/* All gradients of a node have arrived. Those of a leaf are accumulated at once, so that they are not kept until the
 * end; another node becomes ready. */
int task_complete(struct task *k, uint32_t index);
/* Begins with the roots that no other one leads to; the first nroots states are those of the roots. */
int task_push_roots(struct task *k, uint32_t nroots);
/* Runs a ready node. */
int task_run_node(struct task *k, uint32_t index);
/* The same in the stream of the node's device. */
int task_run_node_in_stream(struct task *k, uint32_t index);

#endif
