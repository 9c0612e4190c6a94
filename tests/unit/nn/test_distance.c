// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Distances against numbers computed by hand, batches against single matrices, and derivatives. */
#include "autograd.h"
#include "formulas.h"

static tensor *points(void)
{
	const double v[] = { 0, 0, 3, -4, 3, 0 };

	return ok(tensor_from_data(v, TENSOR_INTS(3, 2), F64));
}

static void distances_of_every_order_equal_known_values(void **state)
{
	tensor_scope {
		tensor *x = points();

		assert_values(tensor_pdist(x, 0), 0, 2, 1, 1);
		assert_values(tensor_pdist(x, 1), 0, 7, 3, 4);
		assert_values(tensor_pdist(x, 2), 0, 5, 3, 4);
		assert_values(tensor_pdist(x, 3), 1e-12, cbrt(91), 3, 4);
		assert_values(tensor_pdist(x, INFINITY), 0, 4, 3, 4);
		assert_values(tensor_cdist(x, tensor_narrow(x, 0, 1, 2), 2, TENSOR_NONE), 0, 5, 3,
			      0, 4, 4, 0);
	}
}

static void batches_broadcast(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 1, 3, 20)), *b = iota(5, TENSOR_INTS(4, 2, 20)),
		       *c;

		c = ok(tensor_cdist(a, b, 1, TENSOR_NONE));
		assert_shape(c, 2, 4, 3, 2);
		assert_values(tensor_sub(tensor_select(tensor_select(c, 0, 1), 0, 2),
					 tensor_cdist(tensor_select(tensor_select(a, 0, 1), 0, 0),
						      tensor_select(b, 0, 2), 1, TENSOR_NONE)),
			      0, 0, 0, 0, 0, 0, 0);
		assert_shape(ok(tensor_cdist(iota(0, TENSOR_INTS(0, 3)), iota(0, TENSOR_INTS(2, 3)),
					     2, 0)),
			     0, 2);
	}
}

static double norm_of_difference(const double *x, const double *y, int64_t n, double p)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++) {
		double v = fabs(x[i] - y[i]);

		if (isinf(p))
			sum = v > sum || isnan(v) ? v : sum;
		else if (!(v == 0))
			sum += pow(v, p);
	}
	return p == 0 || isinf(p) ? sum : pow(sum, 1 / p);
}

/* Compares cdist, or pdist for m = 0, with a plain loop. */
static void check_distances(int64_t b, int64_t n, int64_t m, int64_t length, double p,
			    tensor_options options)
{
	double limit = options.dtype == TENSOR_F32 ? 1e-5 : 1e-13;
	int64_t rows = m ? m : n, k = 0, count = m ? b * n * m : n * (n - 1) / 2;
	double *xv = malloc(b * n * length * sizeof(*xv) + 8), *yv = xv;
	double *have = malloc(count * sizeof(*have) + 8);

	tensor_scope {
		/* Every second element of a tensor is a view with a stride. */
		tensor *x = ok(tensor_slice(tensor_randn(TENSOR_INTS(b, n, 2 * length), options), 2,
					    0, 2 * length, 2));
		tensor *y = x, *d;

		tensor_copy_to(tensor_to(x, F64), xv, b * n * length * sizeof(*xv));
		if (m) {
			y = ok(tensor_randn(TENSOR_INTS(b, m, length), options));
			yv = malloc(b * m * length * sizeof(*yv) + 8);
			tensor_copy_to(tensor_to(y, F64), yv, b * m * length * sizeof(*yv));
		}
		d = ok(m ? tensor_cdist(x, y, p, TENSOR_NONE) :
			   tensor_pdist(tensor_select(x, 0, 0), p));
		assert_int_equal(tensor_numel(d), count);
		tensor_copy_to(tensor_to(d, F64), have, count * sizeof(*have));
	}
	for (int64_t i = 0; i < b * n; i++)
		for (int64_t j = m ? 0 : i + 1; j < rows; j++, k++) {
			double want = norm_of_difference(
				xv + i * length, yv + (i / n * rows + j) * length, length, p);

			if (!(fabs(have[k] - want) <= limit * (want + 1)))
				fail_msg("p %g, %lld x %lld x %lld: %g at %lld, expected %g", p,
					 (long long)n, (long long)m, (long long)length, have[k],
					 (long long)k, want);
		}
	if (yv != xv)
		free(yv);
	free(xv);
	free(have);
}

/* A tile has 64 rows and 32 or 64 columns; sums are taken over 64 elements. */
static void tiles_equal_a_plain_loop(void **state)
{
	static const int64_t rows[] = { 1, 3, 4, 5, 63, 64, 65, 67, 130 };
	static const int64_t cols[] = { 1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129 };
	static const int64_t lengths[] = { 1, 2, 7, 16, 63, 64, 65, 130, 200 };
	static const double orders[] = { 0, 1, 2, INFINITY, 3, 2.5, 8, 9 };

	tensor_manual_seed(7);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t j = 0; j < ARRAY_SIZE(cols); j++) {
			double p = orders[(i * ARRAY_SIZE(cols) + j) % 4];

			check_distances(1, rows[i], cols[j], lengths[(i + j) % 9], p,
					j % 2 ? F32 : F64);
		}
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
			check_distances(3, 6, 19, lengths[k], orders[i], k % 2 ? F64 : F32);
			check_distances(1, rows[k], 0, lengths[k], orders[i], k % 2 ? F32 : F64);
			check_distances(1, 70 + (int64_t)k, 0, 3, orders[i], k % 2 ? F32 : F64);
		}
}

