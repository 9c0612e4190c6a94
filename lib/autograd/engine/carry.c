// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Copies of the state of a thread (carry.h). */
#include "autograd/engine/carry.h"

struct carried carry_get(void)
{
	const struct tensor_thread *th = thread();
	const struct autograd_thread *at = th->autograd;

	return (struct carried){ .include = th->include,
				 .exclude = th->exclude,
				 .grad_enabled = th->grad_enabled,
				 .inference = th->inference,
				 .anomaly = th->anomaly,
				 .pack_hooks = at->pack_hooks,
				 .paused = at->paused,
				 .running = at->running,
				 .current = at->current,
				 .batch_level = th->batch_level };
}

void carry_set(const struct carried *c)
{
	struct tensor_thread *th = thread();
	struct autograd_thread *at = th->autograd;

	th->include = c->include;
	th->exclude = c->exclude;
	th->grad_enabled = c->grad_enabled;
	th->inference = c->inference;
	th->anomaly = c->anomaly;
	at->pack_hooks = c->pack_hooks;
	at->paused = c->paused;
	at->running = c->running;
	at->current = c->current;
	th->batch_level = c->batch_level;
}
