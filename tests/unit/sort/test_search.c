// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* searchsorted, bucketize, unique, isin, bincount and histc. */
#include "check.h"

static void searchsorted_equals_a_linear_search(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_U8, TENSOR_I64, TENSOR_F32, TENSOR_F64,
						    TENSOR_BF16 };

	for (int k = 0; k < 5; k++)
		for (int right = 0; right < 2; right++)
			tensor_scope {
				tensor_options o = TENSOR_OPTIONS(.dtype = dtypes[k]);
				double s[9] = { 1, 1, 2, 4, 4, 4, 7, 9, 9 }, want[22];
				tensor *sequence = ok(
					tensor_to(ok(tensor_from_data(s, TENSOR_INTS(9), F64)), o));
				tensor *x = ok(tensor_to(iota(0, TENSOR_INTS(2, 11)), o)), *i;

				for (int j = 0; j < 22; j++) {
					want[j] = 0;
					for (int n = 0; n < 9; n++)
						want[j] += right ? s[n] <= j : s[n] < j;
				}
				i = ok(tensor_bucketize_opt(x, sequence, true, right));
				assert_int_equal(tensor_dtype(i), TENSOR_I32);
				check_values_(i, want, 22, 0, __FILE__, __LINE__);
				i = ok(tensor_searchsorted_opt(sequence, ok(tensor_t(x)), false,
							       right, NULL, tensor_none));
				check_values_(tensor_t(i), want, 22, 0, __FILE__, __LINE__);
			}
}

/* Eight searches advance together; n around powers of two, and values around multiples of eight. */
static void searchsorted_of_every_length(void **state)
{
	static const int64_t counts[] = { 0, 1, 7, 8, 9, 65 };

	tensor_manual_seed(2);
	for (int64_t n = 0; n < 70; n += n < 18 ? 1 : 7)
		for (size_t k = 0; k < ARRAY_SIZE(counts) * 4; k++)
			tensor_scope {
				int64_t m = counts[k / 4], lines = k % 2 ? 3 : 1;
				bool right = k / 2 % 2;
				tensor *s = ok(tensor_randint(20, TENSOR_INTS(lines, n), F32));
				tensor *x = ok(tensor_randint(22, TENSOR_INTS(lines, m), F32));
				tensor *sorted, *order, *at, *sorter;
				double *sv, *xv, *got, *again;

				assert_done(tensor_sort(s, 1, false, &sorted, &order));
				at = ok(tensor_searchsorted_opt(sorted, x, false, right, NULL,
								tensor_none));
				sorter = ok(
					tensor_searchsorted_opt(s, x, false, right, NULL, order));
				sv = values_of(sorted);
				xv = values_of(x);
				got = values_of(at);
				again = values_of(sorter);
				for (int64_t i = 0; i < lines * m; i++) {
					int64_t want = 0;

					for (int64_t q = 0; q < n; q++) {
						double y = sv[i / m * n + q];

						want += right ? y <= xv[i] : y < xv[i];
					}
					assert_true(got[i] == (double)want);
					assert_true(again[i] == (double)want);
				}
				free(sv);
				free(xv);
				free(got);
				free(again);
			}
}

static void searchsorted_puts_nan_behind_all_numbers(void **state)
{
	const double s[] = { -INFINITY, 0, 1, INFINITY },
		     x[] = { NAN, INFINITY, -INFINITY, -0.0, 2 };

	tensor_scope {
		tensor *sequence = ok(tensor_from_data(s, TENSOR_INTS(4), F64));
		tensor *values = ok(tensor_from_data(x, TENSOR_INTS(5), F64));

		assert_values(tensor_searchsorted(sequence, values), 0, 4, 3, 0, 1, 3);
		assert_values(tensor_bucketize_opt(values, sequence, false, true), 0, 4, 4, 1, 2,
			      3);
	}
}

