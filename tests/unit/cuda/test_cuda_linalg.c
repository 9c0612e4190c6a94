// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: linear algebra by cuSOLVER against the CPU's results, its errors, and the operators without cuSOLVER. */
#include "cuda_results.h"

#include "tests/cuda/host/include/cuda_host.h"

static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_C64, TENSOR_C128 };

static bool is_complex(enum tensor_dtype d)
{
	return d == TENSOR_C64 || d == TENSOR_C128;
}

static double near(enum tensor_dtype d)
{
	return d == TENSOR_F64 || d == TENSOR_C128 ? 1e-10 : 2e-3;
}

static tensor *matrices(tensor_ints shape, enum tensor_dtype d)
{
	const enum tensor_dtype real = d == TENSOR_C64	? TENSOR_F32 :
				       d == TENSOR_C128 ? TENSOR_F64 :
							  d;

	if (!is_complex(d))
		return pseudo_random(shape, d);
	return ok(tensor_view_as_complex(tensor_stack(
		TENSOR_LIST(pseudo_random(shape, real), pseudo_random(shape, real)), -1)));
}

/* n linearly independent rows and columns: a multiple of the identity is added. */
static tensor *regular(tensor_ints shape, enum tensor_dtype d)
{
	tensor *a = matrices(shape, d);
	tensor *one = ok(tensor_eye(shape.data[shape.len - 1], TENSOR_OPTIONS(.dtype = d)));

	return ok(tensor_add(a, tensor_mul_scalar(one, TENSOR_SCALAR(9))));
}

static tensor *positive(tensor_ints shape, enum tensor_dtype d)
{
	tensor *a = regular(shape, d);

	return ok(tensor_matmul(a, tensor_adjoint(a)));
}

/* Complex numbers as pairs, which are compared. */
static tensor *parts(tensor *t)
{
	ok(t);
	return is_complex(tensor_dtype(t)) ? ok(tensor_view_as_real(t)) : t;
}

#define assert_as_cpu(g, c, d) assert_near(parts(g), parts(c), near(d))

typedef void (*check_fn)(enum tensor_dtype d, int64_t count, int64_t n, int64_t k);

/* One matrix and a batch of each dtype. */
static void each(check_fn check)
{
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
		tensor_scope
			check(dtypes[i], 1, 5, 3);
		tensor_scope
			check(dtypes[i], 6, 4, 2);
	}
	assert_int_equal(tensor_cuda_fallbacks(NULL), 0);
}

/* Two matrices that are too large to be computed together. */
static void large(check_fn check)
{
	if (long_cases())
		tensor_scope
			check(TENSOR_F64, 2, 257, 1);
}

/* ---- LU ---- */

static void check_lu(enum tensor_dtype d, int64_t count, int64_t n, int64_t k)
{
	tensor *a = regular(TENSOR_SHAPE(count, n, n), d),
	       *b = matrices(TENSOR_SHAPE(count, n, k), d);
	tensor *x[4], *y[4];

	assert_done(tensor_linalg_lu_factor_ex_opt(on_cuda(a), true, false, &x[0], &x[1], &x[2]));
	assert_done(tensor_linalg_lu_factor_ex_opt(a, true, false, &y[0], &y[1], &y[2]));
	assert_as_cpu(x[0], y[0], d);
	assert_near(x[1], y[1], 0);
	assert_near(x[2], y[2], 0);
	for (int form = 0; form < 4; form++) {
		tensor *side = form & 1 ? b : tensor_contiguous(tensor_mT(b));

		assert_as_cpu(tensor_linalg_lu_solve_opt(x[0], x[1], on_cuda(side), form & 1,
							 form & 2),
			      tensor_linalg_lu_solve_opt(y[0], y[1], side, form & 1, form & 2), d);
	}
	assert_as_cpu(tensor_linalg_solve_opt(on_cuda(a), on_cuda(b), true),
		      tensor_linalg_solve_opt(a, b, true), d);
	assert_as_cpu(tensor_linalg_inv(on_cuda(a)), tensor_linalg_inv(a), d);
	assert_as_cpu(tensor_linalg_det(tensor_narrow(tensor_narrow(on_cuda(a), 1, 0, 3), 2, 0, 3)),
		      tensor_linalg_det(tensor_narrow(tensor_narrow(a, 1, 0, 3), 2, 0, 3)), d);
	assert_done(tensor_linalg_slogdet(on_cuda(a), &x[0], &x[1]));
	assert_done(tensor_linalg_slogdet(a, &y[0], &y[1]));
	assert_as_cpu(x[0], y[0], d);
	assert_as_cpu(x[1], y[1], d);
	a = ok(tensor_narrow(tensor_narrow(a, 1, 0, 4), 2, 0, 3));
	assert_done(tensor_linalg_lu_opt(on_cuda(a), true, &x[0], &x[1], &x[2]));
	assert_done(tensor_linalg_lu_opt(a, true, &y[0], &y[1], &y[2]));
	for (int i = 0; i < 3; i++)
		assert_as_cpu(x[i], y[i], d);
}

