/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The state of a thread that a node can see: its modes, its keys, what runs on it. A thread that runs nodes for another
 * one has that one's state meanwhile. The default generator of random numbers belongs to the process.
 */
#ifndef TENSOR_AUTOGRAD_CARRY_H
#define TENSOR_AUTOGRAD_CARRY_H

#include "autograd/graph/state.h"

struct carried {
	uint32_t include, exclude;
	bool grad_enabled, inference, anomaly;
	/* Pointers are borrowed: the thread waits meanwhile. */
	struct pack_hooks *pack_hooks, *paused;
	const struct running *running;
	struct task *current;
	struct batch_level *batch_level;
};

/* The state of the calling thread, which has an autograd state. */
struct carried carry_get(void);
void carry_set(const struct carried *c);

#endif
