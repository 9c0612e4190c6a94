// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Sparse tensors, COO and CSR: components, conversions, products, gradients, errors. */
#include "operands.h"

/* [[0, 0, 1 + 4], [2 + 3, 0, 0]], with duplicate entries. */
static tensor *sample(void)
{
	return ok(tensor_sparse_coo_tensor(ints(TENSOR_INTS(0, 1, 1, 0, 2, 0, 0, 2),
						TENSOR_INTS(2, 4)),
					   FLOATS(TENSOR_INTS(4), 1, 2, 3, 4), TENSOR_INTS(2, 3)));
}

static int64_t nnz(tensor *t)
{
	int64_t n = -1;

	assert_done(tensor__nnz(t, &n));
	return n;
}

static bool coalesced(tensor *t)
{
	bool is = false;

	assert_done(tensor_is_coalesced(t, &is));
	return is;
}

static void coalesce_sums_duplicates_and_sorts(void **state)
{
	tensor_scope {
		tensor *s = sample(), *c = ok(tensor_coalesce(s));

		assert_int_equal(tensor_layout(s), TENSOR_SPARSE_COO);
		assert_int_equal(nnz(s), 4);
		assert_false(coalesced(s));
		assert_int_equal(nnz(c), 2);
		assert_true(coalesced(c));
		assert_values(tensor_indices(c), 0, 0, 1, 2, 0);
		assert_values(tensor_values(c), 0, 5, 5);
		assert_values(tensor_to_dense(s), 0, 0, 0, 5, 5, 0, 0);
		assert_values(tensor__indices(s), 0, 0, 1, 1, 0, 2, 0, 0, 2);
		assert_fails(tensor_values(s) != NULL, EINVAL, "not coalesced");
	}
}

static void strided_and_sparse_convert_into_each_other(void **state)
{
	tensor_scope {
		tensor *d = FLOATS(TENSOR_INTS(2, 2, 2), 0, -0.0f, 3, 0, NAN, 0, 0, 7);
		tensor *s = ok(tensor_to_sparse(d)), *h = ok(tensor_to_sparse_dim(d, 1));
		tensor *m = FLOATS(TENSOR_INTS(3, 2), 0, 1, 0, 0, 2, 3),
		       *csr = ok(tensor_to_sparse_csr(m));

		assert_int_equal(nnz(s), 3);
		assert_values(tensor_values(s), 0, 3, NAN, 7);
		assert_values(tensor_to_dense(s), 0, 0, 0, 3, 0, NAN, 0, 0, 7);
		assert_int_equal(nnz(h), 2);
		assert_shape(tensor_values(h), 2, 2, 2);
		assert_values(tensor_to_dense(h), 0, 0, 0, 3, 0, NAN, 0, 0, 7);
		assert_int_equal(tensor_layout(csr), TENSOR_SPARSE_CSR);
		assert_values(tensor_crow_indices(csr), 0, 0, 1, 1, 3);
		assert_values(tensor_col_indices(csr), 0, 1, 0, 1);
		assert_values(tensor_to_dense(csr), 0, 0, 1, 0, 0, 2, 3);
		assert_values(tensor_to_dense(tensor_t(csr)), 0, 0, 0, 2, 1, 0, 3);
		assert_values(tensor_to_dense(tensor_to_sparse(csr)), 0, 0, 1, 0, 0, 2, 3);
		assert_values(
			tensor_to_dense(tensor_to_sparse(tensor_zeros(TENSOR_INTS(2, 0), F32))),
			0, );
	}
}

static void every_dtype_converts_to_sparse_and_back(void **state)
{
	for (int d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++)
		tensor_scope {
			tensor *dense = ok(tensor_to(FLOATS(TENSOR_INTS(2, 3), 0, 1, 0, 1, 1, 0),
						     TENSOR_OPTIONS(.dtype = d)));
			tensor *s = ok(tensor_to_sparse(dense));
			tensor *two = ok(tensor_sparse_coo_tensor(
				tensor__indices(s), tensor__values(s), TENSOR_INTS(2, 3)));

			assert_int_equal(nnz(s), 3);
			assert_int_equal(tensor_dtype(tensor_to_dense(two)), d);
			if (d < TENSOR_C64)
				assert_values(tensor_to_dense(two), 0, 0, 1, 0, 1, 1, 0);
		}
}

