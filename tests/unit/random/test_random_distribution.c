// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Distributions: Kolmogorov-Smirnov tests, chi-square tests and moments. */
#include "random.h"

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* sqrt(n) times the Kolmogorov-Smirnov statistic; above 1.95 for one in a thousand seeds. */
static double kolmogorov(double *v, int64_t n, double (*cdf)(double))
{
	double worst = 0;

	qsort(v, n, sizeof(*v), ascending);
	for (int64_t i = 0; i < n; i++) {
		double f = cdf(v[i]), d = fmax(f - (double)i / n, (double)(i + 1) / n - f);

		worst = fmax(worst, d);
	}
	return sqrt(n) * worst;
}

static double uniform_cdf(double x)
{
	return (x + 2) / 5;
}

static double normal_cdf(double x)
{
	return erfc(-(x - 3) / 2 / sqrt(2)) / 2;
}

static double exponential_cdf(double x)
{
	return -expm1(-0.5 * x);
}

static void assert_distribution(tensor *t, double (*cdf)(double), double mean, double variance)
{
	double *v = values_of(t), m = 0, q = 0, d;
	int64_t n = tensor_numel(t);

	for (int64_t i = 0; i < n; i++)
		m += v[i] / n;
	for (int64_t i = 0; i < n; i++)
		q += (v[i] - m) * (v[i] - m) / n;
	d = kolmogorov(v, n, cdf);
	free(v);
	assert_true(fabs(m - mean) < 4 * sqrt(variance / n));
	assert_true(fabs(q - variance) < 0.03 * variance);
	assert_true(d < 1.95);
	assert_true(d > 0.3); /* a smaller statistic is unlikely for random numbers */
}

static void float_distributions_pass_kolmogorov_smirnov(void **state)
{
	for (int i = 0; i < 2; i++) {
		tensor_options o = i ? F64 : F32;

		tensor_scope {
			tensor *t = ok(tensor_empty(TENSOR_SHAPE(N), o));

			assert_distribution(ok(tensor_uniform_(t, -2, 3)), uniform_cdf, 0.5,
					    25.0 / 12);
			assert_distribution(ok(tensor_normal_(t, 3, 2)), normal_cdf, 3, 4);
			assert_distribution(ok(tensor_exponential_(t, 0.5)), exponential_cdf, 2, 4);
		}
	}
}

/* Both normals of a pair are computed from one radius; the angle makes them independent. */
static void normals_of_a_pair_are_independent(void **state)
{
	for (int i = 0; i < 2; i++) {
		tensor_scope {
			double *v = values_of(tensor_randn(TENSOR_SHAPE(N), i ? F64 : F32));

			for (int lag = 1; lag <= 64; lag++) {
				double product = 0, squares = 0;

				for (int64_t k = 0; k + lag < N; k++) {
					product += v[k] * v[k + lag];
					squares +=
						(v[k] * v[k] - 1) * (v[k + lag] * v[k + lag] - 1);
				}
				assert_true(fabs(product) < 4.5 * sqrt(N));
				assert_true(fabs(squares) < 4.5 * 2 * sqrt(N));
			}
			free(v);
		}
	}
}

static void f16_and_bf16_distributions_have_the_moments(void **state)
{
	static const enum tensor_dtype halves[] = { TENSOR_F16, TENSOR_BF16 };

	for (int i = 0; i < 2; i++) {
		tensor_scope {
			double *v = values_of(tensor_rand(TENSOR_SHAPE(N), OF(halves[i])));
			double *w = values_of(tensor_randn(TENSOR_SHAPE(N), OF(halves[i])));
			double steps = i ? 256 : 2048, mean = 0, square = 0;
			bool ends[2] = { false, false };

			for (int64_t k = 0; k < N; k++) {
				assert_true(v[k] >= 0 && v[k] < 1);
				assert_true(v[k] * steps == floor(v[k] * steps));
				ends[0] |= v[k] == 0;
				ends[1] |= v[k] == 1 - 1 / steps;
				mean += w[k] / N;
				square += w[k] * w[k] / N;
			}
			assert_true(ends[0] && ends[1]);
			assert_true(fabs(mean) < 4 / sqrt(N) && fabs(square - 1) < 0.03);
			free(v);
			free(w);
		}
	}
}

static void complex_parts_share_the_variance(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_randn(TENSOR_SHAPE(N), OF(TENSOR_C64)));
		const float *v = tensor_data(t);
		double re = 0, im = 0, both = 0;

		for (int64_t i = 0; i < N; i++) {
			re += v[2 * i] * v[2 * i] / N;
			im += v[2 * i + 1] * v[2 * i + 1] / N;
			both += v[2 * i] * v[2 * i + 1] / N;
		}
		assert_true(fabs(re - 0.5) < 0.02 && fabs(im - 0.5) < 0.02 && fabs(both) < 0.01);
		ok(tensor_normal_(t, 100, 1));
		assert_true(v[0] > 90 && v[1] < 10 && v[2] > 90 && v[3] < 10);
	}
}

