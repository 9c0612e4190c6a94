// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Products of batches, vectors and tensors of any rank, against mm and numbers; exact for integers.
 */
#include "check.h"

static const enum tensor_dtype dtypes[] = { TENSOR_U8,	TENSOR_I8,  TENSOR_I16,	 TENSOR_I32,
					    TENSOR_I64, TENSOR_F16, TENSOR_BF16, TENSOR_F32,
					    TENSOR_F64, TENSOR_C64, TENSOR_C128 };
/* Integers 0 to 6, as [b, r, c] or its transpose. */
static tensor *batch(enum tensor_dtype d, int64_t b, int64_t r, int64_t c, bool turned)
{
	int64_t n = b * r * c, *v = malloc((n + 1) * sizeof(*v));
	tensor *t;

	for (int64_t i = 0; i < n; i++)
		v[i] = (i * 7 + 3) % 11 % 7;
	t = tensor_from_data(v, turned ? TENSOR_INTS(b, c, r) : TENSOR_INTS(b, r, c), I64);
	free(v);
	t = tensor_to(ok(t), TENSOR_OPTIONS(.dtype = d));
	return ok(turned ? tensor_transpose(t, 1, 2) : t);
}

static void bmm_is_mm_of_each_matrix(void **state)
{
	static const int64_t shapes[][4] = {
		{ 3, 2, 3, 4 }, { 40, 5, 7, 1 }, { 2, 70, 33, 20 }, { 5, 1, 6, 9 }, { 3, 2, 0, 4 }
	};

	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++)
		for (size_t d_ = 0; d_ < ARRAY_SIZE(dtypes); d_++)
			for (int turned = 0; turned < 4; turned++)
				tensor_scope {
					const int64_t *n = shapes[s];
					tensor *a = batch(dtypes[d_], n[0], n[1], n[2], turned & 1);
					tensor *b = batch(dtypes[d_], n[0], n[2], n[3], turned & 2);
					tensor *c = ok(tensor_bmm(a, b));

					for (int64_t i = 0; i < n[0]; i++)
						assert_same(tensor_select(c, 0, i),
							    tensor_mm(tensor_select(a, 0, i),
								      tensor_select(b, 0, i)));
				}
}

/* Few large products are divided among threads by product or within each; both have the same bits. */
static void few_large_products_have_the_same_bits_for_any_number_of_threads(void **state)
{
	int before = tensor_get_num_threads();

	for (int count = 2; count <= 7; count++)
		tensor_scope {
			tensor *a =
				ok(tensor_randn(TENSOR_SHAPE(count, 33, 511), TENSOR_OPTIONS(0)));
			tensor *b =
				ok(tensor_randn(TENSOR_SHAPE(count, 511, 130), TENSOR_OPTIONS(0)));
			tensor *c[3];

			for (int n = 0; n < 3; n++) {
				assert_done(tensor_set_num_threads(n + 1));
				c[n] = ok(tensor_bmm(a, b));
			}
			for (int i = 0; i < count; i++)
				assert_memory_equal(
					tensor_data(ok(tensor_select(c[0], 0, i))),
					tensor_data(ok(tensor_mm(ok(tensor_select(a, 0, i)),
								 ok(tensor_select(b, 0, i))))),
					33 * 130 * 4);
			for (int n = 1; n < 3; n++)
				assert_memory_equal(tensor_data(c[0]), tensor_data(c[n]),
						    count * 33 * 130 * 4);
		}
	tensor_set_num_threads(before);
}

/*
 * Panels are tasks if each thread has some of them, else b is read in place; threads share rows or columns of c; one row of a
 * times a large b.
 */
static void some_rows_have_the_same_bits_for_any_number_of_threads(void **state)
{
	static const int threads[] = { 1, 2, 3, 16 };
	static const int64_t shapes[][3] = { { 40, 420, 2050 }, { 20, 700, 3100 },
					     { 300, 420, 770 }, { 520, 200, 530 },
					     { 1, 1500, 1001 }, { 1, 1500, 530 } };
	int before = tensor_get_num_threads();

	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++)
		tensor_scope {
			const int64_t *n = shapes[s];
			tensor *a = ok(tensor_randn(TENSOR_SHAPE(n[0], n[1]), TENSOR_OPTIONS(0)));
			tensor *b = ok(tensor_randn(TENSOR_SHAPE(n[1], n[2]), TENSOR_OPTIONS(0)));
			tensor *c[ARRAY_SIZE(threads)];

			for (size_t t = 0; t < ARRAY_SIZE(threads); t++) {
				assert_done(tensor_set_num_threads(threads[t]));
				c[t] = ok(tensor_mm(a, b));
				assert_memory_equal(tensor_data(c[0]), tensor_data(c[t]),
						    n[0] * n[2] * 4);
			}
		}
	tensor_set_num_threads(before);
}

