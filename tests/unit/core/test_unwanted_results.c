// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * NULL in place of a pointer to a result: who owns the others, gradients, errors. tests/reference/reference.c calls every
 * operator that way.
 */
#include "autograd.h"

static void dropped_result_is_released(void **state)
{
	struct tensor_live_counts before, after;

	tensor_live_counts(&before);
	for (int scoped = 0; scoped < 2; scoped++) {
		struct tensor_scope_guard scope = { 0 };
		tensor *x, *values = NULL, *indices = NULL;

		if (scoped)
			scope = tensor_scope_enter();
		x = iota(1, TENSOR_INTS(2, 3));
		assert_done(tensor_max_dim(x, 1, false, &values, NULL));
		assert_values(values, 0, 3, 6);
		assert_done(tensor_max_dim(x, 1, false, NULL, &indices));
		assert_values(indices, 0, 2, 2);
		assert_done(tensor_max_dim(x, 1, false, NULL, NULL));
		if (scoped) {
			tensor_scope_leave(&scope);
			continue;
		}
		tensor_release(x);
		tensor_release(values);
		tensor_release(indices);
	}
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
}

static void gradient_goes_through_the_wanted_result(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2, 2)), *y, *s;

		assert_done(tensor_max_dim(x, 1, false, &y, NULL));
		assert_done(tensor_backward(ok(tensor_sum(y))));
		assert_values(tensor_grad(x), 0, 0, 1, 0, 1);
		/* The first result, which holds the node's metadata, is dropped. */
		assert_done(tensor_linalg_svd(x, false, NULL, &s, NULL));
		assert_done(tensor_backward(ok(tensor_sum(ok(tensor_mul(s, s))))));
		assert_values(tensor_grad(x), 1e-4, 2, 5, 6, 9);
	}
}

static void failed_call_stores_null(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2)), *values = x;
		bool equal = true;

		assert_fails(tensor_sort(x, 3, false, &values, NULL), ERANGE, "sort");
		assert_null(values);
		assert_fails(tensor_sort(NULL, 0, false, NULL, NULL), EINVAL, "sort");
		tensor_clear_error();
		assert_fails(tensor_allclose(x, x, 0, 0, false, NULL), EINVAL, "allclose");
		assert_fails(tensor_split(x, 1, 0, NULL, 2), EINVAL, "split");
		assert_fails(tensor_split(x, 1, 0, NULL, 0), ENOSPC, "split");
		assert_done(tensor_allclose(x, x, 0, 0, false, &equal));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dropped_result_is_released),
		cmocka_unit_test(gradient_goes_through_the_wanted_result),
		cmocka_unit_test(failed_call_stores_null),
	};

	return cmocka_run_group_tests_name("unwanted_results", tests, NULL, NULL);
}
