// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Tangents of tensors (dual.h), and the public functions of forward mode. */
#include "autograd/graph/dual.h"

#include "autograd/graph/callback.h"
#include "autograd/graph/output.h"
#include "autograd/graph/view.h"
#include "core/batched.h"
#include "core/referrers.h"
#include "core/scope.h"
#include "iter/iter.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/view.h"

#include <tensor/autograd.h>

#include <stdlib.h>

struct forward_guard forward_guard_enter(bool grad_enabled)
{
	struct tensor_thread *th = thread();
	struct forward_guard g = { th->modes.exclude, th->modes.grad_enabled };

	th->modes.exclude |= FORWARD_BIT;
	th->modes.past_forward = false;
	th->modes.grad_enabled = grad_enabled;
	return g;
}

void forward_guard_leave(struct forward_guard g)
{
	struct tensor_thread *th = thread();

	th->modes.exclude = g.exclude;
	th->modes.grad_enabled = g.grad_enabled;
}

static bool same_geometry(const tensor *a, const tensor *b)
{
	if (!sizes_equal(a, b))
		return false;
	for (int i = 0; i < a->ndim; i++)
		if (a->sizes[i] > 1 && a->strides[i] != b->strides[i])
			return false;
	return true;
}

/* A copy of the tangent with the strides of t; owned. NULL with the error set. */
static tensor *laid_out(const tensor *t, tensor *tangent)
{
	struct tensor_scope_guard scope = tensor_scope_enter();
	tensor *copy = tensor_empty_strided((tensor_ints){ t->sizes, t->ndim },
					    (tensor_ints){ t->strides, t->ndim },
					    TENSOR_OPTIONS(.dtype = t->dtype, .device = t->device));

	return scope_leave_with(&scope, copy ? tensor_copy_(copy, tangent) : NULL);
}

int dual_set(tensor *t, tensor *tangent)
{
	struct forward_guard g = forward_guard_enter(thread()->modes.grad_enabled);

	/* Views of a contiguous tensor must be possible for its tangent. */
	if (is_batched(tangent) && t->contiguous && !tangent->contiguous)
		tangent = call_clone(tangent, TENSOR_CONTIGUOUS_FORMAT);
	else if (t->ext || tangent->ext || same_geometry(t, tangent))
		tensor_get(tangent);
	else
		tangent = laid_out(t, tangent);
	forward_guard_leave(g);
	if (!tangent)
		return -thread()->error.code;
	t->tangent = tangent;
	t->keys |= FORWARD_BIT;
	return 0;
}

static int set_zeros(tensor *t)
{
	tensor *zeros = call_zeros_like(t, (tensor_options){ 0 });
	int err = zeros ? dual_set(t, zeros) : -thread()->error.code;

	tensor_put(zeros);
	return err;
}

/* The part of the base's tangent that belongs to the view t. */
static int set_part(tensor *t, tensor *whole)
{
	tensor *part;
	int err;

	if (whole->dtype != t->dtype)
		return tensor_fail(
			EOPNOTSUPP,
			"forward mode: a view as %s of a tensor of %s has no tangent of its own",
			tensor_dtype_name(t->dtype), tensor_dtype_name(whole->dtype));
	part = call_as_strided(whole, (tensor_ints){ t->sizes, t->ndim },
			       (tensor_ints){ t->strides, t->ndim },
			       whole->offset + t->offset - t->base->offset);
	err = part ? dual_set(t, part) : -thread()->error.code;
	tensor_put(part);
	return err;
}

/* Gives root a tangent of zeros, and to all its views the part that belongs to them. */
static int set_zeros_and_views(tensor *root)
{
	const struct referrer *r = NULL;
	int err = tensor_live_views(root) ? views_find("forward mode", root, &r) : 0;

	if (!err)
		err = set_zeros(root);
	for (; !err && r; r = r->next)
		if (r->t->base == root && r->t->differentiable_view && !tangent_of(r->t))
			err = set_part(r->t, root->tangent);
	return err;
}

tensor *dual_tangent(tensor *t)
{
	tensor *root = t->base && t->differentiable_view ? t->base : t;

	if (tangent_of(t))
		return t->tangent;
	if (!tangent_of(root) && set_zeros_and_views(root) < 0)
		return NULL;
	if (!tangent_of(t) && set_part(t, root->tangent) < 0)
		return NULL;
	return t->tangent;
}

/* ---- public functions ---- */

TENSOR_EXPORT tensor *tensor_tangent(const tensor *t)
{
	return tensor_given(t) ? tangent_of(t) : NULL;
}