static void searchsorted_takes_a_sequence_for_each_line(void **state)
{
	const double s[] = { 3, 1, 2, 30, 20, 10 }, x[] = { 2, 15 };
	const int64_t order[] = { 1, 2, 0, 2, 1, 0 }, bad[] = { 1, 2, 3, 0, 0, 0 };

	tensor_scope {
		tensor *sequence = ok(tensor_from_data(s, TENSOR_INTS(2, 3), F64));
		tensor *sorter = ok(tensor_from_data(order, TENSOR_INTS(2, 3), I64));
		tensor *wrong = ok(tensor_from_data(bad, TENSOR_INTS(2, 3), I64));
		tensor *values = ok(tensor_from_data(x, TENSOR_INTS(2, 1), F64));

		assert_values(tensor_searchsorted_opt(sequence, values, false, false, NULL, sorter),
			      0, 1, 1);
		assert_values(tensor_searchsorted_opt(sequence, values, false, false, "right",
						      sorter),
			      0, 2, 1);
		assert_fails(tensor_searchsorted_opt(sequence, values, false, false, NULL, wrong),
			     EINVAL, "sorter has 3");
		assert_fails(tensor_searchsorted_opt(sequence, values, false, true, "left",
						     tensor_none),
			     EINVAL, "contradicts");
		assert_fails(tensor_bucketize(values, sequence), EINVAL, "one dimension");
		assert_fails(tensor_searchsorted(sequence, ok(tensor_to(values, F32))), EINVAL,
			     "one dtype");
	}
}

static void unique_elements_are_counted_and_numbered(void **state)
{
	const double x[] = { 3, 1, 3, -0.0, 0, 1 };
	tensor *u, *i, *n;

	tensor_scope {
		tensor *t = ok(tensor_from_data(x, TENSOR_INTS(2, 3), F64));

		assert_done(tensor_unique(t, true, true, true, &u, &i, &n));
		assert_values(u, 0, 0, 1, 3);
		assert_shape(i, 2, 3);
		assert_values(i, 0, 2, 1, 2, 0, 0, 1);
		assert_values(n, 0, 2, 2, 2);
		assert_done(tensor_unique(
			ok(tensor_to(ok(tensor_t(t)), TENSOR_OPTIONS(.dtype = TENSOR_F16))), true,
			false, false, &u, &i, &n));
		assert_values(u, 0, 0, 1, 3);
		assert_int_equal(tensor_dtype(u), TENSOR_F16);
		assert_int_equal(tensor_numel(i) + tensor_numel(n), 0);
		assert_done(tensor_unique_consecutive(t, true, true, TENSOR_NONE, &u, &i, &n));
		assert_values(u, 0, 3, 1, 3, 0, 1);
		assert_values(i, 0, 0, 1, 2, 3, 3, 4);
		assert_values(n, 0, 1, 1, 1, 2, 1);
		assert_done(tensor_unique(ok(tensor_empty(TENSOR_INTS(0, 2), F32)), true, true,
					  true, &u, &i, &n));
		assert_shape(u, 0);
		assert_shape(i, 0, 2);
	}
}

/* indices are those of the first of equal elements; NaNs differ from each other. */
/* Compares unique_all with a scan of a stable sort; every NaN is an element of its own. */
static void check_unique(tensor *t)
{
	int64_t n = tensor_numel(ok(t)), runs = 0, start = 0;
	tensor *v, *at, *inverse, *counts, *sorted, *order;
	double *x, *u, *to, *first, *number, *many;

	assert_done(tensor_unique_all(t, &v, &at, &inverse, &counts));
	assert_done(tensor_sort(tensor_reshape(t, TENSOR_INTS(n)), 0, false, &sorted, &order));
	x = values_of(sorted);
	to = values_of(order);
	u = values_of(v);
	first = values_of(at);
	number = values_of(inverse);
	many = values_of(counts);
	for (int64_t i = 0; i <= n; i++) {
		if (i < n && i > start && x[i] == x[start]) {
			assert_true(number[(int64_t)to[i]] == (double)runs);
			continue;
		}
		if (i > start) {
			assert_true(runs < tensor_numel(v));
			assert_true(u[runs] == x[start] || isnan(x[start]));
			assert_true(signbit(u[runs]) == signbit(x[start]));
			assert_true(first[runs] == to[start]);
			assert_true(many[runs] == (double)(i - start));
			runs++;
		}
		start = i;
		if (i < n)
			assert_true(number[(int64_t)to[i]] == (double)runs);
	}
	assert_int_equal(tensor_numel(v), runs);
	assert_int_equal(tensor_dtype(v), tensor_dtype(t));
	free(x);
	free(to);
	free(u);
	free(first);
	free(number);
	free(many);
}

