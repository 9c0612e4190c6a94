// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Quantize and dequantize in floating point, for training. Rounding has no useful derivative: the
 * gradient passes unchanged, and is zero where a value was clamped. */
#include "ops/quantized/quantized.h"

#include "family/binary.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/pointwise.h"
#include "family/quantized.h"
#include "family/ternary.h"
#include "family/unary.h"
#include "family/view.h"

static int check_range(const char *op, const tensor *self, int64_t quant_min, int64_t quant_max)
{
	if (!dtype_is_float(self->dtype))
		return tensor_fail(EINVAL, "%s: self must be of a floating dtype, got %s", op,
				   tensor_dtype_name(self->dtype));
	if (quant_min > quant_max)
		return tensor_fail(EINVAL, "%s: quant_min %lld is greater than quant_max %lld", op,
				   (long long)quant_min, (long long)quant_max);
	return 0;
}

/* Quantize and dequantize self; scale, inverse and zero broadcast to it. Results are owned. */
static int fake_quantize(tensor *self, tensor *scale, tensor *inverse, tensor *zero,
			 int64_t quant_min, int64_t quant_max, tensor **output, tensor **mask)
{
	tensor_scalar low = TENSOR_SCALAR(quant_min), high = TENSOR_SCALAR(quant_max);
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *q = tensor_add(tensor_round(tensor_mul(self, inverse)), zero);

	*mask = tensor_logical_and(tensor_ge_scalar(q, low), tensor_le_scalar(q, high));
	*output = tensor_mul(tensor_sub(tensor_clamp(q, low, high), zero), scale);
	*output = *output ? operand_cast(*output, self->dtype) : NULL;
	*mask = *output && *mask ? tensor_get(*mask) : NULL;
	scope_leave(&guard);
	if (*mask)
		return 0;
	tensor_put(*output);
	*output = NULL;
	return error_code();
}

int kernel_fake_quantize_mask(tensor *self, double scale, int64_t zero_point, int64_t quant_min,
			      int64_t quant_max, tensor **output, tensor **mask)
{
	const char *op = "fake_quantize_per_tensor_affine";
	tensor_scalar inverse = tensor_scalar_float(1.0f / (float)scale);
	int err = -ENOMEM;

	if (check_range(op, self, quant_min, quant_max) < 0)
		return error_code();
	if (zero_point < quant_min || zero_point > quant_max)
		return tensor_fail(EINVAL,
				   "%s: zero_point %lld must be from quant_min to quant_max", op,
				   (long long)zero_point);
	tensor_scope {
		tensor_options f32 = TENSOR_OPTIONS(.dtype = TENSOR_F32);
		tensor *s = tensor_full(TENSOR_SCALAR_SHAPE, tensor_scalar_float(scale), f32);
		tensor *i = tensor_full(TENSOR_SCALAR_SHAPE, inverse, f32);
		tensor *z = tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(zero_point), f32);

		err = !s || !i || !z ?
			      error_code() :
			      fake_quantize(self, s, i, z, quant_min, quant_max, output, mask);
	}
	return err;
}

tensor *composite_fake_quantize(tensor *self, double scale, int64_t zero_point, int64_t quant_min,
				int64_t quant_max)
{
	tensor *output = NULL, *mask = NULL;

	if (call_fake_quantize_per_tensor_affine_cachemask(self, scale, zero_point, quant_min,
							   quant_max, &output, &mask) < 0)
		return NULL;
	tensor_put(mask);
	return output;
}

/* t as a tensor of self's rank with the channels along axis. */
static tensor *broadcast_channels(tensor *t, const tensor *self, int axis)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	for (int d = 0; d < self->ndim; d++)
		sizes[d] = d == axis ? self->sizes[d] : 1;
	return tensor_reshape(tensor_to(t, TENSOR_OPTIONS(.dtype = TENSOR_F32)),
			      (tensor_ints){ sizes, self->ndim });
}

int kernel_fake_quantize_channel_mask(tensor *self, tensor *scale, tensor *zero_point, int64_t axis,
				      int64_t quant_min, int64_t quant_max, tensor **output,
				      tensor **mask)
{
	const char *op = "fake_quantize_per_channel_affine";
	int a = wrap_dim(op, axis, self->ndim), err = -ENOMEM;

	if (a < 0 || check_range(op, self, quant_min, quant_max) < 0)
		return error_code();
	if (!self->ndim || scale->ndim != 1 || zero_point->ndim != 1 ||
	    scale->sizes[0] != self->sizes[a] || zero_point->sizes[0] != self->sizes[a])
		return tensor_fail(EINVAL,
				   "%s: scale and zero_point must be [%lld] for axis %d, got %s "
				   "and %s",
				   op, self->ndim ? (long long)self->sizes[a] : 1, a,
				   SHAPE_STR(scale), SHAPE_STR(zero_point));
	tensor_scope {
		tensor *s = broadcast_channels(scale, self, a),
		       *z = broadcast_channels(zero_point, self, a);
		tensor *i = tensor_reciprocal(s);

		err = !i || !z ? error_code() :
				 fake_quantize(self, s, i, z, quant_min, quant_max, output, mask);
	}
	return err;
}

tensor *composite_fake_quantize_channel(tensor *self, tensor *scale, tensor *zero_point,
					int64_t axis, int64_t quant_min, int64_t quant_max)
{
	tensor *output = NULL, *mask = NULL;

	if (call_fake_quantize_per_channel_affine_cachemask(
		    self, scale, zero_point, axis, quant_min, quant_max, &output, &mask) < 0)
		return NULL;
	tensor_put(mask);
	return output;
}
