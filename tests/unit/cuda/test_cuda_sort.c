// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: sort, topk, kthvalue and medians against the CPU's results. */
#include "cuda_results.h"

static const enum tensor_dtype dtypes[] = { TENSOR_BOOL, TENSOR_U8,  TENSOR_I8,	 TENSOR_I16,
					    TENSOR_I32,	 TENSOR_I64, TENSOR_F16, TENSOR_BF16,
					    TENSOR_F32,	 TENSOR_F64 };
/* Several lines of a block, a block for a line, and the radix sort. */
static const int64_t lengths[] = { 1, 2, 5, 31, 64, 500, 1025, 2048, 2049, 5000 };

/* Whether a line is left out that takes long: two dtypes have lines of one block everywhere, one of them a longer one. */
static bool is_left_out(enum tensor_dtype d, int64_t n)
{
	if (n < 64 || long_cases())
		return false;
	return n > 1000 ? d != TENSOR_BF16 || n != 2049 : d != TENSOR_BF16 && d != TENSOR_I64;
}

/* Many equal elements, zeros of both signs, NaN and infinities. */
static tensor *unordered(int64_t lines, int64_t n, enum tensor_dtype d)
{
	tensor *t = ok(tensor_round(pseudo_random(TENSOR_SHAPE(lines, n), TENSOR_F64)));
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; d >= TENSOR_F16 && i < lines * n; i += 7)
		p[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? -0.0 : i % 2 ? INFINITY : -INFINITY;
	if (d == TENSOR_BOOL || d == TENSOR_U8)
		t = ok(tensor_abs(t));
	return ok(tensor_to(t, TENSOR_OPTIONS(.dtype = d)));
}

/* Results of both are equal, and equal elements have the same positions. */
static void assert_both(tensor **v, tensor **y)
{
	assert_near(v[0], y[0], 0);
	assert_near(v[1], y[1], 0);
}

static void sort_equals_the_cpu_in(tensor *a, tensor *g, int64_t dim)
{
	tensor *y[2], *v[2];

	for (int descending = 0; descending < 2; descending++) {
		assert_done(tensor_sort(a, dim, descending, &y[0], &y[1]));
		assert_done(tensor_sort(g, dim, descending, &v[0], &v[1]));
		assert_both(v, y);
	}
}

static void sort_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(lengths) * ARRAY_SIZE(dtypes); i++)
		tensor_scope {
			const int64_t n = lengths[i / ARRAY_SIZE(dtypes)];
			const enum tensor_dtype d = dtypes[i % ARRAY_SIZE(dtypes)];
			tensor *a = unordered(n > 1000 ? 3 : 9, is_left_out(d, n) ? 9 : n, d);

			sort_equals_the_cpu_in(a, on_cuda(a), 1);
		}
}

static void sort_of_any_strides(void **state)
{
	NEED_DEVICE();
	for (int64_t dim = 0; dim < 3; dim++)
		tensor_scope {
			const int64_t n = long_cases() ? 9 : 2;
			tensor *a = pseudo_random(TENSOR_SHAPE(n, 14, 2100), TENSOR_F32);
			tensor *g = on_cuda(a);

			a = ok(tensor_slice(tensor_permute(a, TENSOR_INTS(1, 2, 0)), 0, 0, 14, 3));
			g = ok(tensor_slice(tensor_permute(g, TENSOR_INTS(1, 2, 0)), 0, 0, 14, 3));
			sort_equals_the_cpu_in(a, g, dim);
		}
}

static void topk_equals_the_cpu_in(enum tensor_dtype d, int64_t n, int64_t k)
{
	tensor *a = unordered(3, n, d), *g = on_cuda(a), *y[2], *v[2];

	for (int largest = 0; largest < 2; largest++) {
		assert_done(tensor_topk(a, k, 1, largest, true, &y[0], &y[1]));
		assert_done(tensor_topk(g, k, 1, largest, true, &v[0], &v[1]));
		assert_both(v, y);
	}
}

static void topk_equals_the_cpu(void **state)
{
	static const int64_t ranks[] = { 0, 1, 3, 100, 1024, 1025, 4999 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(lengths) * ARRAY_SIZE(dtypes); i++)
		for (size_t r = 0; r < ARRAY_SIZE(ranks); r++)
			tensor_scope {
				const int64_t n = lengths[i / ARRAY_SIZE(dtypes)];

				const enum tensor_dtype d = dtypes[i % ARRAY_SIZE(dtypes)];

				if (ranks[r] <= n && (n > 1000 || r < 4) && !is_left_out(d, n))
					topk_equals_the_cpu_in(d, n, ranks[r]);
			}
}

static void elements_by_rank_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(lengths) * ARRAY_SIZE(dtypes); i++)
		tensor_scope {
			const enum tensor_dtype d = dtypes[i % ARRAY_SIZE(dtypes)];
			const int64_t all = lengths[i / ARRAY_SIZE(dtypes)];
			const int64_t n = is_left_out(d, all) ? 9 : all;
			tensor *a = unordered(4, n, d), *y[2], *v[2];
			tensor *g = on_cuda(a);

			for (int64_t k = 1; k <= n; k = 5 * k + 1) {
				assert_done(tensor_kthvalue(a, k, 1, false, &y[0], &y[1]));
				assert_done(tensor_kthvalue(g, k, 1, false, &v[0], &v[1]));
				assert_both(v, y);
			}
			assert_done(tensor_median_dim(a, 1, false, &y[0], &y[1]));
			assert_done(tensor_median_dim(g, 1, false, &v[0], &v[1]));
			assert_both(v, y);
			assert_done(tensor_nanmedian_dim(a, 1, false, &y[0], &y[1]));
			assert_done(tensor_nanmedian_dim(g, 1, false, &v[0], &v[1]));
			assert_both(v, y);
			assert_near(tensor_nanmedian(g), tensor_nanmedian(a), 0);
		}
}

static void sorts_without_elements(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(3, 0), TENSOR_F32), *g = on_cuda(a);
		tensor *one = pseudo_random(TENSOR_SCALAR_SHAPE, TENSOR_F32);

		sort_equals_the_cpu_in(a, g, 0);
		sort_equals_the_cpu_in(a, g, 1);
		sort_equals_the_cpu_in(one, on_cuda(one), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sort_equals_the_cpu),
		cmocka_unit_test(sort_of_any_strides),
		cmocka_unit_test(topk_equals_the_cpu),
		cmocka_unit_test(elements_by_rank_equal_the_cpu),
		cmocka_unit_test(sorts_without_elements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
