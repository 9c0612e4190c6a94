// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: scans along a dimension against the CPU's results. */
#include "cuda_results.h"

static const enum tensor_dtype floats[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };
static const enum tensor_dtype integers_[] = { TENSOR_BOOL, TENSOR_U8,	TENSOR_I8,
					       TENSOR_I16,  TENSOR_I32, TENSOR_I64 };
/* Lines of one thread, of one tile, of several, and in pieces. */
static const int64_t lengths[] = { 1, 3, 64, 65, 1000, 1024, 1025, 4100, 40000 };

/* Equal elements, so that positions of the last one count. */
static tensor *rounded(tensor_ints shape, enum tensor_dtype d)
{
	return ok(tensor_to(tensor_round(pseudo_random(shape, TENSOR_F32)),
			    TENSOR_OPTIONS(.dtype = d)));
}

static void best_equals_the_cpu(tensor *a, tensor *g, int64_t dim)
{
	tensor *y[2], *v[2];

	assert_done(tensor_cummax(a, dim, &y[0], &y[1]));
	assert_done(tensor_cummax(g, dim, &v[0], &v[1]));
	assert_near(v[0], y[0], 0);
	assert_near(v[1], y[1], 0);
	assert_done(tensor_cummin(a, dim, &y[0], &y[1]));
	assert_done(tensor_cummin(g, dim, &v[0], &v[1]));
	assert_near(v[0], y[0], 0);
	assert_near(v[1], y[1], 0);
}

static void scans_equal_the_cpu_in(tensor *a, tensor *g, int64_t dim)
{
	const double tol = tolerance(tensor_dtype(a));

	assert_near(tensor_cumsum(g, dim), tensor_cumsum(a, dim), tol);
	assert_near(tensor_cumprod(g, dim), tensor_cumprod(a, dim), tol);
	if (tensor_dtype(a) >= TENSOR_F16)
		assert_near(tensor_logcumsumexp(g, dim), tensor_logcumsumexp(a, dim), tol);
}

static void scans_of_floats(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < (ARRAY_SIZE(lengths) - !long_cases()) * 4; i++)
		tensor_scope {
			const int64_t n = lengths[i / 4];
			tensor *a = rounded(TENSOR_SHAPE(3, n), floats[i % 4]), *g = on_cuda(a);

			/* Products stay finite and do not become zero. */
			a = ok(tensor_clamp(a, TENSOR_SCALAR(-1), TENSOR_SCALAR(1)));
			a = ok(tensor_where(tensor_eq_scalar(a, TENSOR_SCALAR(0)),
					    tensor_ones_like(a, TENSOR_OPTIONS(0)), a));
			scans_equal_the_cpu_in(a, on_cuda(a), 1);
			best_equals_the_cpu(tensor_to(g, CPU), g, 1);
		}
}

static void scans_of_integers(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(integers_) * 3; i++)
		tensor_scope {
			const int64_t n = lengths[i % 3 * 3 + 1];
			tensor *a = rounded(TENSOR_SHAPE(4, n), integers_[i / 3]), *g = on_cuda(a);

			scans_equal_the_cpu_in(a, g, 1);
			best_equals_the_cpu(a, g, 1);
			assert_near(tensor_cumsum_opt(g, 1, TENSOR_F64),
				    tensor_cumsum_opt(a, 1, TENSOR_F64), 0);
			assert_near(tensor_cumsum_opt(g, 1, TENSOR_I32),
				    tensor_cumsum_opt(a, 1, TENSOR_I32), 0);
		}
}

static void scans_of_any_strides(void **state)
{
	NEED_DEVICE();
	for (int64_t dim = 0; dim < 3; dim++)
		tensor_scope {
			const int64_t n = long_cases() ? 70 : 5;
			tensor *a = pseudo_random(TENSOR_SHAPE(n, 90, 66), TENSOR_F64);
			tensor *g = on_cuda(a);

			a = ok(tensor_slice(tensor_permute(a, TENSOR_INTS(1, 2, 0)), 1, 0, 66, 3));
			g = ok(tensor_slice(tensor_permute(g, TENSOR_INTS(1, 2, 0)), 1, 0, 66, 3));
			assert_near(tensor_cumsum(g, dim), tensor_cumsum(a, dim), 1e-12);
			best_equals_the_cpu(a, g, dim);
		}
}

static void scans_with_nan_and_infinities(void **state)
{
	NEED_DEVICE();
	for (int64_t n = 50; n < 3000; n *= 7)
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(5, n), TENSOR_F32), *g;
			float *p = tensor_mutable_data(a);

			p[7] = NAN;
			p[n + 3] = INFINITY;
			p[2 * n] = p[2 * n + 1] = -INFINITY;
			p[3 * n + 9] = INFINITY;
			p[3 * n + 20] = -INFINITY;
			for (int64_t k = 0; k < n; k++)
				p[4 * n + k] = -INFINITY;
			g = on_cuda(a);
			best_equals_the_cpu(a, g, 1);
			assert_near(tensor_cumsum(g, 1), tensor_cumsum(a, 1), 1e-5);
			assert_near(tensor_logcumsumexp(g, 1), tensor_logcumsumexp(a, 1), 1e-5);
		}
}

static tensor *parts(tensor *t)
{
	return ok(tensor_contiguous(ok(tensor_view_as_real(t))));
}

static void scans_of_complex_numbers(void **state)
{
	NEED_DEVICE();
	for (int64_t n = 5; n < 3000; n *= 10)
		tensor_scope {
			tensor *a = ok(tensor_view_as_complex(
				pseudo_random(TENSOR_SHAPE(3, n, 2), TENSOR_F32)));
			tensor *g = on_cuda(a), *unit = ok(tensor_div(a, tensor_abs(a)));

			assert_near(parts(tensor_cumsum(g, 1)), parts(tensor_cumsum(a, 1)), 1e-5);
			assert_near(parts(tensor_cumprod(on_cuda(unit), 1)),
				    parts(tensor_cumprod(unit, 1)), 1e-5);
			/* The imaginary part may differ by multiples of 2 pi. */
			a = ok(tensor_div(a, tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(8.0),
							 F32)));
			assert_near(parts(tensor_exp(tensor_logcumsumexp(on_cuda(a), 1))),
				    parts(tensor_exp(tensor_logcumsumexp(a, 1))), 1e-4);
		}
}

static void scans_without_elements(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(3, 0, 2), TENSOR_F32), *g = on_cuda(a);
		tensor *one = pseudo_random(TENSOR_SCALAR_SHAPE, TENSOR_F32);

		scans_equal_the_cpu_in(a, g, 1);
		scans_equal_the_cpu_in(a, g, 0);
		scans_equal_the_cpu_in(one, on_cuda(one), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(scans_of_floats),
		cmocka_unit_test(scans_of_integers),
		cmocka_unit_test(scans_of_any_strides),
		cmocka_unit_test(scans_with_nan_and_infinities),
		cmocka_unit_test(scans_of_complex_numbers),
		cmocka_unit_test(scans_without_elements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
