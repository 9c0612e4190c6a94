/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions that give results to the open scope. The stack is in struct tensor_thread. */
#ifndef TENSOR_SCOPE_IMPL_H
#define TENSOR_SCOPE_IMPL_H

#include "base/thread.h"

/*
 * Gives an owned result to the open scope, if there is one, and returns it; NULL for NULL, or if
 * the stack cannot grow.
 */
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

/*
 * The same for n results, of which some may be NULL. -ENOMEM with the error set: all are released
 * and set to NULL.
 */
int scope_own_list(tensor **results, int64_t n);
int scope_own_results(tensor **const *results, int n);
/*
 * Stores the results of an operator whose caller does not want all of them: those for which wanted[i] is NULL are released. err
 * is the operator's: all are NULL after a failure. Returns err, or -ENOMEM as above.
 */
int scope_own_wanted(int err, tensor *const *all, tensor **const *wanted, int n)
	__attribute__((cold));

/* As tensor_scope_leave(), for scopes of the library: reuses released tensor structs at once. */
void scope_leave(struct tensor_scope_guard *guard);
/* Leaves a scope but keeps one result, owned by the caller. */
tensor *scope_leave_with(struct tensor_scope_guard *guard, tensor *result);

#endif
