// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Calls of functions of the program (include/tensor/function.h): forward, what it declares, and its results. */
#include "autograd/function/function.h"

#include "autograd/graph/callback.h"
#include "autograd/graph/dual.h"
#include "autograd/graph/record.h"
#include "base/text.h"
#include "core/batched.h"

#include "core/scope.h"
#include "family/view.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the node ---- */

static bool is_result(const struct building *b, const tensor *t)
{
	return differentiable(t) && !tensors_have(&b->constant, t);
}

static size_t ints_of(tensor *const *outputs, int n)
{
	size_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += outputs[i]->ndim;
	return sum;
}

/* The node of the call, with its edges. The data stays that of the caller. NULL with the error set. */
static struct function_node *make_node(const struct tensor_function_ctx *ctx,
				       tensor *const *outputs, int noutputs)
{
	const struct building *b = ctx->building;
	struct function_node *n;

	/* A CopySlices node describes an output again. */
	n = (struct function_node *)node_new(NULL, sizeof(*n), (uint32_t)b->inputs.len, b->saved.n,
					     noutputs, 2 * ints_of(outputs, noutputs));
	if (!n)
		return NULL;
	snprintf(n->name, sizeof(n->name), "%sBackward", ctx->f->name);
	n->type = (struct node_type){
		.name = n->name, .op = ctx->f->name, .apply = function_node_apply, .unlocked = true
	};
	n->node.type = &n->type;
	n->f = ctx->f;
	n->data = ctx->data;
	n->destroy = NULL;
	n->args = NULL;
	n->flags = ctx->flags;
	node_list_edges(&n->node, 0, b->inputs);
	for (int i = 0; i < noutputs; i++)
		if (!is_result(b, outputs[i]))
			node_describe(&n->node, i, outputs[i]);
	return n;
}

static int save_all(struct function_node *n, const struct building *b, tensor_list outputs)
{
	for (int i = 0; i < b->saved.n; i++) {
		tensor *t = b->saved.t[i];
		int64_t input = index_in(b->inputs, t), output = index_in(outputs, t);
		int source = SAVED_CONSTANT;

		if (t == tensor_none)
			continue;
		if (output >= 0 && is_result(b, t))
			source = SAVED_OUTPUT((int)output);
		else if (input >= 0)
			source = (int)input;
		if (node_save(&n->node, i, t, source) < 0)
			return -1;
	}
	return 0;
}

/* Makes t output nr of n. */
static int connect_output(struct function_node *n, const struct building *b, tensor *t, int nr)
{
	if (tensors_have(&b->dirty, t) && nr == 0) {
		node_get(&n->node);
		return inplace_result(&n->node, t);
	}
	if (history_set(t, &n->node, nr) < 0)
		return -1;
	/* A later in-place change through a view that forward made is refused. */
	if (t->differentiable_view && !tensors_have(&b->dirty, t)) {
		t->autograd_meta->no_grad_view = true;
		t->autograd_meta->view_version = tensor_version(t);
	}
	return 0;
}

static int record_call(struct tensor_function_ctx *ctx, tensor **outputs, int noutputs)
{
	const struct building *b = ctx->building;
	struct function_node *n = make_node(ctx, outputs, noutputs);
	int err = 0;

	if (!n)
		return -ENOMEM;
	if (ctx->args) {
		n->args = function_args_copy(ctx->f->name, ctx->args, ctx->nargs);
		err = n->args ? 0 : -1;
	}
	if (!err)
		err = save_all(n, b, (tensor_list){ outputs, noutputs });
	for (int i = 0; !err && i < noutputs; i++)
		if (is_result(b, outputs[i]))
			err = connect_output(n, b, outputs[i], i);
	n->type.destroy = function_node_destroy;
	if (!err) {
		n->destroy = ctx->destroy;
		ctx->destroy = NULL;
	}
	node_put(&n->node);
	return err ? -thread()->error.code : 0;
}

/* ---- the call ---- */

