// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* First and second derivatives of elementwise functions of complex numbers. */
#include "formulas.h"

CASE(fn_exp, AS_REAL(tensor_exp(AS_COMPLEX(a))))
CASE(fn_expm1, AS_REAL(tensor_expm1(AS_COMPLEX(a))))
CASE(fn_log, AS_REAL(tensor_log(AS_COMPLEX(a))))
CASE(fn_log1p, AS_REAL(tensor_log1p(AS_COMPLEX(a))))
CASE(fn_log2, AS_REAL(tensor_log2(AS_COMPLEX(a))))
CASE(fn_log10, AS_REAL(tensor_log10(AS_COMPLEX(a))))
CASE(fn_sqrt, AS_REAL(tensor_sqrt(AS_COMPLEX(a))))
CASE(fn_rsqrt, AS_REAL(tensor_rsqrt(AS_COMPLEX(a))))
CASE(fn_reciprocal, AS_REAL(tensor_reciprocal(AS_COMPLEX(a))))
CASE(fn_square, AS_REAL(tensor_square(AS_COMPLEX(a))))
CASE(fn_sin, AS_REAL(tensor_sin(AS_COMPLEX(a))))
CASE(fn_cos, AS_REAL(tensor_cos(AS_COMPLEX(a))))
CASE(fn_tan, AS_REAL(tensor_tan(AS_COMPLEX(a))))
CASE(fn_asin, AS_REAL(tensor_asin(AS_COMPLEX(a))))
CASE(fn_acos, AS_REAL(tensor_acos(AS_COMPLEX(a))))
CASE(fn_atan, AS_REAL(tensor_atan(AS_COMPLEX(a))))
CASE(fn_sinh, AS_REAL(tensor_sinh(AS_COMPLEX(a))))
CASE(fn_cosh, AS_REAL(tensor_cosh(AS_COMPLEX(a))))
CASE(fn_tanh, AS_REAL(tensor_tanh(AS_COMPLEX(a))))
CASE(fn_asinh, AS_REAL(tensor_asinh(AS_COMPLEX(a))))
CASE(fn_acosh, AS_REAL(tensor_acosh(AS_COMPLEX(a))))
CASE(fn_atanh, AS_REAL(tensor_atanh(AS_COMPLEX(a))))
CASE(fn_sigmoid, AS_REAL(tensor_sigmoid(AS_COMPLEX(a))))
CASE(fn_sgn, AS_REAL(tensor_sgn(AS_COMPLEX(a))))
CASE(fn_conj_physical, AS_REAL(tensor_conj_physical(AS_COMPLEX(a))))
CASE(fn_neg, AS_REAL(tensor_neg(AS_COMPLEX(a))))
CASE(fn_silu, AS_REAL(tensor_silu(AS_COMPLEX(a))))
CASE(fn_exp2, AS_REAL(tensor_exp2(AS_COMPLEX(a))))
CASE(fn_mul, AS_REAL(tensor_mul(AS_COMPLEX(a), AS_COMPLEX(b))))
CASE(fn_div, AS_REAL(tensor_div(AS_COMPLEX(a), AS_COMPLEX(b))))
CASE(fn_div_exact, AS_REAL(tensor_div_mode(AS_COMPLEX(a), AS_COMPLEX(b), NULL)))
CASE(fn_div_number_exact,
     AS_REAL(tensor_div_scalar_mode(AS_COMPLEX(a), tensor_scalar_complex(0.6, -0.8), NULL)))
CASE(fn_true_divide_number,
     AS_REAL(tensor_true_divide_scalar(AS_COMPLEX(a), tensor_scalar_complex(0.6, -0.8))))
CASE(fn_pow, AS_REAL(tensor_pow(AS_COMPLEX(a), AS_COMPLEX(b))))
CASE(fn_pow_number, AS_REAL(tensor_pow_scalar(AS_COMPLEX(a), tensor_scalar_complex(1.5, 0.5))))
CASE(fn_pow_integer, AS_REAL(tensor_pow_scalar(AS_COMPLEX(a), S(5))))
CASE(fn_number_pow, AS_REAL(tensor_scalar_pow(tensor_scalar_complex(1.2, -0.7), AS_COMPLEX(a))))
CASE(fn_addcmul, AS_REAL(tensor_addcmul(AS_COMPLEX(a), AS_COMPLEX(b), AS_COMPLEX(c))))
CASE(fn_addcdiv, AS_REAL(tensor_addcdiv(AS_COMPLEX(a), AS_COMPLEX(b), AS_COMPLEX(c))))
CASE(fn_lerp, AS_REAL(tensor_lerp(AS_COMPLEX(a), AS_COMPLEX(b), AS_COMPLEX(c))))
CASE(fn_lerp_number,
     AS_REAL(tensor_lerp_scalar(AS_COMPLEX(a), AS_COMPLEX(b), tensor_scalar_complex(0.3, 0.8))))
CASE(fn_abs, tensor_abs(AS_COMPLEX(a)))
CASE(fn_angle, tensor_angle(AS_COMPLEX(a)))
CASE(fn_real, tensor_mul(tensor_real(AS_COMPLEX(a)), tensor_imag(AS_COMPLEX(a))))
CASE(fn_prod, AS_REAL(tensor_prod(AS_COMPLEX(a))))
CASE(fn_var, tensor_var(AS_COMPLEX(a), true))
CASE(fn_mean, AS_REAL(tensor_mean(tensor_mul(AS_COMPLEX(a), AS_COMPLEX(a)))))

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
	ROW(div_exact, 2, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2)),
	ROW(div_number_exact, 1, IN(0.6, 0.3, 3, 2)),
	ROW(true_divide_number, 1, IN(0.6, 0.3, 3, 2)),
	ROW(pow, 2, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2)),
	ROW(pow_number, 1, IN(0.6, 0.3, 3, 2)),
	ROW(pow_integer, 1, IN(0.6, 0.3, 3, 2)),
	ROW(number_pow, 1, IN(0.6, 0.3, 3, 2)),
	ROW(addcmul, 3, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2), IN(0.7, 0.9, 3, 2)),
	ROW(addcdiv, 3, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2), IN(0.7, 0.9, 3, 2)),
	ROW(lerp, 3, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2), IN(0.7, 0.9, 3, 2)),
	ROW(lerp_number, 2, IN(0.6, 0.3, 3, 2), IN(0.5, 0.8, 3, 2)),
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
		FORMULA_TEST_LIST,
	};

	return cmocka_run_group_tests_name("autograd_complex", tests, NULL, NULL);
}
