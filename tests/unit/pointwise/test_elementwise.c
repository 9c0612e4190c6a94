// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The elementwise operators that test_pointwise.c does not have: functions against the C library,
 * in every layout; values at the limits of their ranges; errors.
 */
#include "check.h"

#include <complex.h>
#undef I

#define V(...)                                                                            \
	from_list((const double[]){ __VA_ARGS__ }, sizeof((double[]){ __VA_ARGS__ }) / 8, \
		  TENSOR_F32)
#define VD(d, ...) \
	from_list((const double[]){ __VA_ARGS__ }, sizeof((double[]){ __VA_ARGS__ }) / 8, d)

static tensor *from_list(const double *v, int64_t n, enum tensor_dtype dtype)
{
	return tensor_to(ok(tensor_from_data(v, TENSOR_INTS(n), F64)), OF(dtype));
}

static double round_half_even(double x)
{
	return rint(x);
}
static double frac(double x)
{
	return x - trunc(x);
}
static double rsqrt(double x)
{
	return 1 / sqrt(x);
}
static double reciprocal(double x)
{
	return 1 / x;
}
static double sign(double x)
{
	return (x > 0) - (x < 0);
}
static double square(double x)
{
	return x * x;
}
static double silu(double x)
{
	return x / (1 + exp(-x));
}
static double mish(double x)
{
	return x * tanh(log1p(exp(x)));
}
static double log_sigmoid(double x)
{
	return -log1p(exp(-x));
}
static double hardsigmoid(double x)
{
	return fmin(fmax(x + 3, 0), 6) / 6;
}
static double hardswish(double x)
{
	return x * hardsigmoid(x);
}
static double relu6(double x)
{
	return fmin(fmax(x, 0), 6);
}
static double selu(double x)
{
	return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x));
}
static double erfinv_error(double x)
{
	return x;
}
static tensor *erf_of_erfinv(tensor *t)
{
	return tensor_erf(tensor_erfinv(t));
}
static tensor *digamma_step(tensor *t)
{
	/* digamma(x + 1) - digamma(x) = 1 / x */
	return tensor_sub(tensor_digamma(tensor_add_scalar(t, S(1))), tensor_digamma(t));
}
static tensor *trigamma_step(tensor *t)
{
	/* polygamma(1, x) - polygamma(1, x + 1) = 1 / x^2 */
	return tensor_sub(tensor_polygamma(1, t), tensor_polygamma(1, tensor_add_scalar(t, S(1))));
}
static double inverse_square(double x)
{
	return 1 / (x * x);
}

