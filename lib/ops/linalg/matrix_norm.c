// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Norms and condition numbers of matrices; linalg_norm, which also takes vectors. */
#include "ops/linalg/linalg.h"

#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/linalg.h"
#include "family/matrix.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/shape.h"
#include "family/stat.h"
#include "family/ternary.h"
#include "family/unary.h"
#include "family/view.h"

#include <math.h>

/* Norm given by name or by number. */
struct norm {
	enum { OF_ORDER, FROBENIUS, NUCLEAR } kind;
	double ord;
};

static struct norm of_order(double ord)
{
	return (struct norm){ OF_ORDER, ord };
}

static int named_norm(const char *op, const char *ord, struct norm *norm)
{
	if (!ord || (strcmp(ord, "fro") != 0 && strcmp(ord, "nuc") != 0))
		return tensor_fail(EINVAL, "%s: ord must be fro, nuc or a number, got %s", op,
				   QUOTED(ord));
	*norm = (struct norm){ .kind = *ord == 'f' ? FROBENIUS : NUCLEAR };
	return 0;
}

static tensor *as_dtype(tensor *t, enum tensor_dtype dtype)
{
	return dtype == TENSOR_DTYPE_NONE ? t : tensor_to(t, TENSOR_OPTIONS(.dtype = dtype));
}

/* Largest or smallest sum of magnitudes along rows or columns; the largest of none is 0. */
static tensor *sum_norm(tensor *a, int summed, int other, bool least, bool keepdim)
{
	/* Without keepdim, dimensions after the summed one move down by one. */
	int64_t rest = !keepdim && other > summed ? other - 1 : other;
	tensor *sums = tensor_sum_dim(tensor_abs(a), TENSOR_INTS(summed), keepdim);

	if (least)
		return tensor_amin(sums, TENSOR_INTS(rest), keepdim);
	if (!a->sizes[other])
		return tensor_sum_dim(sums, TENSOR_INTS(rest), keepdim);
	return tensor_amax(sums, TENSOR_INTS(rest), keepdim);
}

/* Largest (0 for none), smallest, or sum of the singular values. */
static tensor *spectral_norm(tensor *a, const int *dims, struct norm norm, bool keepdim)
{
	tensor *s = tensor_linalg_svdvals(
		tensor_movedim(a, TENSOR_INTS(dims[0], dims[1]), TENSOR_INTS(-2, -1)));
	bool most = norm.ord > 0, none = s && !s->sizes[s->ndim - 1];
	tensor *t = norm.kind == NUCLEAR || (none && most) ?
			    tensor_sum_dim(s, TENSOR_INTS(-1), false) :
		    most ? tensor_amax(s, TENSOR_INTS(-1), false) :
			   tensor_amin(s, TENSOR_INTS(-1), false);

	if (!keepdim)
		return t;
	t = tensor_unsqueeze(t, dims[0] < dims[1] ? dims[0] : dims[1]);
	return tensor_unsqueeze(t, dims[0] < dims[1] ? dims[1] : dims[0]);
}

static int check_dims(const char *op, const tensor *a, tensor_ints dim, int *dims)
{
	if (dtype_is_integral(a->dtype))
		return tensor_fail(EINVAL, "%s: a floating dtype is needed, got %s", op,
				   tensor_dtype_name(a->dtype));
	if (dim.len != 2 || a->ndim < 2)
		return tensor_fail(EINVAL, "%s: two dimensions of self %s are needed, got %lld", op,
				   SHAPE_STR(a), (long long)dim.len);
	for (int i = 0; i < 2; i++) {
		dims[i] = wrap_dim(op, dim.data[i], a->ndim);
		if (dims[i] < 0)
			return error_code();
	}
	if (dims[0] == dims[1])
		return tensor_fail(EINVAL, "%s: dimension %d is named twice", op, dims[0]);
	return 0;
}

/* Needs an open scope. */
static tensor *matrix_norm(const char *op, tensor *a, struct norm norm, tensor_ints dim,
			   bool keepdim, enum tensor_dtype dtype)
{
	double ord = norm.ord;
	int dims[2] = { 0 };

	a = as_dtype(a, dtype);
	if (!a || check_dims(op, a, dim, dims) < 0)
		return NULL;
	if (norm.kind == FROBENIUS)
		return tensor_linalg_vector_norm(a, tensor_scalar_int(2), dim, keepdim);
	if (norm.kind == NUCLEAR || fabs(ord) == 2)
		return spectral_norm(a, dims, norm, keepdim);
	if (fabs(ord) == 1)
		return sum_norm(a, dims[0], dims[1], ord < 0, keepdim);
	if (isinf(ord))
		return sum_norm(a, dims[1], dims[0], ord < 0, keepdim);
	return tensor_fail_null(
		EINVAL, "%s: ord must be 1, -1, 2, -2, inf, -inf, fro or nuc, got %g", op, ord);
}

tensor *composite_linalg_matrix_norm(tensor *self, tensor_scalar ord, tensor_ints dim, bool keepdim,
				     enum tensor_dtype dtype)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard,
				matrix_norm("linalg_matrix_norm", self,
					    of_order(scalar_double(ord)), dim, keepdim, dtype));
}