static void products_equal_strided_ones(void **state)
{
	tensor_scope {
		tensor *s = sample(), *csr = ok(tensor_to_sparse_csr(s)),
		       *d = ok(tensor_to_dense(s));

		for (int64_t n = 1; n < 140; n += 23) {
			tensor *x = iota(-5, TENSOR_INTS(3, n)), *y = iota(2, TENSOR_INTS(n, 2));
			tensor *want = ok(tensor_mm(d, x)), *right = ok(tensor_mm(y, d));
			tensor *bias = iota(1, TENSOR_INTS(2, n)),
			       *zero = iota(0, TENSOR_INTS(2, 1));

			zero = ok(tensor_mul_scalar(zero, TENSOR_SCALAR(0)));
			assert_true(tensor_layout(tensor_mm(s, x)) == TENSOR_STRIDED);
#define SAME(a, b)                                                                     \
	do {                                                                           \
		double got_ = -1;                                                      \
		tensor *diff_ = ok(tensor_sub(a, b));                                  \
		assert_done(tensor_item(tensor_sum(tensor_mul(diff_, diff_)), &got_)); \
		assert_true(got_ == 0);                                                \
	} while (0)
			SAME(tensor_mm(s, x), want);
			SAME(tensor_mm(csr, x), want);
			SAME(tensor_mm(s, tensor_t(tensor_to_copy(tensor_t(x), TENSOR_OPTIONS(0)))),
			     want);
			SAME(tensor_mm(y, s), right);
			SAME(tensor_addmm_opt(bias, csr, x, TENSOR_SCALAR(2), TENSOR_SCALAR(3)),
			     tensor_addmm_opt(bias, d, x, TENSOR_SCALAR(2), TENSOR_SCALAR(3)));
			SAME(tensor_addmm(zero, s, x), want);
		}
	}
}

/* Sizes whose rows have few and many products, of more rows than parts and of fewer, and matrices without elements. */
static const int64_t shapes[][4] = { { 40, 30, 50, 4 },	 { 300, 200, 5000, 60 }, { 3, 700, 100, 2 },
				     { 400, 90, 70, 1 }, { 5, 4, 3, 100 },	 { 1, 1, 1, 1 },
				     { 0, 3, 4, 2 },	 { 2, 0, 3, 1 } };

static void the_product_of_sparse_matrices_is_that_of_strided_ones(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		tensor_scope {
			tensor *a = random_sparse(shapes[i][0], shapes[i][1], shapes[i][3], 1);
			tensor *b = random_sparse(shapes[i][1], shapes[i][2], shapes[i][3], 2);
			tensor *want = ok(tensor_mm(tensor_to_dense(a), tensor_to_dense(b)));
			tensor *coo = ok(tensor_mm(a, b)),
			       *csr = ok(tensor_mm(tensor_to_sparse_csr(a), b));

			assert_true(tensor_layout(coo) == TENSOR_SPARSE_COO &&
				    tensor_layout(csr) == TENSOR_SPARSE_CSR);
			SAME(tensor_to_dense(coo), want);
			SAME(tensor_to_dense(csr), want);
			/* Columns ascend: the parts make a matrix again. */
			ok(tensor_sparse_csr_tensor(tensor_crow_indices(csr),
						    tensor_col_indices(csr), tensor_values(csr),
						    TENSOR_INTS(shapes[i][0], shapes[i][2])));
		}
	tensor_scope {
		tensor *a = random_sparse(30, 30, 3, 3);
		const enum tensor_dtype dtypes[] = { TENSOR_BF16, TENSOR_F64, TENSOR_I64,
						     TENSOR_C64 };

		for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
			tensor *x = ok(tensor_to(a, TENSOR_OPTIONS(.dtype = dtypes[i]))),
			       *p = ok(tensor_mm(x, x));

			assert_true(tensor_dtype(p) == dtypes[i]);
			SAME(tensor_to(tensor_abs(tensor_to_dense(p)), F32),
			     tensor_to(tensor_abs(tensor_mm(tensor_to_dense(x), tensor_to_dense(x))),
				       F32));
		}
	}
}

