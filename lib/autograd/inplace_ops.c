// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* In-place operators that change the history or the geometry of a tensor, not its values. */
#include "autograd/graph/dual.h"
#include "autograd/graph/view.h"

#include "family/reinterpret.h"
#include "family/view.h"

tensor *composite_detach_(tensor *self)
{
	struct autograd_meta *old = self->autograd_meta;

	if (tensor_check_mode("detach_", self) < 0)
		return NULL;
	if (self->base && self->differentiable_view)
		return tensor_fail_null(EINVAL, "detach_: self is a view; use detach");
	if (unlikely(tangent_of(self))) {
		self->keys &= ~FORWARD_BIT;
		tensor_put(self->tangent);
	}
	if (!old || !old->fn) {
		if (old) {
			old->tracked = false;
			self->keys &= ~AUTOGRAD_BIT;
		}
		return self;
	}
	self->autograd_meta = NULL;
	self->keys &= ~AUTOGRAD_BIT;
	if (old->grad) {
		if (!meta_new(self)) {
			self->autograd_meta = old;
			self->keys |= AUTOGRAD_BIT;
			return NULL;
		}
		self->autograd_meta->grad = old->grad;
		old->grad = NULL;
	}
	meta_free(old);
	return self;
}

/* Refuses leaves: their gradient has the old shape. */
static int refuse_leaf(const char *op, const tensor *t)
{
	if (t->autograd_meta && t->autograd_meta->fn && thread()->modes.grad_enabled)
		return 0;
	return tensor_fail(
		EINVAL,
		"%s: self is a leaf that requires a gradient, or nothing is recorded; detach it first",
		op);
}

/* The geometry of self may change. 0, or -errno. */
static int check_geometry(const char *op, const tensor *self)
{
	if (self->ext)
		return tensor_fail(EOPNOTSUPP, "%s: self must be a strided tensor of plain numbers",
				   op);
	return tensor_check_mode(op, self);
}

/* Gives self the geometry of now, a view of it, whose reference is consumed. */
static void take_geometry(tensor *self, tensor *now)
{
	memcpy(self->sizes, now->sizes, now->ndim * sizeof(*now->sizes));
	memcpy(self->strides, now->strides, now->ndim * sizeof(*now->strides));
	self->ndim = now->ndim;
	self->numel = now->numel;
	self->contiguous = now->contiguous;
	self->offset = now->offset;
	self->data = now->data;
	if (unlikely(tangent_of(now))) {
		tensor *tangent = self->tangent;

		self->tangent = now->tangent;
		now->tangent = tangent;
	}
	tensor_put(now);
}

/* Views and bases are refused: the new geometry may lack elements that they have. */
tensor *composite_as_strided_(tensor *self, tensor_ints size, tensor_ints stride,
			      int64_t storage_offset)
{
	tensor *now;

	if (check_geometry("as_strided_", self) < 0)
		return NULL;
	if (needs_grad(self) && (self->base || tensor_live_views(self)))
		return tensor_fail_null(
			EOPNOTSUPP, "as_strided_: self requires a gradient and is a view or has "
				    "views; use as_strided");
	if (needs_grad(self) && refuse_leaf("as_strided_", self) < 0)
		return NULL;
	now = call_as_strided(self, size, stride, storage_offset);
	if (!now)
		return NULL;
	if (needs_grad(self) && needs_grad(now))
		history_take(self, now);
	take_geometry(self, now);
	return self;
}

/* If nothing is recorded a view may change, because its next use makes a new node from its base. */
static int check_reshaped(const char *op, const tensor *self, const tensor *root)
{
	bool recorded = thread()->modes.grad_enabled;
	int err = check_geometry(op, self);

	if (err)
		return err;
	if (recorded && self->autograd_meta && self->autograd_meta->no_grad_view)
		return tensor_fail(EINVAL, "%s: self is a view that was made under tensor_no_grad",
				   op);
	if (needs_grad(root) && (recorded || root == self))
		return refuse_leaf(op, root);
	return 0;
}

/*
 * Changes the order of dimensions. A view gets a new node, a strided view of its base, as after an
 * in-place change; any other tensor takes the node of the view.
 */
static tensor *reshaped(const char *op, tensor *self, tensor *now)
{
	tensor *root = self->base && self->differentiable_view ? self->base : self;
	int err;

	if (!now)
		return NULL;
	err = check_reshaped(op, self, root);
	if (!err && needs_grad(self) && root == self)
		history_take(self, now);
	else if (!err && needs_grad(self))
		err = view_record(self, now);
	if (err) {
		tensor_put(now);
		return NULL;
	}
	take_geometry(self, now);
	return self;
}

tensor *composite_transpose_(tensor *self, int64_t dim0, int64_t dim1)
{
	return reshaped("transpose_", self, call_transpose_int(self, dim0, dim1));
}

tensor *composite_t_(tensor *self)
{
	return reshaped("t_", self, call_t(self));
}

tensor *composite_squeeze_(tensor *self)
{
	return reshaped("squeeze_", self, call_squeeze(self));
}

tensor *composite_squeeze_dim_(tensor *self, int64_t dim)
{
	return reshaped("squeeze_", self, call_squeeze_dim(self, dim));
}

tensor *composite_squeeze_dims_(tensor *self, tensor_ints dim)
{
	return reshaped("squeeze_", self, call_squeeze_dims(self, dim));
}

tensor *composite_unsqueeze_(tensor *self, int64_t dim)
{
	return reshaped("unsqueeze_", self, call_unsqueeze(self, dim));
}
