// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Views: the same memory with other sizes, strides and offsets; errors. */
#include "check.h"

#define assert_is_view_of(v, base) assert_true(tensor_shares_storage(ok(v), base))

static void views_share_memory_and_count_its_changes(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(3, 4)), *row = ok(tensor_select(a, 0, 1));
		uint32_t before = tensor_version(a);

		ok(tensor_fill_(ok(tensor_slice(row, 0, 1, 3, 1)), TENSOR_SCALAR(9)));
		assert_values(a, 0, 0, 1, 2, 3, 4, 9, 9, 7, 8, 9, 10, 11);
		assert_int_equal(tensor_version(a), before + 1);
		assert_int_equal(tensor_version(row), before + 1);
		assert_int_equal(tensor_version(ok(tensor_detach(a))), before + 1);
	}
}

static void select_slice_and_narrow_are_views(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(3, 4));

		assert_values(tensor_select(a, -1, -1), 0, 3, 7, 11);
		assert_int_equal(tensor_stride(ok(tensor_select(a, 1, 0)), 0), 4);
		assert_values(tensor_slice(a, 1, TENSOR_NONE, TENSOR_NONE, 3), 0, 0, 3, 4, 7, 8,
			      11);
		assert_values(tensor_slice(a, 0, -1, 100, 1), 0, 8, 9, 10, 11);
		assert_shape(ok(tensor_slice(a, 0, 2, 1, 1)), 0, 4);
		assert_shape(ok(tensor_slice(a, 0, 0, 3, INT64_MAX)), 1, 4);
		assert_values(tensor_narrow(a, 1, -2, 2), 0, 2, 3, 6, 7, 10, 11);
		assert_is_view_of(tensor_narrow(a, 0, 1, 2), a);
		assert_fails(!tensor_select(a, 0, 3), ERANGE, "index 3 is out of range");
		assert_fails(!tensor_select(a, 2, 0), ERANGE, "expected -2 to 1, got 2");
		assert_fails(!tensor_select(ok(tensor_select(ok(tensor_select(a, 0, 0)), 0, 0)), 0,
					    0),
			     ERANGE, "0-d");
		assert_fails(!tensor_slice(a, 0, 0, 3, 0), EINVAL, "step must be at least 1");
		assert_fails(!tensor_narrow(a, 0, 2, 2), EINVAL, "exceed");
		assert_fails(!tensor_narrow(a, 0, 0, INT64_MAX), EINVAL, "exceed");
	}
}

static void transpose_permute_and_t_reorder_dimensions(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3, 2));

		assert_shape(ok(tensor_permute(a, TENSOR_INTS(2, 0, -2))), 2, 2, 3);
		assert_values(tensor_permute(a, TENSOR_INTS(2, 0, 1)), 0, 0, 2, 4, 6, 8, 10, 1, 3,
			      5, 7, 9, 11);
		assert_values(tensor_transpose(tensor_select(a, 0, 0), 0, 1), 0, 0, 2, 4, 1, 3, 5);
		assert_values(tensor_t(tensor_select(a, 0, 0)), 0, 0, 2, 4, 1, 3, 5);
		assert_fails(!tensor_t(a), EINVAL, "at most 2");
		assert_fails(!tensor_permute(a, TENSOR_INTS(0, 1)), EINVAL, "3 dimensions");
		assert_fails(!tensor_permute(a, TENSOR_INTS(0, 1, -2)), EINVAL, "twice");
	}
}

static void expand_repeats_without_memory(void **state)
{
	tensor_scope {
		tensor *a = iota(1, TENSOR_INTS(2, 1)),
		       *e = ok(tensor_expand(a, TENSOR_INTS(2, -1, 3)));

		assert_shape(e, 2, 2, 3);
		assert_values(e, 0, 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2);
		assert_int_equal(tensor_stride(e, 0), 0);
		assert_is_view_of(e, a);
		assert_fails(!tensor_expand(a, TENSOR_INTS(3, 3)), EINVAL, "does not expand");
		assert_fails(!tensor_expand(a, TENSOR_INTS(2)), EINVAL, "does not expand");
		assert_fails(!tensor_expand(a, TENSOR_INTS(-1, 2, 3)), EINVAL, "does not expand");
		assert_fails(!tensor_fill_(e, TENSOR_SCALAR(0)), EINVAL, "share memory");
	}
}

