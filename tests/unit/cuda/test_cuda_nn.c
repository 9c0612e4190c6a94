// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: normalization, losses and optimizers, against the CPU's results. */
#include "cuda_results.h"

static const enum tensor_dtype floats[] = { TENSOR_F32, TENSOR_F64 };

static double nn_tolerance(enum tensor_dtype d)
{
	return d == TENSOR_F64 ? 1e-11 : d == TENSOR_F32 ? 2e-5 : tolerance(d);
}

/* ---- layer_norm ---- */

static tensor *maybe_cuda(tensor *t)
{
	return t == tensor_none ? t : on_cuda(t);
}

static void layer_norm_equals_the_cpu(enum tensor_dtype d, int64_t rows, int64_t n, bool affine)
{
	tensor *x = pseudo_random(TENSOR_SHAPE(rows, n), d), *grad;
	tensor *w = affine ? pseudo_random(TENSOR_SHAPE(n), d) : tensor_none;
	tensor *b = affine ? pseudo_random(TENSOR_SHAPE(n), d) : tensor_none;
	tensor *y[3], *g[3], *dy[3], *dg[3];
	double tol = nn_tolerance(d);

	grad = pseudo_random(TENSOR_SHAPE(rows, n), d);
	assert_done(tensor_native_layer_norm(x, TENSOR_INTS(n), w, b, 1e-5, &y[0], &y[1], &y[2]));
	assert_done(tensor_native_layer_norm(on_cuda(x), TENSOR_INTS(n), maybe_cuda(w),
					     maybe_cuda(b), 1e-5, &g[0], &g[1], &g[2]));
	for (int i = 0; i < 3; i++)
		assert_near(g[i], y[i], tol);
	assert_done(tensor_native_layer_norm_backward(grad, x, TENSOR_INTS(n), y[1], y[2], w, b, 7,
						      &dy[0], &dy[1], &dy[2]));
	assert_done(tensor_native_layer_norm_backward(on_cuda(grad), on_cuda(x), TENSOR_INTS(n),
						      on_cuda(y[1]), on_cuda(y[2]), maybe_cuda(w),
						      maybe_cuda(b), 7, &dg[0], &dg[1], &dg[2]));
	for (int i = 0; i < (affine ? 3 : 1); i++)
		assert_near(dg[i], dy[i], 20 * tol);
}

static void layer_norm_of_rows_of_any_length(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16,
						    TENSOR_BF16 };
	static const int64_t lengths[] = { 2, 3, 4, 5, 31, 32, 33, 768, 1023, 1025, 4096, 20000 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(lengths) * 8; i++)
		tensor_scope {
			const int64_t n = lengths[i / 8], rows = n > 1000 ? 3 : 300;

			layer_norm_equals_the_cpu(dtypes[i & 3], n > 33 && !long_cases() ? 3 : rows,
						  n, i & 4);
		}
}

/* ---- nll_loss ---- */

static tensor *classes(int64_t rows, int64_t n, int64_t ignored)
{
	tensor *t = ok(tensor_empty(TENSOR_SHAPE(rows), I64));
	int64_t *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < rows; i++)
		p[i] = i % 5 == 3 ? ignored : i * 7 % n;
	return t;
}

static void nll_loss_equals_the_cpu_in(enum tensor_dtype d, int64_t rows, int64_t reduction,
				       bool weighted)
{
	const int64_t n = 11;
	tensor *x = pseudo_random(TENSOR_SHAPE(rows, n), d), *t = classes(rows, n, -100);
	tensor *w = weighted ? tensor_abs(pseudo_random(TENSOR_SHAPE(n), d)) : tensor_none;
	tensor *y[2], *g[2], *grad;

	assert_done(tensor_nll_loss_forward(x, t, w, reduction, -100, &y[0], &y[1]));
	assert_done(tensor_nll_loss_forward(on_cuda(x), on_cuda(t), maybe_cuda(w), reduction, -100,
					    &g[0], &g[1]));
	assert_near(g[0], y[0], nn_tolerance(d));
	assert_near(g[1], y[1], nn_tolerance(d));
	grad = reduction ? ok(tensor_full_like(y[0], TENSOR_SCALAR(1.5), TENSOR_OPTIONS(0))) :
			   pseudo_random(TENSOR_SHAPE(rows), d);
	assert_near(tensor_nll_loss_backward(on_cuda(grad), on_cuda(x), on_cuda(t), maybe_cuda(w),
					     reduction, -100, on_cuda(y[1])),
		    tensor_nll_loss_backward(grad, x, t, w, reduction, -100, y[1]),
		    nn_tolerance(d));
}

static void nll_loss_equals_the_cpu(void **state)
{
	static const int64_t rows[] = { 1, 2, 300, 5000 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(rows) * 12; i++)
		tensor_scope
			nll_loss_equals_the_cpu_in(floats[i & 1], rows[i / 12],
						   (int64_t)(i / 4 % 3), i & 2);
}

