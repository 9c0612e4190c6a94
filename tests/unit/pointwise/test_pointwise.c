// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Elementwise operators against plain loops: dtypes, strides, broadcasting, in-place and out. */
#include "check.h"

/* The value at a row-major position, read through sizes and strides. */
static double value_at(tensor *t, int64_t flat)
{
	int64_t index[TENSOR_MAX_DIMS];
	double v;

	for (int d = tensor_dim(t) - 1; d >= 0; d--) {
		index[d] = flat % tensor_size(t, d);
		flat /= tensor_size(t, d);
	}
	assert_done(tensor_at(t, (tensor_ints){ index, tensor_dim(t) }, &v));
	return v;
}

/* The same values in several layouts: contiguous, transposed, stepped, expanded. */
static tensor *layout_of(tensor *base, int kind)
{
	switch (kind) {
	case 0:
		return base;
	case 1:
		return tensor_t(tensor_to_copy(tensor_t(base), TENSOR_OPTIONS(0)));
	case 2: {
		tensor *wide = tensor_zeros(TENSOR_INTS(2 * tensor_size(base, 0),
							3 * tensor_size(base, 1)),
					    TENSOR_OPTIONS(.dtype = tensor_dtype(base)));
		tensor *v = tensor_slice(tensor_slice(wide, 0, 0, TENSOR_NONE, 2), 1, 0,
					 TENSOR_NONE, 3);

		return tensor_copy_(v, base);
	}
	default:
		return tensor_expand(tensor_slice(base, 0, 0, 1, 1), tensor_shape(base));
	}
}

static double add(double x, double y)
{
	return x + y;
}
static double sub(double x, double y)
{
	return x - y;
}
static double mul(double x, double y)
{
	return x * y;
}
static double divide(double x, double y)
{
	return x / y;
}
static double eq(double x, double y)
{
	return x == y;
}
static double ne(double x, double y)
{
	return x != y;
}
static double lt(double x, double y)
{
	return x < y;
}
static double le(double x, double y)
{
	return x <= y;
}
static double gt(double x, double y)
{
	return x > y;
}
static double ge(double x, double y)
{
	return x >= y;
}

static const struct binary_row {
	tensor *(*op)(tensor *, tensor *);
	double (*want)(double, double);
} binary_rows[] = {
	{ tensor_add, add }, { tensor_sub, sub }, { tensor_mul, mul }, { tensor_div, divide },
	{ tensor_eq, eq },   { tensor_ne, ne },	  { tensor_lt, lt },   { tensor_le, le },
	{ tensor_gt, gt },   { tensor_ge, ge },
};

static void check_binary(const struct binary_row *row, tensor *a, tensor *b)
{
	tensor_scope {
		tensor *r = ok(row->op(a, b));
		double tol = tensor_dtype(r) == TENSOR_F32 ? 1e-6 : 1e-15;

		for (int64_t i = 0; i < tensor_numel(r); i++) {
			double want = row->want(value_at(a, i), value_at(b, i));
			double got = value_at(r, i);

			if (tensor_dtype(r) == TENSOR_U8)
				want = (uint8_t)(int)want;

			assert_true(got == want || fabs(got - want) <= tol * fabs(want));
		}
	}
}

static void binary_operators_agree_with_plain_loops(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_U8,	TENSOR_I8,  TENSOR_I16, TENSOR_I32,
						    TENSOR_I64, TENSOR_F32, TENSOR_F64 };

	tensor_scope {
		for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++) {
			tensor_options o = { .dtype = dtypes[d] };
			tensor *a = tensor_to(iota(2, TENSOR_INTS(3, 3)), o);
			tensor *b = tensor_to(tensor_t(iota(1, TENSOR_INTS(3, 3))), o);

			for (size_t r = 0; r < ARRAY_SIZE(binary_rows); r++)
				for (int k = 0; k < 16; k++)
					check_binary(&binary_rows[r], ok(layout_of(a, k % 4)),
						     ok(layout_of(k % 4 == 3 ? layout_of(b, 3) : b,
								  k / 4)));
		}
	}
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}
static double relu(double x)
{
	return x < 0 ? 0 : x;
}
static double negate(double x)
{
	return -x;
}

