// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: random numbers and ranges, which have the CPU's bits. */
#include "cuda_results.h"

static const enum tensor_dtype floats[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
static const int64_t lengths[] = { 0, 1, 15, 31, 63, 64, 65, 100, 1000, 5001 };

/* ---- numbers ---- */

static void fill(tensor *t, int which)
{
	switch (which) {
	case 0:
		ok(tensor_uniform_(t, -1.5, 2.25));
		return;
	case 1:
		ok(tensor_normal_(t, 0.5, 2));
		return;
	default:
		ok(tensor_exponential_(t, 1.5));
		return;
	}
}

static void numbers_have_the_bits_of_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(lengths) * 12; i++)
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(lengths[i / 12]), floats[i % 4]);
			tensor *g = on_cuda(a), *next[2];

			tensor_manual_seed(i);
			fill(a, (int)(i / 4 % 3));
			next[0] = tensor_rand(TENSOR_SHAPE(3), F64);
			tensor_manual_seed(i);
			fill(g, (int)(i / 4 % 3));
			next[1] = tensor_rand(TENSOR_SHAPE(3), F64);
			assert_near(g, a, 0);
			assert_true(equal(next[0], next[1]));
		}
}

static void complex_numbers_have_the_bits_of_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int d = TENSOR_C64; d <= TENSOR_C128; d++)
		tensor_scope {
			tensor *a, *g;

			tensor_manual_seed(5);
			a = ok(tensor_randn(TENSOR_SHAPE(77), TENSOR_OPTIONS(.dtype = d)));
			tensor_manual_seed(5);
			g = ok(tensor_randn(TENSOR_SHAPE(77), CUDA_OF(d)));
			assert_near(tensor_view_as_real(g), tensor_view_as_real(a), 0);
		}
}

static void integers_have_the_bits_of_the_cpu(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_U8,	TENSOR_I8,  TENSOR_I16,
						    TENSOR_I32, TENSOR_I64, TENSOR_F32,
						    TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
	/* The second range rejects every third number. */
	static const int64_t ranges[][2] = {
		{ -5, 90 }, { 0, 0xaaaaaaab }, { -(1ll << 61), 1ll << 62 }, { 7, 8 }
	};

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(dtypes) * 4; i++)
		tensor_scope {
			enum tensor_dtype d = dtypes[i / 4];
			const int64_t *r = ranges[d == TENSOR_I64 ? i % 4 : d == TENSOR_U8 ? 3 : 0];
			tensor *a, *g;

			tensor_manual_seed(i);
			a = ok(tensor_randint_low(r[0], r[1], TENSOR_SHAPE(1001),
						  TENSOR_OPTIONS(.dtype = d)));
			tensor_manual_seed(i);
			g = ok(tensor_randint_low(r[0], r[1], TENSOR_SHAPE(1001), CUDA_OF(d)));
			assert_near(g, a, 0);
		}
}

static void permutations_are_those_of_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int64_t n = 0; n < 2000; n = 3 * n + 1)
		tensor_scope {
			tensor *a, *g;

			tensor_manual_seed(n);
			a = ok(tensor_randperm(n, TENSOR_OPTIONS(0)));
			tensor_manual_seed(n);
			g = ok(tensor_randperm(n, CUDA));
			assert_near(g, a, 0);
		}
}

static void bernoulli_of_probabilities(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(lengths) * 2; i++)
		tensor_scope {
			tensor *p = ok(tensor_rand(TENSOR_SHAPE(lengths[i / 2]),
						   TENSOR_OPTIONS(.dtype = floats[i % 2])));
			tensor *a, *g;

			tensor_manual_seed(i);
			a = ok(tensor_bernoulli(p));
			tensor_manual_seed(i);
			g = ok(tensor_bernoulli(on_cuda(p)));
			assert_near(g, a, 0);
		}
	tensor_scope {
		tensor *p = on_cuda(pseudo_random(TENSOR_SHAPE(100), TENSOR_F32));

		tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT);
		assert_fails(tensor_bernoulli(p), EINVAL, "within [0, 1]");
		tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE);
		assert_done(tensor_cuda_synchronize(0));
	}
}

/* ---- ranges ---- */

static void ranges_have_the_bits_of_the_cpu(void **state)
{
	static const enum tensor_dtype dtypes[] = {
		TENSOR_U8,  TENSOR_I16, TENSOR_I32, TENSOR_I64,
		TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16
	};

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
		tensor_scope {
			const tensor_options cpu = TENSOR_OPTIONS(.dtype = dtypes[i]);
			const tensor_scalar from = TENSOR_SCALAR(3), to = TENSOR_SCALAR(101);

			assert_near(tensor_arange_step(from, to, TENSOR_SCALAR(7),
						       CUDA_OF(dtypes[i])),
				    tensor_arange_step(from, to, TENSOR_SCALAR(7), cpu), 0);
			for (int64_t n = 0; n < 300; n = 2 * n + 1)
				assert_near(tensor_linspace(from, to, n, CUDA_OF(dtypes[i])),
					    tensor_linspace(from, to, n, cpu), 0);
		}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_the_bits_of_the_cpu),
		cmocka_unit_test(complex_numbers_have_the_bits_of_the_cpu),
		cmocka_unit_test(integers_have_the_bits_of_the_cpu),
		cmocka_unit_test(permutations_are_those_of_the_cpu),
		cmocka_unit_test(bernoulli_of_probabilities),
		cmocka_unit_test(ranges_have_the_bits_of_the_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
