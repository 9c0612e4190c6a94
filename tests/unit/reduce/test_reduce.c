// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* sum, mean, max and argmax against plain loops over the same elements. */
#include "check.h"

#include <math.h>

static const enum tensor_dtype dtypes[] = { TENSOR_BOOL, TENSOR_U8,  TENSOR_I8,	 TENSOR_I16,
					    TENSOR_I32,	 TENSOR_I64, TENSOR_F32, TENSOR_F64 };
#define DTYPES (ARRAY_SIZE(dtypes))

/* Values that repeat, so that the maximum occurs more than once; small, for i8. */
static tensor *numbers(tensor_ints shape, enum tensor_dtype dtype)
{
	tensor *t = ok(tensor_zeros(shape, F64));
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++)
		p[i] = (double)((i * 2654435761u >> 7) % 101) - (dtype == TENSOR_U8 ? 0 : 50);
	return ok(tensor_to(t, TENSOR_OPTIONS(.dtype = dtype)));
}

/* A [4, 6, 10] tensor of the same elements in different memory layouts. */
#define LAYOUTS 8
static tensor *with_layout(int layout, enum tensor_dtype dtype)
{
	switch (layout) {
	case 0:
		return numbers(TENSOR_INTS(4, 6, 10), dtype);
	case 1:
		return ok(tensor_transpose(numbers(TENSOR_INTS(10, 6, 4), dtype), 0, 2));
	case 2:
		return ok(tensor_permute(numbers(TENSOR_INTS(6, 10, 4), dtype),
					 TENSOR_INTS(2, 0, 1)));
	case 3: /* every second column */
		return ok(tensor_slice(numbers(TENSOR_INTS(4, 6, 20), dtype), 2, 1, 20, 2));
	case 4:
		return ok(tensor_expand(numbers(TENSOR_INTS(4, 1, 10), dtype),
					TENSOR_INTS(4, 6, 10)));
	case 5:
		return ok(tensor_expand(numbers(TENSOR_INTS(6, 1), dtype), TENSOR_INTS(4, 6, 10)));
	case 6: /* reversed in two dimensions */
		return ok(tensor_as_strided(numbers(TENSOR_INTS(4, 6, 10), dtype),
					    TENSOR_INTS(4, 6, 10), TENSOR_INTS(60, -10, -1), 59));
	default: /* rows that are not aligned */
		return ok(tensor_narrow(numbers(TENSOR_INTS(4, 7, 13), dtype), 2, 2, 10));
	}
}

static tensor *tensor_in_layout(int layout, enum tensor_dtype dtype)
{
	tensor *t = with_layout(layout, dtype);

	return layout == 7 ? ok(tensor_narrow(t, 1, 1, 6)) : t;
}

struct expected {
	double sum[240], max[240], min[240];
	int64_t argmax[240], argmin[240], n;
	int64_t count;
};

/* Plain reduction over a mask of the dimensions of [4, 6, 10]. */
static void reduce_by_hand(const double *v, unsigned mask, struct expected *e)
{
	const int64_t size[3] = { 4, 6, 10 };

	e->n = 1;
	for (int d = 0; d < 3; d++)
		e->n *= mask >> d & 1 ? 1 : size[d];
	e->count = 240 / e->n;
	for (int64_t i = 0; i < e->n; i++) {
		e->sum[i] = 0;
		e->argmax[i] = e->argmin[i] = -1;
	}
	for (int64_t i = 0; i < 240; i++) {
		const int64_t pos[3] = { i / 60, i / 10 % 6, i % 10 };
		int64_t at = 0, along = 0;

		for (int d = 0; d < 3; d++) {
			if (mask >> d & 1)
				along = along * size[d] + pos[d];
			else
				at = at * size[d] + pos[d];
		}
		e->sum[at] += v[i];
		if (e->argmin[at] < 0 || v[i] < e->min[at]) {
			e->argmin[at] = along;
			e->min[at] = v[i];
		}
		if (e->argmax[at] < 0 || v[i] > e->max[at]) {
			e->argmax[at] = along;
			e->max[at] = v[i];
		}
	}
}

static void assert_reduced(tensor *got, const double *want, int64_t n, double tolerance)
{
	check_values_(got, want, n, tolerance, __FILE__, __LINE__);
}

static void compare_ints(tensor *got, const int64_t *want, int64_t n)
{
	double *w = malloc(n * sizeof(*w));

	for (int64_t i = 0; i < n; i++)
		w[i] = (double)want[i];
	assert_int_equal(tensor_dtype(got), TENSOR_I64);
	assert_reduced(got, w, n, 0);
	free(w);
}