static void sums_and_transposes_equal_strided_ones(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		tensor_scope {
			int64_t m = shapes[i][0], n = shapes[i][1];
			tensor *a = ok(tensor_coalesce(random_sparse(m, n, shapes[i][3], 1)));
			tensor *b = ok(tensor_coalesce(random_sparse(m, n, shapes[i][3], 2)));
			tensor *x = ok(tensor_to_sparse_csr(a)), *y = ok(tensor_to_sparse_csr(b)),
			       *turned;
			tensor *want = ok(tensor_add(tensor_to_dense(a), tensor_to_dense(b)));

			SAME(tensor_to_dense(tensor_add(a, b)), want);
			SAME(tensor_to_dense(tensor_add(x, y)), want);
			SAME(tensor_to_dense(tensor_sub(a, random_sparse(m, n, m * n + 1, 1))),
			     tensor_to_dense(a));
			turned = ok(tensor_t(x));
			SAME(tensor_to_dense(turned), tensor_t(tensor_to_dense(a)));
			ok(tensor_sparse_csr_tensor(tensor_crow_indices(turned),
						    tensor_col_indices(turned),
						    tensor_values(turned), TENSOR_INTS(n, m)));
		}
}

static void elementwise_operators_keep_the_layout(void **state)
{
	tensor_scope {
		tensor *s = sample(), *c = ok(tensor_coalesce(s)),
		       *csr = ok(tensor_to_sparse_csr(s));
		tensor *o = ok(tensor_to_sparse(FLOATS(TENSOR_INTS(2, 3), 1, 0, 2, 0, 3, 0)));
		tensor *ones = ok(tensor_ones(TENSOR_INTS(2, 3), F32));

		assert_values(tensor_to_dense(tensor_neg(s)), 0, 0, 0, -5, -5, 0, 0);
		assert_values(tensor_to_dense(tensor_relu(tensor_neg(s))), 0, 0, 0, 0, 0, 0, 0);
		assert_values(tensor_to_dense(tensor_add(s, o)), 0, 1, 0, 7, 5, 3, 0);
		assert_values(tensor_to_dense(tensor_sub(c, o)), 0, -1, 0, 3, 5, -3, 0);
		assert_true(coalesced(ok(tensor_add(c, o))));
		assert_values(tensor_to_dense(tensor_mul(s, o)), 0, 0, 0, 10, 0, 0, 0);
		assert_int_equal(nnz(ok(tensor_mul(c, o))), 1);
		assert_values(tensor_to_dense(tensor_mul(s, iota(1, TENSOR_INTS(3)))), 0, 0, 0, 15,
			      5, 0, 0);
		assert_values(tensor_add_opt(ones, s, TENSOR_SCALAR(2)), 0, 1, 1, 11, 11, 1, 1);
		assert_values(tensor_to_dense(tensor_div_scalar(s, TENSOR_SCALAR(2))), 0, 0, 0, 2.5,
			      2.5, 0, 0);
		assert_values(tensor_to_dense(tensor_add(csr, csr)), 0, 0, 0, 10, 10, 0, 0);
		assert_int_equal(tensor_layout(tensor_mul(csr, csr)), TENSOR_SPARSE_CSR);
		assert_values(tensor_sum(s), 0, 10);
		assert_values(tensor_to_dense(tensor_sum_dim(s, TENSOR_INTS(0), false)), 0, 5, 0,
			      5);
		assert_values(tensor_to_dense(tensor_sum_dim(s, TENSOR_INTS(1), true)), 0, 5, 5);
		assert_values(tensor_to_dense(tensor_t(s)), 0, 0, 5, 0, 0, 5, 0);
		assert_values(tensor_to_dense(tensor_to(s, F64)), 0, 0, 0, 5, 5, 0, 0);
		assert_ptr_equal(tensor_add_(c, o), c);
		assert_values(tensor_to_dense(c), 0, 1, 0, 7, 5, 3, 0);
		assert_ptr_equal(tensor_add_(ones, s), ones);
		assert_values(ones, 0, 1, 1, 6, 6, 1, 1);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *i = ints(TENSOR_INTS(0, 1, 1, 3), TENSOR_INTS(2, 2)),
		       *v = FLOATS(TENSOR_INTS(2), 1, 2);
		tensor *crow = ints(TENSOR_INTS(0, 2, 1), TENSOR_INTS(3)),
		       *col = ints(TENSOR_INTS(0, 1), TENSOR_INTS(2));
		char text[24];
		double x;

		assert_fails(tensor_sparse_coo_tensor(i, v, TENSOR_INTS(2, 3)) != NULL, EINVAL,
			     "index 3 of element 1 is out of range for dimension 1 of size 3");
		assert_fails(
			tensor_sparse_coo_tensor(ints(TENSOR_INTS(0, -1, 0, 0), TENSOR_INTS(2, 2)),
						 v, TENSOR_INTS(2, 3)) != NULL,
			EINVAL, "index -1");
		assert_fails(tensor_sparse_coo_tensor(i, v, TENSOR_INTS(2)) != NULL, EINVAL,
			     "2 sparse");
		assert_fails(tensor_sparse_coo_tensor(i, FLOATS(TENSOR_INTS(1), 1),
						      TENSOR_INTS(2, 4)) != NULL,
			     EINVAL, "values must be [2, ...]");
		assert_fails(tensor_sparse_coo_tensor(v, v, TENSOR_INTS(2, 4)) != NULL, EINVAL,
			     "i64 or i32");
		assert_fails(tensor_sparse_csr_tensor(crow, col, v, TENSOR_INTS(2, 2)) != NULL,
			     EINVAL, "from 0 to 2");
		assert_fails(tensor_sparse_csr_tensor(ints(TENSOR_INTS(0, 3, 2), TENSOR_INTS(3)),
						      col, v, TENSOR_INTS(2, 2)) != NULL,
			     EINVAL, "must not descend");
		assert_fails(tensor_sparse_csr_tensor(ints(TENSOR_INTS(0, 2, 2), TENSOR_INTS(3)),
						      ints(TENSOR_INTS(1, 0), TENSOR_INTS(2)), v,
						      TENSOR_INTS(2, 2)) != NULL,
			     EINVAL, "0 after 1");
		assert_fails(tensor_sparse_csr_tensor(ints(TENSOR_INTS(0, 1, 2), TENSOR_INTS(3)),
						      ints(TENSOR_INTS(1, 2), TENSOR_INTS(2)), v,
						      TENSOR_INTS(2, 2)) != NULL,
			     EINVAL, "column 2");
		/*
		 * Operators without sparse kernels fail, with sparse tensors alone or beside a
		 * strided one.
		 */
		assert_fails(tensor_exp(sample()) != NULL, EOPNOTSUPP,
			     "exp: no kernel for SparseCPU");
		assert_fails(tensor_lt(iota(0, TENSOR_INTS(2, 3)), sample()) != NULL, EOPNOTSUPP,
			     "no kernel for CPU+SparseCPU");
		assert_fails(tensor_view(sample(), TENSOR_INTS(6)) != NULL, EOPNOTSUPP, "view");
		assert_fails(tensor_add_out(iota(0, TENSOR_INTS(2, 3)), sample(), sample()) != NULL,
			     EOPNOTSUPP, "out");
		assert_fails(tensor_coalesce(iota(0, TENSOR_INTS(2))) != NULL, EOPNOTSUPP,
			     "no kernel for CPU");
		assert_fails(tensor_mm(sample(), sample()) != NULL, EINVAL, "[2, 3]");
		assert_fails(tensor_mm_out(iota(0, TENSOR_INTS(2, 2)), sample(),
					   tensor_t(sample())) != NULL,
			     EOPNOTSUPP, "no out form");
		assert_fails(tensor_addmm(iota(0, TENSOR_INTS(2, 2)), sample(),
					  tensor_t(sample())) != NULL,
			     EOPNOTSUPP, "strided");
		assert_fails(tensor_item(sample(), &x), EINVAL, "one element");
		assert_fails(tensor_copy_to(sample(), text, sizeof(text)), EOPNOTSUPP, "SparseCPU");
		assert_null(tensor_data(sample()));
	}
}

