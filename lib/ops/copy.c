// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Copies: copy_, clone, to and contiguous. Between devices the device's own kernel does it. */
#include "front.h"

int front_copy_(const struct tensor_op *op, tensor **out, tensor *self, tensor *src)
{
	tensor *apart = NULL;
	int err;

	if (!broadcasts_to(src, self->sizes, self->ndim))
		return tensor_fail(EINVAL, "copy_: src %s does not broadcast to self %s",
				   SHAPE_STR(src), SHAPE_STR(self));
	if (tensor_overlaps_itself(self))
		return tensor_fail(EINVAL, "copy_: elements of self share memory; clone it first");
	if (tensor_overlap(self, src) == OVERLAP_PARTIAL) {
		apart = tensor_new_like(src, src->sizes, src->ndim);
		if (!apart || front_copy(apart, src) < 0) {
			tensor_put(apart);
			return error_code();
		}
		src = apart;
	}
	err = front_copy(self, src);
	tensor_put(apart);
	*out = self;
	return err;
}

int front_clone(const struct tensor_op *op, tensor **out, tensor *self)
{
	const tensor *inputs[] = {self};
	struct front_out o;

	if (front_begin(op, &o, *out, self->dtype, self->sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	return front_end(op, &o, out, front_copy(o.t, self));
}

static tensor_options like(const tensor *self, tensor_options o)
{
	if (!o.dtype)
		o.dtype = self->dtype;
	if (!o.device.type)
		o.device = self->device;
	return o;
}

tensor *kernel_empty_like(tensor *self, tensor_options options)
{
	return tensor_new_opt(like(self, options), self->sizes, self->ndim);
}

tensor *kernel_to_copy(tensor *self, tensor_options options)
{
	tensor *t = kernel_empty_like(self, options), *result;

	if (!t)
		return NULL;
	result = call_copy_(t, self);
	if (!result)
		tensor_put(t);
	return result;
}

tensor *composite_to(tensor *self, tensor_options options)
{
	tensor_options o = like(self, options);

	if (o.layout > TENSOR_STRIDED)
		return tensor_fail_null(EOPNOTSUPP, "to: no conversion to layout %s",
					tensor_layout_name(o.layout));
	if (o.dtype == self->dtype && o.device.type == self->device.type &&
	    o.device.index == self->device.index && !o.shareable)
		return tensor_get(self);
	return call__to_copy(self, options);
}

tensor *composite_contiguous(tensor *self)
{
	/* Not clone, which keeps the layout of a transposed tensor. */
	return self->contiguous ? tensor_get(self) : call__to_copy(self, (tensor_options){0});
}