/* Sums of integers below 2^24 are exact, so those of f32 and f64 are those of i64; both orders of both operands. */
static void check_exact(const int64_t *n)
{
	for (int turned = 0; turned < 4; turned++)
		tensor_scope {
			tensor *a = batch(TENSOR_I64, 1, n[0], n[1], turned & 1);
			tensor *b = batch(TENSOR_I64, 1, n[1], n[2], turned & 2);
			tensor *want = ok(tensor_bmm(a, b));
			tensor *sum = tensor_baddbmm_opt(tensor_to(want, F32), tensor_to(a, F32),
							 tensor_to(b, F32), S(2), S(-1));

			assert_same(tensor_to(tensor_bmm(tensor_to(a, F32), tensor_to(b, F32)),
					      I64),
				    want);
			assert_same(tensor_to(tensor_bmm(tensor_to(a, F64), tensor_to(b, F64)),
					      I64),
				    want);
			assert_same(tensor_to(ok(sum), I64), want);
		}
}

/*
 * Blocks of depth, whole and partial panels; up to 64 rows only if b is large, or if its rows are not contiguous; several
 * panels together if b has 32 MiB or more, in f64 here.
 */
static void some_rows_times_many_columns_are_exact(void **state)
{
	static const int64_t shapes[][3] = { { 65, 150, 907 },	 { 200, 193, 700 },
					     { 256, 600, 310 },	 { 10, 150, 907 },
					     { 40, 420, 2050 },	 { 20, 700, 3100 },
					     { 20, 1400, 3000 }, { 300, 210, 770 } };

	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++)
		check_exact(shapes[s]);
}

/* A second factor of more than 8 MiB; parts of chunks, of vectors and of the rows that are read together. */
static void few_rows_times_a_large_matrix_are_exact(void **state)
{
	static const int64_t shapes[][3] = { { 2, 2051, 1027 },
					     { 9, 1031, 2049 },
					     { 1, 2051, 531 } };

	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++)
		check_exact(shapes[s]);
}

/* Parts of tiles of rows, of columns, and of vectors of the depth. */
static void many_rows_times_few_columns_are_exact(void **state)
{
	static const int64_t shapes[][3] = { { 33, 128, 5 }, { 70, 203, 16 }, { 257, 131, 7 } };

	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++)
		check_exact(shapes[s]);
}

/* All terms are equal, so that roundings of one long sum would add up: to 600 and more of its last places, not 64. */
static void sums_of_many_terms_have_small_errors(void **state)
{
	static const int64_t shapes[][3] = {
		{ 2, 30000, 1024 }, { 1, 30000, 1024 }, { 32, 100000, 6 }, { 1, 30000, 330 }
	};

	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++)
		tensor_scope {
			const int64_t *n = shapes[s];
			tensor *a = ok(tensor_full(TENSOR_INTS(n[0], n[1]), S(0.1F), F32));
			tensor *b = ok(tensor_full(TENSOR_INTS(n[1], n[2]), S(0.7F), F32));
			double want = (double)n[1] * 0.1F * 0.7F, sum;

			assert_done(tensor_item(tensor_mean(tensor_mm(a, b)), &sum));
			assert_true(fabs(sum / want - 1) < 64 * 0x1p-23);
		}
}

static void baddbmm_scales_and_broadcasts_self(void **state)
{
	for (size_t d_ = 0; d_ < ARRAY_SIZE(dtypes); d_++)
		tensor_scope {
			tensor *a = batch(dtypes[d_], 3, 4, 5, false),
			       *b = batch(dtypes[d_], 3, 5, 2, true);
			tensor *c = ok(tensor_select(batch(dtypes[d_], 1, 4, 2, false), 0, 0));
			tensor *product = ok(tensor_bmm(a, b)), *want, *into;

			want = tensor_add(tensor_mul_scalar(c, S(2)),
					  tensor_mul_scalar(product, S(3)));
			assert_same(tensor_baddbmm_opt(c, a, b, S(2), S(3)), want);
			into = ok(tensor_clone(product));
			assert_same(tensor_baddbmm_opt_(into, a, b, S(0), S(1)), product);
			assert_same(tensor_baddbmm_opt_(into, a, b, S(1), S(2)),
				    tensor_mul_scalar(product, S(3)));
		}
}