static void check_mask(tensor *t, unsigned mask, bool keepdim)
{
	bool floating = tensor_dtype(t) >= TENSOR_F32;
	double *v = values_of(t);
	struct expected e;
	int64_t dim[3];
	int n = 0, one;
	tensor *s, *values, *indices;

	reduce_by_hand(v, mask, &e);
	for (int d = 2; d >= 0; d--)
		if (mask >> d & 1)
			dim[n++] = d % 2 ? d : d - 3; /* some are negative */
	one = (int)dim[0];
	s = ok(tensor_sum_dim(t, (tensor_ints){ dim, n }, keepdim));
	assert_int_equal(tensor_dtype(s), floating ? tensor_dtype(t) : TENSOR_I64);
	assert_int_equal(tensor_dim(s), keepdim ? 3 : 3 - n);
	assert_reduced(s, e.sum, e.n, 0);
	if (floating) {
		for (int64_t i = 0; i < e.n; i++)
			e.sum[i] /= e.count;
		assert_reduced(ok(tensor_mean_dim(t, (tensor_ints){ dim, n }, keepdim)), e.sum, e.n,
			       1e-5);
	}
	assert_reduced(ok(tensor_amax(t, (tensor_ints){ dim, n }, keepdim)), e.max, e.n, 0);
	assert_reduced(ok(tensor_amin(t, (tensor_ints){ dim, n }, keepdim)), e.min, e.n, 0);
	if (n == 1) {
		assert_done(tensor_max_dim(t, one, keepdim, &values, &indices));
		assert_reduced(values, e.max, e.n, 0);
		compare_ints(indices, e.argmax, e.n);
		compare_ints(ok(tensor_argmax(t, one, keepdim)), e.argmax, e.n);
		assert_done(tensor_min_dim(t, one, keepdim, &values, &indices));
		assert_reduced(values, e.min, e.n, 0);
		compare_ints(indices, e.argmin, e.n);
		compare_ints(ok(tensor_argmin(t, one, keepdim)), e.argmin, e.n);
	}
	if (n == 3) {
		assert_reduced(ok(tensor_max(t)), e.max, 1, 0);
		compare_ints(ok(tensor_argmax(t, TENSOR_NONE, keepdim)), e.argmax, 1);
	}
	free(v);
}

static void every_dtype_layout_and_dimension_agrees_with_plain_loops(void **state)
{
	for (size_t k = 0; k < DTYPES; k++)
		for (int layout = 0; layout < LAYOUTS; layout++)
			tensor_scope {
				tensor *t = tensor_in_layout(layout, dtypes[k]);

				for (unsigned mask = 1; mask < 8; mask++)
					check_mask(t, mask, mask % 2);
			}
}

/* Small integers, which every dtype represents. */
static void f16_bf16_and_complex_reduce_like_f64(void **state)
{
	static const enum tensor_dtype more[] = { TENSOR_F16, TENSOR_BF16, TENSOR_C64,
						  TENSOR_C128 };

	for (size_t k = 0; k < 4; k++)
		for (int layout = 0; layout < LAYOUTS; layout++)
			tensor_scope {
				tensor *w = tensor_in_layout(layout, TENSOR_I8), *s, *d, *v, *i, *x,
				       *y;
				tensor *t = ok(tensor_to(w, TENSOR_OPTIONS(.dtype = more[k])));

				t = layout == 1 ?
					    ok(tensor_transpose(
						    tensor_contiguous(tensor_transpose(t, 0, 2)), 0,
						    2)) :
					    t;
				w = ok(tensor_to(w, F64));
				for (int dim = 0; dim < 3; dim++) {
					s = ok(tensor_sum_dim(t, TENSOR_INTS(dim), false));
					d = ok(tensor_sum_dim(w, TENSOR_INTS(dim), false));
					assert_int_equal(tensor_dtype(s), more[k]);
					assert_reduced(ok(tensor_to(s, F64)), tensor_data(d),
						       tensor_numel(d), k == 1 ? 2 : 0);
					if (k > 1)
						continue;
					assert_done(tensor_max_dim(t, dim, false, &v, &i));
					assert_done(tensor_max_dim(w, dim, false, &x, &y));
					assert_int_equal(tensor_dtype(v), more[k]);
					assert_reduced(v, tensor_data(x), tensor_numel(x), 0);
					assert_reduced(i, tensor_data(ok(tensor_to(y, F64))),
						       tensor_numel(y), 0);
				}
			}
}