static void printing_shows_indices_and_values(void **state)
{
	tensor_scope {
		char text[400];

		tensor_format(sample(), text, sizeof(text));
		assert_string_equal(text, "tensor(indices=tensor([[0, 1, 1, 0],\n"
					  "                       [2, 0, 0, 2]]),\n"
					  "       values=tensor([1., 2., 3., 4.]),\n"
					  "       size=[2, 3], nnz=4, layout=sparse_coo)");
	}
}

static void the_same_bits_on_any_number_of_threads(void **state)
{
	const int n = 3000, m = 100000;

	tensor_scope {
		int64_t *at = malloc(2 * m * sizeof(*at));
		float *v = malloc(m * sizeof(*v));
		tensor *a, *b, *x;
		double difference = 1;
		uint64_t seed = 1;

		for (int i = 0; i < 2 * m; i++) {
			seed = seed * 6364136223846793005ull + 1;
			at[i] = seed >> 33 & 0x7ff;
			v[i % m] = (float)(seed >> 40) / 12345.f - 600;
		}
		a = ok(tensor_sparse_coo_tensor(ints((tensor_ints){ at, 2 * m }, TENSOR_INTS(2, m)),
						floats(v, TENSOR_INTS(m)), TENSOR_INTS(n, n)));
		x = ok(tensor_div_scalar(iota(1, TENSOR_INTS(n, 40)), TENSOR_SCALAR(7)));
		assert_done(tensor_set_num_threads(1));
		b = ok(tensor_mm(a, x));
		assert_done(tensor_set_num_threads(4));
		b = ok(tensor_sub(b, tensor_mm(a, x)));
		assert_done(tensor_item(tensor_sum(tensor_abs(b)), &difference));
		assert_true(difference == 0);
		/* 16 parts, whose rows have many products. */
		b = ok(tensor_values(tensor_mm(a, a)));
		assert_done(tensor_set_num_threads(1));
		a = ok(tensor_values(tensor_mm(a, a)));
		assert_memory_equal(tensor_data(a), tensor_data(b),
				    tensor_numel(a) * sizeof(float));
		assert_done(tensor_set_num_threads(4));
		free(at);
		free(v);
	}
}

