// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Embeddings and embedding bags against plain sums; their derivatives. */
#include "formulas.h"

static tensor *indices(tensor_ints shape, ...)
{
	int64_t v[16], n = 1;
	va_list list;

	for (int64_t i = 0; i < shape.len; i++)
		n *= shape.data[i];
	va_start(list, shape);
	for (int64_t i = 0; i < n; i++)
		v[i] = va_arg(list, int);
	va_end(list);
	return ok(tensor_from_data(v, shape, I64));
}

#define SIX indices(TENSOR_INTS(6), 2, 0, 2, 3, 1, 2)

/* mode over bags [2, 0], [], [2, 3, 1, 2] of rows 2i, 2i + 1 */
static tensor *bags(int64_t mode, tensor *weight, tensor *factors, int64_t padding, tensor **made)
{
	tensor *output, *other[3];

	assert_done(tensor_embedding_bag_parts(
		weight, SIX, indices(TENSOR_INTS(3), 0, 2, 2), false, mode, false, factors, false,
		padding, &output, made ? &made[0] : &other[0], made ? &made[1] : &other[1],
		made ? &made[2] : &other[2]));
	return output;
}

static void embedding_selects_rows(void **state)
{
	tensor_scope {
		tensor *w = iota(0, TENSOR_INTS(4, 2)), *i = indices(TENSOR_INTS(2, 2), 3, 0, 1, 3),
		       *r;

		r = ok(tensor_embedding(w, i, -1, false, false));
		assert_shape(r, 2, 2, 2);
		assert_values(r, 0, 6, 7, 0, 1, 2, 3, 6, 7);
		assert_values(tensor_embedding(w, tensor_to(i, TENSOR_OPTIONS(.dtype = TENSOR_I32)),
					       -1, false, false),
			      0, 6, 7, 0, 1, 2, 3, 6, 7);
		assert_shape(ok(tensor_embedding(w, tensor_select(tensor_select(i, 0, 0), 0, 0), -1,
						 false, false)),
			     2);
		assert_shape(ok(tensor_embedding(w, tensor_slice(i, 0, 0, 0, 1), -1, false, false)),
			     0, 2, 2);
	}
}

static void gradient_of_an_embedding_sums_repeated_rows(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16,
						    TENSOR_BF16 };

	for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
		tensor_scope {
			tensor *g = ok(tensor_to(iota(0, TENSOR_INTS(6, 2)),
						 TENSOR_OPTIONS(.dtype = dtypes[d])));

			assert_values(tensor_embedding_dense_backward(g, SIX, 4, -1, false), 0, 2,
				      3, 8, 9, 0 + 4 + 10, 1 + 5 + 11, 6, 7);
			assert_values(tensor_embedding_dense_backward(g, SIX, 4, 2, false), 0, 2, 3,
				      8, 9, 0, 0, 6, 7);
			assert_values(tensor_embedding_dense_backward(g, SIX, 4, -1, true), 6e-2, 2,
				      3, 8, 9, 14 / 3.0, 17 / 3.0, 6, 7);
		}
}

static void bags_are_sums_means_and_maxima(void **state)
{
	tensor_scope {
		tensor *w = iota(0, TENSOR_INTS(4, 2)), *made[3];

		assert_values(bags(0, w, tensor_none, -1, made), 0, 4, 6, 0, 0, 16, 20);
		assert_values(made[0], 0, 0, 0, 2, 2, 2, 2);
		assert_values(bags(0, w, iota(1, TENSOR_INTS(6)), -1, NULL), 0, 4, 7, 0, 0, 70, 88);
		assert_values(bags(1, w, tensor_none, -1, made), 0, 2, 3, 0, 0, 4, 5);
		assert_values(made[1], 0, 2, 0, 4);
		assert_values(bags(1, w, tensor_none, 2, NULL), 0, 0, 1, 0, 0, 4, 5);
		assert_values(bags(2, w, tensor_none, -1, made), 0, 4, 5, 0, 0, 6, 7);
		assert_values(made[2], 0, 2, 2, 0, 0, 3, 3);
		assert_values(bags(0, tensor_to(w, TENSOR_OPTIONS(.dtype = TENSOR_BF16)),
				   tensor_none, -1, NULL),
			      0, 4, 6, 0, 0, 16, 20);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *w = iota(0, TENSOR_INTS(2, 2)), *out, *x, *y, *z;
		tensor *good = indices(TENSOR_INTS(2), 0, 1), *bad = indices(TENSOR_INTS(2), 0, 2);

		assert_fails(tensor_embedding(w, bad, -1, false, false) == NULL, ERANGE,
			     "out of range");
		assert_fails(tensor_embedding(w, w, -1, false, false) == NULL, EINVAL,
			     "must be i32 or i64");
		assert_fails(tensor_embedding_dense_backward(w, bad, 2, -1, false) == NULL, ERANGE,
			     "index 2 is out of range for 2 rows");
		assert_fails(tensor_embedding_bag(w, good, indices(TENSOR_INTS(2), 0, 3), false, 0,
						  false, tensor_none, false, &out, &x, &y, &z) == 0,
			     EINVAL, "offsets must ascend");
		assert_fails(tensor_embedding_bag(w, good, good, false, 1, false,
						  iota(0, TENSOR_INTS(2)), false, &out, &x, &y,
						  &z) == 0,
			     EINVAL, "per_sample_weights are for sums");
	}
}

CASE(fn_embedding, tensor_embedding(a, indices(TENSOR_INTS(4), 1, 0, 2, 1), -1, false, false))
/* Rows of the padding get no gradient. */
CASE(fn_embedding_backward,
     tensor_embedding_dense_backward(a, indices(TENSOR_INTS(4), 1, 0, 2, 1), 3, 1, false))
CASE(fn_embedding_backward_first,
     tensor_embedding_dense_backward(a, indices(TENSOR_INTS(4), 1, 0, 2, 1), 3, 0, false))
CASE(fn_bag_sum, bags(0, a, b, -1, NULL))
CASE(fn_bag_mean, bags(1, a, tensor_none, 0, NULL))
CASE(fn_bag_max, bags(2, a, tensor_none, -1, NULL))

static const struct formula once[] = {
	ROW(bag_sum, 2, IN(1, 0, 4, 2), IN(1, 0, 6)),
	ROW(bag_mean, 1, IN_T(1, 0, 4, 2)),
	ROW(bag_max, 1, IN(1, 0, 4, 2)),
};
static const struct formula formulas[] = {
	ROW(embedding, 1, IN(1, 0, 3, 2)),
	ROW(embedding_backward, 1, IN(1, 0, 4, 2)),
	ROW(embedding_backward_first, 1, IN_T(1, 0, 4, 2)),
};

FORMULA_TESTS

static void formulas_of_bags_agree_with_differences(void **state)
{
	check_all(once, ARRAY_SIZE(once), gradcheck);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(embedding_selects_rows),
		cmocka_unit_test(gradient_of_an_embedding_sums_repeated_rows),
		cmocka_unit_test(bags_are_sums_means_and_maxima),
		cmocka_unit_test(invalid_arguments_are_refused),
		FORMULA_TEST_LIST,
		cmocka_unit_test(formulas_of_bags_agree_with_differences),
	};

	return cmocka_run_group_tests_name("embedding", tests, NULL, NULL);
}
