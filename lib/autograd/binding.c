// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* References to nodes and values that are kept with them, for bindings (include/tensor/binding.h). */
#include "autograd/graph/hooks.h"

#include <tensor/binding.h>

TENSOR_EXPORT tensor_node *tensor_node_retain(tensor_node *node)
{
	if (node)
		node_get(node);
	return node;
}

TENSOR_EXPORT void tensor_node_release(tensor_node *node)
{
	node_put(node);
}

TENSOR_EXPORT tensor *tensor_node_leaf(const tensor_node *node)
{
	return node ? node->leaf : NULL;
}

TENSOR_EXPORT int tensor_node_attach(tensor_node *node, void *ctx, void (*destroy)(void *ctx))
{
	if (!node || !destroy)
		return tensor_fail(EINVAL, "node_attach: a node and destroy must be given");
	return hooks_add(node, HOOK_ATTACHED, 0, (union hook_function){ NULL }, ctx, destroy, NULL);
}

TENSOR_EXPORT void *tensor_node_attached(tensor_node *node, void (*destroy)(void *ctx))
{
	struct node_hooks *list = node ? __atomic_load_n(&node->hooks, __ATOMIC_ACQUIRE) : NULL;
	const struct tensor_hook *h;
	void *ctx;

	if (!list)
		return NULL;
	node_lock_take(&list->lock);
	for (h = list->lists[HOOK_ATTACHED].first; h && h->destroy != destroy; h = h->next)
		;
	ctx = h ? h->ctx : NULL;
	node_lock_drop(&list->lock);
	return ctx;
}
