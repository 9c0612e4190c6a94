/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Ready nodes of tasks that several threads run: a heap. A task on the CPU alone has a smaller one (task.h). */
#ifndef TENSOR_AUTOGRAD_HEAP_H
#define TENSOR_AUTOGRAD_HEAP_H

#include "autograd/engine/task.h"

struct heap_node {
	struct task *task;
	double path; /* weight of the heaviest path from the node, see path.h */
	uint64_t seq;
	uint32_t depth, index;
};

/* The first one to run: that of the innermost backward, then that of the heaviest path, then the latest one. */
struct node_heap {
	struct heap_node *nodes;
	uint32_t n, cap;
};

/* Adds a node of a task. False without memory. */
bool heap_push(struct node_heap *h, struct task *k, uint32_t index);
/* Removes the first one; the heap is not empty. */
struct heap_node heap_pop(struct node_heap *h);
/* Removes the nodes of a task. Returns their number. */
uint32_t heap_drop(struct node_heap *h, const struct task *k);

#endif
