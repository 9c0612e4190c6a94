/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Autograd's state of a thread: the current backward, open scopes of saved-tensor hooks, free nodes. */
#ifndef TENSOR_AUTOGRAD_STATE_H
#define TENSOR_AUTOGRAD_STATE_H

#include "base/thread.h"

#include <tensor/autograd.h>

struct pack_hooks;
struct task;

#define NODE_CLASSES 16
#define NODE_STEP    64u

/*
 * A node or a checkpoint that runs with its lock held. A backward inside of it may run on another thread, which then has
 * this list, too: see engine/carry.h.
 */
struct running {
	const void *what;
	const struct running *outer;
};

/* The stream that the thread found last, see stream.c. */
struct last_stream {
	void *handle;
	uint16_t nr;
	tensor_device device;
};

/* A formula whose results are not recorded and that no hook observes. */
struct formula_call {
	/* The sum so far of the gradients for the input of edge i; borrowed, NULL: the first has not arrived. */
	tensor *(*sum)(const struct formula_call *call, unsigned i);
	unsigned added; /* i + 1: the formula added to that sum, and what it returns for edge i is the sum */
};

struct autograd_thread {
	const struct running *running; /* the innermost; on the stack */
	uint64_t seq;
	struct pack_hooks *pack_hooks; /* the innermost scope, see pack.h */
	struct pack_hooks
		*paused;      /* the scopes from this one outwards do not count, see pack_pause() */
	struct task *current; /* the innermost backward of the thread */
	unsigned depth;	      /* backwards that run inside of each other on this stack */
	unsigned nested;      /* those of the threads that wait for this one, too */
	/* Not NULL: the formula that runs may overwrite gradients that nothing else refers to. */
	struct formula_call *owned;
	tensor_device device; /* whose nodes the thread runs; type 0: none */
	struct last_stream stream;
	struct task *spare; /* arrays of a finished task, for the next backward */
	struct magazine nodes[NODE_CLASSES];
};

struct autograd_thread *autograd_thread_init(struct tensor_thread *th);

/* True if the thread, or the one that it runs for, runs the node or checkpoint: its lock must not be taken again. */
static inline bool is_running(const struct autograd_thread *at, const void *what)
{
	const struct running *r = at ? at->running : NULL;

	while (r && r->what != what)
		r = r->outer;
	return r;
}

/* NULL with the error set. */
static inline struct autograd_thread *autograd_thread(struct tensor_thread *th)
{
	return likely(th->autograd) ? th->autograd : autograd_thread_init(th);
}

#endif
