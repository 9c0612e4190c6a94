// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Registration of hooks and retained gradients (include/tensor/autograd.h). */
#include "autograd/graph/hooks.h"
#include "autograd/graph/view.h"

/* t requires a gradient; a stale view gets its new node. 0, or -errno. */
static int check_tensor(const char *function, tensor *t)
{
	if (tensor_absent(function, t))
		return -thread()->error.code;
	if (!needs_grad(t))
		return tensor_fail(EINVAL, "%s: the tensor does not require a gradient", function);
	return view_stale(t) ? view_refresh(t) : 0;
}

static int check_function(const char *function, bool given)
{
	return given ? 0 : tensor_fail(EINVAL, "%s: the function is NULL", function);
}

TENSOR_EXPORT int tensor_register_hook(tensor *t, tensor *(*fn)(tensor *grad, void *ctx), void *ctx,
				       void (*destroy)(void *ctx), tensor_hook **handle)
{
	int err = check_tensor("register_hook", t) ?: check_function("register_hook", fn);
	const struct autograd_meta *m;

	if (err)
		return err;
	m = meta_of(t);
	return hooks_add(meta_node(m), HOOK_GRADIENT, m->fn ? m->nr : 0,
			 (union hook_function){ .gradient = fn }, ctx, destroy, handle);
}

TENSOR_EXPORT int tensor_register_post_accumulate_grad_hook(tensor *leaf,
							    int (*fn)(tensor *leaf, void *ctx),
							    void *ctx, void (*destroy)(void *ctx),
							    tensor_hook **handle)
{
	static const char function[] = "register_post_accumulate_grad_hook";
	int err = check_tensor(function, leaf) ?: check_function(function, fn);

	if (err)
		return err;
	if (meta_of(leaf)->fn)
		return tensor_fail(EINVAL, "%s: the tensor is the result of %s, not a leaf",
				   function, meta_of(leaf)->fn->type->name);
	return hooks_add(meta_node(meta_of(leaf)), HOOK_ACCUMULATED, 0,
			 (union hook_function){ .accumulated = fn }, ctx, destroy, handle);
}

TENSOR_EXPORT int tensor_node_register_prehook(tensor_node *node,
					       int (*fn)(tensor **grads, int n, void *ctx),
					       void *ctx, void (*destroy)(void *ctx),
					       tensor_hook **handle)
{
	if (!node)
		return null_argument_code("node_register_prehook");
	return check_function("node_register_prehook", fn) ?:
		       hooks_add(node, HOOK_BEFORE, 0, (union hook_function){ .before = fn }, ctx,
				 destroy, handle);
}

TENSOR_EXPORT int
tensor_node_register_hook(tensor_node *node,
			  int (*fn)(tensor **input_grads, int ninputs, tensor *const *output_grads,
				    int noutputs, void *ctx),
			  void *ctx, void (*destroy)(void *ctx), tensor_hook **handle)
{
	if (!node)
		return null_argument_code("node_register_hook");
	return check_function("node_register_hook", fn) ?:
		       hooks_add(node, HOOK_AFTER, 0, (union hook_function){ .after = fn }, ctx,
				 destroy, handle);
}

TENSOR_EXPORT int tensor_retain_grad(tensor *t)
{
	int err = check_tensor("retain_grad", t);

	if (err || !meta_of(t)->fn || meta_of(t)->retains_grad)
		return err;
	return hooks_retain(meta_of(t)->fn, meta_of(t)->nr, t->autograd_meta);
}

TENSOR_EXPORT bool tensor_retains_grad(const tensor *t)
{
	return tensor_given(t) && meta_of(t) && meta_of(t)->retains_grad;
}
