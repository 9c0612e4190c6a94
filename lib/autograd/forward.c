// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Forward mode: the function of the forward key, for all operators. A view of a dual tensor is the same view of its
 * tangent. For another operator y = f(x) with a derivative, backward gives g = J^T u for any u; g is linear in u, and its
 * backward for the gradient t is J t, the tangent of y. So every operator whose formula can be differentiated has a
 * forward mode. Operators that consist of others are left to these.
 */
#include "autograd/engine/engine.h"
#include "autograd/graph/dual.h"
#include "autograd/graph/meta.h"
#include "autograd/graph/pack.h"
#include "autograd/graph/saved.h"
#include "dispatch/boxed.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/view.h"

#include <tensor/autograd.h>

#include <stdlib.h>

/* The dual inputs of a call, and its arguments with aliases in their place, through which it is recorded. */
struct call {
	const tensor_op *op;
	tensor_value *args;
	int nargs, n;
	tensor **x, **alias; /* x borrowed, alias in the open scope */
	tensor **lists;	     /* elements of the lists in args */
	bool inference;	     /* the call is in inference mode: its results are inference tensors */
	bool record;	     /* the graph of the call stays */
	uint64_t since; /* the sequence number of the node that was recorded last before the call */
};

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
static tensor *recorded_input(struct call *c, tensor *t)
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

