// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operators on lists of tensors: properties beyond those of the operator that they call. */
#include "check.h"

static tensor *pair(double a, double b)
{
	return ok(tensor_from_data((const double[]){ a, b }, TENSOR_SHAPE(2), F64));
}

static void results_equal_those_of_single_calls(void **state)
{
	tensor *results[2];

	tensor_scope {
		tensor_list self = TENSOR_LIST(pair(1, 2), pair(3, 4));

		assert_int_equal(tensor__foreach_add_list(self, TENSOR_LIST(pair(1, 1), pair(2, 2)),
							  results, 2),
				 2);
		assert_values(results[0], 0, 2, 3);
		assert_values(results[1], 0, 5, 6);
		assert_int_equal(
			tensor__foreach_mul_scalarlist(self,
						       TENSOR_SCALARS(tensor_scalar_int(2),
								      tensor_scalar_float(0.5)),
						       results, 2),
			2);
		assert_values(results[1], 0, 1.5, 2);
	}
}

static void in_place_changes_each_tensor(void **state)
{
	tensor_scope {
		tensor *a = pair(1, 2), *b = pair(3, 4);
		int before = (int)tensor_version(a);

		assert_done(tensor__foreach_addcmul_tensor_(TENSOR_LIST(a, b), TENSOR_LIST(b, a),
							    TENSOR_LIST(b, a), pair(1, 0)));
		assert_values(a, 0, 10, 18);
		assert_values(b, 0, 3, 4);
		assert_int_equal(tensor_version(a), before + 1);
	}
}

static void lists_of_different_lengths_are_refused(void **state)
{
	tensor *results[2];

	tensor_scope {
		tensor_list two = TENSOR_LIST(pair(1, 2), pair(3, 4)),
			    one = TENSOR_LIST(pair(1, 2));

		assert_fails(tensor__foreach_add_list(two, one, results, 2), EINVAL, "one length");
		assert_fails(tensor__foreach_sub_scalarlist(
				     two, TENSOR_SCALARS(tensor_scalar_int(1)), results, 2),
			     EINVAL, "one length");
		assert_fails(tensor__foreach_mul_scalarlist(two, (tensor_scalars){ NULL, 2 },
							    results, 2),
			     EINVAL, "scalars");
		assert_fails(tensor__foreach_addcdiv_tensor(two, two, two, one.data[0], results, 1),
			     ENOSPC, "room");
		assert_fails(tensor__foreach_addcdiv_tensor(one, one, one, one.data[0], results, 1),
			     EINVAL, "scalars");
		assert_fails(tensor__foreach_mul_tensor(two, one.data[0], results, 2), EINVAL,
			     "dimensions");
	}
}

static void results_are_released_on_failure(void **state)
{
	tensor *results[2] = { NULL };
	struct tensor_cache_stats before, after;

	tensor_scope {
		tensor_list self = TENSOR_LIST(pair(1, 2), pair(3, 4));
		tensor_list other = TENSOR_LIST(pair(1, 2), ok(tensor_zeros(TENSOR_SHAPE(3), F64)));

		tensor_cache_stats(&before);
		assert_fails(tensor__foreach_add_list(self, other, results, 2), EINVAL, "add");
		tensor_cache_stats(&after);
		assert_int_equal(before.used, after.used);
		assert_null(results[0]);
	}
}

static void gradients_reach_every_tensor(void **state)
{
	tensor *results[2];

	tensor_scope {
		tensor *a = pair(1, 2), *b = pair(3, 4);

		assert_done(tensor_set_requires_grad(a, true));
		assert_done(tensor_set_requires_grad(b, true));
		assert_int_equal(tensor__foreach_pow_scalar(TENSOR_LIST(a, b), tensor_scalar_int(2),
							    results, 2),
				 2);
		assert_done(tensor_backward(ok(tensor_sum(tensor_add(results[0], results[1])))));
		assert_values(tensor_grad(a), 0, 2, 4);
		assert_values(tensor_grad(b), 0, 6, 8);
	}
}

static void elements_equal_to_a_limit_get_half_of_the_gradient(void **state)
{
	(void)state;
	tensor_scope {
		tensor *x = pair(1, 2), *results[1];

		tensor_set_requires_grad(x, true);
		assert_int_equal(tensor__foreach_maximum_scalar(TENSOR_LIST(x), S(2), results, 1),
				 1);
		assert_done(tensor_backward(ok(tensor_sum(results[0]))));
		assert_values(tensor_grad(x), 0, 0, 0.5);
		assert_int_equal(tensor__foreach_minimum_scalarlist(
					 TENSOR_LIST(x), TENSOR_SCALARS(S(2)), results, 1),
				 1);
		assert_done(tensor_backward(ok(tensor_sum(results[0]))));
		assert_values(tensor_grad(x), 0, 1, 1);
	}
}

/* The limit is compared as the number that the result has. */
static void limits_are_rounded_as_elements_are(void **state)
{
	const enum tensor_dtype dtypes[] = { TENSOR_BF16, TENSOR_F16 };
	const double limits[] = { 0.1, 0.2, 0.7 };

	(void)state;
	for (int i = 0; i < 6; i++)
		tensor_scope {
			tensor_scalar s = S(limits[i % 3]);
			tensor *x = ok(tensor_full(TENSOR_SHAPE(1), s, OF(dtypes[i / 3]))),
			       *results[1];

			tensor_set_requires_grad(x, true);
			assert_int_equal(
				tensor__foreach_maximum_scalar(TENSOR_LIST(x), s, results, 1), 1);
			assert_done(tensor_backward(ok(tensor_sum(results[0]))));
			assert_values(tensor_grad(x), 0, 0.5);
			assert_int_equal(
				tensor__foreach_minimum_scalar(TENSOR_LIST(x), s, results, 1), 1);
			assert_done(tensor_backward(ok(tensor_sum(results[0]))));
			assert_values(tensor_grad(x), 0, 1);
		}
}

static void boxed_in_place_calls_return_nothing(void **state)
{
	tensor_scope {
		tensor *a = pair(1, 2);
		tensor_scalar two = tensor_scalar_int(2);
		tensor_value args[] = {
			{ .kind = TENSOR_VALUE_TENSOR_LIST, .list = TENSOR_LIST(a) },
			{ .kind = TENSOR_VALUE_SCALARS, .scalars = { &two, 1 } },
		};

		assert_done(tensor_call("_foreach_mul_.ScalarList", args, 2, NULL, 0));
		assert_values(a, 0, 2, 4);
		two.kind = 77;
		assert_fails(tensor_call("_foreach_mul_.ScalarList", args, 2, NULL, 0), EINVAL,
			     "77 is no kind");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_equal_those_of_single_calls),
		cmocka_unit_test(in_place_changes_each_tensor),
		cmocka_unit_test(lists_of_different_lengths_are_refused),
		cmocka_unit_test(results_are_released_on_failure),
		cmocka_unit_test(gradients_reach_every_tensor),
		cmocka_unit_test(elements_equal_to_a_limit_get_half_of_the_gradient),
		cmocka_unit_test(limits_are_rounded_as_elements_are),
		cmocka_unit_test(boxed_in_place_calls_return_nothing),
	};

	return cmocka_run_group_tests_name("foreach", tests, NULL, NULL);
}
