// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * exp, expm1, log, log2, log10, sqrt, log1p, tanh, erf, sin, cos and atan of f64 at millions of points, against the long double
 * functions of the C library, whose own error is below 1/1000 ulp of an f64. The largest errors are printed.
 */
#include "check.h"

#include <float.h>

#define POINTS (1 << 20)

static const struct function {
	const char *name;
	tensor *(*op)(tensor *);
	long double (*want)(long double);
	double low, high; /* the range in which the function is neither constant nor infinite */
	double most;	  /* error in ulp */
} functions[] = {
	{ "exp", tensor_exp, expl, -745.2, 709.79, 1 },
	/* 0.93 with multiply-add instructions, which GCC does not use with -O1. */
	{ "expm1", tensor_expm1, expm1l, -37.5, 709.79, 1.1 },
	{ "log", tensor_log, logl, 0, 1e4, 1 },
	{ "log2", tensor_log2, log2l, 0, 1e4, 1 },
	{ "log10", tensor_log10, log10l, 0, 1e4, 1 },
	{ "sqrt", tensor_sqrt, sqrtl, 0, 1e4, 0.5001 },
	{ "log1p", tensor_log1p, log1pl, -1, 1e4, 1 },
	{ "tanh", tensor_tanh, tanhl, -19.2, 19.2, 1.01 },
	{ "erf", tensor_erf, erfl, -6.1, 6.1, 1 },
	{ "sin", tensor_sin, sinl, -1000, 1000, 1 },
	{ "cos", tensor_cos, cosl, -1000, 1000, 1 },
	{ "atan", tensor_atan, atanl, -20, 20, 1 },
};

/* |have - want| in units of the last place of want as an f64. */
static double ulps(double have, long double want)
{
	int e;

	if (isnan(want) || isinf((double)want) || have == (double)want)
		return (isnan(want) && isnan(have)) || have == (double)want ? 0 : INFINITY;
	frexpl(want, &e);
	e = e < -1021 ? -1021 : e;
	return (double)fabsl(ldexpl(have - want, 53 - e));
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Point i: uniform in the range, small, of any exponent and sign, near 1, or near 0 or 1 by a power of two, in turn. */
static double point(const struct function *f, uint64_t *state, int i)
{
	double part = (double)(next(state) >> 11) * 0x1p-53, x;
	uint64_t bits = next(state);

	switch (i % 5) {
	case 0:
		return f->low + (f->high - f->low) * part;
	case 1:
		return (2 * part - 1) * (f->low < 0 ? 1 : -1) * 2;
	case 2:
		memcpy(&x, &bits, sizeof(x));
		return x;
	case 3:
		return 0.5 + part;
	default: /* where log1p rounds more than once if its parts are added carelessly */
		return (f->low == 0) + ldexp(2 * part - 1, -(int)(bits % 40));
	}
}

static void compare(const struct function *f, uint64_t seed)
{
	double *x = malloc(POINTS * sizeof(*x)), worst = 0, at = 0;

	for (int i = 0; i < POINTS; i++)
		x[i] = point(f, &seed, i);
	tensor_scope {
		tensor *in = ok(tensor_from_data(x, TENSOR_INTS(POINTS), F64));
		const double *y = tensor_data(ok(f->op(in)));

		for (int i = 0; i < POINTS; i++) {
			double e = ulps(y[i], f->want(x[i]));

			if (e > worst) {
				worst = e;
				at = x[i];
			}
		}
	}
	free(x);
	print_message("%s: largest error %.4f ulp at %a\n", f->name, worst, at);
	if (!(worst <= f->most))
		fail_msg("%s(%a) is wrong by %.4f ulp", f->name, at, worst);
}

static void errors_are_below_one_ulp(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(functions); k++)
		compare(functions + k, 0x9e3779b97f4a7c15);
}

/* Also the neighbours of the values at which the functions change their formulas. */
static void special_values_are_exact(void **state)
{
	static const double special[] = { 0,
					  INFINITY,
					  NAN,
					  DBL_MIN,
					  DBL_MAX,
					  0x1p-1074,
					  0x1p-1060,
					  1,
					  0.5,
					  2,
					  709.782712893384,
					  709.782712893385,
					  745.133219101941,
					  745.1332191019412,
					  708.3964185322641,
					  19.06,
					  19.1,
					  5.93,
					  5.95,
					  0.375,
					  0.25,
					  40,
					  720,
					  760,
					  1e5,
					  0x1p52,
					  M_PI,
					  M_PI_2,
					  M_PI / 32,
					  355,
					  0x1p30,
					  0x1p30 + 1 };
	double x[ARRAY_SIZE(special) * 6];
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		for (int k = -1; k <= 1; k++) {
			x[n] = k ? nextafter(special[i], k * INFINITY) : special[i];
			x[n + 1] = -x[n];
			n += 2;
		}
	for (size_t k = 0; k < ARRAY_SIZE(functions); k++)
		tensor_scope {
			tensor *in = ok(tensor_from_data(x, TENSOR_INTS(n), F64));
			const double *y = tensor_data(ok(functions[k].op(in)));

			for (int i = 0; i < n; i++) {
				long double want = functions[k].want(x[i]);

				if (!(ulps(y[i], want) <= 1) ||
				    (want == 0 && !signbit(y[i]) != !signbit(want)))
					fail_msg("%s(%a) is %a, expected %La", functions[k].name,
						 x[i], y[i], want);
			}
		}
}

/* Each length has a different part of a vector at its end. */
static void short_tensors_agree_with_long_ones(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(functions); k++)
		for (int64_t n = 1; n < 20; n++)
			tensor_scope {
				tensor *x = tensor_mul_scalar(iota(1, TENSOR_INTS(64)), S(0.11));
				tensor *all = ok(functions[k].op(tensor_to(x, F64)));
				tensor *some = ok(
					functions[k].op(tensor_to(tensor_narrow(x, 0, 7, n), F64)));

				assert_memory_equal((double *)tensor_data(all) + 7,
						    tensor_data(some), n * sizeof(double));
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_are_below_one_ulp),
		cmocka_unit_test(special_values_are_exact),
		cmocka_unit_test(short_tensors_agree_with_long_ones),
	};

	return cmocka_run_group_tests_name("math_f64", tests, NULL, NULL);
}