static const struct {
	const char *name;
	tensor *(*op)(tensor *);
	double (*want)(double);
	double scale, shift; /* of the inputs, which are in -1 .. 1 */
	double tol;
} functions[] = {
	{ "acos", tensor_acos, acos, 1, 0, 4e-7 },
	{ "acosh", tensor_acosh, acosh, 4, 5.1, 4e-7 },
	{ "asin", tensor_asin, asin, 1, 0, 4e-7 },
	{ "asinh", tensor_asinh, asinh, 50, 0, 4e-7 },
	{ "atan", tensor_atan, atan, 50, 0, 4e-7 },
	{ "atanh", tensor_atanh, atanh, 0.99, 0, 4e-7 },
	{ "cos", tensor_cos, cos, 50, 0, 4e-7 },
	{ "cosh", tensor_cosh, cosh, 10, 0, 4e-7 },
	{ "erf", tensor_erf, erf, 4, 0, 4e-7 },
	{ "erfc", tensor_erfc, erfc, 4, 0, 4e-7 },
	{ "erfinv", erf_of_erfinv, erfinv_error, 0.99, 0, 4e-7 },
	{ "exp2", tensor_exp2, exp2, 10, 0, 4e-7 },
	{ "expm1", tensor_expm1, expm1, 10, 0, 4e-7 },
	{ "lgamma", tensor_lgamma, lgamma, 10, 11, 4e-7 },
	{ "digamma", digamma_step, reciprocal, 5, 6, 2e-5 },
	{ "polygamma", trigamma_step, inverse_square, 1, 1.5, 1e-5 },
	{ "log2", tensor_log2, log2, 10, 11, 4e-7 },
	{ "log10", tensor_log10, log10, 10, 11, 4e-7 },
	{ "log1p", tensor_log1p, log1p, 0.99, 0, 4e-7 },
	{ "rsqrt", tensor_rsqrt, rsqrt, 10, 11, 4e-7 },
	{ "sqrt", tensor_sqrt, sqrt, 10, 11, 4e-7 },
	{ "reciprocal", tensor_reciprocal, reciprocal, 10, 11, 4e-7 },
	{ "sin", tensor_sin, sin, 50, 0, 4e-7 },
	{ "sinh", tensor_sinh, sinh, 10, 0, 4e-7 },
	{ "tan", tensor_tan, tan, 50, 0, 4e-7 },
	{ "abs", tensor_abs, fabs, 10, 0, 0 },
	{ "ceil", tensor_ceil, ceil, 10, 0, 0 },
	{ "floor", tensor_floor, floor, 10, 0, 0 },
	{ "trunc", tensor_trunc, trunc, 10, 0, 0 },
	{ "round", tensor_round, round_half_even, 10, 0, 0 },
	{ "frac", tensor_frac, frac, 10, 0, 4e-7 },
	{ "sign", tensor_sign, sign, 10, 0, 0 },
	{ "sgn", tensor_sgn, sign, 10, 0, 0 },
	{ "square", tensor_square, square, 10, 0, 4e-7 },
	{ "silu", tensor_silu, silu, 10, 0, 4e-7 },
	{ "mish", tensor_mish, mish, 10, 0, 4e-7 },
	{ "log_sigmoid", tensor_log_sigmoid, log_sigmoid, 10, 0, 4e-7 },
	{ "hardsigmoid", tensor_hardsigmoid, hardsigmoid, 10, 0, 4e-7 },
	{ "hardswish", tensor_hardswish, hardswish, 10, 0, 4e-7 },
	{ "relu6", tensor_relu6, relu6, 10, 0, 0 },
	{ "selu", tensor_selu, selu, 3, 0, 4e-7 },
};

/* Contiguous, transposed, every second column, one column only. */
static tensor *laid_out(tensor *m, int kind)
{
	if (kind == 1)
		return tensor_t(m);
	if (kind == 2)
		return tensor_slice(m, 1, 0, TENSOR_NONE, 2);
	return kind == 3 ? tensor_expand(tensor_narrow(m, 1, 1, 1), tensor_shape(m)) : m;
}

static void functions_agree_with_the_c_library_in_every_layout(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16,
						    TENSOR_F16 };
	static const double ulp[] = { 1, 1e-7, 3e4, 3e3 };

	for (size_t f = 0; f < ARRAY_SIZE(functions); f++) {
		for (int k = 0; k < 16; k++) {
			int d = k / 4;

			tensor_scope {
				tensor *x = tensor_sin(iota(1, TENSOR_INTS(23, 29)));
				tensor *a, *in, *y, *got;
				double tol = functions[f].tol * ulp[d] + 1e-15;

				x = tensor_add_scalar(tensor_mul_scalar(x, S(functions[f].scale)),
						      S(functions[f].shift));
				a = laid_out(tensor_to(x, OF(dtypes[d])), k % 4);
				y = ok(functions[f].op(a));
				in = tensor_contiguous(tensor_to(a, F64));
				got = tensor_contiguous(tensor_to(y, F64));
				assert_int_equal(tensor_dtype(y), dtypes[d]);
				for (int64_t i = 0; i < tensor_numel(y); i += 3) {
					double v = ((const double *)tensor_data(in))[i];
					double want = functions[f].want(v);
					double have = ((const double *)tensor_data(got))[i];
					/* f16 and bf16 are rounded in between. */
					double more = d > 1 ? 30 * tol + 0.01 * fabs(v) : 0;

					if (fabs(have - want) > tol * fabs(want) + tol + more)
						fail_msg("%s(%.9g) is %.9g, expected %.9g",
							 functions[f].name, v, have, want);
				}
			}
		}
	}
}

