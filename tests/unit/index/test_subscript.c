// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* x[...] in C: selection and assignment with tensor/index.h, the order of dimensions, errors. */
#include "check.h"

static tensor *longs(int64_t n, const int64_t *v)
{
	return ok(tensor_from_data(v, TENSOR_INTS(n), I64));
}
#define LONGS(...) longs(sizeof((int64_t[]){ __VA_ARGS__ }) / 8, (const int64_t[]){ __VA_ARGS__ })

static void numbers_slices_and_axes_are_views(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3, 4)), *t;

		t = ok(tensor_index(x, TENSOR_I(-1), TENSOR_ALL, TENSOR_SLICE(1, TENSOR_NONE, 2)));
		assert_shape(t, 3, 2);
		assert_values(t, 0, 13, 15, 17, 19, 21, 23);
		assert_true(tensor_shares_storage(t, x));
		t = ok(tensor_index(x, TENSOR_ELLIPSIS, TENSOR_NEWAXIS, TENSOR_I(0)));
		assert_shape(t, 2, 3, 1);
		assert_values(t, 0, 0, 4, 8, 12, 16, 20);
	}
}

/*
 * As in Python, an end before the start gives no elements; without an end the slice extends to the
 * first element.
 */
static void steps_below_zero_count_down(void **state)
{
	const int64_t low = INT64_MIN + 1, high = INT64_MAX;

	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 5)), *v = ok(tensor_select(x, 0, 0)), *t;

		t = ok(tensor_index(v, TENSOR_SLICE(TENSOR_NONE, TENSOR_NONE, -1)));
		assert_values(t, 0, 4, 3, 2, 1, 0);
		assert_true(tensor_shares_storage(t, x));
		assert_values(ok(tensor_index(t, TENSOR_SLICE(TENSOR_NONE, TENSOR_NONE, -2))), 0, 0,
			      2, 4);
		assert_values(ok(tensor_index(v, TENSOR_SLICE(3, 0, -2))), 0, 3, 1);
		assert_values(ok(tensor_index(v, TENSOR_SLICE(-2, -5, -1))), 0, 3, 2, 1);
		assert_values(ok(tensor_index(v, TENSOR_SLICE(high, low, -3))), 0, 4, 1);
		assert_values(ok(tensor_index(v, TENSOR_SLICE(TENSOR_NONE, TENSOR_NONE, low))), 0,
			      4);
		assert_shape(ok(tensor_index(v, TENSOR_SLICE(0, 3, -1))), 0);
		assert_shape(ok(tensor_index(v, TENSOR_SLICE(low, TENSOR_NONE, -1))), 0);
		assert_shape(ok(tensor_index(ok(tensor_empty(TENSOR_INTS(0), F32)),
					     TENSOR_SLICE(TENSOR_NONE, TENSOR_NONE, -1))),
			     0);
		t = ok(tensor_index(x, TENSOR_SLICE(TENSOR_NONE, TENSOR_NONE, -1),
				    TENSOR_SLICE(3, 1, -1)));
		assert_values(t, 0, 8, 7, 3, 2);
		ok(tensor_index_put(v, iota(10, TENSOR_INTS(3)),
				    TENSOR_SLICE(TENSOR_NONE, TENSOR_NONE, -2)));
		assert_values(v, 0, 12, 1, 11, 3, 10);
		assert_fails(tensor_index(v, TENSOR_SLICE(0, 1, 0)), EINVAL, "step");
	}
}

static void steps_below_zero_have_a_gradient(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(4)), *t;

		assert_done(tensor_set_requires_grad(x, true));
		t = ok(tensor_index(ok(tensor_mul(x, x)), TENSOR_SLICE(TENSOR_NONE, 0, -2)));
		assert_done(
			tensor_backward(ok(tensor_sum(tensor_mul(t, iota(1, TENSOR_INTS(2)))))));
		assert_values(tensor_grad(x), 0, 0, 2 * 2, 0, 6);
	}
}

/* The example of tensor/index.h. */
static void three_tensors_of_integers_select_elements(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(3, 4, 2)), *t;

		t = ok(tensor_index(x, TENSOR_AT(LONGS(1, 2)), TENSOR_AT(LONGS(3, 2)),
				    TENSOR_AT(LONGS(1, 0))));
		assert_values(t, 0, 8 + 6 + 1, 16 + 4 + 0);
	}
}

