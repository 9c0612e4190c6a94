// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of elementwise operators with three operands, of which some may be scalars:
 * clamp, where, masked_fill, lerp, addcmul, addcdiv; and nan_to_num. */
#include "ops/pointwise/pointwise.h"

#include "family/copy.h"
#include "family/ternary.h"
#include "family/unary.h"

#include <float.h>
#include <math.h>

/* ---- clamp ---- */

/* Largest value of a dtype, for an upper limit that is not given. -1 wraps to the largest u64. */
static tensor_scalar greatest(enum tensor_dtype dtype)
{
	if (!dtype_is_integral(dtype))
		return tensor_scalar_float(INFINITY);
	return tensor_scalar_int(dtype == TENSOR_U64 ? -1 : dtype_greatest(dtype));
}

static tensor_scalar least(enum tensor_dtype dtype)
{
	return dtype_is_integral(dtype) ? tensor_scalar_int(dtype_least(dtype)) :
					  tensor_scalar_float(-INFINITY);
}

static int bad_end(const struct tensor_op *op, const char *name, int64_t end,
		   enum tensor_dtype dtype)
{
	return tensor_fail(EINVAL, "%s: %s is %lld, out of range for %s", op->schema.name, name,
			   (long long)end, tensor_dtype_name(dtype));
}

int pointwise_clamp(const struct tensor_op *op, tensor **out, tensor *self, enum tensor_dtype dtype,
		    tensor_scalar min, tensor_scalar max)
{
	const struct pointwise_arg arg = { .t = self };
	struct pointwise_params params = { .a = least(dtype), .b = greatest(dtype) };

	if (dtype_is_complex(dtype))
		return tensor_kernel_no_dtype("clamp", dtype, "cpu");
	if (!dtype_is_integral(dtype)) {
		bool nan = (min.kind && isnan(scalar_double(min))) ||
			   (max.kind && isnan(scalar_double(max)));

		params.a = min.kind ? min : params.a;
		params.b = max.kind ? max : params.b;
		if (nan)
			params.a = tensor_scalar_float(NAN);
		return pointwise_nary(op, nan ? &kernels_fill : &kernels_clamp, out, &arg, 1, dtype,
				      dtype, &params);
	}
	if (min.kind && scalar_int(min) > dtype_greatest(dtype))
		return bad_end(op, "min", scalar_int(min), dtype);
	if (max.kind && scalar_int(max) < params.a.i)
		return bad_end(op, "max", scalar_int(max), dtype);
	if (min.kind && scalar_int(min) > params.a.i)
		params.a = tensor_scalar_int(scalar_int(min));
	if (max.kind && scalar_int(max) < dtype_greatest(dtype))
		params.b = tensor_scalar_int(scalar_int(max));
	return pointwise_nary(op, &kernels_clamp, out, &arg, 1, dtype, dtype, &params);
}

int op_clamp(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar min,
	     tensor_scalar max)
{
	struct pointwise_arg arg[3] = { { .t = self } };
	int n = 1;

	if (min.kind)
		arg[n++].s = min;
	if (max.kind)
		arg[n++].s = max;
	if (n == 1)
		return tensor_fail(EINVAL, "%s: at least one of min and max is needed",
				   op->schema.name);
	return pointwise_clamp(op, out, self, pointwise_common(arg, n), min, max);
}

int op_clamp_tensor(const struct tensor_op *op, tensor **out, tensor *self, tensor *min,
		    tensor *max)
{
	const struct pointwise_arg both[] = { { .t = self }, { .t = min }, { .t = max } };
	const struct pointwise_arg one[] = { { .t = self }, { .t = min ? min : max } };

	if (min && max)
		return pointwise_by_rule(op, &kernels_clamp_tensor, out, both, 3, NULL);
	if (!min && !max)
		return tensor_fail(EINVAL, "%s: at least one of min and max is needed",
				   op->schema.name);
	return pointwise_by_rule(op, min ? &kernels_maximum : &kernels_minimum, out, one, 2, NULL);
}

/* ---- where and masked_fill ---- */

static int choose(const struct tensor_op *op, tensor **out, tensor *condition,
		  struct pointwise_arg self, struct pointwise_arg other)
{
	const struct pointwise_arg arg[] = { { .t = condition, .dtype = TENSOR_BOOL },
					     self,
					     other };
	enum tensor_dtype common = pointwise_common(arg, 3);

