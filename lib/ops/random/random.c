// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Random numbers: arguments become the parameters of a kernel, which fills contiguous memory. A
 * non-contiguous tensor is filled through a copy, so the numbers do not depend on strides. */
#include "ops/random/random.h"

#include "family/factory.h"
#include "family/pointwise.h"
#include "family/random.h"

#include <math.h>

static bool is_wide(enum tensor_dtype dtype)
{
	return dtype_real(dtype) == TENSOR_F64;
}

/* x rounded to the dtype. */
static double rounded(enum tensor_dtype dtype, double x)
{
	tensor_scalar value = { .kind = TENSOR_SCALAR_NONE };
	uint64_t bits = 0;

	tensor_element_store(&bits, dtype, tensor_scalar_float(x));
	element_load(&bits, dtype, &value);
	return scalar_double(value);
}

/* Largest value of the dtype below x, which is a value of the dtype. */
static double value_below(enum tensor_dtype dtype, double x)
{
	uint64_t sign = (uint64_t)1 << (8 * dtype_sizes[dtype] - 1), bits = 0;
	tensor_scalar value = { .kind = TENSOR_SCALAR_NONE };

	tensor_element_store(&bits, dtype, tensor_scalar_float(x));
	if (!(bits & ~sign))
		bits = sign | 1;
	else
		bits += bits & sign ? 1 : -1;
	element_load(&bits, dtype, &value);
	return scalar_double(value);
}

int random_uniform(const char *op, enum tensor_dtype dtype, double from, double to,
		   struct random_params *p)
{
	enum tensor_dtype real = dtype_real(dtype);
	double low, high;

	if (!dtype_is_float(real))
		return tensor_kernel_no_dtype(op, dtype, "cpu");
	low = rounded(real, from);
	high = rounded(real, to);
	if (!isfinite(low) || !isfinite(high) || !isfinite(rounded(real, high - low)))
		return tensor_fail(EINVAL, "%s: from %g to %g is out of range for %s", op, from, to,
				   tensor_dtype_name(real));
	if (from > to)
		return tensor_fail(EINVAL, "%s: from must not be above to, got %g and %g", op, from,
				   to);
	*p = (struct random_params){ .wide = is_wide(dtype), .a = low, .b = high - low };
	p->limit = high > low ? value_below(real, high) : low;
	return 0;
}

int random_normal(const char *op, enum tensor_dtype dtype, double mean, double std,
		  struct random_params *p)
{
	bool complex = dtype_is_complex(dtype);

	if (!dtype_is_float(dtype_real(dtype)))
		return tensor_kernel_no_dtype(op, dtype, "cpu");
	if (!(std >= 0))
		return tensor_fail(EINVAL, "%s: std must not be negative, got %g", op, std);
	/* Real and imaginary part each have half the variance. */
	*p = (struct random_params){ .wide = is_wide(dtype),
				     .a = mean,
				     .limit = complex ? 0 : mean,
				     .b = complex ? std * M_SQRT1_2 : std };
	return 0;
}

int random_digits(enum tensor_dtype dtype)
{
	static const uint8_t digits[TENSOR_DTYPE_COUNT] = {
		[TENSOR_F16] = 11, [TENSOR_BF16] = 8,	   [TENSOR_F32] = 24,
		[TENSOR_F64] = 53, [TENSOR_F8_E4M3FN] = 4, [TENSOR_F8_E5M2] = 3
	};

	return digits[dtype];
}

/* Integers in the dtype's range or, for floating dtypes, those it represents exactly. The caller
 * rejects complex dtypes, which have no order. */
static void whole_range(enum tensor_dtype dtype, int64_t *first, int64_t *last)
{
	int digits = random_digits(dtype);

	*first = *last = 0;
	if (dtype_is_complex(dtype))
		return;
	*last = digits ? (int64_t)1 << digits : dtype_greatest(dtype);
	*first = digits ? -*last : dtype_least(dtype);
}

