// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The data model: ownership, errors, dtypes, copying data in and out, printing. */
#include "check.h"

#include <pthread.h>

static void scope_releases_what_was_made_inside(void **state)
{
	tensor *kept = NULL;

	tensor_scope {
		tensor *a = ok(tensor_ones(TENSOR_INTS(2), F32));

		kept = tensor_keep(ok(tensor_add(a, a)));
		tensor_scope {
			ok(tensor_neg(kept));
		}
	}
	assert_values(kept, 0, 2, 2);
	tensor_release(kept);
}

static tensor *leaves_early(tensor *a)
{
	tensor_scope {
		tensor *b = tensor_add(a, a);

		return tensor_keep(tensor_mul(b, b));
	}
	return NULL;
}

static void leaving_a_scope_early_releases_too(void **state)
{
	tensor *a = ok(tensor_ones(TENSOR_INTS(2), F32)), *b = leaves_early(a);

	assert_values(b, 0, 4, 4);
	for (int i = 0; i < 3; i++) {
		tensor_scope {
			ok(tensor_neg(a));
			if (i == 1)
				break;
		}
	}
	tensor_release(a);
	tensor_release(b);
}

static void null_argument_returns_null_and_keeps_the_error(void **state)
{
	tensor_scope {
		tensor *a = ok(tensor_ones(TENSOR_INTS(2, 3), F32));
		tensor *b = ok(tensor_ones(TENSOR_INTS(2), F32));

		tensor_clear_error();
		assert_null(tensor_neg(tensor_exp(tensor_add(a, b))));
		assert_int_equal(tensor_last_error()->code, EINVAL);
		assert_contains(tensor_last_error()->text,
				"add.Tensor: shapes [2, 3] and [2] do not broadcast");
		tensor_clear_error();
		assert_null(tensor_neg(NULL));
		assert_contains(tensor_last_error()->text, "NULL");
	}
}

static void *another_thread(void *arg)
{
	tensor *t = tensor_add(arg, arg);

	assert_int_equal(tensor_last_error()->code, 0);
	return t; /* no scope is open here: the caller owns the result */
}

static void scope_and_error_belong_to_the_thread(void **state)
{
	tensor_scope {
		tensor *a = ok(tensor_ones(TENSOR_INTS(4), F32)), *b;
		pthread_t t;

		tensor_view(a, TENSOR_INTS(5));
		pthread_create(&t, NULL, another_thread, a);
		pthread_join(t, (void **)&b);
		assert_values(b, 0, 2, 2, 2, 2);
		assert_int_equal(tensor_last_error()->code, EINVAL);
		tensor_release(b);
	}
}

static void promotion_follows_categories(void **state)
{
	static const struct {
		enum tensor_dtype a, b, want;
	} rows[] = {
		{ TENSOR_BOOL, TENSOR_U8, TENSOR_U8 },	 { TENSOR_U8, TENSOR_I8, TENSOR_I16 },
		{ TENSOR_I64, TENSOR_F32, TENSOR_F32 },	 { TENSOR_I32, TENSOR_I64, TENSOR_I64 },
		{ TENSOR_F16, TENSOR_BF16, TENSOR_F32 }, { TENSOR_F32, TENSOR_F64, TENSOR_F64 },
		{ TENSOR_I64, TENSOR_F16, TENSOR_F16 },	 { TENSOR_F64, TENSOR_C64, TENSOR_C128 },
		{ TENSOR_F32, TENSOR_C64, TENSOR_C64 },	 { TENSOR_U8, TENSOR_I32, TENSOR_I32 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(tensor_promote_types(rows[i].a, rows[i].b), rows[i].want);
		assert_int_equal(tensor_promote_types(rows[i].b, rows[i].a), rows[i].want);
	}
}

static void zero_dim_tensors_and_scalars_have_lower_priority(void **state)
{
	tensor_scope {
		tensor *v = ok(tensor_ones(TENSOR_INTS(2), TENSOR_OPTIONS(.dtype = TENSOR_I32)));
		tensor *s = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(3), I64));
		tensor *d = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(2.5), F64));

		assert_int_equal(tensor_dtype(ok(tensor_add(v, s))), TENSOR_I32);
		assert_int_equal(tensor_dtype(ok(tensor_add(v, d))), TENSOR_F64);
		assert_int_equal(tensor_dtype(ok(tensor_mul_scalar(v, TENSOR_SCALAR(0.5)))),
				 TENSOR_F32);
		assert_int_equal(tensor_dtype(ok(tensor_div(v, v))), TENSOR_F32);
		assert_int_equal(tensor_dtype(ok(tensor_lt(v, d))), TENSOR_BOOL);
		assert_values(tensor_add(v, d), 0, 3.5, 3.5);
	}
}

