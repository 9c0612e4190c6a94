// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Leaves, gradients, and inspection of the graph (include/tensor/autograd.h). */
#include "autograd/graph/saved.h"
#include "autograd/graph/view.h"
#include "core/batched.h"

#include <tensor/binding.h>

#include <stdio.h>

/* ---- leaves ---- */

TENSOR_EXPORT int tensor_set_requires_grad(tensor *t, bool requires_grad)
{
	if (tensor_absent("set_requires_grad", t))
		return -thread()->error.code;
	if (requires_grad && !differentiable(t))
		return tensor_fail(EINVAL, "set_requires_grad: only floating dtypes, got %s",
				   tensor_dtype_name(t->dtype));
	if (requires_grad && t->inference)
		return tensor_fail(
			EINVAL,
			"set_requires_grad: the tensor was made in inference mode; use a clone");
	if (needs_grad(t) && t->autograd_meta->fn)
		return requires_grad ? 0 :
				       tensor_fail(EINVAL,
						   "set_requires_grad: the tensor is the "
						   "result of %s; detach it",
						   t->autograd_meta->fn->type->name);
	if (!requires_grad && !t->autograd_meta)
		return 0;
	if (!t->autograd_meta && !meta_new(t))
		return -ENOMEM;
	if (requires_grad && !t->autograd_meta->tracked && views_guard(t) < 0)
		return -thread()->error.code;
	t->autograd_meta->tracked = requires_grad;
	/* A view that was made under tensor_no_grad keeps its key, because in-place changes check it. */
	t->keys = requires_grad || t->autograd_meta->no_grad_view ? t->keys | AUTOGRAD_BIT :
								    t->keys & ~AUTOGRAD_BIT;
	return 0;
}

TENSOR_EXPORT bool tensor_requires_grad(const tensor *t)
{
	return tensor_given(t) && needs_grad(t);
}

TENSOR_EXPORT bool tensor_is_leaf(const tensor *t)
{
	return tensor_given(t) && !(meta_of(t) && meta_of(t)->fn);
}

TENSOR_EXPORT tensor *tensor_grad(const tensor *t)
{
	return tensor_given(t) && meta_of(t) ? meta_of(t)->grad : NULL;
}

/* Under the lock of the leaf, because a backward on another thread may be adding to the gradient. */
static tensor *replace_grad(struct autograd_meta *m, tensor *grad)
{
	node_lock *lock = m->fn ? NULL : &meta_node(m)->lock;
	tensor *before;

	if (lock)
		node_lock_take(lock);
	before = m->grad;
	m->grad = grad;
	if (lock)
		node_lock_drop(lock);
	return before;
}

TENSOR_EXPORT tensor *tensor_grad_get(tensor *t)
{
	struct autograd_meta *m = tensor_given(t) ? t->autograd_meta : NULL;
	tensor *grad;

	if (!m || m->fn)
		return m ? tensor_retain(m->grad) : NULL;
	node_lock_take(&meta_node(m)->lock);
	grad = tensor_retain(m->grad);
	node_lock_drop(&meta_node(m)->lock);
	return grad;
}

TENSOR_EXPORT int tensor_set_grad(tensor *t, tensor *grad)
{
	if (tensor_absent("set_grad", t))
		return -thread()->error.code;
	if (tensor_given(grad)) {
		struct output like = output_like(t);

		if (output_check(&like, LAYOUTS_ALL, grad, "set_grad: the gradient must be") < 0)
			return -EINVAL;
		if (batch_depth(grad) > batch_depth(t))
			return tensor_fail(EINVAL,
					   "set_grad: the gradient differs between the samples of "
					   "tensor_vmap(), the tensor does not");
		if (grad == t)
			return tensor_fail(EINVAL, "set_grad: a tensor cannot be its own gradient");
	}
	if (!t->autograd_meta) {
		if (!grad)
			return 0;
		if (!meta_new(t))
			return -ENOMEM;
	}
	tensor_put(replace_grad(t->autograd_meta, tensor_retain(grad)));
	return 0;
}

/* ---- graph ---- */

TENSOR_EXPORT tensor_node *tensor_grad_fn(const tensor *t)
{
	if (!tensor_given(t) || !needs_grad(t))
		return NULL;
	if (view_stale(t) && view_refresh((tensor *)t) < 0)
		return NULL;
	return meta_node(meta_of(t));
}

TENSOR_EXPORT const char *tensor_node_name(const tensor_node *node)
{
	return node ? node->type->name : NULL;
}

TENSOR_EXPORT int tensor_node_edges(const tensor_node *node)
{
	return node ? (int)node->nedges : 0;
}

TENSOR_EXPORT tensor_node *tensor_node_edge(const tensor_node *node, int i, int *input_nr)
{
	if (!node || i < 0 || (uint32_t)i >= node->nedges)
		return NULL;
	if (input_nr)
		*input_nr = (int)node->edges[i].nr;
	return node->edges[i].fn;
}

/* The slot of the i-th saved tensor that was not released; -1 past the end. Without the node's lock
 * another thread's backward may release it afterwards. */
static int saved_slot(const tensor_node *node, int i)
{
	for (int slot = 0; node && slot < node->nsaved; slot++)
		if (__atomic_load_n(&node->saved[slot].t, __ATOMIC_RELAXED) && i-- == 0)
			return slot;
	return -1;
}

TENSOR_EXPORT int tensor_node_saved(const tensor_node *node)
{
	int n = 0;

	while (saved_slot(node, n) >= 0)
		n++;
	return n;
}

TENSOR_EXPORT const char *tensor_node_saved_name(const tensor_node *node, int i)
{
	int slot = saved_slot(node, i);

	return slot < 0 ? NULL : node_saved_name(node, slot);
}

/* The caller holds the node's lock and has opened a scope. */
static tensor *unpack_nth(tensor_node *node, int i)
{
	int slot = saved_slot(node, i);
	tensor *t;

	if (slot < 0)
		return tensor_fail_null(EINVAL, "node_saved_get: %s holds no saved tensor %d",
					node->type->name, i);
	t = node_unpack(node, slot);
	/* A new tensor: the caller must not change the node's own. */
	if (t && t == node->saved[slot].t)
		t = scope_own(thread(), tensor_new_detached(t));
	return t;
}

TENSOR_EXPORT tensor *tensor_node_saved_get(tensor_node *node, int i)
{
	struct tensor_scope_guard scope;
	tensor *t;

	if (!node)
		return tensor_fail_null(EINVAL, "node_saved_get: the node is NULL");
	if (is_running(thread()->autograd, node))
		return tensor_fail_null(EDEADLK, "node_saved_get: %s is running", node->type->name);
	scope = tensor_scope_enter();
	node_lock_take(&node->lock);
	t = unpack_nth(node, i);
	t = scope_leave_with(&scope, t);
	node_lock_drop(&node->lock);
	return scope_own(thread(), t);
}

/* The part of a printed tensor that autograd adds. */
static void describe(const tensor *t, char *buf, size_t size)
{
	const tensor_node *fn = needs_grad(t) ? meta_of(t)->fn : NULL;

	if (size)
		buf[0] = '\0';
	if (fn)
		snprintf(buf, size, ", grad_fn=<%s>", fn->type->name);
	else if (needs_grad(t))
		snprintf(buf, size, ", requires_grad=True");
}

INIT(INIT_HOOKS) static void set_describe(void)
{
	tensor_autograd_hooks.describe = describe;
}
