// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Ranks, pseudo-inverses, powers and exponentials of matrices, and systems of tensors. */
#include "ops/linalg/linalg.h"

#include "family/binary.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/eigh.h"
#include "family/factory.h"
#include "family/cat.h"
#include "family/linalg.h"
#include "family/matrix.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/matmul.h"
#include "family/ranges.h"
#include "family/reduce.h"
#include "family/reinterpret.h"
#include "family/scan.h"
#include "family/shape.h"
#include "family/ternary.h"
#include "family/unary.h"
#include "family/view.h"

#include <float.h>
#include <math.h>

/* ---- ranks and pseudo-inverses ---- */

/* Threshold for singular values: max(atol, rtol * largest singular value). */
struct threshold {
	tensor *atol, *rtol; /* NULL if not given */
};

static tensor *scalar_tensor(double v, const tensor *like)
{
	return tensor_full(TENSOR_SCALAR_SHAPE, tensor_scalar_float(v),
			   TENSOR_OPTIONS(.dtype = dtype_real(like->dtype),
					  .device = like->device));
}

static struct threshold from_floats(double atol, double rtol, const tensor *like)
{
	return (struct threshold){ isnan(atol) ? NULL : scalar_tensor(atol, like),
				   isnan(rtol) ? NULL : scalar_tensor(rtol, like) };
}

static double epsilon_of(const tensor *a)
{
	int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1];

	return (dtype_real(a->dtype) == TENSOR_F64 ? DBL_EPSILON : FLT_EPSILON) *
	       (double)(m > n ? m : n);
}

/* bool [.., k]: true where the magnitude s [.., k] is above the threshold for a. */
static tensor *counted(tensor *s, const tensor *a, struct threshold t)
{
	tensor *greatest, *least, *rtol = t.rtol;

	if (!s)
		return NULL;
	if (!s->sizes[s->ndim - 1])
		return tensor_gt_scalar(s, tensor_scalar_int(0));
	greatest = tensor_amax(s, TENSOR_INTS(-1), true);
	if (!rtol && t.atol) /* a positive atol replaces the default rtol */
		rtol = tensor_where_scalarself(tensor_gt_scalar(t.atol, tensor_scalar_int(0)),
					       tensor_scalar_float(0),
					       scalar_tensor(epsilon_of(a), a));
	else if (!rtol)
		rtol = scalar_tensor(epsilon_of(a), a);
	least = tensor_mul(tensor_unsqueeze(rtol, -1), greatest);
	if (t.atol)
		least = tensor_maximum(least,
				       tensor_to(tensor_unsqueeze(t.atol, -1),
						 TENSOR_OPTIONS(.dtype = dtype_real(a->dtype))));
	return tensor_gt(s, least);
}

static int check_real(const char *op, const tensor *t)
{
	return t && dtype_is_complex(t->dtype) ?
		       tensor_fail(EINVAL, "%s: a tolerance must be real, got %s", op,
				   tensor_dtype_name(t->dtype)) :
		       0;
}

static int check(const char *op, const tensor *a, struct threshold t, bool hermitian)
{
	int err = hermitian ? linalg_check_square(op, a) : linalg_check_matrix(op, a);

	if (!err)
		err = check_real(op, t.atol);
	return err ? err : check_real(op, t.rtol);
}

static tensor *rank_of(tensor *a, struct threshold t, bool hermitian)
{
	tensor *s;

	if (check("linalg_matrix_rank", a, t, hermitian) < 0)
		return NULL;
	s = hermitian ? tensor_abs(tensor_linalg_eigvalsh(a, "L")) : tensor_linalg_svdvals(a);
	return tensor_sum_dim(counted(s, a, t), TENSOR_INTS(-1), false);
}

tensor *composite_matrix_rank_float(tensor *self, double atol, double rtol, bool hermitian)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard, rank_of(self, from_floats(atol, rtol, self), hermitian));
}

tensor *composite_matrix_rank_tensor(tensor *input, tensor *atol, tensor *rtol, bool hermitian)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard,
				rank_of(input, (struct threshold){ atol, rtol }, hermitian));
}

tensor *composite_matrix_rank_tol(tensor *self, double tol, bool hermitian)
{
	return composite_matrix_rank_float(self, tol, 0, hermitian);
}

