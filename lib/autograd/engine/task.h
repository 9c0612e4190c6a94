/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A graph task: one backward from its roots. The state of each node (missing edges, arrived
 * gradients) is in an array of the task, so that several tasks can traverse the same nodes at once.
 * The first task that visits a node stores its index in the node; others store it in a hash table.
 */
#ifndef TENSOR_AUTOGRAD_TASK_H
#define TENSOR_AUTOGRAD_TASK_H

#include "autograd/engine/engine.h"
#include "autograd/graph/meta.h"

struct node_state {
	tensor_node *node; /* borrowed: the roots keep it alive */
	uint32_t missing;  /* edges over which nothing has arrived */
	int32_t capture;   /* first of its captures, -1 for none */
	bool needed;	   /* a requested gradient depends on it */
	bool claimed;	   /* the index is stored in the node */
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

/* Nodes whose gradients are complete, except leaves: a heap, the latest node first. Not used if the task has a share. */
struct ready_queue {
	struct ready *heap;
	uint32_t nheap;
};

/* A function to call when the backward ends. */
struct at_end {
	void (*fn)(void *ctx);
	void *ctx;
	struct at_end *next;
};

struct task {
	const struct engine_call *call;
	struct node_state *states;
	uint32_t n, cap;
	struct ready_queue ready;
	struct capture *captures;
	struct task *outer;	  /* the backward that this one runs inside of */
	uint32_t depth;		  /* number of outer ones */
	struct task_share *share; /* NULL if all nodes are on the CPU */
	struct at_end *at_end;
	struct {
		uint32_t *slot; /* index + 1 */
		uint32_t cap, n;
	} others; /* nodes whose index another task stored */
};

/* NULL with the error set. */
struct task *task_new(const struct engine_call *call);
void task_free(struct task *task);
/* Releases remaining gradients and keeps the arrays for the thread's next backward. */
void task_done(struct task *k);

/* Index of the state of a node, which is added if missing; -1 with the error set. */
int64_t task_visit(struct task *k, tensor_node *n);
/* Index, or -1 when the node is not in the task. */
int64_t task_find(const struct task *k, const tensor_node *n);
/* The place of the gradient of output nr, NULL with the error set. */
tensor **task_slot_of_more(struct node_state *s, uint32_t nr);
static inline tensor **task_slot(struct node_state *s, uint32_t nr)
{
	return likely(!nr) ? &s->grad : task_slot_of_more(s, nr);
}

/* Visits all nodes that the visited ones lead to, counts edges and marks needed nodes. 0, or -errno. */
int task_plan(struct task *k);

/* The number of edges of a node that may lead to a requested input. */
static inline uint32_t followed_edges(const struct task *k, const tensor_node *n)
{
	return n->seq > k->call->since ? n->nedges : 0;
}

void ready_push(struct task *k, uint32_t index);
/* Index of the next node; -1 if none is left. */
int64_t ready_pop(struct task *k);

#endif
