// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Random operators under autograd. Each function sets the seed first, so that all its calls use the
 * same numbers.
 */
#include "formulas.h"

static tensor *seeded(tensor *t)
{
	tensor_manual_seed(99);
	return t;
}

static tensor *dropped(tensor *a, double p, bool train)
{
	tensor *out, *mask;

	return tensor_native_dropout(seeded(a), p, train, &out, &mask) < 0 ? NULL : out;
}

/* The overwritten half has no gradient, the other half has one. */
static tensor *overwritten(tensor *a)
{
	tensor *t = tensor_mul_scalar(a, S(2.0));

	tensor_normal_(tensor_select(seeded(t), 0, 0), 0, 1);
	tensor_uniform_(tensor_select(t, 0, 1), 0, 1);
	return t;
}

CASE(fn_native_dropout, dropped(a, 0.4, true))
CASE(fn_native_dropout_all, dropped(a, 1, true))
CASE(fn_native_dropout_off, dropped(a, 0.4, false))
CASE(fn_dropout, tensor_dropout(seeded(a), 0.4, true))
CASE(fn_bernoulli, tensor_mul(a, tensor_bernoulli_p(seeded(a), 0.5)))
CASE(fn_overwritten, overwritten(a))
CASE(fn_normal_mean, tensor_add(a, tensor_normal_tensor_float(seeded(a), 1)))
CASE(fn_normal_std, tensor_add(a, tensor_normal_float_tensor(1, seeded(a))))
CASE(fn_normal_both, tensor_add(a, tensor_normal_tensor_tensor(seeded(a), a)))

static const struct formula formulas[] = {
	ROW(native_dropout, 1, IN(1, 0, 5, 6)),	 ROW(native_dropout, 1, IN_T(1, 0, 3, 4)),
	ROW(native_dropout_all, 1, IN(1, 0, 5)), ROW(native_dropout_off, 1, IN(1, 0, 5)),
	ROW(dropout, 1, IN(1, 0, 4, 5)),	 ROW(bernoulli, 1, IN(1, 0, 4, 5)),
	ROW(overwritten, 1, IN(1, 0, 4, 3)),
};

FORMULA_TESTS

/* As in PyTorch, the parameters of a normal distribution get no gradient. */
static void parameters_of_a_normal_get_no_gradient(void **state)
{
	const function fn[] = { fn_normal_mean, fn_normal_std, fn_normal_both };

	for (size_t i = 0; i < ARRAY_SIZE(fn); i++)
		tensor_scope {
			tensor *a = ok(tensor_full(TENSOR_INTS(3), S(2.0), F64));

			assert_done(tensor_set_requires_grad(a, true));
			assert_done(tensor_backward(
				ok(tensor_sum(fn[i]((tensor *[MAX_IN]){ a }, NULL)))));
			assert_values(tensor_grad(a), 0, 1, 1, 1);
		}
}

static void random_results_need_no_gradient(void **state)
{
	tensor_scope {
		tensor *a = ok(tensor_full(TENSOR_INTS(3), S(0.5), F64));

		assert_done(tensor_set_requires_grad(a, true));
		assert_false(tensor_requires_grad(ok(tensor_rand_like(a, TENSOR_OPTIONS(0)))));
		assert_false(tensor_requires_grad(ok(tensor_multinomial(a, 2, false))));
		assert_fails(tensor_normal_(a, 0, 1), EINVAL, "normal_");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORMULA_TEST_LIST,
		cmocka_unit_test(parameters_of_a_normal_get_no_gradient),
		cmocka_unit_test(random_results_need_no_gradient),
	};

	return cmocka_run_group_tests_name("autograd_random", tests, NULL, NULL);
}