static void unary_operators_agree_with_the_c_library(void **state)
{
	static const struct {
		tensor *(*op)(tensor *);
		double (*want)(double);
	} rows[] = { { tensor_neg, negate }, { tensor_exp, exp },	  { tensor_log, log },
		     { tensor_tanh, tanh },  { tensor_sigmoid, sigmoid }, { tensor_relu, relu } };

	tensor_scope {
		tensor *x = tensor_mul_scalar(tensor_sub_scalar(iota(0, TENSOR_INTS(17, 19)),
								TENSOR_SCALAR(160)),
					      TENSOR_SCALAR(0.13));

		for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
			for (int k = 0; k < 6; k++) {
				tensor *a = tensor_to(layout_of(x, k % 3), k < 3 ? F32 : F64);
				tensor *y = ok(rows[r].op(layout_of(a, k % 3)));
				double tol = k < 3 ? 3e-7 : 1e-15;

				for (int64_t i = 0; i < tensor_numel(y); i += 7) {
					double want = rows[r].want(value_at(a, i));
					double got = value_at(y, i);

					assert_true((isnan(want) && isnan(got)) || got == want ||
						    fabs(got - want) <= tol * fabs(want));
				}
			}
		}
	}
}

static void special_values_follow_ieee(void **state)
{
	static const float in[] = { NAN, INFINITY, -INFINITY, 0.0f, -0.0f };

	tensor_scope {
		tensor *x = tensor_from_data(in, TENSOR_INTS(5), F32);

		assert_values(tensor_exp(x), 0, NAN, INFINITY, 0, 1, 1);
		assert_values(tensor_log(x), 0, NAN, INFINITY, NAN, -INFINITY, -INFINITY);
		assert_values(tensor_tanh(x), 0, NAN, 1, -1, 0, 0);
		assert_values(tensor_relu(x), 0, NAN, INFINITY, 0, 0, 0);
		assert_values(tensor_sigmoid(x), 0, NAN, 1, 0, .5, .5);
		assert_values(tensor_eq(x, x), 0, 0, 1, 1, 1, 1);
		assert_values(tensor_div_scalar(x, TENSOR_SCALAR(0)), 0, NAN, INFINITY, -INFINITY,
			      NAN, NAN);
		/* Integers wrap. */
		assert_values(tensor_add_scalar(tensor_full(TENSOR_INTS(1),
							    TENSOR_SCALAR(INT64_MAX), I64),
						TENSOR_SCALAR(1)),
			      0, (double)INT64_MIN);
	}
}

static void alpha_scales_the_second_operand(void **state)
{
	tensor_scope {
		tensor *a = iota(1, TENSOR_INTS(3)), *i = tensor_to(a, I64);

		assert_values(tensor_add_opt(a, a, TENSOR_SCALAR(0.5)), 0, 1.5, 3, 4.5);
		assert_values(tensor_sub_opt(a, a, TENSOR_SCALAR(3)), 0, -2, -4, -6);
		assert_values(tensor_sub_scalar_opt(i, TENSOR_SCALAR(2), TENSOR_SCALAR(2)), 0, -3,
			      -2, -1);
		assert_fails(!tensor_add_opt(i, i, TENSOR_SCALAR(0.5)), EINVAL, "alpha");
	}
}

static void in_place_and_out_forms_write_to_their_arguments(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3)), *row = tensor_select(a, 0, 0);
		tensor *out = tensor_empty(TENSOR_INTS(0), F64);
		tensor *ints = tensor_to(row, I64);

		assert_ptr_equal(tensor_add_(a, row), a);
		/* row overlaps a: the result is as if row had been copied first. */
		assert_values(a, 0, 0, 2, 4, 3, 5, 7);
		assert_ptr_equal(tensor_mul_out(out, a, a), out);
		assert_shape(out, 2, 3);
		assert_values(out, 0, 0, 4, 16, 9, 25, 49);
		assert_values(tensor_exp_out(out, tensor_zeros(TENSOR_INTS(1), F32)), 0, 1);
		assert_fails(!tensor_add_(row, a), EINVAL, "self has shape [3]");
		assert_fails(!tensor_add_scalar_(ints, TENSOR_SCALAR(0.5)), EINVAL,
			     "f32 cannot be stored in i64");
		assert_fails(!tensor_add_out(tensor_expand(tensor_ones(TENSOR_INTS(1), F32),
							   TENSOR_INTS(3)),
					     row, row),
			     EINVAL, "share memory");
		assert_fails(!tensor_add_out(tensor_t(a), row, row), EINVAL, "view");
	}
}

