// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Derivatives of matrix decompositions and of operators that use them. */
#include "formulas.h"

#include <dlfcn.h>
#include <math.h>

static tensor *complex_of(tensor *re, tensor *im)
{
	return tensor_add(re, tensor_mul_scalar(im, tensor_scalar_complex(0, 1)));
}

/* The input of a sine wave has rank 2; with its square it has rank 5. */
static tensor *full_rank(tensor *a)
{
	return tensor_add(a, tensor_mul(a, a));
}

/* |t|^2, which does not depend on the phase. */
static tensor *magnitude(tensor *t)
{
	return tensor_real(tensor_mul(t, tensor_conj_physical(t)));
}

/* The real and the imaginary parts. */
static tensor *real_and_imaginary(tensor *t)
{
	return tensor_view_as_real(t);
}

static tensor *lu_part(tensor *a, bool upper)
{
	tensor *p, *l, *u;

	return tensor_linalg_lu(a, &p, &l, &u) < 0 ? NULL : upper ? u : l;
}

static tensor *lu_solved(tensor *lu, tensor *b, bool left, bool adjoint)
{
	const double x[] = { 2, 3, 3 };
	tensor *pivots = tensor_to(tensor_from_data(x, TENSOR_INTS(3), F64),
				   TENSOR_OPTIONS(.dtype = TENSOR_I32));

	return tensor_linalg_lu_solve_opt(lu, pivots, b, left, adjoint);
}

static tensor *qr_part(tensor *a, const char *mode, bool r)
{
	tensor *q, *right;

	return tensor_linalg_qr(a, mode, &q, &right) < 0 ? NULL : r ? right : q;
}

/* 0: U, 1: S, 2: V^H, each without its phase. */
static tensor *svd_part(tensor *a, bool full, int part)
{
	tensor *results[3];

	if (tensor_linalg_svd(a, full, &results[0], &results[1], &results[2]) < 0)
		return NULL;
	if (part == 1)
		return results[1];
	/* only the first columns of the full matrices have a gradient */
	return magnitude(part ? tensor_narrow(results[2], -2, 0, tensor_sizes(results[1])[0]) :
				tensor_narrow(results[0], -1, 0, tensor_sizes(results[1])[0]));
}

static tensor *eig_part(tensor *a, bool vectors)
{
	tensor *w, *v;

	return tensor_linalg_eig(a, &w, &v) < 0 ? NULL :
	       vectors				? magnitude(v) :
						  real_and_imaginary(w);
}

static tensor *definite(tensor *a)
{
	return tensor_add(tensor_matmul(a, tensor_adjoint(a)),
			  tensor_eye(tensor_sizes(a)[0], TENSOR_OPTIONS(.dtype = TENSOR_F64)));
}

static tensor *log_determinant(tensor *a, bool sign)
{
	tensor *s, *l;

	return tensor_linalg_slogdet(a, &s, &l) < 0 ? NULL : sign ? real_and_imaginary(s) : l;
}

