// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of nll_loss and its gradient. Kernels compute reduced float dtypes in f32. */
#include "ops/nn/norm.h"

#include "family/loss.h"

static int check_weight(const struct tensor_op *op, const tensor *self, const tensor *weight)
{
	int64_t classes = self->sizes[self->ndim - 1];

	if (!weight)
		return 0;
	if (weight->ndim != 1 || weight->sizes[0] != classes || weight->dtype != self->dtype)
		return tensor_fail(EINVAL,
				   "%s: weight must be %s [%lld] for the classes of self, "
				   "got %s %s",
				   op->schema.name, tensor_dtype_name(self->dtype),
				   (long long)classes, tensor_dtype_name(weight->dtype),
				   SHAPE_STR(weight));
	return operand_check_device(op->schema.name, self, weight);
}

static int check_loss(const struct tensor_op *op, const tensor *self, const tensor *target,
		      const tensor *weight, int64_t reduction)
{
	if (self->ndim < 1 || self->ndim > 2)
		return tensor_fail(EINVAL, "%s: self must have shape [n, c] or [c], got %s",
				   op->schema.name, SHAPE_STR(self));
	if (!dtype_is_float(self->dtype))
		return tensor_fail(EINVAL, "%s: a floating dtype is needed for self, got %s",
				   op->schema.name, tensor_dtype_name(self->dtype));
	if (target->dtype != TENSOR_I64)
		return tensor_fail(EINVAL, "%s: target must be i64, got %s", op->schema.name,
				   tensor_dtype_name(target->dtype));
	if (target->ndim != self->ndim - 1 || (target->ndim && target->sizes[0] != self->sizes[0]))
		return tensor_fail(EINVAL,
				   "%s: target must have one class for each row of self "
				   "%s, got shape %s",
				   op->schema.name, SHAPE_STR(self), SHAPE_STR(target));
	if (reduction < LOSS_NONE || reduction > LOSS_SUM)
		return tensor_fail(EINVAL,
				   "%s: reduction must be 0 (none), 1 (mean) or 2 (sum), "
				   "got %lld",
				   op->schema.name, (long long)reduction);
	if (operand_check_device(op->schema.name, self, target) < 0)
		return error_code();
	return check_weight(op, self, weight);
}

int op_nll_loss(const struct tensor_op *op, tensor **output, tensor **total_weight, tensor *self,
		tensor *target, tensor *weight, int64_t reduction, int64_t ignore_index)
{
	nll_loss_kernel fn = (nll_loss_kernel)op_kernel(op, op->kernels, self);
	tensor *x, *w;
	int err;

	if (!fn || check_loss(op, self, target, weight, reduction) < 0)
		return error_code();
	x = operand_widen(self);
	w = weight ? operand_widen(weight) : NULL;
	*output = x ? tensor_new_like(x, target->sizes, reduction == LOSS_NONE ? target->ndim : 0) :
		      NULL;
	*total_weight = x ? tensor_new_like(x, NULL, 0) : NULL;
	err = *output && *total_weight && !w == !weight ?
		      fn(*output, *total_weight, x, target, w, (enum loss_reduction)reduction,
			 ignore_index) :
		      error_code();
	tensor_put(x);
	tensor_put(w);
	*output = norm_result(*output, self->dtype);
	*total_weight = norm_result(*total_weight, self->dtype);
	if (!err && *output && *total_weight)
		return 0;
	tensor_put(*output);
	tensor_put(*total_weight);
	*output = *total_weight = NULL;
	return err ? err : error_code();
}

static int check_gradient(const struct tensor_op *op, const tensor *self, const tensor *grad,
			  const tensor *target, int64_t reduction, const tensor *total_weight)
{
	int ndim = reduction == LOSS_NONE ? target->ndim : 0;

	if (grad->dtype != self->dtype || grad->ndim != ndim ||
	    (ndim && grad->sizes[0] != target->sizes[0]))
		return tensor_fail(EINVAL,
				   "%s: grad_output must be %s and have the loss's shape, "
				   "got %s %s",
				   op->schema.name, tensor_dtype_name(self->dtype),
				   tensor_dtype_name(grad->dtype), SHAPE_STR(grad));
	if (total_weight->dtype != self->dtype || total_weight->numel != 1)
		return tensor_fail(EINVAL, "%s: total_weight must be one %s, got %s %s",
				   op->schema.name, tensor_dtype_name(self->dtype),
				   tensor_dtype_name(total_weight->dtype), SHAPE_STR(total_weight));
	if (operand_check_device(op->schema.name, self, total_weight) < 0)
		return error_code();
	return operand_check_device(op->schema.name, self, grad);
}

int op_nll_loss_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			 tensor *self, tensor *target, tensor *weight, int64_t reduction,
			 int64_t ignore_index, tensor *total_weight)
{
	nll_loss_backward_kernel fn = (nll_loss_backward_kernel)op_kernel(op, op->kernels, self);
	const tensor *inputs[] = { self };
	tensor *grad, *w, *total;
	struct op_output o;
	int err;

	if (!fn || check_loss(op, self, target, weight, reduction) < 0 ||
	    check_gradient(op, self, grad_output, target, reduction, total_weight) < 0 ||
	    output_begin_wide(op, &o, *out, self->dtype, self->sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	grad = operand_widen(grad_output);
	w = weight ? operand_widen(weight) : NULL;
	total = operand_widen(total_weight);
	err = grad && total && !w == !weight ?
		      fn(o.t, grad, target, w, (enum loss_reduction)reduction, ignore_index,
			 total) :
		      error_code();
	tensor_put(grad);
	tensor_put(w);
	tensor_put(total);
	return output_end(op, &o, out, err);
}
