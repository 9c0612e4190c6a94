// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of softmax and log_softmax along one dimension, and of their gradients. */
#include "ops/op.h"

#include "family/loss.h"
#include "family/softmax.h"

static int check_float(const struct tensor_op *op, enum tensor_dtype dtype)
{
	if (likely(!dtype_is_integral(dtype)))
		return 0;
	return tensor_fail(EINVAL, "%s: a floating dtype is needed, got %s", op->schema.name,
			   tensor_dtype_name(dtype));
}

#define ACROSS_MIN 4   /* neighbouring lines that the CPU's kernel converts together */
#define ACROSS_MAX 512 /* elements of their longest line */

/*
 * True if the kernel converts reduced floats itself: CUDA's always, the CPU's if the dimension's
 * elements are adjacent, or those of neighbouring lines in a contiguous tensor.
 */
static bool reduced_float_in_lines(const tensor *self, enum tensor_dtype dtype, int d)
{
	if (self->dtype != dtype || !dtype_is_reduced_float(dtype) || !self->ndim)
		return false;
	if (self->device.type == TENSOR_CUDA)
		return true;
	return self->device.type == TENSOR_CPU &&
	       (self->strides[d] == 1 || (self->contiguous && self->strides[d] >= ACROSS_MIN &&
					  self->sizes[d] <= ACROSS_MAX));
}

/* Reduced floats are widened to f32 for the kernel, except where it converts them itself. */
static int softmax(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		   enum tensor_dtype dtype)
{
	softmax_kernel fn = (softmax_kernel)op_kernel(op, op->kernels, self);
	int d = wrap_dim(op->schema.name, dim, self->ndim), err;
	tensor *x, line_out, line_in;
	const tensor *inputs[1];
	struct op_output o;
	bool direct;

	if (!fn || d < 0 || check_float(op, dtype) < 0)
		return error_code();
	direct = reduced_float_in_lines(self, dtype, d);
	x = operand_cast(self, direct ? dtype : dtype_wide(dtype));
	if (!x)
		return error_code();
	inputs[0] = x;
	err = (direct ? output_begin : output_begin_wide)(op, &o, *out, dtype, x->sizes, x->ndim,
							  inputs, 1);
	if (!err)
		err = output_end(op, &o, out,
				 fn(operand_as_vector(&line_out, o.t),
				    operand_as_vector(&line_in, x), d));
	tensor_put(x);
	return err;
}

int op_softmax(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
	       enum tensor_dtype dtype)
{
	return softmax(op, out, self, dim, dtype ? dtype : self->dtype);
}

int op_softmax_half(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		    bool half_to_float)
{
	if (half_to_float && self->dtype != TENSOR_F16)
		return tensor_fail(EINVAL, "%s: half_to_float is for f16, got %s", op->schema.name,
				   tensor_dtype_name(self->dtype));
	return softmax(op, out, self, dim, half_to_float ? TENSOR_F32 : self->dtype);
}

static int backward(const struct tensor_op *op, tensor **out, tensor *grad_output, tensor *output,
		    int64_t dim, enum tensor_dtype dtype)
{
	softmax_backward_kernel fn = (softmax_backward_kernel)op_kernel(op, op->kernels, output);
	int d = wrap_dim(op->schema.name, dim, output->ndim), err = -ENOMEM;
	const tensor *inputs[2];
	tensor line[3], *grad, *result;
	struct op_output o;
	bool direct;

	if (!fn || d < 0)
		return error_code();
	if (!sizes_equal(grad_output, output) || grad_output->dtype != output->dtype)
		return tensor_fail(EINVAL, "%s: grad_output must be like output, %s %s, got %s %s",
				   op->schema.name, tensor_dtype_name(output->dtype),
				   SHAPE_STR(output), tensor_dtype_name(grad_output->dtype),
				   SHAPE_STR(grad_output));
	direct = reduced_float_in_lines(output, dtype, d) &&
		 reduced_float_in_lines(grad_output, dtype, d);
	result = direct ? tensor_get(output) : operand_widen(output);
	grad = direct ? tensor_get(grad_output) : operand_widen(grad_output);
	inputs[0] = result;
	inputs[1] = grad;
	if (result && grad)
		err = (direct ? output_begin : output_begin_wide)(
			op, &o, *out, output->dtype, output->sizes, output->ndim, inputs, 2);
	if (!err) {
		if (!o.given)
			o.dtype = dtype;
		err = output_end(op, &o, out,
				 fn(operand_as_vector(&line[0], o.t),
				    operand_as_vector(&line[1], grad),
				    operand_as_vector(&line[2], result), d));
	}
	tensor_put(grad);
	tensor_put(result);
	return err;
}

int op_softmax_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			tensor *output, int64_t dim)
{
	return backward(op, out, grad_output, output, dim, output->dtype);
}

int op_softmax_backward_data(const struct tensor_op *op, tensor **out, tensor *grad_output,
			     tensor *output, int64_t dim, enum tensor_dtype input_dtype)
{
	if (input_dtype != output->dtype &&
	    !(input_dtype == TENSOR_F16 && output->dtype == TENSOR_F32))
		return tensor_fail(EINVAL, "%s: input_dtype must be output's, %s, got %s",
				   op->schema.name, tensor_dtype_name(output->dtype),
				   tensor_dtype_name(input_dtype));
	return backward(op, out, grad_output, output, dim, input_dtype);
}
