// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* multinomial and dropout, and errors of random operators. */
#include "random.h"

/* ---- multinomial ---- */

static void multinomial_follows_the_weights(void **state)
{
	const float w[] = { 1, 0, 2, 5, 0, 2 };

	tensor_scope {
		tensor *weights = tensor_from_data(w, TENSOR_INTS(6), F32);
		tensor *rows =
			tensor_expand(tensor_view(weights, TENSOR_INTS(1, 6)), TENSOR_INTS(N, 6));
		double *with = values_of(tensor_multinomial(weights, N, true));
		double *first = values_of(tensor_multinomial(rows, 3, false));
		double count[2][6] = { { 0 } }, second[6] = { 0 };

		for (int64_t i = 0; i < N; i++) {
			count[0][(int)with[i]]++;
			count[1][(int)first[3 * i]]++;
			second[(int)first[3 * i + 1]] += first[3 * i] == 3;
			assert_true(first[3 * i] != first[3 * i + 1] &&
				    first[3 * i + 1] != first[3 * i + 2] &&
				    first[3 * i] != first[3 * i + 2]);
		}
		for (int k = 0; k < 6; k++) {
			double p = w[k] / 10, after = k == 3 ? 0 : w[k] / 5;

			for (int j = 0; j < 2; j++)
				assert_true(fabs(count[j][k] / N - p) <= 4 * sqrt(p / N));
			assert_true(fabs(second[k] / count[1][3] - after) <=
				    4 * sqrt(after / count[1][3]));
		}
		free(with);
		free(first);
		assert_shape(ok(tensor_multinomial(weights, 2, false)), 2);
		assert_int_equal(tensor_dtype(ok(tensor_multinomial(weights, 2, false))),
				 TENSOR_I64);
	}
}

static tensor *draw_of(double a, double b, int64_t k, bool replacement)
{
	const double w[] = { a, b };

	return tensor_multinomial(tensor_from_data(w, TENSOR_INTS(2), F64), k, replacement);
}

static void invalid_weights_are_refused(void **state)
{
	tensor_scope {
		assert_fails(draw_of(1, -1, 1, true), EINVAL, "finite and not negative");
		assert_fails(draw_of(1, NAN, 1, false), EINVAL, "finite and not negative");
		assert_fails(draw_of(1, INFINITY, 1, true), EINVAL, "finite and not negative");
		assert_fails(draw_of(0, 0, 1, true), EINVAL, "sum above 0");
		assert_fails(draw_of(1, 0, 2, false), EINVAL, "fewer weights above 0");
		assert_fails(draw_of(1, 1, 3, false), EINVAL, "at most the 2 weights");
		assert_fails(draw_of(1, 1, 0, true), EINVAL, "above 0");
		assert_fails(tensor_multinomial(iota(1, TENSOR_INTS(1, 2, 3)), 1, true), EINVAL,
			     "[1, 2, 3]");
		assert_fails(tensor_multinomial(tensor_ones(TENSOR_INTS(3), I64), 1, true),
			     EOPNOTSUPP, "i64");
		assert_values(draw_of(0, 1, 3, true), 0, 1, 1, 1);
	}
}

/* ---- dropout ---- */

static void dropout_scales_what_it_keeps(void **state)
{
	static const enum tensor_dtype types[] = { TENSOR_F16, TENSOR_BF16, TENSOR_F32,
						   TENSOR_F64, TENSOR_C64,  TENSOR_C128 };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		tensor_scope {
			tensor *in = ok(tensor_full(TENSOR_SHAPE(N), S(3.0), OF(types[i])));
			tensor *out, *mask;
			double *v, *m, kept = 0;

			assert_done(tensor_native_dropout(in, 0.25, true, &out, &mask));
			assert_int_equal(tensor_dtype(out), types[i]);
			assert_int_equal(tensor_dtype(mask), TENSOR_BOOL);
			v = values_of(out);
			m = values_of(mask);
			for (int64_t k = 0; k < N; k++) {
				assert_true(v[k] == (m[k] ? 4 : 0));
				kept += m[k] / N;
			}
			assert_true(fabs(kept - 0.75) < 0.006);
			free(v);
			free(m);
		}
	}
}