static int call_init(struct call *c, const tensor_op *op, const tensor_value *args, int nargs,
		     bool inference, bool record)
{
	const struct autograd_thread *autograd = autograd_thread(thread());
	int64_t n = count_tensors(args, nargs), at = 0;
	bool complete = true;

	*c = (struct call){ .op = op, .nargs = nargs, .inference = inference, .record = record };
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

static void call_free(struct call *c)
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

/* Keeps the gradients that depend on the cotangents, with the tangents that belong to them. */
static int select_linear(const struct call *c, tensor **g, tensor **tangents)
{
	int n = 0;

	for (int i = 0; i < c->n; i++)
		if (g[i] && needs_grad(g[i])) {
			g[n] = g[i];
			tangents[n++] = c->x[i]->tangent;
		}
	return n;
}

/* A backward through the graph of the call alone: the history of its inputs may be long. */
static int backward_of_call(const struct call *c, tensor_list outputs, tensor *const *output_grads,
			    tensor_list inputs, tensor **grads, bool record)
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
static int compute_tangents(const struct call *c, tensor *const *y, tensor **ty, int n,
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

/* compute_tangents() for those of the results that were recorded. */
static int tangents_of_results(const struct call *c, tensor_value *rets, int nrets, tensor **ty,
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

static bool any_needs_grad(const tensor_value *args, int nargs)
{
	for (int i = 0; i < nargs; i++) {
		if (args[i].kind == TENSOR_VALUE_TENSOR && args[i].t && needs_grad(args[i].t))
			return true;
		for (int64_t k = 0;
		     args[i].kind == TENSOR_VALUE_TENSOR_LIST && k < args[i].list.len; k++)
			if (needs_grad(args[i].list.data[k]))
				return true;
	}
	return false;
}

static bool any_tangent_needs_grad(const struct call *c)
{
	for (int i = 0; i < c->n; i++)
		if (needs_grad(c->x[i]->tangent))
			return true;
	return false;
}

/* Adds the tangents of the results to the tensors that the node of the call saved of them. */
static int save_tangents(const tensor_value *rets, int nrets, tensor **ty)
{
	for (int i = 0; i < nrets; i++) {
		const struct autograd_meta *m = ty[i] ? rets[i].t->autograd_meta : NULL;

		if (m && m->fn && node_save_tangent(m->fn, m->nr, ty[i]) < 0)
			return -thread()->error.code;
	}
	return 0;
}

/* ---- a functional operator ---- */

/* A tangent that is that of an input (clone, add) gets memory of its own: an in-place change of the result changes it. */
static int own_tangent(const struct call *c, tensor **tangent)
{
	for (int i = 0; *tangent && i < c->n; i++) {
		if (!tensor_shares_storage(*tangent, c->x[i]->tangent))
			continue;
		*tangent = tensor_clone(*tangent);
		return *tangent ? 0 : -thread()->error.code;
	}
	return 0;
}

/* Results without the history that only the computation of tangents needed, with their tangents. */
static int finish_results(tensor_value *rets, int nrets, tensor **ty, bool record, bool inference)
{
	for (int i = 0; i < nrets; i++) {
		tensor *plain;

		if (rets[i].kind != TENSOR_VALUE_TENSOR || !rets[i].t)
			continue;
		if (!record && needs_grad(rets[i].t)) {
			plain = tensor_new_detached(rets[i].t);
			if (!plain)
				return -thread()->error.code;
			tensor_put(rets[i].t);
			rets[i].t = plain;
		}
		if (ty[i] && dual_set(rets[i].t, ty[i]) < 0)
			return -thread()->error.code;
		rets[i].t->inference |= inference;
	}
	return 0;
}

static void drop_results(tensor_value *rets, int nrets)
{
	for (int i = 0; i < nrets; i++) {
		if (rets[i].kind == TENSOR_VALUE_TENSOR)
			tensor_put(rets[i].t);
		rets[i] = (tensor_value){ 0 };
	}
}

/* The operator itself; only what stays in the graph is packed. */
static int call_recorded(struct call *c, tensor_value *rets, int nrets, bool record)
{
	struct tensor_thread *th = thread();
	struct pack_hooks *before = pack_pause(th, !record);
	int err = boxed_call_past(c->op, 0, c->args, c->nargs, rets, nrets);

	pack_resume(th, before);
	return err;
}

static int forward_function(struct call *c, tensor_value *rets, int nrets, bool record,
			    bool record_tangent)
{
	tensor **ty = calloc(nrets + 1, sizeof(*ty));
	int err;

	if (!ty)
		return tensor_fail(ENOMEM, "%s: no memory for forward mode", c->op->schema.name);
	err = call_recorded(c, rets, nrets, record);
	if (!err) {
		err = tangents_of_results(c, rets, nrets, ty, record_tangent);
		for (int i = 0; i < nrets && !err; i++)
			err = own_tangent(c, &ty[i]);
		if (!err && record)
			err = save_tangents(rets, nrets, ty);
		if (!err)
			err = finish_results(rets, nrets, ty, record, c->inference);
		if (err)
			drop_results(rets, nrets);
	}
	free(ty);
	return err;
}

/* ---- a view ---- */

/* as_strided counts the offset from the begin of the storage. */
static void move_offset(tensor_value *of_tangent, const tensor *x)
{
	tensor_value *offset = &of_tangent[3];

	if (offset->kind == TENSOR_VALUE_INT)
		offset->i += x->tangent->offset - x->offset;
}

/* The same view of the tensor and of its tangent. */
static int forward_view(const tensor_op *op, const tensor_value *args, int nargs,
			tensor_value *rets, int nrets)
{
	tensor_value *of_tangent = calloc(nargs + nrets + 1, sizeof(*of_tangent)), *views;
	int err;

	if (!of_tangent)
		return tensor_fail(ENOMEM, "%s: no memory for forward mode", op->schema.name);
	views = of_tangent + nargs;
	memcpy(of_tangent, args, nargs * sizeof(*args));
	of_tangent[0].t = args[0].t->tangent;
	if (!strcmp(op->name, "as_strided"))
		move_offset(of_tangent, args[0].t);
	err = boxed_call_past(op, 0, args, nargs, rets, nrets);
	if (!err) {
		err = boxed_call_past(op, 0, of_tangent, nargs, views, nrets);
		for (int i = 0; i < nrets && !err; i++)
			if (rets[i].kind == TENSOR_VALUE_TENSOR && rets[i].t)
				err = dual_set(rets[i].t, views[i].t);
		drop_results(views, nrets);
		if (err)
			drop_results(rets, nrets);
	}
	free(of_tangent);
	return err;
}

static bool has_tag(const tensor_op *op, const char *tag)
{
	for (const char *const *t = op->schema.tags; *t; t++)
		if (!strcmp(*t, tag))
			return true;
	return false;
}

static bool is_view(const tensor_op *op, const tensor_value *args, int nargs)
{
	return has_tag(op, "view") && nargs && args[0].kind == TENSOR_VALUE_TENSOR &&
	       tangent_of(args[0].t);
}

/* ---- an in-place operator ---- */

/* Copies the value and the tangent that were computed for a copy of self to self. */
static int take_value(tensor *self, tensor *computed, tensor *tangent, bool record)
{
	tensor *to = tangent || tangent_of(self) ? dual_tangent(self) : NULL;
	int err = 0;

	if ((tangent || tangent_of(self)) && !to)
		return -thread()->error.code;
	if (!tensor_copy_(self, record ? computed : tensor_detach(computed)))
		err = -thread()->error.code;
	else if (to && !(tangent ? tensor_copy_(to, tangent) : tensor_zero_(to)))
		err = -thread()->error.code;
	return err;
}

/* The operator changes a copy of self, whose value self takes afterwards. */
static int forward_inplace(struct call *c, const tensor_value *args, tensor_value *rets, int nrets,
			   bool record, bool record_tangent)
{
	struct tensor_thread *th = thread();
	tensor *self = args[0].t, *copy = tensor_clone(c->args[0].t), *ty = NULL;
	tensor_value result = { .kind = TENSOR_VALUE_TENSOR };
	int err;

	if (!copy || (record && tangent_of(self) && dual_set(copy, self->tangent) < 0))
		return -th->error.code;
	c->args[0].t = copy;
	err = call_recorded(c, rets, nrets, record);
	if (err)
		return err;
	result.t = copy;
	err = tangents_of_results(c, &result, 1, &ty, record_tangent);
	if (!err && record)
		err = save_tangents(&result, 1, &ty);
	if (err)
		return err;
	th->modes.grad_enabled = record_tangent;
	th->modes.inference = c->inference;
	err = take_value(self, copy, ty, record);
	rets[0] = (tensor_value){ .kind = TENSOR_VALUE_TENSOR, .t = self };
	return err;
}

/* ---- the function of the key ---- */

/* A function or an in-place operator. The graph that the tangents need is recorded in inference mode, too. */
static int forward_recorded(const tensor_op *op, const tensor_value *args, int nargs,
			    tensor_value *rets, int nrets, bool enabled)
{
	struct tensor_thread *th = thread();
	struct call c;
	bool record = enabled && any_needs_grad(args, nargs), inference = th->modes.inference;
	bool record_tangent;
	int err;

	th->modes.grad_enabled = true;
	th->modes.inference = false;
	th->modes.exclude &= ~AUTOGRAD_BIT;
	err = call_init(&c, op, args, nargs, inference, record);
	record_tangent = enabled && (record || any_tangent_needs_grad(&c));
	if (!err && op->variant == VARIANT_INPLACE)
		err = forward_inplace(&c, args, rets, nrets, record, record_tangent);
	else if (!err)
		err = forward_function(&c, rets, nrets, record, record_tangent);
	th->modes.inference = inference;
	call_free(&c);
	return err;
}

static int differentiate(const tensor_op *op, const tensor_value *args, int nargs,
			 tensor_value *rets, int nrets)
{
	bool enabled = thread()->modes.grad_enabled;
	struct forward_guard guard = forward_guard_enter(enabled);
	struct tensor_scope_guard scope = tensor_scope_enter();
	int err = is_view(op, args, nargs) ?
			  forward_view(op, args, nargs, rets, nrets) :
			  forward_recorded(op, args, nargs, rets, nrets, enabled);

	scope_leave(&scope);
	forward_guard_leave(guard);
	return err;
}

static int forward(const tensor_op *op, enum tensor_key key, const tensor_value *args, int nargs,
		   tensor_value *rets, int nrets, void *ctx)
{
	(void)ctx;
	if (!tensor_op_has_kernel(op, TENSOR_KEY_AUTOGRAD) || !strcmp(op->name, "detach")) {
		struct thread_modes *modes = &thread()->modes;
		bool before = modes->past_forward;
		int err;

		modes->past_forward = true;
		err = boxed_call_past(op, KEY_BIT(key), args, nargs, rets, nrets);
		modes->past_forward = before;
		return err;
	}
	if (op->variant == VARIANT_OUT)
		return tensor_fail(EOPNOTSUPP,
				   "%s: an out form has no forward mode; use the function",
				   op->schema.name);
	return differentiate(op, args, nargs, rets, nrets);
}

INIT(INIT_HOOKS) static void register_forward(void)
{
	tensor_register_fallback(TENSOR_KEY_FORWARD, forward, NULL);
}