static void limits_of_ranges_give_known_values(void **state)
{
	tensor_scope {
		tensor *x = V(NAN, INFINITY, -INFINITY, -0.0);

		assert_values(tensor_asinh(V(3e38, -3e38)), 1e-5, 89.289993, -89.289993);
		assert_values(tensor_acosh(V(3e38, 0.5)), 1e-5, 89.289993, NAN);
		assert_values(tensor_log1p(V(3e38)), 1e-5, 88.596848);
		assert_values(tensor_log_sigmoid(x), 1e-7, NAN, 0, -INFINITY, -M_LN2);
		assert_values(tensor_mish(V(INFINITY, 100, -200)), 0, INFINITY, 100, -0.0);
		assert_values(tensor_gelu(V(INFINITY, 100, -200, NAN)), 0, INFINITY, 100, -0.0,
			      NAN);
		assert_values(tensor_isnan(x), 0, 1, 0, 0, 0);
		assert_values(tensor_isinf(x), 0, 0, 1, 1, 0);
		assert_values(tensor_isfinite(x), 0, 0, 0, 0, 1);
		assert_values(tensor_isposinf(x), 0, 0, 1, 0, 0);
		assert_values(tensor_isneginf(x), 0, 0, 0, 1, 0);
		assert_values(tensor_signbit(V(-0.0, 0, -1)), 0, 1, 0, 1);
		assert_values(tensor_logical_not(x), 0, 0, 0, 0, 1);
		assert_values(tensor_round(V(0.5, 1.5, 2.5, -0.5)), 0, 0, 2, 2, 0);
		assert_values(tensor_round_decimals(V(1.25, 1250), 1), 1e-6, 1.2, 1250);
		assert_values(tensor_round_decimals(V(1250, 1350), -2), 0, 1200, 1400);
		assert_values(tensor_nan_to_num(x, TENSOR_NO_FLOAT, TENSOR_NO_FLOAT, -5), 0, 0,
			      3.4028234663852886e38, -5, 0);
		assert_values(tensor_erfinv(V(1, -1, 2, 0)), 0, INFINITY, -INFINITY, NAN, 0);
		assert_values(tensor_sign(V(NAN, -3)), 0, 0, -1);
		assert_values(tensor_abs(VD(TENSOR_I8, -128, -127, 5)), 0, -128, 127, 5);
		assert_values(tensor_bitwise_not(VD(TENSOR_U8, 0, 255)), 0, 255, 0);
		assert_values(tensor_bitwise_not(VD(TENSOR_BOOL, 0, 1)), 0, 1, 0);
		assert_int_equal(tensor_dtype(tensor_sin(VD(TENSOR_I32, 1))), TENSOR_F32);
		assert_int_equal(tensor_dtype(tensor_square(VD(TENSOR_BOOL, 1))), TENSOR_I64);
	}
}

static void quotients_and_remainders_give_known_values(void **state)
{
	tensor_scope {
		tensor *a = V(7, -7, 7, -7, 1), *b = V(2, 2, -2, -2, 0);
		tensor *i = VD(TENSOR_I32, 7, -7, 7, -7), *j = VD(TENSOR_I32, 2, 2, -2, -2);
		tensor *least = tensor_full(TENSOR_INTS(1), S(INT64_MIN), I64);

		assert_values(tensor_floor_divide(a, b), 0, 3, -4, -4, 3, INFINITY);
		assert_values(tensor_div_mode(a, b, "trunc"), 0, 3, -3, -3, 3, INFINITY);
		assert_values(tensor_remainder(a, b), 0, 1, 1, -1, -1, NAN);
		assert_values(tensor_fmod(a, b), 0, 1, -1, 1, -1, NAN);
		assert_values(tensor_floor_divide(i, j), 0, 3, -4, -4, 3);
		assert_values(tensor_div_mode(i, j, "trunc"), 0, 3, -3, -3, 3);
		assert_values(tensor_remainder(i, j), 0, 1, 1, -1, -1);
		assert_values(tensor_fmod(i, j), 0, 1, -1, 1, -1);
		assert_int_equal(tensor_dtype(tensor_div_mode(i, j, NULL)), TENSOR_F32);
		/* INT64_MIN / -1 wraps; the processor's division would trap. */
		assert_values(tensor_floor_divide_scalar(least, S(-1)), 0, (double)INT64_MIN);
		assert_values(tensor_remainder_scalar(least, S(-1)), 0, 0);
		assert_fails(!tensor_floor_divide_scalar(i, S(0)), EDOM, "division by zero");
		assert_fails(!tensor_remainder_scalar(i, S(0)), EDOM, "division by zero");
		assert_fails(!tensor_fmod_(i, tensor_zeros_like(i, TENSOR_OPTIONS(0))), EDOM,
			     "division by zero");
		assert_fails(!tensor_div_mode(i, j, "up"), EINVAL, "rounding_mode");
	}
}

