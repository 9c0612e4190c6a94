// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The state of an optimizer as named tensors, and its file. Loading checks everything before it changes anything. */
#include "train/optim/optim.h"

#include "core/scope.h"
#include "ops/op.h"

#include "family/factory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

TENSOR_EXPORT int64_t tensor_optim_state_count(const tensor_optim *o)
{
	int64_t n = 0;

	for (int k = 0; o && k < o->ngroups; k++)
		for (int64_t i = 0; i < o->groups[k].n; i++)
			for (int s = 0; s < OPTIM_KEYS; s++)
				n += o->groups[k].params[i].state[s] != NULL;
	return n;
}

/* Move the cursor to the next state tensor; false after the last one. */
static bool next_state(const tensor_optim *o, struct optim_cursor *c)
{
	for (; c->group < o->ngroups; c->group++, c->param = 0) {
		const struct optim_group *g = &o->groups[c->group];

		for (; c->param < g->n; c->param++, c->slot = -1)
			while (++c->slot < OPTIM_KEYS)
				if (g->params[c->param].state[c->slot]) {
					c->i++;
					return true;
				}
	}
	return false;
}

TENSOR_EXPORT int tensor_optim_state_at(tensor_optim *o, int64_t i, struct tensor_named *state)
{
	const char *keys[OPTIM_KEYS];
	struct optim_cursor c;

	if (optim_absent("optim_state_at", o))
		return -EINVAL;
	if (!state)
		return tensor_fail(EINVAL, "optim_state_at: state is NULL");
	c = o->cursor;
	if (!c.valid || c.i > i)
		c = (struct optim_cursor){ .valid = true, .i = -1, .slot = -1 };
	while (c.i < i && next_state(o, &c))
		;
	if (c.i != i || i < 0)
		return tensor_fail(ERANGE, "optim_state_at: there is no state tensor %lld",
				   (long long)i);
	o->cursor = c;
	optim_keys(&o->groups[c.group].options, keys);
	snprintf(o->name, sizeof(o->name), "%d.%lld.%s", c.group, (long long)c.param, keys[c.slot]);
	*state = (struct tensor_named){ o->name, o->groups[c.group].params[c.param].state[c.slot] };
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

/* The contents of an optimizer after a load: options, and the states of all parameters of all groups, owned. */
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

	l->o->cursor.valid = false;
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
	struct thread_modes before;
	int64_t all = 0;
	int err = 0;

	for (int k = 0; k < l->o->ngroups; k++)
		all += l->o->groups[k].n;
	l->states = calloc((size_t)all + 1, sizeof(*l->states));
	if (!l->states)
		return tensor_fail(ENOMEM, "%s: no memory", l->caller);
	before = thread_enter_plain();
	for (int64_t i = 0; i < n && !err; i++)
		err = load_one(l, &state[i]);
	thread()->modes = before;
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

/* ---- sharing ---- */

static bool starts_with_gradient(const struct optim_group *g, const struct optim_param *p)
{
	return g->options.method == TENSOR_OPTIM_SGD && g->options.momentum != 0 &&
	       g->options.dampening != 0 && !p->state[0];
}

static int share_state(const struct optim_group *g, struct optim_param *p)
{
	const char *keys[OPTIM_KEYS];
	int err;

	optim_keys(&g->options, keys);
	if (starts_with_gradient(g, p))
		return tensor_fail(EINVAL,
				   "optim_share_memory: SGD with dampening must step before");
	err = optim_complete_state(g, p, keys);
	for (int s = 0; s < OPTIM_KEYS && !err; s++)
		if (p->state[s])
			err = tensor_share_memory(p->state[s]);
	return err;
}

TENSOR_EXPORT int tensor_optim_share_memory(tensor_optim *o)
{
	struct thread_modes before;
	int err = 0;

	if (optim_absent("optim_share_memory", o))
		return -EINVAL;
	o->cursor.valid = false;
	before = thread_enter_plain();
	for (int k = 0; k < o->ngroups; k++)
		for (int64_t i = 0; i < o->groups[k].n && !err; i++)
			err = share_state(&o->groups[k], &o->groups[k].params[i]);
	thread()->modes = before;
	return err;
}
