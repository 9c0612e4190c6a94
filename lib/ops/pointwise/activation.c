// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of activations with parameters, and of their gradients. */
#include "ops/pointwise/pointwise.h"

#include "family/activation.h"
#include "family/compare.h"
#include "family/pointwise.h"
#include "family/shape.h"
#include "family/ternary.h"
#include "family/view.h"

static int with(const struct tensor_op *op, const struct tensor_kernel_table *kernels, tensor **out,
		tensor *self, tensor_scalar a, tensor_scalar b, tensor_scalar c)
{
	const struct pointwise_params params = { .a = a, .b = b, .c = c };

	return pointwise_unary(op, kernels, out, self, &params);
}

static int grad_with(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		     tensor **out, tensor *grad, tensor *self, tensor_scalar a, tensor_scalar b,
		     tensor_scalar c)
{
	const struct pointwise_params params = { .a = a, .b = b, .c = c };

	return pointwise_binary(op, kernels, out, grad, self, &params);
}

#define NONE ((tensor_scalar){ .kind = TENSOR_SCALAR_INT })

int op_elu(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar alpha,
	   tensor_scalar scale, tensor_scalar input_scale)
{
	return with(op, &kernels_elu, out, self, alpha, scale, input_scale);
}

int op_elu_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
		    tensor_scalar alpha, tensor_scalar scale, tensor_scalar input_scale,
		    bool is_result, tensor *self_or_result)
{
	if (is_result && scalar_double(alpha) < 0)
		return tensor_fail(EINVAL,
				   "%s: from the result alone the gradient is known for "
				   "alpha >= 0 only, got %g",
				   op->schema.name, scalar_double(alpha));
	return grad_with(op, is_result ? &kernels_elu_backward_result : &kernels_elu_backward, out,
			 grad_output, self_or_result, alpha, scale, input_scale);
}

/* The dtype is self's: for integers, the limits are truncated. */
int op_hardtanh(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar min_val,
		tensor_scalar max_val)
{
	if (dtype_is_integral(self->dtype)) {
		min_val = tensor_scalar_int(scalar_int(min_val));
		max_val = tensor_scalar_int(scalar_int(max_val));
	}
	return pointwise_clamp(op, out, self, self->dtype, min_val, max_val);
}

int op_relu6(const struct tensor_op *op, tensor **out, tensor *self)
{
	return pointwise_clamp(op, out, self, self->dtype, tensor_scalar_int(0),
			       tensor_scalar_int(6));
}

int op_hardtanh_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			 tensor *self, tensor_scalar min_val, tensor_scalar max_val)
{
	return grad_with(op, op->kernels, out, grad_output, self, min_val, max_val, NONE);
}

int op_leaky_relu(const struct tensor_op *op, tensor **out, tensor *self,
		  tensor_scalar negative_slope)
{
	return with(op, op->kernels, out, self, negative_slope, NONE, NONE);
}

int op_leaky_relu_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			   tensor *self, tensor_scalar negative_slope, bool self_is_result)
{
	if (self_is_result && scalar_double(negative_slope) < 0)
		return tensor_fail(EINVAL,
				   "%s: from the result alone the gradient is known for "
				   "slopes >= 0 only, got %g",
				   op->schema.name, scalar_double(negative_slope));
	return grad_with(op, op->kernels, out, grad_output, self, negative_slope, NONE, NONE);
}

int op_softplus(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar beta,
		tensor_scalar threshold)
{
	return with(op, op->kernels, out, self, beta, threshold, NONE);
}

int op_softplus_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			 tensor *self, tensor_scalar beta, tensor_scalar threshold)
{
	return grad_with(op, op->kernels, out, grad_output, self, beta, threshold, NONE);
}

int op_threshold(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar threshold,
		 tensor_scalar value)
{
	return grad_with(op, &kernels_threshold, out, self, self, threshold, value, NONE);
}

int op_threshold_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			  tensor *self, tensor_scalar threshold)
{
	return grad_with(op, &kernels_threshold, out, grad_output, self, threshold, NONE, NONE);
}

int op_shrink(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar lambd)
{
	if (op->kernels == &kernels_softshrink && !(scalar_double(lambd) >= 0))
		return tensor_fail(EINVAL, "%s: lambd must be at least 0, got %g", op->schema.name,
				   scalar_double(lambd));
	return with(op, op->kernels, out, self, lambd, NONE, NONE);
}

int op_shrink_backward(const struct tensor_op *op, tensor **out, tensor *grad_output, tensor *self,
		       tensor_scalar lambd)
{
	return grad_with(op, &kernels_shrink_backward, out, grad_output, self, lambd, NONE, NONE);
}

