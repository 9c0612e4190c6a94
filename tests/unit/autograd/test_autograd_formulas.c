// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * First and second derivatives of the formulas of lib/schema/derivatives against central
 * differences.
 */
#include "formulas.h"

static tensor *index_of(int64_t n, int64_t limit)
{
	int64_t v[16];

	for (int64_t i = 0; i < n; i++)
		v[i] = (i * 5 + 2) % limit;
	return tensor_from_data(v, TENSOR_INTS(n), I64);
}

static tensor *index_matrix(int64_t rows, int64_t cols, int64_t limit)
{
	return tensor_view(index_of(rows * cols, limit), TENSOR_INTS(rows, cols));
}

static tensor *max_values(tensor *a, int64_t dim, bool keepdim)
{
	tensor *values, *indices;

	return tensor_max_dim(a, dim, keepdim, &values, &indices) < 0 ? NULL : values;
}

static tensor *nll(tensor *a, int64_t reduction)
{
	const double w[] = { 0.5, 2, 1.5, 1 };

	return tensor_nll_loss_opt(a, index_of(3, 4), tensor_from_data(w, TENSOR_INTS(4), F64),
				   reduction, 2);
}

/* A result that is computed in place, on a buffer without history and on views of one. */
static tensor *into_buffer(tensor *a, tensor *b)
{
	tensor *buf = tensor_full(TENSOR_INTS(3, 2), S(0.5), F64);

	tensor_copy_(tensor_select(buf, 0, 0), a);
	tensor_mul_(tensor_select(buf, 0, 1), b);
	tensor_add_(tensor_select(buf, 1, 1), tensor_sum(a));
	return tensor_tanh_(buf);
}

/* In-place change of a view whose base has a history. */
static tensor *change_row(tensor *a, tensor *b)
{
	tensor *m = tensor_mul_scalar(a, S(2)), *row = tensor_select(m, 0, 1);

	tensor_mul_(row, b);
	tensor_sigmoid_(row);
	return tensor_mul(m, tensor_sum(row));
}

/* Softmax under the names of the core ATen set. */
CASE(fn_softmax_half, tensor_softmax_half(a, 1, false))
CASE(fn_log_softmax_half, tensor_log_softmax_half(a, 0, false))
CASE(fn_safe_softmax, tensor_safe_softmax(a, 1, TENSOR_DTYPE_NONE))
CASE(fn_softmax_backward_data, tensor_softmax_backward_data(a, b, 1, TENSOR_F64))
CASE(fn_log_softmax_backward_data, tensor_log_softmax_backward_data(a, b, 1, TENSOR_F64))
CASE(fn_select_backward, tensor_exp(tensor_select_backward(a, TENSOR_INTS(2, 4), 1, -1)))
CASE(fn_slice_backward, tensor_exp(tensor_slice_backward(a, TENSOR_INTS(2, 5), 1, 1, 5, 2)))

CASE(fn_add, tensor_add(a, b))
CASE(fn_add_alpha, tensor_add_opt(a, b, S(3)))
CASE(fn_add_scalar, tensor_add_scalar(a, S(2)))
CASE(fn_sub, tensor_sub(a, b))
CASE(fn_sub_alpha, tensor_sub_opt(a, b, S(0.5)))
CASE(fn_sub_scalar, tensor_sub_scalar(a, S(2)))
CASE(fn_mul, tensor_mul(a, b))
CASE(fn_mul_scalar, tensor_mul_scalar(a, S(-3)))
CASE(fn_square, tensor_mul(a, a))
CASE(fn_div, tensor_div(a, b))
CASE(fn_div_scalar, tensor_div_scalar(a, S(4)))
CASE(fn_neg, tensor_neg(a))
CASE(fn_exp, tensor_exp(a))
CASE(fn_log, tensor_log(a))
CASE(fn_tanh, tensor_tanh(a))
CASE(fn_sigmoid, tensor_sigmoid(a))
CASE(fn_relu, tensor_relu(a))
CASE(fn_tanh_backward, tensor_tanh_backward(a, b))
CASE(fn_sigmoid_backward, tensor_sigmoid_backward(a, b))
CASE(fn_relu_backward, tensor_relu_backward(a, b))
CASE(fn_where, tensor_where(tensor_gt_scalar(tensor_detach(a), S(0)), tensor_mul(a, b), b))