static void targets_that_are_no_class_are_refused(void **state)
{
	NEED_DEVICE();
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT);
	tensor_scope {
		tensor *x = on_cuda(pseudo_random(TENSOR_SHAPE(3, 4), TENSOR_F32)), *y[2];
		tensor *t = on_cuda(integers(TENSOR_SHAPE(3), (int64_t[]){ 0, 4, -1 }));

		assert_fails(tensor_nll_loss_forward(x, t, tensor_none, 1, -100, &y[0], &y[1]),
			     EINVAL, "target of row 1 is class 4, expected 0 to 3");
		assert_done(tensor_cuda_synchronize(0));
	}
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE);
}

/* ---- random numbers, triangles ---- */

static void dropout_has_the_numbers_of_the_cpu(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16,
						    TENSOR_BF16 };
	static const int64_t lengths[] = { 1, 15, 63, 64, 65, 1000, 5000 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(lengths) * 4 * 3; i++)
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(lengths[i / 12]), dtypes[i % 4]);
			tensor *g = on_cuda(a), *y[2], *v[2];
			double p = (double)(i / 4 % 3) / 2;

			tensor_manual_seed(i);
			assert_done(tensor_native_dropout(a, p, true, &y[0], &y[1]));
			tensor_manual_seed(i);
			assert_done(tensor_native_dropout(g, p, true, &v[0], &v[1]));
			assert_near(v[0], y[0], 0);
			assert_near(v[1], y[1], 0);
			tensor_manual_seed(i);
			ok(tensor_bernoulli_float_(a, p));
			tensor_manual_seed(i);
			ok(tensor_bernoulli_float_(g, p));
			assert_near(g, a, 0);
		}
}

static void triangles_equal_the_cpu(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_U8, TENSOR_F16, TENSOR_F32, TENSOR_I64 };

	NEED_DEVICE();
	for (int64_t k = -8; k <= 8; k += 2)
		for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
			tensor_scope {
				tensor *a = pseudo_random(TENSOR_SHAPE(3, 7, 5), dtypes[i]);
				tensor *g = on_cuda(a);

				assert_near(tensor_tril(g, k), tensor_tril(a, k), 0);
				assert_near(tensor_triu(tensor_transpose(g, 0, 2), k),
					    tensor_triu(tensor_transpose(a, 0, 2), k), 0);
			}
}

/* ---- products ---- */

static void products_equal_the_cpu_in(enum tensor_dtype d)
{
	const double tol = d == TENSOR_BF16 ? 3e-2 : d == TENSOR_F16 ? 4e-3 : 1e-5;
	tensor *a = pseudo_random(TENSOR_SHAPE(3, 5, 8), d), *ga = on_cuda(a);
	tensor *b = pseudo_random(TENSOR_SHAPE(3, 8, 7), d), *gb = on_cuda(b);
	tensor *t = pseudo_random(TENSOR_SHAPE(3, 7, 8), d), *gt = on_cuda(t);
	tensor *wide = pseudo_random(TENSOR_SHAPE(3, 5, 16), d), *gw = on_cuda(wide);
	tensor *m0 = tensor_select(a, 0, 0), *m1 = tensor_select(b, 0, 1);

	assert_near(tensor_bmm(ga, gb), tensor_bmm(a, b), tol);
	assert_near(tensor_bmm(ga, tensor_transpose(gt, 1, 2)),
		    tensor_bmm(a, tensor_transpose(t, 1, 2)), tol);
	assert_near(tensor_bmm(tensor_slice(gw, 2, 1, 9, 1), gb),
		    tensor_bmm(tensor_slice(wide, 2, 1, 9, 1), b), tol);
	assert_near(tensor_bmm(tensor_slice(gw, 2, 0, 16, 2), gb),
		    tensor_bmm(tensor_slice(wide, 2, 0, 16, 2), b), tol);
	assert_near(tensor_bmm(tensor_expand(tensor_slice(ga, 0, 1, 2, 1), TENSOR_INTS(3, 5, 8)),
			       gb),
		    tensor_bmm(tensor_expand(tensor_slice(a, 0, 1, 2, 1), TENSOR_INTS(3, 5, 8)), b),
		    tol);
	assert_near(tensor_bmm(tensor_slice(ga, 2, 0, 0, 1), tensor_slice(gb, 1, 0, 0, 1)),
		    tensor_bmm(tensor_slice(a, 2, 0, 0, 1), tensor_slice(b, 1, 0, 0, 1)), 0);
	assert_near(tensor_mm(tensor_select(ga, 0, 0), tensor_select(gb, 0, 1)), tensor_mm(m0, m1),
		    tol);
	assert_near(tensor_matmul(ga, tensor_select(gb, 0, 1)), tensor_matmul(a, m1), tol);
}

