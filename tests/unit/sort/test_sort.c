// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* sort, topk and ranks against the C library's qsort() over values and positions. */
#include "check.h"

static const enum tensor_dtype dtypes[] = { TENSOR_BOOL, TENSOR_U8,  TENSOR_I8,	 TENSOR_I16,
					    TENSOR_I32,	 TENSOR_I64, TENSOR_F16, TENSOR_BF16,
					    TENSOR_F32,	 TENSOR_F64 };
#define DTYPES (ARRAY_SIZE(dtypes))

struct item {
	double value;
	int64_t at;
};

static bool descending;

/* NaN is greater than all numbers; equal elements are ordered by index. */
static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int order = isnan(x->value) - isnan(y->value);

	if (!order && !isnan(x->value))
		order = (x->value > y->value) - (x->value < y->value);
	if (order)
		return descending ? -order : order;
	return x->at < y->at ? -1 : 1;
}

static tensor *numbers(int64_t n, int64_t lines, enum tensor_dtype dtype, bool special)
{
	tensor *t = ok(tensor_empty(TENSOR_INTS(lines, n), F64));
	double *p = tensor_mutable_data(t);
	uint64_t seed = n;

	for (int64_t i = 0; i < n * lines; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		p[i] = (double)(int64_t)(seed >> 40) / 64 - 131072 * (dtype != TENSOR_U8);
		if (dtype <= TENSOR_I16)
			p[i] = (double)(seed >> 57) - 60 * (dtype > TENSOR_U8);
		if (special && dtype >= TENSOR_F16 && i % 7 == 0)
			p[i] = ((const double[]){ NAN, -INFINITY, 0, -0.0, INFINITY, -NAN })[i % 6];
	}
	return ok(tensor_to(t, TENSOR_OPTIONS(.dtype = dtype)));
}

/* The sorted lines of t [lines, n]. */
static struct item *sorted_items(tensor *t)
{
	int64_t lines = tensor_sizes(t)[0], n = tensor_sizes(t)[1];
	struct item *items = malloc((lines * n + 1) * sizeof(*items));
	tensor *w = ok(tensor_contiguous(ok(tensor_to(t, F64))));

	for (int64_t i = 0; i < lines * n; i++)
		items[i] = (struct item){ ((double *)tensor_mutable_data(w))[i], i % n };
	for (int64_t l = 0; l < lines; l++)
		qsort(items + l * n, n, sizeof(*items), compare_items);
	return items;
}

/* values and indices [lines, k] are the first k of each line. */
static void check_first(const struct item *items, int64_t n, tensor *values, tensor *indices)
{
	int64_t lines = tensor_sizes(values)[0], k = tensor_sizes(values)[1];
	tensor *v = ok(tensor_contiguous(ok(tensor_to(values, F64))));
	tensor *i = ok(tensor_contiguous(indices));

	for (int64_t l = 0; l < lines; l++)
		for (int64_t j = 0; j < k; j++) {
			struct item want = items[l * n + j];
			double got = ((const double *)tensor_data(v))[l * k + j];

			assert_int_equal(((const int64_t *)tensor_data(i))[l * k + j], want.at);
			assert_true(isnan(want.value) ? isnan(got) : got == want.value);
		}
}

static void check_lines(tensor *t)
{
	int64_t n = tensor_sizes(t)[1];
	tensor *v, *i, *v2, *i2;
	struct item *items;

	for (int d = 0; d < 2; d++) {
		descending = d;
		items = sorted_items(t);
		assert_done(tensor_sort(t, 1, d, &v, &i));
		check_first(items, n, v, i);
		assert_done(tensor_sort(ok(tensor_t(t)), 0, d, &v2, &i2));
		check_first(items, n, ok(tensor_t(v2)), ok(tensor_t(i2)));
		for (int64_t k = 1; k <= n; k = k * 5 + 1) {
			assert_done(tensor_topk(t, k, 1, d, true, &v, &i));
			check_first(items, n, v, i);
			if (d)
				continue;
			assert_done(tensor_kthvalue(t, k, 1, true, &v, &i));
			check_first(items + k - 1, n, v, i);
		}
		free(items);
	}
}

/* The same bytes, also of NaN. */
static void assert_equal_tensors(tensor *a, tensor *b)
{
	a = ok(tensor_contiguous(a));
	b = ok(tensor_contiguous(b));
	assert_int_equal(tensor_numel(a), tensor_numel(b));
	assert_memory_equal(tensor_data(a), tensor_data(b),
			    tensor_numel(a) * tensor_itemsize(tensor_dtype(a)));
}

static void every_dtype_and_length_agrees_with_qsort(void **state)
{
	static const int64_t lengths[] = { 1, 2, 17, 33, 150, 191, 192, 700, 5000 };

	for (size_t k = 0; k < DTYPES; k++)
		for (size_t l = 0; l < ARRAY_SIZE(lengths); l++)
			for (int special = 0; special < 2; special++)
				tensor_scope
					check_lines(numbers(lengths[l], 3, dtypes[k], special));
}

