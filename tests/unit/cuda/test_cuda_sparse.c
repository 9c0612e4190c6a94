// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: sparse tensors against the CPU's results: with kernels, and through the CPU. */
#include "cuda_results.h"

#include <tensor/autograd.h>

static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16,
					    TENSOR_U8,	TENSOR_I64, TENSOR_U64 };

/* COO [6, 5] with the same place several times, and a row without elements. */
static tensor *coo(enum tensor_dtype d)
{
	static const int64_t at[] = { 5, 0, 2, 0, 5, 3, 0, 2, 5, /* rows */
				      1, 4, 0, 4, 1, 2, 3, 0, 1 /* columns */ };

	return ok(tensor_sparse_coo_tensor(integers(TENSOR_SHAPE(2, 9), at),
					   pseudo_random(TENSOR_SHAPE(9), d), TENSOR_INTS(6, 5)));
}

static void same_sparse(tensor *gpu, tensor *cpu, double tol)
{
	int64_t n;

	assert_int_equal(tensor_get_device(ok(gpu)).type, TENSOR_CUDA);
	assert_done(tensor__nnz(gpu, &n));
	if (tensor_layout(ok(cpu)) == TENSOR_SPARSE_COO) {
		assert_near(tensor__indices(gpu), tensor__indices(cpu), 0);
		assert_near(tensor__values(gpu), tensor__values(cpu), tol);
	} else {
		assert_near(tensor_crow_indices(gpu), tensor_crow_indices(cpu), 0);
		assert_near(tensor_col_indices(gpu), tensor_col_indices(cpu), 0);
		assert_near(tensor_values(gpu), tensor_values(cpu), tol);
	}
}

static void products_equal_the_cpu_in(enum tensor_dtype d)
{
	tensor *a = coo(d), *csr = ok(tensor_to_sparse_csr(a));
	tensor *b = pseudo_random(TENSOR_SHAPE(5, 3), d), *c = pseudo_random(TENSOR_SHAPE(6, 3), d);
	const double tol = d == TENSOR_F32 || d == TENSOR_F64 || d == TENSOR_BF16 ? tolerance(d) :
										    0;
	tensor *left = pseudo_random(TENSOR_SHAPE(4, 6), d), *x = ok(tensor_narrow(b, 1, 0, 1));

	same_sparse(tensor_coalesce(on_cuda(a)), tensor_coalesce(a), tol);
	same_sparse(tensor_to_sparse_csr(on_cuda(a)), csr, tol);
	assert_near(tensor_mm(on_cuda(a), on_cuda(b)), tensor_mm(a, b), tol);
	assert_near(tensor_mm(on_cuda(csr), on_cuda(b)), tensor_mm(csr, b), tol);
	assert_near(tensor_mm(on_cuda(csr), tensor_narrow(on_cuda(b), 1, 0, 1)), tensor_mm(csr, x),
		    tol);
	assert_near(tensor_mm(on_cuda(left), on_cuda(csr)), tensor_mm(left, csr), tol);
	assert_near(tensor_addmm_opt(on_cuda(c), on_cuda(csr), on_cuda(b), TENSOR_SCALAR(2),
				     TENSOR_SCALAR(3)),
		    tensor_addmm_opt(c, csr, b, TENSOR_SCALAR(2), TENSOR_SCALAR(3)), tol);
	same_sparse(tensor__sparse_sampled_mm(on_cuda(c), on_cuda(tensor_t(b)), on_cuda(a)),
		    tensor__sparse_sampled_mm(c, tensor_t(b), a), tol);
	same_sparse(tensor__sparse_sampled_mm(on_cuda(c), on_cuda(tensor_t(b)), on_cuda(csr)),
		    tensor__sparse_sampled_mm(c, tensor_t(b), csr), tol);
}

static void products_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
		tensor_scope
			products_equal_the_cpu_in(dtypes[i]);
	assert_int_equal(tensor_cuda_fallbacks("mm"), 0);
	assert_int_equal(tensor_cuda_fallbacks("addmm"), 0);
	assert_int_equal(tensor_cuda_fallbacks("coalesce"), 0);
	assert_int_equal(tensor_cuda_fallbacks("to_sparse_csr"), 0);
	assert_int_equal(tensor_cuda_fallbacks("_sparse_sampled_mm"), 0);
}

