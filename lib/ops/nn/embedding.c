// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of embedding, embedding_bag and their gradients. Kernels get contiguous
 * tensors. */
#include "ops/op.h"

#include "kernels/abi/embedding.h"

#include "family/embedding.h"

static int check_indices(const struct tensor_op *op, const char *name, const tensor *t, int ndim)
{
	if (t->dtype != TENSOR_I64 && t->dtype != TENSOR_I32)
		return tensor_fail(EINVAL, "%s: %s must be i32 or i64, got %s", op->schema.name,
				   name, tensor_dtype_name(t->dtype));
	if (ndim >= 0 && t->ndim != ndim)
		return tensor_fail(EINVAL, "%s: %s must have one dimension, got shape %s",
				   op->schema.name, name, SHAPE_STR(t));
	return 0;
}

static int check_table(const struct tensor_op *op, const char *name, const tensor *t)
{
	if (t->ndim != 2)
		return tensor_fail(EINVAL, "%s: %s must be a matrix, got shape %s", op->schema.name,
				   name, SHAPE_STR(t));
	return 0;
}

static int check_float(const struct tensor_op *op, const char *name, const tensor *t)
{
	if (!dtype_is_float(t->dtype))
		return tensor_fail(EINVAL, "%s: a floating dtype is needed for %s, got %s",
				   op->schema.name, name, tensor_dtype_name(t->dtype));
	return 0;
}

/* Contiguous private copy: kernels check indices before use, and another process could change
 * shared memory in between. */
static tensor *private_indices(tensor *t, enum tensor_dtype dtype)
{
	tensor *copy = tensor_new(t->device, dtype, t->sizes, t->ndim);

	if (copy && operand_copy(copy, t) < 0) {
		tensor_put(copy);
		return NULL;
	}
	return copy;
}

/* ---- embedding ---- */

int op_embedding(const struct tensor_op *op, tensor **out, tensor *weight, tensor *indices,
		 int64_t padding_idx, bool scale_grad_by_freq, bool sparse)
{
	gather_kernel fn = (gather_kernel)op_kernel(op, op->kernels, weight);
	const tensor *inputs[] = { weight, indices };
	int64_t sizes[TENSOR_MAX_DIMS];
	tensor *flat, rows, index;
	struct op_output o;
	int err = 0;

	if (!fn || check_table(op, "weight", weight) < 0 ||
	    check_indices(op, "indices", indices, -1) < 0)
		return error_code();
	if (indices->ndim + 1 > TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "%s: the result would have %d dimensions",
				   op->schema.name, indices->ndim + 1);
	memcpy(sizes, indices->sizes, indices->ndim * sizeof(*sizes));
	sizes[indices->ndim] = weight->sizes[1];
	flat = operand_contiguous(indices);
	if (!flat)
		return error_code();
	err = output_begin_apart(op, &o, *out, weight->dtype, sizes, indices->ndim + 1, inputs, 2);
	if (!err) {
		rows = *o.t;
		rows.ndim = 2;
		rows.sizes[0] = indices->numel;
		rows.sizes[1] = weight->sizes[1];
		contiguous_strides(rows.sizes, 2, rows.strides);
		index = *flat;
		index.ndim = 1;
		index.sizes[0] = indices->numel;
		index.strides[0] = 1;
		err = output_end(op, &o, out, o.t->numel ? fn(&rows, weight, 0, &index) : 0);
	}
	tensor_put(flat);
	return err;
}