/* Short lines are sorted several at a time; the last group has fewer. */
static void short_lines_agree_with_qsort(void **state)
{
	static const int64_t lengths[] = { 1, 2, 3, 4, 5, 8, 13, 16, 31, 32, 47, 63, 64, 65 };

	for (size_t k = 0; k < DTYPES; k++)
		for (size_t l = 0; l < ARRAY_SIZE(lengths); l++)
			tensor_scope {
				int64_t n = lengths[l];
				tensor *t = numbers(n, 7 + 13 * (int64_t)(l % 3), dtypes[k], l % 2);

				check_lines(t);
				if (n > 2)
					check_lines(ok(tensor_slice(t, 1, 0, n, 2)));
				check_lines(ok(tensor_slice(t, 0, 1, INT64_MAX, 2)));
			}
}

/* Elements with 5 values that differ in the lowest bits of the mantissa, of both signs. */
static void short_lines_are_sorted_by_all_bits(void **state)
{
	uint64_t seed = 3;

	for (int64_t n = 2; n <= 64; n += 7)
		tensor_scope {
			tensor *t = ok(tensor_empty(TENSOR_INTS(21, n), F64));
			double *p = tensor_mutable_data(t);

			for (int64_t i = 0; i < 21 * n; i++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				p[i] = (seed >> 40 & 1 ? 1 : -1) *
				       (1 + (double)(seed >> 50) * 0x1p-52);
			}
			check_lines(t);
		}
}

/* Lines along the middle one of three dimensions, of which no two can be merged. */
static void short_lines_of_any_strides_agree_with_contiguous_ones(void **state)
{
	for (size_t k = 0; k < DTYPES; k++)
		tensor_scope {
			tensor *t = numbers(6 * 2, 5 * 2 * 9, dtypes[k], true), *v, *i, *v2, *i2;

			t = ok(tensor_reshape(t, TENSOR_INTS(5, 12, 18)));
			t = ok(tensor_slice(tensor_slice(t, 1, 0, 12, 2), 2, 1, 18, 3));
			assert_done(tensor_sort(t, 1, true, &v, &i));
			t = ok(tensor_contiguous(tensor_transpose(t, 1, 2)));
			assert_done(tensor_sort(t, 2, true, &v2, &i2));
			assert_equal_tensors(tensor_transpose(v, 1, 2), v2);
			assert_equal_tensors(tensor_transpose(i, 1, 2), i2);
		}
}

static void long_lines_agree_with_qsort(void **state)
{
	for (int k = 0; k < 3; k++)
		tensor_scope {
			tensor *t = numbers(
				70001, 2,
				((enum tensor_dtype[]){ TENSOR_F32, TENSOR_F64, TENSOR_I32 })[k],
				k == 0);

			check_lines(t);
			check_lines(ok(tensor_slice(t, 1, 0, 70001, 3)));
		}
}

static void same_result_on_one_and_two_threads(void **state)
{
	int before = tensor_get_num_threads();
	tensor *v[2], *i[2];

	tensor_scope {
		tensor *t = numbers(3000, 40, TENSOR_BF16, true);

		for (int n = 0; n < 2; n++) {
			assert_done(tensor_set_num_threads(n + 1));
			assert_done(tensor_sort(t, 1, true, &v[n], &i[n]));
		}
		assert_memory_equal(tensor_data(v[0]), tensor_data(v[1]), 120000 * 2);
		assert_memory_equal(tensor_data(i[0]), tensor_data(i[1]), 120000 * 8);
	}
	tensor_set_num_threads(before);
}

static void median_is_the_lower_one_and_propagates_nan(void **state)
{
	const double x[] = { 5, 1, 4, 2, NAN, 3, NAN, 1, NAN, NAN, NAN, NAN };
	tensor *v, *i;

	tensor_scope {
		tensor *t = ok(tensor_from_data(x, TENSOR_INTS(3, 4), F64));

		assert_done(tensor_median_dim(t, 1, false, &v, &i));
		assert_values(v, 0, 2, NAN, NAN);
		assert_values(i, 0, 3, 0, 0);
		assert_done(tensor_nanmedian_dim(t, 1, true, &v, &i));
		assert_shape(v, 3, 1);
		assert_values(v, 0, 2, 1, NAN);
		assert_values(ok(tensor_narrow(i, 0, 0, 2)), 0, 3, 3);
		assert_values(tensor_median(t), 0, NAN);
		assert_values(tensor_nanmedian(t), 0, 2);
		assert_values(tensor_median(ok(tensor_t(ok(tensor_narrow(t, 0, 0, 1))))), 0, 2);
		assert_values(tensor_median(ok(tensor_empty(TENSOR_INTS(0), F32))), 0, NAN);
	}
}

