// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The state of a thread that a node can see (carry.h). */
#include "autograd/engine/carry.h"

struct carried carry_get(void)
{
	const struct tensor_thread *th = thread();
	const struct autograd_thread *at = th->autograd;

	return (struct carried){ .modes = th->modes,
				 .pack_hooks = at->pack_hooks,
				 .paused = at->paused,
				 .running = at->running,
				 .current = at->current };
}

struct carried carry_for_others(void)
{
	struct carried c = carry_get();

	c.modes.autocast_depth = 0;
	return c;
}

void carry_set(const struct carried *c)
{
	struct tensor_thread *th = thread();
	struct autograd_thread *at = th->autograd;

	th->modes = c->modes;
	at->pack_hooks = c->pack_hooks;
	at->paused = c->paused;
	at->running = c->running;
	at->current = c->current;
}
