// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of searchsorted and bucketize. */
#include "ops/op.h"

#include "kernels/abi/search.h"

#include "core/scope.h"

#include "family/reduce.h"
#include "family/search.h"

static int check_shapes(const struct tensor_op *op, const tensor *sequence, const tensor *values,
			const tensor *sorter)
{
	bool same = sequence->ndim == values->ndim;

	if (!sequence->ndim)
		return tensor_fail(EINVAL, "%s: the sorted tensor needs a dimension",
				   op->schema.name);
	for (int d = 0; same && d + 1 < sequence->ndim; d++)
		same = sequence->sizes[d] == values->sizes[d];
	if (!same && sequence->ndim != 1)
		return tensor_fail(EINVAL,
				   "%s: the sorted tensor must have one dimension, or those "
				   "of self but for the last: got %s and %s",
				   op->schema.name, SHAPE_STR(sequence), SHAPE_STR(values));
	if (sequence->dtype != values->dtype)
		return tensor_fail(EINVAL, "%s: both tensors must have one dtype, got %s and %s",
				   op->schema.name, tensor_dtype_name(sequence->dtype),
				   tensor_dtype_name(values->dtype));
	if (sorter && (!sizes_equal(sorter, sequence) || sorter->dtype != TENSOR_I64))
		return tensor_fail(EINVAL, "%s: sorter must be i64 %s, got %s %s", op->schema.name,
				   SHAPE_STR(sequence), tensor_dtype_name(sorter->dtype),
				   SHAPE_STR(sorter));
	return 0;
}

static int refuse_sorter(const struct tensor_op *op, int64_t value, int64_t n)
{
	return tensor_fail(EINVAL, "%s: sorter has %lld for %lld elements", op->schema.name,
			   (long long)value, (long long)n);
}

/* On another device, where the host waits for the least and the greatest index. */
static int check_sorter_elsewhere(const struct tensor_op *op, tensor *sorter, int64_t n)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	int64_t least = 0, most = 0;
	int err = 0;

	if (sorter->numel && (tensor_item_int(tensor_min(sorter), &least) < 0 ||
			      tensor_item_int(tensor_max(sorter), &most) < 0))
		err = error_code();
	scope_leave(&guard);
	if (err || (least >= 0 && most < n) || !sorter->numel)
		return err;
	return refuse_sorter(op, least < 0 ? least : most, n);
}

/* Check the range: a kernel would read out of bounds. */
static int check_sorter(const struct tensor_op *op, tensor *sorter, int64_t n)
{
	const int64_t *p = sorter ? sorter->data : NULL;

	if (sorter && sorter->device.type != TENSOR_CPU)
		return check_sorter_elsewhere(op, sorter, n);
	for (int64_t i = 0; p && i < sorter->numel; i++)
		if (p[i] < 0 || p[i] >= n)
			return refuse_sorter(op, p[i], n);
	return 0;
}

static tensor *dense_wide(tensor *t)
{
	tensor *wide = operand_widen(t), *dense = wide ? operand_contiguous(wide) : NULL;

	tensor_put(wide);
	return dense;
}

static int search(const struct tensor_op *op, tensor **out, tensor *sequence, tensor *values,
		  tensor *sorter, bool out_int32, bool right)
{
	search_kernel fn = (search_kernel)op_kernel(op, op->kernels, values);
	const tensor *inputs[] = { values, sequence };
	tensor *s, *v, *order = NULL;
	struct op_output o;
	int err;

	if (!fn || check_shapes(op, sequence, values, sorter) < 0 ||
	    output_begin_apart(op, &o, *out, TENSOR_I64, values->sizes, values->ndim, inputs, 2) <
		    0)
		return error_code();
	o.dtype = out_int32 ? TENSOR_I32 : TENSOR_I64;
	s = dense_wide(sequence);
	v = dense_wide(values);
	order = sorter ? operand_contiguous(sorter) : NULL;
	err = s && v && (order || !sorter) ? check_sorter(op, order, s->sizes[s->ndim - 1]) :
					     error_code();
	if (!err && !o.t->contiguous) {
		tensor *t = tensor_new_like(o.t, values->sizes, values->ndim);

		err = t ? fn(t, s, v, order, v->ndim ? v->sizes[v->ndim - 1] : 1, right) :
			  error_code();
		if (!err)
			err = operand_copy(o.t, t);
		tensor_put(t);
	} else if (!err) {
		err = fn(o.t, s, v, order, v->ndim ? v->sizes[v->ndim - 1] : 1, right);
	}
	tensor_put(order);
	tensor_put(v);
	tensor_put(s);
	return output_end(op, &o, out, err);
}

int op_searchsorted(const struct tensor_op *op, tensor **out, tensor *sorted_sequence, tensor *self,
		    bool out_int32, bool right, const char *side, tensor *sorter)
{
	bool to_right = side && !strcmp(side, "right");

	if (side && !to_right && strcmp(side, "left"))
		return tensor_fail(EINVAL, "%s: side must be left or right, got %s",
				   op->schema.name, QUOTED(side));
	if (side && right && !to_right)
		return tensor_fail(EINVAL, "%s: right contradicts side left", op->schema.name);
	return search(op, out, sorted_sequence, self, sorter, out_int32, right || to_right);
}

int op_bucketize(const struct tensor_op *op, tensor **out, tensor *self, tensor *boundaries,
		 bool out_int32, bool right)
{
	if (boundaries->ndim != 1)
		return tensor_fail(EINVAL, "%s: boundaries must have one dimension, got %s",
				   op->schema.name, SHAPE_STR(boundaries));
	return search(op, out, boundaries, self, NULL, out_int32, right);
}