static void mode_is_the_most_frequent_value(void **state)
{
	const double x[] = { 3, 1, 3, 2, 1, 7, 7, 7, 0, 0 };
	tensor *v, *i;

	tensor_scope {
		tensor *t = ok(tensor_to(ok(tensor_from_data(x, TENSOR_INTS(2, 5), F64)), I64));

		assert_done(tensor_mode(t, -1, false, &v, &i));
		assert_values(v, 0, 1, 7);
		assert_values(i, 0, 4, 2);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor *v, *i;

	tensor_scope {
		tensor *t = iota(0, TENSOR_INTS(2, 3)),
		       *zero = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(7), F32));
		tensor *none = ok(tensor_empty(TENSOR_INTS(2, 0), F32));
		tensor *out = ok(tensor_empty(TENSOR_INTS(6), F32));

		assert_fails(tensor_topk(t, 4, 1, true, true, &v, &i), EINVAL, "0 to 3");
		assert_null(v);
		assert_fails(tensor_kthvalue(t, 0, 1, false, &v, &i), EINVAL, "1 to 3");
		assert_fails(tensor_sort(t, 2, false, &v, &i), ERANGE, "out of range");
		assert_fails(tensor_median_dim(none, 1, false, &v, &i), EINVAL, "no elements");
		assert_fails(tensor_sort_out(out, out, t, 1, false), EINVAL, "share memory");
		assert_fails(tensor_sort(ok(tensor_empty(TENSOR_INTS(2),
							 TENSOR_OPTIONS(.dtype = TENSOR_C64))),
					 0, false, &v, &i),
			     EOPNOTSUPP, "c64");
		assert_done(tensor_sort(none, 1, false, &v, &i));
		assert_shape(v, 2, 0);
		assert_done(tensor_sort(zero, 0, false, &v, &i));
		assert_values(v, 0, 7);
		assert_values(i, 0, 0);
		assert_done(tensor_topk(t, 0, 1, true, true, &v, &i));
		assert_shape(i, 2, 0);
		/* an output may be the input */
		i = ok(tensor_empty(TENSOR_INTS(0), I64));
		assert_done(tensor_sort_out(t, i, t, 1, true));
		assert_values(t, 0, 2, 1, 0, 5, 4, 3);
	}
}

struct wide_item {
	int64_t value, at;
};

static int compare_wide(const void *a, const void *b)
{
	const struct wide_item *x = a, *y = b;
	int order = (x->value > y->value) - (x->value < y->value);

	order = descending ? -order : order;
	return order ? order : x->at < y->at ? -1 : 1;
}

/* Element i of a line: all bits differ, the lowest alone, few of both, or the range is full. */
static int64_t wide_value(int pattern, int64_t i, uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	switch (pattern) {
	case 0:
		return (int64_t)(*seed ^ *seed >> 31);
	case 1:
		return i ? (int64_t)(*seed >> 50) : INT64_MIN;
	case 2:
		return (int64_t)(*seed >> 61 << 40) + (int64_t)(i % 3) - ((int64_t)1 << 42);
	case 3:
		return i % 40 ? (int64_t)(*seed >> 30) : i % 80 ? INT64_MAX : INT64_MIN;
	default:
		return 7;
	}
}

/* Keys of 64 bits are sorted by the 32 highest of their range first. */
static void wide_keys_are_sorted_by_all_bits(void **state)
{
	static const int64_t sizes[] = { 1, 2, 191, 192, 193, 1000, 4096, 30000 };
	uint64_t seed = 1;

	for (size_t k = 0; k < ARRAY_SIZE(sizes) * 10; k++)
		tensor_scope {
			int64_t n = sizes[k / 10];
			struct wide_item *items = malloc(n * sizeof(*items));
			tensor *t = ok(tensor_empty(TENSOR_INTS(n), I64)), *v, *at;
			int64_t *p = tensor_mutable_data(t);

			descending = k % 2;
			for (int64_t i = 0; i < n; i++) {
				p[i] = wide_value((int)(k / 2 % 5), i, &seed);
				items[i] = (struct wide_item){ p[i], i };
			}
			qsort(items, n, sizeof(*items), compare_wide);
			assert_done(tensor_sort(t, 0, descending, &v, &at));
			for (int64_t i = 0; i < n; i++) {
				assert_int_equal(((const int64_t *)tensor_data(v))[i],
						 items[i].value);
				assert_int_equal(((const int64_t *)tensor_data(at))[i],
						 items[i].at);
			}
			free(items);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_dtype_and_length_agrees_with_qsort),
		cmocka_unit_test(short_lines_agree_with_qsort),
		cmocka_unit_test(short_lines_are_sorted_by_all_bits),
		cmocka_unit_test(short_lines_of_any_strides_agree_with_contiguous_ones),
		cmocka_unit_test(long_lines_agree_with_qsort),
		cmocka_unit_test(same_result_on_one_and_two_threads),
		cmocka_unit_test(median_is_the_lower_one_and_propagates_nan),
		cmocka_unit_test(mode_is_the_most_frequent_value),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(wide_keys_are_sorted_by_all_bits),
	};

	return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
