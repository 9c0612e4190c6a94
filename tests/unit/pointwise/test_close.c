// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* isclose and allclose, with the definition and the defaults of torch.isclose. */
#include "check.h"

#include <math.h>

static tensor *values(enum tensor_dtype dtype, double a, double b, double c)
{
	const double data[] = { a, b, c };
	tensor *t = ok(tensor_from_data(data, TENSOR_SHAPE(3), F64));

	return ok(tensor_to(t, TENSOR_OPTIONS(.dtype = (uint8_t)dtype)));
}

static bool allclose(tensor *a, tensor *b, double rtol, double atol, bool equal_nan)
{
	bool close = false;

	assert_done(tensor_allclose(a, b, rtol, atol, equal_nan, &close));
	return close;
}

static void difference_is_at_most_atol_plus_rtol_times_other(void **state)
{
	static const enum tensor_dtype dtypes[] = {
		TENSOR_F16, TENSOR_BF16, TENSOR_F32, TENSOR_F64,
		TENSOR_I8,  TENSOR_U8,	 TENSOR_I32, TENSOR_I64
	};

	for (unsigned i = 0; i < ARRAY_SIZE(dtypes); i++) {
		tensor_scope {
			tensor *a = values(dtypes[i], 10, 20, 0), *b = values(dtypes[i], 11, 20, 0);

			assert_values(ok(tensor_isclose(a, b, 0, 0, false)), 0, 0, 1, 1);
			assert_values(ok(tensor_isclose(a, b, 0, 1, false)), 0, 1, 1, 1);
			assert_values(ok(tensor_isclose(a, b, 0, 0.5, false)), 0, 0, 1, 1);
			/* 0.0951 * 11 is more than 1, 0.0951 * 10 is less */
			assert_true(allclose(a, b, 0.0951, 0, false));
			assert_false(allclose(b, a, 0.0951, 0, false));
			assert_int_equal(tensor_dtype(ok(tensor_isclose(a, b, 0, 1, false))),
					 TENSOR_BOOL);
		}
	}
}

static void infinity_equals_itself_and_nan_does_not(void **state)
{
	tensor_scope {
		tensor *a = values(TENSOR_F32, INFINITY, -INFINITY, NAN),
		       *b = values(TENSOR_F32, INFINITY, INFINITY, NAN);

		assert_values(ok(tensor_isclose(a, b, 1, 1, false)), 0, 1, 0, 0);
		assert_values(ok(tensor_isclose(a, b, 1, 1, true)), 0, 1, 0, 1);
		assert_values(ok(tensor_isclose(a, b, 0, 0, true)), 0, 1, 0, 1);
	}
}

static void complex_and_bool_are_compared(void **state)
{
	tensor_scope {
		tensor *c = values(TENSOR_C64, 1, 2, 3), *t = values(TENSOR_BOOL, 1, 0, 1);

		assert_true(allclose(c, tensor_add(c, 1e-4), 0, 1e-3, false));
		assert_false(allclose(c, tensor_add(c, 1e-2), 0, 1e-3, false));
		assert_true(allclose(t, t, 1e-5, 1e-8, false));
		assert_false(allclose(t, tensor_logical_not(t), 1e-5, 1e-8, false));
	}
}

static void shapes_broadcast_and_empty_tensors_are_close(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2, 3), F32)),
		       *none = ok(tensor_ones(TENSOR_SHAPE(0), F32));

		assert_true(allclose(x, tensor_ones(TENSOR_SHAPE(3), F32), 0, 0, false));
		assert_true(allclose(none, none, 0, 0, false));
	}
}

static void invalid_arguments_are_refused(void **state)
{
	bool close = true;

	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2), F32));

		assert_fails(tensor_isclose(x, tensor_ones(TENSOR_SHAPE(2), F64), 0, 0, false),
			     EINVAL, "same dtype");
		assert_fails(tensor_isclose(x, x, -1, 0, false), EINVAL, "negative");
		assert_fails(tensor_isclose(x, x, 0, NAN, false), EINVAL, "negative");
		assert_int_equal(tensor_allclose(x, tensor_ones(TENSOR_SHAPE(3), F32), 0, 0, false,
						 &close),
				 -EINVAL);
		assert_true(close);
	}
}

static void inputs_may_require_a_gradient(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2), F32));

		assert_done(tensor_set_requires_grad(x, true));
		assert_true(allclose(x, tensor_mul(x, 1), 1e-5, 1e-8, false));
		assert_false(tensor_requires_grad(ok(tensor_isclose(x, x, 0, 0, false))));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(difference_is_at_most_atol_plus_rtol_times_other),
		cmocka_unit_test(infinity_equals_itself_and_nan_does_not),
		cmocka_unit_test(complex_and_bool_are_compared),
		cmocka_unit_test(shapes_broadcast_and_empty_tensors_are_close),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(inputs_may_require_a_gradient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
