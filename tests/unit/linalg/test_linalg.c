// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Matrix decompositions and operators that use them: products of the factors, empty matrices, errors. */
#include "check.h"

#include <dlfcn.h>
#include <math.h>

static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_C64, TENSOR_C128 };

static double tolerance(enum tensor_dtype dtype)
{
	return dtype == TENSOR_F64 || dtype == TENSOR_C128 ? 1e-11 : 5e-4;
}

/* [2, m, n] of any floating dtype; square matrices are well conditioned. */
static tensor *matrices(int64_t m, int64_t n, enum tensor_dtype dtype)
{
	tensor *t = ok(tensor_empty(TENSOR_INTS(2, m, n), F64)), *imag;
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++)
		p[i] = sin(1.3 * (double)(i * i % 1009));
	imag = ok(
		tensor_mul_scalar(ok(tensor_flip(t, TENSOR_INTS(0))), tensor_scalar_complex(0, 1)));
	if (dtype == TENSOR_C64 || dtype == TENSOR_C128)
		t = ok(tensor_add(t, imag));
	if (m == n)
		t = ok(tensor_add(t, ok(tensor_mul_scalar(ok(tensor_eye(n, F64)), S((double)n)))));
	return ok(tensor_to(t, TENSOR_OPTIONS(.dtype = dtype)));
}

static double distance(tensor *a, tensor *b)
{
	double v = 0;

	assert_shape(ok(tensor_sub(a, b)), 2, tensor_sizes(a)[1], tensor_sizes(a)[2]);
	if (tensor_numel(a))
		assert_done(tensor_copy_to(
			ok(tensor_to(ok(tensor_max(ok(tensor_abs(ok(tensor_sub(a, b)))))), F64)),
			&v, sizeof(v)));
	return v;
}

static tensor *identity_like(tensor *t, int64_t n)
{
	tensor *one = ok(tensor_eye(n, TENSOR_OPTIONS(.dtype = tensor_dtype(t))));

	return ok(tensor_expand(one, TENSOR_INTS(2, n, n)));
}

/* ---- products of the factors ---- */

static void check_lu(tensor *a, double tol)
{
	tensor *p, *l, *u;

	assert_done(tensor_linalg_lu(a, &p, &l, &u));
	assert_true(distance(ok(tensor_matmul(p, ok(tensor_matmul(l, u)))), a) < tol);
}

static void check_qr(tensor *a, double tol)
{
	static const char *const modes[] = { "reduced", "complete" };
	tensor *q, *r;

	for (int i = 0; i < 2; i++) {
		assert_done(tensor_linalg_qr(a, modes[i], &q, &r));
		assert_true(distance(ok(tensor_matmul(q, r)), a) < tol);
		assert_true(distance(ok(tensor_matmul(ok(tensor_adjoint(q)), q)),
				     identity_like(q, tensor_sizes(q)[2])) < tol);
	}
	assert_done(tensor_linalg_qr(a, "r", &q, &r));
	assert_int_equal(tensor_numel(q), 0);
}

static void check_svd(tensor *a, double tol)
{
	int64_t m = tensor_sizes(a)[1], n = tensor_sizes(a)[2], k = m < n ? m : n;
	tensor *u, *s, *vh, *t;

	for (int full = 0; full < 2; full++) {
		assert_done(tensor_linalg_svd(a, full, &u, &s, &vh));
		assert_shape(u, 2, m, full ? m : k);
		assert_shape(vh, 2, full ? n : k, n);
		t = ok(tensor_mul(ok(tensor_narrow(u, -1, 0, k)), ok(tensor_unsqueeze(s, -2))));
		assert_true(distance(ok(tensor_matmul(t, ok(tensor_narrow(vh, -2, 0, k)))), a) <
			    tol);
		assert_true(distance(ok(tensor_matmul(ok(tensor_adjoint(u)), u)),
				     identity_like(u, tensor_sizes(u)[2])) < tol);
	}
}

