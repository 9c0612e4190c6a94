/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A graph task: one backward from its roots. What it knows about a node (how many gradients are
 * still to come, what has come) is in an array of its own, so that any number of backwards can
 * walk the same nodes at once. The first task to come along notes its index in the node; others
 * keep it in a hash table.
 */
#ifndef TENSOR_AUTOGRAD_TASK_H
#define TENSOR_AUTOGRAD_TASK_H

#include "autograd/graph/autograd.h"

struct node_state {
	tensor_node *node; /* alive as long as the roots are */
	uint32_t missing;  /* edges over which nothing has come yet */
	int32_t capture;   /* first of its captures, -1 for none */
	bool needed;	   /* to be run: a wanted gradient depends on it */
	bool claimed;	   /* the node knows its index */
	tensor *grad;	   /* of output 0, owned */
	tensor **more;	   /* of further outputs */
};

/* A requested input: the gradient of output nr of a node goes to grads[input]. */
struct capture {
	uint32_t nr;
	int32_t input, next;
};

struct ready {
	uint64_t seq;
	uint32_t index;
};

/* Nodes whose gradients are complete: a heap, latest node first; leaves after all others, so
 * that a failing formula leaves every leaf as it was. */
struct ready_queue {
	struct ready *heap;
	uint32_t *leaves;
	uint32_t nheap, nleaves, next_leaf;
};

struct task {
	const struct engine_call *call;
	struct node_state *states;
	uint32_t n, cap;
	struct ready_queue ready;
	struct capture *captures;
	struct {
		uint32_t *slot; /* index + 1 */
		uint32_t cap, n;
	} others; /* nodes that another task had claimed */
};

struct task *task_new(const struct engine_call *call);
/* Drops what is left and keeps the arrays for the thread's next backward. */
void task_done(struct task *k);

/* Index of a node's state, made if there is none; -1 with the error set. */
int64_t task_visit(struct task *k, tensor_node *n);
/* Index, or -1 when the node is not in the task. */
int64_t task_find(const struct task *k, const tensor_node *n);
/* Follows all edges from the nodes visited so far, counts them, and marks what is needed. */
int task_plan(struct task *k);

void ready_push(struct task *k, uint32_t index);
/* -1: nothing is left */
int64_t ready_pop(struct task *k);

#endif