static void dropout_with_probability_0_and_1(void **state)
{
	tensor_scope {
		tensor *in = ok(iota(1, TENSOR_INTS(2, 3))), *out, *mask;

		assert_done(tensor_native_dropout(in, 1, true, &out, &mask));
		assert_values(out, 0, 0, 0, 0, 0, 0, 0);
		assert_values(mask, 0, 0, 0, 0, 0, 0, 0);
		assert_done(tensor_native_dropout(in, 0, true, &out, &mask));
		assert_values(out, 0, 1, 2, 3, 4, 5, 6);
		assert_values(mask, 0, 1, 1, 1, 1, 1, 1);
		assert_done(tensor_native_dropout(in, 0.5, false, &out, &mask));
		assert_values(out, 0, 1, 2, 3, 4, 5, 6);
		assert_values(mask, 0, 1, 1, 1, 1, 1, 1);
		assert_done(tensor_native_dropout(tensor_zeros(TENSOR_SHAPE(0, 3), F32), 0.5, true,
						  &out, &mask));
		assert_shape(out, 0, 3);
		assert_ptr_equal(ok(tensor_dropout(in, 0.5, false)), in);
		assert_values(tensor_dropout(in, 1, true), 0, 0, 0, 0, 0, 0, 0);
		assert_fails(tensor_dropout(in, 1.5, true), EINVAL, "p must be within [0, 1]");
		assert_fails(tensor_dropout(in, NAN, true), EINVAL, "p must be within [0, 1]");
		assert_fails(tensor_native_dropout(tensor_ones(TENSOR_INTS(2), I64), 0.5, true,
						   &out, &mask),
			     EOPNOTSUPP, "i64");
	}
}

/* ---- bounds and errors ---- */

/* (to - from) * x + from would round up to `to` here. */
static void uniform_excludes_the_upper_bound(void **state)
{
	tensor_scope {
		const float *v;

		v = tensor_data(ok(tensor_uniform_(tensor_empty(TENSOR_SHAPE(N), F32), 1 << 20,
						   (1 << 20) + 0.25)));
		for (int64_t i = 0; i < N; i++)
			assert_true(v[i] >= (1 << 20) && v[i] < (1 << 20) + 0.25f);
		assert_values(tensor_uniform_(tensor_empty(TENSOR_SHAPE(2), F32), 3, 3), 0, 3, 3);
	}
}

static void exponentials_are_never_zero(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_exponential_(tensor_empty(TENSOR_SHAPE(1 << 22), F32), 1));
		const float *v = tensor_data(t);

		for (int64_t i = 0; i < 1 << 22; i++)
			assert_true(v[i] > 0 && v[i] < 25);
	}
}

