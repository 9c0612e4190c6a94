// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Calls of functions of the program (include/tensor/function.h): forward, what it declares, and its results. */
#include "autograd/function/function.h"

#include "autograd/graph/callback.h"
#include "autograd/graph/dual.h"
#include "autograd/graph/record.h"
#include "base/text.h"
#include "core/batched.h"

#include "core/scope.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_TENSORS INT16_MAX /* inputs, outputs, saved tensors */

static int list_add(struct tensors *list, tensor *t)
{
	if (list->n == list->cap) {
		int cap = list->cap ? 2 * list->cap : 8;
		tensor **p = realloc(list->t, cap * sizeof(*p));

		if (!p)
			return tensor_fail(ENOMEM, "function: no memory");
		list->t = p;
		list->cap = cap;
	}
	list->t[list->n++] = t;
	return 0;
}

static bool list_has(const struct tensors *list, const tensor *t)
{
	for (int i = 0; i < list->n; i++)
		if (list->t[i] == t)
			return true;
	return false;
}

static int64_t index_in(tensor_list list, const tensor *t)
{
	for (int64_t i = 0; i < list.len; i++)
		if (list.data[i] == t)
			return i;
	return -1;
}

/* ---- what forward and backward ask for ---- */

TENSOR_EXPORT void *tensor_function_data(const tensor_function_ctx *ctx)
{
	return ctx ? ctx->data : NULL;
}

TENSOR_EXPORT bool tensor_function_needs_grad(const tensor_function_ctx *ctx, int input)
{
	if (!ctx || input < 0)
		return false;
	if (!ctx->building)
		return ctx->need >> (input < 63 ? input : 63) & 1;
	return ctx->building->recorded && input < ctx->building->inputs.len &&
	       needs_grad(ctx->building->inputs.data[input]);
}

TENSOR_EXPORT int tensor_function_argument_count(const tensor_function_ctx *ctx)
{
	return ctx ? ctx->nargs : 0;
}

TENSOR_EXPORT const tensor_value *tensor_function_argument(const tensor_function_ctx *ctx, int i)
{
	if (ctx && i >= 0 && i < ctx->nargs)
		return &ctx->args[i];
	tensor_fail(EINVAL, "function_argument: the call has %d arguments, there is no %d",
		    tensor_function_argument_count(ctx), i);
	return NULL;
}

static struct building *in_forward(const tensor_function_ctx *ctx, const char *function)
{
	if (ctx && ctx->building)
		return ctx->building;
	tensor_fail(EINVAL, "%s: only forward may call it", function);
	return NULL;
}

TENSOR_EXPORT int tensor_function_save(tensor_function_ctx *ctx, tensor_list tensors)
{
	struct building *b = in_forward(ctx, "function_save");

	if (!b)
		return -EINVAL;
	if (tensors.len < 0 || tensors.len > MOST_TENSORS - b->saved.n)
		return tensor_fail(EINVAL, "function_save: %lld tensors", (long long)tensors.len);
	for (int64_t i = 0; i < tensors.len; i++) {
		if (!tensor_given(tensors.data[i]))
			return null_argument_code("function_save");
		if (list_add(&b->saved, tensors.data[i]) < 0)
			return -ENOMEM;
		tensor_get(tensors.data[i]);
	}
	return 0;
}

TENSOR_EXPORT int tensor_function_mark_dirty(tensor_function_ctx *ctx, tensor *input)
{
	struct building *b = in_forward(ctx, "function_mark_dirty");
	int64_t i;

	if (!b)
		return -EINVAL;
	i = input ? index_in(b->inputs, input) : -1;
	if (i < 0 || input == tensor_none)
		return tensor_fail(EINVAL, "function_mark_dirty: the tensor is no input of %s",
				   ctx->f->name);
	if (b->recorded && i > 0 && input->base && input->differentiable_view)
		return tensor_fail(
			EOPNOTSUPP,
			"function_mark_dirty: a view that %s changes in place must be its "
			"first input, it is input %lld",
			ctx->f->name, (long long)i);
	if (inplace_check_named(ctx->f->name, input, b->recorded) < 0)
		return -thread()->error.code;
	return list_has(&b->dirty, input) ? 0 : list_add(&b->dirty, input);
}

TENSOR_EXPORT int tensor_function_mark_non_differentiable(tensor_function_ctx *ctx, tensor *output)
{
	struct building *b = in_forward(ctx, "function_mark_non_differentiable");

	if (!b)
		return -EINVAL;
	if (!tensor_given(output))
		return null_argument_code("function_mark_non_differentiable");
	return list_add(&b->constant, output);
}

TENSOR_EXPORT int tensor_function_saved_count(const tensor_function_ctx *ctx)
{
	if (!ctx)
		return 0;
	return ctx->building ? ctx->building->saved.n : ctx->node->nsaved;
}

TENSOR_EXPORT tensor *tensor_function_saved(tensor_function_ctx *ctx, int i)
{
	tensor_node *n;
	tensor *t;

	if (!ctx || ctx->building)
		return tensor_fail_null(EINVAL, "function_saved: only backward may call it");
	n = ctx->node;
	if (i < 0 || i >= n->nsaved)
		return tensor_fail_null(EINVAL,
					"function_saved: %s saved %d tensors, there is no %d",
					ctx->f->name, n->nsaved, i);
	node_lock_take(&n->lock);
	t = node_unpack(n, i);
	/* Another backward may release the node's. */
	if (t && !n->saved[i].is_packed && t == n->saved[i].t)
		t = scope_own(thread(), tensor_get(t));
	node_lock_drop(&n->lock);
	return t;
}