/* Short lines are merged, long ones sorted by digits, wide keys by their highest bits first. */
static void unique_elements_of_every_size_and_range(void **state)
{
	static const int64_t sizes[] = { 0, 1, 2, 15, 16, 17, 191, 192, 193, 4095, 4096, 20000 };
	static const int64_t ranges[] = { 1, 3, 300, 1 << 20, INT64_C(1) << 33, INT64_C(1) << 52 };

	tensor_manual_seed(11);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (size_t k = 0; k < ARRAY_SIZE(ranges); k++)
			tensor_scope {
				tensor *t = ok(tensor_randint_low(-ranges[k], ranges[k],
								  TENSOR_INTS(sizes[i]), I64));
				tensor *f = ok(tensor_randn(TENSOR_INTS(sizes[i]), F64));

				check_unique(t);
				check_unique(tensor_to(t, F64));
				check_unique(
					tensor_div_scalar(tensor_to(t, F64), TENSOR_SCALAR(3)));
				check_unique(f);
				check_unique(tensor_to(f, F32));
				check_unique(tensor_to(f, TENSOR_OPTIONS(.dtype = TENSOR_BF16)));
				check_unique(tensor_to(f, TENSOR_OPTIONS(.dtype = TENSOR_F16)));
				if (ranges[k] <= 300)
					check_unique(
						tensor_to(t, TENSOR_OPTIONS(.dtype = TENSOR_I16)));
				if (ranges[k] <= 3) {
					check_unique(
						tensor_to(t, TENSOR_OPTIONS(.dtype = TENSOR_I8)));
					check_unique(tensor_gt_scalar(t, TENSOR_SCALAR(0)));
				}
			}
}

static void unique_special_values(void **state)
{
	const tensor_options kinds[] = { F64, F32, TENSOR_OPTIONS(.dtype = TENSOR_F16),
					 TENSOR_OPTIONS(.dtype = TENSOR_BF16) };

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		tensor_scope {
			const double v[] = { 0, NAN, -0.0, INFINITY, 1, -INFINITY, NAN, INFINITY };
			tensor *t = ok(tensor_from_data(v, TENSOR_INTS(8), F64)), *u, *i, *n, *at;

			t = tensor_to(t, kinds[k]);
			check_unique(t);
			check_unique(tensor_repeat(t, TENSOR_INTS(40)));
			assert_done(tensor_unique(t, true, true, true, &u, &i, &n));
			assert_int_equal(tensor_numel(u), 6);
			assert_values(n, 0, 1, 2, 1, 2, 1, 1);
			assert_values(i, 0, 1, 4, 1, 3, 2, 0, 5, 3);
			/* A strided tensor, with the shape of the inverse. */
			t = ok(tensor_transpose(tensor_view(t, TENSOR_INTS(2, 4)), 0, 1));
			assert_done(tensor_unique_all(t, &u, &at, &i, &n));
			assert_shape(i, 4, 2);
			assert_values(n, 0, 1, 2, 1, 2, 1, 1);
		}
}

