// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Initial values of parameters. */
#include "base/error.h"
#include "core/tensor_impl.h"

#include <math.h>
#include <tensor/autograd.h>
#include <tensor/init.h>
#include <tensor/ops.h>

/* ---- sizes and gains ---- */

TENSOR_EXPORT double tensor_init_gain(enum tensor_nonlinearity nonlinearity, double parameter)
{
	switch (nonlinearity) {
	case TENSOR_NONLINEARITY_LEAKY_RELU:
		return sqrt(2 / (1 + parameter * parameter));
	case TENSOR_NONLINEARITY_RELU:
		return sqrt(2);
	case TENSOR_NONLINEARITY_LINEAR:
		return 1;
	case TENSOR_NONLINEARITY_TANH:
		return 5.0 / 3;
	case TENSOR_NONLINEARITY_SELU:
		return 3.0 / 4;
	}
	tensor_fail(EINVAL, "init_gain: %d is no nonlinearity", (int)nonlinearity);
	return NAN;
}

static int fans(const char *op, const tensor *t, double *in, double *out)
{
	double field = 1;

	if (tensor_absent(op, t))
		return -thread()->error.code;
	if (t->ndim < 2)
		return tensor_fail(EINVAL, "%s: t must have at least 2 dimensions, got %s", op,
				   SHAPE_STR(t));
	for (int i = 2; i < t->ndim; i++)
		field *= (double)t->sizes[i];
	*in = (double)t->sizes[1] * field;
	*out = (double)t->sizes[0] * field;
	return 0;
}

TENSOR_EXPORT int tensor_init_fan(const tensor *t, int64_t *fan_in, int64_t *fan_out)
{
	double in, out;
	int err = fans("init_fan", t, &in, &out);

	if (!err && fan_in)
		*fan_in = (int64_t)in;
	if (!err && fan_out)
		*fan_out = (int64_t)out;
	return err;
}

/* ---- filling ---- */

/* A distribution, and how to draw from it. */
struct fill {
	const char *op;
	bool normal;
	double a, b; /* mean and deviation, or bounds */
	tensor_generator *generator;
};

static bool accepts(const char *op, const tensor *t)
{
	if (tensor_absent(op, t))
		return false;
	if (dtype_is_float(t->dtype) || dtype_is_complex(t->dtype))
		return true;
	tensor_fail(EINVAL, "%s: t must be floating or complex, got %s", op,
		    tensor_dtype_name(t->dtype));
	return false;
}

static tensor *draw(tensor *t, const struct fill *f)
{
	tensor *done = NULL;

	if (!accepts(f->op, t))
		return NULL;
	if (!isfinite(f->a) || !isfinite(f->b))
		return tensor_fail_null(EINVAL, "%s: %g and %g are no parameters of a distribution",
					f->op, f->a, f->b);
	tensor_no_grad
		done = f->normal ? tensor_normal_opt_(t, f->a, f->b, f->generator) :
				   tensor_uniform_opt_(t, f->a, f->b, f->generator);
	return done;
}

TENSOR_EXPORT tensor *tensor_init_uniform(tensor *t, double low, double high, tensor_generator *g)
{
	return draw(t, &(struct fill){ "init_uniform", false, low, high, g });
}

TENSOR_EXPORT tensor *tensor_init_normal(tensor *t, double mean, double std, tensor_generator *g)
{
	return draw(t, &(struct fill){ "init_normal", true, mean, std, g });
}

static tensor *constant(const char *op, tensor *t, double value)
{
	tensor *done = NULL;

	if (!accepts(op, t))
		return NULL;
	tensor_no_grad
		done = tensor_fill_(t, tensor_scalar_float(value));
	return done;
}

TENSOR_EXPORT tensor *tensor_init_constant(tensor *t, double value)
{
	return constant("init_constant", t, value);
}

TENSOR_EXPORT tensor *tensor_init_zeros(tensor *t)
{
	return constant("init_zeros", t, 0);
}

TENSOR_EXPORT tensor *tensor_init_ones(tensor *t)
{
	return constant("init_ones", t, 1);
}