CASE(fn_clone, tensor_clone(a))
CASE(fn_to_copy, tensor_to_copy(tensor_mul(a, a), TENSOR_OPTIONS(0)))
CASE(fn_contiguous, tensor_contiguous(a))
CASE(fn_copy, tensor_copy_(tensor_mul(a, a), b))
CASE(fn_fill, tensor_fill_(tensor_select(tensor_mul(a, a), 0, 0), S(3)) ? tensor_mul(a, a) : NULL)
CASE(fn_add_in_place, tensor_add_(tensor_mul(a, a), b))
CASE(fn_mul_in_place, tensor_mul_(tensor_mul(a, a), b))
CASE(fn_div_in_place, tensor_div_(tensor_mul(a, a), b))
CASE(fn_exp_in_place, tensor_exp_(tensor_mul_scalar(a, S(2))))
CASE(fn_log_in_place, tensor_log_(tensor_mul_scalar(a, S(2))))
CASE(fn_buffer, into_buffer(a, b))
CASE(fn_row, change_row(a, b))

CASE(fn_alias, tensor_mul(tensor_alias(a), a))
CASE(fn_as_strided, tensor_as_strided(tensor_mul(a, a), TENSOR_INTS(2, 2), TENSOR_INTS(1, 3), 1))
CASE(fn_as_strided_windows,
     tensor_as_strided(tensor_mul(a, a), TENSOR_INTS(3, 2), TENSOR_INTS(1, 1), 0))
CASE(fn_select, tensor_mul(tensor_select(a, 1, -1), tensor_select(a, 1, 0)))
CASE(fn_slice, tensor_exp(tensor_slice(a, 1, TENSOR_NONE, TENSOR_NONE, 2)))
CASE(fn_narrow, tensor_exp(tensor_narrow(a, 0, 1, 1)))
CASE(fn_transpose, tensor_exp(tensor_transpose(a, 0, -1)))
CASE(fn_t, tensor_exp(tensor_t(a)))
CASE(fn_permute, tensor_exp(tensor_permute(a, TENSOR_INTS(2, 0, -2))))
CASE(fn_expand, tensor_exp(tensor_expand(a, TENSOR_INTS(4, 2, 3))))
CASE(fn_view, tensor_exp(tensor_view(a, TENSOR_INTS(3, -1))))
CASE(fn_reshape, tensor_exp(tensor_reshape(tensor_t(a), TENSOR_INTS(6))))
CASE(fn_squeeze, tensor_exp(tensor_squeeze(a)))
CASE(fn_squeeze_dim, tensor_exp(tensor_squeeze_dim(a, -1)))
CASE(fn_unsqueeze, tensor_exp(tensor_unsqueeze(a, -1)))
CASE(fn_diagonal, tensor_exp(tensor_diagonal(a, 1, 0, 1)))

CASE(fn_sum, tensor_exp(tensor_sum(a)))
CASE(fn_sum_dim, tensor_exp(tensor_sum_dim(a, TENSOR_INTS(-1), false)))
CASE(fn_sum_keep, tensor_mul(a, tensor_sum_dim(a, TENSOR_INTS(0, 2), true)))
CASE(fn_sum_all, tensor_exp(tensor_sum_dim(a, TENSOR_NO_INTS, false)))
CASE(fn_sum_dims, tensor_exp(tensor_sum_dim(a, TENSOR_INTS(0, 1, -1), false)))
CASE(fn_mean, tensor_exp(tensor_mean(a)))
CASE(fn_mean_dim, tensor_exp(tensor_mean_dim(a, TENSOR_INTS(1), false)))
CASE(fn_max, tensor_exp(tensor_max(a)))
CASE(fn_mean_dims, tensor_exp(tensor_mean_dim(a, TENSOR_INTS(0, -1), false)))
CASE(fn_max_dim, tensor_exp(max_values(a, 1, false)))
CASE(fn_max_keep, tensor_exp(max_values(a, 0, true)))
CASE(fn_mm, tensor_mm(a, b))
CASE(fn_addmm, tensor_addmm_opt(a, b, c, S(0.5), S(-2)))
CASE(fn_softmax, tensor_softmax(a, 1))
CASE(fn_log_softmax, tensor_log_softmax(a, 0))
CASE(fn_softmax_backward, tensor_softmax_backward(a, b, 1))
CASE(fn_log_softmax_backward, tensor_log_softmax_backward(a, b, 1))
CASE(fn_nll_none, tensor_exp(nll(a, 0)))
CASE(fn_nll_mean, nll(a, 1))
CASE(fn_nll_sum, nll(a, 2))
CASE(fn_cross_entropy, tensor_cross_entropy(a, index_of(3, 4)))
CASE(fn_index_select, tensor_exp(tensor_index_select(a, 0, index_of(5, 3))))
CASE(fn_index_add, tensor_exp(tensor_index_add_opt(a, 0, index_of(4, 3), b, S(2))))
CASE(fn_gather, tensor_exp(tensor_gather(a, 1, index_matrix(2, 5, 3))))
CASE(fn_scatter_add, tensor_exp(tensor_scatter_add(a, 1, index_matrix(2, 5, 3), b)))
CASE(fn_cat_four, tensor_exp(tensor_cat(TENSOR_LIST(a, b, c, d), -2)))
CASE(fn_cat_five, tensor_exp(tensor_cat(TENSOR_LIST(c, a, b, d, a), -1)))
CASE(fn_cat, tensor_exp(tensor_cat(TENSOR_LIST(a, b, a), -1)))