static void integer_tensors_broadcast_and_count_from_the_end(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(3, 4));
		tensor *rows = ok(tensor_view(LONGS(0, -1), TENSOR_INTS(2, 1))), *t;

		t = ok(tensor_index(x, TENSOR_AT(rows), TENSOR_AT(LONGS(1, -1, 1))));
		assert_shape(t, 2, 3);
		assert_values(t, 0, 1, 3, 1, 9, 11, 9);
	}
}

/*
 * Adjacent index tensors keep their position; otherwise their dimensions come first. A number is a
 * select() that is done before, and does not count as an index tensor between them.
 */
static void adjacent_index_tensors_keep_their_position(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3, 4, 5)), *i = LONGS(0, 1, 1, 0, 1, 0);

		assert_shape(ok(tensor_index(x, TENSOR_ALL, TENSOR_AT(i), TENSOR_AT(i))), 2, 6, 5);
		assert_shape(
			ok(tensor_index(x, TENSOR_ALL, TENSOR_AT(i), TENSOR_ALL, TENSOR_AT(i))), 6,
			2, 4);
		assert_shape(ok(tensor_index(x, TENSOR_I(0), TENSOR_ALL, TENSOR_AT(i))), 3, 6, 5);
		assert_shape(ok(tensor_index(x, TENSOR_AT(i), TENSOR_NEWAXIS, TENSOR_AT(i))), 6, 1,
			     4, 5);
	}
}

static void masks_equal_their_nonzero_indices(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3, 2)), *t;
		tensor *mask = ok(tensor_gt_scalar(ok(tensor_select(x, 2, 0)), TENSOR_SCALAR(3)));
		tensor *yes =
			ok(tensor_ones(TENSOR_SCALAR_SHAPE, TENSOR_OPTIONS(.dtype = TENSOR_BOOL)));

		t = ok(tensor_index(x, TENSOR_AT(mask)));
		assert_shape(t, 4, 2);
		assert_values(t, 0, 4, 5, 6, 7, 8, 9, 10, 11);
		t = ok(tensor_index(x, TENSOR_AT(mask), TENSOR_I(1)));
		assert_values(t, 0, 5, 7, 9, 11);
		assert_shape(ok(tensor_index(x, TENSOR_AT(yes))), 1, 2, 3, 2);
		assert_shape(ok(tensor_index(
				     x, TENSOR_AT(tensor_eq(
						yes, tensor_zeros_like(yes, TENSOR_OPTIONS(0)))))),
			     0, 2, 3, 2);
	}
}

/*
 * A mask with an empty dimension, whatever the size of the tensor's dimension. PyTorch refuses it.
 */
static void masks_without_elements_select_nothing(void **state)
{
	const tensor_options bools = TENSOR_OPTIONS(.dtype = TENSOR_BOOL);

	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3)),
		       *none = ok(tensor_empty(TENSOR_INTS(0), bools)), *t;

		t = ok(tensor_index(x, TENSOR_AT(none)));
		assert_shape(t, 0, 3);
		t = ok(tensor_index(x, TENSOR_I(0), TENSOR_AT(none)));
		assert_shape(t, 0);
		t = ok(tensor_index(x, TENSOR_AT(ok(tensor_empty(TENSOR_INTS(2, 0), bools)))));
		assert_shape(t, 0);
		ok(tensor_index_put(x, ok(tensor_select(x, 0, 0)), TENSOR_AT(none)));
		assert_values(x, 0, 0, 1, 2, 3, 4, 5);
		assert_fails(tensor_index(x, TENSOR_AT(ok(tensor_empty(TENSOR_INTS(0, 2), bools)))),
			     EINVAL, "mask");
		assert_fails(tensor_index(x,
					  TENSOR_AT(ok(tensor_empty(TENSOR_INTS(0, 3, 0), bools)))),
			     ERANGE, "indices");
	}
}

static void assignment_follows_the_same_rules(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_zeros(TENSOR_INTS(3, 4), F32)), *one,
		       *v = iota(1, TENSOR_INTS(1, 2));

		one = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(7), F64));
		assert_ptr_equal(ok(tensor_index_put(x, one, TENSOR_I(1))), x);
		assert_values(x, 0, 0, 0, 0, 0, 7, 7, 7, 7, 0, 0, 0, 0);
		ok(tensor_index_put(x, v, TENSOR_AT(LONGS(0, -1)), TENSOR_AT(LONGS(1, 2))));
		assert_values(x, 0, 0, 1, 0, 0, 7, 7, 7, 7, 0, 0, 2, 0);
		ok(tensor_index_put(x, one, TENSOR_AT(ok(tensor_eq_scalar(x, TENSOR_SCALAR(0))))));
		assert_values(x, 0, 7, 1, 7, 7, 7, 7, 7, 7, 7, 7, 2, 7);
	}
}