tensor *composite_matrix_rank_tol_tensor(tensor *input, tensor *tol, bool hermitian)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard,
				rank_of(input, (struct threshold){ tol, scalar_tensor(0, input) },
					hermitian));
}

/* 1/t [.., k] where `counts`, else 0. */
static tensor *inverted(tensor *t, tensor *counts)
{
	return tensor_where_scalarother(counts, tensor_reciprocal(t), tensor_scalar_float(0));
}

static tensor *pseudo_inverse(tensor *a, struct threshold t, bool hermitian)
{
	tensor *u, *s, *vh;

	if (check("linalg_pinv", a, t, hermitian) < 0)
		return NULL;
	if (hermitian) {
		if (tensor_linalg_eigh(a, "L", &s, &u) < 0)
			return NULL;
		s = inverted(s, counted(tensor_abs(s), a, t));
		return tensor_matmul(tensor_mul(u, tensor_unsqueeze(s, -2)), tensor_adjoint(u));
	}
	if (tensor_linalg_svd(a, false, &u, &s, &vh) < 0)
		return NULL;
	s = inverted(s, counted(s, a, t));
	return tensor_matmul(tensor_mul(tensor_adjoint(vh), tensor_unsqueeze(s, -2)),
			     tensor_adjoint(u));
}

tensor *explicit_pinv(tensor *self, tensor *atol, tensor *rtol, bool hermitian)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard,
				pseudo_inverse(self, (struct threshold){ atol, rtol }, hermitian));
}

tensor *composite_pinv_float(tensor *self, double atol, double rtol, bool hermitian)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct threshold t = from_floats(atol, rtol, self);

	return scope_leave_with(
		&guard, scope_own(thread(), call_linalg_pinv_atol_rtol_tensor(self, t.atol, t.rtol,
									      hermitian)));
}

tensor *composite_pinv_rcond(tensor *self, double rcond, bool hermitian)
{
	return composite_pinv_float(self, 0, rcond, hermitian);
}

tensor *composite_pinv_rcond_tensor(tensor *self, tensor *rcond, bool hermitian)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard, scope_own(thread(), call_linalg_pinv_atol_rtol_tensor(
								    self, scalar_tensor(0, self),
								    rcond, hermitian)));
}

tensor *composite_pinverse(tensor *self, double rcond)
{
	return composite_pinv_rcond(self, rcond, false);
}

/* ---- powers and exponentials ---- */

static tensor *identities(const tensor *a)
{
	tensor *one = !a ? NULL :
			   tensor_eye(a->sizes[a->ndim - 1],
				      TENSOR_OPTIONS(.dtype = a->dtype, .device = a->device));

	return one ? tensor_expand(one, (tensor_ints){ a->sizes, a->ndim }) : NULL;
}

/* Binary exponentiation, from the lowest bit of n. */
static tensor *power(tensor *a, uint64_t n)
{
	tensor *result = NULL;

	for (; a; a = tensor_matmul(a, a)) {
		if (n & 1)
			result = result ? tensor_matmul(result, a) : a;
		n >>= 1;
		if (!n)
			return result;
	}
	return NULL;
}

tensor *composite_linalg_matrix_power(tensor *self, int64_t n)
{
	struct tensor_scope_guard guard;
	tensor *t;

	if (self->ndim < 2 || self->sizes[self->ndim - 1] != self->sizes[self->ndim - 2])
		return tensor_fail_null(
			EINVAL,
			"linalg_matrix_power: square matrices [.., n, n] are needed, got %s",
			SHAPE_STR(self));
	guard = tensor_scope_enter();
	if (n == 0)
		t = tensor_copy_(tensor_clone(self),
				 /* keeps self in the graph, with a gradient of zero */
				 identities(self));
	else if (n == 1)
		t = tensor_clone(self);
	else if (n > 0)
		t = power(self, n);
	else
		t = power(tensor_linalg_inv(self), -(uint64_t)n);
	return scope_leave_with(&guard, t);
}

/* Coefficients of the numerator of the [13/13] Pade approximant of exp; those of the denominator
 * have alternating signs. */
static const double pade[] = {
	64764752532480000,
	32382376266240000,
	7771770303897600,
	1187353796428800,
	129060195264000,
	10559470521600,
	670442572800,
	33522128640,
	1323241920,
	40840800,
	960960,
	16380,
	182,
	1,
};

