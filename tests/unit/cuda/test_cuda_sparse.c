// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: sparse tensors against the CPU's results. */
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

/* Of any layout and dtype, in a form without a function of its own. */
static void check_conversions(enum tensor_dtype d)
{
	tensor *a = coo(d), *csr = ok(tensor_to_sparse_csr(a)), *g = on_cuda(a), *c = on_cuda(csr);
	tensor *dense = ok(tensor_to_dense(a)), *block = pseudo_random(TENSOR_SHAPE(3, 4, 2), d);
	const double tol = d == TENSOR_BF16 ? tolerance(d) : 0;

	block = ok(tensor_mul(
		block, tensor_to(tensor_remainder_scalar(
					 tensor_reshape(tensor_arange(TENSOR_SCALAR(12), I64),
							TENSOR_INTS(3, 4, 1)),
					 TENSOR_SCALAR(3)),
				 TENSOR_OPTIONS(.dtype = d))));
	same_sparse(tensor_sparse_coo_tensor(on_cuda(tensor__indices(a)),
					     on_cuda(tensor__values(a)), TENSOR_INTS(6, 5)),
		    a, 0);
	same_sparse(tensor_sparse_csr_tensor(tensor_crow_indices(c), tensor_col_indices(c),
					     tensor_values(c), TENSOR_INTS(6, 5)),
		    csr, 0);
	assert_near(tensor_to_dense(g), dense, tol);
	assert_near(tensor_to_dense(c), dense, tol);
	assert_near(tensor_to_dense(on_cuda(dense)), dense, 0);
	same_sparse(tensor_to_sparse(on_cuda(dense)), tensor_to_sparse(dense), 0);
	same_sparse(tensor_to_sparse_csr(on_cuda(dense)), tensor_to_sparse_csr(dense), 0);
	same_sparse(tensor_to_sparse(c), tensor_to_sparse(csr), 0);
	for (int64_t k = 1; k < 4; k++) {
		tensor *cpu = ok(tensor_to_sparse_dim(block, k)), *gpu;

		gpu = ok(tensor_to_sparse_dim(on_cuda(block), k));
		same_sparse(gpu, cpu, 0);
		assert_near(tensor_to_dense(gpu), block, 0);
		same_sparse(
			tensor_permute(gpu, k == 2 ? TENSOR_INTS(1, 0, 2) : TENSOR_INTS(0, 1, 2)),
			tensor_permute(cpu, k == 2 ? TENSOR_INTS(1, 0, 2) : TENSOR_INTS(0, 1, 2)),
			0);
	}
	same_sparse(tensor_t(g), tensor_t(a), 0);
	same_sparse(tensor_t(c), tensor_t(csr), 0);
	same_sparse(tensor_sparse_mask(on_cuda(dense), g), tensor_sparse_mask(dense, a), 0);
	same_sparse(tensor_sparse_mask(g, on_cuda(tensor_to_sparse(dense))),
		    tensor_sparse_mask(a, tensor_to_sparse(dense)), tol);
}

static void conversions_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
		tensor_scope
			check_conversions(dtypes[i]);
	tensor_scope {
		tensor *none = ok(tensor_zeros(TENSOR_SHAPE(3, 0, 2), F32)), *t;

		t = ok(tensor_to_sparse(on_cuda(none)));
		same_sparse(t, tensor_to_sparse(none), 0);
		assert_near(tensor_to_dense(t), none, 0);
		none = ok(tensor_full(TENSOR_SHAPE(), TENSOR_SCALAR(7), F32));
		t = ok(tensor_to_sparse(on_cuda(none)));
		same_sparse(t, tensor_to_sparse(none), 0);
		assert_near(tensor_to_dense(t), none, 0);
	}
}

