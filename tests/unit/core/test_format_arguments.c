// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The memory format arguments of empty, *_like, clone, contiguous and to. */
#include "check.h"

#include <tensor/autograd.h>

static const int64_t sizes[] = { 2, 3, 4, 5, 6 };

#define SIZES(n) ((tensor_ints){ sizes, (n) })
#define LAST	 TENSOR_CHANNELS_LAST
#define LAST_3D	 TENSOR_CHANNELS_LAST_3D

static tensor *image(void)
{
	return ok(tensor_view(ok(tensor_arange(TENSOR_SCALAR(120), F32)), SIZES(4)));
}

static bool equal_values(tensor *a, tensor *b)
{
	bool differ;

	assert_done(tensor_is_nonzero(ok(tensor_any(ok(tensor_ne(a, b)))), &differ));
	return !differ;
}

static void factories_use_the_format(void **state)
{
	tensor_scope {
		const tensor_options last = TENSOR_OPTIONS(.memory_format = LAST);
		tensor *t = image(), *l;

		assert_strides(tensor_empty(SIZES(4), last), 60, 1, 15, 3);
		assert_strides(tensor_empty(SIZES(5), TENSOR_OPTIONS(.memory_format = LAST_3D)),
			       360, 1, 90, 18, 3);
		assert_strides(tensor_zeros(SIZES(4), last), 60, 1, 15, 3);
		l = ok(tensor_from_data(tensor_data(t), SIZES(4), last));
		assert_strides(l, 60, 1, 15, 3);
		assert_true(equal_values(l, t));
		assert_strides(tensor_ones_like(t, last), 60, 1, 15, 3);
		assert_strides(tensor_rand_like(t, last), 60, 1, 15, 3);
		assert_strides(tensor_zeros_like(l, TENSOR_OPTIONS(0)), 60, 1, 15, 3);
		assert_strides(tensor_zeros_like(l, TENSOR_OPTIONS(.memory_format =
									   TENSOR_PRESERVE_FORMAT)),
			       60, 1, 15, 3);
		assert_strides(tensor_zeros_like(l,
						 TENSOR_OPTIONS(.memory_format =
									TENSOR_CONTIGUOUS_FORMAT)),
			       60, 20, 5, 1);
	}
}

static void copies_have_the_format(void **state)
{
	tensor_scope {
		tensor *t = image(), *l = ok(tensor_contiguous_opt(t, LAST)), *half;

		assert_strides(l, 60, 1, 15, 3);
		assert_true(equal_values(l, t));
		assert_ptr_equal(tensor_data(ok(tensor_contiguous_opt(l, LAST))), tensor_data(l));
		assert_strides(tensor_contiguous(l), 60, 20, 5, 1);
		assert_strides(tensor_clone(l), 60, 1, 15, 3);
		assert_strides(tensor_clone_opt(t, LAST), 60, 1, 15, 3);
		assert_strides(tensor_clone_opt(l, TENSOR_CONTIGUOUS_FORMAT), 60, 20, 5, 1);
		assert_true(equal_values(ok(tensor_clone_opt(t, LAST)), t));
		half = ok(tensor_to(l, TENSOR_OPTIONS(.dtype = TENSOR_F16)));
		assert_strides(half, 60, 1, 15, 3);
		assert_strides(tensor_to(half,
					 TENSOR_OPTIONS(.dtype = TENSOR_F32,
							.memory_format = TENSOR_CONTIGUOUS_FORMAT)),
			       60, 20, 5, 1);
		assert_strides(tensor_to(t, TENSOR_OPTIONS(.memory_format = LAST)), 60, 1, 15, 3);
		assert_ptr_equal(
			tensor_data(ok(tensor_to(l, TENSOR_OPTIONS(.memory_format = LAST)))),
			tensor_data(l));
	}
}

static void is_contiguous_as_tests_the_format(void **state)
{
	tensor_scope {
		tensor *t = image(), *l = ok(tensor_contiguous_opt(t, LAST));
		tensor *both = ok(tensor_zeros(TENSOR_INTS(2, 1, 4, 5), F32));

		assert_true(tensor_is_contiguous_as(t, TENSOR_CONTIGUOUS_FORMAT));
		assert_false(tensor_is_contiguous_as(t, LAST));
		assert_true(tensor_is_contiguous_as(l, LAST));
		assert_false(tensor_is_contiguous_as(l, TENSOR_CONTIGUOUS_FORMAT));
		assert_false(tensor_is_contiguous_as(l, LAST_3D));
		assert_true(tensor_is_contiguous_as(both, LAST));
		assert_true(tensor_is_contiguous_as(both, TENSOR_CONTIGUOUS_FORMAT));
		assert_false(tensor_is_contiguous_as(tensor_none, LAST));
		assert_false(tensor_is_contiguous_as(t, (enum tensor_memory_format)99));
	}
}

static void invalid_formats_are_refused(void **state)
{
	tensor_scope {
		tensor *t = image(), *m = ok(tensor_zeros(SIZES(2), F32));
		tensor *s = ok(tensor_to_sparse(m));

		assert_fails(tensor_empty(SIZES(3), TENSOR_OPTIONS(.memory_format = LAST)), EINVAL,
			     "4 dimensions");
		assert_fails(tensor_empty(SIZES(4), TENSOR_OPTIONS(.memory_format = 77)), EINVAL,
			     "77");
		assert_fails(tensor_contiguous_opt(t, LAST_3D), EINVAL, "5 dimensions");
		assert_fails(tensor_contiguous_opt(t, TENSOR_PRESERVE_FORMAT), EINVAL,
			     "preserve is not supported");
		assert_fails(tensor_clone_opt(m, LAST), EINVAL, "4 dimensions");
		assert_fails(tensor_to(m, TENSOR_OPTIONS(.memory_format = LAST)), EINVAL,
			     "4 dimensions");
		assert_fails(tensor_clone_opt(s, LAST), EOPNOTSUPP, "memory format");
	}
}

static void gradients_pass_through(void **state)
{
	tensor_scope {
		tensor *t = image(), *l, *sum;

		tensor_set_requires_grad(t, true);
		l = ok(tensor_to(ok(tensor_clone_opt(ok(tensor_contiguous_opt(t, LAST)), LAST)),
				 TENSOR_OPTIONS(.dtype = TENSOR_F64,
						.memory_format = TENSOR_CONTIGUOUS_FORMAT)));
		sum = ok(tensor_sum(ok(tensor_mul(l, l))));
		assert_done(tensor_backward(sum));
		assert_true(equal_values(
			ok(tensor_grad(t)),
			ok(tensor_mul_scalar(ok(tensor_detach(t)), TENSOR_SCALAR(2)))));
		assert_strides(tensor_grad(t), 60, 20, 5, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(factories_use_the_format),
		cmocka_unit_test(copies_have_the_format),
		cmocka_unit_test(is_contiguous_as_tests_the_format),
		cmocka_unit_test(invalid_formats_are_refused),
		cmocka_unit_test(gradients_pass_through),
	};

	return cmocka_run_group_tests_name("format_arguments", tests, NULL, NULL);
}
