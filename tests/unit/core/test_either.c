// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The type-generic macros at the end of tensor/ops.h, which take a tensor or a number. */
#include "check.h"

#include <complex.h>

static void numbers_of_every_type_call_the_scalar_function(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2), F32)),
		       *i = ok(tensor_ones(TENSOR_SHAPE(1), I64));
		const float half = 0.5f;
		uint8_t small = 3;

		assert_values(ok(tensor_add(x, 2)), 0, 3, 3);
		assert_values(ok(tensor_mul(x, half)), 0, 0.5, 0.5);
		assert_values(ok(tensor_sub(x, 0.25)), 0, 0.75, 0.75);
		assert_values(ok(tensor_mul(x, small)), 0, 3, 3);
		assert_values(ok(tensor_add(x, 1.5L)), 0, 2.5, 2.5);
		assert_values(ok(tensor_add(x, TENSOR_SCALAR(1))), 0, 2, 2);
		assert_values(
			ok(tensor_add(x, (tensor_scalar){ .d = 2, .kind = TENSOR_SCALAR_FLOAT })),
			0, 3, 3);
		assert_values(ok(tensor_add(i, INT64_C(1) << 40)), 0,
			      (double)(INT64_C(1) << 40) + 1);
		assert_int_equal(tensor_dtype(ok(tensor_mul(x, 2.0 * I))), TENSOR_C64);
		assert_int_equal(tensor_dtype(ok(tensor_add(i, 0.5))), TENSOR_F32);
		assert_int_equal(tensor_dtype(ok(tensor_add(tensor_eq(x, x), (bool)true))),
				 TENSOR_BOOL);
	}
}

static void numbers_keep_their_value(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_zeros(TENSOR_SHAPE(1), F64));
		const float _Complex z = 1.0f + 2.0f * I;

		assert_values(ok(tensor_add(x, TENSOR_SCALAR(1.5L))), 0, 1.5);
		assert_true(TENSOR_SCALAR(z).kind == TENSOR_SCALAR_COMPLEX &&
			    TENSOR_SCALAR(z).imag == 2);
		assert_true(TENSOR_SCALAR(1.5L + 2.5L * I).imag == 2.5);
		assert_int_equal(tensor_dtype(ok(tensor_add(x, 1.5L + 2.5L * I))), TENSOR_C128);
		assert_values(ok(tensor_add(x, (signed char)-1)), 0, -1);
		assert_values(ok(tensor_add(x, (unsigned short)65535)), 0, 65535);
		assert_values(ok(tensor_add(x, UINT32_MAX)), 0, UINT32_MAX);
		assert_values(ok(tensor_add(x, (unsigned long)INT64_MAX)), 0, 0x1p63);
		assert_values(ok(tensor_add(x, (unsigned long long)UINT64_MAX)), 0, 0x1p64);
#ifdef __FLT16_MAX__
		assert_values(ok(tensor_add(x, (_Float16)1.5)), 0, 1.5);
		assert_values(ok(tensor_add(x, TENSOR_SCALAR((_Float16)1.5))), 0, 1.5);
#endif
#ifdef __FLT32_MAX__
		assert_values(ok(tensor_add(x, (_Float32)1.5)), 0, 1.5);
		assert_values(ok(tensor_add(x, (_Float64)1.5)), 0, 1.5);
		assert_values(ok(tensor_add(x, (_Float32x)1.5)), 0, 1.5);
		assert_values(ok(tensor_add(x, (_Float64x)1.5)), 0, 1.5);
		assert_values(ok(tensor_add(x, (_Float128)1.5)), 0, 1.5);
#endif
	}
}

static void scalar_of_no_kind_is_refused(void **state)
{
	const tensor_scalar bad = { .kind = 77 };

	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2), F32)), *out[1];

		assert_fails(tensor_add(x, bad), EINVAL,
			     "add.Scalar: argument other: 77 is no kind");
		assert_fails(tensor_add_opt(x, x, bad), EINVAL, "argument alpha: 77 is no kind");
		assert_fails(tensor_full(TENSOR_SHAPE(1), bad, F32), EINVAL, "77 is no kind");
		assert_fails(tensor_clamp(x, bad, TENSOR_SCALAR(1)), EINVAL, "77 is no kind");
		assert_fails(tensor__foreach_add_scalarlist(TENSOR_LIST(x), TENSOR_SCALARS(bad),
							    out, 1),
			     EINVAL, "77 is no kind");
	}
}