/* Rows without elements are equal. */
static void distances_of_empty_rows_are_zero(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_zeros(TENSOR_INTS(5, 0), F32));

		assert_values(tensor_sum(tensor_cdist(x, x, 2, TENSOR_NONE)), 0, 0);
		assert_values(tensor_pdist(x, INFINITY), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
		assert_shape(ok(tensor_cdist(iota(0, TENSOR_INTS(7, 3)), iota(0, TENSOR_INTS(0, 3)),
					     2, TENSOR_NONE)),
			     7, 0);
	}
}

/* Only the pairs of a row with NaN are NaN; infinite rows are infinitely far from others. */
static void nan_and_infinity_stay_in_their_pairs(void **state)
{
	static const double orders[] = { 1, 2, 3, INFINITY };

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		tensor_scope {
			tensor *x = ok(tensor_ones(TENSOR_INTS(9, 70), F32)), *d;
			tensor *y = ok(tensor_zeros(TENSOR_INTS(20, 70), F32));
			double v;

			tensor_fill_(tensor_select(tensor_select(x, 0, 2), 0, 66),
				     TENSOR_SCALAR(NAN));
			tensor_fill_(tensor_select(tensor_select(y, 0, 17), 0, 3),
				     TENSOR_SCALAR(-INFINITY));
			d = ok(tensor_cdist(x, y, orders[i], TENSOR_NONE));
			for (int64_t r = 0; r < 9; r++)
				for (int64_t c = 0; c < 20; c++) {
					assert_done(tensor_item(
						tensor_select(tensor_select(d, 0, r), 0, c), &v));
					assert_true(r == 2  ? isnan(v) :
						    c == 17 ? isinf(v) :
							      isfinite(v));
				}
		}
}

/* Distances of near points far from zero keep their digits. */
static void near_points_keep_their_digits(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_full(TENSOR_INTS(40, 64), TENSOR_SCALAR(1000), F32)), *d;

		d = ok(tensor_cdist(x, tensor_add_scalar(x, TENSOR_SCALAR(0.125)), 2, TENSOR_NONE));
		assert_values(tensor_stack(TENSOR_LIST(tensor_min(d), tensor_max(d)), 0), 0, 1, 1);
		assert_values(tensor_max(tensor_cdist(x, x, 2, TENSOR_NONE)), 0, 0);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *x = points();

		assert_fails(tensor_cdist(x, iota(0, TENSOR_INTS(2, 2)), 2, TENSOR_NONE) == NULL,
			     EINVAL, "of one dtype are needed");
		assert_fails(tensor_cdist(x, x, -1, TENSOR_NONE) == NULL, EINVAL,
			     "p must not be negative");
		assert_fails(tensor_cdist(x, x, 2, 3) == NULL, EINVAL, "compute_mode");
		assert_fails(tensor_pdist(tensor_select(x, 0, 0), 2) == NULL, EINVAL,
			     "must be a matrix");
	}
}

CASE(fn_one, tensor_cdist(a, b, 1, TENSOR_NONE))
CASE(fn_two, tensor_cdist(a, b, 2, TENSOR_NONE))
CASE(fn_three, tensor_cdist(a, b, 3, TENSOR_NONE))
CASE(fn_most, tensor_cdist(a, b, INFINITY, TENSOR_NONE))
CASE(fn_pairs, tensor_pdist(a, 2))
CASE(fn_pairs_odd, tensor_pdist(a, 1.5))
CASE(fn_pairwise, tensor_pairwise_distance(a, b, 2, 1e-6, false))
CASE(fn_cdist_by_name, tensor_exp(tensor_cdist_backward(a, b, c, 2, d)))
CASE(fn_cdist_by_name_odd, tensor_exp(tensor_cdist_backward(a, b, c, 1.5, d)))
CASE(fn_pdist_by_name, tensor_exp(tensor_pdist_backward(a, b, 2, c)))
CASE(fn_cosine, tensor_cosine_similarity(a, b, 1, 1e-8))

static const struct formula formulas[] = {
	ROW(one, 2, IN(1, 0, 2, 3), IN(1, 0.1, 3, 3)),
	ROW(two, 2, IN(1, 0, 2, 2, 3), IN(1, 0.1, 3, 3)),
	ROW(three, 2, IN(1, 0, 2, 3), IN(1, 0.1, 3, 3)),
	ROW(most, 2, IN(1, 0, 2, 3), IN(1, 0.1, 3, 3)),
	ROW(pairs, 1, IN(1, 0, 4, 3)),
	ROW(pairs_odd, 1, IN_T(1, 0, 4, 3)),
	ROW(pairwise, 2, IN(1, 0, 2, 3), IN(1, 0.1, 2, 3)),
	ROW(cdist_by_name, 4, IN(1, 0, 2, 3), IN(1, 0, 2, 3), IN(1, 0.1, 3, 3), IN(0.3, 1, 2, 3)),
	ROW(cdist_by_name_odd, 4, IN(1, 0, 2, 3), IN(1, 0, 2, 3), IN(1, 0.1, 3, 3),
	    IN(0.3, 1, 2, 3)),
	ROW(pdist_by_name, 3, IN(1, 0, 6), IN_T(1, 0, 4, 3), IN(0.3, 1, 6)),
	ROW(cosine, 2, IN(1, 0, 2, 3), IN(1, 0.1, 2, 3)),
};

