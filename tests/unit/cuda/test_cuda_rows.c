// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: softmax, and operators with an index, against the CPU's results. */
#include "cuda_results.h"

static const enum tensor_dtype floats[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };

/* ---- softmax ---- */

static const int64_t lengths[] = { 1, 3, 4, 5, 31, 32, 33, 100, 1023, 1024, 1025, 4096, 20000 };

/* Rows of n elements in a tensor whose rows begin at any address. */
static void softmax_rows_equal_the_cpu(enum tensor_dtype d, int64_t n, int64_t from)
{
	const int64_t rows = n > 1000 ? 3 : 37;
	tensor *a = pseudo_random(TENSOR_SHAPE(rows, n + from), d), *g = on_cuda(a);
	tensor *grad = pseudo_random(TENSOR_SHAPE(rows, n + from), d), *gg = on_cuda(grad);
	double tol = tolerance(d);

	a = ok(tensor_slice(a, 1, from, from + n, 1));
	g = ok(tensor_slice(g, 1, from, from + n, 1));
	grad = ok(tensor_slice(grad, 1, from, from + n, 1));
	gg = ok(tensor_slice(gg, 1, from, from + n, 1));
	tensor *y = ok(tensor_softmax(a, 1)), *l = ok(tensor_log_softmax(a, 1));

	assert_near(tensor_softmax(g, 1), y, tol);
	assert_near(tensor_log_softmax(g, 1), l, tol);
	assert_near(tensor_softmax_backward(gg, on_cuda(y), 1), tensor_softmax_backward(grad, y, 1),
		    tol);
	assert_near(tensor_log_softmax_backward(gg, on_cuda(l), 1),
		    tensor_log_softmax_backward(grad, l, 1), 100 * tol);
}

static void softmax_of_rows_of_any_length(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		for (size_t d = 0; d < ARRAY_SIZE(floats); d++)
			for (int64_t from = 0; from < 2; from++)
				tensor_scope
					softmax_rows_equal_the_cpu(floats[d], lengths[i], from);
}

static void softmax_across_columns(void **state)
{
	NEED_DEVICE();
	for (size_t d = 0; d < ARRAY_SIZE(floats); d++)
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(3, 130, 40), floats[d]);
			tensor *g = on_cuda(a), *y = ok(tensor_softmax(a, 1));
			double tol = tolerance(floats[d]);

			assert_near(tensor_softmax(g, 1), y, tol);
			assert_near(tensor_log_softmax(g, 1), tensor_log_softmax(a, 1), tol);
			assert_near(tensor_softmax_backward(g, on_cuda(y), 1),
				    tensor_softmax_backward(a, y, 1), tol);
			/* Rows with gaps between their elements. */
			assert_near(tensor_softmax(tensor_slice(g, 2, 0, 40, 2), 2),
				    tensor_softmax(tensor_slice(a, 2, 0, 40, 2), 2), tol);
		}
}

/* NaN, infinities, and -inf everywhere: one kind for each row. */
static void softmax_of_rows_that_are_not_finite(void **state)
{
	static const int64_t widths[] = { 5, 64, 5000, 20000 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
		tensor_scope {
			int64_t n = widths[i];
			tensor *a = pseudo_random(TENSOR_SHAPE(6, n), TENSOR_F32), *g;
			float *p = tensor_mutable_data(a);

			p[0 * n + 2] = NAN;
			p[1 * n + n - 1] = INFINITY;
			p[2 * n + 1] = -INFINITY;
			for (int64_t k = 0; k < n; k++)
				p[3 * n + k] = -INFINITY;
			for (int64_t k = 0; k < n - 1; k++)
				p[4 * n + k] = -INFINITY;
			p[5 * n] = INFINITY;
			p[5 * n + 4] = NAN;
			g = on_cuda(a);
			assert_near(tensor_softmax(g, 1), tensor_softmax(a, 1), 1e-6);
			assert_near(tensor_log_softmax(g, 1), tensor_log_softmax(a, 1), 1e-5);
		}
}

/* ---- reading ---- */

static tensor *random_indices(tensor_ints shape, int64_t limit, enum tensor_dtype dtype)
{
	static uint32_t state = 99;
	tensor *t = ok(tensor_empty(shape, I64));
	int64_t *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++) {
		state = state * 1664525 + 1013904223;
		p[i] = (int64_t)(state >> 8) % limit;
	}
	return ok(tensor_to(t, TENSOR_OPTIONS(.dtype = dtype)));
}

