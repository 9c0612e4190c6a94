// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Scopes: a stack of results for each thread; leaving a scope releases what lies above its mark.
 */
#include "internal.h"

#include "storage/debug.h"

#include <stdlib.h>

TENSOR_EXPORT struct tensor_scope_guard tensor_scope_enter(void)
{
	struct tensor_thread *th = thread();

	th->scope_depth++;
	return (struct tensor_scope_guard){.mark = th->scope_n, .once = true};
}

TENSOR_EXPORT void tensor_scope_leave(struct tensor_scope_guard *guard)
{
	struct tensor_thread *th = thread();

	while (th->scope_n > guard->mark)
		tensor_put(th->scope[--th->scope_n]);
	th->scope_depth--;
}

tensor *scope_leave_with(struct tensor_scope_guard *guard, tensor *result)
{
	if (result)
		tensor_get(result);
	tensor_scope_leave(guard);
	return result;
}

void scope_push_slow(struct tensor_thread *th, tensor *t)
{
	uint32_t cap = th->scope_cap ? 2 * th->scope_cap : 64;
	tensor **grown = realloc(th->scope, cap * sizeof(*grown));

	/* Without memory for the entry the tensor is leaked, not freed under the caller. */
	if (!grown)
		return;
	th->scope = grown;
	th->scope_cap = cap;
	th->scope[th->scope_n++] = t;
}

TENSOR_EXPORT tensor *tensor_keep(tensor *t)
{
	struct tensor_thread *th = thread();

	/* With no scope open the caller owns it already. */
	return tensor_given(t) && th->scope_depth ? tensor_get(t) : t;
}

TENSOR_EXPORT tensor *tensor_scope_add(tensor *t)
{
	return scope_own(thread(), tensor_given(t) ? t : NULL);
}

TENSOR_EXPORT tensor *tensor_retain(tensor *t)
{
	if (t && unlikely(atomic_load_explicit(&t->refs, memory_order_relaxed) <= 0))
		debug_dead(t, "retain");
	return t ? tensor_get(t) : NULL;
}

TENSOR_EXPORT void tensor_release(tensor *t)
{
	tensor_put(t);
}
