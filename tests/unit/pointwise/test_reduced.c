// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operators on f16 and bf16 of any layout: the result in f32, rounded once. */
#include "check.h"

static const enum tensor_dtype dtypes[] = { TENSOR_BF16, TENSOR_F16 };

static tensor *add_number(tensor *x, tensor *y)
{
	return tensor_add_scalar(x, S(0.7));
}

static tensor *number_minus(tensor *x, tensor *y)
{
	return tensor_rsub_scalar(x, S(0.7), S(1));
}

static tensor *relu_of(tensor *x, tensor *y)
{
	return tensor_relu(x);
}

static tensor *sqrt_of(tensor *x, tensor *y)
{
	return tensor_sqrt(x);
}

static tensor *floor_of(tensor *x, tensor *y)
{
	return tensor_floor(x);
}

static tensor *addcmul_of(tensor *x, tensor *y)
{
	return tensor_addcmul(x, y, x);
}

static tensor *lerp_of(tensor *x, tensor *y)
{
	return tensor_lerp_scalar(x, y, S(0.375));
}

static tensor *(*const operators[])(tensor *, tensor *) = {
	tensor_add,   tensor_sub, tensor_mul, tensor_div, tensor_maximum,
	tensor_eq,    tensor_lt,  tensor_ge,  add_number, relu_of,
	number_minus, sqrt_of,	  floor_of,   addcmul_of, lerp_of,
};

/* Numbers of the dtype, with infinities and NaN, in one of several layouts. */
static tensor *numbers(enum tensor_dtype dtype, int kind)
{
	static const float special[] = { INFINITY, -INFINITY, NAN, -0.0f, 1e-7f, 60000 };
	tensor *t = ok(tensor_randn(kind == 1 ? TENSOR_INTS(53, 37) : TENSOR_INTS(37, 53), F32));
	float *v = tensor_mutable_data(t);

	for (size_t i = 0; i < 30; i++)
		v[i * 61 % (37 * 53)] = special[i % ARRAY_SIZE(special)];
	t = ok(tensor_to(t, OF(dtype)));
	if (kind == 1)
		return tensor_t(t);
	if (kind == 2)
		return tensor_expand(tensor_narrow(t, 0, 3, 1), TENSOR_INTS(37, 53));
	return kind == 3 ? tensor_expand(tensor_narrow(t, 1, 3, 1), TENSOR_INTS(37, 53)) : t;
}

static void assert_equal_or_nan(tensor *got, tensor *want)
{
	tensor *differ = ok(tensor_ne(got, want));
	tensor *number = ok(tensor_logical_not(
		ok(tensor_logical_and(ok(tensor_isnan(got)), ok(tensor_isnan(want))))));
	double n;

	assert_done(tensor_item(ok(tensor_sum(ok(tensor_logical_and(differ, number)))), &n));
	assert_true(n == 0);
}

static void operators_of_reduced_floats_round_once(void **state)
{
	for (size_t f = 0; f < ARRAY_SIZE(operators); f++)
		for (int k = 0; k < 32; k++)
			tensor_scope {
				enum tensor_dtype dtype = dtypes[k / 16];
				tensor *x = numbers(dtype, k % 4), *y = numbers(dtype, k / 4 % 4);
				tensor *got = ok(operators[f](x, y)), *want;

				want = ok(
					operators[f](ok(tensor_to(x, F32)), ok(tensor_to(y, F32))));
				assert_equal_or_nan(got,
						    ok(tensor_to(want, OF(tensor_dtype(got)))));
			}
}

/* Sums of all bits, those of NaN too, in rows that fill vectors and in shorter ones. */
static void bits_of_nan_do_not_depend_on_the_length_of_a_row(void **state)
{
	enum { ALL = 1 << 16, SHORT = 8 };

	for (int k = 0; k < 2; k++)
		tensor_scope {
			tensor *x = ok(tensor_to(ok(tensor_arange(S(ALL), OF(TENSOR_I64))),
						 OF(TENSOR_I16))),
			       *y, *all;

			x = ok(tensor_view_dtype(x, dtypes[k]));
			y = ok(tensor_flip(x, TENSOR_INTS(0)));
			all = ok(tensor_add(x, y));
			for (int64_t i = 0; i < ALL; i += SHORT)
				tensor_scope {
					tensor *part =
						ok(tensor_add(ok(tensor_narrow(x, 0, i, SHORT)),
							      ok(tensor_narrow(y, 0, i, SHORT))));

					assert_memory_equal(tensor_data(part),
							    (const uint16_t *)tensor_data(all) + i,
							    SHORT * 2);
				}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_of_reduced_floats_round_once),
		cmocka_unit_test(bits_of_nan_do_not_depend_on_the_length_of_a_row),
	};

	return cmocka_run_group_tests_name("reduced", tests, NULL, NULL);
}