static void product_of_the_factors_is_the_matrix(void **state)
{
	static const int64_t shapes[][2] = { { 3, 3 },	 { 5, 3 }, { 3, 5 }, { 1, 1 },
					     { 40, 37 }, { 0, 0 }, { 0, 3 }, { 3, 0 } };

	for (int k = 0; k < 4; k++)
		for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
			tensor_scope {
				tensor *a = matrices(shapes[i][0], shapes[i][1], dtypes[k]);

				check_lu(a, tolerance(dtypes[k]));
				check_qr(a, tolerance(dtypes[k]));
				check_svd(a, tolerance(dtypes[k]));
			}
}

static void check_square(tensor *a, int64_t n, double tol)
{
	tensor *one = identity_like(a, n), *h = ok(tensor_matmul(a, ok(tensor_adjoint(a)))), *l, *w,
	       *v;

	l = ok(tensor_linalg_cholesky(h));
	assert_true(distance(ok(tensor_matmul(l, ok(tensor_adjoint(l)))), h) <
		    (double)(n + 1) * tol);
	l = ok(tensor_linalg_cholesky_opt(h, true));
	assert_true(distance(ok(tensor_matmul(ok(tensor_adjoint(l)), l)), h) <
		    (double)(n + 1) * tol);
	assert_true(distance(ok(tensor_matmul(h, ok(tensor_cholesky_inverse(l, true)))), one) <
		    tol);
	assert_true(distance(ok(tensor_matmul(a, ok(tensor_linalg_inv(a)))), one) < tol);
	assert_true(distance(ok(tensor_linalg_solve(a, ok(tensor_matmul(a, h)))), h) <
		    (double)(n + 1) * tol);
	assert_true(distance(ok(tensor_linalg_solve_opt(a, ok(tensor_matmul(h, a)), false)), h) <
		    (double)(n + 1) * tol);
	assert_done(tensor_linalg_eig(a, &w, &v));
	assert_true(
		distance(ok(tensor_matmul(
				 ok(tensor_to(a, TENSOR_OPTIONS(.dtype = tensor_dtype(v)))), v)),
			 ok(tensor_mul(v, ok(tensor_unsqueeze(w, -2))))) < (double)(n + 1) * tol);
}

static void solve_and_inv_agree_with_products(void **state)
{
	static const int64_t sizes[] = { 1, 2, 3, 20, 0 };

	for (int k = 0; k < 4; k++)
		for (int i = 0; i < 5; i++)
			tensor_scope {
				check_square(matrices(sizes[i], sizes[i], dtypes[k]), sizes[i],
					     tolerance(dtypes[k]));
			}
}

static void determinants_equal_known_values(void **state)
{
	const double x[] = { 0, 2, 3, 1 }, y[] = { 1, 2, 2, 4 };
	tensor *sign, *logabs;

	tensor_scope {
		tensor *a = ok(tensor_from_data(x, TENSOR_INTS(2, 2), F64));
		tensor *b = ok(tensor_from_data(y, TENSOR_INTS(2, 2), F64));

		assert_values(tensor_linalg_det(a), 1e-14, -6);
		assert_values(tensor_det(b), 1e-14, 0);
		assert_values(tensor_det(ok(tensor_empty(TENSOR_INTS(2, 0, 0), F64))), 0, 1, 1);
		assert_done(tensor_linalg_slogdet(a, &sign, &logabs));
		assert_values(sign, 0, -1);
		assert_values(logabs, 1e-14, log(6));
		assert_values(tensor_isnan(ok(tensor_logdet(a))), 0, 1);
	}
}

/* ---- empty matrices ---- */

static void matrices_without_columns_are_not_exchanged(void **state)
{
	tensor *p, *l, *u;

	tensor_scope {
		assert_done(tensor_linalg_lu(ok(tensor_zeros(TENSOR_INTS(2, 0), F64)), &p, &l, &u));
		assert_values(p, 0, 1, 0, 0, 1);
		assert_done(
			tensor_linalg_lu(ok(tensor_zeros(TENSOR_INTS(2, 2, 0), F64)), &p, &l, &u));
		assert_values(p, 0, 1, 0, 0, 1, 1, 0, 0, 1);
	}
}

