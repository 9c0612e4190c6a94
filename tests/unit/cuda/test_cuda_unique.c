// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: unique elements and slices against the CPU's results. */
#include "cuda_results.h"
#include "tests/cuda/host/include/cuda_host.h"

static const enum tensor_dtype dtypes[] = { TENSOR_BOOL, TENSOR_U8,   TENSOR_I16, TENSOR_I64,
					    TENSOR_F16,	 TENSOR_BF16, TENSOR_F32, TENSOR_F64 };

/* Many equal elements, zeros of both signs, NaN, each of which is a run of its own, and infinities. */
static tensor *repeated(tensor_ints shape, enum tensor_dtype d)
{
	tensor *t = ok(tensor_round(pseudo_random(shape, TENSOR_F64)));
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; d >= TENSOR_F16 && i < tensor_numel(t); i += 9)
		p[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? -0.0 : i % 2 ? INFINITY : -INFINITY;
	if (d == TENSOR_BOOL || d == TENSOR_U8)
		t = ok(tensor_abs(t));
	return ok(tensor_to(t, TENSOR_OPTIONS(.dtype = d)));
}

static void check(tensor **g, tensor **c, int n)
{
	for (int i = 0; i < n; i++)
		assert_near(g[i], c[i], 0);
}

static void all_forms(tensor *a)
{
	tensor *g = on_cuda(a), *x[4], *y[4];

	for (int form = 0; form < 4; form++) {
		bool inverse = form & 1, counts = form & 2;

		assert_done(tensor_unique(g, true, inverse, counts, &x[0], &x[1], &x[2]));
		assert_done(tensor_unique(a, true, inverse, counts, &y[0], &y[1], &y[2]));
		check(x, y, 3);
		assert_done(tensor_unique_consecutive(g, inverse, counts, TENSOR_NONE, &x[0], &x[1],
						      &x[2]));
		assert_done(tensor_unique_consecutive(a, inverse, counts, TENSOR_NONE, &y[0], &y[1],
						      &y[2]));
		check(x, y, 3);
	}
	assert_done(tensor_unique_all(g, &x[0], &x[1], &x[2], &x[3]));
	assert_done(tensor_unique_all(a, &y[0], &y[1], &y[2], &y[3]));
	check(x, y, 4);
}

static void unique_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
		tensor_scope {
			tensor *a = repeated(TENSOR_SHAPE(8, 30), dtypes[d]);

			all_forms(a);
			all_forms(tensor_transpose(a, 0, 1));
			all_forms(tensor_narrow(a, 1, 0, 0));
			all_forms(tensor_select(tensor_select(a, 0, 1), 0, 1));
			all_forms(tensor_select(a, 0, 2));
		}
	assert_int_equal(tensor_cuda_fallbacks("_unique2"), 0);
	assert_int_equal(tensor_cuda_fallbacks("unique_all"), 0);
	assert_int_equal(tensor_cuda_fallbacks("unique_consecutive"), 0);
}

static void slices(tensor *a, int64_t dim)
{
	tensor *g = on_cuda(a), *x[3], *y[3];

	assert_done(tensor_unique_dim(g, dim, true, true, true, &x[0], &x[1], &x[2]));
	assert_done(tensor_unique_dim(a, dim, true, true, true, &y[0], &y[1], &y[2]));
	check(x, y, 3);
	assert_done(tensor_unique_consecutive(g, false, false, dim, &x[0], &x[1], &x[2]));
	assert_done(tensor_unique_consecutive(a, false, false, dim, &y[0], &y[1], &y[2]));
	check(x, y, 3);
}

static void unique_slices_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t d = 0; d < ARRAY_SIZE(dtypes); d += 3)
		tensor_scope {
			tensor *a = ok(tensor_clamp(repeated(TENSOR_SHAPE(20, 2), TENSOR_F64),
						    TENSOR_SCALAR(-1), TENSOR_SCALAR(1)));

			a = ok(tensor_to(a, TENSOR_OPTIONS(.dtype = dtypes[d])));
			slices(a, 0);
			slices(tensor_t(a), 1);
			slices(tensor_reshape(a, TENSOR_SHAPE(2, 10, 2)), 1);
			slices(tensor_narrow(a, 1, 0, 0), 0);
			slices(tensor_narrow(a, 0, 0, 0), 0);
			slices(tensor_narrow(a, 0, 0, 1), 0);
			slices(tensor_select(a, 1, 0), 0);
			slices(tensor_select(tensor_select(a, 0, 1), 0, 1), 0);
		}
	assert_int_equal(tensor_cuda_fallbacks("unique_dim"), 0);
	assert_int_equal(tensor_cuda_fallbacks("unique_consecutive"), 0);
}

