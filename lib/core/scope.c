// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Scopes: a stack of results for each thread. Leaving a scope releases the results above its mark.
 */
#include "base/init.h"
#include "core/debug.h"
#include "core/tensor_impl.h"

#include <stdlib.h>

TENSOR_EXPORT struct tensor_scope_guard tensor_scope_enter(void)
{
	struct tensor_thread *th = thread();

	return (struct tensor_scope_guard){ .mark = th->scope_n, .depth = th->scope_depth++ };
}

/*
 * The structs of the last results of a scope are not reused at once, so a use of a result that was
 * returned out of the scope is detected. Only a few: held structs occupy cache lines.
 */
#define HELD_OF_SCOPE 4

void scope_leave(struct tensor_scope_guard *guard)
{
	struct tensor_thread *th = thread();

	while (th->scope_n > guard->mark)
		tensor_put(th->scope[--th->scope_n]);
	/* Not depth - 1: longjmp() may have left inner scopes without a call of this function. */
	th->scope_depth = guard->depth;
}

TENSOR_EXPORT void tensor_scope_leave(struct tensor_scope_guard *guard)
{
	struct tensor_thread *th = thread();

	for (int i = 0; i < HELD_OF_SCOPE && th->scope_n > guard->mark; i++) {
		tensor *t = th->scope[--th->scope_n];

		if (tensor_ref_last(t, REF_HOLDER))
			tensor_free_held(t);
	}
	scope_leave(guard);
}

tensor *scope_leave_with(struct tensor_scope_guard *guard, tensor *result)
{
	if (result)
		tensor_get(result);
	scope_leave(guard);
	return result;
}

/* Grows the stack for n more results; false with the error set. */
static bool scope_room(struct tensor_thread *th, int64_t n)
{
	uint64_t need = (uint64_t)th->scope_n + (uint64_t)n,
		 cap = th->scope_cap ? th->scope_cap : 64;
	tensor **grown;

	if (need <= th->scope_cap)
		return true;
	while (cap < need)
		cap *= 2;
	grown = cap <= UINT32_MAX ? realloc(th->scope, cap * sizeof(*grown)) : NULL;
	if (!grown) {
		tensor_fail(ENOMEM, "no memory for %llu results of a scope",
			    (unsigned long long)need);
		return false;
	}
	th->scope = grown;
	th->scope_cap = (uint32_t)cap;
	return true;
}

tensor *scope_push_slow(struct tensor_thread *th, tensor *t)
{
	if (!scope_room(th, 1)) {
		tensor_put(t);
		return NULL;
	}
	th->scope[th->scope_n++] = t;
	return t;
}

/* Gives a result to the scope, or releases it. */
static void own_or_drop(struct tensor_thread *th, tensor **result, bool room)
{
	if (room) {
		scope_own(th, *result);
	} else {
		tensor_put(*result);
		*result = NULL;
	}
}

int scope_own_list(tensor **results, int64_t n)
{
	struct tensor_thread *th = thread();
	bool room = !th->scope_depth || scope_room(th, n);

	for (int64_t i = 0; i < n; i++)
		own_or_drop(th, &results[i], room);
	return room ? 0 : -ENOMEM;
}

int scope_own_results(tensor **const *results, int n)
{
	struct tensor_thread *th = thread();
	bool room = !th->scope_depth || scope_room(th, n);

	for (int i = 0; i < n; i++)
		own_or_drop(th, results[i], room);
	return room ? 0 : -ENOMEM;
}

int scope_own_wanted(int err, tensor *const *all, tensor **const *wanted, int n)
{
	struct tensor_thread *th = thread();
	bool room = err < 0 || !th->scope_depth || scope_room(th, n);

	for (int i = 0; i < n; i++) {
		tensor *t = err < 0 ? NULL : all[i];

		if (!wanted[i]) {
			tensor_put(t);
			continue;
		}
		*wanted[i] = t;
		own_or_drop(th, wanted[i], room);
	}
	return err < 0 || room ? err : -ENOMEM;
}

TENSOR_EXPORT tensor *tensor_keep(tensor *t)
{
	struct tensor_thread *th = thread();

	/* Without an open scope the caller owns the result already. */
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

static void scopes_exit(struct tensor_thread *th)
{
	while (th->scope_n)
		tensor_put(th->scope[--th->scope_n]);
	free(th->scope);
	th->scope = NULL;
	th->scope_cap = 0;
}

INIT(INIT_HOOKS) static void set_exit(void)
{
	thread_on_exit(THREAD_EXIT_SCOPES, scopes_exit);
}
