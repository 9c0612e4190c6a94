// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The open scopes of tensor_saved_hooks_enter() of a thread (pack.h). */
#include "autograd/graph/pack.h"
#include "autograd/graph/state.h"

#include <stdlib.h>

struct pack_hooks *pack_hooks_of(const struct tensor_thread *th)
{
	const struct autograd_thread *at = th->autograd;

	return at && at->pack_hooks != at->paused ? at->pack_hooks : NULL;
}

struct pack_hooks *pack_pause(struct tensor_thread *th, bool paused)
{
	struct autograd_thread *at = th->autograd;
	struct pack_hooks *before = at ? at->paused : NULL;

	/* Without the state no scope is open. */
	if (at && paused)
		at->paused = at->pack_hooks;
	return before;
}

void pack_resume(struct tensor_thread *th, struct pack_hooks *before)
{
	struct autograd_thread *at = th->autograd;

	if (at)
		at->paused = before;
}

void pack_hooks_put(struct pack_hooks *hooks)
{
	if (!ref_put(&hooks->refs))
		return;
	if (hooks->fn.destroy)
		hooks->fn.destroy(hooks->fn.ctx);
	free(hooks);
}

TENSOR_EXPORT struct tensor_saved_hooks_guard
tensor_saved_hooks_enter(const struct tensor_saved_hooks *hooks)
{
	struct autograd_thread *at = autograd_thread(thread());
	struct pack_hooks *h;

	if (!at)
		return (struct tensor_saved_hooks_guard){ NULL };
	if (hooks && (!hooks->pack || !hooks->unpack)) {
		tensor_fail(EINVAL, "saved_hooks: pack and unpack must be given");
		return (struct tensor_saved_hooks_guard){ NULL };
	}
	h = calloc(1, sizeof(*h));
	if (!h) {
		tensor_fail(ENOMEM, "saved_hooks: no memory");
		return (struct tensor_saved_hooks_guard){ NULL };
	}
	h->refs = 1;
	if (hooks)
		h->fn = *hooks;
	h->outer = at->pack_hooks;
	at->pack_hooks = h;
	return (struct tensor_saved_hooks_guard){ h };
}

/* Scopes may be closed in any order. False: h is no open scope of this thread. */
static bool close_pack_scope(struct autograd_thread *at, struct pack_hooks *h)
{
	struct pack_hooks **link = &at->pack_hooks;

	while (*link && *link != h)
		link = &(*link)->outer;
	if (!*link)
		return false;
	*link = h->outer;
	pack_hooks_put(h);
	return true;
}

void pack_hooks_unwind(struct autograd_thread *at, struct pack_hooks *mark)
{
	const struct pack_hooks *open = at->pack_hooks;

	while (open && open != mark)
		open = open->outer;
	/* Otherwise the function closed the scope. */
	while (open == mark && at->pack_hooks != mark)
		close_pack_scope(at, at->pack_hooks);
}

TENSOR_EXPORT void tensor_saved_hooks_leave(struct tensor_saved_hooks_guard *guard)
{
	struct autograd_thread *at = guard->scope ? thread()->autograd : NULL;

	if (at && close_pack_scope(at, guard->scope))
		guard->scope = NULL;
}