FORMULA_TESTS

/* The derivative of |v|_p by element i of v. */
static double slope_of(const double *v, int64_t i, int64_t n, double p)
{
	double most = 0, sum = 0;

	for (int64_t k = 0; k < n; k++) {
		most = fmax(most, fabs(v[k]));
		sum += pow(fabs(v[k]), p);
	}
	if (v[i] == 0 || most == 0 || p == 0)
		return 0;
	if (isinf(p))
		return fabs(v[i]) == most ? copysign(1, v[i]) : 0;
	return copysign(pow(fabs(v[i]) / pow(sum, 1 / p), p - 1), v[i]);
}

/* Lengths around those of vectors; some elements of the rows are equal. */
static void gradients_equal_a_plain_loop(void **state)
{
	static const int64_t lengths[] = { 1, 7, 8, 9, 40 };
	static const double orders[] = { 0, 0.5, 1, 1.5, 2, 3, 9, INFINITY };

	tensor_manual_seed(9);
	for (size_t k = 0; k < ARRAY_SIZE(lengths) * ARRAY_SIZE(orders) * 2; k++)
		tensor_scope {
			int64_t d = lengths[k / 2 % ARRAY_SIZE(lengths)];
			double p = orders[k / 2 / ARRAY_SIZE(lengths)], v[40];
			double limit = k % 2 ? 1e-4 : 1e-11;
			tensor_options o = k % 2 ? F32 : F64;
			tensor *x = leaf(ok(tensor_randint(9, TENSOR_INTS(5, d), o)));
			tensor *y = ok(tensor_randint(9, TENSOR_INTS(7, d), o)), *g;
			double *xv, *yv, *gv, *got;

			g = ok(tensor_randn(TENSOR_INTS(5, 7), o));
			assert_done(tensor_backward(
				tensor_sum(tensor_mul(tensor_cdist(x, y, p, TENSOR_NONE), g))));
			xv = values_of(x);
			yv = values_of(y);
			gv = values_of(g);
			got = values_of(tensor_grad(x));
			for (int64_t i = 0; i < 5 * d; i++) {
				double want = 0;

				for (int64_t j = 0; j < 7; j++) {
					for (int64_t c = 0; c < d; c++)
						v[c] = xv[i / d * d + c] - yv[j * d + c];
					want += gv[i / d * 7 + j] * slope_of(v, i % d, d, p);
				}
				if (!(fabs(got[i] - want) <= limit * (1 + fabs(want))))
					fail_msg("p %g, %lld elements: %g, expected %g", p,
						 (long long)d, got[i], want);
			}
			free(xv);
			free(yv);
			free(gv);
			free(got);
		}
}

/* Equal rows: their distance is 0, and its derivatives are finite. */
static void second_derivative_of_a_distance_of_zero_is_finite(void **state)
{
	tensor_scope {
		tensor *x = leaf(ok(tensor_ones(TENSOR_INTS(3, 2), F64))), *g[1];

		assert_done(tensor_backward_ex(TENSOR_LIST(tensor_sum(tensor_pdist(x, 2))), NULL,
					       TENSOR_LIST(x), g, TENSOR_CREATE_GRAPH));
		assert_done(tensor_backward(tensor_sum(g[0])));
		assert_values(tensor_grad(x), 0, 0, 0, 0, 0, 0, 0);
		assert_done(tensor_backward_ex(
			TENSOR_LIST(tensor_sum(tensor_cdist(x, x, 2, TENSOR_NONE))), NULL,
			TENSOR_LIST(x), g, TENSOR_CREATE_GRAPH));
		assert_done(tensor_backward(tensor_sum(g[0])));
		assert_values(tensor_grad(x), 0, 0, 0, 0, 0, 0, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances_of_every_order_equal_known_values),
		cmocka_unit_test(batches_broadcast),
		cmocka_unit_test(tiles_equal_a_plain_loop),
		cmocka_unit_test(distances_of_empty_rows_are_zero),
		cmocka_unit_test(nan_and_infinity_stay_in_their_pairs),
		cmocka_unit_test(near_points_keep_their_digits),
		cmocka_unit_test(invalid_arguments_are_refused),
		FORMULA_TEST_LIST,
		cmocka_unit_test(gradients_equal_a_plain_loop),
		cmocka_unit_test(second_derivative_of_a_distance_of_zero_is_finite),
	};

	return cmocka_run_group_tests_name("distance", tests, NULL, NULL);
}