/* Outputs must be given, and a dirty input must be among them, once. */
static int check_outputs(const struct tensor_function_ctx *ctx, tensor *const *outputs, int n)
{
	const struct building *b = ctx->building;

	for (int i = 0; i < n; i++) {
		int64_t first;

		if (!outputs[i] || outputs[i] == tensor_none)
			return tensor_fail(EINVAL, "%s: forward did not set output %d",
					   ctx->f->name, i);
		if (!tensors_have(&b->dirty, outputs[i]))
			continue;
		first = index_in((tensor_list){ outputs, n }, outputs[i]);
		if (first < i)
			return tensor_fail(
				EINVAL,
				"%s: outputs %lld and %d are one tensor, which is marked dirty",
				ctx->f->name, (long long)first, i);
	}
	for (int i = 0; i < b->dirty.n; i++) {
		int64_t nr = index_in((tensor_list){ outputs, n }, b->dirty.t[i]);

		if (nr < 0)
			return tensor_fail(EINVAL,
					   "%s: forward must return an input that it marked dirty",
					   ctx->f->name);
		if (tensors_have(&b->constant, b->dirty.t[i]))
			return tensor_fail(EINVAL,
					   "%s: output %lld is marked dirty and non-differentiable",
					   ctx->f->name, (long long)nr);
		if (nr > 0 && b->recorded &&
		    (b->dirty.t[i]->differentiable_view || tensor_live_views(b->dirty.t[i])))
			return tensor_fail(
				EOPNOTSUPP,
				"%s: a view, or a tensor with views, that is changed in place must be "
				"output 0, it is output %lld",
				ctx->f->name, (long long)nr);
	}
	return 0;
}

/*
 * Output i, owned, in place of a borrowed one. An input that was not changed, a tensor that has a history already, and one
 * that is an earlier output, too, become a tensor of their own on the same memory: a view, if the call is recorded, so
 * that an in-place change of one of them does not leave the other with the gradient of its old value. NULL with the error
 * set.
 */
static tensor *own_output(const char *name, const struct building *b, tensor *const *outputs, int i)
{
	tensor *t = outputs[i];

	if (b->recorded && t->inference && is_result(b, t))
		return tensor_fail_null(
			EINVAL,
			"%s: forward must return a tensor that was not made in inference mode; use a clone",
			name);
	if (!tensors_have(&b->dirty, t) && (needs_grad(t) || index_in(b->inputs, t) >= 0 ||
					    index_in((tensor_list){ outputs, i }, t) >= 0))
		return b->recorded && !t->ext ? call_alias(t) : tensor_new_detached(t);
	return tensor_get(t);
}

static int own_outputs(const char *name, struct building *b, tensor **outputs, int n)
{
	for (int i = 0; i < n; i++) {
		tensor *t = own_output(name, b, outputs, i);
		/* The tensor in place of an input has its mark. */
		bool constant = t != outputs[i] && tensors_have(&b->constant, outputs[i]);

		if (t && constant && tensors_keep(&b->constant, t) < 0) {
			tensor_put(t);
			t = NULL;
		}
		if (!t) {
			while (i-- > 0)
				tensor_put(outputs[i]);
			return -thread()->error.code;
		}
		outputs[i] = t;
	}
	return 0;
}

static int run_forward(struct tensor_function_ctx *ctx)
{
	struct building *b = ctx->building;
	struct tensor_thread *th = thread();
	struct tensor_scope_guard scope = tensor_scope_enter();
	struct callback before = callback_begin();
	bool recording = th->modes.grad_enabled;
	int err;

	th->modes.grad_enabled = false;
	err = ctx->f->forward(ctx, b->inputs.data, (int)b->inputs.len, b->outputs, b->noutputs);
	err = callback_end(&before, err, "%s: forward failed", ctx->f->name);
	if (!err && !b->outputs)
		err = tensor_fail(EINVAL, "function_apply: %s with no place for outputs",
				  ctx->f->name);
	th->modes.grad_enabled = false;
	if (!err)
		err = check_outputs(ctx, b->outputs, b->noutputs) ?:
			      own_outputs(ctx->f->name, b, b->outputs, b->noutputs);
	th->modes.grad_enabled = recording;
	for (int i = 0; err && i < b->noutputs; i++)
		b->outputs[i] = NULL;
	scope_leave(&scope);
	return err;
}

static int run_call(struct tensor_function_ctx *ctx)
{
	struct building *b = ctx->building;
	int err = run_forward(ctx);

	if (!err && b->recorded && b->noutputs)
		err = record_call(ctx, b->outputs, b->noutputs);
	for (int i = 0; err && i < b->noutputs; i++) {
		tensor_put(b->outputs[i]);
		b->outputs[i] = NULL;
	}
	tensors_put(&b->saved);
	tensors_put(&b->constant);
	free(b->dirty.t);
	return err ?: scope_own_list(b->outputs, b->noutputs);
}