/* With duplicate indices the last value is stored, and sums contain all of them. */
static void duplicates_are_taken_in_order(void **state)
{
	for (int threads = 1; threads <= 4; threads += 3)
		tensor_scope {
			int64_t n = 200000;
			tensor *x = ok(tensor_zeros(TENSOR_INTS(7), F64));
			tensor *at = ok(tensor_empty(TENSOR_INTS(n), I64));
			tensor *v = iota(0, TENSOR_INTS(n)), *list[] = { at };
			int64_t *p = tensor_mutable_data(at);

			assert_done(tensor_set_num_threads(threads));
			v = ok(tensor_to(v, F64));
			for (int64_t i = 0; i < n; i++)
				p[i] = i % 7 - 7;
			ok(tensor_index_put_list_(x, (tensor_list){ list, 1 }, v, false));
			assert_values(x, 0, 199997, 199998, 199999, 199993, 199994, 199995, 199996);
			ok(tensor_index_put_list_(tensor_zero_(x), (tensor_list){ list, 1 }, v,
						  true));
			assert_values(tensor_sum(x), 0, 199999. * 100000);
		}
	assert_done(tensor_set_num_threads(2));
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3)), *f = iota(0, TENSOR_INTS(2));

		assert_fails(tensor_index(x, TENSOR_I(2)) == NULL, ERANGE, "out of range");
		assert_fails(tensor_index(x, TENSOR_AT(LONGS(0, 2))) == NULL, ERANGE,
			     "index 2 at position [1] is out of range for dimension 0 of size 2");
		assert_fails(tensor_index(x, TENSOR_ALL, TENSOR_AT(LONGS(-4))) == NULL, ERANGE,
			     "index -4");
		assert_fails(tensor_index(x, TENSOR_AT(f)) == NULL, EINVAL, "got f32");
		assert_fails(tensor_index(x, TENSOR_ALL, TENSOR_ALL, TENSOR_I(0)) == NULL, ERANGE,
			     "too many indices");
		assert_fails(tensor_index(x, TENSOR_ELLIPSIS, TENSOR_ELLIPSIS) == NULL, EINVAL,
			     "one ellipsis");
		assert_fails(tensor_index(x, TENSOR_AT(LONGS(0, 1)), TENSOR_AT(LONGS(0, 1, 1))) ==
				     NULL,
			     EINVAL, "do not broadcast");
		assert_fails(tensor_index(x, TENSOR_AT(tensor_ones(
						     TENSOR_INTS(3),
						     TENSOR_OPTIONS(.dtype = TENSOR_BOOL)))) ==
				     NULL,
			     EINVAL, "mask");
		assert_fails(tensor_index_put(x, f, TENSOR_AT(LONGS(0, 1)), TENSOR_ALL) == NULL,
			     EINVAL, "do not broadcast");
		assert_fails(tensor_index_put(x, LONGS(1), TENSOR_AT(LONGS(0, 1))) == NULL, EINVAL,
			     "one dtype");
		assert_fails(tensor_index_put(tensor_expand(f, TENSOR_INTS(2, 2)), f,
					      TENSOR_AT(LONGS(0, 1))) == NULL,
			     EINVAL, "share memory");
		assert_values(x, 0, 0, 1, 2, 3, 4, 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_slices_and_axes_are_views),
		cmocka_unit_test(steps_below_zero_count_down),
		cmocka_unit_test(steps_below_zero_have_a_gradient),
		cmocka_unit_test(three_tensors_of_integers_select_elements),
		cmocka_unit_test(integer_tensors_broadcast_and_count_from_the_end),
		cmocka_unit_test(adjacent_index_tensors_keep_their_position),
		cmocka_unit_test(masks_equal_their_nonzero_indices),
		cmocka_unit_test(masks_without_elements_select_nothing),
		cmocka_unit_test(assignment_follows_the_same_rules),
		cmocka_unit_test(duplicates_are_taken_in_order),
		cmocka_unit_test(invalid_arguments_are_refused),
	};

	return cmocka_run_group_tests_name("subscript", tests, NULL, NULL);
}