tensor *composite_linalg_matrix_norm_str(tensor *self, const char *ord, tensor_ints dim,
					 bool keepdim, enum tensor_dtype dtype)
{
	struct tensor_scope_guard guard;
	struct norm norm;

	if (named_norm("linalg_matrix_norm", ord, &norm) < 0)
		return NULL;
	guard = tensor_scope_enter();
	return scope_leave_with(&guard,
				matrix_norm("linalg_matrix_norm", self, norm, dim, keepdim, dtype));
}

/* ---- norm of vectors or matrices ---- */

static const tensor_ints last_two = { (const int64_t[]){ -2, -1 }, 2 };

tensor *composite_linalg_norm(tensor *self, tensor_scalar ord, tensor_ints dim, bool keepdim,
			      enum tensor_dtype dtype)
{
	bool all = dim.len < 0;

	if (ord.kind == TENSOR_SCALAR_NONE)
		return call_linalg_vector_norm(self, tensor_scalar_int(2), dim, keepdim, dtype);
	if (all && self->ndim != 1 && self->ndim != 2)
		return tensor_fail_null(
			EINVAL,
			"linalg_norm: with ord and without dim self must have one or two "
			"dimensions, got %s",
			SHAPE_STR(self));
	if (all ? self->ndim == 2 : dim.len == 2)
		return composite_linalg_matrix_norm(self, ord, all ? last_two : dim, keepdim,
						    dtype);
	if (!all && dim.len != 1)
		return tensor_fail_null(
			EINVAL,
			"linalg_norm: with ord dim must name one or two dimensions, got %lld",
			(long long)dim.len);
	return call_linalg_vector_norm(self, ord, dim, keepdim, dtype);
}

tensor *composite_linalg_norm_str(tensor *self, const char *ord, tensor_ints dim, bool keepdim,
				  enum tensor_dtype dtype)
{
	if (dim.len < 0 && self->ndim != 2)
		return tensor_fail_null(
			EINVAL, "linalg_norm: without dim self must have two dimensions, got %s",
			SHAPE_STR(self));
	return composite_linalg_matrix_norm_str(self, ord, dim.len < 0 ? last_two : dim, keepdim,
						dtype);
}

tensor *composite_nuclear_norm(tensor *self, bool keepdim)
{
	return composite_linalg_matrix_norm_str(self, "nuc", last_two, keepdim, TENSOR_DTYPE_NONE);
}

tensor *composite_nuclear_norm_dim(tensor *self, tensor_ints dim, bool keepdim)
{
	return composite_linalg_matrix_norm_str(self, "nuc", dim, keepdim, TENSOR_DTYPE_NONE);
}

/* ---- condition number ---- */

/* Empty matrices have condition number 0. */
static tensor *cond_of_nothing(const tensor *self)
{
	return tensor_zeros((tensor_ints){ self->sizes, self->ndim - 2 },
			    TENSOR_OPTIONS(.dtype = dtype_real(self->dtype),
					   .device = self->device));
}

/* Largest singular value divided by the smallest; infinite if that is 0. */
static tensor *spectral_cond(tensor *self, bool inverted)
{
	tensor *s = self->numel ? tensor_linalg_svdvals(self) : NULL, *greatest, *least;

	if (!self->numel)
		return cond_of_nothing(self);
	greatest = tensor_amax(s, TENSOR_INTS(-1), false);
	least = tensor_amin(s, TENSOR_INTS(-1), false);
	return inverted ? tensor_div(least, greatest) : tensor_div(greatest, least);
}

/* The inverse of a singular matrix counts as infinite; it is not an error. */
static tensor *norm_cond(tensor *self, struct norm norm)
{
	tensor *inverse, *info, *norms, *singular;

	if (linalg_check_square("linalg_cond", self) < 0)
		return NULL;
	if (!self->numel)
		return cond_of_nothing(self);
	if (tensor_linalg_inv_ex(self, &inverse, &info) < 0)
		return NULL;
	norms = tensor_mul(
		matrix_norm("linalg_cond", self, norm, last_two, false, TENSOR_DTYPE_NONE),
		matrix_norm("linalg_cond", inverse, norm, last_two, false, TENSOR_DTYPE_NONE));
	singular = tensor_ne_scalar(info, tensor_scalar_int(0));
	return tensor_where_scalarself(singular, tensor_scalar_float((double)INFINITY), norms);
}

tensor *composite_linalg_cond(tensor *self, tensor_scalar p)
{
	double ord = p.kind == TENSOR_SCALAR_NONE ? 2 : scalar_double(p);
	struct tensor_scope_guard guard;

	if (linalg_check_matrix("linalg_cond", self) < 0)
		return NULL;
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, fabs(ord) == 2 ? spectral_cond(self, ord < 0) :
							 norm_cond(self, of_order(ord)));
}

tensor *composite_linalg_cond_str(tensor *self, const char *p)
{
	struct tensor_scope_guard guard;
	struct norm norm;

	if (named_norm("linalg_cond", p, &norm) < 0 || linalg_check_matrix("linalg_cond", self) < 0)
		return NULL;
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, norm_cond(self, norm));
}