CASE(fn_lower, lu_part(a, false))
CASE(fn_upper, lu_part(full_rank(a), true))
CASE(fn_lu_solve, lu_solved(a, b, true, false))
CASE(fn_lu_solve_adjoint, lu_solved(a, b, true, true))
CASE(fn_lu_solve_right, lu_solved(a, b, false, false))
CASE(fn_lu_solve_right_adjoint, lu_solved(a, b, false, true))
CASE(fn_solve, tensor_linalg_solve(full_rank(a), b))
CASE(fn_solve_right, tensor_linalg_solve_opt(full_rank(a), b, false))
CASE(fn_solve_complex, real_and_imaginary(tensor_linalg_solve(complex_of(a, b), complex_of(c, d))))
CASE(fn_inv, tensor_linalg_inv(a))
CASE(fn_det, tensor_linalg_det(full_rank(a)))
CASE(fn_det_complex, real_and_imaginary(tensor_linalg_det(complex_of(a, b))))
CASE(fn_logabsdet, log_determinant(full_rank(a), false))
CASE(fn_logabsdet_complex, log_determinant(complex_of(a, b), false))
CASE(fn_sign_complex, log_determinant(complex_of(a, b), true))
CASE(fn_cholesky, tensor_linalg_cholesky(definite(a)))
CASE(fn_cholesky_upper, tensor_linalg_cholesky_opt(definite(a), true))
CASE(fn_cholesky_complex, real_and_imaginary(tensor_linalg_cholesky(definite(complex_of(a, b)))))
CASE(fn_cholesky_solve, tensor_cholesky_solve(a, b, false))
CASE(fn_cholesky_solve_upper, tensor_cholesky_solve(a, b, true))
CASE(fn_triangular, tensor_linalg_solve_triangular_opt(a, b, false, true, false))
CASE(fn_triangular_unit, tensor_linalg_solve_triangular_opt(a, b, true, true, true))
CASE(fn_triangular_right, tensor_linalg_solve_triangular_opt(a, b, true, false, false))
CASE(fn_q, qr_part(a, "reduced", false))
CASE(fn_r, qr_part(a, "reduced", true))
CASE(fn_q_complete, qr_part(full_rank(a), "complete", false))
CASE(fn_q_complex, real_and_imaginary(qr_part(complex_of(a, b), "reduced", false)))
CASE(fn_r_complex, real_and_imaginary(qr_part(complex_of(a, b), "reduced", true)))
CASE(fn_householder, tensor_linalg_householder_product(a, b))
CASE(fn_u, svd_part(a, false, 0))
CASE(fn_s, svd_part(a, false, 1))
CASE(fn_vh, svd_part(a, false, 2))
CASE(fn_u_full, svd_part(a, true, 0))
CASE(fn_u_complex, svd_part(complex_of(a, b), false, 0))
CASE(fn_vh_complex, svd_part(complex_of(a, b), false, 2))
CASE(fn_svdvals, tensor_linalg_svdvals(a))
CASE(fn_eigenvalues, eig_part(a, false))
CASE(fn_eigenvectors, eig_part(a, true))
CASE(fn_eigenvectors_complex, eig_part(complex_of(a, b), true))
CASE(fn_eigvals, real_and_imaginary(tensor_linalg_eigvals(a)))
CASE(fn_pinv, tensor_linalg_pinv_atol(a))
CASE(fn_matrix_exp, tensor_linalg_matrix_exp(a))
CASE(fn_matrix_power, tensor_linalg_matrix_power(a, 3))
CASE(fn_inverse_power, tensor_linalg_matrix_power(a, -2))
CASE(fn_nuclear, tensor_nuclear_norm(a, false))
CASE(fn_cond, tensor_linalg_cond(full_rank(a), S(2)))

