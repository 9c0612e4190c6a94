/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Autograd's state of a thread: the current backward, open scopes of saved-tensor hooks, free nodes. */
#ifndef TENSOR_AUTOGRAD_STATE_H
#define TENSOR_AUTOGRAD_STATE_H

#include "base/thread.h"

struct pack_hooks;
struct task;

#define NODE_CLASSES 16
#define NODE_STEP    64u

struct autograd_thread {
	uint64_t seq;
	struct pack_hooks *pack_hooks; /* the innermost scope, see pack.h */
	struct task *current;	       /* the innermost backward of the thread */
	unsigned depth;		       /* backwards that run inside of each other on this stack */
	struct task *spare;	       /* arrays of a finished task, for the next backward */
	struct magazine nodes[NODE_CLASSES];
};

struct autograd_thread *autograd_thread_init(struct tensor_thread *th);

/* NULL with the error set. */
static inline struct autograd_thread *autograd_thread(struct tensor_thread *th)
{
	return likely(th->autograd) ? th->autograd : autograd_thread_init(th);
}

#endif
