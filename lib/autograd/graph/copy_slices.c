// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * CopySlices: the node of a base after an in-place change of a view of it. It runs the node of the
 * in-place operator on the view's part of the gradient and passes the rest through.
 */
#include "autograd/graph/inplace.h"
#include "autograd/graph/saved.h"
#include "core/batched.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/ranges.h"

struct copy_slices {
	tensor_node node;
	tensor_node *inner;	    /* of the operator that changed the view; owned */
	tensor_ints sizes, strides; /* of the base */
	tensor_ints view_sizes, view_strides;
	int64_t view_offset;	/* from the base's first element, in elements of the view */
	tensor_options options; /* of the base */
	enum tensor_dtype view_dtype;
};

/* The offset of t from its base's first element, in elements of t. */
static int64_t offset_within(const tensor *t, const tensor *base)
{
	if (t->dtype == base->dtype)
		return t->offset - base->offset;
	return dtype_is_complex(base->dtype) ? t->offset - 2 * base->offset :
					       t->offset - base->offset / 2;
}

/* laid_out() with the samples of like. */
static tensor *laid_out_like(const struct copy_slices *c, tensor *grad, tensor *like)
{
	return tensor_copy_(tensor_new_empty_strided(like, c->sizes, c->strides, c->options), grad);
}

/* A copy of the base's gradient with the base's strides, in which the view's part can be addressed. */
static tensor *laid_out(const struct copy_slices *c, tensor *grad)
{
	if (unlikely(is_batched(grad)))
		return laid_out_like(c, grad, grad);
	return tensor_copy_(tensor_empty_strided(c->sizes, c->strides, c->options), grad);
}

static int copy_slices_apply(tensor_node *node, tensor *const *grads, tensor **out, uint64_t need)
{
	struct copy_slices *c = (struct copy_slices *)node;
	tensor *whole = laid_out(c, grads[0]), *slice, *part, *first, **rest = out;
	tensor_node *inner = c->inner;
	int err;

	slice = view_as_dtype(whole, c->view_dtype, c->view_sizes, c->view_strides, c->view_offset);
	part = tensor_clone(slice);
	if (!part)
		return -1;
	if (!inner->type->unlocked)
		node_lock_take(&inner->lock);
	err = inner->type->apply(inner, &part, rest, inner->edges[0].fn ? need : need & ~1ull);
	if (!inner->type->unlocked)
		node_lock_drop(&inner->lock);
	if (err < 0 || !(need & 1))
		return err;
	first = out[0];
	if (unlikely(first && batch_depth(first) > batch_depth(whole))) {
		whole = laid_out_like(c, grads[0], first);
		slice = view_as_dtype(whole, c->view_dtype, c->view_sizes, c->view_strides,
				      c->view_offset);
	}
	if (!slice)
		return -1;
	if (first && first != tensor_none)
		first = tensor_copy_(slice, first);
	else
		first = tensor_zero_(slice);
	out[0] = whole;
	return first ? 0 : -1;
}

static void copy_slices_release(tensor_node *node)
{
	node_release(((struct copy_slices *)node)->inner);
}

static void copy_slices_destroy(tensor_node *node)
{
	node_put(((struct copy_slices *)node)->inner);
}

/* An output of inner: the view's part of the base, whose history is this node. */
static tensor *copy_slices_output(tensor_node *node, tensor *t)
{
	struct copy_slices *c = (struct copy_slices *)node;
	tensor *base, *slice = NULL;
	int64_t offset;

	if (unlikely(t->keys & BATCHED_BIT))
		return tensor_fail_null(
			EOPNOTSUPP, "backward inside tensor_vmap(): an in-place change of a view "
				    "cannot be differentiated twice; use the function");
	offset = t->offset - c->view_offset;
	if (c->view_dtype != c->options.dtype)
		offset = dtype_is_complex(c->options.dtype) ? offset / 2 : 2 * offset;
	storage_get(t->storage);
	base = tensor_new_on_storage(t->storage, c->options.dtype, c->sizes.data, c->strides.data,
				     (int)c->sizes.len, offset);
	if (!base)
		return NULL;
	if (meta_new_output(base, node, 0))
		slice = view_of_base(base, t);
	tensor_put(base);
	return slice;
}

static const struct node_type copy_slices_type = {
	.name = "CopySlices",
	.op = "in-place view",
	.apply = copy_slices_apply,
	.unlocked = true,
	.release = copy_slices_release,
	.destroy = copy_slices_destroy,
	.output_with_history = copy_slices_output,
};

tensor_node *copy_slices_new(tensor_node *inner, tensor *self)
{
	tensor *base = self->base;
	tensor_ints sizes = { base->sizes, base->ndim }, strides = { base->strides, base->ndim };
	tensor_ints vsizes = { self->sizes, self->ndim }, vstrides = { self->strides, self->ndim };
	struct copy_slices *c;

	c = (struct copy_slices *)node_new(&copy_slices_type, sizeof(*c), inner->nedges, 0, 1,
					   3 * base->ndim + 2 * self->ndim);
	if (!c) {
		node_put(inner);
		return NULL;
	}
	node_describe(inner, 0, self);
	if (needs_grad(base))
		node_edge(&c->node, 0, base);
	for (uint32_t i = 1; i < inner->nedges; i++) {
		c->node.edges[i] = inner->edges[i];
		if (inner->edges[i].fn)
			node_get(inner->edges[i].fn);
	}
	c->inner = inner;
	inner->within = &c->node;
	c->sizes = node_ints(&c->node, sizes);
	c->strides = node_ints(&c->node, strides);
	c->view_sizes = node_ints(&c->node, vsizes);
	c->view_strides = node_ints(&c->node, vstrides);
	c->view_offset = offset_within(self, base);
	c->view_dtype = self->dtype;
	c->options = TENSOR_OPTIONS(.dtype = base->dtype, .device = base->device);
	return &c->node;
}