static void gather_of_any_width(void **state)
{
	static const int64_t widths[] = { 1, 3, 4, 7, 8, 64, 129 };
	static const enum tensor_dtype dtypes[] = { TENSOR_U8, TENSOR_BF16, TENSOR_F32, TENSOR_F64,
						    TENSOR_C128 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(widths) * ARRAY_SIZE(dtypes); i++)
		for (int narrow = 0; narrow < 2; narrow++)
			tensor_scope {
				int64_t n = widths[i / ARRAY_SIZE(dtypes)];
				enum tensor_dtype d = dtypes[i % ARRAY_SIZE(dtypes)];
				tensor *a =
					ok(tensor_to(pseudo_random(TENSOR_SHAPE(5, 90), TENSOR_F32),
						     TENSOR_OPTIONS(.dtype = d)));
				tensor *x = random_indices(TENSOR_SHAPE(5, n), 90,
							   narrow ? TENSOR_I32 : TENSOR_I64);
				tensor *got = ok(tensor_gather(on_cuda(a), 1, on_cuda(x)));

				assert_true(equal(tensor_to(got, CPU), tensor_gather(a, 1, x)));
				got = ok(tensor_index_select(on_cuda(a), 1,
							     tensor_select(on_cuda(x), 0, 0)));
				assert_true(
					equal(tensor_to(got, CPU),
					      tensor_index_select(a, 1, tensor_select(x, 0, 0))));
			}
}

static void selected_rows_may_be_long(void **state)
{
	NEED_DEVICE();
	for (int64_t from = 0; from < 2; from++)
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(2, 7, 20001), TENSOR_F32);
			tensor *g = on_cuda(a);
			tensor *x = random_indices(TENSOR_SHAPE(9), 7, TENSOR_I64);

			a = ok(tensor_slice(a, 2, from, 20000 + from, 1));
			g = ok(tensor_slice(g, 2, from, 20000 + from, 1));
			assert_near(tensor_index_select(g, 1, on_cuda(x)),
				    tensor_index_select(a, 1, x), 0);
			assert_near(tensor_embedding(tensor_select(g, 0, 1), on_cuda(x), -1, false,
						     false),
				    tensor_embedding(tensor_select(a, 0, 1), x, -1, false, false),
				    0);
		}
}

/* ---- writing ---- */

static const enum tensor_dtype numbers[] = { TENSOR_U8,	 TENSOR_I16,  TENSOR_I32, TENSOR_I64,
					     TENSOR_F16, TENSOR_BF16, TENSOR_F32, TENSOR_F64 };