static void where_selects_and_copy_broadcasts(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 2));
		tensor *c = tensor_gt_scalar(a, TENSOR_SCALAR(1));

		assert_values(
			tensor_where(c, a,
				     tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(-1), F32)),
			0, -1, -1, 2, 3);
		assert_values(tensor_copy_(a, tensor_arange(TENSOR_SCALAR(2), I64)), 0, 0, 1, 0, 1);
		/* Overlapping views of one storage, as if through a temporary. */
		a = iota(0, TENSOR_INTS(4));
		assert_values(tensor_copy_(tensor_slice(a, 0, 1, 4, 1),
					   tensor_slice(a, 0, 0, 3, 1)),
			      0, 0, 1, 2);
		assert_fails(!tensor_where(a, a, a), EINVAL, "must be bool");
		assert_fails(!tensor_copy_(a, tensor_ones(TENSOR_INTS(3), F32)), EINVAL,
			     "broadcast");
	}
}

static void dtypes_without_a_kernel_are_refused(void **state)
{
	tensor_scope {
		tensor *c = ok(tensor_ones(TENSOR_INTS(2), TENSOR_OPTIONS(.dtype = TENSOR_C64)));
		tensor *b = ok(tensor_ones(TENSOR_INTS(2), TENSOR_OPTIONS(.dtype = TENSOR_BOOL)));

		assert_fails(!tensor_lt(c, c), EOPNOTSUPP, "no kernel for dtype c64");
		assert_fails(!tensor_neg(b), EOPNOTSUPP, "no kernel for dtype bool");
		assert_fails(!tensor_sub(b, b), EOPNOTSUPP, "no kernel for dtype bool");
	}
}

static void large_results_are_the_same_on_any_number_of_threads(void **state)
{
	const int64_t n = 1 << 20;
	float *one = malloc(n * 4), *two = malloc(n * 4);
	int before = tensor_get_num_threads();

	tensor_scope {
		tensor *a = tensor_view(tensor_arange(TENSOR_SCALAR((double)n), F32),
					TENSOR_INTS(1024, 1024));

		for (int k = 0; k < 2; k++) {
			float *to = k ? two : one;

			assert_done(tensor_set_num_threads(k + 1));
			assert_done(
				tensor_copy_to(tensor_tanh(tensor_add(a, tensor_t(a))), to, n * 4));
		}
	}
	assert_memory_equal(one, two, n * 4);
	assert_done(tensor_set_num_threads(before));
	assert_fails(tensor_set_num_threads(0), EINVAL, "1 to 256");
	free(one);
	free(two);
}

/* Each of the four products is rounded, without FMA, at all levels of instructions. */
static void complex_products_have_the_bits_of_four_products(void **state)
{
	enum { N = 1000 };
	float x[N][2], y[N][2];

	for (int i = 0; i < N; i++)
		for (int k = 0; k < 2; k++) {
			x[i][k] = (float)sin(3 * i + k);
			y[i][k] = (float)cos(5 * i + 2 * k);
		}
	tensor_scope {
		tensor *a =
			tensor_from_data(x, TENSOR_INTS(N), TENSOR_OPTIONS(.dtype = TENSOR_C64));
		tensor *b =
			tensor_from_data(y, TENSOR_INTS(N), TENSOR_OPTIONS(.dtype = TENSOR_C64));
		const float(*got)[2] = tensor_data(ok(tensor_mul(a, b)));

		for (int i = 0; i < N; i++) {
			volatile float rr = x[i][0] * y[i][0], ii = x[i][1] * y[i][1];
			volatile float ri = x[i][0] * y[i][1], ir = x[i][1] * y[i][0];

			assert_true(got[i][0] == rr - ii && got[i][1] == ri + ir);
		}
	}
}

static void gelu_equals_x_times_the_normal_cdf(void **state)
{
	static const float far[] = { 0, 40, -40, -0.0f, NAN };

	tensor_scope {
		tensor *x = tensor_mul_scalar(tensor_sub_scalar(iota(0, TENSOR_INTS(2400)),
								TENSOR_SCALAR(1200)),
					      TENSOR_SCALAR(.005));
		tensor *y = ok(tensor_gelu(x)),
		       *h = tensor_to(x, TENSOR_OPTIONS(.dtype = TENSOR_BF16));
		tensor *half = ok(tensor_gelu(h)),
		       *edge = tensor_from_data(far, TENSOR_INTS(5), F32);
		const float *last = tensor_data(ok(edge = tensor_gelu(edge)));

		for (int64_t i = 0; i < 2400; i++) {
			double a = value_at(x, i), b = value_at(h, i);
			double one = a * erfc(-a * M_SQRT1_2) / 2,
			       two = b * erfc(-b * M_SQRT1_2) / 2;

			assert_true(fabs(value_at(y, i) - one) <= 3e-6 * fabs(one) + 2e-8);
			assert_true(fabs(value_at(half, i) - two) <= fabs(two) / 250 + 2e-8);
		}
		assert_true(last[1] == 40 && last[2] == 0 && last[3] == 0 && signbit(last[3]));
		assert_true(isnan(last[4]));
	}
}

