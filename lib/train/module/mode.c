// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Modes of a module, and changes of all its tensors: gradients, dtype, device, shared memory. */
#include "train/module/list.h"

#include <stdlib.h>
#include <tensor/autograd.h>
#include <tensor/ops.h>

TENSOR_EXPORT int tensor_module_train(tensor_module *m, bool training)
{
	if (!m)
		return null_argument_code("module_train");
	for (tensor_module *at = m; at; at = module_next(m, at))
		at->training = training;
	return 0;
}

TENSOR_EXPORT bool tensor_module_is_training(const tensor_module *m)
{
	return m && m->training;
}

TENSOR_EXPORT int tensor_module_set_requires_grad(tensor_module *m, bool requires_grad)
{
	struct module_node *node = NULL;
	int err;

	if (!m)
		return null_argument_code("module_set_requires_grad");
	while ((node = module_next_node(m, node))) {
		err = node_kind(node) != NODE_PARAMETER ?
			      0 :
			      tensor_set_requires_grad(node_tensor(node), requires_grad);
		if (err < 0)
			return err;
	}
	for (tensor_module *at = m; at; at = module_next(m, at))
		at->frozen = !requires_grad;
	return 0;
}

TENSOR_EXPORT int tensor_module_zero_grad(tensor_module *m)
{
	struct module_node *node = NULL;

	if (!m)
		return null_argument_code("module_zero_grad");
	while ((node = module_next_node(m, node)))
		if (node_kind(node) == NODE_PARAMETER)
			tensor_set_grad(node_tensor(node), NULL);
	return 0;
}

/* ---- dtype and device ---- */

static bool changes(const tensor *t, tensor_options o)
{
	return (o.dtype && o.dtype != t->dtype) || o.shareable ||
	       (o.device.type &&
		(o.device.type != t->device.type || o.device.index != t->device.index));
}

/* The tensor of a node, with its gradient, as the options say. Owned; NULL with the error set. */
static tensor *converted(const struct module_node *node, tensor_options options)
{
	tensor *grad = tensor_grad(node->t), *t;
	struct tensor_scope_guard scope;

	if (!dtype_trainable(node->t->dtype))
		options.dtype = TENSOR_DTYPE_NONE;
	if (!changes(node->t, options))
		return tensor_get(node->t);
	scope = tensor_scope_enter();
	t = scope_leave_with(&scope, tensor_to(tensor_detach(node->t), options));
	scope = tensor_scope_enter();
	if (t && tensor_requires_grad(node->t) &&
	    (tensor_set_requires_grad(t, true) < 0 ||
	     (grad && tensor_set_grad(t, tensor_to(tensor_detach(grad), options)) < 0))) {
		tensor_put(t);
		t = NULL;
	}
	tensor_scope_leave(&scope);
	return t;
}

static int64_t count_owned(const tensor_module *m)
{
	struct module_node *node = NULL;
	int64_t n = 0;

	while ((node = module_next_node(m, node)))
		n += node_has_tensor(node) && node->t;
	return n;
}

static int convert_all(tensor_module *m, tensor_options options)
{
	tensor **t = calloc((size_t)count_owned(m) + 1, sizeof(*t));
	struct module_node *node = NULL;
	bool done = t;
	int64_t n = 0;

	if (!t)
		return tensor_fail(ENOMEM, "module_to: no memory");
	while (done && (node = module_next_node(m, node)))
		if (node_has_tensor(node) && node->t)
			done = (t[n++] = converted(node, options));
	for (n = 0, node = NULL; done && (node = module_next_node(m, node));)
		if (node_has_tensor(node) && node->t) {
			tensor *before = node->t;

			node->t = t[n];
			t[n++] = before;
		}
	for (n = 0; t[n]; n++)
		tensor_put(t[n]);
	free(t);
	return done ? 0 : -thread()->error.code;
}

TENSOR_EXPORT int tensor_module_to(tensor_module *m, tensor_options options)
{
	struct tensor_grad_guard mode, grad;
	int err;

	if (!m)
		return null_argument_code("module_to");
	if (options.dtype &&
	    !(options.dtype < TENSOR_DTYPE_COUNT && dtype_trainable(options.dtype)))
		return tensor_fail(EINVAL, "module_to: parameters are floating or complex");
	if (options.layout > TENSOR_STRIDED)
		return tensor_fail(EINVAL, "module_to: parameters are strided");
	/* Tensors of inference mode could not require a gradient. */
	mode = tensor_inference_enter(false);
	grad = tensor_grad_enter(false);
	err = convert_all(m, options);
	tensor_grad_leave(&grad);
	tensor_grad_leave(&mode);
	if (err < 0 || m->self)
		return err;
	m->tree->options.dtype = options.dtype ? options.dtype : m->tree->options.dtype;
	m->tree->options.device = options.device.type ? options.device : m->tree->options.device;
	m->tree->options.shareable |= options.shareable;
	return 0;
}

TENSOR_EXPORT int tensor_module_share_memory(tensor_module *m)
{
	struct module_node *node = NULL;
	int err = 0;

	if (!m)
		return null_argument_code("module_share_memory");
	while (err == 0 && (node = module_next_node(m, node))) {
		if (node_has_tensor(node))
			err = tensor_share_memory(node_tensor(node));
		/* Others may train meanwhile. */
		if (node_has_tensor(node) && !err)
			err = tensor_count_own_writes(node_tensor(node));
	}
	return err;
}