static void tensors_call_the_tensor_function(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_full(TENSOR_SHAPE(2), TENSOR_SCALAR(2), F32));
		tensor *const same = x;

		assert_values(ok(tensor_add(x, same)), 0, 4, 4);
		assert_values(ok(tensor_add_opt(x, x, TENSOR_SCALAR(3))), 0, 8, 8);
		assert_values(ok(tensor_add_opt(x, 1, TENSOR_SCALAR(3))), 0, 5, 5);
		assert_values(ok(tensor_add(x, tensor_mul(x, tensor_add(x, tensor_mul(x, 2))))), 0,
			      14, 14);
		assert_values(ok(tensor_fill_(x, tensor_sum(tensor_ones_like(x, F32)))), 0, 2, 2);
		assert_values(ok(tensor_fill_(x, 7)), 0, 7, 7);
		assert_values(ok(tensor_mul_(x, 2)), 0, 14, 14);
		assert_values(ok(tensor_add_out(tensor_empty(TENSOR_SHAPE(2), F32), x, 1)), 0, 15,
			      15);
	}
}

static void null_is_a_tensor_argument(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2), F32));

		assert_fails(tensor_add(x, NULL), EINVAL, "add.Tensor: an argument is NULL");
	}
}

static void number_may_be_the_first_or_second_operand(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_arange(TENSOR_SCALAR(3), F32));

		assert_values(ok(tensor_pow(x, 2)), 0, 0, 1, 4);
		assert_values(ok(tensor_pow(2, x)), 0, 1, 2, 4);
		assert_values(ok(tensor_pow(x, x)), 0, 1, 1, 4);
		assert_values(ok(tensor_where(tensor_gt(x, 1), x, -1)), 0, -1, -1, 2);
		assert_values(ok(tensor_where(tensor_gt(x, 1), 5.0, x)), 0, 0, 1, 5);
		assert_values(ok(tensor_where(tensor_ge(x, 1), 1.0, 0.0)), 0, 0, 1, 1);
		assert_values(ok(tensor_masked_fill(x, tensor_lt(x, 1), 9)), 0, 9, 1, 2);
		assert_values(ok(tensor_clamp_min(x, 1)), 0, 1, 1, 2);
		assert_values(ok(tensor_lerp(x, tensor_mul(x, 3), 0.5)), 0, 0, 2, 4);
		assert_values(ok(tensor_isin(x, 2)), 0, 0, 0, 1);
	}
}

static void functions_can_be_pointed_to(void **state)
{
	tensor *(*add)(tensor *, tensor *) = tensor_add;
	tensor *(*fill)(tensor *, tensor_scalar) = &tensor_fill;

	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(1), F32));

		assert_values(ok(add(x, x)), 0, 2);
		assert_values(ok((tensor_add)(x, x)), 0, 2);
		assert_values(ok(fill(x, TENSOR_SCALAR(3))), 0, 3);
		assert_values(ok(tensor_add_scalar(x, TENSOR_SCALAR(3))), 0, 4);
		assert_values(ok(tensor_fill_tensor(x, tensor_sum(x))), 0, 1);
	}
}

static void arguments_are_evaluated_once(void **state)
{
	int n = 0;

	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(1), F32));

		assert_values(ok(tensor_add(x, ++n)), 0, 2);
		assert_values(ok(tensor_pow(++n, x)), 0, 2);
		assert_int_equal(n, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_every_type_call_the_scalar_function),
		cmocka_unit_test(numbers_keep_their_value),
		cmocka_unit_test(scalar_of_no_kind_is_refused),
		cmocka_unit_test(tensors_call_the_tensor_function),
		cmocka_unit_test(null_is_a_tensor_argument),
		cmocka_unit_test(number_may_be_the_first_or_second_operand),
		cmocka_unit_test(functions_can_be_pointed_to),
		cmocka_unit_test(arguments_are_evaluated_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
