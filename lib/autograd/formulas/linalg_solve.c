// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of LU and Cholesky factors, linear systems, inverses and determinants. */
#include "autograd/formulas/formulas.h"

#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/cat.h"
#include "family/linalg.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/matmul.h"
#include "family/ranges.h"
#include "family/reduce.h"
#include "family/reinterpret.h"
#include "family/scatter.h"
#include "family/shape.h"
#include "family/ternary.h"
#include "family/unary.h"
#include "family/view.h"

#include <float.h>

static int64_t rows_of(const tensor *t)
{
	return t ? t->sizes[t->ndim - 2] : 0;
}

static int64_t columns_of(const tensor *t)
{
	return t ? t->sizes[t->ndim - 1] : 0;
}

/* ---- LU ---- */

/* L1^-H m U1^-H for the square parts of the factors. */
static tensor *between(tensor *l1, tensor *m, tensor *u1)
{
	tensor *t = tensor_linalg_solve_triangular_opt(formula_adjoint(l1), m, true, true, true);

	return tensor_linalg_solve_triangular_opt(formula_adjoint(u1), t, false, false, false);
}

/*
 * A = P L U. Square: gA = P L^-H [tril(L^H gL, -1) + triu(gU U^H)] U^-H.
 * Tall, L = [L1; L2]: L2 = A2 U^-1, so gA2 = gL2 U^-H, and gU gets an additional -L2^H gL2 U^-H.
 * Wide, U = [U1 U2]: U2 = L^-1 P^T A2, so gA2 = P L^-H gU2, and gL gets an additional -L^-H gU2
 * U2^H.
 */
static tensor *plu_backward(tensor *gl, tensor *gu, tensor *p, tensor *l, tensor *u)
{
	int64_t m = rows_of(l), n = columns_of(u), k = m < n ? m : n;
	tensor *l1 = tensor_narrow(l, -2, 0, k), *u1 = tensor_narrow(u, -1, 0, k), *below, *above,
	       *ga;

	below = tensor_matmul(formula_adjoint(l1), tensor_narrow(gl, -2, 0, k));
	above = tensor_matmul(tensor_narrow(gu, -1, 0, k), formula_adjoint(u1));
	if (m > n)
		above = tensor_sub(above,
				   tensor_matmul(formula_adjoint(tensor_narrow(l, -2, k, m - k)),
						 tensor_narrow(gl, -2, k, m - k)));
	if (n > m)
		below = tensor_sub(below,
				   tensor_matmul(tensor_narrow(gu, -1, k, n - k),
						 formula_adjoint(tensor_narrow(u, -1, k, n - k))));
	ga = between(l1, tensor_add(tensor_tril(below, -1), tensor_triu(above, 0)), u1);
	if (m > n)
		ga = tensor_cat(TENSOR_LIST(ga, tensor_linalg_solve_triangular_opt(
							formula_adjoint(u1),
							tensor_narrow(gl, -2, k, m - k), false,
							false, false)),
				-2);
	if (n > m)
		ga = tensor_cat(TENSOR_LIST(ga, tensor_linalg_solve_triangular_opt(
							formula_adjoint(l1),
							tensor_narrow(gu, -1, k, n - k), true, true,
							true)),
				-1);
	return tensor_matmul(p, ga);
}

tensor *lu_factor_backward(tensor *grad, tensor *lu, tensor *pivots)
{
	int64_t m = rows_of(lu), n = columns_of(lu), k = m < n ? m : n;
	tensor *p, *l, *u;

	if (tensor_lu_unpack(lu, pivots, true, true, &p, &l, &u) < 0)
		return NULL;
	return plu_backward(tensor_tril(tensor_narrow(grad, -1, 0, k), -1),
			    tensor_triu(tensor_narrow(grad, -2, 0, k), 0), p, l, u);
}

/* Gradient of A in A X = B, X A = B, or the same with A's adjoint; gb is the gradient of B. */
static tensor *system_backward(tensor *gb, tensor *x, bool left, bool adj)
{
	tensor *ga;

	if (adj)
		ga = left ? tensor_matmul(x, formula_adjoint(gb)) :
			    tensor_matmul(formula_adjoint(gb), x);
	else
		ga = left ? tensor_matmul(gb, formula_adjoint(x)) :
			    tensor_matmul(formula_adjoint(x), gb);
	return tensor_neg(ga);
}

/* A = P L U is linear in L and in U: gL = P^H gA U^H, gU = L^H P^H gA. */
tensor *lu_solve_lu_backward(tensor *grad, tensor *lu, tensor *pivots, tensor *x, bool left,
			     bool adj)
{
	tensor *p, *l, *u, *ga;

	if (tensor_lu_unpack(lu, pivots, true, true, &p, &l, &u) < 0)
		return NULL;
	ga = system_backward(tensor_linalg_lu_solve_opt(lu, pivots, grad, left, !adj), x, left,
			     adj);
	ga = tensor_matmul(formula_adjoint(p), ga);
	return tensor_add(tensor_tril(tensor_matmul(ga, formula_adjoint(u)), -1),
			  tensor_triu(tensor_matmul(formula_adjoint(l), ga), 0));
}

