// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Reductions of NaN, infinity, empty and 0-d tensors, dtype and out arguments, errors. */
#include "check.h"

#include <math.h>

static void max_is_nan_and_argmax_the_first_nan(void **state)
{
	for (int wide = 0; wide < 2; wide++)
		for (int64_t n = 3; n < 5000; n = n * 3 + 1)
			tensor_scope {
				tensor *t = ok(tensor_zeros(TENSOR_INTS(n, 2), wide ? F64 : F32));
				tensor *first = ok(tensor_select(t, 1, 0)), *values, *indices;
				tensor *rows = ok(tensor_clone(ok(tensor_t(t))));

				ok(tensor_fill_(ok(tensor_select(first, 0, n / 2)),
						TENSOR_SCALAR(NAN)));
				ok(tensor_fill_(ok(tensor_select(first, 0, n - 1)),
						TENSOR_SCALAR(NAN)));
				ok(tensor_fill_(ok(tensor_select(first, 0, 0)),
						TENSOR_SCALAR(INFINITY)));
				rows = ok(tensor_contiguous(ok(tensor_t(t))));
				for (int way = 0; way < 2; way++) {
					assert_done(tensor_max_dim(way ? rows : t, way, false,
								   &values, &indices));
					assert_values(values, 0, NAN, 0);
					assert_values(indices, 0, n / 2, 0);
				}
				assert_values(tensor_max(t), 0, NAN);
				assert_values(tensor_argmax(first, TENSOR_NONE, false), 0, n / 2);
				assert_values(tensor_sum(t), 0, NAN);
			}
}

static void max_of_minus_infinities_is_minus_infinity(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_full(TENSOR_INTS(3, 200), TENSOR_SCALAR(-INFINITY), F32));

		assert_values(tensor_max(t), 0, -INFINITY);
		assert_values(tensor_argmax(t, 1, false), 0, 0, 0, 0);
		assert_values(tensor_argmax(ok(tensor_t(t)), 0, false), 0, 0, 0, 0);
	}
}

static void empty_sum_is_zero_and_empty_mean_is_nan(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_empty(TENSOR_INTS(0, 3), F32));

		assert_values(tensor_sum(t), 0, 0);
		assert_values(tensor_mean(t), 0, NAN);
		assert_values(tensor_sum_dim(t, TENSOR_INTS(0), false), 0, 0, 0, 0);
		assert_values(tensor_mean_dim(t, TENSOR_INTS(0), true), 0, NAN, NAN, NAN);
		assert_shape(ok(tensor_sum_dim(t, TENSOR_INTS(1), false)), 0);
		assert_shape(ok(tensor_argmax(t, 1, true)), 0, 1);
	}
}

static void max_of_no_elements_is_an_error(void **state)
{
	tensor *values, *indices;

	tensor_scope {
		tensor *t = ok(tensor_empty(TENSOR_INTS(0, 3), F32));

		assert_fails(tensor_max(t), EINVAL, "max: there are no elements");
		assert_fails(tensor_argmax(t, TENSOR_NONE, false), EINVAL,
			     "argmax: there are no elements");
		assert_fails(tensor_argmax(t, 0, false), EINVAL, "[0, 3]");
		assert_fails(tensor_max_dim(t, 0, false, &values, &indices), EINVAL,
			     "max.dim: there are no elements");
		assert_null(values);
		assert_null(indices);
	}
}

static void zero_dim_tensors_reduce_to_themselves(void **state)
{
	tensor *values, *indices;

	tensor_scope {
		tensor *t = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(7.5), F32));

		assert_values(tensor_sum(t), 0, 7.5);
		assert_values(tensor_sum_dim(t, TENSOR_INTS(-1), false), 0, 7.5);
		assert_values(tensor_mean_dim(t, TENSOR_INTS(0), true), 0, 7.5);
		assert_values(tensor_max(t), 0, 7.5);
		assert_done(tensor_max_dim(t, 0, true, &values, &indices));
		assert_values(values, 0, 7.5);
		assert_values(indices, 0, 0);
		assert_int_equal(tensor_dim(indices), 0);
		assert_fails(tensor_sum_dim(t, TENSOR_INTS(1), false), ERANGE, "out of range");
	}
}