static const struct formula formulas[] = {
	ROW(add, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 3)),
	ROW(add, 2, IN(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(add_alpha, 2, IN(1, 0, 2, 1), IN_T(1, 0, 2, 3)),
	ROW(add_scalar, 1, IN_T(1, 0, 2, 3)),
	ROW(sub, 2, IN(1, 0, 1, 3), IN(1, 0, 2, 1)),
	ROW(sub_alpha, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 3)),
	ROW(sub_scalar, 1, IN(1, 0, 2, 3)),
	ROW(mul, 2, IN(1, 0, 2, 3), IN_T(1, 0, 2, 3)),
	ROW(mul, 2, IN(1, 0, 4, 1, 3), IN(1, 0, 2, 1)),
	ROW(mul_scalar, 1, IN(1, 0, 3)),
	ROW(square, 1, IN_T(1, 0, 2, 3)),
	ROW(div, 2, IN(1, 0, 2, 3), IN(0.5, 2, 3)),
	ROW(div_scalar, 1, IN(1, 0, 3)),
	ROW(neg, 1, IN(1, 0, 2, 3)),
	ROW(exp, 1, IN_T(1, 0, 2, 3)),
	ROW(log, 1, IN(0.5, 2, 2, 3)),
	ROW(tanh, 1, IN(1, 0, 2, 3)),
	ROW(sigmoid, 1, IN(1, 0, 2, 3)),
	ROW(relu, 1, IN(1, 0, 2, 3)),
	ROW(tanh_backward, 2, IN(1, 0, 2, 3), IN(0.9, 0, 2, 3)),
	ROW(sigmoid_backward, 2, IN(1, 0, 2, 3), IN(0.4, 0.5, 2, 3)),
	ROW(relu_backward, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 3)),
	ROW(where, 2, IN(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(clone, 1, IN_T(1, 0, 2, 3)),
	ROW(to_copy, 1, IN_T(1, 0, 2, 3)),
	ROW(contiguous, 1, IN_T(1, 0, 2, 3)),
	ROW(copy, 2, IN(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(fill, 1, IN(1, 0, 2, 3)),
	ROW(add_in_place, 2, IN(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(mul_in_place, 2, IN(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(div_in_place, 2, IN(1, 0, 2, 3), IN(0.5, 2, 3)),
	ROW(exp_in_place, 1, IN(1, 0, 2, 3)),
	ROW(log_in_place, 1, IN(0.5, 2, 2, 3)),
	ROW(buffer, 2, IN(1, 0, 2), IN(1, 0, 3)),
	ROW(row, 2, IN(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(alias, 1, IN(1, 0, 2, 3)),
	ROW(as_strided, 1, IN(1, 0, 2, 3)),
	ROW(as_strided_windows, 1, IN(1, 0, 4)),
	ROW(select, 1, IN_T(1, 0, 2, 3)),
	ROW(slice, 1, IN(1, 0, 2, 5)),
	ROW(narrow, 1, IN(1, 0, 2, 3)),
	ROW(transpose, 1, IN(1, 0, 2, 3, 2)),
	ROW(t, 1, IN(1, 0, 2, 3)),
	ROW(permute, 1, IN(1, 0, 2, 3, 2)),
	ROW(expand, 1, IN(1, 0, 2, 1)),
	ROW(view, 1, IN(1, 0, 2, 3)),
	ROW(reshape, 1, IN(1, 0, 2, 3)),
	ROW(squeeze, 1, IN(1, 0, 2, 1, 3, 1)),
	ROW(squeeze_dim, 1, IN(1, 0, 2, 1, 3, 1)),
	ROW(unsqueeze, 1, IN(1, 0, 2, 3)),
	ROW(diagonal, 1, IN(1, 0, 3, 4, 2)),
	ROW(sum, 1, IN(0.3, 0, 2, 3)),
	ROW(sum_dim, 1, IN_T(1, 0, 2, 3)),
	ROW(sum_keep, 1, IN(1, 0, 2, 3, 2)),
	ROW(sum_dims, 1, IN(0.3, 0, 2, 3, 2)),
	ROW(sum_all, 1, IN(0.3, 0, 2, 3)),
	ROW(mean, 1, IN(1, 0, 2, 3)),
	ROW(mean_dim, 1, IN(1, 0, 2, 3)),
	ROW(mean_dims, 1, IN(1, 0, 2, 3, 2)),
	ROW(max, 1, IN(1, 0, 2, 3)),
	ROW(max_dim, 1, IN(1, 0, 2, 3)),
	ROW(max_keep, 1, IN_T(1, 0, 2, 3)),
	ROW(mm, 2, IN(1, 0, 2, 3), IN_T(1, 0, 3, 4)),
	ROW(addmm, 3, IN(1, 0, 4), IN(1, 0, 2, 3), IN(1, 0, 3, 4)),
	ROW(softmax, 1, IN(1, 0, 2, 3)),
	ROW(log_softmax, 1, IN_T(1, 0, 2, 3)),
	ROW(softmax_backward, 2, IN(1, 0, 2, 3), IN(0.3, 0.5, 2, 3)),
	ROW(log_softmax_backward, 2, IN(1, 0, 2, 3), IN(0.5, -1, 2, 3)),
	ROW(softmax_half, 1, IN_T(1, 0, 2, 3)),
	ROW(log_softmax_half, 1, IN(1, 0, 2, 3)),
	ROW(safe_softmax, 1, IN(1, 0, 2, 3)),
	ROW(softmax_backward_data, 2, IN(1, 0, 2, 3), IN(0.3, 0.5, 2, 3)),
	ROW(log_softmax_backward_data, 2, IN(1, 0, 2, 3), IN_T(0.5, -1, 2, 3)),
	ROW(select_backward, 1, IN(1, 0, 2)),
	ROW(slice_backward, 1, IN_T(1, 0, 2, 2)),
	ROW(nll_none, 1, IN(1, 0, 3, 4)),
	ROW(nll_mean, 1, IN(1, 0, 3, 4)),
	ROW(nll_sum, 1, IN(1, 0, 3, 4)),
	ROW(cross_entropy, 1, IN(1, 0, 3, 4)),
	ROW(index_select, 1, IN(1, 0, 3, 2)),
	ROW(index_add, 2, IN(1, 0, 3, 2), IN(1, 0, 4, 2)),
	ROW(gather, 1, IN(1, 0, 2, 3)),
	ROW(scatter_add, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 5)),
	ROW(cat_four, 4, IN(1, 0, 1, 2), IN(1, 0, 2, 2), IN_T(1, 0, 3, 2), IN(1, 0, 1, 2)),
	ROW(cat_five, 4, IN(1, 0, 2, 1), IN(1, 0, 2, 2), IN_T(1, 0, 2, 3), IN(1, 0, 2, 1)),
	ROW(cat, 2, IN(1, 0, 2, 3), IN_T(1, 0, 2, 2)),
};

FORMULA_TESTS

static tensor *wrong(tensor *const *in, void *ctx)
{
	/* the detached factor is treated as a constant */
	return tensor_mul(in[0], tensor_detach(in[0]));
}

static void gradcheck_finds_a_wrong_gradient(void **state)
{
	tensor_scope {
		tensor *w = ok(tensor_ones(TENSOR_INTS(2), F64));
		tensor *f = ok(tensor_ones(TENSOR_INTS(2), F32));

		assert_fails(tensor_gradcheck(wrong, NULL, TENSOR_LIST(w), EPS, 1e-7, 1e-6), EINVAL,
			     "no input");
		assert_done(tensor_set_requires_grad(w, true));
		assert_done(tensor_set_requires_grad(f, true));
		assert_fails(tensor_gradcheck(wrong, NULL, TENSOR_LIST(w), EPS, 1e-7, 1e-6), EDOM,
			     "input 0, element 0");
		assert_fails(tensor_gradcheck(wrong, NULL, TENSOR_LIST(f), EPS, 1e-7, 1e-6), EINVAL,
			     "f64");
	}
}

/* Otherwise the leaf would copy the gradient in every step. */
static void gradient_of_a_transposed_matrix_is_transposed(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_full(TENSOR_INTS(4, 3), TENSOR_SCALAR(2.0), F64));
		tensor *w = ok(tensor_ones(TENSOR_INTS(5, 3), F64)), *wt, *grad;

		assert_done(tensor_set_requires_grad(w, true));
		wt = ok(tensor_t(w));
		assert_done(tensor_backward_ex(TENSOR_LIST(ok(tensor_sum(tensor_mm(x, wt)))), NULL,
					       TENSOR_LIST(wt), &grad, 0));
		assert_values(tensor_sum_dim(grad, TENSOR_INTS(1), false), 0, 40, 40, 40);
		assert_true(tensor_is_contiguous(tensor_t(grad)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORMULA_TEST_LIST,
		cmocka_unit_test(gradcheck_finds_a_wrong_gradient),
		cmocka_unit_test(gradient_of_a_transposed_matrix_is_transposed),
	};

	return cmocka_run_group_tests_name("autograd_formulas", tests, NULL, NULL);
}
