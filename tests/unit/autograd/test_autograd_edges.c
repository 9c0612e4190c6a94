// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Gradients where central differences have no answer: equal extrema, zeros, NaN, thresholds and
 * tensors without elements. The values are those of PyTorch.
 */
#include "autograd.h"

#define LEAF(...)                                \
	leaf(tensor_from_data(                   \
		(const double[]){ __VA_ARGS__ }, \
		TENSOR_INTS(sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double)), F64))

/* Gradients of the sum of `result`. */
static void sum_backward(tensor *result, tensor_list operands, tensor **grads)
{
	assert_done(tensor_backward_ex(TENSOR_LIST(ok(tensor_sum(ok(result)))), NULL, operands,
				       grads, 0));
}

static tensor *gradient(tensor *result, tensor *operand)
{
	tensor *grad;

	sum_backward(result, TENSOR_LIST(operand), &grad);
	return grad;
}

/* Gradient of the sum of the gradient of `result`. */
static tensor *second_gradient(tensor *result, tensor *operand)
{
	tensor *grad;

	assert_done(tensor_backward_ex(TENSOR_LIST(ok(tensor_sum(ok(result)))), NULL,
				       TENSOR_LIST(operand), &grad, TENSOR_CREATE_GRAPH));
	return gradient(grad, operand);
}

/* [[1, 3, 3], [1, 1, 3]] */
static tensor *equal_extrema(void)
{
	const double v[] = { 1, 3, 3, 1, 1, 3 };

	return leaf(tensor_from_data(v, TENSOR_SHAPE(2, 3), F64));
}

static tensor *minimum_and_thrice_maximum(tensor *t, int64_t dim)
{
	tensor *min, *max;

	assert_done(tensor_aminmax_opt(t, dim, false, &min, &max));
	return tensor_add(min, tensor_mul_scalar(max, S(3)));
}

static void equal_extrema_share_the_gradient(void **state)
{
	const double third = 1 / 3.0;

	tensor_scope {
		tensor *x = equal_extrema();

		assert_values(gradient(tensor_amax(x, TENSOR_INTS(1), false), x), 0, 0, 0.5, 0.5, 0,
			      0, 1);
		assert_values(gradient(tensor_amin(x, TENSOR_INTS(0, 1), false), x), 1e-15, third,
			      0, 0, third, third, 0);
		assert_values(gradient(minimum_and_thrice_maximum(x, TENSOR_NONE), x), 1e-15, third,
			      1, 1, third, third, 1);
		assert_values(gradient(minimum_and_thrice_maximum(x, 0), x), 0, 2, 3, 2, 2, 1, 2);
		assert_values(gradient(tensor_max(x), x), 1e-15, 0, third, third, 0, 0, third);
		assert_values(gradient(tensor_min(x), x), 1e-15, third, 0, 0, third, third, 0);
	}
}

static void equal_operands_share_the_gradient(void **state)
{
	tensor_scope {
		tensor *a = LEAF(1, 2, 1, NAN, 1, NAN), *b = LEAF(1, 1, 2, 1, NAN, NAN), *grad[2];

		sum_backward(tensor_maximum(a, b), TENSOR_LIST(a, b), grad);
		assert_values(grad[0], 0, 0.5, 1, 0, 1, 1, 1);
		assert_values(grad[1], 0, 0.5, 0, 1, 1, 1, 1);
		sum_backward(tensor_minimum(a, b), TENSOR_LIST(a, b), grad);
		assert_values(grad[0], 0, 0.5, 0, 1, 1, 1, 1);
		assert_values(grad[1], 0, 0.5, 1, 0, 1, 1, 1);
	}
}

