// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Variances, norms, logsumexp and scans against plain loops in f64. */
#include "check.h"

/* Sines around 3 in a [5, 7, 40] tensor, in different memory layouts. */
#define LAYOUTS 4
static tensor *with_layout(int layout, tensor_options options)
{
	static double v[5 * 7 * 80];
	tensor *t;

	for (int i = 0; i < 5 * 7 * 80; i++)
		v[i] = 3 + sin(1.3 * i);
	t = ok(tensor_to(ok(tensor_from_data(v, TENSOR_INTS(5, 7, 80), F64)), options));
	if (layout == 0)
		return ok(tensor_contiguous(tensor_narrow(t, 2, 3, 40)));
	if (layout == 1)
		return ok(tensor_slice(t, 2, 0, 80, 2));
	if (layout == 2)
		return ok(tensor_permute(
			ok(tensor_view(ok(tensor_contiguous(tensor_narrow(t, 2, 0, 40))),
				       TENSOR_INTS(40, 7, 5))),
			TENSOR_INTS(2, 1, 0)));
	return ok(tensor_expand(ok(tensor_narrow(ok(tensor_narrow(t, 1, 0, 1)), 2, 0, 40)),
				TENSOR_INTS(5, 7, 40)));
}

/* Calls f(line, n) for every line along dim, in row-major order of the others. */
static void apply_to_lines(tensor *t, int dim, double (*f)(const double *x, int n), double *result)
{
	tensor *w = ok(tensor_contiguous(ok(tensor_transpose(ok(tensor_to(t, F64)), dim, 2))));
	const double *v = tensor_data(w);
	int n = (int)tensor_sizes(w)[2], lines = (int)(tensor_numel(w) / n);
	tensor *r = ok(tensor_empty(TENSOR_INTS(tensor_sizes(w)[0], tensor_sizes(w)[1], 1), F64));

	for (int i = 0; i < lines; i++)
		((double *)tensor_mutable_data(r))[i] = f(v + i * n, n);
	r = ok(tensor_contiguous(ok(tensor_transpose(r, dim, 2))));
	memcpy(result, tensor_data(r), lines * sizeof(double));
}

static double variance(const double *x, int n)
{
	double mean = 0, sum = 0;

	for (int i = 0; i < n; i++)
		mean += x[i] / n;
	for (int i = 0; i < n; i++)
		sum += (x[i] - mean) * (x[i] - mean);
	return sum / (n - 1);
}

static double log_of_sum(const double *x, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += exp(x[i]);
	return log(sum);
}

static double order;
static double norm(const double *x, int n)
{
	double sum = 0, top = 0, low = INFINITY;

	for (int i = 0; i < n; i++) {
		sum += order == 0 ? x[i] != 0 : pow(fabs(x[i]), order);
		top = fmax(top, fabs(x[i]));
		low = fmin(low, fabs(x[i]));
	}
	if (isinf(order))
		return order > 0 ? top : low;
	return order == 0 ? sum : pow(sum, 1 / order);
}

static void every_layout_and_dimension_agrees_with_plain_loops(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16 };
	static const double tolerance[] = { 2e-5, 1e-12, 0.2 };
	static const double orders[] = { 2, 1, 0, 3, 0.5, INFINITY, -INFINITY };
	double want[280];

	for (int k = 0; k < 3; k++)
		for (int layout = 0; layout < LAYOUTS; layout++)
			for (int dim = 0; dim < 3; dim++)
				tensor_scope {
					tensor *t = with_layout(layout,
								TENSOR_OPTIONS(.dtype = dtypes[k]));
					tensor_ints d = TENSOR_INTS(dim);
					int64_t n = 1400 / tensor_sizes(t)[dim];
					double tol = tolerance[k], scale;

					apply_to_lines(t, dim, variance, want);
					check_values_(tensor_var_dim(t, d, true, false), want, n,
						      tol, __FILE__, __LINE__);
					for (int i = 0; i < n; i++)
						want[i] = sqrt(want[i]);
					check_values_(tensor_std_dim(t, d, true, true), want, n,
						      tol, __FILE__, __LINE__);
					apply_to_lines(t, dim, log_of_sum, want);
					check_values_(tensor_logsumexp(t, d, false), want, n, tol,
						      __FILE__, __LINE__);
					for (int o = 0; o < 7; o++) {
						order = orders[o];
						apply_to_lines(t, dim, norm, want);
						scale = fmax(1, fabs(want[0]));
						check_values_(
							tensor_linalg_vector_norm(
								t, TENSOR_SCALAR(order), d, false),
							want, n, tol * scale, __FILE__, __LINE__);
					}
				}
}

