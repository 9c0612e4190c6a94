// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Mixed precision: a fallback for the key TENSOR_KEY_AUTOCAST, which the operators with one of the tags below have and
 * which a thread includes inside a scope. It converts arguments and calls the operator's next function with the key
 * excluded. The operators get the key with the first scope, so that loading the library costs nothing.
 */
#include "train/cast_cache.h"

#include "autograd/graph/meta.h"
#include "base/init.h"
#include "core/batched.h"
#include "dispatch/boxed.h"
#include "dispatch/fallback.h"

#include "family/copy.h"

#include <tensor/optim.h>

#include <pthread.h>
#include <stdlib.h>

#define ARGS_MAX 24

enum policy { POLICY_NONE, POLICY_LOWER, POLICY_F32, POLICY_PROMOTE };

/* Conversions in the open scopes of the thread. */
static __thread struct cast_cache cache __attribute__((tls_model("initial-exec")));

static enum policy policy_of(const struct tensor_op *op)
{
	static const char *const tags[] = { NULL, "autocast_lower", "autocast_f32",
					    "autocast_promote" };

	for (const char *const *tag = op->schema.tags; tag && *tag; tag++)
		for (enum policy p = POLICY_LOWER; p <= POLICY_PROMOTE; p++)
			if (!strcmp(*tag, tags[p]))
				return p;
	return POLICY_NONE;
}

/* Operators that write to an argument keep its dtype. */
static bool has_policy(const struct tensor_op *op)
{
	for (int i = 0; i < op->schema.nargs; i++)
		if (op->schema.args[i].mutated)
			return false;
	return op->schema.nargs <= ARGS_MAX && policy_of(op) != POLICY_NONE;
}

static bool eligible(const tensor *t)
{
	return t && t != tensor_none && (!t->ext || is_batched(t)) &&
	       t->device.type == TENSOR_CPU &&
	       (t->dtype == TENSOR_F32 || dtype_is_reduced_float(t->dtype));
}

/* The conversion of an eligible tensor, owned; NULL with the error set. */
static tensor *convert(tensor *t, enum tensor_dtype dtype)
{
	const struct thread_modes *m = &thread()->modes;
	bool cached = m->autocast_depth && dtype == m->autocast_dtype && m->grad_enabled &&
		      needs_grad(t) && tensor_is_leaf(t) && !t->base;
	tensor *result = cached ? cast_cache_get(&cache, t, dtype) : NULL;

	if (result)
		return result;
	result = call__to_copy(t, TENSOR_OPTIONS(.dtype = dtype));
	if (result && cached)
		cast_cache_put(&cache, t, result);
	return result;
}

/* ---- the arguments of one call ---- */

/* Converted tensors are owned; lists are new. */
struct converted {
	tensor_value args[ARGS_MAX];
	tensor **lists[ARGS_MAX];
	tensor *single[ARGS_MAX];
	int n;
};

static void drop(struct converted *c)
{
	for (int i = 0; i < c->n; i++) {
		tensor_put(c->single[i]);
		for (int64_t k = 0; c->lists[i] && k < c->args[i].list.len; k++)
			if (c->lists[i][k] != tensor_none)
				tensor_put(c->lists[i][k]);
		free(c->lists[i]);
	}
}

static int convert_list(struct converted *c, int i, enum tensor_dtype dtype)
{
	tensor_list from = c->args[i].list;
	tensor **to;

	if (from.len <= 0 || !from.data)
		return 0;
	to = calloc((size_t)from.len, sizeof(*to));
	if (!to)
		return tensor_fail(ENOMEM, "autocast: no memory");
	c->lists[i] = to;
	c->args[i].list.data = to;
	for (int64_t k = 0; k < from.len; k++) {
		tensor *t = from.data[k];

		if (eligible(t) && t->dtype != dtype)
			to[k] = convert(t, dtype);
		else
			to[k] = !t || t == tensor_none ? t : tensor_get(t);
		if (t && !to[k])
			return -thread()->error.code;
	}
	return 0;
}

static int convert_one(struct converted *c, int i, enum tensor_dtype dtype)
{
	tensor *t = c->args[i].t;

	if (!eligible(t) || t->dtype == dtype)
		return 0;
	c->single[i] = c->args[i].t = convert(t, dtype);
	return c->single[i] ? 0 : -thread()->error.code;
}