static void condition_number_of_an_empty_matrix_is_zero(void **state)
{
	tensor_scope {
		tensor *a = ok(tensor_zeros(TENSOR_INTS(2, 0, 0), F64));

		assert_values(tensor_linalg_cond(a, S(2)), 0, 0, 0);
		assert_values(tensor_linalg_cond(a, S(-2)), 0, 0, 0);
		assert_values(tensor_linalg_cond(a, S(1)), 0, 0, 0);
		assert_values(tensor_linalg_cond_p_str(a, "nuc"), 0, 0, 0);
		assert_values(tensor_linalg_cond(ok(tensor_zeros(TENSOR_INTS(0, 3), F64)), S(2)), 0,
			      0);
	}
}

/* ---- errors ---- */

static void singular_matrices_fail_or_set_info(void **state)
{
	const double x[] = { 1, 2, 2, 4 };
	tensor *inverse, *info;

	tensor_scope {
		tensor *a = ok(tensor_from_data(x, TENSOR_INTS(2, 2), F64));
		tensor *negative = ok(tensor_neg(a));

		assert_fails(tensor_linalg_inv(a), EDOM, "matrix 0 is singular");
		assert_fails(tensor_linalg_solve(a, a), EDOM, "singular");
		assert_fails(tensor_linalg_cholesky(negative), EDOM, "not positive-definite");
		assert_fails(tensor_linalg_lu_factor(a, &inverse, &info) == 0 ? info : NULL, EDOM,
			     "matrix 0 is singular");
		assert_done(tensor_linalg_lu(a, &inverse, &info, &negative));
		assert_done(tensor_linalg_inv_ex(a, &inverse, &info));
		assert_values(info, 0, 2);
		assert_values(tensor_linalg_matrix_rank(a, 1e-12, false), 0, 1);
		assert_values(tensor_linalg_cond(a, S(1)), 0, INFINITY);
	}
}

static void nan_and_infinity_are_refused(void **state)
{
	static const double values[] = { NAN, INFINITY };
	tensor *q, *r, *s;

	for (int i = 0; i < 2; i++)
		tensor_scope {
			tensor *a = ok(tensor_full(TENSOR_INTS(3, 3), S(values[i]), F64));

			assert_fails(tensor_linalg_eig(a, &q, &r) == 0 ? q : NULL, EDOM, "NaN");
			assert_fails(tensor_linalg_eigvals(a), EDOM, "NaN");
			assert_fails(tensor_linalg_svd(a, true, &q, &s, &r) == 0 ? q : NULL, EDOM,
				     "NaN");
			assert_fails(tensor_linalg_svdvals(a), EDOM, "NaN");
			assert_fails(tensor_linalg_pinv(a, 0.1, false), EDOM, "NaN");
			assert_done(tensor_linalg_qr(a, "reduced", &q, &r));
		}
}

/* Pivots are rows that LAPACK exchanges: others would be out of bounds. */
static void pivots_out_of_range_are_refused(void **state)
{
	static const double bad[] = { 0, 4, -1, INT32_MAX, INT32_MIN };
	tensor *p, *l, *u;

	for (int i = 0; i < 5; i++)
		tensor_scope {
			const double x[] = { 1, bad[i], 3 };
			tensor *pivots = ok(tensor_to(ok(tensor_from_data(x, TENSOR_INTS(3), F64)),
						      TENSOR_OPTIONS(.dtype = TENSOR_I32)));
			tensor *a = ok(tensor_eye(3, F64));

			assert_fails(tensor_linalg_lu_solve(a, pivots, a), EINVAL, "pivots");
			assert_fails(
				tensor_lu_unpack(a, pivots, true, true, &p, &l, &u) == 0 ? p : NULL,
				EINVAL, "pivots");
			assert_fails(
				tensor_linalg_lu_solve(
					a,
					ok(tensor_to(pivots, TENSOR_OPTIONS(.dtype = TENSOR_I64))),
					a),
				EINVAL, "i32");
			assert_fails(tensor_linalg_lu_solve(a, ok(tensor_narrow(pivots, 0, 0, 2)),
							    a),
				     EINVAL, "fit");
		}
}

