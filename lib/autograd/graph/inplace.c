// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * In-place changes. A plain tensor continues with the node of the in-place operator. A view shares
 * its memory with its base: there the base's history continues with a CopySlices node, and the view
 * gets a new node, a strided view of the base.
 */
#include "autograd/graph/inplace.h"

/* Views that were made before root got a history have no node. */
static bool has_views_without_history(const tensor *self, const tensor *root)
{
	return !needs_grad(root) && tensor_live_views(root) > (self == root ? 0 : 1);
}

int inplace_check_named(const char *name, tensor *self, bool need)
{
	tensor *root = self->base ? self->base : self;
	const struct referrer *views;

	/* The history of the view is not that of its base. */
	if (need && self->keys & AUTOGRAD_BIT && self->autograd_meta->no_grad_view &&
	    self->autograd_meta->fn)
		return tensor_fail(
			EINVAL,
			"%s: self is a view, or an input, that a function of the program "
			"(%s) returned; change a clone of it",
			name, self->autograd_meta->fn->type->name);
	if (self->keys & AUTOGRAD_BIT && self->autograd_meta->no_grad_view && needs_grad(root) &&
	    (need || !self->autograd_meta->before_leaf))
		return tensor_fail(EINVAL,
				   "%s: self is a view that was made %s; change it under "
				   "tensor_no_grad, or make the view anew",
				   name,
				   self->autograd_meta->before_leaf ?
					   "before its base required a gradient" :
					   "under tensor_no_grad");
	if (!need)
		return 0;
	if (needs_grad(self) && !self->autograd_meta->fn)
		return tensor_fail(EINVAL,
				   "%s: self is a leaf that requires a gradient; change it "
				   "in place only under tensor_no_grad",
				   name);
	if (root != self && (needs_grad(root) || needs_grad(self)) &&
	    !(root->autograd_meta && root->autograd_meta->fn))
		return tensor_fail(EINVAL,
				   "%s: self is a view of a leaf that requires a gradient; "
				   "change it in place only under tensor_no_grad",
				   name);
	if (!view_dtype_follows(self, root))
		return tensor_fail(EOPNOTSUPP,
				   "%s: self is a view as %s of a tensor of %s, which "
				   "are not changed in place where a gradient is "
				   "recorded",
				   name, tensor_dtype_name(self->dtype),
				   tensor_dtype_name(root->dtype));
	/* Before the change, because nothing may fail after it. */
	return has_views_without_history(self, root) ? views_find(name, root, &views) : 0;
}

static int inplace_on_view(tensor_node *n, tensor *self)
{
	tensor_node *slices = copy_slices_new(n, self);

	if (!slices)
		return -1;
	history_replace(self->base, slices);
	return view_record(self, self);
}

int inplace_result(tensor_node *n, tensor *self)
{
	tensor *root = self->base && self->differentiable_view ? self->base : self;
	bool refresh = has_views_without_history(self, root);
	int err = 0;

	if (root != self)
		err = inplace_on_view(n, self);
	else
		history_replace(self, n);
	return err || !refresh ? err : views_refresh(root, self);
}