/* Values that f64 cannot represent. */
static void integer_products_are_exact(void **state)
{
	tensor_scope {
		const int64_t big = ((int64_t)1 << 60) + 1, a = ((int64_t)1 << 55) + 1,
			      beta = ((int64_t)1 << 53) + 1, alpha = ((int64_t)1 << 54) + 3;
		tensor *x = ok(tensor_full(TENSOR_INTS(1, 1), S(big), I64));
		tensor *y = ok(tensor_full(TENSOR_INTS(1, 1), S(a), I64));
		tensor *z = ok(tensor_full(TENSOR_INTS(1, 1), S((int64_t)3), I64));
		int64_t got;

		assert_done(
			tensor_item_int(ok(tensor_addmm_opt(x, y, z, S(beta), S(alpha))), &got));
		assert_true(got == (int64_t)((uint64_t)beta * (uint64_t)big +
					     (uint64_t)alpha * (uint64_t)a * 3));
	}
}

static void matmul_takes_vectors_as_rows_or_columns(void **state)
{
	for (size_t d_ = 0; d_ < ARRAY_SIZE(dtypes); d_++)
		tensor_scope {
			tensor *m = ok(tensor_select(batch(dtypes[d_], 1, 5, 6, false), 0, 0));
			tensor *v = ok(tensor_select(m, 0, 2)), *w = ok(tensor_select(m, 1, 3));
			tensor *column = ok(tensor_mm(m, tensor_unsqueeze(v, 1)));

			assert_same(tensor_mv(m, v), column);
			assert_same(tensor_matmul(m, v), column);
			assert_same(tensor_matmul(w, m), tensor_mm(tensor_unsqueeze(w, 0), m));
			assert_same(tensor_addmv_opt(w, m, v, S(2), S(1)),
				    tensor_add(tensor_mul_scalar(w, S(2)), tensor_squeeze(column)));
			assert_same(tensor_dot(v, v),
				    tensor_mm(tensor_unsqueeze(v, 0), tensor_unsqueeze(v, 1)));
			assert_same(tensor_outer(w, v),
				    tensor_mm(tensor_unsqueeze(w, 1), tensor_unsqueeze(v, 0)));
			assert_same(tensor_addr(m, w, v), tensor_add(m, tensor_outer(w, v)));
		}
}

static void dot_of_many_elements_is_summed_in_chunks(void **state)
{
	tensor_scope {
		tensor *v = iota(0, TENSOR_INTS(100001)),
		       *one = ok(tensor_ones(TENSOR_INTS(100001), F64));
		tensor *d = ok(tensor_to(v, F64));

		assert_values(tensor_dot(d, one), 0, 100000.0 * 100001 / 2);
		assert_values(tensor_dot(tensor_slice(d, 0, 1, 100001, 2),
					 tensor_slice(one, 0, 1, 100001, 2)),
			      0, 2500000000.0);
		assert_values(tensor_dot(tensor_to(d, I64), tensor_to(one, I64)), 0, 5000050000.0);
	}
}

static void matmul_broadcasts_batch_dimensions(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 1, 3, 4)), *b = iota(1, TENSOR_INTS(5, 4, 2)),
		       *c;

		c = ok(tensor_matmul(a, b));
		assert_shape(c, 2, 5, 3, 2);
		for (int i = 0; i < 2; i++)
			for (int j = 0; j < 5; j++)
				assert_same(tensor_select(tensor_select(c, 0, i), 0, j),
					    tensor_mm(tensor_select(tensor_select(a, 0, i), 0, 0),
						      tensor_select(b, 0, j)));
		assert_shape(ok(tensor_matmul(a, iota(0, TENSOR_INTS(4)))), 2, 1, 3);
		assert_shape(ok(tensor_matmul(iota(0, TENSOR_INTS(3)), a)), 2, 1, 4);
		assert_shape(
			ok(tensor_linear(a, iota(0, TENSOR_INTS(7, 4)), iota(0, TENSOR_INTS(7)))),
			2, 1, 3, 7);
		assert_values(tensor_linear(iota(0, TENSOR_INTS(2)), iota(0, TENSOR_INTS(3, 2)),
					    tensor_none),
			      0, 1, 3, 5);
		assert_shape(ok(tensor_matmul(iota(0, TENSOR_INTS(0, 3, 4)),
					      iota(0, TENSOR_INTS(4, 2)))),
			     0, 3, 2);
	}
}