/* Several threads add the entries of a row: [70, 500] with about 80 in each row, but none in row 0 and all in row 1. */
static void products_of_long_rows_equal_the_cpu_in(enum tensor_dtype d)
{
	const double tol = d == TENSOR_F32 || d == TENSOR_F64 ? 8 * tolerance(d) : 0;
	tensor *mask =
		ok(tensor_lt_scalar(pseudo_random(TENSOR_SHAPE(70, 500), TENSOR_F64), S(-0.6)));
	tensor *values = pseudo_random(TENSOR_SHAPE(70, 500), d), *a, *g, *c, *x;

	ok(tensor_fill_(tensor_select(mask, 0, 0), S(0)));
	ok(tensor_fill_(tensor_select(mask, 0, 1), S(1)));
	a = ok(tensor_to_sparse_csr(
		ok(tensor_mul(values, ok(tensor_to(mask, TENSOR_OPTIONS(.dtype = d)))))));
	g = on_cuda(a);
	for (int64_t n = 1; n < 6; n++) {
		x = pseudo_random(TENSOR_SHAPE(500, n), d);
		c = pseudo_random(TENSOR_SHAPE(70, n), d);
		assert_near(tensor_mm(g, on_cuda(x)), tensor_mm(a, x), tol);
		assert_near(tensor_addmm_opt(on_cuda(c), g, on_cuda(x), S(2), S(3)),
			    tensor_addmm_opt(c, a, x, S(2), S(3)), tol);
	}
}

static void products_of_long_rows_equal_the_cpu(void **state)
{
	static const enum tensor_dtype some[] = { TENSOR_F32, TENSOR_F64, TENSOR_U8, TENSOR_I64 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(some); i++)
		tensor_scope
			products_of_long_rows_equal_the_cpu_in(some[i]);
	tensor_scope {
		tensor *z =
			tensor_view_as_complex(pseudo_random(TENSOR_SHAPE(9, 40, 2), TENSOR_F64));
		tensor *x = tensor_view_as_complex(
			       pseudo_random(TENSOR_SHAPE(40, 1, 2), TENSOR_F64)),
		       *y;
		tensor *a = ok(tensor_to_sparse_csr(z));

		y = ok(tensor_mm(on_cuda(a), on_cuda(x)));
		assert_near(tensor_view_as_real(y), tensor_view_as_real(ok(tensor_mm(a, x))),
			    1e-12);
	}
	assert_int_equal(tensor_cuda_fallbacks("mm"), 0);
}

/* Values with dimensions of their own, bool, and complex numbers. */
static void other_values_are_coalesced_as_on_the_cpu(void **state)
{
	static const int64_t at[] = { 3, 1, 3, 3, 1 };

	NEED_DEVICE();
	tensor_scope {
		tensor *i = integers(TENSOR_SHAPE(1, 5), at), *pairs, *a, *b;

		a = ok(tensor_sparse_coo_tensor(i, pseudo_random(TENSOR_SHAPE(5, 2, 3), TENSOR_F32),
						TENSOR_INTS(4, 2, 3)));
		same_sparse(tensor_coalesce(on_cuda(a)), tensor_coalesce(a), 0);
		a = ok(tensor_sparse_coo_tensor(i, pseudo_random(TENSOR_SHAPE(5), TENSOR_BOOL),
						TENSOR_INTS(4)));
		same_sparse(tensor_coalesce(on_cuda(a)), tensor_coalesce(a), 0);
		pairs = pseudo_random(TENSOR_SHAPE(5, 2), TENSOR_F64);
		a = ok(tensor_sparse_coo_tensor(i, tensor_view_as_complex(pairs), TENSOR_INTS(4)));
		b = ok(tensor_coalesce(on_cuda(a)));
		assert_near(tensor_view_as_real(tensor__values(b)),
			    tensor_view_as_real(tensor__values(ok(tensor_coalesce(a)))), 0);
		a = ok(tensor_sparse_coo_tensor(tensor_narrow(i, 1, 0, 0),
						pseudo_random(TENSOR_SHAPE(0), TENSOR_F32),
						TENSOR_INTS(4)));
		same_sparse(tensor_coalesce(on_cuda(a)), tensor_coalesce(a), 0);
	}
}

