// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Optimizers: groups of parameters and their state. A step is one call of a fused operator for each group. */
#include "train/optim/optim.h"

#include "autograd/graph/meta.h"
#include "core/scope.h"

#include "family/factory.h"

#include <stdlib.h>

static int by_address(const void *a, const void *b)
{
	const tensor *const *x = a, *const *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Refuse a parameter that is given twice, here or in an earlier group. */
static int check_unique(const char *caller, tensor_optim *o, tensor_list params)
{
	int64_t n = params.len, all = n;
	tensor **sorted;
	int err = 0;

	for (int i = 0; i < o->ngroups; i++)
		all += o->groups[i].n;
	sorted = malloc((size_t)(all + 1) * sizeof(*sorted));
	if (!sorted)
		return tensor_fail(ENOMEM, "%s: no memory", caller);
	if (n)
		memcpy(sorted, params.data, (size_t)n * sizeof(*sorted));
	for (int i = 0; i < o->ngroups; i++)
		for (int64_t k = 0; k < o->groups[i].n; k++)
			sorted[n++] = o->groups[i].params[k].t;
	qsort(sorted, (size_t)n, sizeof(*sorted), by_address);
	for (int64_t i = 1; i < n && !err; i++)
		if (sorted[i] == sorted[i - 1])
			err = tensor_fail(EINVAL, "%s: a parameter of shape %s is given twice",
					  caller, SHAPE_STR(sorted[i]));
	free(sorted);
	return err;
}

static int check_params(const char *caller, tensor_list params)
{
	if (!list_complete(params))
		return params.len > 0 && params.data ? null_argument_code(caller) :
						       wrong_list_code(caller, "params");
	for (int64_t i = 0; i < params.len; i++) {
		const tensor *t = params.data[i];

		if (tensor_absent(caller, t))
			return -thread()->error.code;
		if (t->ext || !(dtype_is_float(t->dtype) || dtype_is_complex(t->dtype)))
			return tensor_fail(EINVAL, "%s: parameter %lld is %s %s", caller,
					   (long long)i, tensor_layout_name(t->layout),
					   tensor_dtype_name(t->dtype));
		if (!tensor_is_leaf(t))
			return tensor_fail(
				EINVAL,
				"%s: parameter %lld is the result of an operator, not a leaf",
				caller, (long long)i);
		if (t->storage->readonly)
			return tensor_fail(EACCES, "%s: parameter %lld is in read-only memory",
					   caller, (long long)i);
	}
	return 0;
}

static void drop_group(struct optim_group *g)
{
	for (int64_t i = 0; i < g->n; i++) {
		tensor_put(g->params[i].t);
		for (int k = 0; k < OPTIM_KEYS; k++)
			tensor_put(g->params[i].state[k]);
	}
	free(g->params);
}

static int add_group(const char *caller, tensor_optim *o, tensor_list params,
		     tensor_optim_options options)
{
	struct optim_group *groups, g = { .options = options, .n = params.len };
	int64_t most = params.len > o->most ? params.len : o->most;
	tensor **lists;

	if (optim_complete(caller, &g.options) < 0 || check_params(caller, params) < 0 ||
	    check_unique(caller, o, params) < 0)
		return -thread()->error.code;
	lists = realloc(o->lists, (size_t)(most + 1) * OPTIM_LISTS * sizeof(*lists));
	o->lists = lists ? lists : o->lists;
	groups = realloc(o->groups, ((size_t)o->ngroups + 1) * sizeof(*groups));
	o->groups = groups ? groups : o->groups;
	g.params = calloc((size_t)params.len + 1, sizeof(*g.params));
	if (!lists || !groups || !g.params) {
		free(g.params);
		return tensor_fail(ENOMEM, "%s: no memory", caller);
	}
	for (int64_t i = 0; i < g.n; i++)
		g.params[i].t = tensor_get(params.data[i]);
	g.initial_lr = g.options.lr;
	o->most = most;
	o->groups[o->ngroups] = g;
	return o->ngroups++;
}

TENSOR_EXPORT tensor_optim *tensor_optim_new(tensor_list params, tensor_optim_options options)
{
	tensor_optim *o = calloc(1, sizeof(*o));

	if (!o) {
		tensor_fail(ENOMEM, "optim_new: no memory");
		return NULL;
	}
	if (add_group("optim_new", o, params, options) < 0) {
		tensor_optim_free(o);
		return NULL;
	}
	return o;
}

TENSOR_EXPORT int tensor_optim_add_group(tensor_optim *o, tensor_list params,
					 tensor_optim_options options)
{
	if (optim_absent("optim_add_group", o))
		return -EINVAL;
	if (!options.method)
		options.method = o->groups[0].options.method;
	if (options.method != o->groups[0].options.method)
		return tensor_fail(EINVAL,
				   "optim_add_group: all groups of an optimizer have one method");
	return add_group("optim_add_group", o, params, options);
}

TENSOR_EXPORT void tensor_optim_free(tensor_optim *o)
{
	if (!o)
		return;
	for (int i = 0; i < o->ngroups; i++)
		drop_group(&o->groups[i]);
	free(o->groups);
	free(o->lists);
	free(o);
}

TENSOR_EXPORT int tensor_optim_groups(const tensor_optim *o)
{
	return o ? o->ngroups : -1;
}

TENSOR_EXPORT int64_t tensor_optim_group_size(const tensor_optim *o, int group)
{
	return o && group >= 0 && group < o->ngroups ? o->groups[group].n : -1;
}

TENSOR_EXPORT tensor *tensor_optim_param(const tensor_optim *o, int group, int64_t i)
{
	return i >= 0 && i < tensor_optim_group_size(o, group) ? o->groups[group].params[i].t :
								 NULL;
}

TENSOR_EXPORT int tensor_optim_zero_grad(tensor_optim *o)
{
	if (optim_absent("optim_zero_grad", o))
		return -EINVAL;
	for (int k = 0; k < o->ngroups; k++)
		for (int64_t i = 0; i < o->groups[k].n; i++)
			if (tensor_grad(o->groups[k].params[i].t) &&
			    tensor_set_grad(o->groups[k].params[i].t, NULL) < 0)
				return -thread()->error.code;
	return 0;
}