static const struct formula formulas[] = {
	ROW(lower, 1, IN(1, 0, 3, 3)),
	ROW(lower, 1, IN(1, 0, 4, 2)),
	ROW(lower, 1, IN(1, 0, 2, 4)),
	ROW(upper, 1, IN(1, 0, 2, 3, 3)),
	ROW(upper, 1, IN(1, 0, 4, 2)),
	ROW(upper, 1, IN(1, 0, 2, 4)),
	ROW(lu_solve, 2, IN(1, 0.4, 3, 3), IN(1, 0, 3, 2)),
	ROW(lu_solve_adjoint, 2, IN(1, 0.4, 3, 3), IN(1, 0, 3, 2)),
	ROW(lu_solve_right, 2, IN(1, 0.4, 3, 3), IN(1, 0, 2, 3)),
	ROW(lu_solve_right_adjoint, 2, IN(1, 0.4, 3, 3), IN(1, 0, 2, 3)),
	ROW(solve, 2, IN(1, 0, 3, 3), IN(1, 0, 3, 2)),
	ROW(solve, 2, IN(1, 0, 3, 3), IN(1, 0, 3)),
	ROW(solve, 2, IN(1, 0, 2, 3, 3), IN(1, 0, 3, 1)),
	ROW(solve_right, 2, IN_T(1, 0, 3, 3), IN(1, 0, 2, 3)),
	ROW(solve_complex, 4, IN(1, 0, 2, 2), IN(1, 0, 2, 2), IN(1, 0, 2, 1), IN(1, 0, 2, 1)),
	ROW(inv, 1, IN(1, 0, 2, 2, 2)),
	ROW(det, 1, IN(1, 0, 2, 3, 3)),
	ROW(det, 1, IN(1, 0.5, 1, 1)),
	ROW(det_complex, 2, IN(1, 0, 2, 2), IN(1, 0, 2, 2)),
	ROW(logabsdet, 1, IN(1, 0, 3, 3)),
	ROW(logabsdet_complex, 2, IN(1, 0, 2, 2), IN(1, 0, 2, 2)),
	ROW(sign_complex, 2, IN(1, 0, 2, 2), IN(1, 0, 2, 2)),
	ROW(cholesky, 1, IN(1, 0, 3, 3)),
	ROW(cholesky_upper, 1, IN(1, 0, 3, 3)),
	ROW(cholesky_complex, 2, IN(1, 0, 2, 2), IN(1, 0, 2, 2)),
	ROW(cholesky_solve, 2, IN(1, 0, 3, 2), IN(0.5, 1.5, 3, 3)),
	ROW(cholesky_solve_upper, 2, IN(1, 0, 3, 2), IN(0.5, 1.5, 3, 3)),
	ROW(triangular, 2, IN(0.5, 1, 3, 3), IN(1, 0, 3, 2)),
	ROW(triangular_unit, 2, IN(0.5, 1, 3, 3), IN(1, 0, 3, 2)),
	ROW(triangular_right, 2, IN(0.5, 1, 3, 3), IN(1, 0, 2, 3)),
	ROW(q, 1, IN(1, 0, 4, 2)),
	ROW(q, 1, IN(1, 0, 2, 4)),
	ROW(r, 1, IN(1, 0, 4, 2)),
	ROW(r, 1, IN(1, 0, 2, 4)),
	ROW(q_complete, 1, IN(1, 0, 3, 3)),
	ROW(q_complex, 2, IN(1, 0, 3, 2), IN(1, 0, 3, 2)),
	ROW(r_complex, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 3)),
	ROW(householder, 2, IN(1, 0, 4, 3), IN(1, 0, 2)),
	ROW(householder, 2, IN(1, 0, 2, 3, 3), IN(1, 0, 2, 3)),
	ROW(u, 1, IN(1, 0, 3, 3)),
	ROW(u, 1, IN(1, 0, 4, 2)),
	ROW(s, 1, IN(1, 0, 2, 3, 2)),
	ROW(vh, 1, IN(1, 0, 2, 4)),
	ROW(u_full, 1, IN(1, 0, 4, 2)),
	ROW(u_complex, 2, IN(1, 0, 3, 2), IN(1, 0.2, 3, 2)),
	ROW(vh_complex, 2, IN(1, 0, 2, 3), IN(1, 0.2, 2, 3)),
	ROW(svdvals, 1, IN(1, 0, 3, 2)),
	ROW(eigenvalues, 1, IN(1, 0, 3, 3)),
	ROW(eigenvectors, 1, IN(1, 0, 3, 3)),
	ROW(eigenvectors_complex, 2, IN(1, 0, 2, 2), IN(1, 0, 2, 2)),
	ROW(eigvals, 1, IN(1, 0, 2, 2, 2)),
	ROW(pinv, 1, IN(1, 0, 3, 2)),
	ROW(pinv, 1, IN(1, 0, 2, 3)),
	ROW(matrix_exp, 1, IN(1, 0, 3, 3)),
	ROW(matrix_power, 1, IN(1, 0, 2, 2)),
	ROW(inverse_power, 1, IN(1, 0, 2, 2)),
	ROW(nuclear, 1, IN(1, 0, 3, 2)),
	ROW(cond, 1, IN(1, 0, 3, 3)),
};

FORMULA_TESTS

/* The gradient of the sum of diag(1, 2, 4) * d det(a) / d a, which is a polynomial of a. */
static tensor *det_twice(tensor *a)
{
	tensor *w = ok(tensor_diag(
		ok(tensor_from_data((const double[]){ 1, 2, 4 }, TENSOR_INTS(3), F64)), 0));
	tensor *g, *gg;

	assert_done(tensor_set_requires_grad(a, true));
	assert_done(tensor_backward_ex(TENSOR_LIST(ok(tensor_det(a))), NULL, TENSOR_LIST(a), &g,
				       TENSOR_CREATE_GRAPH));
	assert_done(tensor_backward_ex(TENSOR_LIST(ok(tensor_sum(ok(tensor_mul(g, w))))), NULL,
				       TENSOR_LIST(a), &gg, 0));
	return gg;
}

/* Also for equal singular values and for matrices of any rank. */
static void determinant_has_second_derivatives_everywhere(void **state)
{
	tensor_scope {
		assert_values(det_twice(ok(tensor_eye(3, F64))), 1e-12, 6, 0, 0, 0, 5, 0, 0, 0, 3);
		assert_values(det_twice(ok(tensor_ones(TENSOR_INTS(3, 3), F64))), 1e-12, 6, -4, -2,
			      -4, 5, -1, -2, -1, 3);
		assert_values(det_twice(ok(tensor_zeros(TENSOR_INTS(3, 3), F64))), 0, 0, 0, 0, 0, 0,
			      0, 0, 0, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORMULA_TEST_LIST,
		cmocka_unit_test(determinant_has_second_derivatives_everywhere),
	};

	/* Exit status 77 means skipped: LAPACK is not installed. */
	if (!dlopen("liblapack.so.3", RTLD_NOW)) {
		fprintf(stderr, "LAPACK is not installed: %s\n", dlerror());
		return 77;
	}
	return cmocka_run_group_tests_name("autograd_linalg", tests, NULL, NULL);
}