static void data_is_copied_in_and_out(void **state)
{
	static const float in[] = { 1, 2, 3, 4, 5, 6 };
	float out[6];
	double v;
	int64_t n;

	tensor_scope {
		tensor *a = ok(tensor_from_data(in, TENSOR_INTS(2, 3), F32));

		assert_done(tensor_copy_to(ok(tensor_t(a)), out, sizeof(out)));
		assert_true(out[0] == 1 && out[1] == 4 && out[5] == 6);
		assert_done(tensor_copy_from(ok(tensor_t(a)), in, sizeof(in)));
		assert_values(a, 0, 1, 3, 5, 2, 4, 6);
		assert_done(tensor_at(a, TENSOR_INTS(-1, 2), &v));
		assert_true(v == 6);
		assert_done(
			tensor_item_int(ok(tensor_select(ok(tensor_select(a, 0, 0)), 0, 1)), &n));
		assert_int_equal(n, 3);
		assert_fails(tensor_at(a, TENSOR_INTS(2, 0), &v), ERANGE, "index 2");
		assert_fails(tensor_at(a, TENSOR_INTS(0), &v), EINVAL, "2 indices");
		assert_fails(tensor_item(a, &v), EINVAL, "[2, 3]");
		assert_fails(tensor_copy_to(a, out, 4), EINVAL, "24 bytes, got 4");
		assert_fails(!tensor_from_data(NULL, TENSOR_INTS(2), F32), EINVAL, "NULL");
	}
}

static void impossible_sizes_are_refused(void **state)
{
	int64_t many[17] = { 0 };

	tensor_scope {
		assert_fails(!tensor_empty(TENSOR_INTS(-1), F32), EINVAL, "negative");
		assert_fails(!tensor_empty(TENSOR_INTS(INT64_MAX, 2), F32), EOVERFLOW, "overflow");
		assert_fails(!tensor_empty(TENSOR_INTS(INT64_MAX / 2), F64), EOVERFLOW, "overflow");
		assert_fails(!tensor_empty(TENSOR_INTS(INT64_MAX / 16), F32), ENOMEM, "bytes");
		assert_fails(!tensor_empty((tensor_ints){ many, 17 }, F32), EINVAL, "at most 16");
		assert_fails(!tensor_empty(TENSOR_INTS(1), TENSOR_OPTIONS(.dtype = 99)), EINVAL,
			     "99 is no dtype");
		assert_fails(!tensor_empty_strided(TENSOR_INTS(2), TENSOR_INTS(1, 1), F32), EINVAL,
			     "1 sizes, but 2 strides");
		assert_fails(!tensor_arange_step(TENSOR_SCALAR(0), TENSOR_SCALAR(1),
						 TENSOR_SCALAR(0), F32),
			     EINVAL, "arange");
		/* An empty tensor is valid with any other sizes. */
		assert_int_equal(tensor_numel(ok(tensor_zeros(TENSOR_INTS(0, INT64_MAX), F32))), 0);
	}
}