/* ---- log_sigmoid: its gradient reads exp(-|self|) ---- */

int op_log_sigmoid(const struct tensor_op *op, tensor **output, tensor **buffer, tensor *self)
{
	int err = pointwise_unary(op, &kernels_log_sigmoid_buffer, buffer, self, NULL);

	if (err < 0)
		return err;
	err = pointwise_unary(op, &kernels_log_sigmoid, output, self, NULL);
	if (err < 0) {
		tensor_put(*buffer);
		*buffer = NULL;
	}
	return err;
}

int op_log_sigmoid_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
			    tensor *self, tensor *buffer)
{
	const struct pointwise_arg arg[] = { { .t = grad_output }, { .t = self }, { .t = buffer } };

	return pointwise_by_rule(op, op->kernels, out, arg, 3, NULL);
}

tensor *composite_log_sigmoid(tensor *self)
{
	tensor *output, *buffer;

	if (call_log_sigmoid_forward(self, &output, &buffer) < 0)
		return NULL;
	tensor_put(buffer);
	return output;
}

/* ---- gelu: exact, or tanh approximation ---- */

/* The kernel table for "none" or "tanh"; NULL with the error set. */
static const struct tensor_kernel_table *
gelu_kernels(const struct tensor_op *op, const char *approximate,
	     const struct tensor_kernel_table *tanh_kernels)
{
	if (!strcmp(approximate, "none"))
		return op->kernels;
	if (!strcmp(approximate, "tanh"))
		return tanh_kernels;
	tensor_fail(EINVAL, "%s: approximate must be none or tanh, got %s", op->schema.name,
		    QUOTED(approximate));
	return NULL;
}

int op_gelu(const struct tensor_op *op, tensor **out, tensor *self, const char *approximate)
{
	const struct tensor_kernel_table *kernels =
		gelu_kernels(op, approximate, &kernels_gelu_tanh);

	return kernels ? pointwise_unary(op, kernels, out, self, NULL) : error_code();
}

int op_gelu_backward(const struct tensor_op *op, tensor **out, tensor *grad_output, tensor *self,
		     const char *approximate)
{
	const struct tensor_kernel_table *kernels =
		gelu_kernels(op, approximate, &kernels_gelu_tanh_backward);

	return kernels ? pointwise_binary(op, kernels, out, grad_output, self, NULL) : error_code();
}

/* ---- celu and selu: elu with fixed parameters ---- */

tensor *composite_celu(tensor *self, tensor_scalar alpha)
{
	double a = scalar_double(alpha);

	if (a == 0)
		return tensor_fail_null(EDOM, "celu: alpha must not be zero");
	return call_elu(self, alpha, tensor_scalar_int(1), tensor_scalar_float(1 / a));
}

/* Klambauer et al., "Self-Normalizing Neural Networks", 2017. */
tensor *composite_selu(tensor *self)
{
	return call_elu(self, tensor_scalar_float(1.6732632423543772848170429916717),
			tensor_scalar_float(1.0507009873554804934193349852946),
			tensor_scalar_int(1));
}

/* ---- prelu ---- */

tensor *composite_prelu_kernel(tensor *self, tensor *weight)
{
	struct tensor_scope_guard guard;

	if (self->dtype != weight->dtype)
		return tensor_fail_null(EINVAL, "prelu: weight must be %s like self, got %s",
					tensor_dtype_name(self->dtype),
					tensor_dtype_name(weight->dtype));
	if (!dtype_is_float(self->dtype))
		return tensor_kernel_no_dtype("prelu", self->dtype, "cpu"), NULL;
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, tensor_where(tensor_gt_scalar(self, tensor_scalar_int(0)),
						     self, tensor_mul(weight, self)));
}

/* weight is a vector along dimension 1, or 0 if self has only one. */
tensor *composite_prelu(tensor *self, tensor *weight)
{
	int64_t sizes[TENSOR_MAX_DIMS], channels = self->ndim > 1 ? self->sizes[1] : 1;
	int channel = self->ndim > 1;
	tensor *spread, *result;

	if (weight->ndim > 1 || (weight->numel != 1 && (!self->ndim || weight->numel != channels)))
		return tensor_fail_null(EINVAL,
					"prelu: weight must have one element or %lld, those of "
					"dimension 1 of self %s, got %s",
					(long long)channels, SHAPE_STR(self), SHAPE_STR(weight));
	for (int i = 0; i < self->ndim; i++)
		sizes[i] = i == channel ? weight->numel : 1;
	if (self->ndim == 1)
		sizes[0] = 1;
	spread = call_reshape(weight, (tensor_ints){ sizes, self->ndim });
	result = spread ? composite_prelu_kernel(self, spread) : NULL;
	tensor_put(spread);
	return result;
}