/* ---- scalar arguments ---- */

/*
 * Otherwise it would be dropped silently. A scalar operand beside a tensor makes the result
 * complex.
 */
static void imaginary_part_of_a_real_argument_is_refused(void **state)
{
	const tensor_scalar i = tensor_scalar_complex(1, 2), real = tensor_scalar_complex(2, 0);

	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2)), *refused[] = {
			tensor_fill_(x, i),
			tensor_add_opt(x, x, i),
			tensor_sub_scalar_opt(x, TENSOR_SCALAR(1), i),
			tensor_lerp_scalar(x, x, i),
			tensor_addcmul_opt(x, x, x, i),
			tensor_addcdiv_opt(x, x, x, i),
			tensor_leaky_relu(x, i),
			tensor_threshold(x, i, TENSOR_SCALAR(1)),
			tensor_threshold(x, TENSOR_SCALAR(1), i),
			tensor_softplus(x, TENSOR_SCALAR(1), i),
			tensor_hardshrink(x, i),
			tensor_elu(x, TENSOR_SCALAR(1), TENSOR_SCALAR(1), i),
			tensor_hardtanh(x, i, TENSOR_SCALAR(3)),
			tensor_scatter_value(x, 0, ok(tensor_zeros(TENSOR_INTS(1), I64)), i),
		};

		for (size_t k = 0; k < ARRAY_SIZE(refused); k++)
			assert_null(refused[k]);
		assert_fails(!tensor_fill_(x, i), EINVAL, "complex scalar");
		assert_values(x, 0, 1, 2);
		assert_values(tensor_lerp_scalar(x, x, real), 0, 1, 2);
		assert_int_equal(tensor_dtype(ok(tensor_mul_scalar(x, i))), TENSOR_C64);
		assert_int_equal(tensor_dtype(ok(tensor_eq_scalar(x, i))), TENSOR_BOOL);
	}
}

static void pow_of_bool_is_bool(void **state)
{
	tensor_scope {
		tensor *b = ok(
			tensor_to(iota(0, TENSOR_INTS(2)), TENSOR_OPTIONS(.dtype = TENSOR_BOOL)));
		tensor *one = ok(tensor_pow_scalar(b, tensor_scalar_bool(true)));
		tensor *zero = ok(tensor_pow_scalar(b, tensor_scalar_bool(false)));

		assert_int_equal(tensor_dtype(one), TENSOR_BOOL);
		assert_values(one, 0, 0, 1);
		assert_values(zero, 0, 1, 1);
		assert_values(tensor_pow_scalar(b, tensor_scalar_int(2)), 0, 0, 1);
		assert_fails(!tensor_pow(b, b), EOPNOTSUPP, "bool");
		assert_values(tensor_pow_scalar_(b, tensor_scalar_bool(false)), 0, 1, 1);
	}
}

/* 0.1, 0.7 and 257 are not numbers of bf16, 0.7 is none of f16: the element is the nearest one. */
static void reduced_floats_equal_the_number_that_they_were_made_of(void **state)
{
	const double values[] = { 0.1, 0.7, 257, -0.2, 1 };
	const enum tensor_dtype dtypes[] = { TENSOR_BF16, TENSOR_F16, TENSOR_F32 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values) * ARRAY_SIZE(dtypes); i++)
		tensor_scope {
			tensor_scalar s = S(values[i % ARRAY_SIZE(values)]);
			tensor *x = ok(tensor_full(TENSOR_SHAPE(1), s,
						   OF(dtypes[i / ARRAY_SIZE(values)])));

			assert_values(ok(tensor_to(tensor_eq_scalar(x, s), F64)), 0, 1);
			assert_values(ok(tensor_to(tensor_ne_scalar(x, s), F64)), 0, 0);
			assert_values(ok(tensor_to(tensor_lt_scalar(x, s), F64)), 0, 0);
			assert_values(ok(tensor_to(tensor_gt_scalar(x, s), F64)), 0, 0);
			assert_values(ok(tensor_to(tensor_le_scalar(x, s), F64)), 0, 1);
			assert_values(ok(tensor_to(tensor_ge_scalar(x, s), F64)), 0, 1);
		}
}