TENSOR_EXPORT tensor *tensor_primal(tensor *t)
{
	struct forward_guard g;

	if (!tensor_given(t))
		return null_argument("primal");
	g = forward_guard_enter(thread()->modes.grad_enabled);
	t = tensor_alias(t);
	forward_guard_leave(g);
	return t;
}

/* Elements of an expanded tensor that share memory may have different tangents: its dual tensor has memory of its own. */
static bool may_share(const tensor *primal, const tensor *tangent)
{
	return primal->ext || same_geometry(primal, tangent) || !tensor_overlaps_itself(primal);
}

TENSOR_EXPORT tensor *tensor_make_dual(tensor *primal, tensor *tangent)
{
	struct output like;
	tensor *t;

	if (!tensor_given(primal) || !tensor_given(tangent))
		return null_argument("make_dual");
	if (tangent_of(primal) || tangent_of(tangent))
		return tensor_fail_null(EINVAL, "make_dual: the %s has a tangent already",
					tangent_of(primal) ? "tensor" : "tangent");
	if (!dtype_is_float(primal->dtype) && !dtype_is_complex(primal->dtype))
		return tensor_fail_null(EINVAL,
					"make_dual: only floating dtypes have a tangent, got %s",
					tensor_dtype_name(primal->dtype));
	like = output_like(primal);
	if (output_check(&like, LAYOUT_BIT(primal->layout) | ALSO_INFERENCE, tangent,
			 "make_dual: the tangent must be") < 0)
		return NULL;
	t = may_share(primal, tangent) ? tensor_alias(primal) : tensor_clone(primal);
	if (!t || dual_set(t, tangent) < 0)
		return NULL;
	return t;
}

/* Splits the results of a function; they are owned afterwards. */
static int give_outputs(tensor **outputs, tensor **tangents, int n)
{
	for (int i = 0; i < n; i++) {
		tensor *y = outputs[i], *t;

		if (!y)
			return tensor_fail(EINVAL, "jvp: the function did not set output %d", i);
		t = tangent_of(y);
		outputs[i] = tensor_primal(y);
		tangents[i] = t ?: tensor_zeros_like(outputs[i], (tensor_options){ 0 });
		if (!outputs[i] || !tangents[i])
			return -thread()->error.code;
	}
	for (int i = 0; i < n; i++) {
		tensor_get(outputs[i]);
		tensor_get(tangents[i]);
	}
	return 0;
}

static int run_jvp(tensor_graph_fn fn, void *ctx, tensor_list inputs, tensor *const *tangents,
		   tensor **outputs, tensor **output_tangents, int noutputs)
{
	tensor **duals = malloc((inputs.len + 1) * sizeof(*duals));
	struct callback before;
	int err = duals ? 0 : tensor_fail(ENOMEM, "jvp: no memory");

	for (int64_t i = 0; !err && i < inputs.len; i++) {
		duals[i] = inputs.data[i];
		if (tangents[i] && tangents[i] != tensor_none)
			duals[i] = tensor_make_dual(duals[i], tangents[i]);
		if (!duals[i])
			err = -thread()->error.code;
	}
	if (!err) {
		before = callback_begin();
		err = fn(duals, (int)inputs.len, outputs, noutputs, ctx);
		err = callback_end(&before, err, "jvp: the function failed");
		if (!err)
			err = give_outputs(outputs, output_tangents, noutputs);
	}
	free(duals);
	return err;
}

TENSOR_EXPORT int tensor_jvp(tensor_graph_fn fn, void *ctx, tensor_list inputs,
			     tensor *const *tangents, tensor **outputs, tensor **output_tangents,
			     int noutputs)
{
	struct tensor_scope_guard scope;
	int err;

	if (!fn || !outputs || !output_tangents || noutputs < 1 || inputs.len < 0 ||
	    (inputs.len && !tangents))
		return tensor_fail(EINVAL, "jvp: a function, tangents and outputs must be given");
	for (int64_t i = 0; i < inputs.len; i++)
		if (!tensor_given(inputs.data[i]))
			return null_argument_code("jvp");
	for (int i = 0; i < noutputs; i++)
		outputs[i] = output_tangents[i] = NULL;
	scope = tensor_scope_enter();
	err = run_jvp(fn, ctx, inputs, tangents, outputs, output_tangents, noutputs);
	scope_leave(&scope);
	for (int i = 0; err && i < noutputs; i++)
		outputs[i] = output_tangents[i] = NULL;
	return err   ?:
		       (scope_own_list(outputs, noutputs) ?:
				scope_own_list(output_tangents, noutputs));
}