static int check_call(const struct tensor_function *f, tensor_list inputs, tensor **outputs,
		      int noutputs)
{
	if (!f || !f->forward || !f->name || !f->name[0] || strlen(f->name) > 40)
		return tensor_fail(EINVAL,
				   "function_apply: a function with forward and a name of 1 to 40 "
				   "characters is needed");
	if (!text_is_name(f->name))
		return tensor_fail(
			EINVAL,
			"function_apply: the name %s has a quotation mark, a backslash or a "
			"control character, or is not UTF-8",
			QUOTED(f->name));
	if (function_check_flags(f, f->flags) < 0)
		return -EINVAL;
	if (inputs.len < 0 || inputs.len > MOST_TENSORS || noutputs < 0 ||
	    noutputs > MOST_TENSORS || !noutputs != !outputs)
		return tensor_fail(EINVAL, "function_apply: %s with %lld inputs and %d outputs",
				   f->name, (long long)inputs.len, noutputs);
	for (int64_t i = 0; i < inputs.len; i++)
		if (!tensor_given(inputs.data[i]))
			return null_argument_code("function_apply");
		else if (tangent_of(inputs.data[i]))
			return tensor_fail(
				EOPNOTSUPP,
				"function_apply: %s has no forward mode, but input %lld has a tangent",
				f->name, (long long)i);
	return 0;
}

/* forward records nothing, and backward gets the gradients of samples: those of the batch would be lost. */
static int check_samples(const struct tensor_function *f, tensor_list inputs)
{
	if (f->flags & TENSOR_FUNCTION_RECORDS_BATCH)
		return 0;
	for (int64_t i = 0; i < inputs.len && thread()->modes.grad_enabled; i++)
		if (unlikely(is_batched(inputs.data[i])) && batch_has_history(inputs.data[i]))
			return tensor_fail(
				EOPNOTSUPP,
				"%s: input %lld is a sample of a tensor that requires a "
				"gradient outside of tensor_vmap(), which a function of the "
				"program does not record",
				f->name, (long long)i);
	return 0;
}

static int function_call(struct tensor_function_ctx *ctx, tensor_list inputs, tensor **outputs,
			 int noutputs)
{
	struct building building = { .inputs = inputs, .outputs = outputs, .noutputs = noutputs };
	int err = check_call(ctx->f, inputs, outputs, noutputs) ?: check_samples(ctx->f, inputs),
	    stale = 0;

	for (int i = 0; !err && i < noutputs; i++)
		outputs[i] = NULL;
	if (!err) {
		ctx->building = &building;
		ctx->flags = ctx->f->flags;
		building.recorded = track_list(thread(), inputs, &stale);
		err = stale ? -thread()->error.code : run_call(ctx);
		ctx->building = NULL;
	}
	if (ctx->destroy)
		ctx->destroy(ctx->data);
	return err;
}

TENSOR_EXPORT int tensor_function_apply(const struct tensor_function *function, void *data,
					void (*destroy)(void *data), tensor_list inputs,
					tensor **outputs, int noutputs)
{
	struct tensor_function_ctx ctx = { .f = function, .data = data, .destroy = destroy };

	return function_call(&ctx, inputs, outputs, noutputs);
}

/* The tensors of args as a list, to free with free(). -errno. */
static int list_inputs(const struct tensor_function_ctx *ctx, tensor_list *inputs)
{
	const char *name = ctx->f && ctx->f->name ? ctx->f->name : "function_call";
	int64_t n = function_args_tensors(name, ctx->args, ctx->nargs, NULL);
	tensor **t;

	if (n < 0)
		return (int)n;
	t = malloc((n + 1) * sizeof(*t));
	if (!t)
		return tensor_fail(ENOMEM, "%s: no memory", name);
	function_args_tensors(name, ctx->args, ctx->nargs, t);
	*inputs = (tensor_list){ t, n };
	return 0;
}

TENSOR_EXPORT int tensor_function_call(const struct tensor_function *function, void *data,
				       void (*destroy)(void *data), const tensor_value *args,
				       int nargs, tensor **outputs, int noutputs)
{
	static const tensor_value none;
	struct tensor_function_ctx ctx = { .f = function,
					   .data = data,
					   .destroy = destroy,
					   .args = args ?: &none,
					   .nargs = nargs };
	tensor_list inputs = { NULL, 0 };
	int err = nargs < 0 || nargs > MOST_TENSORS || (nargs && !args) ?
			  tensor_fail(EINVAL, "function_call: %d arguments", nargs) :
			  list_inputs(&ctx, &inputs);

	if (!err)
		err = function_call(&ctx, inputs, outputs, noutputs);
	else if (destroy)
		destroy(data);
	free((void *)inputs.data);
	return err;
}