/* Sums in the CPU's order, so with the same bits. */
static void sums_by_index_have_the_bits_of_the_cpu(void **state)
{
	static const int64_t widths[] = { 1, 3, 4, 5, 31, 33, 300, 1025 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(widths) * ARRAY_SIZE(numbers); i++)
		tensor_scope {
			int64_t n = widths[i / ARRAY_SIZE(numbers)];
			enum tensor_dtype d = numbers[i % ARRAY_SIZE(numbers)];
			tensor *a = pseudo_random(TENSOR_SHAPE(11, n), d), *g = on_cuda(a);
			tensor *s = pseudo_random(TENSOR_SHAPE(60, n), d), *gs = on_cuda(s);
			tensor *x = random_indices(TENSOR_SHAPE(60), 9, TENSOR_I64);
			tensor *x32 = random_indices(TENSOR_SHAPE(60), 11, TENSOR_I32);
			tensor *all = ok(tensor_zeros(TENSOR_SHAPE(60), I64));
			tensor *each = random_indices(TENSOR_SHAPE(60, n), 11, TENSOR_I64);

			assert_near(tensor_index_add(g, 0, on_cuda(x), gs),
				    tensor_index_add(a, 0, x, s), 0);
			assert_near(tensor_index_add(g, 0, on_cuda(x32), gs),
				    tensor_index_add(a, 0, x32, s), 0);
			assert_near(tensor_index_add(g, 0, on_cuda(all), gs),
				    tensor_index_add(a, 0, all, s), 0);
			assert_near(tensor_index_add_opt(g, 0, on_cuda(x), gs, TENSOR_SCALAR(2)),
				    tensor_index_add_opt(a, 0, x, s, TENSOR_SCALAR(2)), 0);
			assert_near(tensor_index_add(tensor_t(g), 1, on_cuda(x), tensor_t(gs)),
				    tensor_index_add(tensor_t(a), 1, x, tensor_t(s)), 0);
			assert_near(tensor_scatter_add(g, 0, on_cuda(each), gs),
				    tensor_scatter_add(a, 0, each, s), 0);
			/* An index that is the same along a row. */
			all = ok(tensor_expand(tensor_unsqueeze(x, 1), TENSOR_INTS(60, n)));
			assert_near(
				tensor_scatter_add(g, 0,
						   tensor_expand(tensor_unsqueeze(on_cuda(x), 1),
								 TENSOR_INTS(60, n)),
						   gs),
				tensor_scatter_add(a, 0, all, s), 0);
		}
}

static void scatter_combines_in_order(void **state)
{
	static const char *const modes[] = { "prod", "amax", "amin", "sum", "mean" };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		tensor_scope {
			enum tensor_dtype d = numbers[i];
			tensor *a = pseudo_random(TENSOR_SHAPE(8, 6), d), *g = on_cuda(a);
			tensor *s = pseudo_random(TENSOR_SHAPE(20, 6), d), *gs = on_cuda(s);
			tensor *x = random_indices(TENSOR_SHAPE(20, 6), 8, TENSOR_I64);

			assert_near(tensor_scatter(g, 0, on_cuda(x), gs),
				    tensor_scatter(a, 0, x, s), 0);
			for (size_t m = 0; m < 3; m++)
				assert_near(tensor_scatter_reduce(g, 0, on_cuda(x), gs, modes[m]),
					    tensor_scatter_reduce(a, 0, x, s, modes[m]), 0);
		}
}

static void index_put_writes_and_sums(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(numbers) * 2; i++)
		tensor_scope {
			enum tensor_dtype d = numbers[i / 2];
			bool sum = i % 2;
			tensor *a = pseudo_random(TENSOR_SHAPE(5, 6, 8), d), *g = on_cuda(a);
			tensor *x = random_indices(TENSOR_SHAPE(2, 7, 3), 5, TENSOR_I64);
			tensor *v = pseudo_random(TENSOR_SHAPE(7, 3, 8), d);
			tensor *w = pseudo_random(TENSOR_SHAPE(7, 3, 6), d);

			x = ok(tensor_sub(x,
					  tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(2), I64)));
			assert_near(tensor_index_put_at(g, on_cuda(x), TENSOR_INTS(0, 1),
							on_cuda(v), sum),
				    tensor_index_put_at(a, x, TENSOR_INTS(0, 1), v, sum), 0);
			/* Dimensions that are not adjacent. */
			assert_near(tensor_index_put_at(g, on_cuda(x), TENSOR_INTS(0, 2),
							on_cuda(w), sum),
				    tensor_index_put_at(a, x, TENSOR_INTS(0, 2), w, sum), 0);
		}
}

