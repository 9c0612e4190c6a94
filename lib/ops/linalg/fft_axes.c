// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* fft_fft and the other torch.fft functions: they choose dimensions and sizes, trim or zero-pad the
 * input, and call a transform. Also fftfreq and fftshift. */
#include "ops/op.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/fft.h"
#include "family/cat.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/ranges.h"
#include "family/unary.h"
#include "family/view.h"

/* ---- arguments ---- */

/* Dimensions in the order of transformation, last first, and the size of each. */
struct axes {
	int n;
	int64_t dim[TENSOR_MAX_DIMS], size[TENSOR_MAX_DIMS];
	bool given[TENSOR_MAX_DIMS]; /* the size was an argument */
};

static int add_axis(const char *op, const tensor *self, struct axes *a, int64_t dim, int64_t size)
{
	int d = wrap_dim(op, dim, self->ndim), i = a->n++;

	if (d < 0)
		return error_code();
	for (int k = 0; k < i; k++)
		if (a->dim[k] == d)
			return tensor_fail(EINVAL, "%s: dimension %d is named twice", op, d);
	a->dim[i] = d;
	a->given[i] = size != -1;
	a->size[i] = size == -1 ? self->sizes[d] : size;
	if (a->size[i] < 1)
		return tensor_fail(EINVAL, "%s: the number of positions must be positive, got %lld",
				   op, (long long)a->size[i]);
	return 0;
}

/* s without dim applies to the last dimensions; without both, all dimensions are transformed. */
static int axes_of(const char *op, const tensor *self, tensor_ints s, tensor_ints dim,
		   struct axes *a)
{
	int64_t n = dim.len >= 0 ? dim.len : s.len >= 0 ? s.len : self->ndim;
	int err = 0;

	a->n = 0;
	if (s.len >= 0 && dim.len >= 0 && s.len != dim.len)
		return tensor_fail(EINVAL, "%s: %lld sizes for %lld dimensions", op,
				   (long long)s.len, (long long)dim.len);
	if (n > self->ndim)
		return tensor_fail(EINVAL, "%s: %lld dimensions of self %s", op, (long long)n,
				   SHAPE_STR(self));
	for (int64_t i = 0; i < n && !err; i++)
		err = add_axis(op, self, a, dim.len >= 0 ? dim.data[i] : self->ndim - n + i,
			       s.len >= 0 ? s.data[i] : -1);
	return err;
}

/* Normalization for a name and direction, or -1. */
static int named(const char *op, const char *norm, bool forward)
{
	if (!norm || !strcmp(norm, "backward"))
		return forward ? 0 : 2;
	if (!strcmp(norm, "forward"))
		return forward ? 2 : 0;
	if (!strcmp(norm, "ortho"))
		return 1;
	tensor_fail(EINVAL, "%s: norm must be backward, ortho or forward, got %s", op,
		    QUOTED(norm));
	return -1;
}

/* Trim or zero-pad dimension d to n positions. */
static tensor *resized_along(tensor *x, int64_t d, int64_t n)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	if (!x || x->sizes[d] == n)
		return x;
	if (x->sizes[d] > n)
		return tensor_narrow(x, d, 0, n);
	memcpy(sizes, x->sizes, x->ndim * sizeof(*sizes));
	sizes[d] = n - x->sizes[d];
	return tensor_cat(TENSOR_LIST(x, tensor_zeros((tensor_ints){ sizes, x->ndim },
						      TENSOR_OPTIONS(.dtype = x->dtype,
								     .device = x->device))),
			  d);
}

static tensor *resized(tensor *x, const struct axes *a)
{
	for (int i = 0; i < a->n; i++)
		x = resized_along(x, a->dim[i], a->size[i]);
	return x;
}

/* self promoted to a dtype that a transform has: f32, f64 or, for a complex self as well, a complex one. */
static tensor *promoted(tensor *self, bool to_complex)
{
	enum tensor_dtype dtype = dtype_to_float(self->dtype);

	if (!dtype_is_complex(dtype) && dtype != TENSOR_F64)
		dtype = TENSOR_F32;
	if (to_complex && !dtype_is_complex(dtype))
		dtype = dtype == TENSOR_F64 ? TENSOR_C128 : TENSOR_C64;
	return tensor_to(self, TENSOR_OPTIONS(.dtype = dtype));
}

/* ---- transforms, in an open scope ---- */