static void unique_all_says_where_each_is_first(void **state)
{
	const double x[] = { 3, 1, 3, NAN, 0, 1, -0.0, NAN };
	tensor *v, *at, *i, *n;

	tensor_scope {
		tensor *t = ok(tensor_from_data(x, TENSOR_INTS(2, 4), F64)), *none;

		assert_done(tensor_unique_all(t, &v, &at, &i, &n));
		assert_values(v, 0, 0, 1, 3, NAN, NAN);
		assert_values(at, 0, 4, 1, 0, 3, 7);
		assert_shape(i, 2, 4);
		assert_values(i, 0, 2, 1, 2, 3, 0, 1, 0, 4);
		assert_values(n, 0, 2, 2, 2, 1, 1);
		assert_int_equal(tensor_dtype(at), TENSOR_I64);
		assert_done(tensor_unique_all(ok(tensor_t(t)), &v, &at, &i, &n));
		assert_values(at, 0, 1, 2, 0, 6, 7);
		assert_done(tensor_unique_all(ok(tensor_scalar_tensor(TENSOR_SCALAR(7), I64)), &v,
					      &at, &i, &n));
		assert_values(v, 0, 7);
		assert_values(at, 0, 0);
		assert_int_equal(tensor_dim(i), 0);
		/*
		 * Complex numbers are ordered by their real parts, then by their imaginary parts.
		 */
		t = ok(tensor_view_as_complex(ok(tensor_from_data(
			(double[]){ 2, 1, 1, 5, 2, 0, 1, 5 }, TENSOR_INTS(4, 2), F64))));
		assert_done(tensor_unique_all(t, &v, &at, &i, &n));
		assert_int_equal(tensor_dtype(v), TENSOR_C128);
		assert_values(ok(tensor_view_as_real(v)), 0, 1, 5, 2, 0, 2, 1);
		assert_values(at, 0, 1, 2, 0);
		assert_values(n, 0, 2, 1, 1);
		none = ok(tensor_empty(TENSOR_INTS(0, 2), F32));
		assert_done(tensor_unique_all(none, &v, &at, &i, &n));
		assert_int_equal(
			tensor_numel(v) + tensor_numel(at) + tensor_numel(i) + tensor_numel(n), 0);
	}
}

static void unique_slices_are_in_lexicographic_order(void **state)
{
	const double x[] = { 2, 1, 2, 1, 5, 4, 5, 3 };
	tensor *u, *i, *n;

	tensor_scope {
		tensor *t = ok(tensor_from_data(x, TENSOR_INTS(2, 4), F64));

		assert_done(tensor_unique_dim(t, 1, true, true, true, &u, &i, &n));
		assert_shape(u, 2, 3);
		assert_values(u, 0, 1, 1, 2, 3, 4, 5);
		assert_values(i, 0, 2, 1, 2, 0);
		assert_values(n, 0, 1, 1, 2);
		assert_done(tensor_unique_consecutive(t, true, true, -1, &u, &i, &n));
		assert_shape(u, 2, 4);
		assert_done(tensor_unique_dim(t, 1, true, false, false, &u, &i, &n));
		assert_values(i, 0, 2, 1, 2, 0);
		assert_values(n, 0, 1, 1, 2);
		/* dim 0 of a vector works as without dim. */
		assert_done(tensor_unique_consecutive(ok(tensor_select(t, 0, 0)), false, false, 0,
						      &u, &i, &n));
		assert_true(!tensor_numel(i) && !tensor_numel(n));
		assert_fails(tensor_unique_dim(t, 2, true, true, true, &u, &i, &n), ERANGE,
			     "range");
	}
}

static void unique_of_no_slices_does_not_depend_on_their_size(void **state)
{
	const int64_t large = (int64_t)1 << 31;
	tensor *u, *i, *n;

	tensor_scope {
		tensor *t = ok(tensor_empty(TENSOR_INTS(0, large, large), F32));

		assert_done(tensor_unique_dim(t, 0, true, true, true, &u, &i, &n));
		assert_shape(u, 0, large, large);
		assert_true(!tensor_numel(i) && !tensor_numel(n));
		t = ok(tensor_empty(TENSOR_INTS(0, large, large, large), F32));
		assert_done(tensor_unique_consecutive(t, true, true, 0, &u, &i, &n));
		assert_shape(u, 0, large, large, large);
	}
}