static void lu_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	each(check_lu);
	large(check_lu);
}

/* ---- Cholesky and triangles ---- */

static void check_cholesky(enum tensor_dtype d, int64_t count, int64_t n, int64_t k)
{
	tensor *a = positive(TENSOR_SHAPE(count, n, n), d),
	       *b = matrices(TENSOR_SHAPE(count, n, k), d);

	for (int upper = 0; upper < 2; upper++) {
		tensor *x = ok(tensor_linalg_cholesky_opt(on_cuda(a), upper));
		tensor *y = ok(tensor_linalg_cholesky_opt(a, upper));

		assert_as_cpu(x, y, d);
		assert_as_cpu(tensor_cholesky_solve(on_cuda(b), x, upper),
			      tensor_cholesky_solve(b, y, upper), d);
		for (int form = 0; form < 4; form++) {
			tensor *side = form & 1 ? b : tensor_mT(b);

			assert_as_cpu(tensor_linalg_solve_triangular_opt(x, on_cuda(side), upper,
									 form & 1, form & 2),
				      tensor_linalg_solve_triangular_opt(y, side, upper, form & 1,
									 form & 2),
				      d);
		}
	}
}

static void cholesky_and_triangles_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	each(check_cholesky);
	large(check_cholesky);
}

/* ---- QR ---- */

static void check_qr(enum tensor_dtype d, int64_t count, int64_t n, int64_t k)
{
	static const char *const modes[] = { "reduced", "complete", "r" };
	tensor *wide = matrices(TENSOR_SHAPE(count, k, n), d), *tall = tensor_mT(wide), *x[2],
	       *y[2];

	for (int i = 0; i < 6; i++) {
		tensor *a = i & 1 ? wide : tall;

		assert_done(tensor_linalg_qr(on_cuda(a), modes[i / 2], &x[0], &x[1]));
		assert_done(tensor_linalg_qr(a, modes[i / 2], &y[0], &y[1]));
		assert_as_cpu(x[0], y[0], d);
		assert_as_cpu(x[1], y[1], d);
	}
	assert_done(tensor_geqrf(on_cuda(tall), &x[0], &x[1]));
	assert_done(tensor_geqrf(tall, &y[0], &y[1]));
	assert_as_cpu(tensor_linalg_householder_product(x[0], x[1]),
		      tensor_linalg_householder_product(y[0], y[1]), d);
}

static void qr_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	each(check_qr);
}

/* ---- eigenvalues and singular values: vectors have any sign, so their products are compared ---- */

static tensor *on_cpu(tensor *t)
{
	return ok(tensor_to(ok(t), CPU));
}

/* left diag(values) right, computed on the CPU */
static tensor *composed(tensor *left, tensor *values, tensor *right)
{
	const int64_t k = tensor_sizes(values)[tensor_dim(values) - 1];
	tensor *l = ok(tensor_narrow(left, -1, 0, k)), *r = ok(tensor_narrow(right, -2, 0, k));

	tensor *scaled = tensor_mul(on_cpu(l), tensor_unsqueeze(on_cpu(values), -2));

	return on_cuda(tensor_matmul(scaled, on_cpu(r)));
}

static tensor *product_with_adjoint(tensor *a)
{
	a = on_cpu(a);
	return on_cuda(tensor_matmul(tensor_adjoint(a), a));
}

static tensor *identities(tensor *a)
{
	const int64_t n = tensor_sizes(a)[tensor_dim(a) - 1];
	tensor *one = ok(tensor_eye(n, TENSOR_OPTIONS(.dtype = tensor_dtype(a))));

	return ok(tensor_contiguous(tensor_expand(one, TENSOR_INTS(tensor_sizes(a)[0], n, n))));
}

static void check_eigh(enum tensor_dtype d, int64_t count, int64_t n, int64_t k)
{
	tensor *a = positive(TENSOR_SHAPE(count, n, n), d), *w, *v, *w2, *v2;

	for (int upper = 0; upper < 2; upper++) {
		tensor *half = upper ? tensor_triu(a, 0) : tensor_tril(a, 0);

		assert_done(tensor_linalg_eigh(on_cuda(half), upper ? "U" : "L", &w, &v));
		assert_done(tensor_linalg_eigh(half, upper ? "U" : "L", &w2, &v2));
		assert_near(w, w2, near(d));
		assert_as_cpu(composed(v, w, tensor_contiguous(tensor_adjoint(v))), a, d);
		assert_as_cpu(product_with_adjoint(v), identities(v), d);
		assert_near(tensor_linalg_eigvalsh(on_cuda(half), upper ? "U" : "L"), w2, near(d));
	}
}