static tensor *complex_to_complex(const char *op, tensor *self, tensor_ints s, tensor_ints dim,
				  const char *norm, bool forward)
{
	int how = named(op, norm, forward);
	struct axes a;

	if (how < 0 || axes_of(op, self, s, dim, &a) < 0)
		return NULL;
	return tensor_fft_c2c(resized(promoted(self, true), &a), (tensor_ints){ a.dim, a.n }, how,
			      forward);
}

static int check_real(const char *op, const tensor *self, const struct axes *a)
{
	if (dtype_is_complex(self->dtype))
		return tensor_fail(EINVAL, "%s: self must be real, got %s", op,
				   tensor_dtype_name(self->dtype));
	return a->n ? 0 : tensor_fail(EINVAL, "%s: a dimension is needed", op);
}

/* The last dimension keeps its non-redundant half. For an inverse transform the result is
 * conjugated. */
static tensor *real_to_complex(const char *op, tensor *self, tensor_ints s, tensor_ints dim,
			       const char *norm, bool forward)
{
	int how = named(op, norm, forward);
	struct axes a;
	tensor *x;

	if (how < 0 || axes_of(op, self, s, dim, &a) < 0 || check_real(op, self, &a) < 0)
		return NULL;
	x = resized(promoted(self, false), &a);
	if (forward)
		return tensor_fft_r2c(x, (tensor_ints){ a.dim, a.n }, how, true);
	x = tensor_conj_physical(tensor_fft_r2c(x, TENSOR_INTS(a.dim[a.n - 1]), how, true));
	return a.n == 1 ? x : tensor_fft_c2c(x, (tensor_ints){ a.dim, a.n - 1 }, how, false);
}

/* Real result from the non-redundant half of the last dimension. */
static tensor *complex_to_real(const char *op, tensor *self, tensor_ints s, tensor_ints dim,
			       const char *norm, bool forward)
{
	int how = named(op, norm, forward), last;
	int64_t n;
	struct axes a;
	tensor *x;

	if (how < 0 || axes_of(op, self, s, dim, &a) < 0)
		return NULL;
	if (!a.n)
		return tensor_fail_null(EINVAL, "%s: a dimension is needed", op);
	last = a.n - 1;
	n = a.given[last] ? a.size[last] : 2 * (a.size[last] - 1);
	if (n < 1)
		return tensor_fail_null(EINVAL,
					"%s: the number of positions must be positive, got %lld",
					op, (long long)n);
	a.size[last] = n / 2 + 1;
	x = resized(promoted(self, true), &a);
	if (!forward)
		return tensor_fft_c2r(x, (tensor_ints){ a.dim, a.n }, how, n);
	if (a.n > 1)
		x = tensor_fft_c2c(x, (tensor_ints){ a.dim, last }, how, true);
	return tensor_fft_c2r(tensor_conj_physical(x), TENSOR_INTS(a.dim[last]), how, n);
}

/* ---- operators ---- */

typedef tensor *(*transform)(const char *op, tensor *self, tensor_ints s, tensor_ints dim,
			     const char *norm, bool forward);

static tensor *many(transform fn, const char *op, tensor *self, tensor_ints s, tensor_ints dim,
		    const char *norm, bool forward)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard, fn(op, self, s, dim, norm, forward));
}

static tensor *one(transform fn, const char *op, tensor *self, int64_t n, int64_t dim,
		   const char *norm, bool forward)
{
	if (!self->ndim)
		return tensor_fail_null(EINVAL, "%s: self must have a dimension", op);
	/* Among several sizes, -1 is that of self. */
	if (n == -1)
		return tensor_fail_null(EINVAL,
					"%s: the number of positions must be positive, got -1", op);
	return many(fn, op, self, n == TENSOR_NONE ? TENSOR_NO_INTS : TENSOR_INTS(n),
		    TENSOR_INTS(dim), norm, forward);
}

tensor *composite_fft_fft(tensor *self, int64_t n, int64_t dim, const char *norm)
{
	return one(complex_to_complex, "fft_fft", self, n, dim, norm, true);
}

tensor *composite_fft_ifft(tensor *self, int64_t n, int64_t dim, const char *norm)
{
	return one(complex_to_complex, "fft_ifft", self, n, dim, norm, false);
}

tensor *composite_fft_rfft(tensor *self, int64_t n, int64_t dim, const char *norm)
{
	return one(real_to_complex, "fft_rfft", self, n, dim, norm, true);
}

