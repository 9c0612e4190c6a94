// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The state of an optimizer as named tensors, and its file. Loading checks everything before it changes anything. */
#include "train/optim.h"

#include "core/scope.h"
#include "ops/op.h"

#include "family/factory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Calls fn for each state tensor in order until it returns non-zero, and returns that. */
static int each_state(const tensor_optim *o,
		      int (*fn)(int group, int64_t i, const char *key, tensor *t, void *ctx),
		      void *ctx)
{
	const char *keys[OPTIM_KEYS];
	int stop = 0;

	for (int k = 0; k < o->ngroups; k++) {
		optim_keys(&o->groups[k].options, keys);
		for (int64_t i = 0; i < o->groups[k].n; i++)
			for (int s = 0; s < OPTIM_KEYS && !stop; s++)
				if (o->groups[k].params[i].state[s])
					stop = fn(k, i, keys[s], o->groups[k].params[i].state[s],
						  ctx);
	}
	return stop;
}

static int count_one(int group, int64_t i, const char *key, tensor *t, void *ctx)
{
	++*(int64_t *)ctx;
	return 0;
}

TENSOR_EXPORT int64_t tensor_optim_state_count(const tensor_optim *o)
{
	int64_t n = 0;

	if (o)
		each_state(o, count_one, &n);
	return n;
}

struct wanted {
	int64_t left;
	char *name;
	size_t size;
	struct tensor_named *state;
};

static int find_one(int group, int64_t i, const char *key, tensor *t, void *ctx)
{
	struct wanted *w = ctx;

	if (w->left--)
		return 0;
	snprintf(w->name, w->size, "%d.%lld.%s", group, (long long)i, key);
	*w->state = (struct tensor_named){ w->name, t };
	return 1;
}

TENSOR_EXPORT int tensor_optim_state_at(tensor_optim *o, int64_t i, struct tensor_named *state)
{
	struct wanted w = { i, o ? o->name : NULL, sizeof(o->name), state };

	if (optim_absent("optim_state_at", o))
		return -EINVAL;
	if (!state)
		return tensor_fail(EINVAL, "optim_state_at: state is NULL");
	if (i < 0 || !each_state(o, find_one, &w))
		return tensor_fail(ERANGE, "optim_state_at: there is no state tensor %lld",
				   (long long)i);
	return 0;
}

TENSOR_EXPORT tensor *tensor_optim_state(const tensor_optim *o, int group, int64_t i,
					 const char *key)
{
	const char *keys[OPTIM_KEYS];

	if (!key || !tensor_optim_param(o, group, i))
		return NULL;
	optim_keys(&o->groups[group].options, keys);
	for (int s = 0; s < OPTIM_KEYS; s++)
		if (keys[s] && !strcmp(keys[s], key))
			return o->groups[group].params[i].state[s];
	return NULL;
}

/* ---- loading ---- */

/* What an optimizer gets: options, and the states of all parameters of all groups, owned. */
struct loading {
	const char *caller;
	tensor_optim *o;
	struct optim_group *groups; /* options, n, initial_lr */
	tensor *(*states)[OPTIM_KEYS];
};

/* The place in l->states of a name, or NULL with the error set. */
static tensor **find_place(struct loading *l, const char *name, tensor **param, bool *step)
{
	const char *keys[OPTIM_KEYS], *key = name ? strrchr(name, '.') : NULL;
	long long i = -1, at = 0;
	int group = -1;
	char again[64];

	if (key && sscanf(name, "%d.%lld", &group, &i) == 2 && group >= 0 &&
	    group < l->o->ngroups && i >= 0 && i < l->o->groups[group].n) {
		for (int k = 0; k < group; k++)
			at += l->o->groups[k].n;
		optim_keys(&l->groups[group].options, keys);
		for (int s = 0; s < OPTIM_KEYS; s++) {
			if (!keys[s] || strcmp(keys[s], key + 1))
				continue;
			snprintf(again, sizeof(again), "%d.%lld.%s", group, i, keys[s]);
			if (strcmp(again, name))
				break;
			*param = l->o->groups[group].params[i].t;
			*step = optim_is_step(keys[s]);
			return &l->states[at + i][s];
		}
	}
	tensor_fail(EINVAL, "%s: the optimizer has no state %s", l->caller, QUOTED(name));
	return NULL;
}

