// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Derivatives of indexing operators against central differences. */
#include "formulas.h"

static tensor *index_of(int64_t n, int64_t limit)
{
	int64_t v[16];

	for (int64_t i = 0; i < n; i++)
		v[i] = (i * 5 + 2) % limit;
	return tensor_from_data(v, TENSOR_INTS(n), I64);
}

static tensor *matrix_of(int64_t rows, int64_t cols, int64_t limit)
{
	return tensor_view(index_of(rows * cols, limit), TENSOR_INTS(rows, cols));
}

/* Every index once. */
static tensor *unique_matrix(void)
{
	const int64_t v[] = { 2, 0, 1, 1, 0, 2 };

	return tensor_from_data(v, TENSOR_INTS(3, 2), I64);
}

static tensor *mask_of(int64_t rows, int64_t cols)
{
	return tensor_ne_scalar(matrix_of(rows, cols, 3), S(1));
}

/* x[i, :, j] with i [2] and j [3, 1], and x[mask]: assigns b or adds it. */
static tensor *index_put_rows(tensor *a, tensor *b, bool accumulate)
{
	tensor *list[] = { index_of(3, 2), tensor_none, index_of(3, 4) };

	return tensor_index_put_list(tensor_mul(a, a), (tensor_list){ list, 3 }, b, accumulate);
}

static tensor *index_put_slice(tensor *a, tensor *b)
{
	tensor *x = tensor_mul(a, a);

	return tensor_index_put(x, b, TENSOR_AT(index_of(2, 3)), TENSOR_SLICE(0, 2, 1)) ?
		       tensor_mul(x, x) :
		       NULL;
}

static tensor *scatter_reduce(tensor *a, tensor *b, const char *how, bool include_self)
{
	return tensor_scatter_reduce_opt(tensor_mul(a, a), 0, matrix_of(4, 2, 3), tensor_exp(b),
					 how, include_self);
}

static tensor *reduce_rows(tensor *a, tensor *b, const char *how, bool include_self)
{
	return tensor_index_reduce_opt(tensor_exp(a), 1, index_of(4, 3), tensor_exp(b), how,
				       include_self);
}

CASE(fn_index, tensor_exp(tensor_index(a, TENSOR_AT(index_of(3, 3)), TENSOR_AT(index_of(3, 2)))))
CASE(fn_index_apart, tensor_exp(tensor_index(a, TENSOR_AT(index_of(3, 2)), TENSOR_ALL,
					     TENSOR_AT(matrix_of(2, 3, 3)))))
CASE(fn_index_mask, tensor_exp(tensor_index(a, TENSOR_AT(mask_of(3, 2)))))
CASE(fn_index_put, tensor_exp(index_put_rows(a, b, false)))
CASE(fn_index_put_add, tensor_exp(index_put_rows(a, b, true)))
CASE(fn_index_put_in_place, index_put_slice(a, b))
CASE(fn_take, tensor_exp(tensor_take(a, matrix_of(2, 3, 6))))
CASE(fn_put, tensor_exp(tensor_put_elements(a, index_of(3, 6), b, false)))
CASE(fn_put_add, tensor_exp(tensor_put_elements(a, index_of(3, 6), b, true)))
CASE(fn_take_along_dim, tensor_exp(tensor_take_along_dim(a, matrix_of(4, 1, 3), 0)))
CASE(fn_masked_select, tensor_exp(tensor_masked_select(a, mask_of(3, 2))))
CASE(fn_masked_select_wide, tensor_exp(tensor_masked_select(a, mask_of(3, 2))))
CASE(fn_masked_scatter, tensor_exp(tensor_masked_scatter(a, mask_of(3, 2), b)))