static int integers(const char *op, enum tensor_dtype dtype, int64_t from, int64_t last,
		    struct random_params *p)
{
	int64_t low, high;
	bool fits;

	if (dtype_is_complex(dtype))
		return tensor_kernel_no_dtype(op, dtype, "cpu");
	whole_range(dtype, &low, &high);
	fits = dtype_is_float(dtype) ? isfinite(rounded(dtype, (double)from)) &&
					       isfinite(rounded(dtype, (double)last)) :
				       from >= low && last <= high;
	if (!fits)
		return tensor_fail(EINVAL, "%s: %lld to %lld is out of range for %s", op,
				   (long long)from, (long long)last, tensor_dtype_name(dtype));
	*p = (struct random_params){ .from = from, .range = (uint64_t)last - (uint64_t)from + 1 };
	p->wide = !p->range || p->range > 1 << 24;
	return 0;
}

int random_integers(const char *op, enum tensor_dtype dtype, int64_t from, int64_t to,
		    struct random_params *p)
{
	if (from >= to)
		return tensor_fail(EINVAL, "%s: from must be below to, got %lld and %lld", op,
				   (long long)from, (long long)to);
	return integers(op, dtype, from, to - 1, p);
}

/* ---- filling ---- */

int random_draw(const struct tensor_op *op, const struct tensor_kernel_table *kernels, tensor *t,
		struct random_params *p, tensor_generator *g)
{
	random_kernel fn = (random_kernel)op_kernel(op, kernels, t);

	if (!fn)
		return error_code();
	if (!t->numel)
		return 0;
	if (random_take(p, t, g, t->numel * (dtype_is_complex(t->dtype) ? 2 : 1)) < 0)
		return error_code();
	return fn(t, p);
}

int random_op(const struct tensor_op *op, tensor **out, tensor *self, struct random_params *p,
	      tensor_generator *g)
{
	struct op_output o = { .given = *out, .dtype = self->dtype };

	if (*out && tensor_overlaps_itself(self))
		return tensor_fail(EINVAL, "%s: elements of self share memory; clone it first",
				   op->schema.name);
	o.t = *out && self->contiguous ? self : tensor_new_like(self, self->sizes, self->ndim);
	if (!o.t)
		return error_code();
	return output_end(op, &o, out, random_draw(op, op->kernels, o.t, p, g));
}

tensor *random_filled(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		      tensor *t, struct random_params *p, tensor_generator *g)
{
	if (t && random_draw(op, kernels, t, p, g) < 0) {
		tensor_put(t);
		return NULL;
	}
	return t;
}

/* ---- operator functions ---- */

int op_uniform(const struct tensor_op *op, tensor **out, tensor *self, double from, double to,
	       tensor_generator *generator)
{
	struct random_params p;

	if (random_uniform(op->schema.name, self->dtype, from, to, &p) < 0)
		return error_code();
	return random_op(op, out, self, &p, generator);
}

int op_normal(const struct tensor_op *op, tensor **out, tensor *self, double mean, double std,
	      tensor_generator *generator)
{
	struct random_params p;

	if (random_normal(op->schema.name, self->dtype, mean, std, &p) < 0)
		return error_code();
	return random_op(op, out, self, &p, generator);
}

int op_exponential(const struct tensor_op *op, tensor **out, tensor *self, double lambd,
		   tensor_generator *generator)
{
	struct random_params p = { .wide = is_wide(self->dtype), .a = lambd };

	if (!dtype_is_float(self->dtype))
		return tensor_kernel_no_dtype(op->schema.name, self->dtype, "cpu");
	if (!(lambd > 0))
		return tensor_fail(EINVAL, "%s: lambd must be above 0, got %g", op->schema.name,
				   lambd);
	return random_op(op, out, self, &p, generator);
}

