// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Declarations and reads of forward and backward of a function of the program (include/tensor/function.h). */
#include "autograd/function/function.h"

#include "autograd/graph/record.h"
#include "autograd/graph/saved.h"

#include "core/scope.h"

#include <stdlib.h>

static int tensors_add(struct tensors *list, tensor *t)
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

int tensors_keep(struct tensors *list, tensor *t)
{
	if (tensors_add(list, t) < 0)
		return -ENOMEM;
	tensor_get(t);
	return 0;
}

void tensors_put(struct tensors *list)
{
	for (int i = 0; i < list->n; i++)
		tensor_put(list->t[i]);
	free(list->t);
}

bool tensors_have(const struct tensors *list, const tensor *t)
{
	for (int i = 0; i < list->n; i++)
		if (list->t[i] == t)
			return true;
	return false;
}

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
		if (tensors_keep(&b->saved, tensors.data[i]) < 0)
			return -ENOMEM;
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
	return tensors_have(&b->dirty, input) ? 0 : tensors_add(&b->dirty, input);
}

TENSOR_EXPORT int tensor_function_mark_non_differentiable(tensor_function_ctx *ctx, tensor *output)
{
	struct building *b = in_forward(ctx, "function_mark_non_differentiable");

	if (!b)
		return -EINVAL;
	if (!tensor_given(output))
		return null_argument_code("function_mark_non_differentiable");
	return tensors_keep(&b->constant, output);
}

TENSOR_EXPORT int tensor_function_set_outputs(tensor_function_ctx *ctx, tensor **outputs, int n)
{
	struct building *b = in_forward(ctx, "function_set_outputs");

	if (!b)
		return -EINVAL;
	if (n < 0 || n > MOST_TENSORS || !outputs)
		return tensor_fail(EINVAL, "function_set_outputs: %d outputs%s", n,
				   outputs ? "" : " at NULL");
	b->outputs = outputs;
	b->noutputs = n;
	return 0;
}

int function_check_flags(const struct tensor_function *f, unsigned flags)
{
	if (flags & ~(TENSOR_FUNCTION_ONCE_DIFFERENTIABLE | TENSOR_FUNCTION_UNDEFINED_GRADS |
		      TENSOR_FUNCTION_RECORDS_BATCH))
		return tensor_fail(EINVAL, "function_apply: %s has unknown flags %#x", f->name,
				   flags);
	return 0;
}

TENSOR_EXPORT int tensor_function_set_flags(tensor_function_ctx *ctx, unsigned flags)
{
	int err = in_forward(ctx, "function_set_flags") ? function_check_flags(ctx->f, flags) :
							  -EINVAL;

	if (!err)
		ctx->flags = flags;
	return err;
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