static void all_and_any_take_every_dtype(void **state)
{
	const double v[] = { 0, -0.0, 0, NAN, 0.25, 0, 3, -1, 2 };

	tensor_scope {
		tensor *t = ok(tensor_from_data(v, TENSOR_INTS(3, 3), F64));
		tensor *u = ok(tensor_to(ok(tensor_narrow(t, 0, 2, 1)),
					 TENSOR_OPTIONS(.dtype = TENSOR_U8)));
		tensor *none = ok(tensor_empty(TENSOR_INTS(0, 2), F32));

		assert_values(tensor_any_dim(t, 1, false), 0, 0, 1, 1);
		assert_values(tensor_all_dim(t, 1, true), 0, 0, 0, 1);
		assert_values(tensor_any_dims(t, TENSOR_INTS(0, 1), false), 0, 1);
		assert_values(tensor_all(t), 0, 0);
		assert_int_equal(tensor_dtype(ok(tensor_all(t))), TENSOR_BOOL);
		assert_int_equal(tensor_dtype(ok(tensor_all(u))), TENSOR_U8);
		assert_values(tensor_all(u), 0, 1);
		assert_values(tensor_any(none), 0, 0);
		assert_values(tensor_all_dim(none, 0, false), 0, 1, 1);
		assert_values(tensor_count_nonzero(t, TENSOR_NONE), 0, 5);
		assert_values(tensor_count_nonzero(t, 0), 0, 2, 2, 1);
		assert_values(tensor_nansum(t, TENSOR_NO_INTS, false), 0, 4.25);
		assert_values(tensor_sum(t), 0, NAN);
	}
}

static void product_of_no_elements_is_one(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_add_scalar(iota(0, TENSOR_INTS(2, 3)), TENSOR_SCALAR(1)));
		tensor *none = ok(tensor_empty(TENSOR_INTS(0, 2), I64));

		assert_values(tensor_prod(t), 0, 720);
		assert_values(tensor_prod_dim(t, 0, false), 0, 4, 10, 18);
		assert_values(tensor_prod_dim(t, -1, true), 0, 6, 120);
		assert_values(tensor_prod(none), 0, 1);
		assert_values(tensor_prod_dim(none, 0, false), 0, 1, 1);
	}
}

static void large_tensors_agree_with_f64_sums(void **state)
{
	static const int64_t shapes[][3] = { { 300, 7, 501 },  { 70001, 3, 1 },	 { 2, 90001, 1 },
					     { 5, 129, 1030 }, { 1, 1, 300007 }, { 33, 2049, 2 } };

	for (size_t k = 0; k < ARRAY_SIZE(shapes); k++)
		for (int d = 0; d < 3; d++)
			tensor_scope {
				tensor *t = numbers((tensor_ints){ shapes[k], 3 }, TENSOR_F32);
				tensor *x = ok(tensor_mul_scalar(t, TENSOR_SCALAR(0.37)));
				tensor *w = ok(tensor_to(x, F64)), *values, *indices, *w_indices;
				tensor *sum = ok(tensor_sum_dim(x, TENSOR_INTS(d), false));
				double *want =
					values_of(ok(tensor_sum_dim(w, TENSOR_INTS(d), false)));

				assert_reduced(sum, want, tensor_numel(sum), 0.02);
				free(want);
				assert_done(tensor_max_dim(x, d, false, &values, &indices));
				want = values_of(values);
				assert_done(tensor_max_dim(w, d, false, &values, &w_indices));
				assert_reduced(values, want, tensor_numel(values), 0);
				free(want);
				want = values_of(w_indices);
				assert_reduced(indices, want, tensor_numel(indices), 0);
				free(want);
			}
}

static void f32_sums_stay_accurate_when_long(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_full(TENSOR_INTS(1 << 22), TENSOR_SCALAR(0.1), F32));
		tensor *rows = ok(
			tensor_expand(ok(tensor_full(TENSOR_INTS(1, 20), TENSOR_SCALAR(0.1), F32)),
				      TENSOR_INTS(1 << 18, 20)));
		double want = (double)0.1f * (1 << 22), column[20];

		assert_values(tensor_sum(t), want * 1e-6, want);
		for (int i = 0; i < 20; i++)
			column[i] = (double)0.1f * (1 << 18);
		assert_reduced(
			ok(tensor_sum_dim(ok(tensor_contiguous(rows)), TENSOR_INTS(0), false)),
			column, 20, column[0] * 1e-6);
		assert_reduced(ok(tensor_sum_dim(rows, TENSOR_INTS(0), false)), column, 20,
			       column[0] * 1e-6);
	}
}