/* ---- gradients ---- */

static tensor *indices; /* of a sparse tensor of the pattern [[0, 1, 1, 0], [2, 0, 1, 2]] */

static tensor *through_dense(tensor *const *in, void *ctx)
{
	tensor *s = tensor_sparse_coo_tensor(indices, in[0], TENSOR_INTS(2, 3));

	return tensor_sum(tensor_mul(tensor_to_dense(s), in[1]));
}

static tensor *through_mm(tensor *const *in, void *ctx)
{
	tensor *s = tensor_sparse_coo_tensor(indices, in[0], TENSOR_INTS(2, 3));
	tensor *p = ctx ? tensor__sparse_mm(s, in[1]) : tensor_mm(s, in[1]);

	return tensor_sum(tensor_mul(p, p));
}

static tensor *through_csr(tensor *const *in, void *ctx)
{
	tensor *s = tensor_sparse_csr_tensor(ints(TENSOR_INTS(0, 1, 3), TENSOR_INTS(3)),
					     ints(TENSOR_INTS(2, 0, 1), TENSOR_INTS(3)), in[0],
					     TENSOR_INTS(2, 3));
	tensor *p = tensor__sparse_mm(s, in[1]);

	return tensor_sum(tensor_mul(p, p));
}

static tensor *through_sums(tensor *const *in, void *ctx)
{
	tensor *s = tensor_sparse_coo_tensor(indices, in[0], TENSOR_INTS(2, 3));
	tensor *c =
		tensor_coalesce(tensor_add(s, tensor_mul_scalar(tensor_neg(s), TENSOR_SCALAR(3))));

	return tensor_sum(tensor_mul(tensor_values(c), tensor_values(c)));
}

