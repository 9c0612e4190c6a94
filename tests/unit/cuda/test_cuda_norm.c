// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: batch_norm and group_norm with their gradients against the CPU's results. */
#include "cuda_results.h"

static const enum tensor_dtype floats[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };

static tensor *maybe_cuda(tensor *t)
{
	return t == tensor_none ? t : on_cuda(t);
}

static tensor *maybe(bool there, int64_t n, enum tensor_dtype d)
{
	return there ? pseudo_random(TENSOR_SHAPE(n), d) : tensor_none;
}

/* f16 and bf16 round results of f32. */
static double norm_tolerance(enum tensor_dtype d)
{
	return d == TENSOR_F64 ? 1e-11 : d == TENSOR_F32 ? 3e-5 : 2 * tolerance(d);
}

/* ---- batch_norm ---- */

static void batch_norm_equals_the_cpu_in(tensor *x, bool affine, bool training)
{
	const enum tensor_dtype d = tensor_dtype(x);
	const int64_t n = tensor_sizes(x)[1];
	tensor *w = maybe(affine, n, d), *b = maybe(affine, n, d), *grad, *y[3], *v[3];
	tensor *mean = pseudo_random(TENSOR_SHAPE(n), d);
	tensor *var = ok(tensor_abs(pseudo_random(TENSOR_SHAPE(n), d)));
	tensor *gmean = on_cuda(mean), *gvar = on_cuda(var);
	double tol = norm_tolerance(d);

	assert_done(tensor_native_batch_norm(x, w, b, mean, var, training, 0.1, 1e-3, &y[0], &y[1],
					     &y[2]));
	assert_done(tensor_native_batch_norm(on_cuda(x), maybe_cuda(w), maybe_cuda(b), gmean, gvar,
					     training, 0.1, 1e-3, &v[0], &v[1], &v[2]));
	for (int i = 0; i < 3; i++)
		assert_near(v[i], y[i], tol);
	assert_near(gmean, mean, tol);
	assert_near(gvar, var, tol);
	grad = pseudo_random((tensor_ints){ tensor_sizes(x), tensor_dim(x) }, d);
	assert_done(tensor_native_batch_norm_backward(on_cuda(grad), on_cuda(x), maybe_cuda(w),
						      gmean, gvar, on_cuda(y[1]), on_cuda(y[2]),
						      training, 1e-3, 7, &v[0], &v[1], &v[2]));
	assert_done(tensor_native_batch_norm_backward(grad, x, w, mean, var, y[1], y[2], training,
						      1e-3, 7, &y[0], &y[1], &y[2]));
	for (int i = 0; i < 3; i++)
		assert_near(v[i], y[i], 20 * tol);
}

static void batch_norm_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int i = 0; i < 16; i++)
		tensor_scope {
			enum tensor_dtype d = floats[i % 4];
			bool affine = i & 4, training = i & 8;

			batch_norm_equals_the_cpu_in(pseudo_random(TENSOR_SHAPE(3, 5, 4, 6), d),
						     affine, training);
			batch_norm_equals_the_cpu_in(pseudo_random(TENSOR_SHAPE(4, 3, 7), d),
						     affine, training);
			batch_norm_equals_the_cpu_in(pseudo_random(TENSOR_SHAPE(37, 70), d), affine,
						     training);
			/* Several blocks for each channel. */
			batch_norm_equals_the_cpu_in(pseudo_random(TENSOR_SHAPE(3, 2, 61, 40), d),
						     affine, training);
		}
}

/* The variance of numbers that differ little from a large mean. */
static void statistics_with_a_large_mean(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *x = ok(tensor_add_scalar(pseudo_random(TENSOR_SHAPE(50, 3, 20), TENSOR_F32),
						 TENSOR_SCALAR(10000)));

		batch_norm_equals_the_cpu_in(x, true, true);
	}
}

/* ---- group_norm ---- */

static void group_norm_equals_the_cpu_in(tensor *x, int64_t groups, bool affine)
{
	const enum tensor_dtype d = tensor_dtype(x);
	const int64_t n = tensor_sizes(x)[0], c = tensor_sizes(x)[1];
	const int64_t inner = tensor_numel(x) / (n * c);
	tensor *w = maybe(affine, c, d), *b = maybe(affine, c, d), *grad, *y[3], *v[3];
	double tol = norm_tolerance(d);

	assert_done(
		tensor_native_group_norm(x, w, b, n, c, inner, groups, 1e-3, &y[0], &y[1], &y[2]));
	assert_done(tensor_native_group_norm(on_cuda(x), maybe_cuda(w), maybe_cuda(b), n, c, inner,
					     groups, 1e-3, &v[0], &v[1], &v[2]));
	for (int i = 0; i < 3; i++)
		assert_near(v[i], y[i], tol);
	grad = pseudo_random((tensor_ints){ tensor_sizes(x), tensor_dim(x) }, d);
	assert_done(tensor_native_group_norm_backward(on_cuda(grad), on_cuda(x), on_cuda(y[1]),
						      on_cuda(y[2]), maybe_cuda(w), n, c, inner,
						      groups, 7, &v[0], &v[1], &v[2]));
	assert_done(tensor_native_group_norm_backward(grad, x, y[1], y[2], w, n, c, inner, groups,
						      7, &y[0], &y[1], &y[2]));
	for (int i = 0; i < 3; i++)
		assert_near(v[i], y[i], 20 * tol);
}

static void group_norm_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int i = 0; i < 8; i++)
		tensor_scope {
			enum tensor_dtype d = floats[i % 4];
			bool affine = i & 4;

			group_norm_equals_the_cpu_in(pseudo_random(TENSOR_SHAPE(3, 6, 5, 8), d), 2,
						     affine);
			group_norm_equals_the_cpu_in(pseudo_random(TENSOR_SHAPE(3, 12), d), 4,
						     affine);
			group_norm_equals_the_cpu_in(pseudo_random(TENSOR_SHAPE(2, 4, 91, 60), d),
						     1, affine);
		}
}

static void norms_of_empty_batches(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *x = pseudo_random(TENSOR_SHAPE(0, 4, 5), TENSOR_F32), *g = on_cuda(x);
		tensor *w = pseudo_random(TENSOR_SHAPE(4), TENSOR_F32), *y[3], *v[3];

		assert_done(
			tensor_native_group_norm(x, w, w, 0, 4, 5, 2, 1e-3, &y[0], &y[1], &y[2]));
		assert_done(tensor_native_group_norm(g, on_cuda(w), on_cuda(w), 0, 4, 5, 2, 1e-3,
						     &v[0], &v[1], &v[2]));
		for (int i = 0; i < 3; i++)
			assert_near(v[i], y[i], 0);
		assert_done(tensor_native_group_norm_backward(x, x, y[1], y[2], w, 0, 4, 5, 2, 7,
							      &y[0], &y[1], &y[2]));
		assert_done(tensor_native_group_norm_backward(g, g, v[1], v[2], on_cuda(w), 0, 4, 5,
							      2, 7, &v[0], &v[1], &v[2]));
		for (int i = 0; i < 3; i++)
			assert_near(v[i], y[i], 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch_norm_equals_the_cpu),
		cmocka_unit_test(statistics_with_a_large_mean),
		cmocka_unit_test(group_norm_equals_the_cpu),
		cmocka_unit_test(norms_of_empty_batches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
