// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* In-place operators that change what a tensor is, not its values: its history, its geometry. */
#include "autograd.h"

#include "family/view.h"

tensor *composite_detach_(tensor *self)
{
	struct autograd_meta *old = self->grad;

	if (self->base && self->differentiable_view)
		return tensor_fail_null(EINVAL, "detach_: self is a view; use detach");
	if (!old || !old->fn) {
		if (old) {
			old->tracked = false;
			self->keys &= ~AUTOGRAD_BIT;
		}
		return self;
	}
	self->grad = NULL;
	self->keys &= ~AUTOGRAD_BIT;
	if (old->grad) {
		if (!meta_new(self)) {
			self->grad = old;
			self->keys |= AUTOGRAD_BIT;
			return NULL;
		}
		self->grad->grad = old->grad;
		old->grad = NULL;
	}
	tensor_autograd_hooks.free_meta(old);
	return self;
}

/* as_strided_ refuses tensors whose history or views have the shape that they had. */
static int check_geometry(tensor *self)
{
	if (self->ext)
		return tensor_fail(EOPNOTSUPP,
				   "as_strided_: self must be a strided tensor of plain numbers");
	if (!needs_grad(self))
		return 0;
	if (self->base || tensor_live_views(self))
		return tensor_fail(EOPNOTSUPP, "as_strided_: self requires a gradient and is a view or "
					       "has views; use as_strided");
	/* Its history, or its gradient, has the shape that it had. */
	if (!self->grad->fn || !thread()->grad_enabled)
		return tensor_fail(EINVAL, "as_strided_: self is a leaf that requires a gradient, or nothing "
					   "is recorded; detach it first");
	return 0;
}

tensor *composite_as_strided_(tensor *self, tensor_ints size, tensor_ints stride,
			      int64_t storage_offset)
{
	tensor *now;

	if (check_geometry(self) < 0)
		return NULL;
	now = call_as_strided(self, size, stride, storage_offset);
	if (!now)
		return NULL;
	if (needs_grad(self) && needs_grad(now))
		history_take(self, now);
	memcpy(self->sizes, now->sizes, now->ndim * sizeof(*now->sizes));
	memcpy(self->strides, now->strides, now->ndim * sizeof(*now->strides));
	self->ndim = now->ndim;
	self->numel = now->numel;
	self->contiguous = now->contiguous;
	self->offset = now->offset;
	self->data = now->data;
	tensor_put(now);
	return self;
}
