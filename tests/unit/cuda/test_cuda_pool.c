// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: pooling and its gradients against the CPU's results. */
#include "cuda_results.h"

static const enum tensor_dtype floats[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };

struct window {
	int64_t kernel[3], stride[3], padding[3], dilation[3];
	bool ceil;
};

static const struct window windows[] = {
	{ { 2, 2, 2 }, { 2, 2, 2 }, { 0, 0, 0 }, { 1, 1, 1 }, false },
	{ { 3, 3, 3 }, { 2, 2, 2 }, { 1, 1, 1 }, { 1, 1, 1 }, false },
	{ { 3, 2, 4 }, { 1, 3, 2 }, { 1, 0, 2 }, { 1, 1, 1 }, true },
	{ { 2, 3, 2 }, { 1, 1, 3 }, { 1, 1, 0 }, { 2, 1, 3 }, false },
	{ { 4, 4, 4 }, { 3, 3, 3 }, { 2, 2, 1 }, { 1, 1, 1 }, true },
};

/* Few different values: of equal elements the first is the maximum. */
static tensor *repeated(tensor_ints shape, enum tensor_dtype d)
{
	return ok(tensor_to(tensor_round(pseudo_random(shape, TENSOR_F32)),
			    TENSOR_OPTIONS(.dtype = d)));
}

/* ---- maxima ---- */

static void max_pool_equals_the_cpu_in(const struct window *w, tensor *x, bool grads)
{
	const int n = tensor_dim(x) - 2;
	const tensor_ints k = { w->kernel + 3 - n, n }, s = { w->stride + 3 - n, n };
	const tensor_ints p = { w->padding + 3 - n, n }, l = { w->dilation + 3 - n, n };
	tensor *g = on_cuda(x), *y[2], *v[2], *grad, *dy, *dv;

	assert_done(n == 2 ? tensor_max_pool2d_with_indices(x, k, s, p, l, w->ceil, &y[0], &y[1]) :
			     tensor_max_pool3d_with_indices(x, k, s, p, l, w->ceil, &y[0], &y[1]));
	assert_done(n == 2 ? tensor_max_pool2d_with_indices(g, k, s, p, l, w->ceil, &v[0], &v[1]) :
			     tensor_max_pool3d_with_indices(g, k, s, p, l, w->ceil, &v[0], &v[1]));
	assert_near(v[0], y[0], 0);
	assert_near(v[1], y[1], 0);
	if (!grads)
		return;
	grad = pseudo_random((tensor_ints){ tensor_sizes(y[0]), tensor_dim(y[0]) },
			     tensor_dtype(x));
	dy = n == 2 ? tensor_max_pool2d_with_indices_backward(grad, x, k, s, p, l, w->ceil, y[1]) :
		      tensor_max_pool3d_with_indices_backward(grad, x, k, s, p, l, w->ceil, y[1]);
	dv = n == 2 ? tensor_max_pool2d_with_indices_backward(on_cuda(grad), g, k, s, p, l, w->ceil,
							      v[1]) :
		      tensor_max_pool3d_with_indices_backward(on_cuda(grad), g, k, s, p, l, w->ceil,
							      v[1]);
	assert_near(dv, dy, 0);
}

static void max_pool_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(windows) * 4; i++)
		tensor_scope {
			const struct window *w = &windows[i / 4];
			enum tensor_dtype d = floats[i % 4];

			max_pool_equals_the_cpu_in(w, repeated(TENSOR_SHAPE(3, 5, 9, 11), d), true);
			max_pool_equals_the_cpu_in(w, repeated(TENSOR_SHAPE(2, 3, 7, 8, 9), d),
						   true);
		}
}

static void max_pool_of_integers_and_nan(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_U8, TENSOR_I8, TENSOR_I16, TENSOR_I32,
						    TENSOR_I64 };

	NEED_DEVICE();
	tensor_scope {
		tensor *x = pseudo_random(TENSOR_SHAPE(2, 3, 8, 9), TENSOR_F32);
		float *p = tensor_mutable_data(x);

		for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
			max_pool_equals_the_cpu_in(
				&windows[1], repeated(TENSOR_SHAPE(2, 3, 8, 9), dtypes[i]), false);
		for (int i = 0; i < 100; i += 7)
			p[i] = i % 3 ? NAN : -INFINITY;
		max_pool_equals_the_cpu_in(&windows[1], x, true);
	}
}

static void indices_out_of_the_plane_are_refused(void **state)
{
	NEED_DEVICE();
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT);
	tensor_scope {
		tensor *x = on_cuda(pseudo_random(TENSOR_SHAPE(1, 1, 4, 4), TENSOR_F32));
		tensor *grad = on_cuda(pseudo_random(TENSOR_SHAPE(1, 1, 2, 2), TENSOR_F32));
		tensor *at =
			on_cuda(integers(TENSOR_SHAPE(1, 1, 2, 2), (int64_t[]){ 0, 3, 16, 9 }));

		assert_fails(tensor_max_pool2d_with_indices_backward(
				     grad, x, TENSOR_INTS(2, 2), TENSOR_INTS(2, 2),
				     TENSOR_INTS(0, 0), TENSOR_INTS(1, 1), false, at),
			     ERANGE, "index 16 is out of range");
		assert_done(tensor_cuda_synchronize(0));
	}
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE);
}

