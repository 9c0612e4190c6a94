// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* select_scatter, slice_scatter and others: a copy of self in which a part, found by the view
 * operator, is replaced. */
#include "ops/op.h"

#include "family/scatter.h"
#include "family/view.h"

/* Begin the output with a copy of self. */
static int begin_scatter(const struct tensor_op *op, struct op_output *o, tensor *given,
			 tensor *self, const tensor *src)
{
	const tensor *inputs[] = { self, src };

	return output_begin_like(op, o, given, self->dtype, self, inputs, 2);
}

/* Copy src to part, a view of the result, and finish. Consumes part. */
static int end_scatter(const struct tensor_op *op, struct op_output *o, tensor **out, tensor *self,
		       tensor *part, tensor *src)
{
	int err = part ? 0 : error_code();

	if (!err && !sizes_equal(part, src))
		err = tensor_fail(EINVAL, "%s: src must have the shape of the part, %s, got %s",
				  op->schema.name, SHAPE_STR(part), SHAPE_STR(src));
	if (!err)
		err = operand_copy(o->t, self);
	if (!err)
		err = operand_copy(part, src);
	tensor_put(part);
	return output_end(op, o, out, err);
}

int op_select_scatter(const struct tensor_op *op, tensor **out, tensor *self, tensor *src,
		      int64_t dim, int64_t index)
{
	struct op_output o;

	if (begin_scatter(op, &o, *out, self, src) < 0)
		return error_code();
	return end_scatter(op, &o, out, self, view_select(o.t, dim, index), src);
}

int op_slice_scatter(const struct tensor_op *op, tensor **out, tensor *self, tensor *src,
		     int64_t dim, int64_t start, int64_t stop, int64_t step)
{
	struct op_output o;

	if (begin_scatter(op, &o, *out, self, src) < 0)
		return error_code();
	return end_scatter(op, &o, out, self, view_slice(o.t, dim, start, stop, step), src);
}

int op_diagonal_scatter(const struct tensor_op *op, tensor **out, tensor *self, tensor *src,
			int64_t offset, int64_t dim1, int64_t dim2)
{
	struct op_output o;

	if (begin_scatter(op, &o, *out, self, src) < 0)
		return error_code();
	return end_scatter(op, &o, out, self, view_diagonal(o.t, offset, dim1, dim2), src);
}

/* Copy self's storage, so that self's strides and offset stay valid. */
static tensor *clone_storage(tensor *self)
{
	int64_t n = (int64_t)(self->storage->used / itemsize(self)), one = 1;
	tensor *all, *flat, *t = NULL;

	all = tensor_new_view(self, &n, &one, 1, 0);
	flat = all ? tensor_new_like(self, &n, 1) : NULL;
	if (flat && operand_copy(flat, all) == 0) {
		storage_get(flat->storage);
		t = tensor_new_on_storage(flat->storage, self->dtype, self->sizes, self->strides,
					  self->ndim, self->offset);
	}
	tensor_put(all);
	tensor_put(flat);
	return t;
}

int op_as_strided_scatter(const struct tensor_op *op, tensor **out, tensor *self, tensor *src,
			  tensor_ints size, tensor_ints stride, int64_t storage_offset)
{
	int64_t offset = storage_offset == TENSOR_NONE ? self->offset : storage_offset;
	const tensor *inputs[] = { self, src };
	tensor *result, *part;
	struct op_output o;
	int err;

	if (tensor_overlaps_itself(self))
		return tensor_fail(EINVAL, "%s: elements of self share memory", op->schema.name);
	result = clone_storage(self);
	part = result ? view_as_strided(result, size, stride, offset) : NULL;
	err = part ? 0 : error_code();
	if (!err && tensor_overlaps_itself(part))
		err = tensor_fail(EINVAL, "%s: elements of the part share memory", op->schema.name);
	if (!err && !sizes_equal(part, src))
		err = tensor_fail(EINVAL, "%s: src must have the shape of the part, %s, got %s",
				  op->schema.name, SHAPE_STR(part), SHAPE_STR(src));
	if (!err)
		err = operand_copy(part, src);
	tensor_put(part);
	if (!err && *out) {
		err = output_begin_apart(op, &o, *out, self->dtype, self->sizes, self->ndim, inputs,
					 2);
		if (!err)
			err = output_end(op, &o, out, operand_copy(o.t, result));
	} else if (!err) {
		*out = tensor_get(result);
	}
	tensor_put(result);
	return err;
}