static void pow_and_bit_operators_give_known_values(void **state)
{
	tensor_scope {
		tensor *x = V(4, 9, 0.25), *i = VD(TENSOR_I32, -2, 3, 0, 1);

		assert_values(tensor_pow_scalar(x, S(0.5)), 0, 2, 3, 0.5);
		assert_values(tensor_pow_scalar(x, S(2)), 0, 16, 81, 0.0625);
		assert_values(tensor_pow_scalar(x, S(-1)), 1e-7, 0.25, 1. / 9, 4);
		assert_values(tensor_pow_scalar(x, S(1.5)), 1e-5, 8, 27, 0.125);
		assert_values(tensor_pow_scalar(i, S(3)), 0, -8, 27, 0, 1);
		assert_values(tensor_pow_scalar(i, S(5)), 0, -32, 243, 0, 1);
		assert_values(tensor_scalar_pow(S(2), V(3, -1)), 1e-7, 8, 0.5);
		assert_values(tensor_pow(VD(TENSOR_I64, 2, -1, 0, 1),
					 VD(TENSOR_I64, -1, -3, 0, -9)),
			      0, 0, -1, 1, 1);
		assert_fails(!tensor_pow_scalar(i, S(-1)), EINVAL, "negative power");
		assert_values(tensor_bitwise_left_shift(VD(TENSOR_I8, 1, 1, -1, 1),
							VD(TENSOR_I8, 3, 8, 1, -1)),
			      0, 8, 0, -2, 0);
		assert_values(tensor_bitwise_right_shift_scalar(VD(TENSOR_I16, -5, 5), S(99)), 0,
			      -1, 0);
		assert_values(tensor_bitwise_xor_scalar(i, S(1)), 0, -1, 2, 1, 0);
		assert_values(tensor_bitwise_or_scalar_tensor(S(4), VD(TENSOR_U8, 1, 6)), 0, 5, 6);
		assert_values(tensor_logical_xor(V(0, 2, 0), VD(TENSOR_I8, 5, 5, 0)), 0, 1, 0, 0);
		assert_values(tensor_copysign(V(1, -1, 0), V(-0.0, 2, -1)), 0, -1, 1, -0.0);
		assert_values(tensor_atan2(V(1, -1), V(-1, 0)), 1e-6, 3 * M_PI_4, -M_PI_2);
		assert_values(tensor_hypot(V(3e30), V(4e30)), 1e24, 5e30);
		/* Large differences and infinities, for which exp() overflows. */
		assert_values(tensor_logaddexp(V(1000, -INFINITY, 0, INFINITY, 1),
					       V(0, -INFINITY, 0, -INFINITY, NAN)),
			      1e-6, 1000, -INFINITY, M_LN2, INFINITY, NAN);
		assert_values(tensor_logaddexp2(V(3, 1000), V(3, 0)), 1e-6, 4, 1000);
		assert_values(tensor_xlogy(V(0, 0, 2, 0), V(0, NAN, 1, INFINITY)), 0, 0, NAN, 0, 0);
		assert_values(tensor_xlogy_scalar_self(S(2), V(M_E)), 1e-6, 2);
		assert_fails(!tensor_bitwise_and(x, x), EOPNOTSUPP, "f32");
	}
}

