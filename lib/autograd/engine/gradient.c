// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Gradients between nodes. An operator that broadcast an input returns a gradient of the broadcast
 * shape, which is summed here; a promoted dtype is converted back; anything else that does not fit
 * is an error of the formula. A leaf without a gradient takes the incoming tensor itself if it is
 * unshared and has the layout of the leaf.
 */
#include "autograd/engine/gradient.h"

#include "autograd/graph/meta.h"
#include "core/batched.h"
#include "iter/iter.h"
#include "ops/memory_format.h"

#include "family/copy.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/view.h"

/* ---- shape and dtype ---- */

/* A tensor of shape o can be broadcast to the shape of t. */
static bool was_broadcast(const tensor *t, const struct output *o)
{
	int lead = t->ndim - o->ndim;

	for (int i = 0; lead >= 0 && i < o->ndim; i++)
		if (o->sizes[i] != 1 && o->sizes[i] != t->sizes[i + lead])
			return false;
	return lead >= 0;
}

/* Sums over the dimensions that broadcasting added or expanded; consumes t. */
static tensor *sum_to(tensor *t, const struct output *o)
{
	int64_t dims[TENSOR_MAX_DIMS];
	int lead = t->ndim - o->ndim, n = 0;
	tensor *sum, *result;

	for (int i = 0; i < t->ndim; i++)
		if (i < lead || (o->sizes[i - lead] == 1 && t->sizes[i] != 1))
			dims[n++] = i;
	sum = call_sum_dim_IntList(t, (tensor_ints){ dims, n }, true, t->dtype);
	tensor_put(t);
	if (!sum || !lead)
		return sum;
	result = call_view(sum, (tensor_ints){ o->sizes, o->ndim });
	tensor_put(sum);
	return result;
}

static tensor *convert(tensor *t, const struct output *o)
{
	tensor *result = call__to_copy(t, TENSOR_OPTIONS(.dtype = o->dtype));

	tensor_put(t);
	return result;
}

tensor *gradient_fit(const tensor_node *from, int i, tensor *grad, const tensor_node *to,
		     unsigned nr)
{
	const struct output *o = &to->outputs[nr];
	char text[SHAPE_TEXT];

	if (unlikely(grad->device.type != o->device.type || grad->device.index != o->device.index))
		return tensor_fail_null(EINVAL,
					"%s: gradient %d is on another device than its "
					"tensor",
					from->type->name, i);
	tensor_get(grad);
	if (unlikely(!output_same_shape(o, grad))) {
		if (!was_broadcast(grad, o)) {
			tensor_put(grad);
			return tensor_fail_null(EINVAL,
						"%s: gradient %d must have shape %s, "
						"got %s",
						from->type->name, i,
						format_sizes(o->sizes, o->ndim, text, sizeof(text)),
						SHAPE_STR(grad));
		}
		grad = sum_to(grad, o);
	}
	if (grad && unlikely(grad->dtype != o->dtype))
		grad = convert(grad, o);
	return grad;
}

/* ---- sums ---- */

/* No other reference to t or its memory exists. */
static bool is_unshared(const tensor *t)
{
	return atomic_load_explicit(&t->refs, memory_order_acquire) == 1 && t->owns_storage &&
	       !t->base && atomic_load_explicit(&t->storage->refs, memory_order_acquire) == 1;
}

/*
 * A view of all elements of a tensor to which nothing else refers, as an owner of its memory; any other gradient as it is.
 * Consumes grad. NULL: no memory.
 */
static tensor *without_base(tensor *grad)
{
	const tensor *base = grad->base;
	tensor *t;

	if (!base || grad->numel != base->numel || grad->ext || grad->keys & ~KEYS_BACKEND ||
	    atomic_load_explicit(&grad->refs, memory_order_acquire) != 1 ||
	    atomic_load_explicit(&base->refs, memory_order_acquire) != REF_VIEW ||
	    atomic_load_explicit(&base->storage->refs, memory_order_acquire) != 1)
		return grad;
	t = tensor_new_detached(grad);
	tensor_put(grad);
	return t;
}