/* Constructed on the device, and by operators that run on the CPU. */
static void other_operators_run_on_the_cpu(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = coo(TENSOR_F32), *csr = ok(tensor_to_sparse_csr(a)), *g = on_cuda(a),
		       *t;
		tensor *dense = pseudo_random(TENSOR_SHAPE(6, 5), TENSOR_F32);

		t = ok(tensor_sparse_coo_tensor(on_cuda(tensor__indices(a)),
						on_cuda(tensor__values(a)), TENSOR_INTS(6, 5)));
		same_sparse(t, a, 0);
		t = ok(tensor_sparse_csr_tensor(on_cuda(tensor_crow_indices(csr)),
						on_cuda(tensor_col_indices(csr)),
						on_cuda(tensor_values(csr)), TENSOR_INTS(6, 5)));
		same_sparse(t, csr, 0);
		same_sparse(tensor_to_sparse(on_cuda(dense)), tensor_to_sparse(dense), 0);
		assert_near(tensor_to_dense(g), tensor_to_dense(a), 0);
		same_sparse(tensor_add(g, g), tensor_add(a, a), 0);
		assert_near(tensor_add(on_cuda(dense), g), tensor_add(dense, a), 0);
		same_sparse(tensor_neg(g), tensor_neg(a), 0);
		same_sparse(tensor_t(on_cuda(csr)), tensor_t(csr), 0);
		same_sparse(tensor_clone(g), tensor_clone(a), 0);
		ok(tensor_mul_scalar_(g, TENSOR_SCALAR(2)));
		same_sparse(g, tensor_mul_scalar(a, TENSOR_SCALAR(2)), 0);
		assert_fails(tensor_exp(g), EOPNOTSUPP, "exp: no kernel for SparseCUDA");
		assert_fails(tensor_add(g, a), EINVAL, "not on cuda");
		assert_fails(tensor_mm(g, tensor_t(dense)), EINVAL, "device");
		assert_fails(tensor_mm(on_cuda(tensor_t(dense)), a), EINVAL, "device");
	}
}

static void a_size_is_inferred_from_indices_on_the_device(void **state)
{
	static const int64_t at[] = { 5, 0, 2, 1, 4, 0 };

	NEED_DEVICE();
	tensor_scope {
		tensor *i = integers(TENSOR_SHAPE(2, 3), at), *g;
		tensor *v = pseudo_random(TENSOR_SHAPE(3), TENSOR_F32);

		g = ok(tensor_sparse_coo_tensor_infer(on_cuda(i), on_cuda(v)));
		assert_shape(g, 6, 5);
		same_sparse(g, tensor_sparse_coo_tensor_infer(i, v), 0);
	}
}

static void gradients_of_a_product_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *sparse = ok(tensor_coalesce(coo(TENSOR_F64)));
		tensor *dense = pseudo_random(TENSOR_SHAPE(5, 3), TENSOR_F64);
		tensor *leaf[2][2];

		for (int on = 0; on < 2; on++) {
			leaf[on][0] = on ? on_cuda(sparse) : ok(tensor_clone(sparse));
			leaf[on][1] = on ? on_cuda(dense) : ok(tensor_clone(dense));
			for (int i = 0; i < 2; i++)
				assert_done(tensor_set_requires_grad(leaf[on][i], true));
			assert_done(tensor_backward(
				ok(tensor_sum(tensor__sparse_mm(leaf[on][0], leaf[on][1])))));
		}
		same_sparse(tensor_grad(leaf[1][0]), tensor_grad(leaf[0][0]), 1e-12);
		assert_near(tensor_grad(leaf[1][1]), tensor_grad(leaf[0][1]), 1e-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_equal_the_cpu),
		cmocka_unit_test(products_of_long_rows_equal_the_cpu),
		cmocka_unit_test(other_values_are_coalesced_as_on_the_cpu),
		cmocka_unit_test(other_operators_run_on_the_cpu),
		cmocka_unit_test(a_size_is_inferred_from_indices_on_the_device),
		cmocka_unit_test(gradients_of_a_product_equal_the_cpu),
	};

	return cmocka_run_group_tests_name("cuda_sparse", tests, NULL, NULL);
}
