// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The node of a call of a function of the program, and its backward. */
#include "autograd/function/function.h"

#include "autograd/graph/callback.h"
#include "autograd/graph/dual.h"
#include "autograd/graph/record.h"

#include "core/scope.h"
#include "family/factory.h"

#include <stdlib.h>

/* The node of gradients that cannot be differentiated. */
static int refuse(tensor_node *node, tensor *const *grads, tensor **out, uint64_t need)
{
	(void)grads;
	(void)out;
	(void)need;
	return tensor_fail(EOPNOTSUPP, "backward: %s is differentiable once",
			   ((struct function_node *)node)->name);
}

static const struct node_type refuse_type = { .name = "NotDifferentiable",
					      .op = "a function",
					      .apply = refuse };

/* grad with a node that fails; in the open scope. NULL with the error set. */
static tensor *refuse_second(const struct function_node *from, tensor *grad, struct edge to)
{
	struct function_node *n;
	tensor *t;

	if (!differentiable(grad))
		return grad;
	n = (struct function_node *)node_new(&refuse_type, sizeof(*n), 1, 0, 1, grad->ndim);
	if (!n)
		return NULL;
	memcpy(n->name, from->f->name, strnlen(from->f->name, sizeof(n->name) - 1) + 1);
	node_get(to.fn);
	n->node.edges[0] = to;
	t = tensor_new_detached(grad);
	if (t && tangent_of(grad) && dual_set(t, grad->tangent) < 0) {
		tensor_put(t);
		t = NULL;
	}
	if (t)
		node_result(&n->node, t);
	else
		node_put(&n->node);
	return scope_own(thread(), t);
}

/* Gradients of the outputs, with zeros for those that have none. */
static int fill_gradients(const tensor_node *n, tensor *const *grads, tensor **filled)
{
	for (unsigned i = 0; i < n->noutputs; i++) {
		const struct output *o = &n->outputs[i];

		filled[i] = grads[i];
		if (filled[i])
			continue;
		filled[i] = tensor_zeros((tensor_ints){ o->sizes, o->ndim },
					 TENSOR_OPTIONS(.dtype = o->dtype, .device = o->device));
		if (!filled[i])
			return -1;
	}
	return 0;
}

/* Gradients of the program; shapes and dtypes are checked with those of other nodes. */
static int check_gradients(const struct function_node *n, tensor *const *out)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < n->node.nedges; i++) {
		struct output like;

		if (!out[i] || out[i] == tensor_none || !n->node.edges[i].fn)
			continue;
		like = output_like(out[i]);
		err = output_check(&like, LAYOUTS_ALL | accept_dual_gradients(), out[i],
				   "backward of %s: gradient %u must be", n->f->name, i);
	}
	return err;
}

/* A gradient of an output may be that of another node as well. */
static int check_unchanged(const struct function_node *n, tensor *const *grads)
{
	for (uint32_t i = 0; i < n->node.noutputs; i++)
		if (grads[i] && unlikely(!output_same_shape(&n->node.outputs[i], grads[i])))
			return tensor_fail(
				EINVAL,
				"backward of %s: it changed the shape of the gradient of "
				"output %u in place",
				n->f->name, i);
	return 0;
}

static int call_backward(struct function_node *n, tensor *const *grads, tensor **out, uint64_t need)
{
	struct tensor_function_ctx ctx = { .f = n->f,
					   .data = n->data,
					   .args = n->args ? n->args->value : NULL,
					   .nargs = n->args ? n->args->n : 0,
					   .node = &n->node,
					   .need = need };
	struct tensor_thread *th = thread();
	bool once = n->flags & TENSOR_FUNCTION_ONCE_DIFFERENTIABLE, record = th->modes.grad_enabled;
	struct callback before;
	int err;

	if (!n->f->backward)
		return tensor_fail(EOPNOTSUPP, "backward: %s has no backward", n->f->name);
	before = callback_begin();
	th->modes.grad_enabled = record && !once;
	err = n->f->backward(&ctx, grads, n->node.noutputs, out, (int)n->node.nedges);
	if (callback_end(&before, err, "backward of %s failed", n->f->name) < 0 ||
	    check_unchanged(n, grads) < 0 || check_gradients(n, out) < 0)
		return -1;
	for (uint32_t i = 0; once && record && i < n->node.nedges; i++)
		if (out[i] && out[i] != tensor_none && n->node.edges[i].fn) {
			out[i] = refuse_second(n, out[i], n->node.edges[i]);
			if (!out[i])
				return -1;
		}
	return 0;
}

int function_node_apply(tensor_node *node, tensor *const *grads, tensor **out, uint64_t need)
{
	struct function_node *n = (struct function_node *)node;
	tensor **filled;
	int err;

	if (n->flags & TENSOR_FUNCTION_UNDEFINED_GRADS)
		return call_backward(n, grads, out, need);
	filled = malloc(node->noutputs * sizeof(*filled));
	if (!filled)
		return tensor_fail(ENOMEM, "backward: no memory");
	err = fill_gradients(node, grads, filled);
	if (!err)
		err = call_backward(n, filled, out, need);
	free(filled);
	return err;
}

void function_node_destroy(tensor_node *node)
{
	struct function_node *n = (struct function_node *)node;

	if (n->destroy)
		n->destroy(n->data);
	free(n->args);
}
