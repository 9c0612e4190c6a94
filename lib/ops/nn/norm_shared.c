// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Shared functions of the normalization operators. See norm.h. */
#include "ops/nn/norm.h"

tensor *norm_operand(tensor *t, enum tensor_dtype dtype)
{
	tensor *cast, *result;

	if (!t)
		return NULL;
	cast = operand_cast(t, dtype);
	result = cast ? operand_contiguous(cast) : NULL;
	tensor_put(cast);
	return result;
}

enum tensor_dtype norm_kernel_dtype(const tensor *input)
{
	const bool reads_reduced = input->device.type == TENSOR_CPU ||
				   input->device.type == TENSOR_CUDA;

	return reads_reduced && dtype_is_reduced_float(input->dtype) ?
		       (enum tensor_dtype)input->dtype :
		       dtype_wide(input->dtype);
}

tensor *norm_result(tensor *t, enum tensor_dtype dtype)
{
	tensor *result;

	if (!t || t->dtype == dtype)
		return t;
	result = operand_cast(t, dtype);
	tensor_put(t);
	return result;
}

tensor *norm_shape(tensor *header, const tensor *t, tensor_ints sizes)
{
	if (!t)
		return NULL;
	*header = *t;
	header->ndim = (uint8_t)sizes.len;
	memcpy(header->sizes, sizes.data, sizes.len * sizeof(*sizes.data));
	contiguous_strides(header->sizes, header->ndim, header->strides);
	return header;
}

static int check_affine(const struct tensor_op *op, const tensor *input, const char *name,
			const tensor *t, int64_t n)
{
	if (!t)
		return 0;
	if (t->numel != n)
		return tensor_fail(EINVAL,
				   "%s: %s must have %lld elements to match input %s, got "
				   "shape %s",
				   op->schema.name, name, (long long)n, SHAPE_STR(input),
				   SHAPE_STR(t));
	if (t->dtype != input->dtype && t->dtype != dtype_wide(input->dtype))
		return tensor_fail(EINVAL, "%s: %s must be %s like input, got %s", op->schema.name,
				   name, tensor_dtype_name(input->dtype),
				   tensor_dtype_name(t->dtype));
	return operand_check_device(op->schema.name, input, t);
}

int norm_check(const struct tensor_op *op, const tensor *input, const tensor *weight,
	       const tensor *bias, int64_t n)
{
	if (!dtype_is_float(input->dtype))
		return tensor_fail(EINVAL, "%s: a floating dtype is needed for input, got %s",
				   op->schema.name, tensor_dtype_name(input->dtype));
	if (check_affine(op, input, "weight", weight, n) < 0)
		return error_code();
	return check_affine(op, input, "bias", bias, n);
}

enum tensor_dtype norm_stat_dtype(const tensor *input, const tensor *weight, const tensor *bias)
{
	const tensor *other = weight ? weight : bias;

	return other ? (enum tensor_dtype)other->dtype : (enum tensor_dtype)input->dtype;
}

int norm_check_backward(const struct tensor_op *op, const tensor *grad_out, const tensor *input,
			const tensor *mean, const tensor *rstd, int64_t rows)
{
	if (!sizes_equal(grad_out, input) || grad_out->dtype != input->dtype)
		return tensor_fail(EINVAL, "%s: grad_out must be like input, %s %s, got %s %s",
				   op->schema.name, tensor_dtype_name(input->dtype),
				   SHAPE_STR(input), tensor_dtype_name(grad_out->dtype),
				   SHAPE_STR(grad_out));
	if (mean->numel != rows || rstd->numel != rows)
		return tensor_fail(EINVAL,
				   "%s: mean and rstd must have %lld elements, got shapes %s "
				   "and %s",
				   op->schema.name, (long long)rows, SHAPE_STR(mean),
				   SHAPE_STR(rstd));
	if (operand_check_device(op->schema.name, input, mean) < 0 ||
	    operand_check_device(op->schema.name, input, rstd) < 0)
		return error_code();
	return operand_check_device(op->schema.name, input, grad_out);
}

void norm_backward_begin(struct norm_backward *b, tensor *grad_out, tensor *input, tensor *mean,
			 tensor *rstd, tensor *weight, enum tensor_dtype dtype, tensor_ints affine,
			 uint64_t mask)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);

	*b = (struct norm_backward){ .grad = norm_operand(grad_out, dtype),
				     .x = norm_operand(input, dtype),
				     .mean = norm_operand(mean, wide),
				     .rstd = norm_operand(rstd, wide),
				     .weight = norm_operand(weight, wide) };
	if (mask & 1)
		b->dx = tensor_new(input->device, dtype, input->sizes, input->ndim);
	if (mask & 2)
		b->dweight = tensor_new(input->device, wide, affine.data, (int)affine.len);
	if (mask & 4)
		b->dbias = tensor_new(input->device, wide, affine.data, (int)affine.len);
	b->complete = b->grad && b->x && !b->mean == !mean && !b->rstd == !rstd &&
		      !b->weight == !weight && !b->dx == !(mask & 1) &&
		      !b->dweight == !(mask & 2) && !b->dbias == !(mask & 4);
}

int norm_backward_end(struct norm_backward *b, const tensor *input, enum tensor_dtype dtype,
		      uint64_t mask, tensor **out, int err)
{
	out[0] = norm_result(b->dx, input->dtype);
	out[1] = norm_result(b->dweight, dtype);
	out[2] = norm_result(b->dbias, dtype);
	tensor_put(b->grad);
	tensor_put(b->x);
	tensor_put(b->mean);
	tensor_put(b->rstd);
	tensor_put(b->weight);
	for (int i = 0; i < 3; i++)
		if (!err && !out[i] != !(mask >> i & 1))
			err = error_code();
	for (int i = 0; i < 3 && err; i++) {
		tensor_put(out[i]);
		out[i] = NULL;
	}
	return err;
}

int norm_forward_end(tensor **results, enum tensor_dtype dtype, enum tensor_dtype stat,
		     bool channels_last, int err)
{
	for (int i = 0; i < 3; i++) {
		tensor *t = results[i];

		results[i] = t ? operand_lay_out(t, i ? stat : dtype, !i && channels_last) : NULL;
		tensor_put(t);
	}
	if (!err && results[0] && results[1] && results[2])
		return 0;
	for (int i = 0; i < 3; i++) {
		tensor_put(results[i]);
		results[i] = NULL;
	}
	return err ? err : error_code();
}
