/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Giving results to the open scope. The stack of a thread's scopes is in struct tensor_thread. */
#ifndef TENSOR_SCOPE_IMPL_H
#define TENSOR_SCOPE_IMPL_H

#include "base/thread.h"

/* Gives an owned result to the open scope, if there is one; returns it. NULL passes, and takes its place when there is
 * no memory to note it. */
tensor *scope_push_slow(struct tensor_thread *th, tensor *t);

static inline tensor *scope_own(struct tensor_thread *th, tensor *t)
{
	if (t && th->scope_depth) {
		if (unlikely(th->scope_n >= th->scope_cap))
			return scope_push_slow(th, t);
		th->scope[th->scope_n++] = t;
	}
	return t;
}

/* The same for n results, of which some may be NULL: -ENOMEM with the error set, all released and NULL. */
int scope_own_list(tensor **results, int64_t n);
int scope_own_results(tensor **const *results, int n);

/* Closes a scope but lets one result survive, owned by the caller. */
tensor *scope_leave_with(struct tensor_scope_guard *guard, tensor *result);

#endif