static void isin_finds_elements(void **state)
{
	const double x[] = { 3, NAN, 1, -0.0 }, y[] = { 0, NAN, 3 };

	tensor_scope {
		tensor *a = ok(tensor_from_data(x, TENSOR_INTS(2, 2), F64));
		tensor *b = ok(tensor_from_data(y, TENSOR_INTS(3), F64));
		tensor *none = ok(tensor_empty(TENSOR_INTS(0), F64));

		assert_values(tensor_isin_tensor_tensor(a, b), 0, 1, 0, 0, 1);
		assert_values(tensor_isin_tensor_tensor_opt(a, b, false, true), 0, 0, 1, 1, 0);
		assert_values(tensor_isin_tensor_tensor(a, none), 0, 0, 0, 0, 0);
		assert_values(tensor_isin_tensor_scalar(iota(0, TENSOR_INTS(3)), TENSOR_SCALAR(2)),
			      0, 0, 0, 1);
		assert_values(tensor_isin_scalar_tensor(TENSOR_SCALAR(2), iota(0, TENSOR_INTS(3))),
			      0, 1);
	}
}

/* Two tables are added up if there are few numbers, one is used for many. */
static void bincount_of_every_dtype_and_size(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_U8,	TENSOR_I8,  TENSOR_I16, TENSOR_I32,
						    TENSOR_I64, TENSOR_U16, TENSOR_U32, TENSOR_U64 };
	static const int64_t sizes[] = { 1, 2, 3, 100, 4001, 40000 }, bins[] = { 1, 5, 100, 5000 };

	tensor_manual_seed(4);
	for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
		for (size_t k = 0; k < ARRAY_SIZE(sizes) * ARRAY_SIZE(bins); k++)
			tensor_scope {
				int64_t n = sizes[k / 4], most = bins[k % 4];
				tensor *t, *c, *strided;
				double *x, *got, want[5001] = { 0 };

				if (most > 100 && d < 2)
					continue;
				t = ok(tensor_randint(most, TENSOR_INTS(n, 2), I64));
				t = ok(tensor_to(t, TENSOR_OPTIONS(.dtype = dtypes[d])));
				strided = ok(tensor_select(t, 1, 1));
				t = ok(tensor_contiguous(strided));
				x = values_of(t);
				for (int64_t i = 0; i < n; i++)
					want[(int64_t)x[i]]++;
				c = ok(tensor_bincount(t, tensor_none, k % 3 ? most : 5001));
				assert_int_equal(tensor_dtype(c), TENSOR_I64);
				assert_int_equal(tensor_numel(c), k % 3 ? most : 5001);
				got = values_of(c);
				for (int64_t i = 0; i < tensor_numel(c); i++)
					assert_true(got[i] == want[i]);
				strided = ok(
					tensor_bincount(strided, tensor_none, k % 3 ? most : 5001));
				assert_values(tensor_sum(tensor_abs(tensor_sub(c, strided))), 0, 0);
				free(got);
				free(x);
			}
}