CASE(fn_scatter, tensor_exp(tensor_scatter(a, 0, unique_matrix(), b)))
CASE(fn_scatter_value, tensor_exp(tensor_scatter_value(a, 0, unique_matrix(), S(2.0))))
CASE(fn_scatter_narrow, tensor_exp(tensor_scatter(a, 0, unique_matrix(), b)))
CASE(fn_scatter_sum, scatter_reduce(a, b, "sum", false))
CASE(fn_scatter_prod, scatter_reduce(a, b, "prod", true))
CASE(fn_scatter_prod_alone, scatter_reduce(a, b, "prod", false))
CASE(fn_scatter_mean, scatter_reduce(a, b, "mean", true))
CASE(fn_scatter_mean_alone, scatter_reduce(a, b, "mean", false))
CASE(fn_scatter_amax, scatter_reduce(a, b, "amax", true))
CASE(fn_scatter_amin, scatter_reduce(a, b, "amin", false))
CASE(fn_index_prod, reduce_rows(a, b, "prod", true))
CASE(fn_index_mean, reduce_rows(a, b, "mean", true))
CASE(fn_index_amax, reduce_rows(a, b, "amax", true))
CASE(fn_index_copy, tensor_exp(tensor_index_copy(a, 0, index_of(2, 3), b)))
CASE(fn_index_fill, tensor_exp(tensor_index_fill(a, 0, index_of(2, 3), S(0.5))))
CASE(fn_index_fill_tensor, tensor_exp(tensor_index_fill_tensor(a, 1, index_of(2, 2), b)))
CASE(fn_index_fill_last, tensor_exp(tensor_index_fill_tensor(a, -1, index_of(1, 3), b)))
CASE(fn_select_scatter, tensor_exp(tensor_select_scatter(a, b, 1, -1)))
CASE(fn_slice_scatter, tensor_exp(tensor_slice_scatter(a, b, 0, 0, TENSOR_NONE, 2)))
CASE(fn_slice_scatter_last, tensor_exp(tensor_slice_scatter(a, b, -1, 1, 5, 2)))
CASE(fn_slice_scatter_first, tensor_exp(tensor_slice_scatter(a, b, -2, 0, TENSOR_NONE, 2)))
CASE(fn_diagonal_scatter, tensor_exp(tensor_diagonal_scatter(a, b, -1, 0, 1)))
CASE(fn_as_strided_scatter,
     tensor_exp(tensor_as_strided_scatter(tensor_clone(a), b, TENSOR_INTS(2, 2), TENSOR_INTS(1, 3),
					  TENSOR_NONE)))

static const struct formula formulas[] = {
	ROW(index, 1, IN(1, 0, 3, 2)),
	ROW(index_apart, 1, IN_T(1, 0, 2, 4, 3)),
	ROW(index_mask, 1, IN(1, 0, 3, 2)),
	ROW(index_put, 2, IN(1, 0, 2, 3, 4), IN(1, 0, 1, 3)),
	ROW(index_put_add, 2, IN(1, 0, 2, 3, 4), IN_T(1, 0, 3, 3)),
	ROW(index_put_in_place, 2, IN(1, 0, 3, 3), IN(1, 0, 2)),
	ROW(take, 1, IN_T(1, 0, 3, 2)),
	ROW(put, 2, IN(1, 0, 3, 2), IN(1, 0, 3)),
	ROW(put_add, 2, IN(1, 0, 3, 2), IN(1, 0, 3)),
	ROW(take_along_dim, 1, IN(1, 0, 3, 2)),
	ROW(masked_select, 1, IN(1, 0, 3, 2)),
	ROW(masked_select_wide, 1, IN(1, 0, 2)),
	ROW(masked_scatter, 2, IN(1, 0, 3, 2), IN(1, 0, 8)),
	ROW(scatter, 2, IN(1, 0, 4, 2), IN(1, 0, 3, 2)),
	ROW(scatter_value, 1, IN(1, 0, 4, 2)),
	ROW(scatter_narrow, 2, IN(1, 0, 4, 3), IN(1, 0, 5, 4)),
	ROW(scatter_sum, 2, IN(1, 0, 3, 2), IN(1, 0, 4, 2)),
	ROW(scatter_prod, 2, IN(1, 2, 3, 2), IN(1, 0, 4, 2)),
	ROW(scatter_prod_alone, 2, IN(1, 2, 3, 2), IN(1, 0, 4, 2)),
	ROW(scatter_mean, 2, IN(1, 2, 3, 2), IN(1, 0, 4, 2)),
	ROW(scatter_mean_alone, 2, IN(1, 2, 3, 2), IN(1, 0, 4, 2)),
	ROW(scatter_amax, 2, IN(1, 0, 3, 2), IN(1, 0, 4, 2)),
	ROW(scatter_amin, 2, IN(1, 0, 3, 2), IN(1, 0, 4, 2)),
	ROW(index_prod, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 4)),
	ROW(index_mean, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 4)),
	ROW(index_amax, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 4)),
	ROW(index_copy, 2, IN(1, 0, 3, 2), IN(1, 0, 2, 2)),
	ROW(index_fill, 1, IN(1, 0, 3, 2)),
	ROW(index_fill_tensor, 2, IN(1, 0, 3, 2), { 0, { 0 }, 1, 0, false }),
	ROW(index_fill_last, 2, IN(1, 0, 2, 3), { 0, { 0 }, 1, 0, false }),
	ROW(select_scatter, 2, IN(1, 0, 3, 2), IN(1, 0, 3)),
	ROW(slice_scatter, 2, IN(1, 0, 3, 2), IN(1, 0, 2, 2)),
	ROW(slice_scatter_last, 2, IN(1, 0, 2, 5), IN(1, 0, 2, 2)),
	ROW(slice_scatter_first, 2, IN_T(1, 0, 3, 2), IN_T(1, 0, 2, 2)),
	ROW(diagonal_scatter, 2, IN_T(1, 0, 3, 2), IN(1, 0, 2)),
	ROW(as_strided_scatter, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 2)),
};

FORMULA_TESTS

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORMULA_TEST_LIST,
	};

	return cmocka_run_group_tests_name("autograd_index", tests, NULL, NULL);
}