/* The sum of c[i] p[i] over four powers. */
static tensor *combined(tensor *const *p, const double *c, int step)
{
	tensor *t = tensor_mul_scalar(p[0], tensor_scalar_float(c[0]));

	for (int i = 1; i < 4; i++)
		t = tensor_add(t, tensor_mul_scalar(p[i], tensor_scalar_float(c[i * step])));
	return t;
}

/* exp(a) for a norm below 5.4, where the approximant is accurate to f64 rounding (Higham 2005). */
static tensor *approximant(tensor *a)
{
	tensor *p[4], *high[4], *odd, *even;

	p[0] = identities(a);
	p[1] = tensor_matmul(a, a);
	p[2] = tensor_matmul(p[1], p[1]);
	p[3] = tensor_matmul(p[2], p[1]);
	memcpy(high, p, sizeof(p));
	if (!p[3])
		return NULL;
	high[0] = tensor_zeros_like(p[1], TENSOR_OPTIONS(0));
	odd = tensor_add(tensor_matmul(p[3], combined(high, pade + 7, 2)),
			 combined(p, pade + 1, 2));
	odd = tensor_matmul(a, odd);
	even = tensor_add(tensor_matmul(p[3], combined(high, pade + 6, 2)), combined(p, pade, 2));
	return tensor_linalg_solve(tensor_sub(even, odd), tensor_add(even, odd));
}

/* Number of halvings after which every matrix's norm is below that limit; -1 with the error set. */
static int halvings(tensor *a)
{
	tensor *norm = tensor_max(
		tensor_linalg_matrix_norm(a, tensor_scalar_int(1), TENSOR_INTS(-2, -1), false));
	double v;
	int exponent;

	if (!norm ||
	    tensor_copy_to(tensor_to(norm, TENSOR_OPTIONS(.dtype = TENSOR_F64)), &v, sizeof(v)) < 0)
		return -1;
	if (!isfinite(v) || v < 5.4)
		return 0;
	frexp(v / 5.4, &exponent);
	return exponent;
}

static tensor *exponential(tensor *a)
{
	int n = a->numel ? halvings(a) : 0;
	tensor *t;

	if (n < 0)
		return NULL;
	if (!a->numel)
		return tensor_clone(a);
	t = approximant(tensor_mul_scalar(a, tensor_scalar_float(ldexp(1, -n))));
	while (n-- > 0 && t)
		t = tensor_matmul(t, t);
	return t;
}

/* Computed in f64: each squaring doubles the error. */
tensor *explicit_matrix_exp(tensor *self)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	enum tensor_dtype wide = dtype_is_complex(self->dtype) ? TENSOR_C128 : TENSOR_F64;
	tensor *a = dtype_is_integral(self->dtype) ? self :
						     tensor_to(self, TENSOR_OPTIONS(.dtype = wide)),
	       *t = NULL;

	if (a && linalg_check_square("linalg_matrix_exp", a) == 0)
		t = exponential(a);
	return scope_leave_with(&guard, tensor_to(t, TENSOR_OPTIONS(.dtype = self->dtype)));
}

tensor *composite_matrix_exp(tensor *self)
{
	return call_linalg_matrix_exp(self);
}

/* ---- tensors as matrices ---- */

/* Product of n sizes of one tensor; it cannot overflow. */
static int64_t product_of(const int64_t *sizes, int64_t n)
{
	int64_t product = 1;

	for (int64_t i = 0; i < n; i++)
		product *= sizes[i];
	return product;
}

tensor *composite_linalg_tensorinv(tensor *self, int64_t ind)
{
	int64_t sizes[TENSOR_MAX_DIMS], rows, columns, rest = self->ndim - ind;
	struct tensor_scope_guard guard;

	if (ind <= 0 || ind > self->ndim)
		return tensor_fail_null(EINVAL,
					"linalg_tensorinv: ind must be in 1 .. %d, got %lld",
					self->ndim, (long long)ind);
	rows = product_of(self->sizes, ind);
	columns = product_of(self->sizes + ind, rest);
	if (rows != columns)
		return tensor_fail_null(
			EINVAL,
			"linalg_tensorinv: the first %lld dimensions of %s have %lld elements, "
			"the others %lld",
			(long long)ind, SHAPE_STR(self), (long long)rows, (long long)columns);
	memcpy(sizes, self->sizes + ind, rest * sizeof(*sizes));
	memcpy(sizes + rest, self->sizes, ind * sizeof(*sizes));
	guard = tensor_scope_enter();
	return scope_leave_with(
		&guard,
		tensor_reshape(tensor_linalg_inv(tensor_reshape(self, TENSOR_INTS(rows, columns))),
			       (tensor_ints){ sizes, self->ndim }));
}