static void bincount_and_histc_count_elements(void **state)
{
	const double x[] = { 0, 0.25, 1, 1, NAN, -1, 2 };
	const int64_t at[] = { 1, 4, 1, 0 }, below[] = { 1, -1 }, top = INT64_MAX;
	const uint64_t above = UINT64_MAX;

	tensor_scope {
		tensor *t = ok(tensor_from_data(x, TENSOR_INTS(7), F64)), *n;
		tensor *i = ok(tensor_from_data(at, TENSOR_INTS(4), I64));

		n = ok(tensor_bincount(i, tensor_none, 0));
		assert_int_equal(tensor_dtype(n), TENSOR_I64);
		assert_values(n, 0, 1, 2, 0, 0, 1);
		assert_values(tensor_bincount(i, iota(1, TENSOR_INTS(4)), 6), 0, 4, 4, 0, 0, 2, 0);
		assert_shape(tensor_bincount(ok(tensor_empty(TENSOR_INTS(0), I64)), tensor_none, 3),
			     3);
		assert_fails(tensor_bincount(ok(tensor_from_data(below, TENSOR_INTS(2), I64)),
					     tensor_none, 0),
			     EINVAL, "must not be negative, got -1");
		assert_fails(tensor_bincount(ok(tensor_from_data(&top, TENSOR_INTS(1), I64)),
					     tensor_none, 0),
			     EOVERFLOW, "bincount: 9223372036854775807 is too large");
		assert_fails(
			tensor_bincount(ok(tensor_from_data(&above, TENSOR_INTS(1),
							    TENSOR_OPTIONS(.dtype = TENSOR_U64))),
					tensor_none, 0),
			EOVERFLOW, "bincount: 18446744073709551615 is too large");
		assert_fails(tensor_bincount(t, tensor_none, 0), EINVAL,
			     "vector of integers, got f64");
		/*
		 * The last bin includes its upper bound; values out of range and NaN are not
		 * counted.
		 */
		assert_values(tensor_histc(t, 2, TENSOR_SCALAR(0), TENSOR_SCALAR(1)), 0, 2, 2);
		assert_values(tensor_histc(iota(0, TENSOR_INTS(5)), 2, TENSOR_SCALAR(0),
					   TENSOR_SCALAR(0)),
			      0, 2, 3);
		assert_fails(tensor_histc(t, 2, TENSOR_SCALAR(0), TENSOR_SCALAR(0)), EINVAL,
			     "finite");
		assert_fails(tensor_histc(t, 0, TENSOR_SCALAR(0), TENSOR_SCALAR(1)), EINVAL,
			     "bins must be positive");
	}
}

static void histc_counts_in_ranges_whose_width_overflows(void **state)
{
	const double x[] = { -3e38, -1e37, NAN, 2.9e38, 1, 3e38 };
	const tensor_scalar least = TENSOR_SCALAR(-3.2e38), most = TENSOR_SCALAR(3.2e38);

	tensor_scope {
		tensor *t = ok(tensor_from_data(x, TENSOR_INTS(6), F64)),
		       *f = ok(tensor_to(t, F32));

		assert_values(tensor_histc(f, 4, least, most), 0, 1, 1, 1, 2);
		/* The width is finite, its product with the number of bins is not. */
		f = ok(tensor_histc(ok(tensor_mul_scalar(f, TENSOR_SCALAR(0.1))), 100,
				    TENSOR_SCALAR(-1e38), TENSOR_SCALAR(1e38)));
		assert_values(ok(tensor_narrow(f, 0, 64, 2)), 0, 1, 1);
		assert_values(tensor_sum(f), 0, 5);
		t = ok(tensor_mul_scalar(t, TENSOR_SCALAR(0x1p896)));
		assert_values(tensor_histc(t, 4, TENSOR_SCALAR(-1.7e308), TENSOR_SCALAR(1.7e308)),
			      0, 1, 1, 1, 2);
		/* The range of the elements. */
		t = ok(tensor_masked_select(t, ok(tensor_eq(t, t))));
		assert_values(tensor_histc(t, 4, TENSOR_SCALAR(0), TENSOR_SCALAR(0)), 0, 1, 1, 1,
			      2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(searchsorted_equals_a_linear_search),
		cmocka_unit_test(searchsorted_takes_a_sequence_for_each_line),
		cmocka_unit_test(unique_elements_are_counted_and_numbered),
		cmocka_unit_test(unique_elements_of_every_size_and_range),
		cmocka_unit_test(unique_special_values),
		cmocka_unit_test(unique_all_says_where_each_is_first),
		cmocka_unit_test(unique_slices_are_in_lexicographic_order),
		cmocka_unit_test(unique_of_no_slices_does_not_depend_on_their_size),
		cmocka_unit_test(isin_finds_elements),
		cmocka_unit_test(searchsorted_of_every_length),
		cmocka_unit_test(searchsorted_puts_nan_behind_all_numbers),
		cmocka_unit_test(bincount_of_every_dtype_and_size),
		cmocka_unit_test(bincount_and_histc_count_elements),
		cmocka_unit_test(histc_counts_in_ranges_whose_width_overflows),
	};

	return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