static void shapes_and_dtypes_are_checked(void **state)
{
	tensor *q, *r, *s;

	tensor_scope {
		tensor *a = ok(tensor_ones(TENSOR_INTS(2, 3), F64)), *one = ok(tensor_eye(3, F64));
		tensor *whole = ok(tensor_to(one, I64)),
		       *three = ok(tensor_ones(TENSOR_INTS(3, 3, 3), F64));

		assert_fails(tensor_linalg_inv(a), EINVAL, "[2, 3]");
		assert_fails(tensor_linalg_inv(whole), EINVAL, "i64");
		assert_fails(tensor_det(ok(tensor_ones(TENSOR_INTS(3), F64))), EINVAL, "matrices");
		assert_fails(tensor_linalg_solve(one, a), EINVAL, "fit");
		assert_fails(tensor_linalg_solve(one, ok(tensor_to(one, F32))), EINVAL, "dtype");
		assert_fails(tensor_linalg_solve(ok(tensor_expand(one, TENSOR_INTS(2, 3, 3))),
						 three),
			     EINVAL, "broadcast");
		assert_fails(tensor_linalg_solve_opt(one, ok(tensor_ones(TENSOR_INTS(3), F64)),
						     false),
			     EINVAL, "left");
		assert_fails(tensor_linalg_qr(a, "full", &q, &r) == 0 ? q : NULL, EINVAL, "mode");
		assert_fails(tensor_linalg_svd_opt(a, true, "gesvd", &q, &s, &r) == 0 ? q : NULL,
			     EINVAL, "CUDA");
		assert_fails(tensor_linalg_lu_factor_opt(one, false, &q, &r) == 0 ? q : NULL,
			     EOPNOTSUPP, "pivot");
		assert_fails(
			tensor_linalg_householder_product(a, ok(tensor_ones(TENSOR_INTS(2), F64))),
			EINVAL, "fit");
	}
}

static void out_forms_write_to_their_arguments(void **state)
{
	const double x[] = { 2, 0, 0, 4 };

	tensor_scope {
		tensor *a = ok(tensor_from_data(x, TENSOR_INTS(2, 2), F64));
		tensor *room = ok(tensor_zeros(TENSOR_INTS(4, 4), F64)),
		       *q = ok(tensor_empty(TENSOR_INTS(0), F64));
		tensor *part = ok(tensor_slice(ok(tensor_slice(room, 0, 0, 4, 2)), 1, 0, 4, 2));
		tensor *info =
			ok(tensor_empty(TENSOR_INTS(0), TENSOR_OPTIONS(.dtype = TENSOR_I32)));

		assert_done(tensor_linalg_inv_ex_out(part, info, a));
		assert_values(part, 1e-15, 0.5, 0, 0, 0.25);
		assert_done(tensor_linalg_qr_out(q, a, a, "reduced")); /* out is self */
		assert_values(q, 1e-15, 1, 0, 0, 1);
		assert_values(a, 1e-15, 2, 0, 0, 4);
		assert_true(tensor_linalg_qr_out(part, part, a, "reduced") < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(product_of_the_factors_is_the_matrix),
		cmocka_unit_test(solve_and_inv_agree_with_products),
		cmocka_unit_test(determinants_equal_known_values),
		cmocka_unit_test(matrices_without_columns_are_not_exchanged),
		cmocka_unit_test(condition_number_of_an_empty_matrix_is_zero),
		cmocka_unit_test(singular_matrices_fail_or_set_info),
		cmocka_unit_test(nan_and_infinity_are_refused),
		cmocka_unit_test(pivots_out_of_range_are_refused),
		cmocka_unit_test(shapes_and_dtypes_are_checked),
		cmocka_unit_test(out_forms_write_to_their_arguments),
	};

	/* Exit status 77 means skipped: LAPACK is not installed. */
	if (!dlopen("liblapack.so.3", RTLD_NOW)) {
		fprintf(stderr, "LAPACK is not installed: %s\n", dlerror());
		return 77;
	}
	return cmocka_run_group_tests_name("linalg", tests, NULL, NULL);
}
