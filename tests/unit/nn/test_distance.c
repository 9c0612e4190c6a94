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
		cmocka_unit_test(invalid_arguments_are_refused),
		FORMULA_TEST_LIST,
		cmocka_unit_test(second_derivative_of_a_distance_of_zero_is_finite),
	};

	return cmocka_run_group_tests_name("distance", tests, NULL, NULL);
}
