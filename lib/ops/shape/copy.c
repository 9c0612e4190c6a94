// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Copies: copy_, clone, to and contiguous. The device's kernel copies between devices. */
#include "ops/op.h"
#include "ops/memory_format.h"

#include "family/copy.h"
#include "family/factory.h"

/* Functional form: a new tensor like self with the values of src. */
static int copied(const struct tensor_op *op, tensor **out, tensor *self, tensor *src)
{
	const tensor *inputs[] = { self, src };
	struct op_output o;

	if (!iter_broadcasts_to(src, self->sizes, self->ndim))
		return tensor_fail(EINVAL, "copy: src %s does not broadcast to self %s",
				   SHAPE_STR(src), SHAPE_STR(self));
	if (output_begin(op, &o, NULL, self->dtype, self->sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	return output_end(op, &o, out, operand_copy(o.t, src));
}

int op_copy_(const struct tensor_op *op, tensor **out, tensor *self, tensor *src)
{
	tensor *apart = NULL;
	int err;

	if (!*out)
		return copied(op, out, self, src);
	if (!iter_broadcasts_to(src, self->sizes, self->ndim))
		return tensor_fail(EINVAL, "copy_: src %s does not broadcast to self %s",
				   SHAPE_STR(src), SHAPE_STR(self));
	if (tensor_overlaps_itself(self))
		return tensor_fail(EINVAL, "copy_: elements of self share memory; clone it first");
	if (tensor_overlap(self, src) == OVERLAP_PARTIAL) {
		apart = tensor_new_like(src, src->sizes, src->ndim);
		if (!apart || operand_copy(apart, src) < 0) {
			tensor_put(apart);
			return error_code();
		}
		src = apart;
	}
	err = operand_copy(self, src);
	tensor_put(apart);
	*out = self;
	return err;
}

int op_clone(const struct tensor_op *op, tensor **out, tensor *self,
	     enum tensor_memory_format memory_format)
{
	const tensor *inputs[] = { self };
	struct op_output o;

	if (unlikely(memory_format && memory_format != TENSOR_PRESERVE_FORMAT)) {
		o = (struct op_output){ .dtype = self->dtype };
		o.t = tensor_new_opt(TENSOR_OPTIONS(.dtype = self->dtype, .device = self->device,
						    .memory_format = memory_format),
				     self->sizes, self->ndim);
		return o.t ? output_end(op, &o, out, operand_copy(o.t, self)) : error_code();
	}
	if (output_begin(op, &o, *out, self->dtype, self->sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	return output_end(op, &o, out, operand_copy(o.t, self));
}

tensor *explicit_empty_like(tensor *self, tensor_options options)
{
	if (options.memory_format == TENSOR_MEMORY_FORMAT_NONE ||
	    options.memory_format == TENSOR_PRESERVE_FORMAT)
		return memory_new_like(self, memory_options_like(self, options));
	return tensor_new_opt(memory_options_like(self, options), self->sizes, self->ndim);
}

/* Copy self to t, which may be NULL, and return it. Releases t on failure. */
static tensor *filled_from(tensor *t, tensor *self)
{
	tensor *result = t ? call_copy_(t, self) : NULL;

	if (t && !result)
		tensor_put(t);
	return result;
}

tensor *operand_contiguous_copy(tensor *self, tensor_options options)
{
	if (unlikely(self->keys & BATCHED_BIT))
		options.memory_format = TENSOR_CONTIGUOUS_FORMAT;
	if (self->layout != TENSOR_STRIDED || self->ext)
		return call__to_copy(self, options);
	return filled_from(
		tensor_new_opt(memory_options_like(self, options), self->sizes, self->ndim), self);
}

tensor *explicit_to_copy(tensor *self, tensor_options options)
{
	return filled_from(explicit_empty_like(self, options), self);
}

/* True if self already has the format; TENSOR_PRESERVE_FORMAT and no format accept any layout. */
static bool lies_so(const tensor *self, enum tensor_memory_format format)
{
	return !format || format == TENSOR_PRESERVE_FORMAT || tensor_is_contiguous_as(self, format);
}

tensor *composite_to(tensor *self, tensor_options options, bool non_blocking, bool copy)
{
	tensor_options o = memory_options_like(self, options);

	if (o.layout > TENSOR_STRIDED)
		return tensor_fail_null(EOPNOTSUPP, "to: no conversion to layout %s",
					tensor_layout_name(o.layout));
	(void)non_blocking;
	if (!copy && o.dtype == self->dtype && o.device.type == self->device.type &&
	    o.device.index == self->device.index && !o.shareable && lies_so(self, o.memory_format))
		return tensor_get(self);
	return call__to_copy(self, options);
}

tensor *composite_contiguous(tensor *self, enum tensor_memory_format memory_format)
{
	if (likely(memory_format <= TENSOR_CONTIGUOUS_FORMAT))
		return self->contiguous ? tensor_get(self) :
					  operand_contiguous_copy(self, (tensor_options){ 0 });
	if (memory_format == TENSOR_PRESERVE_FORMAT)
		return tensor_fail_null(EINVAL,
					"contiguous: the memory format preserve is not supported");
	return tensor_is_contiguous_as(self, memory_format) ?
		       tensor_get(self) :
		       operand_contiguous_copy(self,
					       TENSOR_OPTIONS(.memory_format = memory_format));
}

/* ---- single elements ---- */

static int element_of(const char *op, tensor *t, tensor_scalar *value)
{
	_Alignas(16) char element[16];

	if (t->numel != 1)
		return tensor_fail(EINVAL, "%s: a tensor of one element, got shape %s", op,
				   SHAPE_STR(t));
	if (tensor_copy_to(t, element, itemsize(t)) < 0)
		return error_code();
	return element_load(element, t->dtype, value);
}

int explicit_local_scalar_dense(tensor *self, tensor_scalar *result)
{
	return element_of("_local_scalar_dense", self, result);
}

int composite_is_nonzero(tensor *self, bool *result)
{
	tensor_scalar v;

	if (call__local_scalar_dense(self, &v) < 0)
		return error_code();
	*result = v.kind < TENSOR_SCALAR_FLOAT ? v.i != 0 : v.d != 0 || scalar_imag(v) != 0;
	return 0;
}

int op_fill_tensor(const struct tensor_op *op, tensor **out, tensor *self, tensor *value)
{
	tensor_scalar v;

	if (value->ndim)
		return tensor_fail(EINVAL, "%s: value must be 0-d, got shape %s", op->schema.name,
				   SHAPE_STR(value));
	if (element_of(op->schema.name, value, &v) < 0)
		return error_code();
	return op_fill(op, out, self, v);
}