static void variance_of_too_few_elements_is_nan_or_infinite(void **state)
{
	tensor *v, *m;

	tensor_scope {
		tensor *one = ok(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(2.0), F32));
		tensor *none = ok(tensor_empty(TENSOR_INTS(0), F32));

		assert_values(tensor_var(one, true), 0, NAN);
		assert_values(tensor_var(one, false), 0, 0);
		assert_values(tensor_var(none, true), 0, NAN);
		assert_values(tensor_std(none, false), 0, NAN);
		assert_done(tensor_var_mean_correction_opt(one, TENSOR_NO_INTS, TENSOR_SCALAR(0),
							   false, &v, &m));
		assert_values(v, 0, 0);
		assert_values(m, 0, 2);
		assert_values(tensor_logsumexp(none, TENSOR_INTS(0), false), 0, -INFINITY);
		assert_fails(tensor_linalg_vector_norm(none, TENSOR_SCALAR(INFINITY),
						       TENSOR_NO_INTS, false),
			     EINVAL, "no elements");
		assert_fails(tensor_var(ok(tensor_to(one, I64)), true), EINVAL, "got i64");
	}
}

static void variance_with_a_large_mean_is_accurate(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_add_scalar(iota(0, TENSOR_INTS(100000)), TENSOR_SCALAR(1e6)));
		double n = 100000;

		assert_values(tensor_var(t, false), 1e-3 * n, (n * n - 1) / 12);
	}
}

/* ---- scans ---- */

static void scans_agree_with_plain_loops(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_I32,
						    TENSOR_F16 };

	for (int k = 0; k < 4; k++)
		for (int layout = 0; layout < LAYOUTS; layout++)
			for (int dim = 0; dim < 3; dim++)
				tensor_scope {
					tensor *t = with_layout(layout,
								TENSOR_OPTIONS(.dtype = dtypes[k]));
					tensor *s = ok(tensor_cumsum(t, dim)), *v, *i;
					tensor *first =
						ok(tensor_contiguous(ok(tensor_select(t, dim, 0))));
					tensor *sum = ok(tensor_zeros_like(first, F64));
					tensor *best = ok(tensor_to(first, F64));

					assert_int_equal(tensor_dtype(s),
							 k == 2 ? TENSOR_I64 : dtypes[k]);
					assert_done(tensor_cummax(t, dim, &v, &i));
					for (int r = 0; r < tensor_sizes(t)[dim]; r++) {
						tensor *x = ok(tensor_to(
							ok(tensor_select(t, dim, r)), F64));

						sum = ok(tensor_contiguous(ok(tensor_add(sum, x))));
						check_values_(tensor_select(s, dim, r),
							      tensor_data(sum), tensor_numel(sum),
							      k == 0 ? 1e-5 :
							      k == 3 ? 0.1 :
								       1e-9,
							      __FILE__, __LINE__);
						best = ok(
							tensor_where(tensor_ge(x, best), x, best));
						best = ok(tensor_contiguous(best));
						check_values_(tensor_select(v, dim, r),
							      tensor_data(best), tensor_numel(best),
							      0, __FILE__, __LINE__);
					}
					/* the indices are those of the values */
					check_values_(tensor_gather(t, dim, i),
						      tensor_data(ok(tensor_contiguous(
							      tensor_to(v, F64)))),
						      tensor_numel(v), 0, __FILE__, __LINE__);
				}
}

