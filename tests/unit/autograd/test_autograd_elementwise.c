// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* First and second derivatives of elementwise operators against central differences. */
#include "formulas.h"

#define U(name)	     CASE(fn_##name, tensor_##name(a))
#define B(name)	     CASE(fn_##name, tensor_##name(a, b))
#define ONE	     S(1)
#define NONE	     ((tensor_scalar){ .kind = TENSOR_SCALAR_NONE })
#define IN_PLACE(id) CASE(fn_##id##_in_place, tensor_##id##_(tensor_mul(a, a)))

U(acos)
U(acosh)
U(asin)
U(asinh)
U(atan)
U(atanh)
U(cos)
U(cosh)
U(digamma)
U(erf)
U(erfc)
U(erfinv)
U(exp2)
U(expm1)
U(lgamma)
U(log10)
U(log1p)
U(log2)
U(reciprocal)
U(rsqrt)
U(sin)
U(sinh)
U(sqrt)
U(tan)
U(abs)
U(square)
U(frac)
U(silu)
U(mish)
U(hardsigmoid)
U(hardswish)
U(gelu)
U(relu6)
U(log_sigmoid)
U(selu)
U(conj_physical)
IN_PLACE(sin)
IN_PLACE(sqrt)
IN_PLACE(silu)
IN_PLACE(gelu)
B(maximum)
B(minimum)
B(fmax)
B(fmin)
B(hypot)
B(atan2)
B(pow)
B(true_divide)
B(rsub)
B(silu_backward)
B(mish_backward)
B(hardswish_backward)
B(gelu_backward)
B(clamp_min_tensor)
B(clamp_max_tensor)
B(logaddexp)
B(logaddexp2)
B(xlogy)
B(prelu)
B(fmod)
B(remainder)
B(copysign)

/* Exponents of 0, above 4 and below 0. */
static tensor *exponents(void)
{
	double v[] = { 0, 5, -1 };

	return tensor_from_data(v, TENSOR_INTS(3), F64);
}

CASE(fn_number_xlogy, tensor_xlogy_scalar_self(S(2), a))
CASE(fn_xlogy_number, tensor_xlogy_scalar_other(a, S(2)))
CASE(fn_flat,
     tensor_mul(a, tensor_add(tensor_floor(a), tensor_add(tensor_sign(a), tensor_round(a)))))
CASE(fn_polygamma, tensor_polygamma(1, a))
CASE(fn_round_decimals, tensor_mul(a, tensor_round_decimals(a, 0)))
CASE(fn_nan_to_num, tensor_square(tensor_nan_to_num(a, 0, 1, 2)))
CASE(fn_gelu_tanh, tensor_gelu_opt(a, "tanh"))
CASE(fn_gelu_tanh_backward, tensor_gelu_backward_opt(a, b, "tanh"))
CASE(fn_elu, tensor_elu(a, S(1.5), S(0.7), S(0.9)))
CASE(fn_elu_in_place, tensor_elu_(tensor_mul(a, b), S(1.5), S(0.7), S(0.9)))
CASE(fn_elu_backward, tensor_elu_backward(a, S(1.5), S(0.7), S(0.9), false, b))
CASE(fn_elu_result_backward, tensor_elu_backward(a, S(1.5), S(0.7), S(0.9), true, b))
CASE(fn_celu, tensor_celu(a, S(0.7)))
CASE(fn_hardtanh, tensor_hardtanh(a, S(-0.5), S(0.6)))
CASE(fn_leaky_relu, tensor_leaky_relu(a, S(0.1)))
CASE(fn_softplus, tensor_softplus(a, S(1.5), S(20)))
CASE(fn_softplus_threshold, tensor_softplus(a, S(1.5), S(0.5)))
CASE(fn_softplus_threshold_backward, tensor_softplus_backward(a, b, S(1.5), S(0.5)))
CASE(fn_softplus_backward, tensor_softplus_backward(a, b, S(1.5), S(20)))
CASE(fn_log_sigmoid_backward,
     tensor_log_sigmoid_backward(a, b, tensor_exp(tensor_neg(tensor_abs(tensor_detach(b))))))