/* ---- by the sizes of t ---- */

static tensor *by_deviation(tensor *t, const char *op, bool normal, double std, tensor_generator *g)
{
	const double bound = sqrt(3) * std;

	if (isinf(std)) /* no elements: nothing to draw */
		std = 0;
	return draw(t, &(struct fill){ op, normal, normal || !std ? 0 : -bound,
				       normal || !std ? std : bound, g });
}

static tensor *xavier(tensor *t, const char *op, bool normal, double gain, tensor_generator *g)
{
	double in, out;

	if (fans(op, t, &in, &out) < 0)
		return NULL;
	return by_deviation(t, op, normal, gain * sqrt(2 / (in + out)), g);
}

TENSOR_EXPORT tensor *tensor_init_xavier_uniform(tensor *t, double gain, tensor_generator *g)
{
	return xavier(t, "init_xavier_uniform", false, gain, g);
}

TENSOR_EXPORT tensor *tensor_init_xavier_normal(tensor *t, double gain, tensor_generator *g)
{
	return xavier(t, "init_xavier_normal", true, gain, g);
}

static tensor *kaiming(tensor *t, const char *op, bool normal, double gain, enum tensor_fan fan,
		       tensor_generator *g)
{
	double in, out;

	if (fans(op, t, &in, &out) < 0 || isnan(gain))
		return NULL;
	if (fan != TENSOR_FAN_IN && fan != TENSOR_FAN_OUT)
		return tensor_fail_null(EINVAL, "%s: %d is no fan", op, (int)fan);
	return by_deviation(t, op, normal, gain / sqrt(fan == TENSOR_FAN_IN ? in : out), g);
}

/* A slope that is NaN is an argument like others, and no failed gain. */
static double kaiming_gain(const char *op, enum tensor_nonlinearity nonlinearity, double a)
{
	if (!isfinite(a)) {
		tensor_fail(EINVAL, "%s: a must be finite", op);
		return NAN;
	}
	return tensor_init_gain(nonlinearity, a);
}

TENSOR_EXPORT tensor *tensor_init_kaiming_uniform(tensor *t, double a, enum tensor_fan fan,
						  enum tensor_nonlinearity nonlinearity,
						  tensor_generator *g)
{
	const char *op = "init_kaiming_uniform";

	return kaiming(t, op, false, kaiming_gain(op, nonlinearity, a), fan, g);
}

TENSOR_EXPORT tensor *tensor_init_kaiming_normal(tensor *t, double a, enum tensor_fan fan,
						 enum tensor_nonlinearity nonlinearity,
						 tensor_generator *g)
{
	const char *op = "init_kaiming_normal";

	return kaiming(t, op, true, kaiming_gain(op, nonlinearity, a), fan, g);
}

/* ---- matrices ---- */

static tensor *eye(tensor *t)
{
	tensor *diagonal = tensor_diagonal(tensor_zero_(t), 0, 0, 1);

	return tensor_fill_(diagonal, tensor_scalar_int(1)) ? t : NULL;
}

TENSOR_EXPORT tensor *tensor_init_eye(tensor *t)
{
	tensor *done = NULL;

	if (!accepts("init_eye", t))
		return NULL;
	if (t->ndim != 2)
		return tensor_fail_null(EINVAL, "init_eye: t must have 2 dimensions, got %s",
					SHAPE_STR(t));
	tensor_no_grad
		tensor_scope
			done = eye(t);
	return done;
}

/* The centre of the kernel that connects channel i to channel i of each group. */
static tensor *dirac(tensor *t, int64_t groups)
{
	const int64_t out = t->sizes[0] / groups, n = out < t->sizes[1] ? out : t->sizes[1];
	tensor *done = tensor_zero_(t), *centre = t;

	for (int d = 2; d < t->ndim; d++)
		centre = t->sizes[d] ? tensor_narrow(centre, d, t->sizes[d] / 2, 1) : centre;
	for (int64_t g = 0; g < groups && done && t->numel && n; g++) {
		tensor_scope {
			tensor *rows = tensor_narrow(centre, 0, g * out, n);

			done = tensor_fill_(tensor_diagonal(rows, 0, 0, 1), tensor_scalar_int(1));
		}
	}
	return done ? t : NULL;
}