static bool any_f32(tensor_list list)
{
	for (int64_t i = 0; list.data && i < list.len; i++)
		if (eligible(list.data[i]) && list.data[i]->dtype == TENSOR_F32)
			return true;
	return false;
}

/* The dtype that the tensors of a call are converted to. */
static enum tensor_dtype target(enum policy policy, const struct converted *c)
{
	if (policy == POLICY_F32)
		return TENSOR_F32;
	for (int i = 0; policy == POLICY_PROMOTE && i < c->n; i++) {
		const tensor_value *v = &c->args[i];
		tensor_list one = { &v->t, 1 };

		if ((v->kind == TENSOR_VALUE_TENSOR && any_f32(one)) ||
		    (v->kind == TENSOR_VALUE_TENSOR_LIST && any_f32(v->list)))
			return TENSOR_F32;
	}
	return thread()->modes.autocast_dtype;
}

static int autocast(const tensor_op *op, enum tensor_key key, const tensor_value *args, int nargs,
		    tensor_value *rets, int nrets, void *ctx)
{
	struct tensor_thread *th = thread();
	uint32_t exclude = th->modes.exclude;
	struct converted c;
	enum tensor_dtype dtype;
	int err = 0;

	memset(c.lists, 0, sizeof(c.lists));
	memset(c.single, 0, sizeof(c.single));
	c.n = nargs < ARGS_MAX ? nargs : ARGS_MAX;
	memcpy(c.args, args, (size_t)c.n * sizeof(*args));
	th->modes.exclude |= AUTOCAST_BIT;
	dtype = target(policy_of(op), &c);
	for (int i = 0; i < c.n && !err; i++) {
		if (args[i].kind == TENSOR_VALUE_TENSOR)
			err = convert_one(&c, i, dtype);
		else if (args[i].kind == TENSOR_VALUE_TENSOR_LIST)
			err = convert_list(&c, i, dtype);
	}
	if (!err)
		err = boxed_call_past(op, 0, c.args, c.n, rets, nrets);
	th->modes.exclude = exclude;
	drop(&c);
	return err;
}

/* ---- scopes ---- */

/* Give the operators the key, once. */
static int set_up(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool done;
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!done)
		err = dispatch_register_fallback(TENSOR_KEY_AUTOCAST, autocast, NULL, has_policy);
	done = !err;
	pthread_mutex_unlock(&lock);
	return err;
}

static void forget_conversions(struct tensor_thread *th)
{
	(void)th;
	cast_cache_clear(&cache);
}

INIT(INIT_HOOKS) static void set_exit(void)
{
	thread_on_exit(THREAD_EXIT_AUTOCAST, forget_conversions);
}

static void set(struct tensor_thread *th, enum tensor_dtype dtype)
{
	th->modes.autocast_dtype = (uint8_t)dtype;
	th->modes.include = dtype ? th->modes.include | AUTOCAST_BIT :
				    th->modes.include & ~AUTOCAST_BIT;
}

TENSOR_EXPORT struct tensor_autocast_guard tensor_autocast_enter(enum tensor_dtype dtype)
{
	struct tensor_thread *th = thread();
	struct tensor_autocast_guard guard = { .active = th->modes.include & AUTOCAST_BIT,
					       .dtype = th->modes.autocast_dtype };

	if (dtype != TENSOR_DTYPE_NONE && dtype != TENSOR_BF16 && dtype != TENSOR_F16) {
		tensor_fail(EINVAL, "autocast: the dtype must be bf16 or f16, got %s",
			    tensor_dtype_name(dtype));
		return guard;
	}
	if (set_up() < 0)
		return guard;
	guard.entered = true;
	/* A function that left its scope open may have left conversions. */
	if (!th->modes.autocast_depth++)
		cast_cache_clear(&cache);
	set(th, dtype);
	return guard;
}

TENSOR_EXPORT void tensor_autocast_leave(struct tensor_autocast_guard *guard)
{
	struct tensor_thread *th = thread();

	if (!guard || !guard->entered)
		return;
	guard->entered = false;
	set(th, guard->active ? guard->dtype : TENSOR_DTYPE_NONE);
	if (th->modes.autocast_depth && !--th->modes.autocast_depth)
		cast_cache_clear(&cache);
}

TENSOR_EXPORT enum tensor_dtype tensor_autocast_dtype(void)
{
	return thread()->modes.autocast_dtype;
}