/* Sums and greatest elements of [outer, lines, width] over the first and the last dimension. */
static void check_short_lines(int64_t outer, int64_t lines, int64_t width, enum tensor_dtype dtype)
{
	tensor *t = numbers(TENSOR_INTS(outer, lines, width), dtype), *logs;
	double *v = values_of(t), *sum = calloc(lines, sizeof(*sum));
	double *max = calloc(lines, sizeof(*max)), *log_sum = calloc(lines, sizeof(*log_sum));

	for (int64_t i = 0; i < outer * lines * width; i++) {
		int64_t at = i / width % lines;

		max[at] = i < width * lines && i % width == 0 ? v[i] : fmax(max[at], v[i]);
		sum[at] += v[i];
		log_sum[at] += exp(v[i]);
	}
	for (int64_t i = 0; i < lines; i++)
		log_sum[i] = log(log_sum[i]);
	assert_reduced(ok(tensor_sum_dim(t, TENSOR_INTS(0, 2), false)), sum, lines, 0);
	assert_reduced(ok(tensor_amax(t, TENSOR_INTS(0, 2), true)), max, lines, 0);
	logs = ok(tensor_logsumexp(ok(tensor_to(t, F32)), TENSOR_INTS(0, 2), false));
	assert_reduced(logs, log_sum, lines, 1e-5);
	for (int64_t i = 0; i < lines; i++)
		sum[i] /= (double)(outer * width);
	if (dtype == TENSOR_F32)
		assert_reduced(ok(tensor_mean_dim(t, TENSOR_INTS(0, 2), false)), sum, lines, 1e-5);
	free(v);
	free(sum);
	free(max);
	free(log_sum);
}

static void short_lines_of_many_rows_agree_with_plain_loops(void **state)
{
	static const int64_t widths[] = { 2, 3, 8, 16, 49, 63, 64 };
	static const enum tensor_dtype kinds[] = { TENSOR_F32, TENSOR_I32, TENSOR_U8, TENSOR_F64 };

	for (size_t w = 0; w < ARRAY_SIZE(widths); w++)
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			tensor_scope {
				check_short_lines(95, 17, widths[w], kinds[k]);
				check_short_lines(16, 700, widths[w], kinds[k]);
				check_short_lines(1201, 2, widths[w], kinds[k]);
			}
}

static void same_bits_on_one_and_two_threads(void **state)
{
	static const int64_t shapes[][2] = {
		{ 4096, 257 }, { 3, 400001 }, { 300001, 5 }, { 1, 1000003 }
	};
	int before = tensor_get_num_threads();

	for (size_t k = 0; k < ARRAY_SIZE(shapes); k++)
		for (int d = -1; d < 2; d++)
			tensor_scope {
				tensor *t = ok(tensor_mul_scalar(
					numbers((tensor_ints){ shapes[k], 2 }, TENSOR_F32),
					TENSOR_SCALAR(1.0 / 3)));
				tensor_ints dim = d < 0 ? TENSOR_NO_INTS : TENSOR_INTS(d);
				tensor *lines = ok(tensor_view(
					ok(tensor_narrow(ok(tensor_view(t, TENSOR_INTS(-1))), 0, 0,
							 600000)),
					TENSOR_INTS(2000, 30, 10)));
				tensor *s[2], *m[2], *l[2];

				for (int n = 0; n < 2; n++) {
					assert_done(tensor_set_num_threads(n + 1));
					l[n] = ok(tensor_sum_dim(lines, TENSOR_INTS(0, 2), false));
					s[n] = ok(tensor_sum_dim(t, dim, false));
					m[n] = ok(tensor_argmax(t, d < 0 ? TENSOR_NONE : d, false));
				}
				assert_memory_equal(tensor_data(s[0]), tensor_data(s[1]),
						    tensor_numel(s[0]) * 4);
				assert_memory_equal(tensor_data(l[0]), tensor_data(l[1]), 30 * 4);
				assert_memory_equal(tensor_data(m[0]), tensor_data(m[1]),
						    tensor_numel(m[0]) * 8);
			}
	tensor_set_num_threads(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_dtype_layout_and_dimension_agrees_with_plain_loops),
		cmocka_unit_test(f16_bf16_and_complex_reduce_like_f64),
		cmocka_unit_test(all_and_any_take_every_dtype),
		cmocka_unit_test(product_of_no_elements_is_one),
		cmocka_unit_test(large_tensors_agree_with_f64_sums),
		cmocka_unit_test(f32_sums_stay_accurate_when_long),
		cmocka_unit_test(short_lines_of_many_rows_agree_with_plain_loops),
		cmocka_unit_test(same_bits_on_one_and_two_threads),
	};

	return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
