// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Where gradients end: AccumulateGrad adds into a leaf's gradient. Without a gradient yet it
 * takes the incoming tensor itself, if nobody else holds it and its layout is the leaf's.
 */
#include "autograd/graph/autograd.h"

#include "ops/memory_format.h"

#include "family/copy.h"
#include "family/pointwise.h"

static const struct node_type accumulate_type = { .name = "AccumulateGrad", .op = "a leaf" };

void accumulate_init(struct leaf_meta *m, tensor *leaf)
{
	m->node.type = &accumulate_type;
	m->node.leaf = leaf;
	m->node.noutputs = 1;
	m->node.outputs = &m->output;
	m->output = (struct output){ leaf->sizes, leaf->dtype, leaf->ndim, leaf->device };
}

static bool same_layout(const tensor *grad, const tensor *leaf)
{
	if (grad->contiguous)
		return leaf->contiguous;
	return !memcmp(grad->strides, leaf->strides, leaf->ndim * sizeof(*leaf->strides));
}

/* A copy with the leaf's layout where that is dense; consumes grad. */
static tensor *copy_for(const tensor *leaf, tensor *grad)
{
	const tensor_options options = TENSOR_OPTIONS(.dtype = grad->dtype, .device = grad->device);
	tensor *t = NULL, *copy;

	if (grad->ext || leaf->ext) {
		copy = call__to_copy(grad, (tensor_options){ 0 });
	} else {
		t = memory_new_like(leaf, options);
		copy = t ? call_copy_(t, grad) : NULL;
	}
	if (!copy)
		tensor_put(t);
	tensor_put(grad);
	return copy;
}

static int accumulate(struct autograd_meta *m, const tensor *leaf, tensor *grad, bool record)
{
	tensor *sum;

	if (!m->grad) {
		if (record || !tensor_unshared(grad) || !same_layout(grad, leaf))
			grad = copy_for(leaf, grad);
		m->grad = grad;
		return grad ? 0 : -thread()->error.code;
	}
	if (!record) {
		sum = call_add__Tensor(m->grad, grad, tensor_scalar_int(1));
	} else {
		sum = call_add_Tensor(m->grad, grad, tensor_scalar_int(1));
		if (sum) {
			tensor_put(m->grad);
			m->grad = sum;
		}
	}
	tensor_put(grad);
	return sum ? 0 : -thread()->error.code;
}

int accumulate_grad(tensor_node *node, tensor *grad, bool record)
{
	int err;

	node_lock_take(&node->lock);
	err = accumulate(node->leaf->grad, node->leaf, grad, record);
	node_lock_drop(&node->lock);
	return err;
}

tensor *gradient_add(tensor *a, tensor *b, bool record)
{
	tensor *sum;

	if (!record && !tensor_unshared(a) && tensor_unshared(b)) {
		tensor *swap = a;

		a = b;
		b = swap;
	}
	if (!record && tensor_unshared(a) && a->contiguous) {
		sum = call_add__Tensor(a, b, tensor_scalar_int(1));
		if (!sum)
			tensor_put(a);
	} else {
		sum = call_add_Tensor(a, b, tensor_scalar_int(1));
		tensor_put(a);
	}
	tensor_put(b);
	return sum;
}