static void integers_of_a_range_are_uniform(void **state)
{
	static const enum tensor_dtype types[] = { TENSOR_U8,	TENSOR_I8,  TENSOR_I16,
						   TENSOR_I32,	TENSOR_I64, TENSOR_F16,
						   TENSOR_BF16, TENSOR_F32, TENSOR_F64 };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		tensor_scope {
			double *v = values_of(tensor_randint_low(i ? -20 : 3, i ? 27 : 50,
								 TENSOR_SHAPE(N), OF(types[i])));

			assert_alike(v, N, i ? -20 : 3, 47);
			free(v);
		}
	}
	tensor_scope {
		double *v = values_of(tensor_randint(2, TENSOR_SHAPE(N), OF(TENSOR_BOOL)));

		assert_alike(v, N, 0, 2);
		free(v);
	}
}

/*
 * For a range of 3 * 2^k the reduction by multiplication prefers a third of the values, the more
 * the closer the range is to the width of the random word.
 */
static void large_ranges_are_uniform(void **state)
{
	static const int64_t thirds[] = { 1 << 22, 1 << 29, (int64_t)1 << 30, (int64_t)1 << 61 };

	for (size_t i = 0; i < ARRAY_SIZE(thirds); i++) {
		tensor_scope {
			tensor *t = ok(tensor_randint(3 * thirds[i], TENSOR_SHAPE(N), I64));
			const int64_t *v = tensor_data(t);
			double *third = malloc(N * sizeof(*third)), *low = malloc(N * sizeof(*low));

			for (int64_t k = 0; k < N; k++) {
				assert_true(v[k] >= 0);
				third[k] = (double)(v[k] / thirds[i]);
				low[k] = (double)(v[k] % 3);
			}
			assert_alike(third, N, 0, 3);
			assert_alike(low, N, 0, 3);
			free(third);
			free(low);
		}
	}
}

static void ranges_reach_the_ends_of_a_dtype(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_empty(TENSOR_SHAPE(N), I64));
		const int64_t *v = tensor_data(t);
		bool low = false, high = false;
		double *b;

		/*
		 * TENSOR_NONE is INT64_MIN: the range from INT64_MIN without an end is that of all
		 * i64.
		 */
		ok(tensor_random_from_(t, INT64_MIN, TENSOR_NONE));
		for (int64_t i = 0; i < N; i++) {
			low |= v[i] < INT64_MIN / 4 * 3;
			high |= v[i] > INT64_MAX / 4 * 3;
		}
		assert_true(low && high);
		ok(tensor_random_(t));
		for (int64_t i = 0; i < N; i++)
			assert_true(v[i] >= 0);
		b = values_of(tensor_random_(tensor_empty(TENSOR_SHAPE(N), OF(TENSOR_U8))));
		assert_alike(b, N, 0, 256);
		free(b);
		b = values_of(tensor_random_(tensor_empty(TENSOR_SHAPE(N), OF(TENSOR_BF16))));
		assert_alike(b, N, 0, 257);
		free(b);
		b = values_of(tensor_random_from_(tensor_empty(TENSOR_SHAPE(N), OF(TENSOR_I8)),
						  -128, TENSOR_NONE));
		assert_alike(b, N, -128, 256);
		free(b);
	}
}

/* All 24 permutations of four, numbered as mixed-radix integers. */
static void permutations_are_uniform(void **state)
{
	enum { ROUNDS = 24000 };
	double *code = malloc(ROUNDS * sizeof(*code));

	for (int r = 0; r < ROUNDS; r++) {
		tensor_scope {
			const int64_t *p = tensor_data(ok(tensor_randperm(4, I64)));
			int c = 0;

			for (int i = 0; i < 4; i++) {
				int smaller = 0;

				for (int j = i + 1; j < 4; j++)
					smaller += p[j] < p[i];
				c = c * (4 - i) + smaller;
			}
			code[r] = c;
		}
	}
	assert_alike(code, ROUNDS, 0, 24);
	free(code);
}

static void permutation_contains_each_index_once(void **state)
{
	static const int64_t lengths[] = { 0, 1, 2, 63, 64, 65, 1000, 100000 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		int64_t n = lengths[i];
		char *seen = calloc(n + 1, 1);

		tensor_scope {
			tensor *t = ok(tensor_randperm(n, OF(i % 2 ? TENSOR_I32 : TENSOR_F32)));
			double *v = values_of(t);

			assert_int_equal(tensor_numel(t), n);
			for (int64_t k = 0; k < n; k++) {
				assert_true(v[k] >= 0 && v[k] < n && !seen[(int64_t)v[k]]);
				seen[(int64_t)v[k]] = 1;
			}
			free(v);
		}
		free(seen);
	}
}