tensor *composite_fft_irfft(tensor *self, int64_t n, int64_t dim, const char *norm)
{
	return one(complex_to_real, "fft_irfft", self, n, dim, norm, false);
}

tensor *composite_fft_hfft(tensor *self, int64_t n, int64_t dim, const char *norm)
{
	return one(complex_to_real, "fft_hfft", self, n, dim, norm, true);
}

tensor *composite_fft_ihfft(tensor *self, int64_t n, int64_t dim, const char *norm)
{
	return one(real_to_complex, "fft_ihfft", self, n, dim, norm, false);
}

tensor *composite_fft_fftn(tensor *self, tensor_ints s, tensor_ints dim, const char *norm)
{
	return many(complex_to_complex, "fft_fftn", self, s, dim, norm, true);
}

tensor *composite_fft_ifftn(tensor *self, tensor_ints s, tensor_ints dim, const char *norm)
{
	return many(complex_to_complex, "fft_ifftn", self, s, dim, norm, false);
}

tensor *composite_fft_rfftn(tensor *self, tensor_ints s, tensor_ints dim, const char *norm)
{
	return many(real_to_complex, "fft_rfftn", self, s, dim, norm, true);
}

tensor *composite_fft_irfftn(tensor *self, tensor_ints s, tensor_ints dim, const char *norm)
{
	return many(complex_to_real, "fft_irfftn", self, s, dim, norm, false);
}

tensor *composite_fft_hfftn(tensor *self, tensor_ints s, tensor_ints dim, const char *norm)
{
	return many(complex_to_real, "fft_hfftn", self, s, dim, norm, true);
}

tensor *composite_fft_ihfftn(tensor *self, tensor_ints s, tensor_ints dim, const char *norm)
{
	return many(real_to_complex, "fft_ihfftn", self, s, dim, norm, false);
}

/* ---- frequencies ---- */

/* The integers from begin to end, in units of 1 / (n d). */
static tensor *frequencies(const char *op, int64_t begin, int64_t end, int64_t n, double d,
			   tensor_options options)
{
	tensor *t;

	if (n < 1)
		return tensor_fail_null(EINVAL, "%s: n must be positive, got %lld", op,
					(long long)n);
	if (options.dtype == TENSOR_DTYPE_NONE)
		options.dtype = TENSOR_F32;
	t = tensor_arange_start(tensor_scalar_int(begin), tensor_scalar_int(end), options);
	return tensor_mul_scalar(t, tensor_scalar_float(1 / ((double)n * d)));
}

tensor *composite_fft_fftfreq(int64_t n, double d, tensor_options options)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	int64_t below = n / 2;

	return scope_leave_with(
		&guard, tensor_roll(frequencies("fft_fftfreq", -below, n - below, n, d, options),
				    TENSOR_INTS(n - below), TENSOR_INTS(0)));
}

tensor *composite_fft_rfftfreq(int64_t n, double d, tensor_options options)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard, frequencies("fft_rfftfreq", 0, n / 2 + 1, n, d, options));
}

/* Roll frequency 0 to the middle, or back. */
static tensor *shifted(const char *op, tensor *self, tensor_ints dim, bool back)
{
	int64_t shifts[TENSOR_MAX_DIMS], dims[TENSOR_MAX_DIMS],
		n = dim.len < 0 ? self->ndim : dim.len;

	if (n > self->ndim)
		return tensor_fail_null(EINVAL, "%s: %lld dimensions of self %s", op, (long long)n,
					SHAPE_STR(self));
	for (int64_t i = 0; i < n; i++) {
		int d = dim.len < 0 ? (int)i : wrap_dim(op, dim.data[i], self->ndim);

		if (d < 0)
			return NULL;
		dims[i] = d;
		shifts[i] = (self->sizes[d] + back) / 2;
	}
	if (!n)
		return call_clone(self, TENSOR_PRESERVE_FORMAT);
	return call_roll(self, (tensor_ints){ shifts, n }, (tensor_ints){ dims, n });
}

tensor *composite_fft_fftshift(tensor *self, tensor_ints dim)
{
	return shifted("fft_fftshift", self, dim, false);
}

tensor *composite_fft_ifftshift(tensor *self, tensor_ints dim)
{
	return shifted("fft_ifftshift", self, dim, true);
}
