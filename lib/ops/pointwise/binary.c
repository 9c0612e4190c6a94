// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of binary elementwise operators that need more than a kernel and a promotion
 * rule: scalar on the left, powers, rounded quotients. */
#include "ops/pointwise/pointwise.h"

#include "family/binary.h"
#include "family/compare.h"
#include "family/pointwise.h"
#include "family/unary.h"

#include <math.h>

int op_scalar_binary(const struct tensor_op *op, tensor **out, tensor_scalar self, tensor *other)
{
	const struct pointwise_arg arg[] = { { .s = self }, { .t = other } };

	return pointwise_by_rule(op, op->kernels, out, arg, 2, NULL);
}

static bool in_range(int64_t v, enum tensor_dtype dtype)
{
	return v >= dtype_least(dtype) && v <= dtype_greatest(dtype);
}

/* s as an element of a reduced float: elements are compared with the number that they could be equal to. */
static tensor_scalar rounded(tensor_scalar s, enum tensor_dtype dtype)
{
	uint16_t element;

	if (s.kind != TENSOR_SCALAR_COMPLEX && tensor_element_store(&element, dtype, s) == 0)
		element_load(&element, dtype, &s);
	return s;
}

/*
 * An integer out of the tensor's range is compared as it is, without wrapping. All values of a signed dtype are
 * below one above INT64_MAX, as they are below infinity.
 */
int op_compare_scalar(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar other)
{
	struct pointwise_arg arg[] = { { .t = self }, { .s = other } };
	enum tensor_dtype wide = self->dtype == TENSOR_U64 ? TENSOR_F64 : TENSOR_I64;

	if (dtype_is_reduced_float(self->dtype))
		other = rounded(other, self->dtype);
	if (unlikely(other.kind == TENSOR_SCALAR_UINT) && dtype_is_int(self->dtype) &&
	    self->dtype != TENSOR_U64) {
		arg[1].s = tensor_scalar_float(INFINITY);
		return pointwise_nary(op, op->kernels, out, arg, 2, TENSOR_F64, TENSOR_BOOL, NULL);
	}
	if (likely(other.kind != TENSOR_SCALAR_INT || !dtype_is_int(self->dtype) ||
		   in_range(other.i, self->dtype)))
		return pointwise_binary_scalar(op, op->kernels, out, self, other, NULL);
	return pointwise_nary(op, op->kernels, out, arg, 2, wide, TENSOR_BOOL, NULL);
}

/* ---- rsub: other - alpha * self ---- */

int op_rsub(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
	    tensor_scalar alpha)
{
	return op_sub(op, out, other, self, alpha);
}

int op_rsub_scalar(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar other,
		   tensor_scalar alpha)
{
	const struct pointwise_arg arg[] = { { .s = other }, { .t = self } };
	struct pointwise_params params = { .a = alpha };

	if (scalar_double(alpha) == 1 && !scalar_imag(alpha))
		return pointwise_by_rule(op, &kernels_sub, out, arg, 2, NULL);
	if (self->dtype == TENSOR_BOOL)
		return tensor_kernel_no_dtype("rsub", self->dtype, "cpu");
	if (alpha.kind >= TENSOR_SCALAR_FLOAT && dtype_is_integral(pointwise_common(arg, 2)))
		return tensor_fail(EINVAL, "%s: alpha must be an integer for dtype %s",
				   op->schema.name, tensor_dtype_name(self->dtype));
	if (alpha.kind >= TENSOR_SCALAR_FLOAT)
		params.a.d = -alpha.d, params.a.imag = -alpha.imag;
	else
		params.a.i = -alpha.i;
	return pointwise_by_rule(op, &kernels_add_alpha, out, arg, 2, &params);
}

/* ---- powers ---- */

int op_pow_scalar(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar exponent)
{
	const struct pointwise_arg arg[] = { { .t = self }, { .s = exponent } };
	enum tensor_dtype common = pointwise_common(arg, 2);
	const struct tensor_kernel_table *kernels = NULL;
	double e = scalar_double(exponent);

	if (dtype_is_integral(common) && exponent.kind == TENSOR_SCALAR_INT && exponent.i < 0)
		return tensor_fail(EINVAL, "%s: an integer cannot be raised to a negative power",
				   op->schema.name);
	if (!scalar_imag(exponent) && common != TENSOR_BOOL) {
		bool fraction = !dtype_is_integral(common);

		kernels = e == 2 ? &kernels_square : e == 3 ? &kernels_cube : NULL;
		if (fraction && !kernels)
			kernels = e == 0.5  ? &kernels_sqrt :
				  e == -0.5 ? &kernels_rsqrt :
				  e == -1   ? &kernels_reciprocal :
				  e == -2   ? &kernels_inverse_square :
					      NULL;
	}
	if (kernels)
		return pointwise_nary(op, kernels, out, arg, 1, common, common, NULL);
	if (common == TENSOR_BOOL) /* x ** true is x, x ** false is true */
		return pointwise_nary(op, &kernels_bitwise_or, out,
				      (struct pointwise_arg[]){
					      arg[0], { .s = tensor_scalar_bool(!exponent.i) } },
				      2, common, common, NULL);
	return pointwise_nary(op, op->kernels, out, arg, 2, common, common, NULL);
}

/* ---- quotients ---- */

/* mode: "floor", "trunc", or NULL for the exact quotient. */
static int divide(const struct tensor_op *op, tensor **out, const struct pointwise_arg *arg,
		  const char *mode)
{
	enum tensor_dtype common = pointwise_common(arg, 2);
	const struct tensor_kernel_table *kernels;

	if (!mode) {
		common = dtype_to_float(common);
		kernels = &kernels_div;
	} else if (!strcmp(mode, "floor")) {
		kernels = &kernels_div_floor;
	} else if (!strcmp(mode, "trunc")) {
		kernels = &kernels_div_trunc;
	} else {
		return tensor_fail(EINVAL, "%s: rounding_mode must be floor, trunc or none, got %s",
				   op->schema.name, QUOTED(mode));
	}
	return pointwise_nary(op, kernels, out, arg, 2, common, common, NULL);
}

int op_div_mode(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
		const char *rounding_mode)
{
	return divide(op, out, (struct pointwise_arg[]){ { .t = self }, { .t = other } },
		      rounding_mode);
}

int op_div_mode_scalar(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar other,
		       const char *rounding_mode)
{
	return divide(op, out, (struct pointwise_arg[]){ { .t = self }, { .s = other } },
		      rounding_mode);
}