static void check_cummax(tensor *t, int64_t dim, bool least)
{
	tensor *v, *at, *lines;
	int64_t n = tensor_sizes(t)[dim], count = tensor_numel(t) / (n ? n : 1);
	double *x, *got, *index;

	assert_done(least ? tensor_cummin(t, dim, &v, &at) : tensor_cummax(t, dim, &v, &at));
	lines = tensor_transpose(t, dim, -1);
	x = values_of(lines);
	got = values_of(tensor_transpose(v, dim, -1));
	index = values_of(tensor_transpose(at, dim, -1));
	for (int64_t l = 0; l < count; l++) {
		int64_t best = 0;

		for (int64_t i = 0; i < n; i++) {
			double a = x[l * n + i], b = x[l * n + best];

			if (isnan(a) || (least ? a <= b : a >= b))
				best = i;
			assert_true(index[l * n + i] == (double)best);
			assert_true(isnan(x[l * n + best]) ? isnan(got[l * n + i]) :
							     got[l * n + i] == x[l * n + best]);
		}
	}
	free(x);
	free(got);
	free(index);
}

static void assert_close(tensor *a, tensor *b, double tolerance)
{
	double *want = values_of(b);

	check_values_(a, want, tensor_numel(b), tolerance, __FILE__, __LINE__);
	free(want);
}

/* Dimensions of one element, and few neighbouring lines: [4, n, 1 to 5], against contiguous lines. */
static void scans_of_few_neighbouring_lines_agree_with_contiguous_ones(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_BF16, TENSOR_I32,
						    TENSOR_U8,	TENSOR_F64,  TENSOR_BOOL };

	for (int64_t k = 0; k < 6 * 5 * 3; k++)
		tensor_scope {
			int64_t cols = k / 6 % 5 + 1, n = ((const int64_t[]){ 1, 2, 41 })[k / 30];
			tensor *t = tensor_sin(iota(1, TENSOR_INTS(4, n, cols)));
			tensor *lines;

			t = tensor_floor(tensor_add_scalar(tensor_mul_scalar(t, S(3)), S(3)));
			t = ok(tensor_to(t, OF(dtypes[k % 6])));
			lines = ok(tensor_contiguous(tensor_transpose(t, 1, 2)));
			for (int least = 0; least < 4; least++) {
				/* With NaN where an element is 0. */
				tensor *x = least < 2 ? t : tensor_sqrt(tensor_sub_scalar(t, S(1)));
				tensor *y = ok(tensor_contiguous(tensor_transpose(x, 1, 2)));

				check_cummax(x, 1, least & 1);
				check_cummax(y, 2, least & 1);
			}
			assert_close(tensor_transpose(tensor_cumsum(t, 1), 1, 2),
				     tensor_cumsum(lines, 2), 0);
			assert_close(tensor_transpose(tensor_cumprod(t, 1), 1, 2),
				     tensor_cumprod(lines, 2), 1e-6);
		}
}

/* Groups of 16 elements are compared at once, blocks of 512 are converted. */
static void cummax_of_every_length_and_dtype(void **state)
{
	static const int64_t sizes[] = { 1, 2, 15, 16, 17, 33, 300, 511, 512, 513, 1100 };
	const tensor_options kinds[] = { F32,
					 F64,
					 I64,
					 TENSOR_OPTIONS(.dtype = TENSOR_I32),
					 TENSOR_OPTIONS(.dtype = TENSOR_BF16),
					 TENSOR_OPTIONS(.dtype = TENSOR_U8) };

	tensor_manual_seed(6);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			for (int least = 0; least < 2; least++)
				tensor_scope {
					tensor *t = ok(
						tensor_randint(100, TENSOR_INTS(3, sizes[i]), F32));
					tensor *nan, *u;

					u = ok(tensor_to(t, kinds[k]));
					check_cummax(u, 1, least);
					check_cummax(tensor_transpose(u, 0, 1), 0, least);
					/* ascending and descending */
					u = tensor_to(tensor_arange(S(sizes[i]), F32), kinds[k]);
					u = tensor_view(u, TENSOR_INTS(1, sizes[i]));
					check_cummax(u, 1, least);
					check_cummax(tensor_flip(u, TENSOR_INTS(1)), 1, least);
					if (k > 1)
						continue;
					nan = ok(tensor_clone(t));
					tensor_fill_(tensor_select(nan, 1, sizes[i] / 2), S(NAN));
					tensor_fill_(tensor_select(nan, 1, sizes[i] * 3 / 4),
						     S(NAN));
					check_cummax(tensor_to(nan, kinds[k]), 1, least);
				}
}