/* bf16 with three operands of any layout: the f32 result rounded once. */
static void three_operands_of_bf16_round_once(void **state)
{
	const tensor_options bf16 = TENSOR_OPTIONS(.dtype = TENSOR_BF16);
	const int64_t shapes[][2] = { { 37, 53 }, { 37, 1 }, { 1, 53 }, { 1, 1 } };

	for (int k = 0; k < 16; k++)
		tensor_scope {
			tensor *x[3], *found[3], *want[3];
			double different;

			x[0] = ok(tensor_t(ok(tensor_randn(TENSOR_SHAPE(53, 37), bf16))));
			if (k & 1)
				x[0] = ok(tensor_contiguous(x[0]));
			x[1] = ok(tensor_randn((tensor_ints){ shapes[k % 4], 2 }, bf16));
			x[2] = ok(tensor_randn((tensor_ints){ shapes[k / 4], 2 }, bf16));
			found[0] = ok(tensor_addcmul(x[0], x[1], x[2]));
			found[1] = ok(tensor_addcdiv(x[0], x[1], x[2]));
			found[2] = ok(tensor_lerp(x[0], x[1], x[2]));
			for (int i = 0; i < 3; i++)
				x[i] = ok(tensor_to(x[i], F32));
			want[0] = ok(tensor_addcmul(x[0], x[1], x[2]));
			want[1] = ok(tensor_addcdiv(x[0], x[1], x[2]));
			want[2] = ok(tensor_lerp(x[0], x[1], x[2]));
			for (int i = 0; i < 3; i++) {
				assert_done(tensor_item(
					ok(tensor_sum(ok(tensor_ne(found[i],
								   ok(tensor_to(want[i], bf16)))))),
					&different));
				assert_true(different == 0);
			}
		}
}

/* A number as the last of three operands is not expanded: the bits are those of a full tensor. */
static void a_number_as_third_operand_equals_a_full_tensor(void **state)
{
	const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16, TENSOR_F16 };

	for (int i = 0; i < 8; i++)
		tensor_scope {
			tensor_options o = OF(dtypes[i / 2]);
			tensor *x = ok(tensor_randn(TENSOR_SHAPE(i % 2 ? 37 : 1, 53), o));
			tensor *y = ok(tensor_randn(TENSOR_SHAPE(37, 53), o)), *z, *more, *full;

			full = ok(tensor_full(TENSOR_SHAPE(37, 53), S(0.375), o));
			more = ok(tensor_gt(x, y));
			assert_same(tensor_lerp_scalar(x, y, S(0.375)), tensor_lerp(x, y, full));
			z = ok(tensor_narrow(tensor_narrow(full, 0, 0, 1), 1, 0, 1));
			assert_same(tensor_where(more, y, z), tensor_where(more, y, full));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(binary_operators_agree_with_plain_loops),
		cmocka_unit_test(unary_operators_agree_with_the_c_library),
		cmocka_unit_test(special_values_follow_ieee),
		cmocka_unit_test(alpha_scales_the_second_operand),
		cmocka_unit_test(in_place_and_out_forms_write_to_their_arguments),
		cmocka_unit_test(where_selects_and_copy_broadcasts),
		cmocka_unit_test(dtypes_without_a_kernel_are_refused),
		cmocka_unit_test(large_results_are_the_same_on_any_number_of_threads),
		cmocka_unit_test(complex_products_have_the_bits_of_four_products),
		cmocka_unit_test(a_number_as_third_operand_equals_a_full_tensor),
		cmocka_unit_test(gelu_equals_x_times_the_normal_cdf),
		cmocka_unit_test(imaginary_part_of_a_real_argument_is_refused),
		cmocka_unit_test(pow_of_bool_is_bool),
		cmocka_unit_test(reduced_floats_equal_the_number_that_they_were_made_of),
		cmocka_unit_test(three_operands_of_bf16_round_once),
	};

	return cmocka_run_group_tests_name("pointwise", tests, NULL, NULL);
}
