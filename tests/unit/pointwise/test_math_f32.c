// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * exp, expm1, log, log2, log10, tanh, sqrt, sin, cos, tan, asin, acos, atan and erfc of f32 at points of all exponents, against the
 * C library's double function, and at the ends of their pieces.
 */
#include "check.h"

#include <float.h>

#define POINTS (1 << 18)

static const struct function {
	const char *name;
	tensor *(*op)(tensor *);
	double (*want)(double);
	double most; /* error in ulp */
} functions[] = { { "exp", tensor_exp, exp, 0.95 },	 { "expm1", tensor_expm1, expm1, 1.1 },
		  { "log", tensor_log, log, 0.85 },	 { "log2", tensor_log2, log2, 1 },
		  { "log10", tensor_log10, log10, 1 },	 { "tanh", tensor_tanh, tanh, 1.4 },
		  { "sqrt", tensor_sqrt, sqrt, 0.5001 }, { "sin", tensor_sin, sin, 0.9 },
		  { "cos", tensor_cos, cos, 0.9 },	 { "atan", tensor_atan, atan, 1 },
		  { "tan", tensor_tan, tan, 1 },	 { "asin", tensor_asin, asin, 0.95 },
		  { "acos", tensor_acos, acos, 0.9 },	 { "erfc", tensor_erfc, erfc, 1.6 } };

/* |have - want| in units of the last place of want as an f32. */
static double ulps(float have, double want)
{
	int e;

	if (isnan(want) || have == (float)want)
		return !isnan(want) || isnan(have) ? 0 : INFINITY;
	frexp(want, &e);
	e = e < -125 ? -125 : e;
	return fabs(ldexp((double)have - want, 24 - e));
}

static void compare_one(const struct function *f, tensor *x)
{
	const float *in = tensor_data(x), *y = tensor_data(ok(f->op(x)));

	for (int64_t i = 0; i < tensor_numel(x); i++) {
		double want = f->want((double)in[i]);

		if (!(ulps(y[i], want) <= f->most) ||
		    (!isnan(want) && !signbit(y[i]) != !signbit(want)))
			fail_msg("%s(%a) is %a, expected %a", f->name, (double)in[i], (double)y[i],
				 want);
	}
}

static void compare(const float *x, int64_t n)
{
	for (size_t k = 0; k < ARRAY_SIZE(functions); k++)
		tensor_scope
			compare_one(functions + k, ok(tensor_from_data(x, TENSOR_INTS(n), F32)));
}

/* Numbers of both signs at equal distances in their bits, infinities and NaN among them; each run begins at another one. */
static void functions_are_exact_to_an_ulp(void **state)
{
	float *x = malloc(POINTS * sizeof(*x));

	for (uint32_t first = 0; first < 4; first++) {
		for (uint32_t i = 0; i < POINTS; i++) {
			uint32_t bits = i * (UINT32_MAX / POINTS + 1) + first * 4099;

			memcpy(&x[i], &bits, sizeof(bits));
		}
		compare(x, POINTS);
	}
	free(x);
}

/* Points near 0 to 10, where tanh changes, are few among those above. */
static void functions_are_exact_near_0(void **state)
{
	float *x = malloc(POINTS * sizeof(*x));

	for (int sign = -1; sign < 2; sign += 2) {
		for (int i = 0; i < POINTS; i++)
			x[i] = (float)(sign * (i + 0.37) * (10. / POINTS));
		compare(x, POINTS);
	}
	free(x);
}

static void special_values_are_exact(void **state)
{
	static const float special[] = {
		0, INFINITY, NAN, FLT_MIN, FLT_MAX, 0x1p-149f, 0.256f, 0.506f, 0.756f, 1.006f,
		2.006f, 3.006f, 5.006f, 7.006f, 9.006f, 9.02f, 9.1f, 0.625f, (float)M_PI,
		(float)M_PI_2, (float)(M_PI / 32), 8192, 355, 0.5f, 1, 10.05f, 10.1f, 0.3125f,
		9.375f,
		/* The remainder of a multiple of pi / 2 is near pi / 4, and its low part the greatest. */
		0x1.2ddf0ep+1f, 0x1.8bd898p+5f, 0x1.4b0bdp+9f
	};
	float x[ARRAY_SIZE(special) * 6];
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		for (int k = -1; k <= 1; k++) {
			float v = k ? nextafterf(special[i], (float)k * INFINITY) : special[i];

			x[n++] = v;
			x[n++] = -v;
		}
	compare(x, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_exact_to_an_ulp),
		cmocka_unit_test(functions_are_exact_near_0),
		cmocka_unit_test(special_values_are_exact),
	};

	return cmocka_run_group_tests_name("math_f32", tests, NULL, NULL);
}