TENSOR_EXPORT tensor *tensor_init_dirac(tensor *t, int64_t groups)
{
	tensor *done = NULL;

	if (!accepts("init_dirac", t))
		return NULL;
	if (t->ndim < 3 || t->ndim > 5)
		return tensor_fail_null(EINVAL, "init_dirac: t must have 3 to 5 dimensions, got %s",
					SHAPE_STR(t));
	if (groups < 1 || t->sizes[0] % groups)
		return tensor_fail_null(EINVAL, "init_dirac: %lld channels in %lld groups",
					(long long)t->sizes[0], (long long)groups);
	if (groups > t->sizes[0])
		groups = 1; /* no channels */
	tensor_no_grad
		tensor_scope
			done = dirac(t, groups);
	return done;
}

/* ---- truncated normal ---- */

static double normal_cdf(double x)
{
	return erfc(-x / sqrt(2)) / 2;
}

/* The inverse of the distribution function of a uniform number, as PyTorch does it. */
TENSOR_EXPORT tensor *tensor_init_trunc_normal(tensor *t, double mean, double std, double low,
					       double high, tensor_generator *g)
{
	const char *op = "init_trunc_normal";
	tensor *done = NULL;

	if (!accepts(op, t))
		return NULL;
	if (!isfinite(mean) || !isfinite(std) || !(std > 0) || !(low <= high))
		return tensor_fail_null(EINVAL, "%s: mean %g, std %g, from %g to %g", op, mean, std,
					low, high);
	tensor_no_grad {
		done = tensor_uniform_opt_(t, 2 * normal_cdf((low - mean) / std) - 1,
					   2 * normal_cdf((high - mean) / std) - 1, g);
		done = tensor_erfinv_(done);
		done = tensor_mul_scalar_(done, tensor_scalar_float(std * sqrt(2)));
		done = tensor_add_scalar_(done, tensor_scalar_float(mean));
		done = tensor_clamp_(done, tensor_scalar_float(low), tensor_scalar_float(high));
	}
	return done;
}

/* ---- orthogonal ---- */

/* [rows, columns] with orthonormal columns or rows; the signs make it uniform. */
static tensor *orthonormal(const tensor *t, int64_t rows, int64_t columns, tensor_generator *g)
{
	const bool wide = rows < columns;
	tensor *flat, *q, *r, *sign;

	flat = tensor_empty(TENSOR_INTS(wide ? columns : rows, wide ? rows : columns),
			    (tensor_options){ .dtype = dtype_wide(t->dtype), .device = t->device });
	if (tensor_linalg_qr(tensor_normal_opt_(flat, 0, 1, g), "reduced", &q, &r) < 0)
		return NULL;
	sign = tensor_sgn(tensor_diagonal(r, 0, 0, 1));
	q = tensor_mul(q, sign);
	return wide ? tensor_transpose(q, 0, 1) : q;
}

TENSOR_EXPORT tensor *tensor_init_orthogonal(tensor *t, double gain, tensor_generator *g)
{
	int64_t columns = 1;
	tensor *done = NULL;

	if (!accepts("init_orthogonal", t))
		return NULL;
	if (t->ndim < 2)
		return tensor_fail_null(
			EINVAL, "init_orthogonal: t must have at least 2 dimensions, got %s",
			SHAPE_STR(t));
	if (!t->numel)
		return t;
	for (int i = 1; i < t->ndim; i++)
		columns *= t->sizes[i];
	tensor_no_grad
		tensor_scope {
			tensor *q = orthonormal(t, t->sizes[0], columns, g);

			q = tensor_mul_scalar(tensor_reshape(q, tensor_shape(t)),
					      tensor_scalar_float(gain));
			done = tensor_copy_(t, q);
		}
	return done;
}