/* Where both values are NaN, fmax and fmin return the first, so it gets the gradient. */
static void gradient_of_two_nan_goes_to_the_first(void **state)
{
	tensor_scope {
		tensor *a = LEAF(1, 2, 1, NAN, 1, NAN), *b = LEAF(1, 1, 2, 1, NAN, NAN), *grad[2];

		sum_backward(tensor_fmax(a, b), TENSOR_LIST(a, b), grad);
		assert_values(grad[0], 0, 0.5, 1, 0, 0, 1, 1);
		assert_values(grad[1], 0, 0.5, 0, 1, 1, 0, 0);
		sum_backward(tensor_fmin(a, b), TENSOR_LIST(a, b), grad);
		assert_values(grad[0], 0, 0.5, 0, 1, 0, 1, 1);
		assert_values(grad[1], 0, 0.5, 1, 0, 1, 0, 0);
	}
}

/* Gradient of the p-norms of the rows of x. */
static tensor *norm_gradient(tensor *x, double p)
{
	return gradient(tensor_linalg_vector_norm(x, S(p), TENSOR_INTS(1), false), x);
}

static void equal_elements_share_the_gradient_of_a_norm(void **state)
{
	const double v[] = { 1, -2, 2, -1, 1, 1 }, third = 1 / 3.0;

	tensor_scope {
		tensor *x = leaf(tensor_from_data(v, TENSOR_SHAPE(2, 3), F64));

		assert_values(norm_gradient(x, INFINITY), 1e-15, 0, -0.5, 0.5, -third, third,
			      third);
		assert_values(norm_gradient(x, -INFINITY), 1e-15, 1, 0, 0, -third, third, third);
	}
}

static void gradient_of_a_norm_at_zero_is_zero(void **state)
{
	const double v[] = { 0, -2, 2, 0, 0, 0 }, q = 0.7937005259840998, c = 0.6299605249474365;
	const double z[] = { 0, 0, 3, 4, 0, 0, 0, 0 };
	const double orders[] = { 0.5, 1, 2, 3, INFINITY };

	tensor_scope {
		tensor *x = leaf(tensor_from_data(v, TENSOR_SHAPE(2, 3), F64));

		assert_values(norm_gradient(x, 0.5), 1e-14, 0, -2, 2, 0, 0, 0);
		assert_values(norm_gradient(x, 1), 0, 0, -1, 1, 0, 0, 0);
		assert_values(norm_gradient(x, 1.5), 1e-14, 0, -q, q, 0, 0, 0);
		assert_values(norm_gradient(x, 3), 1e-14, 0, -c, c, 0, 0, 0);
		assert_values(norm_gradient(x, -1), 0, 0, 0, 0, 0, 0, 0);
		assert_values(norm_gradient(x, -2), 0, 0, 0, 0, 0, 0, 0);
		x = leaf(tensor_from_data(z, TENSOR_SHAPE(2, 2),
					  TENSOR_OPTIONS(.dtype = TENSOR_C128)));
		for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
			assert_values(tensor_view_as_real(norm_gradient(x, orders[i])), 1e-14, 0, 0,
				      0.6, 0.8, 0, 0, 0, 0);
	}
}

/* Gradient of the variance, or of its root, of [1, 2, 6] over `dim`. */
static tensor *variance_gradient(tensor_ints dim, tensor_scalar correction, bool root)
{
	tensor *x = LEAF(1, 2, 6);

	return gradient(root ? tensor_std_correction_opt(x, dim, correction, false) :
			       tensor_var_correction_opt(x, dim, correction, false),
			x);
}

static void gradient_of_a_variance_whose_correction_is_the_count(void **state)
{
	const tensor_ints all = TENSOR_NO_INTS, first = TENSOR_INTS(0);
	const double inf = INFINITY;

	tensor_scope {
		assert_values(variance_gradient(all, S(2), false), 1e-14, -4, -2, 6);
		assert_values(variance_gradient(all, S(3), false), 0, inf, inf, inf);
		assert_values(variance_gradient(all, S(4), false), 0, inf, inf, inf);
		assert_values(variance_gradient(all, S(4), true), 0, NAN, NAN, NAN);
		assert_values(variance_gradient(first, S(3), false), 0, -inf, -inf, inf);
		assert_values(variance_gradient(first, S(3), true), 0, NAN, NAN, NAN);
		assert_values(variance_gradient(first, S(4), false), 1e-14, 4, 2, -6);
		assert_values(variance_gradient(first, S(4), true), 0, 0, 0, 0);
	}
}