static void composite_products_give_known_values(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3, 4)), *b = iota(1, TENSOR_INTS(4, 3, 5));
		tensor *want = tensor_mm(tensor_reshape(a, TENSOR_INTS(2, 12)),
					 tensor_reshape(tensor_permute(b, TENSOR_INTS(1, 0, 2)),
							TENSOR_INTS(12, 5)));

		assert_same(tensor_tensordot(a, b, TENSOR_INTS(1, 2), TENSOR_INTS(1, 0)), want);
		assert_values(tensor_inner(iota(0, TENSOR_INTS(2, 2)), iota(1, TENSOR_INTS(2))), 0,
			      2, 8);
		assert_values(tensor_kron(iota(0, TENSOR_INTS(2)), iota(1, TENSOR_INTS(2, 2))), 0,
			      0, 0, 1, 2, 0, 0, 3, 4);
		assert_values(tensor_cross(iota(1, TENSOR_INTS(3)), iota(2, TENSOR_INTS(3)),
					   TENSOR_NONE),
			      0, -1, 2, -1);
		assert_same(tensor_addbmm(ok(tensor_zeros(TENSOR_INTS(2, 3), F32)),
					  iota(0, TENSOR_INTS(3, 2, 4)),
					  iota(1, TENSOR_INTS(3, 4, 3))),
			    tensor_sum_dim(tensor_bmm(iota(0, TENSOR_INTS(3, 2, 4)),
						      iota(1, TENSOR_INTS(3, 4, 3))),
					   TENSOR_INTS(0), false));
		assert_values(tensor_linalg_multi_dot(TENSOR_LIST(iota(0, TENSOR_INTS(2)),
								  iota(0, TENSOR_INTS(2, 3)),
								  iota(0, TENSOR_INTS(3, 1)))),
			      0, 14);
	}
}

static void complex_products_conjugate_only_in_vdot(void **state)
{
	tensor_scope {
		const double v[] = { 1, 2, 3, -1 }, w[] = { 0, 1, 2, 2 };
		tensor_options c128 = TENSOR_OPTIONS(.dtype = TENSOR_C128);
		tensor *a = ok(tensor_from_data(v, TENSOR_INTS(2), c128));
		tensor *b = ok(tensor_from_data(w, TENSOR_INTS(2), c128));
		double got[2];

		/* (1+2i)i + (3-i)(2+2i) = -2+i + 8+4i */
		assert_done(tensor_copy_to(ok(tensor_dot(a, b)), got, sizeof(got)));
		assert_true(got[0] == 6 && got[1] == 5);
		assert_done(tensor_copy_to(ok(tensor_matmul(a, b)), got, sizeof(got)));
		assert_true(got[0] == 6 && got[1] == 5);
		/* (1-2i)i + (3+i)(2+2i) = 2+i + 4+8i */
		assert_done(tensor_copy_to(ok(tensor_vdot(a, b)), got, sizeof(got)));
		assert_true(got[0] == 6 && got[1] == 9);
	}
}

