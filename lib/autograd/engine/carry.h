/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The state of a thread that a node can see: its modes, its keys, what runs on it. A thread that runs nodes for another
 * one has that one's state meanwhile.
 */
#ifndef TENSOR_AUTOGRAD_CARRY_H
#define TENSOR_AUTOGRAD_CARRY_H

#include "autograd/graph/state.h"

struct carried {
	struct thread_modes modes;
	/* Pointers, also those of the modes, are borrowed: the thread waits meanwhile. */
	struct pack_hooks *pack_hooks, *paused;
	const struct running *running;
	struct task *current;
};

/* The state of the calling thread, which has an autograd state. */
struct carried carry_get(void);
/* The same for another thread, which has no autocast scopes of its own. */
struct carried carry_for_others(void);
void carry_set(const struct carried *c);

#endif