CASE(fn_threshold, tensor_threshold(a, S(0.1), S(2)))
CASE(fn_hardshrink, tensor_hardshrink(a, S(0.3)))
CASE(fn_softshrink, tensor_softshrink(a, S(0.3)))
CASE(fn_copysign_number, tensor_copysign_scalar(a, S(-1)))
CASE(fn_fmod_number, tensor_fmod_scalar(a, S(0.4)))
CASE(fn_remainder_number, tensor_remainder_scalar(a, S(0.4)))
CASE(fn_number_remainder, tensor_remainder_scalar_tensor(S(2.5), a))
CASE(fn_rsub_number, tensor_rsub_scalar(a, S(3), S(2)))
CASE(fn_div_exact, tensor_div_mode(a, b, NULL))
CASE(fn_div_floor, tensor_mul(a, tensor_div_mode(a, b, "floor")))
CASE(fn_div_trunc, tensor_mul(a, tensor_div_mode(a, b, "trunc")))
CASE(fn_div_number_trunc, tensor_mul(a, tensor_div_scalar_mode(a, S(0.7), "trunc")))
CASE(fn_div_number, tensor_div_scalar_mode(a, S(0.7), NULL))
CASE(fn_div_number_floor, tensor_mul(a, tensor_div_scalar_mode(a, S(0.7), "floor")))
CASE(fn_true_divide_number, tensor_true_divide_scalar(a, S(-0.7)))
CASE(fn_floor_divide, tensor_mul(b, tensor_floor_divide(a, b)))
CASE(fn_pow_number, tensor_pow_scalar(a, S(2.5)))
CASE(fn_pow_square, tensor_pow_scalar(a, S(2)))
CASE(fn_pow_zero, tensor_mul(a, tensor_pow_scalar(a, S(0))))
CASE(fn_pow_zero_float, tensor_mul(a, tensor_pow_scalar(a, S(0.0))))
CASE(fn_pow_five, tensor_pow_scalar(a, S(5)))
CASE(fn_pow_minus_three, tensor_pow_scalar(a, S(-3)))
CASE(fn_pow_mixed, tensor_pow(a, tensor_mul(b, exponents())))
CASE(fn_number_pow, tensor_scalar_pow(S(1.7), a))
CASE(fn_pow_in_place, tensor_pow_scalar_(tensor_mul(a, b), S(3)))
CASE(fn_clamp, tensor_clamp(a, S(-0.5), S(0.6)))
CASE(fn_clamp_from, tensor_clamp(a, S(0.1), NONE))
CASE(fn_clamp_to, tensor_clamp(a, NONE, S(0.1)))
CASE(fn_clamp_tensor_from, tensor_clamp_tensor(a, b, tensor_none))
CASE(fn_clamp_tensor_to, tensor_clamp_tensor(a, tensor_none, b))
CASE(fn_clamp_tensor, tensor_clamp_tensor(a, b, c))
CASE(fn_clamp_min, tensor_clamp_min(a, S(0.1)))
CASE(fn_maximum_scalar, tensor__maximum_scalar(a, S(0.1)))
CASE(fn_minimum_scalar, tensor__minimum_scalar(a, S(0.1)))
CASE(fn_clamp_max, tensor_clamp_max(a, S(0.1)))
CASE(fn_where_number,
     tensor_where_scalarother(tensor_gt_scalar(tensor_detach(a), S(0)), tensor_mul(a, a), S(2)))
CASE(fn_number_where,
     tensor_where_scalarself(tensor_gt_scalar(tensor_detach(a), S(0)), S(2), tensor_mul(a, a)))
CASE(fn_masked_fill,
     tensor_masked_fill(tensor_mul(a, a), tensor_gt_scalar(tensor_detach(a), S(0)), S(2)))
CASE(fn_masked_fill_tensor,
     tensor_masked_fill_tensor(tensor_mul(a, a), tensor_gt_scalar(tensor_detach(a), S(0)), b))
CASE(fn_lerp, tensor_lerp(a, b, c))
CASE(fn_lerp_number, tensor_lerp_scalar(a, b, S(0.3)))
CASE(fn_addcmul, tensor_addcmul_opt(a, b, c, S(1.5)))
CASE(fn_addcdiv, tensor_addcdiv_opt(a, b, c, S(1.5)))

#define ANY  IN(1, 0.05, 2, 3)
#define POS  IN(0.6, 1.4, 2, 3)
#define LOW  IN(0.5, 0.1, 2, 3)
#define UP   IN(0.6, 2.4, 2, 3)
#define ROW3 IN_T(0.6, 1.3, 3)

