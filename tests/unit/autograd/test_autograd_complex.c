// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* First and second derivatives of elementwise functions of complex numbers. */
#include "formulas.h"

/* [n, 2] as n complex numbers, and back. */
#define Z(x)  tensor_view_as_complex(x)
#define OF(z) tensor_view_as_real(z)

CASE(fn_exp, OF(tensor_exp(Z(a))))
CASE(fn_expm1, OF(tensor_expm1(Z(a))))
CASE(fn_log, OF(tensor_log(Z(a))))
CASE(fn_log1p, OF(tensor_log1p(Z(a))))
CASE(fn_log2, OF(tensor_log2(Z(a))))
CASE(fn_log10, OF(tensor_log10(Z(a))))
CASE(fn_sqrt, OF(tensor_sqrt(Z(a))))
CASE(fn_rsqrt, OF(tensor_rsqrt(Z(a))))
CASE(fn_reciprocal, OF(tensor_reciprocal(Z(a))))
CASE(fn_square, OF(tensor_square(Z(a))))
CASE(fn_sin, OF(tensor_sin(Z(a))))
CASE(fn_cos, OF(tensor_cos(Z(a))))
CASE(fn_tan, OF(tensor_tan(Z(a))))
CASE(fn_asin, OF(tensor_asin(Z(a))))
CASE(fn_acos, OF(tensor_acos(Z(a))))
CASE(fn_atan, OF(tensor_atan(Z(a))))
CASE(fn_sinh, OF(tensor_sinh(Z(a))))
CASE(fn_cosh, OF(tensor_cosh(Z(a))))
CASE(fn_tanh, OF(tensor_tanh(Z(a))))
CASE(fn_asinh, OF(tensor_asinh(Z(a))))
CASE(fn_acosh, OF(tensor_acosh(Z(a))))
CASE(fn_atanh, OF(tensor_atanh(Z(a))))
CASE(fn_sigmoid, OF(tensor_sigmoid(Z(a))))
CASE(fn_sgn, OF(tensor_sgn(Z(a))))
CASE(fn_conj_physical, OF(tensor_conj_physical(Z(a))))
CASE(fn_neg, OF(tensor_neg(Z(a))))
CASE(fn_silu, OF(tensor_silu(Z(a))))
CASE(fn_exp2, OF(tensor_exp2(Z(a))))
CASE(fn_mul, OF(tensor_mul(Z(a), Z(b))))
CASE(fn_div, OF(tensor_div(Z(a), Z(b))))
CASE(fn_pow, OF(tensor_pow(Z(a), Z(b))))
CASE(fn_pow_number, OF(tensor_pow_scalar(Z(a), tensor_scalar_complex(1.5, 0.5))))
CASE(fn_addcmul, OF(tensor_addcmul(Z(a), Z(b), Z(c))))
CASE(fn_addcdiv, OF(tensor_addcdiv(Z(a), Z(b), Z(c))))
CASE(fn_lerp, OF(tensor_lerp(Z(a), Z(b), Z(c))))
CASE(fn_abs, tensor_abs(Z(a)))
CASE(fn_angle, tensor_angle(Z(a)))
CASE(fn_real, tensor_mul(tensor_real(Z(a)), tensor_imag(Z(a))))
CASE(fn_prod, OF(tensor_prod(Z(a))))
CASE(fn_var, tensor_var(Z(a), true))
CASE(fn_mean, OF(tensor_mean(tensor_mul(Z(a), Z(a)))))

static const struct formula formulas[] = {
	ROW(exp, 1, IN(0.6, 0.3, 3, 2)),
	ROW(expm1, 1, IN(0.6, 0.3, 3, 2)),
	ROW(log, 1, IN(0.6, 0.3, 3, 2)),
	ROW(log1p, 1, IN(0.6, 0.3, 3, 2)),
	ROW(log2, 1, IN(0.6, 0.3, 3, 2)),
	ROW(log10, 1, IN(0.6, 0.3, 3, 2)),
	ROW(sqrt, 1, IN(0.6, 0.3, 3, 2)),
	ROW(rsqrt, 1, IN(0.6, 0.3, 3, 2)),
	ROW(reciprocal, 1, IN(0.6, 0.3, 3, 2)),
	ROW(square, 1, IN(0.6, 0.3, 3, 2)),
	ROW(sin, 1, IN(0.6, 0.3, 3, 2)),
	ROW(cos, 1, IN(0.6, 0.3, 3, 2)),
	ROW(tan, 1, IN(0.6, 0.3, 3, 2)),
	ROW(asin, 1, IN(0.6, 0.3, 3, 2)),
	ROW(acos, 1, IN(0.6, 0.3, 3, 2)),
	ROW(atan, 1, IN(0.6, 0.3, 3, 2)),
	ROW(sinh, 1, IN(0.6, 0.3, 3, 2)),
	ROW(cosh, 1, IN(0.6, 0.3, 3, 2)),
	ROW(tanh, 1, IN(0.6, 0.3, 3, 2)),
	ROW(asinh, 1, IN(0.6, 0.3, 3, 2)),
	ROW(acosh, 1, IN(0.6, 0.3, 3, 2)),
	ROW(atanh, 1, IN(0.6, 0.3, 3, 2)),
	ROW(sigmoid, 1, IN(0.6, 0.3, 3, 2)),
	ROW(sgn, 1, IN(0.6, 0.3, 3, 2)),
	ROW(conj_physical, 1, IN(0.6, 0.3, 3, 2)),
	ROW(neg, 1, IN(0.6, 0.3, 3, 2)),
	ROW(silu, 1, IN(0.6, 0.3, 3, 2)),
	ROW(exp2, 1, IN(0.6, 0.3, 3, 2)),
	ROW(mul, 2, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2)),
	ROW(div, 2, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2)),
	ROW(pow, 2, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2)),
	ROW(pow_number, 1, IN(0.6, 0.3, 3, 2)),
	ROW(addcmul, 3, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2), IN(0.7, 0.9, 3, 2)),
	ROW(addcdiv, 3, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2), IN(0.7, 0.9, 3, 2)),
	ROW(lerp, 3, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2), IN(0.7, 0.9, 3, 2)),
	ROW(abs, 1, IN(0.6, 0.3, 3, 2)),
	ROW(angle, 1, IN(0.6, 0.3, 3, 2)),
	ROW(real, 1, IN(0.6, 0.3, 3, 2)),
	ROW(prod, 1, IN(0.6, 0.3, 3, 2)),
	ROW(var, 1, IN(0.6, 0.3, 3, 2)),
	ROW(mean, 1, IN(0.6, 0.3, 3, 2)),
};

FORMULA_TESTS

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_formula_agrees_with_differences),
		cmocka_unit_test(every_formula_is_differentiable_again),
	};

	return cmocka_run_group_tests_name("autograd_complex", tests, NULL, NULL);
}