static tensor *real_of(tensor *t)
{
	return tensor_dtype(ok(t)) == TENSOR_C64 ? ok(tensor_view_as_real(t)) : t;
}

/* Pairs of small numbers, with zeros of both signs and NaN in either part. */
static void unique_complex_numbers_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *pairs = ok(tensor_clamp(repeated(TENSOR_SHAPE(8, 6, 2), TENSOR_F32),
						TENSOR_SCALAR(-1), TENSOR_SCALAR(1)));
		tensor *a = ok(tensor_view_as_complex(pairs)), *g = on_cuda(a), *x[4], *y[4];

		assert_done(tensor_unique(g, true, true, true, &x[0], &x[1], &x[2]));
		assert_done(tensor_unique(a, true, true, true, &y[0], &y[1], &y[2]));
		for (int i = 0; i < 3; i++)
			assert_near(real_of(x[i]), real_of(y[i]), 0);
		assert_done(tensor_unique_all(tensor_t(g), &x[0], &x[1], &x[2], &x[3]));
		assert_done(tensor_unique_all(tensor_t(a), &y[0], &y[1], &y[2], &y[3]));
		for (int i = 0; i < 4; i++)
			assert_near(real_of(x[i]), real_of(y[i]), 0);
		for (int64_t dim = 0; dim < 2; dim++) {
			assert_done(
				tensor_unique_dim(g, dim, true, true, true, &x[0], &x[1], &x[2]));
			assert_done(
				tensor_unique_dim(a, dim, true, true, true, &y[0], &y[1], &y[2]));
			for (int i = 0; i < 3; i++)
				assert_near(real_of(x[i]), real_of(y[i]), 0);
		}
		assert_done(
			tensor_unique_consecutive(g, true, true, TENSOR_NONE, &x[0], &x[1], &x[2]));
		assert_done(
			tensor_unique_consecutive(a, true, true, TENSOR_NONE, &y[0], &y[1], &y[2]));
		for (int i = 0; i < 3; i++)
			assert_near(real_of(x[i]), real_of(y[i]), 0);
	}
	assert_int_equal(tensor_cuda_fallbacks("_unique2"), 0);
	assert_int_equal(tensor_cuda_fallbacks("unique_all"), 0);
}

static void unique_floats_of_8_bits_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = repeated(TENSOR_SHAPE(8, 6), TENSOR_F32), *g, *x[3], *y[3];

		a = ok(tensor_to(a, TENSOR_OPTIONS(.dtype = TENSOR_F8_E4M3FN)));
		g = on_cuda(a);
		assert_done(tensor_unique(g, true, true, true, &x[0], &x[1], &x[2]));
		assert_done(tensor_unique(a, true, true, true, &y[0], &y[1], &y[2]));
		check(x, y, 3);
		slices(a, 0);
	}
}

static unsigned long launches_for(void (*counts)(struct cuda_host_counts *), int64_t columns)
{
	tensor *a = on_cuda(repeated(TENSOR_SHAPE(20, columns), TENSOR_F32)), *x[3];
	struct cuda_host_counts before, after;

	counts(&before);
	assert_done(tensor_unique_dim(a, 0, true, true, true, &x[0], &x[1], &x[2]));
	counts(&after);
	return after.launches - before.launches;
}

/* Not one for each column. */
static void slices_are_sorted_once(void **state)
{
	void (*counts)(struct cuda_host_counts *);

	NEED_DEVICE();
	counts = emulation("cuda_host_counts");
	if (!counts) {
		print_message("# skipped: no emulation\n");
		skip();
	}
	tensor_scope
		assert_true(launches_for(counts, 50) < launches_for(counts, 3) + 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unique_equals_the_cpu),
		cmocka_unit_test(unique_slices_equal_the_cpu),
		cmocka_unit_test(unique_complex_numbers_equal_the_cpu),
		cmocka_unit_test(unique_floats_of_8_bits_equal_the_cpu),
		cmocka_unit_test(slices_are_sorted_once),
	};

	return cmocka_run_group_tests_name("cuda_unique", tests, NULL, NULL);
}