/* Consumes grad. NULL with the error set. */
static tensor *without_history(tensor *grad)
{
	tensor *t = call_detach(grad);

	tensor_put(grad);
	return t;
}

static bool same_layout(const tensor *grad, const tensor *leaf)
{
	if (grad->contiguous)
		return leaf->contiguous;
	return !memcmp(grad->strides, leaf->strides, leaf->ndim * sizeof(*leaf->strides));
}

/* A copy with the layout of the leaf if that is dense; consumes grad. */
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

/* A leaf outside of tensor_vmap() has one gradient, not one for each sample. */
static int refuse_samples(const tensor *leaf, tensor *grad)
{
	int err =
		tensor_fail(EINVAL,
			    "backward: the gradient of the leaf %s differs between the samples of "
			    "tensor_vmap(); get it from tensor_backward_ex() with inputs",
			    SHAPE_STR(leaf));

	tensor_put(grad);
	return err;
}

/* Consumes grad: *done gets the tensors that the caller releases without the lock, because that may run functions of the
 * program. */
static int accumulate(struct autograd_meta *m, const tensor *leaf, tensor *grad, bool record,
		      tensor *done[2])
{
	tensor *sum;

	if (unlikely(is_batched(grad)) && batch_depth(grad) > batch_depth(leaf))
		return refuse_samples(leaf, grad);
	record |= is_batched(grad); /* the sum does not fit into a gradient that is not batched */
	if (!m->grad) {
		/* Functions of the program may return a gradient with a history, which would stay with the leaf. */
		if (!record && unlikely(needs_grad(grad)))
			grad = without_history(grad);
		if (!record && grad)
			grad = without_base(grad);
		if (!grad)
			return -thread()->error.code;
		if (record || !is_unshared(grad) || !same_layout(grad, leaf))
			grad = copy_for(leaf, grad);
		m->grad = grad;
		return grad ? 0 : -thread()->error.code;
	}
	if (!record) {
		sum = call_add__Tensor(m->grad, grad, tensor_scalar_int(1));
	} else {
		sum = call_add_Tensor(m->grad, grad, tensor_scalar_int(1));
		if (sum) {
			done[1] = m->grad;
			m->grad = sum;
		}
	}
	done[0] = grad;
	return sum ? 0 : -thread()->error.code;
}

int gradient_accumulate(tensor_node *node, tensor *grad, bool record)
{
	tensor *done[2] = { NULL, NULL };
	int err;

	node_lock_take(&node->lock);
	err = accumulate(node->leaf->autograd_meta, node->leaf, grad, record, done);
	node_lock_drop(&node->lock);
	tensor_put(done[0]);
	tensor_put(done[1]);
	return err;
}

/* Whether b can be added to a in place: the sum has the layout of a. */
static bool adds_in_place(const tensor *a, const tensor *b)
{
	if (!is_unshared(a))
		return false;
	return a->contiguous || (!a->ext && !b->ext && a->layout == TENSOR_STRIDED &&
				 same_layout(b, a) && !tensor_overlaps_itself(a));
}

tensor *gradient_add(tensor *a, tensor *b, bool record)
{
	tensor *sum;

	record |= is_batched(a) || is_batched(b); /* one of them may not be batched */
	if (!record && a->base)
		a = without_base(a);
	if (!a) {
		tensor_put(b);
		return NULL;
	}
	if (!record && !is_unshared(a) && is_unshared(b)) {
		tensor *swap = a;

		a = b;
		b = swap;
	}
	if (!record && adds_in_place(a, b)) {
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

tensor *gradient_sum(tensor *before, tensor *grad)
{
	if (!before)
		return call_clone(grad, TENSOR_PRESERVE_FORMAT);
	return call_add_Tensor(before, grad, tensor_scalar_int(1));
}
