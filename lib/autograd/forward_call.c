// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The call of an operator in forward mode (forward_call.h). */
#include "autograd/forward_call.h"

#include "autograd/engine/engine.h"
#include "autograd/graph/dual.h"
#include "autograd/graph/hooks.h"
#include "autograd/graph/input_tangents.h"
#include "autograd/graph/meta.h"
#include "autograd/graph/pack.h"
#include "autograd/graph/saved.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/view.h"

#include <tensor/autograd.h>

#include <stdlib.h>

static int64_t count_tensors(const tensor_value *args, int nargs)
{
	int64_t n = 0;

	for (int i = 0; i < nargs; i++) {
		if (args[i].kind == TENSOR_VALUE_TENSOR)
			n++;
		else if (args[i].kind == TENSOR_VALUE_TENSOR_LIST)
			n += args[i].list.len;
	}
	return n;
}

/* The tensor through which an input of the call is recorded; in the open scope. NULL with the error set. */
static tensor *recorded_input(struct forward_call *c, tensor *t)
{
	tensor *a;

	if (!t || !tangent_of(t))
		return t;
	for (int i = 0; i < c->n; i++)
		if (c->x[i] == t)
			return c->alias[i];
	a = needs_grad(t) ? tensor_alias(t) : scope_own(thread(), tensor_new_detached(t));
	/* In inference mode the graph of the alias ends with the call. */
	if (a && c->inference)
		a->inference = false;
	if (!a || tensor_set_requires_grad(a, true) < 0)
		return NULL;
	/* A graph that stays saves it with its tangent. */
	if (c->record && dual_set(a, t->tangent) < 0)
		return NULL;
	c->x[c->n] = t;
	c->alias[c->n++] = a;
	return a;
}

int forward_call_init(struct forward_call *c, const tensor_op *op, const tensor_value *args,
		      int nargs, bool inference, bool record)
{
	const struct autograd_thread *autograd = autograd_thread(thread());
	int64_t n = count_tensors(args, nargs), at = 0;
	bool complete = true;

	*c = (struct forward_call){
		.op = op, .nargs = nargs, .inference = inference, .record = record
	};
	if (!autograd)
		return -ENOMEM;
	c->since = autograd->seq;
	c->args = malloc((nargs + 1) * sizeof(*c->args));
	c->x = calloc(3 * n + 1, sizeof(*c->x));
	if (!c->args || !c->x)
		return tensor_fail(ENOMEM, "%s: no memory for forward mode", op->schema.name);
	c->alias = c->x + n;
	c->lists = c->alias + n;
	for (int i = 0; i < nargs; i++) {
		tensor_value *v = &c->args[i];

		*v = args[i];
		if (v->kind == TENSOR_VALUE_TENSOR && v->t) {
			v->t = recorded_input(c, v->t);
			complete &= v->t != NULL;
		} else if (v->kind == TENSOR_VALUE_TENSOR_LIST) {
			for (int64_t k = 0; k < v->list.len; k++) {
				c->lists[at + k] = recorded_input(c, args[i].list.data[k]);
				complete &= c->lists[at + k] != NULL;
			}
			v->list.data = c->lists + at;
			at += v->list.len;
		}
	}
	return complete ? 0 : -thread()->error.code;
}

void forward_call_free(struct forward_call *c)
{
	free(c->args);
	free(c->x);
}

/* ---- tangents ---- */

/* Tensors that stand for the gradients of y; in the open scope. Of ones: some formulas (logcumsumexp) are linear in the
 * gradient as a function, but are computed by way of its logarithm. */
static int make_cotangents(tensor *const *y, tensor **u, int n)
{
	for (int i = 0; i < n; i++) {
		u[i] = tensor_ones_like(y[i], (tensor_options){ 0 });
		if (!u[i] || tensor_set_requires_grad(u[i], true) < 0)
			return -thread()->error.code;
	}
	return 0;
}

/* The tangent of dual input i, in a graph. */
static tensor *input_tangent(const struct forward_call *c, int i)
{
	return c->x[i] == c->self ? c->self_tangent : c->x[i]->tangent;
}

/* Keeps the gradients that depend on the cotangents, with the tangents that belong to them. */
static int select_linear(const struct forward_call *c, tensor **g, tensor **tangents)
{
	int n = 0;

	for (int i = 0; i < c->n; i++)
		if (g[i] && needs_grad(g[i])) {
			g[n] = g[i];
			tangents[n++] = input_tangent(c, i);
		}
	return n;
}