static void view_shares_memory_and_reshape_may_copy(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3, 4)), *t = ok(tensor_transpose(a, 0, 1)), *r;

		assert_is_view_of(tensor_view(a, TENSOR_INTS(6, -1)), a);
		assert_shape(ok(tensor_view(a, TENSOR_INTS(-1))), 24);
		/* Dimensions that are contiguous with each other may be split and merged. */
		assert_shape(ok(tensor_view(t, TENSOR_INTS(3, 2, 2, 2))), 3, 2, 2, 2);
		assert_fails(!tensor_view(t, TENSOR_INTS(24)), EINVAL, "use reshape");
		r = ok(tensor_reshape(t, TENSOR_INTS(24)));
		assert_false(tensor_shares_storage(r, a));
		assert_values(tensor_slice(r, 0, 0, 8, 1), 0, 0, 1, 2, 3, 12, 13, 14, 15);
		assert_is_view_of(tensor_reshape(a, TENSOR_INTS(4, 6)), a);
		r = ok(tensor_contiguous(ok(tensor_t(ok(tensor_select(a, 0, 0))))));
		assert_true(tensor_is_contiguous(r));
		assert_values(r, 0, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
		assert_fails(!tensor_view(a, TENSOR_INTS(5, -1)), EINVAL, "does not fit");
		assert_fails(!tensor_view(a, TENSOR_INTS(-1, -1)), EINVAL, "does not fit");
		assert_shape(ok(tensor_view(ok(tensor_zeros(TENSOR_INTS(0, 3), F32)),
					    TENSOR_INTS(3, 0, 5))),
			     3, 0, 5);
		assert_fails(!tensor_view(ok(tensor_zeros(TENSOR_INTS(0, 3), F32)),
					  TENSOR_INTS(-1, 0)),
			     EINVAL, "does not fit");
	}
}

static void squeeze_and_unsqueeze_change_dimensions_of_size_one(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(1, 3, 1, 2));

		assert_shape(ok(tensor_squeeze(a)), 3, 2);
		assert_shape(ok(tensor_squeeze_dim(a, -2)), 1, 3, 2);
		assert_shape(ok(tensor_squeeze_dim(a, 1)), 1, 3, 1, 2);
		assert_shape(ok(tensor_unsqueeze(a, -1)), 1, 3, 1, 2, 1);
		assert_shape(ok(tensor_unsqueeze(a, 0)), 1, 1, 3, 1, 2);
		assert_int_equal(
			tensor_dim(ok(tensor_squeeze(ok(tensor_ones(TENSOR_INTS(1, 1), F32))))), 0);
		assert_fails(!tensor_unsqueeze(a, 5), ERANGE, "out of range");
	}
}

/* A view of the n elements of t is possible, and none of one more. */
static void assert_room(tensor *t, int64_t n)
{
	ok(tensor_as_strided(t, TENSOR_INTS(n), TENSOR_INTS(1), 0));
	assert_fails(!tensor_as_strided(t, TENSOR_INTS(n + 1), TENSOR_INTS(1), 0), EINVAL,
		     "storage of");
	assert_fails(!tensor_as_strided(t, TENSOR_INTS(1), TENSOR_INTS(1), n), EINVAL,
		     "storage of");
	assert_fails(!tensor_as_strided_scatter(t, ok(tensor_ones(TENSOR_INTS(1), F32)),
						TENSOR_INTS(1), TENSOR_INTS(1), n),
		     EINVAL, "storage of");
}

/* Allocations are rounded up; the rest may have values of other tensors. */
static void as_strided_has_no_element_behind_those_of_its_base(void **state)
{
	static const int64_t numbers[] = { 0, 1, 5, 1000, 300001 };

	tensor_scope
		for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
			int64_t n = numbers[i];
			tensor *t = ok(tensor_zeros(TENSOR_INTS(n), F32));

			assert_room(t, n);
			assert_room(ok(tensor_slice(t, 0, 0, n / 2, 1)), n);
			assert_room(
				ok(tensor_zeros(TENSOR_INTS(n), TENSOR_OPTIONS(.dtype = TENSOR_F32,
									       .shareable = true))),
				n);
			assert_done(tensor_share_memory(t));
			assert_room(t, n);
			assert_room(ok(tensor_resize_(ok(tensor_zeros(TENSOR_INTS(n), F32)),
						      TENSOR_INTS(n + 3))),
				    n + 3);
		}
}

static void as_strided_stays_inside_the_storage(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(64));

		assert_values(tensor_as_strided(a, TENSOR_INTS(2, 2), TENSOR_INTS(1, 3), 4), 0, 4,
			      7, 5, 8);
		assert_values(tensor_as_strided(a, TENSOR_INTS(3), TENSOR_INTS(-2), 10), 0, 10, 8,
			      6);
		assert_fails(!tensor_as_strided(a, TENSOR_INTS(65), TENSOR_INTS(1), 0), EINVAL,
			     "storage of 64");
		assert_fails(!tensor_as_strided(a, TENSOR_INTS(3), TENSOR_INTS(-2), 3), EINVAL,
			     "elements -1");
		assert_fails(!tensor_as_strided(a, TENSOR_INTS(1), TENSOR_INTS(1), -1), EINVAL,
			     "-1");
		assert_fails(!tensor_as_strided(a, TENSOR_INTS(3), TENSOR_INTS(INT64_MAX), 0),
			     EOVERFLOW, "overflow");
		assert_shape(ok(tensor_as_strided(a, TENSOR_INTS(0), TENSOR_INTS(99), 0)), 0);
		/* an empty view may have an offset past the end */
		assert_shape(ok(tensor_as_strided(a, TENSOR_INTS(0, 2), TENSOR_INTS(2, 1), 1000)),
			     0, 2);
		assert_fails(!tensor_as_strided(a, TENSOR_INTS(0), TENSOR_INTS(1), INT64_MAX),
			     EINVAL, "storage");
		assert_fails(!tensor_as_strided(a, TENSOR_INTS(0), TENSOR_INTS(1), -1), EINVAL,
			     "-1");
	}
}

