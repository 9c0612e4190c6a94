// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* cat: concatenation along a dimension. */
#include "check.h"

static void cat_joins_along_any_dimension(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3)), *b = iota(10, TENSOR_INTS(1, 3));
		tensor *c = iota(20, TENSOR_INTS(2, 1));

		assert_values(tensor_cat(TENSOR_LIST(a, b), 0), 0, 0, 1, 2, 3, 4, 5, 10, 11, 12);
		assert_values(tensor_cat(TENSOR_LIST(a, c, a), -1), 0, 0, 1, 2, 20, 0, 1, 2, 3, 4,
			      5, 21, 3, 4, 5);
		assert_shape(ok(tensor_cat(TENSOR_LIST(a, a, a), 1)), 2, 9);
		assert_values(tensor_cat(TENSOR_LIST(b), 0), 0, 10, 11, 12);
		a = iota(0, TENSOR_INTS(2, 2, 2));
		assert_values(tensor_cat(TENSOR_LIST(a, ok(tensor_neg(a))), 1), 0, 0, 1, 2, 3, -0.0,
			      -1, -2, -3, 4, 5, 6, 7, -4, -5, -6, -7);
	}
}

static void cat_takes_any_strides(void **state)
{
	tensor_scope {
		tensor *a = ok(tensor_t(iota(0, TENSOR_INTS(3, 2))));
		tensor *b = ok(tensor_as_strided(iota(0, TENSOR_INTS(4)), TENSOR_INTS(2, 2),
						 TENSOR_INTS(-2, -1), 3));
		tensor *c = ok(tensor_expand(iota(9, TENSOR_INTS(1)), TENSOR_INTS(2, 1)));
		tensor *out = ok(tensor_t(ok(tensor_zeros(TENSOR_INTS(6, 2), F32))));

		assert_values(tensor_cat(TENSOR_LIST(a, b, c), 1), 0, 0, 2, 4, 3, 2, 9, 1, 3, 5, 1,
			      0, 9);
		assert_values(tensor_cat_out(out, TENSOR_LIST(a, b, c), 1), 0, 0, 2, 4, 3, 2, 9, 1,
			      3, 5, 1, 0, 9);
	}
}

static void cat_promotes_dtypes(void **state)
{
	tensor_scope {
		tensor *f = iota(0, TENSOR_INTS(2)), *i = ok(tensor_to(f, I64));
		tensor *b = ok(tensor_ones(TENSOR_INTS(1), TENSOR_OPTIONS(.dtype = TENSOR_BOOL)));
		tensor *r = ok(tensor_cat(TENSOR_LIST(b, i, f), 0));

		assert_int_equal(tensor_dtype(r), TENSOR_F32);
		assert_values(r, 0, 1, 0, 1, 0, 1);
		assert_int_equal(tensor_dtype(ok(tensor_cat(TENSOR_LIST(b, i), 0))), TENSOR_I64);
		r = ok(tensor_cat_out(ok(tensor_empty(TENSOR_INTS(0), F64)), TENSOR_LIST(b, f), 0));
		assert_int_equal(tensor_dtype(r), TENSOR_F64);
		assert_values(r, 0, 1, 0, 1);
		assert_fails(tensor_cat_out(i, TENSOR_LIST(b, f), 0) == NULL, EINVAL,
			     "cannot be stored in i64");
	}
}

static void empty_vectors_are_skipped(void **state)
{
	tensor_scope {
		tensor *none = ok(tensor_empty(TENSOR_INTS(0), F32)),
		       *a = iota(0, TENSOR_INTS(2, 2));
		tensor *flat = ok(tensor_empty(TENSOR_INTS(2, 0), F32));

		assert_values(tensor_cat(TENSOR_LIST(none, a, none, a), 0), 0, 0, 1, 2, 3, 0, 1, 2,
			      3);
		assert_values(tensor_cat(TENSOR_LIST(none, flat, a), 1), 0, 0, 1, 2, 3);
		assert_shape(ok(tensor_cat(TENSOR_LIST(none, none), 0)), 0);
		assert_shape(ok(tensor_cat(TENSOR_LIST(flat, flat), 0)), 4, 0);
		assert_fails(tensor_cat(TENSOR_LIST(flat, a), 0) == NULL, EINVAL,
			     "cat: tensors 0 [2, 0] and 1 [2, 2] differ outside dimension 0");
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3)), *b = iota(0, TENSOR_INTS(2, 2));
		tensor *zero = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(1), I64));

		assert_fails(tensor_cat((tensor_list){ NULL, 0 }, 0) == NULL, EINVAL, "empty");
		assert_fails(tensor_cat(TENSOR_LIST(a, NULL), 0) == NULL, EINVAL, "NULL");
		assert_fails(tensor_cat(TENSOR_LIST(a, b), 0) == NULL, EINVAL, "differ outside");
		assert_fails(tensor_cat(TENSOR_LIST(a, iota(0, TENSOR_INTS(6))), 0) == NULL, EINVAL,
			     "differ outside");
		assert_fails(tensor_cat(TENSOR_LIST(a, b), 2) == NULL, ERANGE, "out of range");
		assert_fails(tensor_cat(TENSOR_LIST(zero, zero), 0) == NULL, EINVAL,
			     "no dimensions");
		assert_fails(tensor_cat_out(a, TENSOR_LIST(b, a), 1) == NULL, EINVAL,
			     "out shares memory with tensor 1");
		assert_shape(a, 2, 3);
	}
}

static void cat_copies_large_tensors(void **state)
{
	for (int dim = 0; dim < 2; dim++)
		tensor_scope {
			tensor *a = iota(0, TENSOR_INTS(300, 500)),
			       *b = iota(7, TENSOR_INTS(300, 500));
			tensor *r = ok(tensor_cat(TENSOR_LIST(a, b), dim));
			const float *p = tensor_data(r);

			for (int64_t i = 0; i < 300 * 500; i++) {
				int64_t at = dim ? i / 500 * 1000 + i % 500 : i;

				assert_true(p[at] == i && p[at + (dim ? 500 : 150000)] == i + 7);
			}
		}
}

static void cat_copies_pieces_of_every_width(void **state)
{
	enum { ROWS = 301, PIECES = 64 };

	for (int extra = 0; extra < 2; extra++)
		tensor_scope {
			tensor *t[PIECES + 1], *r;
			int64_t at = 0;

			/* With one more than PIECES, concatenation is done in several parts. */
			for (int i = 0; i < PIECES + extra; i++)
				t[i] = ok(tensor_randint(251, TENSOR_INTS(ROWS, i + 1),
							 TENSOR_OPTIONS(.dtype = TENSOR_U8)));
			r = ok(tensor_cat((tensor_list){ t, PIECES + extra }, 1));
			for (int i = 0; i < PIECES + extra; i++) {
				tensor *part =
					ok(tensor_contiguous(ok(tensor_narrow(r, 1, at, i + 1))));

				assert_memory_equal(tensor_data(part), tensor_data(t[i]),
						    ROWS * (i + 1));
				at += i + 1;
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cat_joins_along_any_dimension),
		cmocka_unit_test(cat_takes_any_strides),
		cmocka_unit_test(cat_promotes_dtypes),
		cmocka_unit_test(empty_vectors_are_skipped),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(cat_copies_large_tensors),
		cmocka_unit_test(cat_copies_pieces_of_every_width),
	};

	return cmocka_run_group_tests_name("cat", tests, NULL, NULL);
}
