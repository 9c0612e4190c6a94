// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Fronts of softmax and log_softmax along one dimension, and of their gradients. */
#include "front.h"

/* A 0-d tensor is a line of one element. */
static const tensor *as_line(tensor *line, const tensor *t)
{
	if (likely(t->ndim))
		return t;
	*line = *t;
	line->ndim = 1;
	line->sizes[0] = line->strides[0] = 1;
	return line;
}

static int check_float(const struct tensor_op *op, enum tensor_dtype dtype)
{
	if (likely(dtype > TENSOR_I64))
		return 0;
	return tensor_fail(EINVAL, "%s: a floating dtype is needed, got %s", op->schema.name,
			   tensor_dtype_name(dtype));
}

int front_softmax(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		  enum tensor_dtype dtype)
{
	softmax_kernel fn = (softmax_kernel)op_loop(op, op->loops, self);
	int d = wrap_dim(op->schema.name, dim, self->ndim), err;
	tensor *x, line_out, line_in;
	const tensor *inputs[1];
	struct front_out o;

	if (!fn || d < 0 || check_float(op, dtype ? dtype : self->dtype) < 0)
		return error_code();
	x = dtype ? front_cast(self, dtype) : tensor_get(self);
	if (!x)
		return error_code();
	inputs[0] = x;
	err = front_begin(op, &o, *out, x->dtype, x->sizes, x->ndim, inputs, 1);
	if (!err)
		err = front_end(op, &o, out,
				fn((tensor *)as_line(&line_out, o.t), as_line(&line_in, x), d));
	tensor_put(x);
	return err;
}

int front_softmax_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			   tensor *output, int64_t dim)
{
	softmax_backward_kernel fn = (softmax_backward_kernel)op_loop(op, op->loops, output);
	int d = wrap_dim(op->schema.name, dim, output->ndim);
	const tensor *inputs[] = {output, grad_output};
	tensor line[3];
	struct front_out o;

	if (!fn || d < 0)
		return error_code();
	if (!sizes_equal(grad_output, output) || grad_output->dtype != output->dtype)
		return tensor_fail(EINVAL, "%s: grad_output must be like output, %s %s, got %s %s",
				   op->schema.name, tensor_dtype_name(output->dtype),
				   SHAPE_STR(output), tensor_dtype_name(grad_output->dtype),
				   SHAPE_STR(grad_output));
	if (front_begin(op, &o, *out, output->dtype, output->sizes, output->ndim, inputs, 2) < 0)
		return error_code();
	return front_end(op, &o, out,
			 fn((tensor *)as_line(&line[0], o.t), as_line(&line[1], grad_output),
			    as_line(&line[2], output), d));
}