int op_embedding_dense_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				tensor *indices, int64_t num_weights, int64_t padding_idx,
				bool scale_grad_by_freq)
{
	embedding_backward_kernel fn =
		(embedding_backward_kernel)op_kernel(op, op->kernels, grad_output);
	const struct embedding e = { padding_idx, scale_grad_by_freq };
	const tensor *inputs[] = { grad_output, indices };
	int n = grad_output->ndim;
	tensor *grad, *flat;
	struct op_output o;
	int64_t sizes[2];
	int err;

	if (!fn || check_indices(op, "indices", indices, -1) < 0 ||
	    check_float(op, "grad_output", grad_output) < 0)
		return error_code();
	if (n < 1 || num_weights < 0 ||
	    grad_output->numel != indices->numel * grad_output->sizes[n - 1])
		return tensor_fail(EINVAL,
				   "%s: grad_output %s must have a row for each of the indices %s",
				   op->schema.name, SHAPE_STR(grad_output), SHAPE_STR(indices));
	sizes[0] = num_weights;
	sizes[1] = grad_output->sizes[n - 1];
	if (operand_check_device(op->schema.name, grad_output, indices) < 0 ||
	    output_begin_wide(op, &o, *out, grad_output->dtype, sizes, 2, inputs, 1) < 0)
		return error_code();
	grad = operand_contiguous(grad_output);
	flat = private_indices(indices, indices->dtype);
	err = grad && flat ? fn(o.t, grad, flat, &e) : error_code();
	tensor_put(grad);
	tensor_put(flat);
	return output_end(op, &o, out, err);
}

/* ---- bags ---- */

/* Operands in the form the kernels need. Owns its tensors. */
struct bag_operands {
	struct bags b;
	tensor *indices, *offsets, *factors;
	tensor *offset2bag, *bag_size, *maximum; /* results of the forward call; NULL if unused */
};

static void put_operands(struct bag_operands *x)
{
	tensor_put(x->indices);
	tensor_put(x->offsets);
	tensor_put(x->factors);
	tensor_put(x->offset2bag);
	tensor_put(x->bag_size);
	tensor_put(x->maximum);
}

/* Take the forward operator's results, for a gradient kernel. The last two may be NULL. */
static int get_made(struct bag_operands *x, tensor *offset2bag, tensor *bag_size, tensor *maximum)
{
	x->b.offset2bag = x->offset2bag = private_indices(offset2bag, offset2bag->dtype);
	if (bag_size)
		x->b.bag_size = x->bag_size = private_indices(bag_size, bag_size->dtype);
	if (maximum)
		x->b.maximum = x->maximum = private_indices(maximum, maximum->dtype);
	return x->offset2bag && !x->bag_size == !bag_size && !x->maximum == !maximum ? 0 :
										       error_code();
}

static int check_bag(const struct tensor_op *op, const tensor *indices, const tensor *factors,
		     const tensor *table, int64_t mode)
{
	if (check_indices(op, "indices", indices, 1) < 0 || check_float(op, "weight", table) < 0)
		return error_code();
	if (mode < BAG_SUM || mode > BAG_MAX)
		return tensor_fail(EINVAL,
				   "%s: mode must be 0 (sum), 1 (mean) or 2 (max), got %lld",
				   op->schema.name, (long long)mode);
	if (!factors)
		return 0;
	if (mode != BAG_SUM)
		return tensor_fail(EINVAL, "%s: per_sample_weights are for sums, mode is %lld",
				   op->schema.name, (long long)mode);
	if (factors->ndim != 1 || factors->numel != indices->numel ||
	    factors->dtype != table->dtype)
		return tensor_fail(EINVAL,
				   "%s: per_sample_weights must be %s %s, one for each index, "
				   "got %s %s",
				   op->schema.name, tensor_dtype_name(table->dtype),
				   SHAPE_STR(indices), tensor_dtype_name(factors->dtype),
				   SHAPE_STR(factors));
	return 0;
}

/* Convert the operands. offsets may be NULL. If one of indices and offsets is i64, both become i64.
 */
static int get_operands(struct bag_operands *x, tensor *indices, tensor *offsets, tensor *factors,
			int64_t mode, int64_t padding_idx, bool by_frequency)
{
	enum tensor_dtype index = indices->dtype;
	tensor *cast;

	*x = (struct bag_operands){ .b = { .mode = (enum bag_mode)mode,
					   .e = { padding_idx, by_frequency } } };
	if (offsets && offsets->dtype != index)
		index = TENSOR_I64;
	x->indices = private_indices(indices, index);
	if (offsets)
		x->offsets = private_indices(offsets, index);
	if (factors) {
		cast = operand_widen(factors);
		x->factors = cast ? operand_contiguous(cast) : NULL;
		tensor_put(cast);
	}
	x->b.indices = x->indices;
	x->b.offsets = x->offsets;
	x->b.factors = x->factors;
	return x->indices && !x->offsets == !offsets && !x->factors == !factors ? 0 : error_code();
}