static void selections_give_known_values(void **state)
{
	tensor_scope {
		tensor *x = V(-2, NAN, 0.5, 9), *y = V(1, 1, NAN, 1), *u = VD(TENSOR_U8, 5, 200);
		tensor *mask = tensor_gt_scalar(x, S(0));
		tensor_scalar none = { .kind = TENSOR_SCALAR_NONE };

		assert_values(tensor_maximum(x, y), 0, 1, NAN, NAN, 9);
		assert_values(tensor_minimum(x, y), 0, -2, NAN, NAN, 1);
		assert_values(tensor_fmax(x, y), 0, 1, 1, 0.5, 9);
		assert_values(tensor_fmin(x, y), 0, -2, 1, 0.5, 1);
		assert_values(tensor_clamp(x, S(0), S(1)), 0, 0, NAN, 0.5, 1);
		assert_values(tensor_clamp(x, none, S(1)), 0, -2, NAN, 0.5, 1);
		assert_values(tensor_clamp(x, S(NAN), S(1)), 0, NAN, NAN, NAN, NAN);
		assert_values(tensor_clamp_tensor(x, y, tensor_none), 0, 1, NAN, NAN, 9);
		assert_values(tensor_clamp_tensor(x, y, V(3, 3, 3, 3)), 0, 1, NAN, NAN, 3);
		assert_fails(!tensor_clamp(x, none, none), EINVAL, "at least one");
		assert_values(tensor_clamp(u, S(-1000), S(100)), 0, 5, 100);
		assert_fails(!tensor_clamp(u, S(1000), none), EINVAL, "1000");
		assert_values(tensor_eq_scalar(u, S(261)), 0, 0, 0);
		assert_values(tensor_lt_scalar(u, S(300)), 0, 1, 1);
		assert_values(tensor_where_scalarother(mask, x, S(7)), 0, 7, 7, 0.5, 9);
		assert_values(tensor_where_scalar(mask, S(1), S(0)), 0, 0, 0, 1, 1);
		assert_values(tensor_masked_fill(x, mask, S(3)), 0, -2, NAN, 3, 3);
		assert_values(tensor_masked_fill_tensor(
				      x, mask, tensor_full(TENSOR_SCALAR_SHAPE, S(3), I64)),
			      0, -2, NAN, 3, 3);
		assert_fails(!tensor_masked_fill(u, tensor_gt_scalar(u, S(0)), S(300)), EINVAL,
			     "range");
		assert_fails(!tensor_masked_fill_tensor(x, mask, x), EINVAL, "no dimensions");
		assert_fails(!tensor_masked_fill(x, x, S(1)), EINVAL, "bool");
		assert_values(tensor_lerp_scalar(V(1, 2), V(3, -2), S(0.25)), 0, 1.5, 1);
		assert_values(tensor_lerp(V(1, 2), V(3, -2), V(1, 0)), 0, 3, 2);
		assert_fails(!tensor_lerp(x, u, x), EINVAL, "end");
		assert_values(tensor_addcmul_opt(V(1, 1), V(2, 3), V(4, 5), S(-1)), 0, -7, -14);
		assert_values(tensor_addcdiv(V(1, 1), V(2, 3), V(4, 6)), 0, 1.5, 1.5);
		assert_fails(!tensor_addcdiv(u, u, u), EINVAL, "integers");
		assert_values(tensor_rsub_scalar(V(1, 2), S(5), S(2)), 0, 3, 1);
		assert_values(tensor_rsub(V(1, 2), V(5, 5)), 0, 4, 3);
	}
}

static void activations_with_parameters_give_known_values(void **state)
{
	tensor_scope {
		tensor *x = V(-2, 0, 3);

		assert_values(tensor_elu(x, S(2), S(1), S(1)), 1e-6, 2 * expm1(-2), 0, 3);
		assert_values(tensor_celu(x, S(2)), 1e-6, 2 * expm1(-1), 0, 3);
		assert_values(tensor_leaky_relu(x, S(0.1)), 1e-7, -0.2, 0, 3);
		assert_values(tensor_softplus(x, S(2), S(5)), 1e-6, log1p(exp(-4)) / 2, M_LN2 / 2,
			      3);
		assert_values(tensor_threshold(x, S(0), S(-7)), 0, -7, -7, 3);
		assert_values(tensor_hardtanh(x, S(-1), S(1)), 0, -1, 0, 1);
		assert_values(tensor_hardshrink(x, S(0.5)), 0, -2, 0, 3);
		assert_values(tensor_softshrink(x, S(0.5)), 0, -1.5, 0, 2.5);
		assert_values(tensor_gelu(x), 1e-6, -0.0455002639, 0, 2.99595031);
		assert_values(tensor_gelu_opt(x, "tanh"), 1e-6, -0.0454023, 0, 2.9963627);
		assert_fails(!tensor_gelu_opt(x, "sigmoid"), EINVAL, "approximate");
		assert_fails(!tensor_softshrink(x, S(-1)), EINVAL, "lambd");
		assert_fails(!tensor_celu(x, S(0)), EDOM, "alpha");
		assert_fails(!tensor_polygamma(-1, x), EINVAL, "n must be");
		assert_fails(!tensor_gelu(VD(TENSOR_I32, 1)), EOPNOTSUPP, "i32");
	}
}

static void assert_complex(tensor *t, double _Complex want)
{
	const double *v = tensor_data(ok(t));

	assert_int_equal(tensor_dtype(t), TENSOR_C128);
	assert_true(fabs(v[0] - creal(want)) < 1e-14 && fabs(v[1] - cimag(want)) < 1e-14);
}