int op_random(const struct tensor_op *op, tensor **out, tensor *self, tensor_generator *generator)
{
	return op_random_from(op, out, self, 0, TENSOR_NONE, generator);
}

int op_random_to(const struct tensor_op *op, tensor **out, tensor *self, int64_t to,
		 tensor_generator *generator)
{
	return op_random_from(op, out, self, 0, to, generator);
}

int op_random_from(const struct tensor_op *op, tensor **out, tensor *self, int64_t from, int64_t to,
		   tensor_generator *generator)
{
	struct random_params p;
	int64_t first, last;
	int err;

	whole_range(self->dtype, &first, &last);
	if (to != TENSOR_NONE)
		err = random_integers(op->schema.name, self->dtype, from, to, &p);
	else if (from > last)
		err = tensor_fail(EINVAL, "%s: from must be at most %lld for %s, got %lld",
				  op->schema.name, (long long)last, tensor_dtype_name(self->dtype),
				  (long long)from);
	else
		err = integers(op->schema.name, self->dtype, from, last, &p);
	return err < 0 ? err : random_op(op, out, self, &p, generator);
}

/* ---- like another tensor ---- */

/* Returns t if `filled`, the result of an in-place operator on it, is not NULL. Consumes t. */
static tensor *or_release(tensor *t, tensor *filled)
{
	if (!filled)
		tensor_put(t);
	return filled;
}

tensor *composite_rand_like_generator(tensor *self, tensor_generator *generator,
				      tensor_options options)
{
	tensor *t = call_empty_like(self, options);

	return t ? or_release(t, call_uniform_(t, 0, 1, generator)) : NULL;
}

tensor *composite_rand_like(tensor *self, tensor_options options)
{
	return composite_rand_like_generator(self, NULL, options);
}

tensor *composite_randn_like_generator(tensor *self, tensor_generator *generator,
				       tensor_options options)
{
	tensor *t = call_empty_like(self, options);

	return t ? or_release(t, call_normal_(t, 0, 1, generator)) : NULL;
}

tensor *composite_randn_like(tensor *self, tensor_options options)
{
	return composite_randn_like_generator(self, NULL, options);
}

tensor *composite_randint_like_low(tensor *self, int64_t low, int64_t high, tensor_options options)
{
	tensor *t = call_empty_like(self, options);

	return t ? or_release(t, call_random__from(t, low, high, NULL)) : NULL;
}

tensor *composite_randint_like(tensor *self, int64_t high, tensor_options options)
{
	return composite_randint_like_low(self, 0, high, options);
}

/* ---- normal with mean or deviation per element ---- */

tensor *explicit_normal_tensor_float(tensor *mean, double std, tensor_generator *generator)
{
	tensor *t = call_empty_like(mean, (tensor_options){ 0 });

	if (!t || !call_normal_(t, 0, std, generator))
		return or_release(t, NULL);
	return or_release(t, call_add__Tensor(t, mean, tensor_scalar_int(1)));
}

tensor *explicit_normal_float_tensor(double mean, tensor *std, tensor_generator *generator)
{
	tensor *t = call_empty_like(std, (tensor_options){ 0 });

	if (!t || !call_normal_(t, 0, 1, generator) || !call_mul__Tensor(t, std))
		return or_release(t, NULL);
	return or_release(t, call_add__Scalar(t, tensor_scalar_float(mean), tensor_scalar_int(1)));
}

tensor *explicit_normal_tensor_tensor(tensor *mean, tensor *std, tensor_generator *generator)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	int ndim = iter_broadcast_sizes("normal", mean, std, sizes);
	tensor *t;

	if (ndim < 0)
		return NULL;
	t = tensor_new(mean->device, tensor_result_type(mean, std), sizes, ndim);
	if (!t || !call_normal_(t, 0, 1, generator) || !call_mul__Tensor(t, std))
		return or_release(t, NULL);
	return or_release(t, call_add__Tensor(t, mean, tensor_scalar_int(1)));
}