static void diagonal_of_two_dimensions(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(3, 4));

		assert_values(tensor_diagonal(a, 0, 0, 1), 0, 0, 5, 10);
		assert_values(tensor_diagonal(a, 2, 0, 1), 0, 2, 7);
		assert_values(tensor_diagonal(a, -1, 0, 1), 0, 4, 9);
		assert_values(tensor_diagonal(a, 1, 1, 0), 0, 4, 9);
		assert_shape(ok(tensor_diagonal(a, 9, 0, 1)), 0);
		assert_fails(!tensor_diagonal(a, 0, 1, -1), EINVAL, "both 1");
		assert_fails(!tensor_diagonal(ok(tensor_select(a, 0, 0)), 0, 0, 1), EINVAL,
			     "at least 2");
	}
}

static void a_view_outlives_its_base(void **state)
{
	tensor *v = NULL;

	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 2));

		v = tensor_keep(ok(tensor_t(ok(tensor_alias(a)))));
	}
	assert_values(v, 0, 0, 2, 1, 3);
	tensor_release(v);
}

static void view_keeps_the_memory_of_a_resized_base(void **state)
{
	tensor_scope {
		tensor *out = iota(0, TENSOR_INTS(4)), *v = ok(tensor_slice(out, 0, 1, 3, 1));
		tensor *big = tensor_ones(TENSOR_INTS(100, 100), F32);

		ok(tensor_add_out(out, big, big));
		assert_shape(out, 100, 100);
		ok(tensor_zeros(TENSOR_INTS(4), F32));
		assert_values(v, 0, 1, 2);
	}
}

static void geometry_changes_in_place(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(1, 2, 3)), *same = ok(tensor_alias(x)), *sparse;

		assert_ptr_equal(tensor_transpose_(x, 1, -1), x);
		assert_shape(x, 1, 3, 2);
		assert_values(x, 0, 0, 3, 1, 4, 2, 5);
		assert_shape(same, 1, 2, 3);
		assert_false(tensor_is_contiguous(x));
		assert_ptr_equal(tensor_squeeze_dims_(x, TENSOR_INTS(0, 1)), x);
		assert_shape(x, 3, 2);
		assert_ptr_equal(tensor_swapdims_(x, 0, 1), x);
		assert_true(tensor_is_contiguous(x));
		assert_ptr_equal(tensor_unsqueeze_(x, 1), x);
		assert_ptr_equal(tensor_squeeze_(x), x);
		assert_ptr_equal(tensor_t_(x), x);
		assert_shape(x, 3, 2);
		assert_fails(tensor_transpose_(x, 0, 2), ERANGE, "range");
		assert_fails(tensor_unsqueeze_(x, 4), ERANGE, "range");
		assert_fails(tensor_t_(ok(tensor_empty(TENSOR_INTS(1, 1, 1), F32))), EINVAL,
			     "dimensions");
		assert_shape(x, 3, 2);
		sparse = ok(tensor_to_sparse(x));
		assert_fails(tensor_t_(sparse), EOPNOTSUPP, "t_");
		x = iota(0, TENSOR_INTS(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
		assert_fails(tensor_unsqueeze_(x, 0), EINVAL, "");
		assert_int_equal(tensor_dim(x), 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(views_share_memory_and_count_its_changes),
		cmocka_unit_test(select_slice_and_narrow_are_views),
		cmocka_unit_test(transpose_permute_and_t_reorder_dimensions),
		cmocka_unit_test(expand_repeats_without_memory),
		cmocka_unit_test(view_shares_memory_and_reshape_may_copy),
		cmocka_unit_test(squeeze_and_unsqueeze_change_dimensions_of_size_one),
		cmocka_unit_test(as_strided_has_no_element_behind_those_of_its_base),
		cmocka_unit_test(as_strided_stays_inside_the_storage),
		cmocka_unit_test(diagonal_of_two_dimensions),
		cmocka_unit_test(a_view_outlives_its_base),
		cmocka_unit_test(view_keeps_the_memory_of_a_resized_base),
		cmocka_unit_test(geometry_changes_in_place),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