static void eigh_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	each(check_eigh);
}

static void check_svd(enum tensor_dtype d, int64_t count, int64_t n, int64_t k)
{
	tensor *tall = matrices(TENSOR_SHAPE(count, n, k), d);
	tensor *u, *s, *vh, *u2, *s2, *vh2;

	for (int i = 0; i < 18; i++) {
		static const char *const drivers[] = { "gesvd",	 NULL,	   NULL,
						       "gesvdj", "gesvdj", "gesvdj",
						       "gesvda", "gesvda", "gesvda" };
		const char *driver = drivers[i / 2];
		tensor *a = i / 2 % 3 == 0 ? tall :
			    i / 2 % 3 == 1 ? tensor_mT(tall) :
					     matrices(TENSOR_SHAPE(count, k, k), d);

		if (i >= 12 && (i & 1) && i / 2 % 3 < 2 && n != k) {
			assert_fails(tensor_linalg_svd_opt(on_cuda(a), true, driver, &u, &s, &vh),
				     EINVAL, "gesvda gives no full matrices");
			continue;
		}
		assert_done(tensor_linalg_svd_opt(on_cuda(a), i & 1, driver, &u, &s, &vh));
		assert_done(tensor_linalg_svd_opt(a, i & 1, NULL, &u2, &s2, &vh2));
		assert_near(s, s2, near(d));
		assert_int_equal(tensor_sizes(u)[2], tensor_sizes(u2)[2]);
		assert_int_equal(tensor_sizes(vh)[1], tensor_sizes(vh2)[1]);
		assert_as_cpu(composed(u, s, vh), a, d);
		assert_as_cpu(product_with_adjoint(u), identities(u), d);
		assert_near(tensor_linalg_svdvals_opt(on_cuda(a), driver), s2, near(d));
	}
}

static void svd_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	each(check_svd);
}

/* ---- bad input ---- */

static void errors_name_the_matrix(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *zero = ok(tensor_zeros(TENSOR_INTS(3, 2, 2), CUDA_OF(TENSOR_F64))), *x[3];
		tensor *one = ok(tensor_eye(2, CUDA_OF(TENSOR_F64)));
		tensor *nan =
			ok(tensor_full(TENSOR_INTS(2, 2), TENSOR_SCALAR(NAN), CUDA_OF(TENSOR_F64)));
		tensor *pivots =
			on_cuda(ok(tensor_to(integers(TENSOR_SHAPE(2), (int64_t[]){ 1, 3 }),
					     TENSOR_OPTIONS(.dtype = TENSOR_I32))));

		ok(tensor_copy_(tensor_select(zero, 0, 0), one));
		assert_fails(tensor_linalg_inv(zero), EDOM, "matrix 1 is singular");
		assert_fails(tensor_linalg_solve_opt(zero, zero, true), EDOM,
			     "matrix 1 is singular");
		assert_fails(tensor_linalg_cholesky_opt(zero, false), EDOM,
			     "matrix 1 is not positive-definite");
		assert_fails(tensor_linalg_eigh(nan, "L", &x[0], &x[1]), EDOM, "NaN");
		assert_fails(tensor_linalg_svd_opt(nan, true, NULL, &x[0], &x[1], &x[2]), EDOM,
			     "NaN");
		assert_fails(tensor_linalg_svd_opt(one, true, "gesvdz", &x[0], &x[1], &x[2]),
			     EINVAL, "gesvdz");
		assert_fails(tensor_linalg_lu_solve_opt(one, pivots, one, true, false), EINVAL,
			     "pivots must be in 1 .. 2, got 3");
		/* The other triangle is not read. */
		x[0] = ok(tensor_clone(one));
		ok(tensor_fill_(tensor_select(tensor_select(x[0], 0, 0), 0, 1),
				TENSOR_SCALAR(NAN)));
		assert_done(tensor_linalg_eigh(x[0], "L", &x[1], &x[2]));
	}
}