static void invalid_parameters_are_refused(void **state)
{
	tensor_scope {
		tensor *f = ok(tensor_empty(TENSOR_SHAPE(2), F32));
		tensor *h = ok(tensor_empty(TENSOR_SHAPE(2), OF(TENSOR_F16)));
		tensor *i = ok(tensor_empty(TENSOR_SHAPE(2), I64));
		tensor *many =
			ok(tensor_expand(tensor_zeros(TENSOR_SHAPE(1), F32), TENSOR_SHAPE(3)));

		assert_fails(tensor_uniform_(f, 2, 1), EINVAL, "uniform_: from must not be above");
		assert_fails(tensor_uniform_(f, 0, INFINITY), EINVAL, "out of range for f32");
		assert_fails(tensor_uniform_(h, 0, 1e6), EINVAL, "out of range for f16");
		assert_fails(tensor_uniform_(h, -6e4, 6e4), EINVAL, "out of range for f16");
		assert_fails(tensor_uniform_(i, 0, 1), EOPNOTSUPP, "i64");
		assert_fails(tensor_normal_(f, 0, -1), EINVAL, "std must not be negative");
		assert_fails(tensor_normal_(f, 0, NAN), EINVAL, "std must not be negative");
		assert_fails(tensor_normal_(i, 0, 1), EOPNOTSUPP, "i64");
		assert_fails(tensor_normal_(many, 0, 1), EINVAL, "share memory");
		assert_fails(tensor_exponential_(f, 0), EINVAL, "lambd must be above 0");
		assert_fails(tensor_bernoulli_float_(f, 1.01), EINVAL, "within [0, 1]");
		assert_fails(tensor_bernoulli(tensor_full(TENSOR_SHAPE(2), S(2.0), F32)), EINVAL,
			     "within [0, 1]");
		assert_fails(tensor_bernoulli(i), EOPNOTSUPP, "i64");
		assert_fails(tensor_bernoulli_tensor_(f, tensor_zeros(TENSOR_SHAPE(3), F32)),
			     EINVAL, "does not broadcast");
		assert_fails(tensor_randint_low(3, 3, TENSOR_SHAPE(1), I64), EINVAL, "below to");
		assert_fails(tensor_randint(300, TENSOR_SHAPE(1), OF(TENSOR_U8)), EINVAL,
			     "out of range for u8");
		assert_fails(tensor_randint_low(-1, 2, TENSOR_SHAPE(1), OF(TENSOR_BOOL)), EINVAL,
			     "out of range for bool");
		assert_fails(tensor_randint(70000, TENSOR_SHAPE(1), OF(TENSOR_F16)), EINVAL,
			     "out of range for f16");
		assert_fails(tensor_randint(3, TENSOR_SHAPE(1), OF(TENSOR_C64)), EOPNOTSUPP, "c64");
		assert_fails(tensor_randperm(-1, I64), EINVAL, "negative");
		assert_fails(tensor_randperm(300, OF(TENSOR_U8)), EINVAL, "out of range for u8");
		assert_fails(tensor_randperm(3000, OF(TENSOR_F16)), EINVAL, "does not represent");
		assert_fails(tensor_rand(TENSOR_SHAPE(2), I64), EOPNOTSUPP, "i64");
		assert_fails(tensor_randn(TENSOR_SHAPE(-2), F32), EINVAL, "-2");
		assert_fails(tensor_random_from_(f, (int64_t)1 << 25, TENSOR_NONE), EINVAL,
			     "at most");
	}
}

static void like_takes_shape_and_dtype(void **state)
{
	tensor_scope {
		tensor *like = ok(tensor_empty(TENSOR_SHAPE(2, 3), F64));

		assert_shape(ok(tensor_rand_like(like, TENSOR_OPTIONS(0))), 2, 3);
		assert_int_equal(tensor_dtype(ok(tensor_randn_like(like, TENSOR_OPTIONS(0)))),
				 TENSOR_F64);
		assert_int_equal(tensor_dtype(ok(tensor_randint_like(like, 4, I64))), TENSOR_I64);
		assert_values(tensor_randint_like_low(like, 4, 5, TENSOR_OPTIONS(0)), 0, 4, 4, 4, 4,
			      4, 4);
		assert_int_equal(tensor_numel(ok(tensor_rand(TENSOR_SHAPE(0, 4), F32))), 0);
		assert_int_equal(tensor_dim(ok(tensor_randn(TENSOR_SCALAR_SHAPE, F32))), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(multinomial_follows_the_weights, fresh),
		cmocka_unit_test_setup(invalid_weights_are_refused, fresh),
		cmocka_unit_test_setup(dropout_scales_what_it_keeps, fresh),
		cmocka_unit_test_setup(dropout_with_probability_0_and_1, fresh),
		cmocka_unit_test_setup(uniform_excludes_the_upper_bound, fresh),
		cmocka_unit_test_setup(exponentials_are_never_zero, fresh),
		cmocka_unit_test_setup(invalid_parameters_are_refused, fresh),
		cmocka_unit_test_setup(like_takes_shape_and_dtype, fresh),
	};

	return cmocka_run_group_tests_name("random_ops", tests, NULL, NULL);
}