static void embedding_gradients_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(floats); i++)
		for (int64_t width = 1; width < 300; width = width * 2 + 2)
			tensor_scope {
				tensor *x = random_indices(TENSOR_SHAPE(13, 5), 9, TENSOR_I64);
				tensor *s = pseudo_random(TENSOR_SHAPE(13, 5, width), floats[i]);

				for (int by = 0; by < 2; by++)
					assert_near(tensor_embedding_dense_backward(
							    on_cuda(s), on_cuda(x), 12, 3, by),
						    tensor_embedding_dense_backward(s, x, 12, 3,
										    by),
						    by ? tolerance(floats[i]) : 0);
			}
}

/* ---- errors ---- */

static void indices_out_of_range_change_nothing(void **state)
{
	NEED_DEVICE();
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT);
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(4, 8), TENSOR_F32), *g = on_cuda(a);
		tensor *s = on_cuda(pseudo_random(TENSOR_SHAPE(3, 8), TENSOR_F32));
		tensor *past = on_cuda(integers(TENSOR_SHAPE(3), (int64_t[]){ 0, 4, 7 }));
		tensor *wide = on_cuda(
			integers(TENSOR_SHAPE(1, 8), (int64_t[]){ 0, 1, 2, 3, 4, 5, 6, -9 }));
		tensor *pair =
			on_cuda(integers(TENSOR_SHAPE(2, 3), (int64_t[]){ 0, 1, -4, 7, 8, -8 }));

		assert_fails(tensor_index_add_(g, 0, past, s), ERANGE, "index 4 is out of range");
		assert_fails(tensor_scatter_(g, 0, wide, s), ERANGE, "index 4 is out of range");
		assert_fails(tensor_gather(g, 1, wide), ERANGE, "index -9 is out of range");
		assert_fails(tensor_index_put_at_(g, pair, TENSOR_INTS(0, 1),
						  tensor_select(s, 1, 0), true),
			     ERANGE, "index 8 is out of range");
		assert_fails(tensor_embedding_dense_backward(s, past, 4, -1, false), ERANGE,
			     "index 4 is out of range");
		assert_fails(tensor_embedding(g, past, -1, false, false), ERANGE, "index 4");
		assert_done(tensor_cuda_synchronize(0));
		assert_near(g, a, 0);
		assert_near(tensor_index_select(
				    g, 0, on_cuda(integers(TENSOR_SHAPE(1), (int64_t[]){ 2 }))),
			    tensor_slice(a, 0, 2, 3, 1), 0);
	}
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE);
}

static void empty_indices_change_nothing(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(4, 8), TENSOR_F32), *g = on_cuda(a);
		tensor *none = on_cuda(ok(tensor_zeros(TENSOR_SHAPE(0), I64)));
		tensor *s = tensor_slice(g, 0, 0, 0, 1);

		assert_near(tensor_index_add(g, 0, none, s), a, 0);
		assert_near(tensor_index_select(g, 0, none), tensor_slice(a, 0, 0, 0, 1), 0);
		assert_near(tensor_embedding_dense_backward(s, none, 3, -1, false),
			    tensor_zeros(TENSOR_SHAPE(3, 8), F32), 0);
		assert_near(tensor_softmax(s, 1), tensor_slice(a, 0, 0, 0, 1), 0);
		assert_near(tensor_softmax(tensor_slice(g, 1, 0, 0, 1), 1),
			    tensor_slice(a, 1, 0, 0, 1), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(softmax_of_rows_of_any_length),
		cmocka_unit_test(softmax_across_columns),
		cmocka_unit_test(softmax_of_rows_that_are_not_finite),
		cmocka_unit_test(gather_of_any_width),
		cmocka_unit_test(selected_rows_may_be_long),
		cmocka_unit_test(sums_by_index_have_the_bits_of_the_cpu),
		cmocka_unit_test(scatter_combines_in_order),
		cmocka_unit_test(index_put_writes_and_sums),
		cmocka_unit_test(embedding_gradients_equal_the_cpu),
		cmocka_unit_test(indices_out_of_range_change_nothing),
		cmocka_unit_test(empty_indices_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