/* Elements that only one of the two has, too. */
static void check_arithmetic(enum tensor_dtype d)
{
	tensor *a = coo(d),
	       *b = ok(tensor_t(tensor_to_sparse(pseudo_random(TENSOR_SHAPE(5, 6), d))));
	tensor *dense = pseudo_random(TENSOR_SHAPE(6, 5), d), *g = on_cuda(a), *h;
	const double tol = d == TENSOR_F32 || d == TENSOR_F64 || d == TENSOR_BF16 ? tolerance(d) :
										    0;

	b = ok(tensor_mul(b, tensor_to(tensor_ge_scalar(dense, TENSOR_SCALAR(1)),
				       TENSOR_OPTIONS(.dtype = d))));
	h = on_cuda(b);
	same_sparse(tensor_add(g, h), tensor_add(a, b), tol);
	same_sparse(tensor_sub(g, h), tensor_sub(a, b), tol);
	same_sparse(tensor_mul(g, h), tensor_mul(a, b), tol);
	same_sparse(tensor_mul(g, on_cuda(dense)), tensor_mul(a, dense), tol);
	assert_near(tensor_add(on_cuda(dense), g), tensor_add(dense, a), tol);
	same_sparse(tensor_mul_scalar(g, TENSOR_SCALAR(3)), tensor_mul_scalar(a, TENSOR_SCALAR(3)),
		    tol);
	same_sparse(tensor_mul(g, ok(tensor_full(TENSOR_SHAPE(), TENSOR_SCALAR(3), I64))),
		    tensor_mul_scalar(a, TENSOR_SCALAR(3)), tol);
	if (d != TENSOR_U64) /* sums of u64 have no kernel */
		assert_near(tensor_sum(g), tensor_sum(a), tol);
	same_sparse(tensor_sum_dim(g, TENSOR_INTS(0), false),
		    tensor_sum_dim(a, TENSOR_INTS(0), false), tol);
	same_sparse(tensor_sum_dim(g, TENSOR_INTS(1), true),
		    tensor_sum_dim(a, TENSOR_INTS(1), true), tol);
	a = ok(tensor_to_sparse_csr(a));
	b = ok(tensor_to_sparse_csr(b));
	g = on_cuda(a);
	h = on_cuda(b);
	same_sparse(tensor_add(g, h), tensor_add(a, b), tol);
	same_sparse(tensor_mul(g, h), tensor_mul(a, b), tol);
	same_sparse(tensor_add(g, g), tensor_add(a, a), tol);
	if (d == TENSOR_U8 || d == TENSOR_U64)
		return;
	same_sparse(tensor_neg(g), tensor_neg(a), 0);
	same_sparse(tensor_abs(g), tensor_abs(a), 0);
	if (d != TENSOR_I64)
		same_sparse(tensor_tanh(g), tensor_tanh(a), tolerance(d));
}

static void arithmetic_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
		tensor_scope
			check_arithmetic(dtypes[i]);
	tensor_scope {
		tensor *a = coo(TENSOR_F32), *g = on_cuda(a);

		same_sparse(tensor_add(g, g), tensor_add(a, a), 0);
		same_sparse(tensor_relu(g), tensor_relu(a), 0);
		ok(tensor_mul_scalar_(g, TENSOR_SCALAR(2)));
		same_sparse(g, tensor_mul_scalar(a, TENSOR_SCALAR(2)), 0);
		ok(tensor_add_(g, g));
		same_sparse(tensor_coalesce(g),
			    tensor_coalesce(tensor_mul_scalar(a, TENSOR_SCALAR(4))), 1e-6);
	}
}

/* None of the calls before. */
static void nothing_runs_on_the_cpu(void **state)
{
	NEED_DEVICE();
	assert_int_equal(tensor_cuda_fallbacks(NULL), 0);
}

/* The text of a refusal. */
static const char *error_of(tensor *t)
{
	static char text[2][TENSOR_ERROR_TEXT];
	static int i;

	assert_null(t);
	assert_int_equal(tensor_last_error()->code, EINVAL);
	snprintf(text[i ^= 1], sizeof(text[0]), "%s", tensor_last_error()->text);
	return text[i];
}

static void check_refused_coo(const int64_t *at)
{
	tensor *i = integers(TENSOR_SHAPE(2, 3), at),
	       *v = pseudo_random(TENSOR_SHAPE(3), TENSOR_F32);
	const char *cpu = error_of(tensor_sparse_coo_tensor(i, v, TENSOR_INTS(4, 5)));

	assert_string_equal(
		error_of(tensor_sparse_coo_tensor(on_cuda(i), on_cuda(v), TENSOR_INTS(4, 5))), cpu);
}

static void check_refused_csr(const int64_t *rows, const int64_t *cols)
{
	tensor *r = integers(TENSOR_SHAPE(4), rows), *c = integers(TENSOR_SHAPE(3), cols);
	tensor *v = pseudo_random(TENSOR_SHAPE(3), TENSOR_F32);
	const char *cpu = error_of(tensor_sparse_csr_tensor(r, c, v, TENSOR_INTS(3, 4)));

	assert_string_equal(error_of(tensor_sparse_csr_tensor(on_cuda(r), on_cuda(c), on_cuda(v),
							      TENSOR_INTS(3, 4))),
			    cpu);
}