/* self with dims moved to the end, in their order. */
static tensor *moved_to_end(tensor *self, tensor_ints dims)
{
	int64_t to[TENSOR_MAX_DIMS];

	if (dims.len <= 0)
		return self;
	if (dims.len > self->ndim)
		return tensor_fail_null(EINVAL, "linalg_tensorsolve: %lld dimensions of self %s",
					(long long)dims.len, SHAPE_STR(self));
	for (int64_t i = 0; i < dims.len; i++)
		to[i] = self->ndim - dims.len + i;
	return tensor_movedim(self, dims, (tensor_ints){ to, dims.len });
}

tensor *composite_linalg_tensorsolve(tensor *self, tensor *other, tensor_ints dims)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *a = moved_to_end(self, dims), *x = NULL;
	int64_t rows = other->numel, rest = a ? a->ndim - other->ndim : 0;

	if (a && (rest < 0 || product_of(a->sizes + a->ndim - rest, rest) != rows ||
		  rows * rows != a->numel))
		tensor_fail(EINVAL,
			    "linalg_tensorsolve: self %s as a matrix is not square for other %s",
			    SHAPE_STR(a), SHAPE_STR(other));
	else if (a)
		x = tensor_reshape(tensor_linalg_solve(tensor_reshape(a, TENSOR_INTS(rows, rows)),
						       tensor_reshape(other, TENSOR_INTS(rows))),
				   (tensor_ints){ a->sizes + a->ndim - rest, rest });
	return scope_leave_with(&guard, x);
}

/* ---- vander, chain products ---- */

/* Powers by repeated multiplication, so that the result equals that of a loop. */
tensor *composite_linalg_vander(tensor *x, int64_t N)
{
	int64_t sizes[TENSOR_MAX_DIMS + 1], n;
	struct tensor_scope_guard guard;
	enum tensor_dtype dtype;
	tensor *ones;

	if (x->ndim == TENSOR_MAX_DIMS)
		return tensor_fail_null(
			EINVAL, "linalg_vander: x has %d dimensions, one more is not possible",
			x->ndim);
	n = N != TENSOR_NONE ? N : x->ndim ? x->sizes[x->ndim - 1] : 1;
	if (n <= 1)
		return tensor_fail_null(EINVAL, "linalg_vander: N must be greater than 1, got %lld",
					(long long)n);
	dtype = dtype_is_integral(x->dtype) ? TENSOR_I64 : x->dtype;
	guard = tensor_scope_enter();
	x = x->ndim ? x : tensor_unsqueeze(x, 0);
	if (!x)
		return scope_leave_with(&guard, NULL);
	memcpy(sizes, x->sizes, x->ndim * sizeof(*sizes));
	sizes[x->ndim] = 1;
	ones = tensor_ones((tensor_ints){ sizes, x->ndim + 1 },
			   TENSOR_OPTIONS(.dtype = dtype, .device = x->device));
	sizes[x->ndim] = n - 1;
	x = tensor_expand(tensor_unsqueeze(x, -1), (tensor_ints){ sizes, x->ndim + 1 });
	if (!ones || !x)
		return scope_leave_with(&guard, NULL);
	return scope_leave_with(&guard, tensor_cat(TENSOR_LIST(ones, tensor_cumprod(x, -1)), -1));
}

tensor *composite_linalg_vecdot(tensor *x, tensor *y, int64_t dim)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *products;

	if (dtype_is_complex(x->dtype))
		x = tensor_conj_physical(x);
	products = tensor_mul(x, y);
	if (products) /* integers keep their dtype, as in a matrix product */
		products = tensor_sum_dim_opt(products, TENSOR_INTS(dim), false, products->dtype);
	return scope_leave_with(&guard, products);
}

tensor *composite_linalg_diagonal(tensor *A, int64_t offset, int64_t dim1, int64_t dim2)
{
	return call_diagonal(A, offset, dim1, dim2);
}

tensor *composite_linalg_matmul(tensor *self, tensor *other)
{
	return call_matmul(self, other);
}
