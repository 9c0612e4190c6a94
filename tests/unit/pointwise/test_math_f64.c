// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * exp, expm1, log, log2, log10, sqrt, log1p, tanh, erf, erfc, sin, cos, tan, asin, acos and atan of f64 at half a million points each, against
 * the long double functions of the C library, whose own error is below 1/1000 ulp of an f64. The largest errors are printed. erfinv,
 * digamma and polygamma, which it lacks, by what they are the inverse of, and by known values.
 */
#include "check.h"

#include <float.h>

#define POINTS (1 << 19)

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
	{ "tan", tensor_tan, tanl, -1000, 1000, 1 },
	{ "asin", tensor_asin, asinl, -1, 1, 1 },
	{ "acos", tensor_acos, acosl, -1, 1, 1 },
	{ "atan", tensor_atan, atanl, -20, 20, 1 },
	/* 1.5 with AVX-512, 2.3 with AVX2. */
	{ "erfc", tensor_erfc, erfcl, -6, 27.3, 2.4 },
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
					  0x1p30 + 1,
					  27.226017111108363,
					  27.3,
					  26.5,
					  6 };
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

				if (!(ulps(y[i], want) <= fmax(functions[k].most, 1)) ||
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

static tensor *trigamma(tensor *x)
{
	return tensor_polygamma(1, x);
}

static tensor *polygamma_2(tensor *x)
{
	return tensor_polygamma(2, x);
}

static tensor *polygamma_4(tensor *x)
{
	return tensor_polygamma(4, x);
}

static tensor *polygamma_10(tensor *x)
{
	return tensor_polygamma(10, x);
}

static tensor *polygamma_12(tensor *x)
{
	return tensor_polygamma(12, x);
}

static tensor *polygamma_25(tensor *x)
{
	return tensor_polygamma(25, x);
}

static tensor *polygamma_100(tensor *x)
{
	return tensor_polygamma(100, x);
}

static tensor *polygamma_2_30(tensor *x)
{
	return tensor_polygamma(1 << 30, x);
}

static const struct known {
	tensor *(*op)(tensor *);
	double x, y;
} known[] = {
	{ tensor_digamma, 1, -0.57721566490153287 },
	{ tensor_digamma, 0.5, -1.9635100260214235 },
	{ tensor_digamma, 9.75, 2.225109535044576 },
	{ tensor_digamma, 1e10, 23.025850929890456 },
	{ tensor_digamma, 1e-300, -1e300 },
	{ tensor_digamma, -0.5, 0.03648997397857652 },
	{ tensor_digamma, -2, NAN },
	{ tensor_digamma, 0, -INFINITY },
	{ tensor_digamma, -0.0, INFINITY },
	{ tensor_digamma, INFINITY, INFINITY },
	{ tensor_digamma, NAN, NAN },
	{ trigamma, 1, 1.6449340668482264 },
	{ trigamma, 0.5, 4.934802200544679 },
	{ trigamma, 12.5, 0.08328522460157837 },
	{ trigamma, 1e-10, 1e20 },
	{ trigamma, 1e10, 1.00000000005e-10 },
	{ trigamma, -0.5, 8.934802200544679 },
	{ trigamma, INFINITY, 0 },
	{ trigamma, NAN, NAN },
	{ polygamma_2, 1, -2.4041138063191886 },
	{ polygamma_2, 0.5, -16.828796644234320 },
	/* Near 10, where a series that is short for the order has its greatest errors. */
	{ polygamma_2, 10, -0.011049834970802067 },
	{ polygamma_4, 10, -0.00072993116823528663 },
	{ polygamma_4, -20.25, 24481.57475051974 },
	{ polygamma_10, 10.5, -3.4696555222805556e-05 },
	{ polygamma_12, 0.75, -20162654429.043862 },
	{ polygamma_12, 11, -2.0985133815587929e-05 },
	{ polygamma_25, 1, 1.5511210274472133e25 },
	{ polygamma_25, -3.5, 2.0818793705474855e33 },
	{ polygamma_100, 10, -9.3332373004790847e56 },
	/* The factorial is infinite, all powers are 0, and few of them are added. */
	{ polygamma_2_30, 200, NAN },
	{ tensor_erfinv, 0.5, 0.47693627620446987 },
	{ tensor_erfinv, -0.999, -2.3267537655135246 },
	{ tensor_erfinv, 0.99999999, 4.0522372432687634 },
	{ tensor_erfinv, 1e-300, 8.862269254527580e-301 },
	{ tensor_erfinv, 1, INFINITY },
	{ tensor_erfinv, -1, -INFINITY },
	{ tensor_erfinv, 1.5, NAN },
	{ tensor_erfinv, NAN, NAN },
};

/* A tensor of 19 numbers that are x or usual ones, with x at each place. */
static void known_values_do_not_depend_on_neighbours(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(known); k++)
		for (int place = 0; place < 19; place++)
			tensor_scope {
				double x[19], y;

				for (int i = 0; i < 19; i++)
					x[i] = i == place ? known[k].x : 0.05 * (i + 1);
				y = ((const double *)tensor_data(ok(known[k].op(
					ok(tensor_from_data(x, TENSOR_INTS(19), F64))))))[place];
				if (isfinite(known[k].y) ?
					    !(fabs(y - known[k].y) <= 1e-14 * fabs(known[k].y)) :
					    !(y == known[k].y || (isnan(y) && isnan(known[k].y))))
					fail_msg("row %zu at %d is %.17g, expected %.17g", k, place,
						 y, known[k].y);
			}
}

/* erf(erfinv(x)) - x, divided by the derivative, is the error; near 1, erfc and 1 - x take their places. */
static void erfinv_is_the_inverse_of_erf(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;
	double *x = malloc(POINTS / 4 * sizeof(*x)), worst = 0, at = 0;

	for (int i = 0; i < POINTS / 4; i++) {
		x[i] = (double)(next(&seed) >> 11) * 0x1p-53;
		if (i % 3 == 1)
			x[i] = 1 - ldexp(x[i] / 2 + 0.5, -(int)(next(&seed) % 53));
		if (i % 3 == 2)
			x[i] = ldexp(x[i], -(int)(next(&seed) % 60));
	}
	tensor_scope {
		const double *y = tensor_data(
			ok(tensor_erfinv(ok(tensor_from_data(x, TENSOR_INTS(POINTS / 4), F64)))));

		for (int i = 0; i < POINTS / 4; i++) {
			long double miss = x[i] < 0.5 ? erfl(y[i]) - x[i] :
							(1 - x[i]) - erfcl(y[i]);
			long double error =
				miss * expl((long double)y[i] * y[i]) * 0.886226925452758013649L;
			double e = fabs((double)(error / y[i])) * 0x1p53;

			if (x[i] > 0 && x[i] < 1 && !(e <= worst)) {
				worst = e;
				at = x[i];
			}
		}
	}
	free(x);
	print_message("erfinv: largest error %.4f half units at %a\n", worst, at);
	assert_true(worst <= 4); /* 3 without multiply-add instructions, else 2 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_are_below_one_ulp),
		cmocka_unit_test(special_values_are_exact),
		cmocka_unit_test(short_tensors_agree_with_long_ones),
		cmocka_unit_test(known_values_do_not_depend_on_neighbours),
		cmocka_unit_test(erfinv_is_the_inverse_of_erf),
	};

	return cmocka_run_group_tests_name("math_f64", tests, NULL, NULL);
}