static void empty_matrices(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = ok(tensor_zeros(TENSOR_INTS(2, 0, 0), F64)), *x[3], *y[3];
		tensor *b = ok(tensor_zeros(TENSOR_INTS(0, 3, 3), F64));

		assert_near(tensor_linalg_inv(on_cuda(a)), tensor_linalg_inv(a), 0);
		assert_near(tensor_linalg_inv(on_cuda(b)), tensor_linalg_inv(b), 0);
		assert_near(tensor_linalg_det(on_cuda(a)), tensor_linalg_det(a), 0);
		assert_near(tensor_linalg_cholesky_opt(on_cuda(b), true),
			    tensor_linalg_cholesky_opt(b, true), 0);
		assert_done(tensor_linalg_eigh(on_cuda(a), "L", &x[0], &x[1]));
		assert_done(tensor_linalg_eigh(a, "L", &y[0], &y[1]));
		assert_near(x[0], y[0], 0);
		a = ok(tensor_zeros(TENSOR_INTS(3, 0), F64));
		assert_done(tensor_linalg_svd_opt(on_cuda(a), true, NULL, &x[0], &x[1], &x[2]));
		assert_done(tensor_linalg_svd_opt(a, true, NULL, &y[0], &y[1], &y[2]));
		for (int i = 0; i < 3; i++)
			assert_near(x[i], y[i], 0);
		assert_done(tensor_linalg_qr(on_cuda(a), "complete", &x[0], &x[1]));
		assert_done(tensor_linalg_qr(a, "complete", &y[0], &y[1]));
		for (int i = 0; i < 2; i++)
			assert_near(x[i], y[i], 0);
	}
}

/* ---- waits ---- */

/* Only what checks its argument or its result waits for the device. */
static void factorizations_without_checks_do_not_wait(void **state)
{
	struct cuda_host_counts before, after;
	void (*counts)(struct cuda_host_counts *);

	NEED_DEVICE();
	counts = emulation("cuda_host_counts");
	if (!counts) {
		print_message("# skipped: make test-cuda runs it\n");
		skip();
	}
	tensor_scope {
		tensor *a = on_cuda(positive(TENSOR_SHAPE(3, 4, 4), TENSOR_F64)), *x[3];
		tensor *large = on_cuda(positive(TENSOR_SHAPE(4, 4), TENSOR_F64));

		ok(tensor_linalg_inv(a)); /* makes the handles */
		for (int i = 0; i < 2; i++) {
			counts(&before);
			assert_done(tensor_linalg_lu_factor_ex(a, &x[0], &x[1], &x[2]));
			assert_done(tensor_linalg_cholesky_ex(a, &x[0], &x[1]));
			assert_done(tensor_linalg_solve_ex(a, a, &x[0], &x[1]));
			assert_done(tensor_linalg_inv_ex(a, &x[0], &x[1]));
			ok(tensor_linalg_det(a));
			ok(tensor_cholesky_solve(a, a, false));
			ok(tensor_linalg_solve_triangular(a, a, false));
			assert_done(tensor_linalg_qr(a, "reduced", &x[0], &x[1]));
			counts(&after);
			assert_int_equal(after.waits, before.waits);
			assert_true(after.launches >= before.launches + 9);
			a = large;
		}
		counts(&before);
		ok(tensor_linalg_inv(a)); /* reads info */
		counts(&after);
		assert_true(after.waits > before.waits);
	}
}

/* ---- without cuSOLVER ---- */

/* In a process of its own, before it loads cuSOLVER. */
static void without_cusolver(void)
{
	tensor_scope {
		tensor *a = regular(TENSOR_SHAPE(4, 4), TENSOR_F64), *g = on_cuda(a);

		tensor_cuda_set_fallback(false);
		assert_fails(tensor_linalg_inv(g), EOPNOTSUPP, "/no/such/library");
		tensor_cuda_set_fallback(true);
		assert_near(tensor_linalg_inv(g), tensor_linalg_inv(a), 1e-10);
		if (tensor_cuda_fallbacks("linalg_inv_ex") != 1)
			exit(3);
	}
}

static void systems_are_solved_on_the_cpu_without_cusolver(void **state)
{
	without_library("TENSOR_CUSOLVER", without_cusolver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* Before this process opens CUDA, which a child could not use then. */
		cmocka_unit_test(systems_are_solved_on_the_cpu_without_cusolver),
		cmocka_unit_test(lu_equals_the_cpu),
		cmocka_unit_test(cholesky_and_triangles_equal_the_cpu),
		cmocka_unit_test(qr_equals_the_cpu),
		cmocka_unit_test(eigh_equals_the_cpu),
		cmocka_unit_test(svd_equals_the_cpu),
		cmocka_unit_test(errors_name_the_matrix),
		cmocka_unit_test(empty_matrices),
		cmocka_unit_test(factorizations_without_checks_do_not_wait),
	};

	return cmocka_run_group_tests_name("cuda_linalg", tests, NULL, NULL);
}