/* ---- means ---- */

static void avg_pool_equals_the_cpu_in(const struct window *w, tensor *x, bool pad, int64_t divisor)
{
	const int n = tensor_dim(x) - 2;
	const tensor_ints k = { w->kernel + 3 - n, n }, s = { w->stride + 3 - n, n };
	const tensor_ints p = { w->padding + 3 - n, n };
	double tol = 2 * tolerance(tensor_dtype(x));
	tensor *g = on_cuda(x), *y, *v, *grad;

	y = n == 2 ? tensor_avg_pool2d(x, k, s, p, w->ceil, pad, divisor) :
		     tensor_avg_pool3d(x, k, s, p, w->ceil, pad, divisor);
	v = n == 2 ? tensor_avg_pool2d(g, k, s, p, w->ceil, pad, divisor) :
		     tensor_avg_pool3d(g, k, s, p, w->ceil, pad, divisor);
	assert_near(v, y, tol);
	grad = pseudo_random((tensor_ints){ tensor_sizes(y), tensor_dim(y) }, tensor_dtype(x));
	y = n == 2 ? tensor_avg_pool2d_backward(grad, x, k, s, p, w->ceil, pad, divisor) :
		     tensor_avg_pool3d_backward(grad, x, k, s, p, w->ceil, pad, divisor);
	v = n == 2 ? tensor_avg_pool2d_backward(on_cuda(grad), g, k, s, p, w->ceil, pad, divisor) :
		     tensor_avg_pool3d_backward(on_cuda(grad), g, k, s, p, w->ceil, pad, divisor);
	assert_near(v, y, tol);
}

static void avg_pool_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(windows) * 8; i++)
		tensor_scope {
			const struct window *w = &windows[i / 8];
			enum tensor_dtype d = floats[i % 4];
			int64_t divisor = i % 3 == 2 ? 7 : TENSOR_NONE;

			avg_pool_equals_the_cpu_in(w, pseudo_random(TENSOR_SHAPE(3, 5, 9, 11), d),
						   i & 4, divisor);
			avg_pool_equals_the_cpu_in(w, pseudo_random(TENSOR_SHAPE(2, 3, 7, 8, 9), d),
						   i & 4, divisor);
		}
	tensor_scope {
		const tensor_ints one = TENSOR_INTS(1), none = TENSOR_INTS(0);
		tensor *x = integers(TENSOR_SHAPE(1, 1, 1), (const int64_t[]){ INT64_MIN });

		assert_near(tensor_avg_pool2d(on_cuda(x), one, one, none, false, true, -1),
			    tensor_avg_pool2d(x, one, one, none, false, true, -1), 0);
	}
}

/* ---- adaptive ---- */

static void adaptive_pool_equals_the_cpu_in(enum tensor_dtype d, int64_t h, int64_t w)
{
	tensor *x = repeated(TENSOR_SHAPE(3, 2, 9, 10), d), *g = on_cuda(x), *y[2], *v[2], *grad;
	double tol = 2 * tolerance(d);

	y[0] = ok(tensor_adaptive_avg_pool2d_windows(x, TENSOR_INTS(h, w)));
	assert_near(tensor_adaptive_avg_pool2d_windows(g, TENSOR_INTS(h, w)), y[0], tol);
	grad = pseudo_random((tensor_ints){ tensor_sizes(y[0]), 4 }, d);
	assert_near(tensor_adaptive_avg_pool2d_backward(on_cuda(grad), g),
		    tensor_adaptive_avg_pool2d_backward(grad, x), tol);
	assert_done(tensor_adaptive_max_pool2d(x, TENSOR_INTS(h, w), &y[0], &y[1]));
	assert_done(tensor_adaptive_max_pool2d(g, TENSOR_INTS(h, w), &v[0], &v[1]));
	assert_near(v[0], y[0], 0);
	assert_near(v[1], y[1], 0);
	assert_near(tensor_adaptive_max_pool2d_backward(on_cuda(grad), g, v[1]),
		    tensor_adaptive_max_pool2d_backward(grad, x, y[1]), 0);
}

static void adaptive_pool_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int d = 0; d < 4; d++)
		tensor_scope {
			adaptive_pool_equals_the_cpu_in(floats[d], 1, 1);
			adaptive_pool_equals_the_cpu_in(floats[d], 3, 5);
			adaptive_pool_equals_the_cpu_in(floats[d], 4, 7);
			adaptive_pool_equals_the_cpu_in(floats[d], 13, 21);
		}
}

static void pools_without_elements(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *x = pseudo_random(TENSOR_SHAPE(0, 3, 8, 9), TENSOR_F32);

		max_pool_equals_the_cpu_in(&windows[0], x, true);
		avg_pool_equals_the_cpu_in(&windows[0], x, true, TENSOR_NONE);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(max_pool_equals_the_cpu),
		cmocka_unit_test(max_pool_of_integers_and_nan),
		cmocka_unit_test(indices_out_of_the_plane_are_refused),
		cmocka_unit_test(avg_pool_equals_the_cpu),
		cmocka_unit_test(adaptive_pool_equals_the_cpu),
		cmocka_unit_test(pools_without_elements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
