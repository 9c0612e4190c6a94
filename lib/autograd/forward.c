// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Forward mode: the function of the forward key, for all operators. A view of a dual tensor is the same view of its
 * tangent. For another operator y = f(x) with a derivative, backward gives g = J^T u for any u; g is linear in u, and its
 * backward for the gradient t is J t, the tangent of y. So every operator whose formula can be differentiated has a
 * forward mode. Operators that consist of others are left to these.
 */
#include "autograd/forward_call.h"
#include "autograd/graph/dual.h"
#include "autograd/graph/meta.h"
#include "autograd/graph/pack.h"

#include "family/copy.h"
#include "family/view.h"

#include <tensor/autograd.h>

#include <stdlib.h>

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

static bool any_tangent_needs_grad(const struct forward_call *c)
{
	for (int i = 0; i < c->n; i++)
		if (needs_grad(c->x[i]->tangent))
			return true;
	return false;
}

/* ---- a functional operator ---- */

/* A tangent that is that of an input (clone, add) gets memory of its own: an in-place change of the result changes it. */
static int own_tangent(const struct forward_call *c, tensor **tangent)
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
static int call_recorded(struct forward_call *c, tensor_value *rets, int nrets, bool record)
{
	struct tensor_thread *th = thread();
	struct pack_hooks *before = pack_pause(th, !record);
	int err = boxed_call_past(c->op, 0, c->args, c->nargs, rets, nrets);

	pack_resume(th, before);
	return err;
}

static int forward_function(struct forward_call *c, tensor_value *rets, int nrets, bool record,
			    bool record_tangent)
{
	tensor **ty = calloc(nrets + 1, sizeof(*ty));
	int err;

	if (!ty)
		return tensor_fail(ENOMEM, "%s: no memory for forward mode", c->op->schema.name);
	err = call_recorded(c, rets, nrets, record);
	if (!err) {
		err = forward_call_tangents(c, rets, nrets, ty, record_tangent);
		for (int i = 0; i < nrets && !err; i++)
			err = own_tangent(c, &ty[i]);
		if (!err && record)
			err = forward_call_save(c, rets, nrets, ty);
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

/* The tensor that the operator changes in place of self; in the open scope. NULL with the error set. */
static tensor *copy_self(struct forward_call *c, tensor *self, bool record, bool record_tangent)
{
	tensor *copy = tensor_clone(c->args[0].t), *tangent = tangent_of(self);

	/* A recorded tangent saves that of self, which takes another value. */
	c->self_tangent = tangent && record_tangent ? tensor_clone(tangent) : tangent;
	if (!copy || (tangent && !c->self_tangent) ||
	    (record && tangent && dual_set(copy, tangent) < 0))
		return NULL;
	c->self = self;
	c->copied = needs_grad(copy) ? meta_of(copy)->fn : NULL;
	return copy;
}

/* The operator changes a copy of self, whose value self takes afterwards. */
static int forward_inplace(struct forward_call *c, const tensor_value *args, tensor_value *rets,
			   int nrets, bool record, bool record_tangent)
{
	struct tensor_thread *th = thread();
	tensor *self = args[0].t, *copy = copy_self(c, self, record, record_tangent), *ty = NULL;
	tensor_value result = { .kind = TENSOR_VALUE_TENSOR };
	int err;

	if (!copy)
		return -th->error.code;
	c->args[0].t = copy;
	err = call_recorded(c, rets, nrets, record);
	if (err)
		return err;
	result.t = copy;
	err = forward_call_tangents(c, &result, 1, &ty, record_tangent);
	if (!err && record)
		err = forward_call_save(c, &result, 1, &ty);
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
	struct forward_call c;
	bool record = enabled && any_needs_grad(args, nargs), inference = th->modes.inference;
	bool record_tangent;
	int err;

	th->modes.grad_enabled = true;
	th->modes.inference = false;
	th->modes.exclude &= ~AUTOGRAD_BIT;
	err = forward_call_init(&c, op, args, nargs, inference, record);
	record_tangent = enabled && (record || any_tangent_needs_grad(&c));
	if (!err && op->variant == VARIANT_INPLACE)
		err = forward_inplace(&c, args, rets, nrets, record, record_tangent);
	else if (!err)
		err = forward_function(&c, rets, nrets, record, record_tangent);
	th->modes.inference = inference;
	forward_call_free(&c);
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