static void gradient_of_a_deviation_of_equal_elements_is_zero(void **state)
{
	const double v[] = { 1, 1, 1, 1, 2, 4 };

	tensor_scope {
		tensor *x = leaf(tensor_from_data(v, TENSOR_SHAPE(2, 3), F64));

		assert_values(gradient(tensor_std_dim(x, TENSOR_INTS(1), true, false), x), 1e-14, 0,
			      0, 0, -0.43643578047198484, -0.10910894511799625, 0.5455447255899809);
	}
}

static void gradient_of_a_power_at_zero(void **state)
{
	tensor_scope {
		tensor *a = LEAF(0, 2, 0, -1), *e = LEAF(0, 0, 2, 0), *grad[2];

		sum_backward(tensor_pow(a, e), TENSOR_LIST(a, e), grad);
		assert_values(grad[0], 0, 0, 0, 0, 0);
		assert_values(grad[1], 1e-15, 0, log(2), 0, NAN);
		assert_values(gradient(tensor_pow_scalar(a, S(0)), a), 0, 0, 0, 0, 0);
		assert_values(gradient(tensor_pow_scalar(a, S(0.0)), a), 0, 0, 0, 0, 0);
		assert_values(gradient(tensor_pow_scalar(a, S(5)), a), 0, 0, 80, 0, 5);
		e = LEAF(0, 2, -1);
		assert_values(gradient(tensor_scalar_pow(S(0.0), e), e), 0, 0, 0, -INFINITY);
	}
}

static void gradient_of_a_product_with_zeros(void **state)
{
	tensor_scope {
		tensor *two = LEAF(0, 0, 0, 3), *one = LEAF(2, 0, 4, 3);

		assert_values(gradient(tensor_prod(two), two), 0, 0, 0, 0, 0);
		assert_values(gradient(tensor_cumprod(two, 0), two), 0, 1, 0, 0, 0);
		assert_values(gradient(tensor_prod(one), one), 0, 0, 24, 0, 0);
		assert_values(gradient(tensor_cumprod(one, 0), one), 0, 1, 34, 0, 0);
	}
}

static void gradient_of_xlogy_and_atan2_at_the_origin(void **state)
{
	tensor_scope {
		tensor *a = LEAF(0, 0, 0, 1), *b = LEAF(0, 2, -1, 0), *grad[2];

		sum_backward(tensor_xlogy(a, b), TENSOR_LIST(a, b), grad);
		assert_values(grad[0], 1e-15, 0, log(2), 0, -INFINITY);
		assert_values(grad[1], 0, NAN, 0, 0, INFINITY);
		a = LEAF(0, 0, 1);
		b = LEAF(0, 2, 0);
		sum_backward(tensor_atan2(a, b), TENSOR_LIST(a, b), grad);
		assert_values(grad[0], 0, 0, 0.5, 0);
		assert_values(grad[1], 0, 0, 0, -1);
	}
}

static void gradient_of_clamp_with_limits_in_any_order(void **state)
{
	tensor_scope {
		tensor *a = LEAF(1, 2, 2.5, 2, 1, 3), *low = LEAF(3, 2, 2, 1, 1, 1),
		       *high = LEAF(1, 2, 2, 2, 2, 2), *grad[3];

		sum_backward(tensor_clamp_tensor(a, low, high), TENSOR_LIST(a, low, high), grad);
		assert_values(grad[0], 0, 0, 1, 0, 0.5, 0.5, 0);
		assert_values(grad[1], 0, 0, 0, 0, 0, 0.5, 0);
		assert_values(grad[2], 0, 1, 0, 1, 0.5, 0, 1);
	}
}