static void factories_fill_tensors(void **state)
{
	tensor_scope {
		tensor *a = ok(tensor_arange_step(TENSOR_SCALAR(5), TENSOR_SCALAR(0),
						  TENSOR_SCALAR(-2), TENSOR_OPTIONS(0)));

		assert_int_equal(tensor_dtype(a), TENSOR_I64);
		assert_values(a, 0, 5, 3, 1);
		assert_values(tensor_arange_step(TENSOR_SCALAR(0.0), TENSOR_SCALAR(1),
						 TENSOR_SCALAR(0.25), F64),
			      0, 0, .25, .5, .75);
		assert_values(tensor_full_like(a, TENSOR_SCALAR(7), F32), 0, 7, 7, 7);
		assert_int_equal(tensor_dtype(ok(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR((bool)1),
							     TENSOR_OPTIONS(0)))),
				 TENSOR_BOOL);
		assert_values(tensor_zeros_like(a, TENSOR_OPTIONS(0)), 0, 0, 0, 0);
		assert_values(tensor_ones(TENSOR_SCALAR_SHAPE, F32), 0, 1);
	}
}

static void text_of(tensor *t, const char *want)
{
	char text[512];
	int n = tensor_format(ok(t), text, sizeof(text));

	assert_string_equal(text, want);
	assert_int_equal(n, strlen(want));
	/* The text is truncated to the size of the buffer. */
	assert_int_equal(tensor_format(t, text, 5), n);
	assert_int_equal(strlen(text), n < 4 ? n : 4);
}

static void printing_equals_pytorch(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3));

		text_of(a, "tensor([[0., 1., 2.],\n        [3., 4., 5.]])");
		text_of(tensor_div_scalar(a, TENSOR_SCALAR(4)),
			"tensor([[0.0000, 0.2500, 0.5000],\n        [0.7500, 1.0000, 1.2500]])");
		text_of(tensor_to(a, I64), "tensor([[0, 1, 2],\n        [3, 4, 5]])");
		text_of(tensor_to(tensor_select(a, 0, 1), F64), "tensor([3., 4., 5.], dtype=f64)");
		text_of(tensor_log(tensor_sub_scalar(tensor_select(a, 0, 0), TENSOR_SCALAR(1))),
			"tensor([ nan, -inf,   0.])");
		text_of(tensor_gt_scalar(tensor_select(a, 0, 0), TENSOR_SCALAR(1)),
			"tensor([False, False,  True])");
		text_of(tensor_zeros(TENSOR_INTS(0), F32), "tensor([])");
		text_of(tensor_zeros(TENSOR_INTS(2, 0), F32), "tensor([], size=[2, 0])");
		text_of(tensor_zeros(TENSOR_INTS(1001), F32),
			"tensor([0., 0., 0., ..., 0., 0., 0.])");
		text_of(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(2.5), F32),
			"tensor(2.5000)");
		text_of(tensor_full(TENSOR_INTS(2), TENSOR_SCALAR(1e300), F64),
			"tensor([1.0000e+300, 1.0000e+300], dtype=f64)");
		text_of(tensor_full(TENSOR_SCALAR_SHAPE, tensor_scalar_complex(-1e300, 1e300),
				    TENSOR_OPTIONS(.dtype = TENSOR_C128)),
			"tensor(-1.0000e+300+1.0000e+300j, dtype=c128)");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scope_releases_what_was_made_inside),
		cmocka_unit_test(leaving_a_scope_early_releases_too),
		cmocka_unit_test(null_argument_returns_null_and_keeps_the_error),
		cmocka_unit_test(scope_and_error_belong_to_the_thread),
		cmocka_unit_test(promotion_follows_categories),
		cmocka_unit_test(zero_dim_tensors_and_scalars_have_lower_priority),
		cmocka_unit_test(data_is_copied_in_and_out),
		cmocka_unit_test(impossible_sizes_are_refused),
		cmocka_unit_test(factories_fill_tensors),
		cmocka_unit_test(printing_equals_pytorch),
	};

	return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