static int load_one(struct loading *l, const struct tensor_named *from)
{
	tensor *param = NULL, **to, *t = from->t;
	bool step = false;

	if (tensor_absent(l->caller, t))
		return -thread()->error.code;
	to = find_place(l, from->name, &param, &step);
	if (!to)
		return -EINVAL;
	if (*to)
		return tensor_fail(EINVAL, "%s: %s is given twice", l->caller, QUOTED(from->name));
	if (t->ext || t->dtype != (step ? TENSOR_F32 : param->dtype) ||
	    (step ? t->numel != 1 : !sizes_equal(t, param)))
		return tensor_fail(EINVAL, "%s: %s is %s %s, which does not fit a parameter %s %s",
				   l->caller, QUOTED(from->name), tensor_dtype_name(t->dtype),
				   SHAPE_STR(t), tensor_dtype_name(param->dtype), SHAPE_STR(param));
	*to = step ? call_zeros((tensor_ints){ NULL, 0 }, TENSOR_OPTIONS(.dtype = TENSOR_F32)) :
		     call_zeros_like(param,
				     TENSOR_OPTIONS(.memory_format = TENSOR_PRESERVE_FORMAT));
	if (!*to)
		return -thread()->error.code;
	if (step) {
		double v;

		if (tensor_item(t, &v) < 0)
			return -thread()->error.code;
		*(float *)(*to)->data = (float)v;
		return 0;
	}
	return operand_copy(*to, t) < 0 ? -thread()->error.code : 0;
}

/* A parameter has all tensors of its method or none. */
static int check_complete(const struct loading *l)
{
	const char *keys[OPTIM_KEYS];
	int64_t at = 0;

	for (int k = 0; k < l->o->ngroups; k++) {
		optim_keys(&l->groups[k].options, keys);
		for (int64_t i = 0; i < l->o->groups[k].n; i++, at++) {
			const char *absent = NULL;
			bool some = false;

			for (int s = 0; s < OPTIM_KEYS; s++) {
				some |= l->states[at][s] != NULL;
				if (keys[s] && !l->states[at][s])
					absent = keys[s];
			}
			if (some && absent)
				return tensor_fail(EINVAL, "%s: %d.%lld.%s is missing", l->caller,
						   k, (long long)i, absent);
		}
	}
	return 0;
}

/* Exchange the state, so that the old one is released with l->states. */
static void commit(struct loading *l)
{
	int64_t at = 0;

	for (int k = 0; k < l->o->ngroups; k++) {
		struct optim_group *g = &l->o->groups[k];

		g->options = l->groups[k].options;
		g->initial_lr = l->groups[k].initial_lr;
		for (int64_t i = 0; i < g->n; i++, at++)
			for (int s = 0; s < OPTIM_KEYS; s++) {
				tensor *old = g->params[i].state[s];

				g->params[i].state[s] = l->states[at][s];
				l->states[at][s] = old;
			}
	}
}

static int load(struct loading *l, const struct tensor_named *state, int64_t n)
{
	struct tensor_grad_guard guard;
	int64_t all = 0;
	int err = 0;

	for (int k = 0; k < l->o->ngroups; k++)
		all += l->o->groups[k].n;
	l->states = calloc((size_t)all + 1, sizeof(*l->states));
	if (!l->states)
		return tensor_fail(ENOMEM, "%s: no memory", l->caller);
	guard = tensor_grad_enter(false);
	for (int64_t i = 0; i < n && !err; i++)
		err = load_one(l, &state[i]);
	tensor_grad_leave(&guard);
	if (!err)
		err = check_complete(l);
	if (!err)
		commit(l);
	for (int64_t i = 0; i < all; i++)
		for (int s = 0; s < OPTIM_KEYS; s++)
			tensor_put(l->states[i][s]);
	free(l->states);
	return err;
}

int optim_replace(const char *caller, tensor_optim *o, struct optim_group *groups,
		  const struct tensor_named *state, int64_t n)
{
	struct loading l = { .caller = caller, .o = o, .groups = groups };

	return load(&l, state, n);
}

TENSOR_EXPORT int tensor_optim_load_state(tensor_optim *o, const struct tensor_named *state,
					  int64_t n)
{
	if (optim_absent("optim_load_state", o))
		return -EINVAL;
	if (n < 0 || (n && !state))
		return wrong_list_code("optim_load_state", "state");
	return optim_replace("optim_load_state", o, o->groups, state, n);
}