/* A backward through the graph of the call alone: the history of its inputs may be long. */
static int backward_of_call(const struct forward_call *c, tensor_list outputs,
			    tensor *const *output_grads, tensor_list inputs, tensor **grads,
			    bool record)
{
	const struct engine_call call = {
		.outputs = outputs,
		.inputs = inputs,
		.output_grads = output_grads,
		.grads = grads,
		.record = record,
		.keep = record,
		.since = c->since,
	};

	return engine_backward(&call);
}

/*
 * The tangents of the results y[], which were recorded; in the open scope, NULL for zero. tmp has space for n cotangents
 * and twice the number of inputs.
 */
static int compute_tangents(const struct forward_call *c, tensor *const *y, tensor **ty, int n,
			    tensor **tmp, bool record)
{
	tensor **u = tmp, **g = u + n, **tangents = g + c->n;
	int err = make_cotangents(y, u, n), count;

	if (!err)
		err = backward_of_call(c, (tensor_list){ y, n }, u, (tensor_list){ c->alias, c->n },
				       g, true);
	if (err)
		return err;
	count = select_linear(c, g, tangents);
	if (!count)
		return 0;
	return backward_of_call(c, (tensor_list){ g, count }, tangents, (tensor_list){ u, n }, ty,
				record);
}

int forward_call_tangents(const struct forward_call *c, tensor_value *rets, int nrets, tensor **ty,
			  bool record)
{
	struct tensor_thread *th = thread();
	tensor **tmp = calloc(3 * nrets + 2 * c->n + 1, sizeof(*tmp)), **y, **t;
	int n = 0, err = 0;
	struct pack_hooks *before;

	if (!tmp)
		return tensor_fail(ENOMEM, "%s: no memory for forward mode", c->op->schema.name);
	before = pack_pause(th, !record);
	y = tmp;
	t = y + nrets;
	for (int i = 0; i < nrets; i++)
		if (rets[i].kind == TENSOR_VALUE_TENSOR && rets[i].t && needs_grad(rets[i].t))
			y[n++] = rets[i].t;
	if (n)
		err = compute_tangents(c, y, t, n, t + nrets, record);
	for (int i = 0, k = 0; i < nrets && !err; i++)
		ty[i] = k < n && rets[i].t == y[k] ? t[k++] : NULL;
	pack_resume(th, before);
	free(tmp);
	return err;
}

/* ---- tangents of saved results ---- */

/* The dual input at the end of an edge of the call's node, -1 if there is none. */
static int input_of_edge(const struct forward_call *c, const struct edge *e)
{
	for (int i = 0; i < c->n; i++) {
		const struct autograd_meta *m = meta_of(c->alias[i]);

		if (c->x[i] == c->self ? c->copied == e->fn :
					 meta_node(m) == e->fn && (m->fn ? m->nr : 0) == e->nr)
			return i;
	}
	return -1;
}

/* Gives the node what the tangents of its results are computed from. */
static int keep_input_tangents(const struct forward_call *c, tensor_node *n)
{
	struct input_tangents *k;
	int err = 0;

	if (n->hooks && n->hooks->tangents)
		return 0;
	k = input_tangents_new(n->nedges);
	if (!k)
		return -ENOMEM;
	for (uint32_t e = 0; e < n->nedges && !err; e++) {
		int i = n->edges[e].fn ? input_of_edge(c, &n->edges[e]) : -1;

		if (i >= 0)
			err = input_tangents_add(k, e, input_tangent(c, i));
	}
	if (!err)
		return hooks_keep_tangents(n, &k->attachment);
	k->attachment.free(&k->attachment);
	return err;
}

int forward_call_save(const struct forward_call *c, const tensor_value *rets, int nrets,
		      tensor **ty)
{
	for (int i = 0; i < nrets; i++) {
		const struct autograd_meta *m = ty[i] ? rets[i].t->autograd_meta : NULL;

		int saved = m && m->fn ? node_save_tangent(m->fn, m->nr, ty[i]) : 0;

		if (saved < 0 || (saved && keep_input_tangents(c, m->fn) < 0))
			return -thread()->error.code;
	}
	return 0;
}