static void cummax_and_cummin_keep_the_last_of_equals_and_nan(void **state)
{
	const double x[] = { 1, 3, 3, 2, NAN, 5 };
	tensor *v, *i;

	tensor_scope {
		tensor *t = ok(tensor_from_data(x, TENSOR_INTS(6), F64));

		assert_done(tensor_cummax(t, 0, &v, &i));
		assert_values(v, 0, 1, 3, 3, 3, NAN, NAN);
		assert_values(i, 0, 0, 1, 2, 2, 4, 4);
		assert_done(tensor_cummin(t, 0, &v, &i));
		assert_values(v, 0, 1, 1, 1, 1, NAN, NAN);
		assert_values(i, 0, 0, 0, 0, 0, 4, 4);
		assert_values(tensor_cumprod(ok(tensor_narrow(t, 0, 0, 4)), 0), 0, 1, 3, 9, 18);
		assert_values(tensor_logcumsumexp(ok(tensor_narrow(t, 0, 0, 2)), 0), 1e-12, 1,
			      3 + log1p(exp(-2)));
		assert_shape(ok(tensor_cumsum(ok(tensor_empty(TENSOR_INTS(0, 3), F32)), 0)), 0, 3);
		assert_fails(tensor_cummax(t, 1, &v, &i), ERANGE, "out of range");
		assert_null(v);
	}
}

static void long_scans_continue_across_blocks(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_ones(TENSOR_INTS(3, 100003), F32)), *s;

		s = ok(tensor_cumsum(t, 1));
		assert_values(tensor_narrow(s, 1, 100001, 2), 0, 100002, 100003, 100002, 100003,
			      100002, 100003);
		s = ok(tensor_cumsum(ok(tensor_contiguous(tensor_t(t))), 0));
		assert_values(tensor_narrow(s, 0, 100002, 1), 0, 100003, 100003, 100003);
		ok(tensor_cumsum_(ok(tensor_slice(t, 1, 0, 100003, 2)), 1));
		assert_values(tensor_narrow(t, 1, 100000, 3), 0, 50001, 1, 50002, 50001, 1, 50002,
			      50001, 1, 50002);
	}
}

/* prepend and append are not broadcast, and an empty vector is still checked. */
static void diff_refuses_prepend_and_append_of_other_shapes(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3)), *v = iota(0, TENSOR_INTS(1));
		tensor *column = iota(0, TENSOR_INTS(2, 1)),
		       *none = ok(tensor_zeros(TENSOR_INTS(0), F32));

		assert_values(tensor_diff(a, 1, 1, column, tensor_none), 0, 0, 1, 1, 2, 1, 1);
		for (int n = 0; n < 2; n++) {
			assert_fails(tensor_diff(a, n, 1, v, tensor_none), EINVAL, "does not fit");
			assert_fails(tensor_diff(a, n, 0, tensor_none, column), EINVAL,
				     "does not fit");
			assert_fails(tensor_diff(none, n, 0, column, column), EINVAL,
				     "does not fit");
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout_and_dimension_agrees_with_plain_loops),
		cmocka_unit_test(variance_of_too_few_elements_is_nan_or_infinite),
		cmocka_unit_test(variance_with_a_large_mean_is_accurate),
		cmocka_unit_test(scans_agree_with_plain_loops),
		cmocka_unit_test(diff_refuses_prepend_and_append_of_other_shapes),
		cmocka_unit_test(scans_of_few_neighbouring_lines_agree_with_contiguous_ones),
		cmocka_unit_test(cummax_of_every_length_and_dtype),
		cmocka_unit_test(cummax_and_cummin_keep_the_last_of_equals_and_nan),
		cmocka_unit_test(long_scans_continue_across_blocks),
	};

	return cmocka_run_group_tests_name("stat", tests, NULL, NULL);
}
