// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Eigenvalues and eigenvectors: A V = V diag(w), V^H V = 1, and their gradients. */
#include "formulas.h"

#include <dlfcn.h>

/* Batches of matrices [2, 3, n, n], symmetric or antisymmetric, of any floating dtype. */
static tensor *matrices(int64_t n, bool anti, tensor_options options)
{
	tensor *t = ok(tensor_empty(TENSOR_INTS(2, 3, n, n), F64));
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++)
		p[i] = sin(1.3 * (double)(i * i % 1009));
	t = anti ? ok(tensor_sub(t, ok(tensor_transpose(t, -1, -2)))) :
		   ok(tensor_add(t, ok(tensor_transpose(t, -1, -2))));
	return ok(tensor_to(t, options));
}

static double greatest(tensor *t)
{
	double v;

	assert_done(tensor_copy_to(
		ok(tensor_to(ok(tensor_linalg_vector_norm(t, S(INFINITY), TENSOR_NO_INTS, false)),
			     F64)),
		&v, sizeof(v)));
	return v;
}

static void product_of_vectors_and_values_is_the_matrix(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_C64,
						    TENSOR_C128 };
	static const int64_t sizes[] = { 1, 2, 5, 40 };
	tensor *w, *v;

	for (int k = 0; k < 4; k++)
		for (int s = 0; s < 4; s++)
			tensor_scope {
				tensor_options o = TENSOR_OPTIONS(.dtype = dtypes[k]);
				tensor *a = matrices(sizes[s], false, o), *left, *right, *values;
				double tolerance = k % 2 ? 1e-12 : 2e-4;

				if (k > 1)
					a = ok(tensor_add(a,
							  ok(tensor_mul_scalar(
								  matrices(sizes[s], true, o),
								  tensor_scalar_complex(0, 1)))));
				assert_done(tensor_linalg_eigh(a, "L", &w, &v));
				assert_int_equal(tensor_dtype(w), k % 2 ? TENSOR_F64 : TENSOR_F32);
				assert_int_equal(tensor_dtype(v), dtypes[k]);
				assert_shape(w, 2, 3, sizes[s]);
				left = ok(tensor_matmul(a, v));
				right = ok(tensor_mul(v, ok(tensor_unsqueeze(w, -2))));
				assert_true(greatest(ok(tensor_sub(left, right))) < tolerance);
				values = ok(tensor_linalg_eigvalsh(a, "L"));
				assert_true(greatest(ok(tensor_sub(values, w))) < tolerance);
			}
}

static void only_one_triangle_is_read(void **state)
{
	const double x[] = { 2, 7, 1, 2 };
	tensor *w, *v;

	tensor_scope {
		tensor *a = ok(tensor_from_data(x, TENSOR_INTS(2, 2), F64));

		assert_values(tensor_linalg_eigvalsh(a, "L"), 1e-14, 1, 3);
		assert_values(tensor_linalg_eigvalsh(a, "U"), 1e-14, -5, 9);
		assert_values(tensor_linalg_eigvalsh(ok(tensor_t(a)), "u"), 1e-14, 1, 3);
		assert_values(a, 0, 2, 7, 1, 2);
		assert_fails(tensor_linalg_eigvalsh(a, "X"), EINVAL, "UPLO");
		assert_fails(tensor_linalg_eigh(ok(tensor_narrow(a, 0, 0, 1)), "L", &w, &v), EINVAL,
			     "[1, 2]");
		assert_fails(tensor_linalg_eigh(ok(tensor_to(a, I64)), "L", &w, &v), EINVAL, "i64");
		assert_done(tensor_linalg_eigh(ok(tensor_empty(TENSOR_INTS(3, 0, 0), F32)), "L", &w,
					       &v));
		assert_shape(w, 3, 0);
		assert_shape(v, 3, 0, 0);
	}
}

/* Eigenvalues or eigenvectors of a + a^H; vectors without their sign. */
static tensor *value_part(tensor *a, bool values, bool vectors)
{
	tensor *w, *v, *sum = NULL;

	if (tensor_linalg_eigh(tensor_add(a, tensor_adjoint(a)), "L", &w, &v) < 0)
		return NULL;
	if (values)
		sum = tensor_mul(w, w);
	if (vectors) {
		v = tensor_real(tensor_mul(v, tensor_conj_physical(v)));
		sum = sum ? tensor_add(tensor_unsqueeze(sum, -1), v) : v;
	}
	return sum;
}

CASE(fn_values, value_part(a, true, false))
CASE(fn_vectors, value_part(a, false, true))
CASE(fn_both, value_part(a, true, true))
CASE(fn_eigvalsh, tensor_linalg_eigvalsh(tensor_add(a, tensor_adjoint(a)), "L"))

static const struct formula formulas[] = {
	ROW(values, 1, IN(1, 0, 3, 3)),
	ROW(vectors, 1, IN(1, 0, 3, 3)),
	ROW(both, 1, IN(1, 0, 2, 2, 2)),
	ROW(eigvalsh, 1, IN_T(1, 0, 3, 3)),
};

FORMULA_TESTS

/* The matrix stays symmetric after a gradient step. */
static void gradient_is_symmetric(void **state)
{
	tensor *w, *v, *g;

	tensor_scope {
		tensor *a = matrices(4, false, F64), *square;

		assert_done(tensor_set_requires_grad(a, true));
		assert_done(tensor_linalg_eigh(a, "L", &w, &v));
		square = ok(tensor_mul(ok(tensor_mul(v, v)), iota(1, TENSOR_INTS(4, 1))));
		assert_done(
			tensor_backward(ok(tensor_add(ok(tensor_sum(square)), ok(tensor_sum(w))))));
		g = tensor_grad(a);
		assert_true(greatest(g) > 1);
		assert_true(greatest(ok(tensor_sub(g, ok(tensor_transpose(g, -1, -2))))) < 1e-12);
	}
}

/* An error on every device, whatever LAPACK makes of them. The other triangle is not read. */
static void matrices_that_are_not_finite_are_refused(void **state)
{
	static const double values[] = { NAN, INFINITY, -INFINITY };
	tensor *w, *v;

	for (int i = 0; i < 18; i++)
		tensor_scope {
			const int64_t n = i < 9 ? 2 : 40, row = i % 3 > 0, column = i % 3 > 1;
			const tensor_scalar value = TENSOR_SCALAR(values[i / 3 % 3]);
			tensor *a = ok(tensor_eye(n, F64));

			ok(tensor_fill_(tensor_select(tensor_select(a, 0, row), 0, column), value));
			assert_fails(tensor_linalg_eigh(a, "L", &w, &v), EDOM, "NaN");
			assert_fails(tensor_linalg_eigvalsh(tensor_mT(a), "U"), EDOM, "NaN");
			a = ok(tensor_eye(n, F64));
			ok(tensor_fill_(tensor_select(tensor_select(a, 0, 0), 0, 1), value));
			assert_done(tensor_linalg_eigh(a, "L", &w, &v));
			assert_int_equal(tensor_last_error()->code, 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(product_of_vectors_and_values_is_the_matrix),
		cmocka_unit_test(only_one_triangle_is_read),
		cmocka_unit_test(gradient_is_symmetric),
		cmocka_unit_test(matrices_that_are_not_finite_are_refused),
		FORMULA_TEST_LIST,
	};

	/* Exit status 77 means skipped: LAPACK is not installed. */
	if (!dlopen("liblapack.so.3", RTLD_NOW)) {
		fprintf(stderr, "LAPACK is not installed: %s\n", dlerror());
		return 77;
	}
	return cmocka_run_group_tests_name("eigh", tests, NULL, NULL);
}