static void indices_are_checked_on_the_device(void **state)
{
	static const int64_t coo_at[][6] = { { 0, 4, 1, 0, 1, 2 },
					     { 0, 3, 1, 0, -1, 2 },
					     { 0, 3, 1, 0, 5, INT64_MIN },
					     { INT64_MAX, 3, 1, 0, 4, 2 } };
	static const int64_t rows[][4] = { { 0, 1, 2, 3 }, { 1, 1, 2, 3 }, { 0, 1, 2, 2 },
					   { 0, 3, 2, 3 }, { 0, 4, 3, 3 }, { 0, -1, 2, 3 },
					   { 0, 3, 3, 3 }, { 0, 2, 3, 3 } };
	static const int64_t cols[][3] = { { 0, 4, 1 }, { 0, 1, 2 }, { 0, 1, 2 }, { 0, 1, 2 },
					   { 0, 1, 2 }, { 0, 1, 2 }, { 0, 2, 1 }, { 1, 1, 2 } };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(coo_at); i++)
		tensor_scope
			check_refused_coo(coo_at[i]);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		tensor_scope
			check_refused_csr(rows[i], cols[i]);
	tensor_scope {
		static const int64_t last[] = { INT64_MAX, 0, 1 };
		tensor *i = integers(TENSOR_SHAPE(1, 3), last);
		tensor *v = pseudo_random(TENSOR_SHAPE(3), TENSOR_F32);

		assert_fails(tensor_sparse_coo_tensor_infer(i, v), EINVAL, "range");
		assert_fails(tensor_sparse_coo_tensor_infer(on_cuda(i), on_cuda(v)), EINVAL,
			     "range");
		/* Indices of the host are copied to the device of the values. */
		i = integers(TENSOR_SHAPE(1, 3), (const int64_t[]){ 2, 0, 1 });
		same_sparse(tensor_sparse_coo_tensor(i, on_cuda(v), TENSOR_INTS(3)),
			    tensor_sparse_coo_tensor(i, v, TENSOR_INTS(3)), 0);
	}
}

static void operands_of_two_devices_are_refused(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = coo(TENSOR_F32), *g = on_cuda(a);
		tensor *dense = pseudo_random(TENSOR_SHAPE(6, 5), TENSOR_F32);

		assert_fails(tensor_exp(g), EOPNOTSUPP, "exp: no kernel for SparseCUDA");
		assert_fails(tensor_add(g, a), EINVAL, "device");
		assert_fails(tensor_add(a, g), EINVAL, "device");
		assert_fails(tensor_mul(g, a), EINVAL, "device");
		assert_fails(tensor_mul(g, dense), EINVAL, "device");
		assert_fails(tensor_add(dense, g), EINVAL, "device");
		assert_fails(tensor_sparse_mask(dense, g), EINVAL, "device");
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

/* Of values and of strided operands. */
static void gradients_of_arithmetic_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *sparse = ok(tensor_coalesce(coo(TENSOR_F64)));
		tensor *values = ok(tensor__values(sparse)), *at = ok(tensor__indices(sparse));
		tensor *dense = pseudo_random(TENSOR_SHAPE(6, 5), TENSOR_F64);
		tensor *v[2], *d[2], *y;

		for (int on = 0; on < 2; on++) {
			v[on] = on ? on_cuda(values) : ok(tensor_clone(values));
			d[on] = on ? on_cuda(dense) : ok(tensor_clone(dense));
			assert_done(tensor_set_requires_grad(v[on], true));
			assert_done(tensor_set_requires_grad(d[on], true));
			y = ok(tensor_sparse_coo_tensor(on ? on_cuda(at) : at, v[on],
							TENSOR_INTS(6, 5)));
			y = ok(tensor_neg(tensor_mul(y, d[on])));
			y = ok(tensor_mul(tensor_to_dense(y), d[on]));
			assert_done(tensor_backward(ok(tensor_sum(y))));
		}
		assert_near(tensor_grad(v[1]), tensor_grad(v[0]), 1e-12);
		assert_near(tensor_grad(d[1]), tensor_grad(d[0]), 1e-12);
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
		cmocka_unit_test(conversions_equal_the_cpu),
		cmocka_unit_test(arithmetic_equals_the_cpu),
		cmocka_unit_test(a_size_is_inferred_from_indices_on_the_device),
		cmocka_unit_test(gradients_of_arithmetic_equal_the_cpu),
		cmocka_unit_test(gradients_of_a_product_equal_the_cpu),
		cmocka_unit_test(nothing_runs_on_the_cpu),
		cmocka_unit_test(indices_are_checked_on_the_device),
		cmocka_unit_test(operands_of_two_devices_are_refused),
	};

	return cmocka_run_group_tests_name("cuda_sparse", tests, NULL, NULL);
}