/* ---- linear systems ---- */

/* Solve A^H X = b. The factors have no history, so they are used only if the backward is not
 * recorded. */
static tensor *solve_adjoint(tensor *a, tensor *lu, tensor *pivots, tensor *b, bool left)
{
	if (formula_is_differentiated())
		return tensor_linalg_solve_opt(formula_adjoint(a), b, left);
	return tensor_linalg_lu_solve_opt(lu, pivots, b, left, true);
}

/* A vector gets a second dimension of size 1. */
static tensor *as_matrix(tensor *t, const tensor *a)
{
	return t && a && t->ndim < a->ndim ? tensor_unsqueeze(t, -1) : t;
}

tensor *solve_b_backward(tensor *grad, tensor *a, tensor *lu, tensor *pivots, tensor *x, bool left)
{
	tensor *gb = solve_adjoint(a, lu, pivots, as_matrix(grad, a), left);

	return gb && x && a && x->ndim < a->ndim ? tensor_squeeze_dim(gb, -1) : gb;
}

tensor *solve_a_backward(tensor *grad, tensor *a, tensor *lu, tensor *pivots, tensor *x, bool left)
{
	tensor *gb = solve_adjoint(a, lu, pivots, as_matrix(grad, a), left);

	return system_backward(gb, as_matrix(x, a), left, false);
}

tensor *inv_backward(tensor *grad, tensor *inverse)
{
	tensor *h = formula_adjoint(inverse);

	return tensor_neg(tensor_matmul(h, tensor_matmul(grad, h)));
}

/* ---- determinants ---- */

/* g [..] times n x n identity matrices. */
static tensor *times_identity(tensor *g, int64_t n)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	if (!g)
		return NULL;
	memcpy(sizes, g->sizes, g->ndim * sizeof(*sizes));
	sizes[g->ndim] = n;
	return tensor_diag_embed(tensor_expand(tensor_unsqueeze(g, -1),
					       (tensor_ints){ sizes, g->ndim + 1 }),
				 0, -2, -1);
}

/* Factors of a non-singular matrix: zeros on the diagonal of U are replaced by the dtype's epsilon.
 */
static tensor *regular(tensor *lu)
{
	tensor *diagonal = tensor_diagonal(lu, 0, -2, -1);
	double epsilon = lu && dtype_real(lu->dtype) == TENSOR_F64 ? DBL_EPSILON : FLT_EPSILON;
	tensor *filled = tensor_where_scalarself(tensor_eq_scalar(diagonal, tensor_scalar_int(0)),
						 tensor_scalar_float(epsilon), diagonal);

	return tensor_diagonal_scatter(
		lu, tensor_to(filled, TENSOR_OPTIONS(.dtype = lu ? lu->dtype : 0)), 0, -2, -1);
}

/* 1 if a matrix of the batch is singular or nearly so, else 0; -1 with the error set. */
static int any_singular(tensor *det)
{
	double epsilon = det && dtype_real(det->dtype) == TENSOR_F64 ? DBL_EPSILON : FLT_EPSILON;
	tensor *small = tensor_any(tensor_lt_scalar(tensor_abs(tensor_detach(det)),
						    tensor_scalar_float(100 * epsilon)));
	bool any;

	if (small && small->keys & BATCHED_BIT)
		return 1; /* unknown: the formula for any matrix */
	return tensor_is_nonzero(small, &any) < 0 ? -1 : any;
}

/*
 * Adjugate, which is det(A) A^-1 for an invertible A, as a polynomial of A: D. K. Faddeev and V. N.
 * Faddeeva, "Computational methods of linear algebra", 1963. Unlike a formula from singular values,
 * it is differentiable at every matrix, including ones with equal singular values.
 */
static tensor *adjugate(tensor *a)
{
	int64_t n = columns_of(a);
	tensor *trace,
		*m = tensor_eye(n, TENSOR_OPTIONS(.dtype = a ? a->dtype : 0,
						  .device = a ? a->device : TENSOR_DEVICE_CPU));

	for (int64_t k = 1; k < n; k++) {
		m = tensor_matmul(a, m);
		trace = tensor_sum_dim(tensor_diagonal(m, 0, -2, -1), TENSOR_INTS(-1), false);
		trace = tensor_mul_scalar(trace, tensor_scalar_float(-1.0 / (double)k));
		m = tensor_add(m, times_identity(trace, n));
	}
	m = n % 2 ? m : tensor_neg(m);
	return tensor_expand_as(m, a);
}

/* For larger matrices, the polynomial's rounding errors are too large. */
#define ADJUGATE_MOST 16

