// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of unary elementwise operators with their own dtype rule or kernel. */
#include "ops/pointwise/pointwise.h"

#include "family/unary.h"

#include <math.h>

static int computed_in(const struct tensor_op *op, tensor **out, tensor *self,
		       enum tensor_dtype common, enum tensor_dtype result)
{
	const struct pointwise_arg arg = { .t = self };

	return pointwise_nary(op, op->kernels, out, &arg, 1, common, result, NULL);
}

int op_abs(const struct tensor_op *op, tensor **out, tensor *self)
{
	if (likely(!dtype_is_complex(self->dtype)))
		return pointwise_unary(op, op->kernels, out, self, NULL);
	if (op->variant == VARIANT_INPLACE)
		return tensor_fail(
			EINVAL,
			"%s: the absolute value of %s is real and cannot be stored in place",
			op->schema.name, tensor_dtype_name(self->dtype));
	return computed_in(op, out, self, self->dtype, dtype_real(self->dtype));
}

int op_angle(const struct tensor_op *op, tensor **out, tensor *self)
{
	enum tensor_dtype common = dtype_to_float(self->dtype);

	return computed_in(op, out, self, common, dtype_real(common));
}

int op_square(const struct tensor_op *op, tensor **out, tensor *self)
{
	enum tensor_dtype common = self->dtype == TENSOR_BOOL ? TENSOR_I64 : self->dtype;

	return computed_in(op, out, self, common, common);
}

int op_round_decimals(const struct tensor_op *op, tensor **out, tensor *self, int64_t decimals)
{
	double tens = pow(10, fabs((double)decimals));
	struct pointwise_params params = { .a = tensor_scalar_float(decimals > 0 ? tens : 1),
					   .b = tensor_scalar_float(decimals > 0 ? 1 : tens) };

	return pointwise_unary(op, decimals ? &kernels_round_decimals : &kernels_round, out, self,
			       &params);
}

int op_polygamma(const struct tensor_op *op, tensor **out, int64_t n, tensor *self)
{
	const struct pointwise_params params = { .a = tensor_scalar_int(n) };

	if (n < 0)
		return tensor_fail(EINVAL, "%s: n must be at least 0, got %lld", op->schema.name,
				   (long long)n);
	return pointwise_unary(op, n ? op->kernels : &kernels_digamma, out, self, &params);
}