static void dtype_argument_is_the_dtype_of_the_sum(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_full(TENSOR_INTS(300), TENSOR_SCALAR(100),
					   TENSOR_OPTIONS(.dtype = TENSOR_U8)));
		tensor *b = ok(tensor_sum_opt(t, TENSOR_I16)), *f;

		assert_int_equal(tensor_dtype(b), TENSOR_I16);
		assert_values(b, 0, 30000);
		assert_values(tensor_sum_opt(t, TENSOR_U8), 0, 30000 % 256);
		assert_values(tensor_sum_opt(t, TENSOR_BOOL), 0, 1);
		f = ok(tensor_mean_opt(t, TENSOR_F32));
		assert_int_equal(tensor_dtype(f), TENSOR_F32);
		assert_values(f, 0, 100);
		f = ok(tensor_sum_dim_opt(
			ok(tensor_full(TENSOR_INTS(2, 5), TENSOR_SCALAR(0.1), F32)), TENSOR_INTS(1),
			false, TENSOR_F64));
		assert_int_equal(tensor_dtype(f), TENSOR_F64);
		assert_values(f, 1e-15, 5 * (double)0.1f, 5 * (double)0.1f);
		assert_fails(tensor_mean(t), EINVAL, "mean: a floating dtype is needed, got u8");
		assert_fails(tensor_mean_opt(t, TENSOR_I64), EINVAL, "got i64");
	}
}

static void invalid_dimensions_are_refused(void **state)
{
	tensor_scope {
		tensor *t = iota(0, TENSOR_INTS(2, 3));

		assert_fails(tensor_sum_dim(t, TENSOR_INTS(2), false), ERANGE, "-2 to 1, got 2");
		assert_fails(tensor_sum_dim(t, TENSOR_INTS(1, -1), false), EINVAL, "twice");
		assert_fails(tensor_mean_dim(t, TENSOR_INTS(-3), false), ERANGE, "got -3");
		assert_fails(tensor_argmax(t, 5, false), ERANGE, "argmax");
		assert_values(tensor_sum_dim(t, TENSOR_SCALAR_SHAPE, false), 0, 15);
		assert_shape(ok(tensor_sum_dim(t, TENSOR_NO_INTS, true)), 1, 1);
		assert_fails(tensor_max(ok(tensor_empty(TENSOR_INTS(2),
							TENSOR_OPTIONS(.dtype = TENSOR_C64)))),
			     EINVAL, "no order");
	}
}

static void out_forms_write_to_their_argument(void **state)
{
	tensor_scope {
		tensor *t = iota(0, TENSOR_INTS(2, 3)),
		       *out = ok(tensor_empty(TENSOR_INTS(7), F32));
		tensor *strided = ok(tensor_select(ok(tensor_zeros(TENSOR_INTS(3, 4), F64)), 1, 2));
		tensor *i = ok(tensor_empty(TENSOR_INTS(1), I64));

		assert_ptr_equal(tensor_sum_dim_out(out, t, TENSOR_INTS(1), false), out);
		assert_values(out, 0, 3, 12);
		ok(tensor_sum_dim_out(strided, t, TENSOR_INTS(0), false));
		assert_values(strided, 0, 3, 5, 7);
		ok(tensor_mean_dim_out(strided, t, TENSOR_INTS(0), false));
		assert_values(strided, 0, 1.5, 2.5, 3.5);
		assert_done(tensor_max_dim_out(out, i, t, 0, false));
		assert_values(out, 0, 3, 4, 5);
		assert_values(i, 0, 1, 1, 1);
		ok(tensor_argmax_out(i, t, 1, true));
		assert_shape(i, 2, 1);
		assert_fails(tensor_sum_dim_out(t, t, TENSOR_INTS(0), false), EINVAL, "input");
		assert_values(t, 0, 0, 1, 2, 3, 4, 5);
		assert_fails(tensor_max_dim_out(i, i, t, 0, false), EINVAL, "share memory");
		assert_fails(tensor_sum_dim_out(i, t, TENSOR_INTS(0), false), EINVAL, "i64");
	}
}

static void all_and_any_over_no_dimensions_test_each_element(void **state)
{
	tensor_scope {
		tensor *t = iota(0, TENSOR_INTS(3));

		assert_values(tensor_any_dims(t, TENSOR_SCALAR_SHAPE, false), 0, 0, 1, 1);
		assert_values(tensor_all_dims(t, TENSOR_SCALAR_SHAPE, true), 0, 0, 1, 1);
		assert_values(tensor_any_dims(t, TENSOR_NO_INTS, false), 0, 1);
		assert_values(tensor_all_dims(t, TENSOR_NO_INTS, false), 0, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(max_is_nan_and_argmax_the_first_nan),
		cmocka_unit_test(max_of_minus_infinities_is_minus_infinity),
		cmocka_unit_test(empty_sum_is_zero_and_empty_mean_is_nan),
		cmocka_unit_test(max_of_no_elements_is_an_error),
		cmocka_unit_test(zero_dim_tensors_reduce_to_themselves),
		cmocka_unit_test(dtype_argument_is_the_dtype_of_the_sum),
		cmocka_unit_test(invalid_dimensions_are_refused),
		cmocka_unit_test(out_forms_write_to_their_argument),
		cmocka_unit_test(all_and_any_over_no_dimensions_test_each_element),
	};

	return cmocka_run_group_tests_name("reduce_edges", tests, NULL, NULL);
}