/* ---- the node ---- */

static bool is_result(const struct building *b, const tensor *t)
{
	return differentiable(t) && !list_has(&b->constant, t);
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
	if (list_has(&b->dirty, t) && nr == 0) {
		node_get(&n->node);
		return inplace_result(&n->node, t);
	}
	if (history_set(t, &n->node, nr) < 0)
		return -1;
	/* A later in-place change through a view that forward made is refused. */
	if (t->differentiable_view && !list_has(&b->dirty, t)) {
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

/* Outputs must be given, and a dirty input must be among them. */
static int check_outputs(const struct tensor_function_ctx *ctx, tensor *const *outputs, int n)
{
	const struct building *b = ctx->building;

	for (int i = 0; i < n; i++) {
		if (!outputs[i] || outputs[i] == tensor_none)
			return tensor_fail(EINVAL, "%s: forward did not set output %d",
					   ctx->f->name, i);
		for (int j = 0; j < i; j++)
			if (outputs[i] == outputs[j])
				return tensor_fail(EINVAL, "%s: outputs %d and %d are one tensor",
						   ctx->f->name, j, i);
	}
	for (int i = 0; i < b->dirty.n; i++) {
		int64_t nr = index_in((tensor_list){ outputs, n }, b->dirty.t[i]);

		if (nr < 0)
			return tensor_fail(EINVAL,
					   "%s: forward must return an input that it marked dirty",
					   ctx->f->name);
		if (list_has(&b->constant, b->dirty.t[i]))
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
 * An owned output in place of a borrowed one. An input that was not changed, and a tensor that has a history
 * already, become a tensor of their own on the same memory. NULL with the error set.
 */
static tensor *own_output(const char *name, const struct building *b, tensor *t)
{
	if (b->recorded && t->inference && is_result(b, t))
		return tensor_fail_null(
			EINVAL,
			"%s: forward must return a tensor that was not made in inference mode; use a clone",
			name);
	if (!list_has(&b->dirty, t) && (needs_grad(t) || index_in(b->inputs, t) >= 0))
		return tensor_new_detached(t);
	return tensor_get(t);
}

static int own_outputs(const char *name, const struct building *b, tensor **outputs, int n)
{
	for (int i = 0; i < n; i++) {
		tensor *t = own_output(name, b, outputs[i]);

		if (!t) {
			while (i-- > 0)
				tensor_put(outputs[i]);
			return -thread()->error.code;
		}
		outputs[i] = t;
	}
	return 0;
}

static int run_forward(struct tensor_function_ctx *ctx, tensor **outputs, int noutputs)
{
	const struct building *b = ctx->building;
	struct tensor_thread *th = thread();
	struct tensor_scope_guard scope = tensor_scope_enter();
	struct callback before = callback_begin();
	int err;

	th->modes.grad_enabled = false;
	err = ctx->f->forward(ctx, b->inputs.data, (int)b->inputs.len, outputs, noutputs);
	err = callback_end(&before, err, "%s: forward failed", ctx->f->name);
	if (!err)
		err = check_outputs(ctx, outputs, noutputs) ?:
			      own_outputs(ctx->f->name, b, outputs, noutputs);
	for (int i = 0; err && i < noutputs; i++)
		outputs[i] = NULL;
	scope_leave(&scope);
	return err;
}

static int run_call(struct tensor_function_ctx *ctx, tensor **outputs, int noutputs)
{
	struct building *b = ctx->building;
	int err = run_forward(ctx, outputs, noutputs);

	if (!err && b->recorded)
		err = record_call(ctx, outputs, noutputs);
	for (int i = 0; err && i < noutputs; i++) {
		tensor_put(outputs[i]);
		outputs[i] = NULL;
	}
	for (int i = 0; i < b->saved.n; i++)
		tensor_put(b->saved.t[i]);
	free(b->saved.t);
	free(b->dirty.t);
	free(b->constant.t);
	return err ?: scope_own_list(outputs, noutputs);
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
	if (f->flags & ~(TENSOR_FUNCTION_ONCE_DIFFERENTIABLE | TENSOR_FUNCTION_UNDEFINED_GRADS))
		return tensor_fail(EINVAL, "function_apply: %s has unknown flags %#x", f->name,
				   f->flags);
	if (inputs.len < 0 || inputs.len > MOST_TENSORS || noutputs < 1 ||
	    noutputs > MOST_TENSORS || !outputs)
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
	struct building building = { .inputs = inputs };
	int err = check_call(ctx->f, inputs, outputs, noutputs) ?: check_samples(ctx->f, inputs),
	    stale = 0;

	for (int i = 0; !err && i < noutputs; i++)
		outputs[i] = NULL;
	if (!err) {
		ctx->building = &building;
		building.recorded = track_list(thread(), inputs, &stale);
		err = stale ? -thread()->error.code : run_call(ctx, outputs, noutputs);
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