static const struct formula formulas[] = {
	ROW(acos, 1, LOW),
	ROW(acosh, 1, UP),
	ROW(asin, 1, LOW),
	ROW(asinh, 1, ANY),
	ROW(atan, 1, ANY),
	ROW(atanh, 1, LOW),
	ROW(cos, 1, ANY),
	ROW(cosh, 1, ANY),
	ROW(digamma, 1, POS),
	ROW(polygamma, 1, POS),
	ROW(erf, 1, ANY),
	ROW(erfc, 1, ANY),
	ROW(erfinv, 1, LOW),
	ROW(exp2, 1, ANY),
	ROW(expm1, 1, ANY),
	ROW(lgamma, 1, POS),
	ROW(log10, 1, POS),
	ROW(log1p, 1, LOW),
	ROW(log2, 1, POS),
	ROW(reciprocal, 1, POS),
	ROW(rsqrt, 1, POS),
	ROW(sin, 1, ANY),
	ROW(sinh, 1, ANY),
	ROW(sqrt, 1, POS),
	ROW(tan, 1, ANY),
	ROW_ONCE(abs, 1, ANY),
	ROW(square, 1, ANY),
	ROW_ONCE(frac, 1, ANY),
	ROW_ONCE(flat, 1, ANY),
	ROW_ONCE(round_decimals, 1, ANY),
	ROW(nan_to_num, 1, ANY),
	ROW_ONCE(conj_physical, 1, ANY),
	ROW(sin_in_place, 1, ANY),
	ROW(sqrt_in_place, 1, POS),
	ROW(silu_in_place, 1, ANY),
	ROW(gelu_in_place, 1, ANY),
	ROW(silu, 1, ANY),
	ROW(mish, 1, ANY),
	ROW_ONCE(hardsigmoid, 1, ANY),
	ROW(hardswish, 1, ANY),
	ROW(gelu, 1, ANY),
	ROW(gelu_tanh, 1, ANY),
	ROW_ONCE(relu6, 1, ANY),
	ROW(log_sigmoid, 1, ANY),
	ROW(selu, 1, ANY),
	ROW(elu, 1, ANY),
	ROW(celu, 1, ANY),
	ROW(elu_in_place, 2, ANY, POS),
	ROW_ONCE(hardtanh, 1, ANY),
	ROW_ONCE(leaky_relu, 1, ANY),
	ROW(softplus, 1, ANY),
	ROW(softplus_threshold, 1, ANY),
	ROW(softplus_threshold_backward, 2, ANY, ANY),
	ROW_ONCE(threshold, 1, ANY),
	ROW_ONCE(hardshrink, 1, ANY),
	ROW_ONCE(softshrink, 1, ANY),
	ROW(silu_backward, 2, ANY, ANY),
	ROW(mish_backward, 2, ANY, ANY),
	ROW(hardswish_backward, 2, ANY, ANY),
	ROW(gelu_backward, 2, ANY, ANY),
	ROW(gelu_tanh_backward, 2, ANY, ANY),
	ROW(elu_backward, 2, ANY, ANY),
	ROW(elu_result_backward, 2, ANY, ANY),
	ROW(softplus_backward, 2, ANY, ANY),
	ROW(log_sigmoid_backward, 2, ANY, ANY),
	ROW_ONCE(maximum, 2, ANY, LOW),
	ROW_ONCE(minimum, 2, ANY, LOW),
	ROW_ONCE(fmax, 2, ANY, LOW),
	ROW_ONCE(fmin, 2, ANY, LOW),
	ROW(hypot, 2, POS, ROW3),
	ROW(atan2, 2, POS, ROW3),
	ROW(pow, 2, POS, ROW3),
	ROW(true_divide, 2, ANY, ROW3),
	ROW_ONCE(rsub, 2, ANY, ROW3),
	ROW_ONCE(copysign, 2, POS, ANY),
	ROW_ONCE(copysign_number, 1, ANY),
	ROW_ONCE(fmod, 2, UP, POS),
	ROW_ONCE(remainder, 2, UP, POS),
	ROW_ONCE(fmod_number, 1, ANY),
	ROW_ONCE(remainder_number, 1, ANY),
	ROW_ONCE(number_remainder, 1, POS),
	ROW(logaddexp, 2, ANY, ROW3),
	ROW(logaddexp2, 2, ANY, ROW3),
	ROW(xlogy, 2, ANY, POS),
	ROW(number_xlogy, 1, POS),
	ROW_ONCE(xlogy_number, 1, ANY),
	ROW(prelu, 2, ANY, ROW3),
	ROW_ONCE(rsub_number, 1, ANY),
	ROW(div_exact, 2, ANY, ROW3),
	ROW_ONCE(div_number, 1, ANY),
	ROW_ONCE(div_number_floor, 1, ANY),
	ROW_ONCE(true_divide_number, 1, IN_T(1, 0.05, 2, 3)),
	ROW_ONCE(div_floor, 2, UP, POS),
	ROW_ONCE(div_trunc, 2, UP, POS),
	ROW_ONCE(div_number_trunc, 1, ANY),
	ROW_ONCE(floor_divide, 2, UP, POS),
	ROW(pow_number, 1, POS),
	ROW(pow_square, 1, ANY),
	ROW_ONCE(pow_zero, 1, ANY),
	ROW_ONCE(pow_zero_float, 1, ANY),
	ROW(pow_five, 1, ANY),
	ROW(pow_minus_three, 1, POS),
	ROW(pow_mixed, 2, POS, POS),
	ROW(number_pow, 1, ANY),
	ROW(pow_in_place, 2, POS, POS),
	ROW_ONCE(clamp, 1, ANY),
	ROW_ONCE(clamp_from, 1, ANY),
	ROW_ONCE(clamp_to, 1, ANY),
	ROW_ONCE(clamp_tensor_from, 2, ANY, LOW),
	ROW_ONCE(clamp_tensor_to, 2, ANY, LOW),
	ROW_ONCE(clamp_tensor, 3, ANY, IN(0.1, -0.4, 3), IN(0.1, 0.4, 2, 3)),
	ROW_ONCE(maximum_scalar, 1, ANY),
	ROW_ONCE(minimum_scalar, 1, ANY),
	ROW_ONCE(clamp_min, 1, ANY),
	ROW_ONCE(clamp_max, 1, ANY),
	ROW_ONCE(clamp_min_tensor, 2, ANY, LOW),
	ROW_ONCE(clamp_max_tensor, 2, ANY, LOW),
	ROW(where_number, 1, ANY),
	ROW(number_where, 1, ANY),
	ROW(masked_fill, 1, ANY),
	ROW(masked_fill_tensor, 2, ANY, { .ndim = 0, .scale = 1 }),
	ROW(lerp, 3, ANY, ROW3, LOW),
	ROW_ONCE(lerp_number, 2, ANY, ROW3),
	ROW(addcmul, 3, ANY, ROW3, LOW),
	ROW(addcdiv, 3, ANY, ROW3, POS),
};