static void complex_functions_give_known_values(void **state)
{
	double _Complex z = CMPLX(0.6, -1.3), w = CMPLX(-0.2, 0.4);

	tensor_scope {
		tensor *a = tensor_from_data(&z, TENSOR_INTS(1), OF(TENSOR_C128));
		tensor *b = tensor_from_data(&w, TENSOR_INTS(1), OF(TENSOR_C128));

		assert_complex(tensor_exp(a), cexp(z));
		assert_complex(tensor_log(a), clog(z));
		assert_complex(tensor_sqrt(a), csqrt(z));
		assert_complex(tensor_sin(a), csin(z));
		assert_complex(tensor_acosh(a), cacosh(z));
		assert_complex(tensor_atanh(a), catanh(z));
		assert_complex(tensor_log1p(b), clog(1 + w));
		assert_complex(tensor_expm1(b), cexp(w) - 1);
		assert_complex(tensor_pow(a, b), cpow(z, w));
		assert_complex(tensor_div(a, b), z / w);
		assert_complex(tensor_reciprocal(a), 1 / z);
		assert_complex(tensor_sgn(a), z / cabs(z));
		assert_complex(tensor_conj_physical(a), conj(z));
		assert_complex(tensor_lerp_scalar(a, b, S(0.25)), z + 0.25 * (w - z));
		assert_values(tensor_abs(a), 1e-15, cabs(z));
		assert_values(tensor_angle(a), 1e-15, carg(z));
		assert_int_equal(tensor_dtype(tensor_abs(a)), TENSOR_F64);
		assert_fails(!tensor_abs_(a), EINVAL, "real");
		assert_fails(!tensor_maximum(a, b), EOPNOTSUPP, "c128");
		assert_fails(!tensor_lt(a, b), EOPNOTSUPP, "c128");
	}
}

static void in_place_and_out_forms_agree(void **state)
{
	tensor_scope {
		tensor *x = V(0.25, 4, 9), *out = tensor_empty(TENSOR_INTS(0), F64);

		assert_ptr_equal(tensor_sqrt_(x), x);
		assert_values(x, 0, 0.5, 2, 3);
		assert_ptr_equal(tensor_eq_scalar_(x, S(2)), x);
		assert_values(x, 0, 0, 1, 0);
		assert_ptr_equal(tensor_pow_scalar_out(out, V(2, 3), S(2)), out);
		assert_values(out, 0, 4, 9);
		assert_ptr_equal(tensor_clamp_(out, S(5), S(6)), out);
		assert_values(out, 0, 5, 6);
		assert_fails(!tensor_sin_(VD(TENSOR_I32, 1)), EINVAL, "cannot be stored in i32");
		assert_fails(!tensor_addcmul_(V(1), V(1, 2), V(1, 2)), EINVAL, "shape");
		assert_values(tensor_sin(tensor_empty(TENSOR_INTS(0, 3), F32)), 0);
	}
}

static void sub_uses_both_parts_of_a_complex_alpha(void **state)
{
	tensor_scope {
		tensor *one = ok(tensor_ones(TENSOR_SHAPE(1), TENSOR_OPTIONS(.dtype = TENSOR_C64)));
		tensor *t = ok(tensor_sub_opt(one, one, tensor_scalar_complex(2, 3)));

		assert_values(tensor_real(t), 0, -1);
		assert_values(tensor_imag(t), 0, -3);
	}
}

/* If the imaginary part is not finite, only the real part determines the result. */
static void complex_expm1_of_infinities(void **state)
{
	const double in[] = { -INFINITY, INFINITY,  -INFINITY, NAN, -INFINITY, 2,
			      INFINITY,	 -INFINITY, INFINITY,  NAN, INFINITY,  0,
			      -0.0,	 0,	    1,	       NAN };
	const enum tensor_dtype dtypes[] = { TENSOR_C64, TENSOR_C128 };

	for (int d = 0; d < 2; d++)
		tensor_scope {
			tensor *x = ok(
				tensor_to(ok(tensor_from_data(in, TENSOR_INTS(8), OF(TENSOR_C128))),
					  OF(dtypes[d])));
			tensor *parts = ok(tensor_view_as_real(ok(tensor_expm1(x))));

			assert_values(parts, 2e-7, -1, 0, -1, 0, -1, 0, INFINITY, NAN, INFINITY,
				      NAN, INFINITY, 0, 0, 0, NAN, NAN);
			assert_values(ok(tensor_signbit(ok(tensor_select(parts, 0, 6)))), 0, 0, 0);
		}
}

