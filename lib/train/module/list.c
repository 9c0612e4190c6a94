// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Lists of a module: named tensors, parameters for an optimiser, and what a file had and had not. */
#include "train/module/list.h"

#include <stdlib.h>

/* ---- walking ---- */

/*
 * The next node below top that `wanted` accepts, after `node` (NULL: the first one). Of each module
 * the parameters come first, then other nodes; that is PyTorch's order.
 */
static struct module_node *first_from(struct module_node *node, bool parameters)
{
	while (node && (node_kind(node) == NODE_MODULE ||
			(node_kind(node) == NODE_PARAMETER) != parameters))
		node = node->next;
	return node;
}

struct module_node *module_next_node(const tensor_module *top, const struct module_node *node)
{
	const tensor_module *m = node ? node->parent : top;
	bool parameters = !node || node_kind(node) == NODE_PARAMETER;
	struct module_node *next = first_from(node ? node->next : m->first, parameters);

	if (!next && parameters)
		next = first_from(m->first, false);
	while (!next && (m = module_next(top, m))) {
		next = first_from(m->first, true);
		if (!next)
			next = first_from(m->first, false);
	}
	return next;
}

/* ---- accepting ---- */

static bool within(const tensor_module *top, const struct module_node *node)
{
	const tensor_module *m = node->parent;

	while (m != top && m->self)
		m = m->self->parent;
	return m == top;
}

static bool is_unique(const tensor_module *top, const struct module_node *node, unsigned which)
{
	return node_kind(node) == NODE_PARAMETER && !(node->tied && within(top, node->tied));
}

static bool is_named(const tensor_module *top, const struct module_node *node, unsigned which)
{
	return (node_kind(node) == NODE_PARAMETER && which & TENSOR_MODULE_PARAMETERS) ||
	       (node_kind(node) == NODE_BUFFER && which & TENSOR_MODULE_BUFFERS);
}

/* A file may have one of two names of a tied parameter: file.c marks both. */
static bool is_missing(const tensor_module *top, const struct module_node *node, unsigned which)
{
	return node_has_tensor(node) && !node->loaded;
}

static bool is_unexpected(const tensor_module *top, const struct module_node *node, unsigned which)
{
	return node_kind(node) == NODE_VACANT && node->t;
}

static bool accepts(const tensor_module *top, const struct module_node *node, unsigned list)
{
	if (list < LIST_UNIQUE)
		return is_named(top, node, list);
	return (list == LIST_UNIQUE  ? is_unique :
		list == LIST_MISSING ? is_missing :
				       is_unexpected)(top, node, list);
}

/* ---- lists ---- */

/* A list is one allocation: its entries, their tensors in the same order, the names. */
struct module_list_head {
	int64_t n;
	struct tensor_named named[];
};

static struct module_list_head *measure(const tensor_module *top, unsigned list)
{
	const size_t entry = sizeof(struct tensor_named) + sizeof(tensor *);
	struct module_node *node = NULL;
	struct module_list_head *head;
	size_t bytes = sizeof(*head);
	int64_t n = 0;

	while ((node = module_next_node(top, node)))
		if (accepts(top, node, list)) {
			bytes += entry + module_path_length(top, node) + 1;
			n++;
		}
	head = malloc(bytes);
	if (head)
		head->n = n;
	return head;
}

static void fill(const tensor_module *top, unsigned list, struct module_list_head *head)
{
	tensor **tensors = (tensor **)(head->named + head->n);
	char *name = (char *)(tensors + head->n);
	struct module_node *node = NULL;
	int64_t i = 0;

	while ((node = module_next_node(top, node)))
		if (accepts(top, node, list)) {
			tensors[i] = node_tensor(node);
			head->named[i++] = (struct tensor_named){ module_path(top, node, name),
								  node_tensor(node) };
			name += strlen(name) + 1;
		}
}

int64_t module_list(tensor_module *m, const char *op, unsigned list,
		    const struct tensor_named **named, tensor *const **tensors)
{
	struct module_list_head *head = measure(m, list);

	if (!head)
		return tensor_fail(ENOMEM, "%s: no memory", op);
	fill(m, list, head);
	free(m->list[list]);
	m->list[list] = head;
	if (named)
		*named = head->named;
	if (tensors)
		*tensors = (tensor *const *)(head->named + head->n);
	return head->n;
}

TENSOR_EXPORT int64_t tensor_module_named(tensor_module *m, unsigned which,
					  const struct tensor_named **named)
{
	if (named)
		*named = NULL;
	if (!m)
		return null_argument_code("module_named");
	if (!named)
		return tensor_fail(EINVAL, "module_named: the place for the list is NULL");
	if (!which || which & ~(TENSOR_MODULE_PARAMETERS | TENSOR_MODULE_BUFFERS))
		return tensor_fail(EINVAL, "module_named: 0x%x is no set of lists", which);
	return module_list(m, "module_named", which, named, NULL);
}

TENSOR_EXPORT tensor_list tensor_module_parameters(tensor_module *m)
{
	tensor_list list = { NULL, 0 };

	if (!m)
		null_argument("module_parameters");
	else
		list.len = module_list(m, "module_parameters", LIST_UNIQUE, NULL, &list.data);
	return list.len < 0 ? (tensor_list){ NULL, 0 } : list;
}

TENSOR_EXPORT int64_t tensor_module_numel(tensor_module *m)
{
	struct module_node *node = NULL;
	int64_t n = 0;

	if (!m)
		return null_argument_code("module_numel");
	while ((node = module_next_node(m, node)))
		if (is_unique(m, node, 0))
			n += node_tensor(node)->numel;
	return n;
}