	if (condition->dtype != TENSOR_BOOL && condition->dtype != TENSOR_U8)
		return tensor_fail(EINVAL, "%s: condition must be bool, got %s", op->schema.name,
				   tensor_dtype_name(condition->dtype));
	return pointwise_nary(op, &kernels_where, out, arg, 3, common, common, NULL);
}

int op_where(const struct tensor_op *op, tensor **out, tensor *condition, tensor *self,
	     tensor *other)
{
	return choose(op, out, condition, (struct pointwise_arg){ .t = self },
		      (struct pointwise_arg){ .t = other });
}

int op_where_scalar_self(const struct tensor_op *op, tensor **out, tensor *condition,
			 tensor_scalar self, tensor *other)
{
	return choose(op, out, condition, (struct pointwise_arg){ .s = self },
		      (struct pointwise_arg){ .t = other });
}

int op_where_scalar_other(const struct tensor_op *op, tensor **out, tensor *condition, tensor *self,
			  tensor_scalar other)
{
	return choose(op, out, condition, (struct pointwise_arg){ .t = self },
		      (struct pointwise_arg){ .s = other });
}

int op_where_scalar(const struct tensor_op *op, tensor **out, tensor *condition, tensor_scalar self,
		    tensor_scalar other)
{
	return choose(op, out, condition, (struct pointwise_arg){ .s = self },
		      (struct pointwise_arg){ .s = other });
}

/* self where the mask is false. The result has self's dtype; in place, the mask broadcasts to self.
 */
static int fill_masked(const struct tensor_op *op, tensor **out, tensor *self, tensor *mask,
		       struct pointwise_arg value)
{
	const struct pointwise_arg arg[] = { { .t = mask, .dtype = TENSOR_BOOL },
					     value,
					     { .t = self } };

	if (mask->dtype != TENSOR_BOOL)
		return tensor_fail(EINVAL, "%s: mask must be bool, got %s", op->schema.name,
				   tensor_dtype_name(mask->dtype));
	return pointwise_nary(op, &kernels_where, out, arg, 3, self->dtype, self->dtype, NULL);
}

/* Largest finite value of a floating dtype, including reduced floats. */
static double greatest_finite(enum tensor_dtype dtype)
{
	switch (dtype_real(dtype)) {
	case TENSOR_F16:
		return 65504;
	case TENSOR_BF16:
		return 0x1.fep127;
	case TENSOR_F32:
		return FLT_MAX;
	case TENSOR_F8_E4M3FN:
		return 448;
	case TENSOR_F8_E5M2:
		return 57344;
	default:
		return DBL_MAX;
	}
}

/* False if the scalar overflows the dtype even after rounding. */
static bool fits(tensor_scalar s, enum tensor_dtype dtype)
{
	double v = scalar_double(s);

	if (dtype == TENSOR_BOOL)
		return true;
	if (!dtype_is_integral(dtype))
		return !isfinite(v) || fabs(v) <= greatest_finite(dtype);
	if (s.kind == TENSOR_SCALAR_UINT)
		return dtype == TENSOR_U64;
	if (s.kind <= TENSOR_SCALAR_INT)
		return s.i >= dtype_least(dtype) && s.i <= dtype_greatest(dtype);
	return v > (double)least(dtype).i - 1 && v < (double)greatest(dtype).i + 1;
}

int op_masked_fill(const struct tensor_op *op, tensor **out, tensor *self, tensor *mask,
		   tensor_scalar value)
{
	if (value.kind == TENSOR_SCALAR_COMPLEX && !dtype_is_complex(self->dtype))
		return tensor_fail(EINVAL, "%s: a complex value cannot be stored in %s",
				   op->schema.name, tensor_dtype_name(self->dtype));
	if (!fits(value, self->dtype) && value.kind == TENSOR_SCALAR_UINT &&
	    dtype_is_int(self->dtype))
		return scalar_overflow(op->schema.name, "the value", value, self->dtype);
	if (!fits(value, self->dtype))
		return tensor_fail(EINVAL, "%s: the value %g is beyond the range of %s",
				   op->schema.name, scalar_double(value),
				   tensor_dtype_name(self->dtype));
	return fill_masked(op, out, self, mask, (struct pointwise_arg){ .s = value });
}