/* Two queries, three keys: equal scores give equal weights, a mask excludes some keys. */
static void attention_weighs_values(void **state)
{
	const uint8_t let[] = { 1, 0, 1, 0, 0, 0 };

	tensor_scope {
		tensor *q = ok(tensor_zeros(TENSOR_INTS(2, 4), F32)),
		       *k = iota(0, TENSOR_INTS(3, 4));
		tensor *v = iota(0, TENSOR_INTS(3, 1)), *heads, *few;
		tensor *mask = ok(tensor_from_data(let, TENSOR_INTS(2, 3),
						   TENSOR_OPTIONS(.dtype = TENSOR_BOOL)));

		assert_values(tensor_scaled_dot_product_attention(q, k, v, tensor_none, 0, false),
			      1e-6, 1, 1);
		assert_values(tensor_scaled_dot_product_attention(q, k, v, tensor_none, 0, true),
			      1e-6, 0, 0.5);
		/* A query without keys gives zeros. */
		assert_values(tensor_scaled_dot_product_attention(q, k, v, mask, 0, false), 1e-6, 1,
			      0);
		heads = ok(tensor_zeros(TENSOR_INTS(4, 2, 4), F32));
		few = ok(tensor_expand(k, TENSOR_INTS(2, 3, 4)));
		assert_shape(tensor_scaled_dot_product_attention_opt(heads, few, few, tensor_none,
								     0, false, 1, true),
			     4, 2, 4);
		assert_fails(tensor_scaled_dot_product_attention(q, k, v, mask, 0, true) == NULL,
			     EINVAL, "attn_mask must be none");
		assert_fails(tensor_scaled_dot_product_attention(q, tensor_to(k, I64), v, mask, 0,
								 false) == NULL,
			     EINVAL, "one dtype");
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3, 4)), *m = iota(0, TENSOR_INTS(3, 4));
		tensor *v = iota(0, TENSOR_INTS(3));

		assert_fails(tensor_bmm(a, a) == NULL, EINVAL,
			     "bmm: mat2 must be 2 matrices of 4 rows");
		assert_fails(tensor_bmm(a, m) == NULL, EINVAL,
			     "must be a batch of matrices, got shape [3, 4]");
		assert_fails(tensor_baddbmm(m, a, tensor_transpose(a, 1, 2)) == NULL, EINVAL,
			     "does not broadcast");
		assert_fails(tensor_mv(m, v) == NULL, EINVAL, "vec must have 4 elements");
		assert_fails(tensor_dot(v, m) == NULL, EINVAL, "must be a vector");
		assert_fails(tensor_dot(v, tensor_to(v, I64)) == NULL, EINVAL,
			     "one dtype, got f32 and i64");
		assert_fails(tensor_matmul(m, v) == NULL, EINVAL, "other must have 4 rows");
		assert_fails(tensor_matmul(m, tensor_sum(v)) == NULL, EINVAL,
			     "must have a dimension");
		assert_fails(tensor_tensordot(m, v, TENSOR_INTS(1), TENSOR_INTS(0)) == NULL, EINVAL,
			     "different sizes");
		assert_fails(tensor_addbmm(m, a, a) == NULL, EINVAL, "are needed");
		v = tensor_to(v, I64);
		assert_fails(tensor_addr_opt(tensor_zeros(TENSOR_INTS(1), I64), v, v, S(0.5),
					     S(1)) == NULL,
			     EINVAL, "beta must be an integer");
	}
}

/* PyTorch refuses integers here. */
static void vecdot_of_integers_keeps_their_dtype(void **state)
{
	tensor_scope {
		tensor *a = ok(
			tensor_to(iota(1, TENSOR_INTS(2, 3)), TENSOR_OPTIONS(.dtype = TENSOR_U8)));
		tensor *b = ok(tensor_to(iota(1, TENSOR_INTS(3)),
					 TENSOR_OPTIONS(.dtype = TENSOR_I8))),
		       *t;

		t = ok(tensor_linalg_vecdot(a, a));
		assert_int_equal(tensor_dtype(t), TENSOR_U8);
		assert_values(t, 0, 14, 77);
		t = ok(tensor_linalg_vecdot(a, b));
		assert_int_equal(tensor_dtype(t), TENSOR_I16);
		assert_values(t, 0, 14, 32);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bmm_is_mm_of_each_matrix),
		cmocka_unit_test(few_large_products_have_the_same_bits_for_any_number_of_threads),
		cmocka_unit_test(some_rows_times_many_columns_are_exact),
		cmocka_unit_test(some_rows_have_the_same_bits_for_any_number_of_threads),
		cmocka_unit_test(few_rows_times_a_large_matrix_are_exact),
		cmocka_unit_test(many_rows_times_few_columns_are_exact),
		cmocka_unit_test(sums_of_many_terms_have_small_errors),
		cmocka_unit_test(baddbmm_scales_and_broadcasts_self),
		cmocka_unit_test(integer_products_are_exact),
		cmocka_unit_test(matmul_takes_vectors_as_rows_or_columns),
		cmocka_unit_test(dot_of_many_elements_is_summed_in_chunks),
		cmocka_unit_test(matmul_broadcasts_batch_dimensions),
		cmocka_unit_test(composite_products_give_known_values),
		cmocka_unit_test(complex_products_conjugate_only_in_vdot),
		cmocka_unit_test(attention_weighs_values),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(vecdot_of_integers_keeps_their_dtype),
	};

	return cmocka_run_group_tests_name("product", tests, NULL, NULL);
}