static void complex_rounding_rounds_each_part(void **state)
{
	const double in[] = { 0.5, 1.5, -2.5, -0.2, 1e300, NAN };
	const enum tensor_dtype dtypes[] = { TENSOR_C64, TENSOR_C128 };

	for (int d = 0; d < 2; d++)
		tensor_scope {
			tensor *x = ok(
				tensor_to(ok(tensor_from_data(in, TENSOR_INTS(3), OF(TENSOR_C128))),
					  OF(dtypes[d])));

			assert_values(ok(tensor_view_as_real(ok(tensor_round(x)))), 0, 0, 2, -2, 0,
				      d ? 1e300 : INFINITY, NAN);
			assert_fails(!tensor_floor(x), EOPNOTSUPP, "c");
		}
}

/* The sign of the imaginary part's zero is that of its sine, not of the sine of twice it. */
static void complex_tanh_of_infinities_keeps_the_sign(void **state)
{
	const double in[] = { INFINITY, 2, INFINITY, -2, -INFINITY, 2, INFINITY, 1e154 };

	tensor_scope {
		tensor *x = ok(tensor_from_data(in, TENSOR_INTS(4), OF(TENSOR_C128)));
		tensor *parts = ok(tensor_view_as_real(ok(tensor_tanh(x))));

		assert_values(parts, 0, 1, 0, 1, 0, -1, 0, 1, 0);
		assert_values(ok(tensor_signbit(ok(tensor_select(parts, 1, 1)))), 0, 0, 1, 0, 0);
	}
}

/*
 * The quotient is rounded once, by a division or by a reciprocal and its correction; no intermediate product is out of
 * range.
 */
static void hardsigmoid_and_hardswish_round_the_quotient_correctly(void **state)
{
	enum { COUNT = 60001 };
	static float in[COUNT];
	double item;

	for (int i = 0; i < COUNT; i++)
		in[i] = (float)(i - COUNT / 2) / (COUNT / 6);
	tensor_scope {
		tensor *x = ok(tensor_from_data(in, TENSOR_INTS(COUNT), OF(TENSOR_F32)));
		tensor *wide = ok(tensor_to(x, F64));
		tensor *narrow_result = ok(tensor_hardsigmoid(x));
		tensor *wide_result = ok(tensor_hardsigmoid(wide));
		const float *out = tensor_data(narrow_result);
		const double *out64 = tensor_data(wide_result);

		for (int i = 0; i < COUNT; i++) {
			float sum = in[i] + 3;

			assert_true(out[i] == fminf(fmaxf(sum, 0), 6) / 6);
			assert_true(out64[i] == fmin(fmax((double)in[i] + 3, 0), 6) / 6);
		}
		assert_values(ok(tensor_hardswish(V(-4, -3, 0, 3, 4, INFINITY))), 0, 0, 0, 0, 3, 4,
			      INFINITY);
		assert_done(tensor_item(ok(tensor_hardswish(V(NAN))), &item));
		assert_true(isnan(item));
		assert_done(tensor_item(ok(tensor_hardswish(V(0x1p127))), &item));
		assert_true(item == 0x1p127);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_agree_with_the_c_library_in_every_layout),
		cmocka_unit_test(limits_of_ranges_give_known_values),
		cmocka_unit_test(quotients_and_remainders_give_known_values),
		cmocka_unit_test(pow_and_bit_operators_give_known_values),
		cmocka_unit_test(selections_give_known_values),
		cmocka_unit_test(activations_with_parameters_give_known_values),
		cmocka_unit_test(complex_functions_give_known_values),
		cmocka_unit_test(in_place_and_out_forms_agree),
		cmocka_unit_test(sub_uses_both_parts_of_a_complex_alpha),
		cmocka_unit_test(complex_expm1_of_infinities),
		cmocka_unit_test(complex_rounding_rounds_each_part),
		cmocka_unit_test(complex_tanh_of_infinities_keeps_the_sign),
		cmocka_unit_test(hardsigmoid_and_hardswish_round_the_quotient_correctly),
	};

	return cmocka_run_group_tests_name("elementwise", tests, NULL, NULL);
}