int op_masked_fill_tensor(const struct tensor_op *op, tensor **out, tensor *self, tensor *mask,
			  tensor *value)
{
	if (value->ndim)
		return tensor_fail(EINVAL, "%s: value must have no dimensions, got %s",
				   op->schema.name, SHAPE_STR(value));
	if (dtype_is_complex(value->dtype) && !dtype_is_complex(self->dtype))
		return tensor_fail(EINVAL, "%s: a complex value cannot be stored in %s",
				   op->schema.name, tensor_dtype_name(self->dtype));
	return fill_masked(op, out, self, mask, (struct pointwise_arg){ .t = value });
}

/* ---- lerp, addcmul, addcdiv ---- */

static int check_same(const struct tensor_op *op, const char *name, const tensor *self,
		      const tensor *other)
{
	if (likely(self->dtype == other->dtype))
		return 0;
	return tensor_fail(EINVAL, "%s: %s must be %s as self is, got %s", op->schema.name, name,
			   tensor_dtype_name(self->dtype), tensor_dtype_name(other->dtype));
}

int op_lerp(const struct tensor_op *op, tensor **out, tensor *self, tensor *end, tensor *weight)
{
	const struct pointwise_arg arg[] = { { .t = self }, { .t = end }, { .t = weight } };
	enum tensor_dtype common;

	if (check_same(op, "end", self, end) < 0 ||
	    (weight->ndim && check_same(op, "weight", self, weight) < 0))
		return error_code();
	/* A complex 0-d weight makes the result complex. */
	common = pointwise_common(arg, 3);
	return pointwise_nary(op, op->kernels, out, arg, 3, common, common, NULL);
}

int op_lerp_scalar(const struct tensor_op *op, tensor **out, tensor *self, tensor *end,
		   tensor_scalar weight)
{
	const struct pointwise_arg arg[] = { { .t = self }, { .t = end }, { .s = weight } };

	if (check_same(op, "end", self, end) < 0)
		return error_code();
	return pointwise_nary(op, op->kernels, out, arg, 3, self->dtype, self->dtype, NULL);
}

int op_addcmul(const struct tensor_op *op, tensor **out, tensor *self, tensor *tensor1,
	       tensor *tensor2, tensor_scalar value)
{
	const struct pointwise_arg arg[] = { { .t = self }, { .t = tensor1 }, { .t = tensor2 } };
	const struct pointwise_params params = { .a = value };
	enum tensor_dtype common = pointwise_common(arg, 3);

	if (dtype_is_integral(common) && value.kind >= TENSOR_SCALAR_FLOAT)
		return tensor_fail(EINVAL, "%s: value must be an integer for dtype %s",
				   op->schema.name, tensor_dtype_name(common));
	return pointwise_by_rule(op, op->kernels, out, arg, 3, &params);
}

int op_addcdiv(const struct tensor_op *op, tensor **out, tensor *self, tensor *tensor1,
	       tensor *tensor2, tensor_scalar value)
{
	const struct pointwise_arg arg[] = { { .t = self }, { .t = tensor1 }, { .t = tensor2 } };
	const struct pointwise_params params = { .a = value };

	if (dtype_is_integral(tensor1->dtype) && dtype_is_integral(tensor2->dtype))
		return tensor_fail(EINVAL,
				   "%s: tensor1 and tensor2 are both integers, whose "
				   "quotient would not be; convert one",
				   op->schema.name);
	return pointwise_by_rule(op, op->kernels, out, arg, 3, &params);
}

/* ---- nan_to_num ---- */

int op_nan_to_num(const struct tensor_op *op, tensor **out, tensor *self, double nan, double posinf,
		  double neginf)
{
	double most = greatest_finite(self->dtype);
	const struct pointwise_params params = {
		.a = tensor_scalar_float(isnan(nan) ? 0 : nan),
		.b = tensor_scalar_float(isnan(posinf) ? most : posinf),
		.c = tensor_scalar_float(isnan(neginf) ? -most : neginf),
	};

	return pointwise_unary(op, op->kernels, out, self, &params);
}
