// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of Fourier transforms: one dimension after another; the last one scales the
 * result. */
#include "ops/op.h"

#include "kernels/abi/fft.h"

#include "family/fft.h"

#include <math.h>

static enum tensor_dtype complex_of(enum tensor_dtype real)
{
	return real == TENSOR_F32 ? TENSOR_C64 :
	       real == TENSOR_F64 ? TENSOR_C128 :
				    TENSOR_DTYPE_NONE;
}

/* Wrap the dimensions and check that they differ. Returns the number of positions, or -1. */
static int64_t check_dims(const struct tensor_op *op, const tensor *self, tensor_ints dim,
			  int64_t normalization, int *dims)
{
	uint32_t mask = 0;
	int64_t n = 1;

	if (normalization < 0 || normalization > 2) {
		tensor_fail(EINVAL, "%s: normalization must be 0, 1 or 2, got %lld",
			    op->schema.name, (long long)normalization);
		return -1;
	}
	if (dim.len > self->ndim) {
		tensor_fail(EINVAL, "%s: %lld dimensions of self %s", op->schema.name,
			    (long long)dim.len, SHAPE_STR(self));
		return -1;
	}
	for (int64_t i = 0; i < dim.len; i++) {
		dims[i] = wrap_dim(op->schema.name, dim.data[i], self->ndim);
		if (dims[i] < 0)
			return -1;
		if (mask >> dims[i] & 1) {
			tensor_fail(EINVAL, "%s: dimension %d is named twice", op->schema.name,
				    dims[i]);
			return -1;
		}
		mask |= 1u << dims[i];
		n *= self->sizes[dims[i]];
	}
	return n;
}

static double scale_of(int64_t normalization, int64_t n)
{
	double positions = n ? (double)n : 1;

	return normalization == 2 ? 1 / positions : normalization == 1 ? 1 / sqrt(positions) : 1;
}

/*
 * t = x transformed along dims and scaled in the last of them; x may be t. x and t are complex and
 * contiguous. dims are not empty.
 */
static int transform(const struct tensor_op *op, tensor *t, const tensor *x, const int *dims, int n,
		     bool forward, double scale)
{
	fft_c2c_kernel fn = (fft_c2c_kernel)op_kernel(op, &kernels_fft_c2c, t);
	int err = fn ? 0 : error_code();

	for (int i = n - 1; i >= 0 && !err; i--, x = t)
		err = fn(t, x, dims[i], forward, i ? 1 : scale);
	return err;
}

/* As transform(), to a new tensor; NULL with the error set. */
static tensor *transformed(const struct tensor_op *op, tensor *self, const int *dims, int n,
			   bool forward, double scale)
{
	tensor *x = operand_contiguous(self),
	       *t = x ? tensor_new_like(self, self->sizes, self->ndim) : NULL;

	if (t && (n ? transform(op, t, x, dims, n, forward, scale) : operand_copy(t, x)) < 0) {
		tensor_put(t);
		t = NULL;
	}
	tensor_put(x);
	return t;
}

/* Set *out from the kernels' result t, which is consumed. */
static int return_result(const struct tensor_op *op, tensor **out, const tensor *self, tensor *t,
			 int err)
{
	const tensor *inputs[] = { self };
	struct op_output o;

	if (!t || err) {
		tensor_put(t);
		return err ? err : error_code();
	}
	if (!*out) {
		*out = t;
		return 0;
	}
	err = output_begin_apart(op, &o, *out, t->dtype, t->sizes, t->ndim, inputs, 1);
	if (!err)
		err = output_end(op, &o, out, operand_copy(o.t, t));
	tensor_put(t);
	return err;
}

/* As check_dims(), for an operator on a complex self. */
static int64_t check_complex(const struct tensor_op *op, const tensor *self, tensor_ints dim,
			     int64_t normalization, int *dims)
{
	if (!dtype_is_complex(self->dtype))
		return tensor_fail(EINVAL, "%s: self must be complex, got %s", op->schema.name,
				   tensor_dtype_name(self->dtype)),
		       -1;
	return check_dims(op, self, dim, normalization, dims);
}

int op_fft_c2c(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim,
	       int64_t normalization, bool forward)
{
	int dims[TENSOR_MAX_DIMS];
	int64_t n;

	n = check_complex(op, self, dim, normalization, dims);
	if (n < 0)
		return error_code();
	return return_result(
		op, out, self,
		transformed(op, self, dims, (int)dim.len, forward, scale_of(normalization, n)), 0);
}

int op_fft_r2c(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim,
	       int64_t normalization, bool onesided)
{
	fft_r2c_kernel fn = (fft_r2c_kernel)op_kernel(op, op->kernels, self);
	int64_t sizes[TENSOR_MAX_DIMS], n;
	int dims[TENSOR_MAX_DIMS], last, err = 0;
	tensor *x, *t;
	double scale;

	if (!fn)
		return error_code();
	if (!complex_of(self->dtype))
		return tensor_fail(EINVAL, "%s: self must be f32 or f64, got %s", op->schema.name,
				   tensor_dtype_name(self->dtype));
	n = check_dims(op, self, dim, normalization, dims);
	if (n < 0)
		return error_code();
	if (!dim.len)
		return tensor_fail(EINVAL, "%s: a dimension is needed", op->schema.name);
	last = dims[dim.len - 1];
	if (!self->sizes[last])
		return tensor_fail(EINVAL, "%s: dimension %d of self %s has no positions",
				   op->schema.name, last, SHAPE_STR(self));
	memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
	if (onesided)
		sizes[last] = sizes[last] / 2 + 1;
	scale = scale_of(normalization, n);
	x = operand_contiguous(self);
	t = x ? tensor_new(self->device, complex_of(self->dtype), sizes, self->ndim) : NULL;
	if (t)
		err = fn(t, x, last, dim.len > 1 ? 1 : scale);
	if (t && !err && dim.len > 1)
		err = transform(op, t, t, dims, (int)dim.len - 1, true, scale);
	tensor_put(x);
	return return_result(op, out, self, t, err);
}

int op_fft_c2r(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim,
	       int64_t normalization, int64_t last_dim_size)
{
	fft_c2r_kernel fn = (fft_c2r_kernel)op_kernel(op, op->kernels, self);
	int64_t sizes[TENSOR_MAX_DIMS], n;
	int dims[TENSOR_MAX_DIMS], last, err = 0;
	tensor *x, *t;

	if (!fn)
		return error_code();
	n = check_complex(op, self, dim, normalization, dims);
	if (n < 0)
		return error_code();
	last = dim.len ? dims[dim.len - 1] : 0;
	if (!dim.len || last_dim_size < 1 || self->sizes[last] != last_dim_size / 2 + 1)
		return tensor_fail(
			EINVAL, "%s: the last of dim must have %lld / 2 + 1 positions, self is %s",
			op->schema.name, (long long)last_dim_size, SHAPE_STR(self));
	memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
	n = n / sizes[last] * last_dim_size;
	sizes[last] = last_dim_size;
	x = dim.len > 1 ? transformed(op, self, dims, (int)dim.len - 1, false, 1) :
			  operand_contiguous(self);
	t = x ? tensor_new(self->device, dtype_real(self->dtype), sizes, self->ndim) : NULL;
	if (t)
		err = fn(t, x, last, scale_of(normalization, n));
	tensor_put(x);
	return return_result(op, out, self, t, err);
}
