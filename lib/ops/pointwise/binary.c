// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fronts of elementwise operators of two operands that are more than a loop and a rule: a number
 * on the left, powers, whole quotients.
 */
#include "ops/pointwise/pointwise.h"

#include "family/binary.h"
#include "family/compare.h"
#include "family/pointwise.h"
#include "family/unary.h"

int front_scalar_binary(const struct tensor_op *op, tensor **out, tensor_scalar self, tensor *other)
{
	const struct pointwise_arg arg[] = { { .s = self }, { .t = other } };

	return pointwise_by_rule(op, op->loops, out, arg, 2, NULL);
}

static bool in_range(int64_t v, enum tensor_dtype dtype)
{
	return v >= dtype_least(dtype) && v <= dtype_greatest(dtype);
}

/* An integer that is out of the tensor's range is not wrapped into it. */
int front_compare_scalar(const struct tensor_op *op, tensor **out, tensor *self,
			 tensor_scalar other)
{
	const struct pointwise_arg arg[] = { { .t = self }, { .s = other } };
	enum tensor_dtype wide = self->dtype == TENSOR_U64 ? TENSOR_F64 : TENSOR_I64;

	if (likely(other.kind != TENSOR_SCALAR_INT || !dtype_is_int(self->dtype) ||
		   in_range(other.i, self->dtype)))
		return pointwise_binary_scalar(op, op->loops, out, self, other, NULL);
	return pointwise_nary(op, op->loops, out, arg, 2, wide, TENSOR_BOOL, NULL);
}

/* ---- rsub: other - alpha * self ---- */

int front_rsub(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
	       tensor_scalar alpha)
{
	return front_sub(op, out, other, self, alpha);
}

int front_rsub_scalar(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar other,
		      tensor_scalar alpha)
{
	const struct pointwise_arg arg[] = { { .s = other }, { .t = self } };
	struct pointwise_params params = { .a = alpha };

	if (scalar_double(alpha) == 1 && !scalar_imag(alpha))
		return pointwise_by_rule(op, &loops_sub, out, arg, 2, NULL);
	if (self->dtype == TENSOR_BOOL)
		return kernel_no_dtype("rsub", self->dtype, "cpu");
	if (alpha.kind >= TENSOR_SCALAR_FLOAT && dtype_is_integral(pointwise_common(arg, 2)))
		return tensor_fail(EINVAL, "%s: alpha must be an integer for dtype %s",
				   op->schema.name, tensor_dtype_name(self->dtype));
	if (alpha.kind >= TENSOR_SCALAR_FLOAT)
		params.a.d = -alpha.d, params.a.imag = -alpha.imag;
	else
		params.a.i = -alpha.i;
	return pointwise_by_rule(op, &loops_add_alpha, out, arg, 2, &params);
}

/* ---- powers ---- */

int front_pow_scalar(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar exponent)
{
	const struct pointwise_arg arg[] = { { .t = self }, { .s = exponent } };
	enum tensor_dtype common = pointwise_common(arg, 2);
	const struct tensor_loops *loops = NULL;
	double e = scalar_double(exponent);

	if (dtype_is_integral(common) && exponent.kind == TENSOR_SCALAR_INT && exponent.i < 0)
		return tensor_fail(EINVAL, "%s: an integer to a negative power is no integer",
				   op->schema.name);
	if (!scalar_imag(exponent) && common != TENSOR_BOOL) {
		bool fraction = !dtype_is_integral(common);

		loops = e == 2 ? &loops_square : e == 3 ? &loops_cube : NULL;
		if (fraction && !loops)
			loops = e == 0.5  ? &loops_sqrt :
				e == -0.5 ? &loops_rsqrt :
				e == -1	  ? &loops_reciprocal :
				e == -2	  ? &loops_inverse_square :
					    NULL;
	}
	if (loops)
		return pointwise_nary(op, loops, out, arg, 1, common, common, NULL);
	if (common == TENSOR_BOOL) /* self to the power of true, true to that of false */
		return pointwise_nary(op, &loops_bitwise_or, out,
				      (struct pointwise_arg[]){
					      arg[0], { .s = tensor_scalar_bool(!exponent.i) } },
				      2, common, common, NULL);
	return pointwise_nary(op, op->loops, out, arg, 2, common, common, NULL);
}

/* ---- quotients ---- */

/* "floor", "trunc", or NULL for the exact quotient. */
static int divide(const struct tensor_op *op, tensor **out, const struct pointwise_arg *arg,
		  const char *mode)
{
	enum tensor_dtype common = pointwise_common(arg, 2);
	const struct tensor_loops *loops;

	if (!mode) {
		common = dtype_to_float(common);
		loops = &loops_div;
	} else if (!strcmp(mode, "floor")) {
		loops = &loops_div_floor;
	} else if (!strcmp(mode, "trunc")) {
		loops = &loops_div_trunc;
	} else {
		return tensor_fail(EINVAL, "%s: rounding_mode must be floor, trunc or none, got %s",
				   op->schema.name, mode);
	}
	return pointwise_nary(op, loops, out, arg, 2, common, common, NULL);
}

int front_div_mode(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
		   const char *rounding_mode)
{
	return divide(op, out, (struct pointwise_arg[]){ { .t = self }, { .t = other } },
		      rounding_mode);
}

int front_div_mode_scalar(const struct tensor_op *op, tensor **out, tensor *self,
			  tensor_scalar other, const char *rounding_mode)
{
	return divide(op, out, (struct pointwise_arg[]){ { .t = self }, { .s = other } },
		      rounding_mode);
}