/* Each conversion and back. */
static tensor *through_conversions(tensor *const *in, void *ctx)
{
	tensor *coo = tensor_to_dense(tensor_to_sparse(tensor_mul(in[0], in[0])));
	tensor *rows = tensor_to_dense(tensor_to_sparse_dim(tensor_exp(in[0]), 1));
	tensor *csr = tensor_to_dense(tensor_to_sparse_csr(tensor_sin(in[0])));

	return tensor_mul(coo, tensor_add(rows, csr));
}

static tensor *through_sparse_mm(tensor *const *in, void *ctx)
{
	tensor *s = tensor_coalesce(tensor_sparse_coo_tensor(indices, in[0], TENSOR_INTS(2, 3)));
	tensor *p = tensor_to_dense(tensor_mm(s, tensor_t(tensor_neg(s))));

	return tensor_sum(tensor_mul(p, p));
}

/* The gradient of each factor is at its indices, though both are sparse. */
static tensor *through_sparse_factors(tensor *const *in, void *ctx)
{
	tensor *s = tensor_coalesce(tensor_sparse_coo_tensor(indices, in[0], TENSOR_INTS(2, 3)));
	tensor *p = tensor__sparse_mm(s, tensor_t(tensor_neg(s)));

	return tensor_sum(tensor_to_dense(tensor_mul(p, p)));
}

/* in[0], dense, at the indices of a mask, whose values in[1] are not read. */
static tensor *through_mask(tensor *const *in, void *ctx)
{
	tensor *mask = tensor_coalesce(tensor_sparse_coo_tensor(indices, in[1], TENSOR_INTS(2, 3)));
	tensor *masked = tensor_sparse_mask(tensor_exp(in[0]), mask);

	return tensor_mul(tensor_to_dense(masked), tensor_sum(in[1]));
}

static void gradients_reach_the_values(void **state)
{
	tensor_scope {
		tensor *v = ok(tensor_to(iota(1, TENSOR_INTS(4)), F64)),
		       *d = ok(tensor_to(iota(-1, TENSOR_INTS(2, 3)), F64));
		tensor *x = ok(tensor_to(iota(1, TENSOR_INTS(3, 2)), F64)),
		       *w = ok(tensor_to(iota(3, TENSOR_INTS(3)), F64));
		tensor *const all[] = { v, d, x, w };

		indices = ints(TENSOR_INTS(0, 1, 1, 0, 2, 0, 1, 2), TENSOR_INTS(2, 4));
		for (int i = 0; i < 4; i++)
			assert_done(tensor_set_requires_grad(all[i], true));
		assert_done(gradcheck(through_dense, NULL, TENSOR_LIST(v, d), 1e-6, 1e-6, 1e-5));
		assert_done(gradcheck(through_mm, NULL, TENSOR_LIST(v, x), 1e-6, 1e-5, 1e-5));
		assert_done(gradcheck(through_mm, v, TENSOR_LIST(v, x), 1e-6, 1e-5, 1e-5));
		assert_done(gradcheck(through_csr, NULL, TENSOR_LIST(w, x), 1e-6, 1e-5, 1e-5));
		assert_done(gradcheck(through_sums, NULL, TENSOR_LIST(v), 1e-6, 1e-5, 1e-5));
		assert_done(gradcheck(through_sparse_mm, NULL, TENSOR_LIST(v), 1e-6, 1e-5, 1e-5));
		assert_done(
			gradcheck(through_sparse_factors, NULL, TENSOR_LIST(v), 1e-6, 1e-5, 1e-5));
		assert_done(gradcheck(through_mask, NULL, TENSOR_LIST(d, v), 1e-6, 1e-5, 1e-5));
		assert_done(gradgradcheck(through_mask, NULL, TENSOR_LIST(d, v), 1e-6, 1e-5, 1e-5));
		assert_done(gradcheck(through_conversions, NULL, TENSOR_LIST(x), 1e-6, 1e-5, 1e-5));
		assert_done(
			gradgradcheck(through_conversions, NULL, TENSOR_LIST(x), 1e-6, 1e-5, 1e-5));
		assert_done(gradgradcheck(through_mm, v, TENSOR_LIST(v, x), 1e-6, 1e-5, 1e-5));
	}
}