FORMULA_TESTS

/* Gradients of the sum of an operator's result by its operands. */
static void sum_backward(tensor *result, tensor_list operands, tensor **grads)
{
	assert_done(tensor_backward_ex(TENSOR_LIST(ok(tensor_sum(ok(result)))), NULL, operands,
				       grads, 0));
}

static tensor *leaf(const double *v, int64_t n)
{
	tensor *t = ok(tensor_from_data(v, TENSOR_INTS(n), F64));

	assert_done(tensor_set_requires_grad(t, true));
	return t;
}

static void equal_maxima_share_the_gradient(void **state)
{
	const double x[] = { 1, 2, 0, NAN }, lo[] = { 1, 1, 1, 1 }, hi[] = { 3, 2, 3, 3 };

	tensor_scope {
		tensor *a = leaf(x, 4), *b = leaf(lo, 4), *c = leaf(hi, 4), *grad[3];

		sum_backward(tensor_clamp_min_tensor(a, b), TENSOR_LIST(a, b), grad);
		assert_values(grad[0], 0, 0.5, 1, 0, 1);
		assert_values(grad[1], 0, 0.5, 0, 1, 1);
		sum_backward(tensor_fmax(a, b), TENSOR_LIST(a, b), grad);
		assert_values(grad[0], 0, 0.5, 1, 0, 0);
		assert_values(grad[1], 0, 0.5, 0, 1, 1);
		sum_backward(tensor_clamp_tensor(a, b, c), TENSOR_LIST(a, b, c), grad);
		assert_values(grad[0], 0, 0.5, 0.5, 0, 1);
		assert_values(grad[1], 0, 0.5, 0, 1, 0);
		assert_values(grad[2], 0, 0, 0.5, 0, 0);
	}
}

static void gradient_of_clamp_at_its_limits(void **state)
{
	const double x[] = { 1, 2, 1.5, 0, NAN };

	tensor_scope {
		tensor *a = leaf(x, 5), *grad;

		sum_backward(tensor_clamp(a, S(1), S(2)), TENSOR_LIST(a), &grad);
		assert_values(grad, 0, 0, 0, 1, 0, 0);
		sum_backward(tensor_clamp_min(a, S(1)), TENSOR_LIST(a), &grad);
		assert_values(grad, 0, 0, 1, 1, 0, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORMULA_TEST_LIST,
		cmocka_unit_test(equal_maxima_share_the_gradient),
		cmocka_unit_test(gradient_of_clamp_at_its_limits),
	};

	return cmocka_run_group_tests_name("autograd_elementwise", tests, NULL, NULL);
}