static double share_of_ones(tensor *t)
{
	double *v = values_of(t), ones = 0;
	int64_t n = tensor_numel(t);

	for (int64_t i = 0; i < n; i++) {
		assert_true(v[i] == 0 || v[i] == 1);
		ones += v[i];
	}
	free(v);
	return ones / n;
}

static void bernoulli_has_the_given_probability(void **state)
{
	static const double ps[] = { 0, 0x1p-20, 0.3, 0.5, 0.999, 1 };

	for (int d = TENSOR_BOOL; d <= TENSOR_F64; d++) {
		for (size_t i = 0; i < ARRAY_SIZE(ps); i++) {
			tensor_scope {
				tensor *t = ok(tensor_empty(TENSOR_SHAPE(N), OF(d)));
				double p = ps[i], wide = 4 * sqrt(p * (1 - p) / N);
				double got = share_of_ones(tensor_bernoulli_float_(t, p));

				assert_true(fabs(got - p) <= wide);
				got = share_of_ones(tensor_bernoulli_tensor_(
					t, tensor_full(TENSOR_SHAPE(1), S(p), F64)));
				assert_true(fabs(got - p) <= wide);
				got = share_of_ones(tensor_bernoulli_p(t, p));
				assert_true(fabs(got - p) <= wide);
			}
		}
	}
	tensor_scope {
		tensor *p = ok(tensor_full(TENSOR_SHAPE(N), S(0.25), OF(TENSOR_BF16)));
		tensor *out = ok(tensor_empty(TENSOR_SHAPE(0), OF(TENSOR_F64)));

		assert_int_equal(tensor_dtype(ok(tensor_bernoulli(p))), TENSOR_BF16);
		assert_true(fabs(share_of_ones(tensor_bernoulli(p)) - 0.25) < 0.006);
		ok(tensor_bernoulli_out(out, p));
		assert_int_equal(tensor_numel(out), N);
		assert_true(fabs(share_of_ones(out) - 0.25) < 0.006);
	}
}

static void normal_takes_tensors_of_means_and_deviations(void **state)
{
	tensor_scope {
		const double means[] = { -100, 0, 100 }, stds[] = { 1, 0, 2 };
		tensor *mean = tensor_from_data(means, TENSOR_INTS(3), F64);
		tensor *std = tensor_from_data(stds, TENSOR_INTS(3), F64);
		tensor *rows =
			ok(tensor_expand(tensor_view(mean, TENSOR_INTS(1, 3)), TENSOR_INTS(N, 3)));
		double *v = values_of(tensor_normal_tensor_tensor(rows, std)), m = 0, q = 0;

		for (int64_t i = 0; i < N; i++) {
			assert_true(v[3 * i + 1] == 0);
			m += v[3 * i + 2] / N;
			q += (v[3 * i] + 100) * (v[3 * i] + 100) / N;
		}
		assert_true(fabs(m - 100) < 8 / sqrt(N) && fabs(q - 1) < 0.03);
		free(v);
		v = values_of(tensor_normal_float_tensor(5, std));
		assert_true(v[1] == 5 && v[0] != 5);
		free(v);
		v = values_of(tensor_normal_tensor_float(mean, 0));
		assert_true(v[0] == -100 && v[1] == 0 && v[2] == 100);
		free(v);
		v = values_of(tensor_normal_float_float(7, 0, TENSOR_INTS(2), F32));
		assert_true(v[0] == 7 && v[1] == 7);
		free(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(float_distributions_pass_kolmogorov_smirnov, fresh),
		cmocka_unit_test_setup(normals_of_a_pair_are_independent, fresh),
		cmocka_unit_test_setup(f16_and_bf16_distributions_have_the_moments, fresh),
		cmocka_unit_test_setup(complex_parts_share_the_variance, fresh),
		cmocka_unit_test_setup(integers_of_a_range_are_uniform, fresh),
		cmocka_unit_test_setup(large_ranges_are_uniform, fresh),
		cmocka_unit_test_setup(ranges_reach_the_ends_of_a_dtype, fresh),
		cmocka_unit_test_setup(permutations_are_uniform, fresh),
		cmocka_unit_test_setup(permutation_contains_each_index_once, fresh),
		cmocka_unit_test_setup(bernoulli_has_the_given_probability, fresh),
		cmocka_unit_test_setup(normal_takes_tensors_of_means_and_deviations, fresh),
	};

	return cmocka_run_group_tests_name("random_distribution", tests, NULL, NULL);
}