/*
 * A^H gA = conj(det) g 1, so gA = g adj(A)^H. If the backward is not recorded, the factors give it,
 * with epsilon added for singular matrices. If it is recorded, it is computed from A: by a linear
 * system or, for singular matrices, by the adjugate (small ones) or A = U S V^H (large ones).
 */
tensor *det_backward(tensor *grad, tensor *a, tensor *det, tensor *lu, tensor *pivots)
{
	int64_t n = columns_of(a);
	tensor *u, *s, *vh, *g;
	int singular;

	if (!formula_is_differentiated())
		return tensor_linalg_lu_solve_opt(
			regular(lu), pivots,
			times_identity(tensor_mul(grad, formula_conj(det)), columns_of(lu)), true,
			true);
	singular = any_singular(det);
	if (singular < 0)
		return NULL;
	if (!singular)
		return tensor_linalg_solve(
			formula_adjoint(a),
			times_identity(tensor_mul(grad, formula_conj(tensor_linalg_det(a))), n));
	if (n <= ADJUGATE_MOST)
		return tensor_mul(tensor_unsqueeze(tensor_unsqueeze(grad, -1), -1),
				  formula_adjoint(adjugate(a)));
	if (tensor_linalg_svd(a, false, &u, &s, &vh) < 0)
		return NULL;
	g = tensor_mul(grad, formula_conj(tensor_mul(tensor_linalg_det(u), tensor_linalg_det(vh))));
	g = prod_dim_backward(g, tensor_to(s, TENSOR_OPTIONS(.dtype = a->dtype)),
			      tensor_to(tensor_prod_dim(s, -1, false),
					TENSOR_OPTIONS(.dtype = a->dtype)),
			      -1, false);
	return tensor_matmul(tensor_mul(u, tensor_unsqueeze(g, -2)), vh);
}

/* d log det = tr(A^-1 dA). Its real part is d logabsdet; d sign = i sign times its imaginary part.
 */
tensor *slogdet_backward(tensor *const *grads, tensor *a, tensor *sign, tensor *lu, tensor *pivots)
{
	tensor *g = grads[1], *turn;

	if (sign && dtype_is_complex(sign->dtype)) {
		if (g) {
			g = tensor_to(g, TENSOR_OPTIONS(.dtype = sign->dtype));
			if (!g)
				return NULL;
		}
		if (grads[0]) {
			turn = tensor_imag(tensor_mul(formula_conj(grads[0]), sign));
			turn = tensor_mul_scalar(turn, tensor_scalar_complex(0, -1));
			g = g ? tensor_add(g, turn) : turn;
			if (!g)
				return NULL;
		}
	}
	if (!g)
		return tensor_none; /* the sign of a real determinant is piecewise constant */
	return solve_adjoint(a, lu, pivots, times_identity(g, columns_of(lu)), true);
}

/* ---- Cholesky ---- */

/* A = L L^H: gA = L^-H phi L^-1, where phi is the Hermitian matrix with half of tril(L^H gL) in its
 * lower triangle. */
tensor *cholesky_backward(tensor *grad, tensor *factor, bool upper)
{
	tensor *l = upper ? formula_adjoint(factor) : factor,
	       *gl = upper ? formula_adjoint(grad) : grad, *phi;

	phi = tensor_tril(tensor_matmul(formula_adjoint(l), gl), 0);
	phi = formula_scale(tensor_add(phi, formula_adjoint(tensor_tril(phi, -1))),
			    formula_scalar(0.5));
	phi = tensor_linalg_solve_triangular_opt(formula_adjoint(l), phi, true, true, false);
	return tensor_linalg_solve_triangular_opt(l, phi, false, false, false);
}

/* X = (L L^H)^-1 B: gA = -gB X^H, gL = tril((gA + gA^H) L). Only one triangle of the factor is
 * read. */
tensor *cholesky_solve_backward(tensor *grad, tensor *factor, tensor *x, bool upper)
{
	tensor *ga = system_backward(tensor_cholesky_solve(grad, factor, upper), x, true, false);

	ga = tensor_add(ga, formula_adjoint(ga));
	return upper ? tensor_triu(tensor_matmul(tensor_triu(factor, 0), ga), 0) :
		       tensor_tril(tensor_matmul(ga, tensor_tril(factor, 0)), 0);
}

/* ---- triangular ---- */

/* The gradient is 0 outside the triangle that is read, and on its diagonal if that is taken as 1.
 */
tensor *solve_triangular_a_backward(tensor *grad, tensor *a, tensor *x, bool upper, bool left,
				    bool unit)
{
	tensor *gb =
		tensor_linalg_solve_triangular_opt(formula_adjoint(a), grad, !upper, left, unit);
	tensor *ga = system_backward(gb, x, left, false);

	return upper ? tensor_triu(ga, unit) : tensor_tril(ga, -(int)unit);
}
