// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* isclose and allclose: comparison within a tolerance. */
#include "ops/pointwise/pointwise.h"

#include "base/dtype.h"
#include "core/scope.h"
#include "family/binary.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/unary.h"

static int check_close(tensor *self, tensor *other, double rtol, double atol)
{
	if (self->dtype != other->dtype)
		return tensor_fail(
			EINVAL,
			"isclose: self is %s and other is %s; both must have the same dtype",
			tensor_dtype_name(self->dtype), tensor_dtype_name(other->dtype));
	if (!(rtol >= 0) || !(atol >= 0))
		return tensor_fail(EINVAL,
				   "isclose: rtol and atol must not be negative, got %g and %g",
				   rtol, atol);
	return 0;
}

static tensor *both_nan(tensor *self, tensor *other)
{
	return tensor_bitwise_and(tensor_ne(self, self), tensor_ne(other, other));
}

/* |self - other| <= atol + |rtol * other|, where the left side is finite. Integers are compared as f32. */
static tensor *within(tensor *self, tensor *other, double rtol, double atol)
{
	tensor *number = dtype_is_integral(other->dtype) ?
				 tensor_to(other, (tensor_options){ .dtype = TENSOR_F32 }) :
				 other;
	tensor *allowed =
		tensor_add_scalar(tensor_abs(tensor_mul_scalar(number, tensor_scalar_float(rtol))),
				  tensor_scalar_float(atol));
	tensor *distance = tensor_abs(tensor_sub(self, number));

	return tensor_bitwise_and(tensor_isfinite(distance), tensor_le(distance, allowed));
}

static tensor *isclose(tensor *self, tensor *other, double rtol, double atol, bool equal_nan)
{
	tensor *close = tensor_eq(self, other);

	if (equal_nan && !dtype_is_integral(self->dtype))
		close = tensor_bitwise_or(close, both_nan(self, other));
	if (rtol || atol)
		close = tensor_bitwise_or(close, within(self, other, rtol, atol));
	return close;
}

tensor *composite_isclose(tensor *self, tensor *other, double rtol, double atol, bool equal_nan)
{
	struct tensor_scope_guard guard;

	if (check_close(self, other, rtol, atol) < 0)
		return NULL;
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, isclose(self, other, rtol, atol, equal_nan));
}

int composite_allclose(tensor *self, tensor *other, double rtol, double atol, bool equal_nan,
		       bool *result)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	int err = tensor_is_nonzero(tensor_all(tensor_isclose(self, other, rtol, atol, equal_nan)),
				    result);

	scope_leave(&guard);
	return err;
}
