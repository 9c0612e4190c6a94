// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: unique elements against the CPU's results. */
#include "cuda_results.h"

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

/* Slices, and complex numbers, on the CPU. */
static void others_run_on_the_cpu(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = repeated(TENSOR_SHAPE(9, 2), TENSOR_I64), *g = on_cuda(a), *x[3], *y[3];
		tensor *z = tensor_view_as_complex(repeated(TENSOR_SHAPE(9, 2), TENSOR_F32));

		assert_done(tensor_unique_dim(g, 0, true, true, true, &x[0], &x[1], &x[2]));
		assert_done(tensor_unique_dim(a, 0, true, true, true, &y[0], &y[1], &y[2]));
		check(x, y, 3);
		assert_done(tensor_unique_consecutive(g, true, true, 1, &x[0], &x[1], &x[2]));
		assert_done(tensor_unique_consecutive(a, true, true, 1, &y[0], &y[1], &y[2]));
		check(x, y, 3);
		assert_done(tensor_unique(on_cuda(z), true, true, true, &x[0], &x[1], &x[2]));
		assert_done(tensor_unique(z, true, true, true, &y[0], &y[1], &y[2]));
		x[0] = tensor_view_as_real(x[0]);
		y[0] = tensor_view_as_real(y[0]);
		check(x, y, 3);
		assert_int_equal(tensor_cuda_fallbacks("unique_dim"), 1);
		tensor_cuda_set_fallback(false);
		assert_fails(tensor_unique_dim(g, 0, true, true, true, &x[0], &x[1], &x[2]),
			     EOPNOTSUPP, "unique_dim: no kernel for dtype i64 on cuda");
		tensor_cuda_set_fallback(true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unique_equals_the_cpu),
		cmocka_unit_test(others_run_on_the_cpu),
	};

	return cmocka_run_group_tests_name("cuda_unique", tests, NULL, NULL);
}