/* Convert t to the table's dtype; consumes t. */
static tensor *narrowed(tensor *t, enum tensor_dtype dtype)
{
	tensor *result = t ? operand_cast(t, dtype) : NULL;

	tensor_put(t);
	return result;
}

int op_embedding_bag(const struct tensor_op *op, tensor **output, tensor **offset2bag,
		     tensor **bag_size, tensor **maximum_indices, tensor *weight, tensor *indices,
		     tensor *offsets, bool scale_grad_by_freq, int64_t mode, bool sparse,
		     tensor *per_sample_weights, bool include_last_offset, int64_t padding_idx)
{
	embedding_bag_kernel fn = (embedding_bag_kernel)op_kernel(op, op->kernels, weight);
	int64_t bags, sizes[2];
	struct bag_operands x;
	tensor *table, *out;
	int err;

	if (!fn || check_table(op, "weight", weight) < 0 ||
	    check_indices(op, "offsets", offsets, 1) < 0 ||
	    check_bag(op, indices, per_sample_weights, weight, mode) < 0 ||
	    operand_check_device(op->schema.name, weight, indices) < 0 ||
	    operand_check_device(op->schema.name, weight, offsets) < 0)
		return error_code();
	if (include_last_offset && !offsets->numel)
		return tensor_fail(EINVAL, "%s: include_last_offset needs an offset",
				   op->schema.name);
	bags = offsets->numel - include_last_offset;
	sizes[0] = bags;
	sizes[1] = weight->sizes[1];
	err = get_operands(&x, indices, offsets, per_sample_weights, mode, padding_idx, false);
	table = operand_contiguous(weight);
	out = tensor_new(weight->device, dtype_wide(weight->dtype), sizes, 2);
	*offset2bag = err ? NULL : tensor_new_like(x.indices, &indices->numel, 1);
	*bag_size = err ? NULL : tensor_new_like(x.indices, &bags, 1);
	*maximum_indices = err ? NULL : tensor_new_like(x.indices, sizes, mode == BAG_MAX ? 2 : 1);
	if (table && out && *offset2bag && *bag_size && *maximum_indices) {
		x.b.offset2bag = *offset2bag;
		x.b.bag_size = *bag_size;
		x.b.maximum = *maximum_indices;
		err = fn(out, table, &x.b);
		if (!err && mode != BAG_MAX)
			err = operand_copy(*maximum_indices, *bag_size);
	} else if (!err) {
		err = error_code();
	}
	put_operands(&x);
	tensor_put(table);
	*output = narrowed(out, weight->dtype);
	if (!err && *output)
		return 0;
	tensor_put(*output);
	tensor_put(*offset2bag);
	tensor_put(*bag_size);
	tensor_put(*maximum_indices);
	*output = *offset2bag = *bag_size = *maximum_indices = NULL;
	return err ? err : error_code();
}

int op_embedding_bag_dense_backward(const struct tensor_op *op, tensor **out, tensor *grad,
				    tensor *indices, tensor *offset2bag, tensor *bag_size,
				    tensor *maximum_indices, int64_t num_weights,
				    bool scale_grad_by_freq, int64_t mode,
				    tensor *per_sample_weights, int64_t padding_idx)
{
	embedding_bag_backward_kernel fn =
		(embedding_bag_backward_kernel)op_kernel(op, op->kernels, grad);
	const tensor *inputs[] = { grad };
	int64_t sizes[] = { num_weights, 0 };
	struct bag_operands x;
	struct op_output o;
	tensor *g;
	int err;

	if (!fn || check_table(op, "grad", grad) < 0 ||
	    check_bag(op, indices, per_sample_weights, grad, mode) < 0 ||
	    check_indices(op, "offset2bag", offset2bag, 1) < 0 ||
	    check_indices(op, "bag_size", bag_size, 1) < 0)
		return error_code();
	if (num_weights < 0 || offset2bag->numel != indices->numel ||
	    bag_size->numel != grad->sizes[0] ||
	    (mode == BAG_MAX && maximum_indices->numel != grad->numel) ||
	    (maximum_indices->dtype != TENSOR_I64 && maximum_indices->dtype != TENSOR_I32))
		return tensor_fail(EINVAL,
				   "%s: offset2bag, bag_size and maximum_indices must be those of "
				   "the forward operator",
				   op->schema.name);
	sizes[1] = grad->sizes[1];
	if (output_begin_wide(op, &o, *out, grad->dtype, sizes, 2, inputs, 1) < 0)
		return error_code();
	err = get_operands(&x, indices, NULL, per_sample_weights, mode, padding_idx,
			   scale_grad_by_freq);
	if (!err)
		err = get_made(&x, offset2bag, bag_size, maximum_indices);
	g = operand_contiguous(grad);
	if (!err)
		err = g ? fn(o.t, g, &x.b) : error_code();
	put_operands(&x);
	tensor_put(g);
	return output_end(op, &o, out, err);
}