/* Above the threshold softplus is x. */
static void second_derivative_of_softplus_above_its_threshold_is_zero(void **state)
{
	const double slope = 0.19661193324148185;

	tensor_scope {
		tensor *x = LEAF(1.5, 1, -1, 9);

		assert_values(second_gradient(tensor_softplus(x, S(1), S(1.25)), x), 1e-15, 0,
			      slope, slope, 0);
	}
}

static void dropout_of_all_elements_has_gradient_zero(void **state)
{
	tensor_scope {
		tensor *x = LEAF(1, 2, 3), *y, *mask;

		assert_done(tensor_native_dropout(x, 1, true, &y, &mask));
		assert_values(gradient(y, x), 0, 0, 0, 0);
		assert_values(gradient(tensor_dropout(x, 1, true), x), 0, 0, 0, 0);
	}
}

/* Padding 0 is a row like any other; a negative index means no padding. */
static void second_derivative_of_an_embedding_skips_the_padding(void **state)
{
	const int64_t at[] = { 0, 1, 0 };

	tensor_scope {
		tensor *g = leaf(tensor_ones(TENSOR_SHAPE(3, 2), F64)),
		       *i = ok(tensor_from_data(at, TENSOR_INTS(3), I64));

		assert_values(gradient(tensor_embedding_dense_backward(g, i, 3, 0, false), g), 0, 0,
			      0, 1, 1, 0, 0);
		assert_values(gradient(tensor_embedding_dense_backward(g, i, 3, 1, false), g), 0, 1,
			      1, 0, 0, 1, 1);
		assert_values(gradient(tensor_embedding_dense_backward(g, i, 3, -1, false), g), 0,
			      1, 1, 1, 1, 1, 1);
	}
}

static void pooling_of_an_empty_batch_has_a_second_derivative(void **state)
{
	const tensor_ints two = TENSOR_INTS(2), none = TENSOR_INTS(0), one = TENSOR_INTS(1);

	tensor_scope {
		tensor *x = leaf(tensor_zeros(TENSOR_SHAPE(0, 2, 4, 4), F64)), *y, *at;
		tensor *g = leaf(tensor_zeros(TENSOR_SHAPE(0, 2, 2, 2), F64));

		assert_done(tensor_max_pool2d_with_indices(x, two, two, none, one, false, &y, &at));
		assert_shape(gradient(tensor_max_pool2d_with_indices_backward(g, x, two, two, none,
									      one, false, at),
				      g),
			     0, 2, 2, 2);
		assert_shape(second_gradient(tensor_mul(y, y), x), 0, 2, 4, 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_extrema_share_the_gradient),
		cmocka_unit_test(equal_operands_share_the_gradient),
		cmocka_unit_test(gradient_of_two_nan_goes_to_the_first),
		cmocka_unit_test(equal_elements_share_the_gradient_of_a_norm),
		cmocka_unit_test(gradient_of_a_norm_at_zero_is_zero),
		cmocka_unit_test(gradient_of_a_variance_whose_correction_is_the_count),
		cmocka_unit_test(gradient_of_a_deviation_of_equal_elements_is_zero),
		cmocka_unit_test(gradient_of_a_power_at_zero),
		cmocka_unit_test(gradient_of_a_product_with_zeros),
		cmocka_unit_test(gradient_of_xlogy_and_atan2_at_the_origin),
		cmocka_unit_test(gradient_of_clamp_with_limits_in_any_order),
		cmocka_unit_test(second_derivative_of_softplus_above_its_threshold_is_zero),
		cmocka_unit_test(dropout_of_all_elements_has_gradient_zero),
		cmocka_unit_test(second_derivative_of_an_embedding_skips_the_padding),
		cmocka_unit_test(pooling_of_an_empty_batch_has_a_second_derivative),
	};

	return cmocka_run_group_tests_name("autograd_edges", tests, NULL, NULL);
}
