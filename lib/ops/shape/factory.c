// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Factories: tensors from sizes and options. */
#include "ops/op.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/ranges.h"

#include <math.h>

tensor *factory_empty(tensor_ints size, tensor_options options)
{
	return tensor_new_opt(options, size.data, (int)size.len);
}

tensor *factory_empty_strided(tensor_ints size, tensor_ints stride, tensor_options options)
{
	if (size.len != stride.len)
		return tensor_fail_null(EINVAL, "empty_strided: %lld sizes, but %lld strides",
					(long long)size.len, (long long)stride.len);
	return tensor_new_strided(options, size.data, stride.data, (int)size.len);
}

/* Fill t and return it; consumes t on failure. */
static tensor *filled(tensor *t, tensor_scalar value)
{
	if (t && !call_fill__Scalar(t, value)) {
		tensor_put(t);
		return NULL;
	}
	return t;
}

static uint8_t fill_dtype(tensor_scalar s)
{
	static const uint8_t of_kind[] = { TENSOR_F32, TENSOR_BOOL, TENSOR_I64,
					   TENSOR_U64, TENSOR_F32,  TENSOR_C64 };

	return of_kind[s.kind];
}

tensor *factory_full(tensor_ints size, tensor_scalar fill_value, tensor_options options)
{
	if (!options.dtype)
		options.dtype = fill_dtype(fill_value);
	return filled(factory_empty(size, options), fill_value);
}

/* Up to this size memset() is faster than the call of a kernel. */
#define SMALL 65536

tensor *factory_zeros(tensor_ints size, tensor_options options)
{
	tensor *t = factory_empty(size, options);
	int64_t nbytes = t ? t->numel * (int64_t)itemsize(t) : 0;

	/* 0 is all bits 0 in every dtype. */
	if (likely(t && t->keys == KEY_BIT(TENSOR_KEY_CPU) && nbytes <= SMALL)) {
		memset(t->data, 0, nbytes);
		return t;
	}
	return filled(t, tensor_scalar_int(0));
}

tensor *factory_ones(tensor_ints size, tensor_options options)
{
	return filled(factory_empty(size, options), tensor_scalar_int(1));
}

/* Number of elements of a range, or -1 with the error set. Integer ranges are counted exactly. */
static int64_t range_length(tensor_scalar start, tensor_scalar end, tensor_scalar step)
{
	bool integer = start.kind <= TENSOR_SCALAR_INT && end.kind <= TENSOR_SCALAR_INT &&
		       step.kind <= TENSOR_SCALAR_INT;
	double from = scalar_double(start), to = scalar_double(end), by = scalar_double(step);
	double n;

	if (!(by != 0) || !isfinite(from) || !isfinite(to) || !isfinite(by))
		return tensor_fail(EINVAL,
				   "arange: start, end and step must be finite and step not 0, got "
				   "%g, %g and %g",
				   from, to, by),
		       -1;
	if ((to - from) / by < 0)
		return tensor_fail(EINVAL, "arange: a step of %g has the wrong sign for %g to %g",
				   by, from, to),
		       -1;
	if (integer) {
		__int128 span = (__int128)end.i - start.i, s = step.i;

		n = (double)((span + s - (s > 0 ? 1 : -1)) / s);
	} else {
		n = ceil((to - from) / by);
	}
	if (n > 0x1p60)
		return tensor_fail(EOVERFLOW, "arange: too many elements: %g", n), -1;
	return (int64_t)n;
}

/* Reduced floats are computed in f32 and rounded once. */
static tensor *arange_reduced_float(tensor_scalar start, tensor_scalar end, tensor_scalar step,
				    tensor_options options)
{
	enum tensor_dtype want = options.dtype;
	tensor *wide, *t;

	options.dtype = dtype_wide(want);
	wide = factory_arange_step(start, end, step, options);
	t = wide ? operand_cast(wide, want) : NULL;
	tensor_put(wide);
	return t;
}

tensor *factory_arange_step(tensor_scalar start, tensor_scalar end, tensor_scalar step,
			    tensor_options options)
{
	const struct pointwise_params params = { .a = start, .b = step };
	int64_t n = range_length(start, end, step);
	struct tensor_iter it;
	pointwise_kernel fn;
	tensor *t;

	if (n < 0)
		return NULL;
	if (options.dtype && dtype_wide(options.dtype) != options.dtype)
		return arange_reduced_float(start, end, step, options);
	if (!options.dtype)
		options.dtype = start.kind >= TENSOR_SCALAR_FLOAT ||
						end.kind >= TENSOR_SCALAR_FLOAT ||
						step.kind >= TENSOR_SCALAR_FLOAT ?
					TENSOR_F32 :
					TENSOR_I64;
	t = tensor_new_opt(options, &n, 1);
	if (!t)
		return NULL;
	fn = (pointwise_kernel)op_kernel(&entry_arange, &kernels_arange, t);
	if (!fn)
		goto failed;
	it.dtype = t->dtype;
	iter_build(&it, (const tensor *const[]){ t }, 1);
	if (fn(&it, &params) < 0)
		goto failed;
	return t;
failed:
	tensor_put(t);
	return NULL;
}

tensor *factory_arange_start(tensor_scalar start, tensor_scalar end, tensor_options options)
{
	return factory_arange_step(start, end, tensor_scalar_int(1), options);
}

tensor *factory_arange(tensor_scalar end, tensor_options options)
{
	return factory_arange_step(tensor_scalar_int(0), end, tensor_scalar_int(1), options);
}

tensor *composite_zeros_like(tensor *self, tensor_options options)
{
	return filled(call_empty_like(self, options), tensor_scalar_int(0));
}

tensor *composite_ones_like(tensor *self, tensor_options options)
{
	return filled(call_empty_like(self, options), tensor_scalar_int(1));
}

tensor *composite_full_like(tensor *self, tensor_scalar fill_value, tensor_options options)
{
	return filled(call_empty_like(self, options), fill_value);
}