int op_embedding_bag_weights_backward(const struct tensor_op *op, tensor **out, tensor *grad,
				      tensor *weight, tensor *indices, tensor *offsets,
				      tensor *offset2bag, int64_t mode, int64_t padding_idx)
{
	embedding_bag_weights_backward_kernel fn =
		(embedding_bag_weights_backward_kernel)op_kernel(op, op->kernels, grad);
	const tensor *inputs[] = { grad, weight };
	struct bag_operands x;
	struct op_output o;
	tensor *g, *w;
	int err;

	if (!fn || check_table(op, "grad", grad) < 0 || check_table(op, "weight", weight) < 0 ||
	    check_bag(op, indices, NULL, weight, mode) < 0 ||
	    check_indices(op, "offset2bag", offset2bag, 1) < 0)
		return error_code();
	if (mode != BAG_SUM || offset2bag->numel != indices->numel ||
	    grad->sizes[1] != weight->sizes[1] || grad->dtype != weight->dtype)
		return tensor_fail(EINVAL,
				   "%s: mode must be 0, and grad and offset2bag those of the "
				   "forward operator",
				   op->schema.name);
	if (output_begin_wide(op, &o, *out, grad->dtype, &indices->numel, 1, inputs, 2) < 0)
		return error_code();
	err = get_operands(&x, indices, NULL, NULL, mode, padding_idx, false);
	if (!err)
		err = get_made(&x, offset2bag, NULL, NULL);
	g = operand_contiguous(grad);
	w = operand_contiguous(weight);
	if (!err)
		err = g && w ? fn(o.t, g, w, &x.b) : error_code();
	put_operands(&x);
	tensor_put(g);
	tensor_put(w);
	return output_end(op, &o, out, err);
}

int composite_embedding_bag(tensor *weight, tensor *indices, tensor *offsets,
			    bool scale_grad_by_freq, int64_t mode, bool sparse,
			    tensor *per_sample_weights, bool include_last_offset, tensor **output,
			    tensor **offset2bag, tensor **bag_size, tensor **maximum_indices)
{
	return call__embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
				   per_sample_weights, include_last_offset, -1, output, offset2bag,
				   bag_size, maximum_indices);
}

int composite_embedding_bag_padding(tensor *weight, tensor *indices, tensor *offsets,
				    bool scale_grad_by_freq, int64_t mode, bool sparse,
				    tensor *per_sample_weights, bool include_last_offset,
				    int64_t padding_idx, tensor **output, tensor **offset2bag,
				    tensor **bag_size, tensor **maximum_indices)
{
	int64_t rows = weight->ndim ? weight->sizes[0] : 0;

	if (padding_idx == TENSOR_NONE)
		padding_idx = -1;
	else if (padding_idx < -rows || padding_idx >= rows)
		return tensor_fail(EINVAL,
				   "embedding_bag: padding_idx %lld is out of range for %lld rows",
				   (long long)padding_idx, (long long)rows);
	else if (padding_idx < 0)
		padding_idx += rows;
	return call__embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
				   per_sample_weights, include_last_offset, padding_idx, output,
				   offset2bag, bag_size, maximum_indices);
}