static void products_of_every_float_equal_the_cpu(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16,
						    TENSOR_BF16 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
		tensor_scope
			products_equal_the_cpu_in(dtypes[i]);
}

static void complex_products_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int d = TENSOR_C64; d <= TENSOR_C128; d++)
		tensor_scope {
			tensor *parts = pseudo_random(TENSOR_SHAPE(2, 4, 4, 2), TENSOR_F64);
			tensor *a = ok(tensor_view_as_complex(parts)), *got, *want;

			a = ok(tensor_to(a, TENSOR_OPTIONS(.dtype = d)));
			got = ok(tensor_to(tensor_bmm(on_cuda(a), on_cuda(a)), CPU));
			want = ok(tensor_bmm(a, a));
			assert_values(tensor_lt(tensor_amax(tensor_abs(tensor_sub(got, want)),
							    TENSOR_INTS(0, 1, 2), false),
						tensor_full(TENSOR_SCALAR_SHAPE,
							    TENSOR_SCALAR(1e-4), F64)),
				      0, 1);
		}
}

/* ---- optimizers ---- */

enum { PARAMS = 30, LISTS = 5 }; /* more parameters than one launch has */

/* Parameters, gradients and states of several sizes, on the CPU; some begin at odd addresses. */
static void make_lists(tensor *(*t)[PARAMS], enum tensor_dtype d)
{
	for (int l = 0; l < LISTS; l++)
		for (int i = 0; i < PARAMS; i++) {
			int64_t n = i == 7 ? 5000 : i * i + 1;

			t[l][i] = pseudo_random(TENSOR_SHAPE(n + 1), d);
			t[l][i] = ok(tensor_slice(t[l][i], 0, i % 2, n + i % 2, 1));
			if (l > 1) /* states are positive */
				t[l][i] = ok(tensor_abs(t[l][i]));
		}
}

static void copy_lists(tensor *(*to)[PARAMS], tensor *(*from)[PARAMS])
{
	for (int l = 0; l < LISTS; l++)
		for (int i = 0; i < PARAMS; i++)
			to[l][i] = on_cuda(from[l][i]);
}

static void one_step(tensor *(*t)[PARAMS], tensor **steps, int method)
{
	const tensor_list none = { 0 };
	tensor_list p[LISTS], s = { .data = steps, .len = PARAMS };

	for (int l = 0; l < LISTS; l++)
		p[l] = (tensor_list){ .data = t[l], .len = PARAMS };
	if (method < 4)
		assert_done(tensor__fused_adam_(p[0], p[1], p[2], p[3], method & 1 ? p[4] : none, s,
						0.1, 0.9, 0.99, method & 2 ? 0.1 : 0, 1e-8,
						method & 1, method & 2));
	else if (method == 4)
		assert_done(tensor__fused_adamw_(p[0], p[1], p[2], p[3], none, s, 0.1, 0.9, 0.99,
						 0.1, 1e-8, false, false));
	else if (method == 5)
		assert_done(
			tensor__fused_adagrad_(p[0], p[1], p[2], s, 0.1, 0.01, 0.1, 1e-8, false));
	else
		assert_done(tensor__fused_sgd_(p[0], p[1], method == 6 ? none : p[2], 0.1,
					       method == 6 ? 0 : 0.9, 0.1, 0.1, method == 8, false,
					       method == 9));
}

static void optimizer_steps_equal_the_cpu(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16,
						    TENSOR_F16 };

	NEED_DEVICE();
	for (int i = 0; i < 10 * 4; i++)
		tensor_scope {
			enum tensor_dtype d = dtypes[i % 4];
			double tol = i % 4 > 1 ? 1e-2 : nn_tolerance(d);
			tensor *t[LISTS][PARAMS], *g[LISTS][PARAMS], *steps[PARAMS];

			make_lists(t, d);
			copy_lists(g, t);
			for (int k = 0; k < PARAMS; k++)
				steps[k] =
					ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(3), F32));
			one_step(t, steps, i / 4);
			one_step(g, steps, i / 4);
			for (int l = 0; l < LISTS; l++)
				for (int k = 0; k < PARAMS; k++)
					assert_near(g[l][k], t[l][k], tol);
		}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(layer_norm_of_rows_of_any_length),
		cmocka_unit_test(nll_loss_equals_the_cpu),
		cmocka_unit_test(targets_that_are_no_class_are_refused),
		cmocka_unit_test(dropout_has_the_numbers_of_the_cpu),
		cmocka_unit_test(triangles_equal_the_cpu),
		cmocka_unit_test(products_of_every_float_equal_the_cpu),
		cmocka_unit_test(complex_products_equal_the_cpu),
		cmocka_unit_test(optimizer_steps_equal_the_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