static void a_sparse_leaf_gets_a_sparse_gradient(void **state)
{
	tensor_scope {
		tensor *s = ok(tensor_coalesce(sample())), *x = iota(1, TENSOR_INTS(3, 2));

		assert_done(tensor_set_requires_grad(s, true));
		for (int i = 1; i <= 2; i++) {
			assert_done(tensor_backward(tensor_sum(tensor__sparse_mm(s, x))));
			assert_int_equal(tensor_layout(tensor_grad(s)), TENSOR_SPARSE_COO);
			assert_values(tensor_values(tensor_grad(s)), 0, 11 * i, 3 * i);
		}
	}
}

static void a_detached_tensor_has_the_same_parts(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_to_sparse(iota(1, TENSOR_INTS(2, 2)))), *y, *z;

		assert_done(tensor_set_requires_grad(x, true));
		y = ok(tensor_detach(x));
		assert_true(tensor_is_leaf(y) && !tensor_requires_grad(y));
		assert_true(tensor_shares_storage(tensor__values(x), tensor__values(y)));
		ok(tensor_mul_scalar_(y, S(2)));
		assert_values(tensor_to_dense(y), 0, 2, 4, 6, 8);
		assert_values(tensor_to_dense(tensor_detach(x)), 0, 1, 2, 3, 4);
		z = ok(tensor_alias(x));
		assert_string_equal(tensor_node_name(tensor_grad_fn(z)), "AliasBackward");
		assert_done(tensor_backward(tensor_sum(z)));
		assert_values(tensor_to_dense(tensor_grad(x)), 0, 1, 1, 1, 1);
		z = ok(tensor_alias(tensor_to_sparse_csr(iota(1, TENSOR_INTS(2, 2)))));
		assert_values(tensor_to_dense(z), 0, 1, 2, 3, 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coalesce_sums_duplicates_and_sorts),
		cmocka_unit_test(strided_and_sparse_convert_into_each_other),
		cmocka_unit_test(every_dtype_converts_to_sparse_and_back),
		cmocka_unit_test(products_equal_strided_ones),
		cmocka_unit_test(the_product_of_sparse_matrices_is_that_of_strided_ones),
		cmocka_unit_test(sums_and_transposes_equal_strided_ones),
		cmocka_unit_test(elementwise_operators_keep_the_layout),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(printing_shows_indices_and_values),
		cmocka_unit_test(the_same_bits_on_any_number_of_threads),
		cmocka_unit_test(gradients_reach_the_values),
		cmocka_unit_test(a_sparse_leaf_gets_a_sparse_gradient),
		cmocka_unit_test(a_detached_tensor_has_the_same_parts),
	};

	return cmocka_run_group_tests_name("sparse", tests, NULL, NULL);
}
