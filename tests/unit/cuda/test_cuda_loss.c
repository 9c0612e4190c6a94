// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: distances, losses of pairs, CTC, layers of an LSTM and sampling by a grid, against the CPU. */
#include "cuda_results.h"

#include <tensor/autograd.h>

static const enum tensor_dtype wide[] = { TENSOR_F32, TENSOR_F64 };

/* ---- distances ---- */

static const double norms[] = { 0, 1, 2, 3, 2.5, INFINITY };

static void distances_equal_the_cpu_in(enum tensor_dtype d, double p, int64_t n, int64_t m,
				       int64_t k)
{
	tensor *x = pseudo_random(TENSOR_SHAPE(2, n, k), d),
	       *y = pseudo_random(TENSOR_SHAPE(2, m, k), d);
	tensor *grad = pseudo_random(TENSOR_SHAPE(2, n, m), d), *z = ok(tensor_cdist(x, y, p, 2));
	const double tol = 10 * tolerance(d);

	/* Equal rows, too. */
	ok(tensor_copy_(tensor_narrow(x, 1, 0, 1), tensor_narrow(y, 1, 0, 1)));
	z = ok(tensor_cdist(x, y, p, 2));
	assert_near(tensor_cdist(on_cuda(x), on_cuda(y), p, 2), z, tol);
	assert_near(tensor_cdist_backward(on_cuda(grad), on_cuda(x), on_cuda(y), p, on_cuda(z)),
		    tensor_cdist_backward(grad, x, y, p, z), 10 * tol);
	x = ok(tensor_select(x, 0, 0));
	z = ok(tensor_pdist(x, p));
	assert_near(tensor_pdist(on_cuda(x), p), z, tol);
	grad = pseudo_random(TENSOR_SHAPE(n * (n - 1) / 2), d);
	assert_near(tensor_pdist_backward(on_cuda(grad), on_cuda(x), p, on_cuda(z)),
		    tensor_pdist_backward(grad, x, p, z), 10 * tol);
}

static void distances_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(norms) * 2; i++)
		tensor_scope {
			distances_equal_the_cpu_in(wide[i % 2], norms[i / 2], 5, 7, 3);
			distances_equal_the_cpu_in(wide[i % 2], norms[i / 2], 35, 33, 70);
			distances_equal_the_cpu_in(wide[i % 2], norms[i / 2], 3, 2, 0);
		}
}

/* ---- losses of pairs ---- */

typedef tensor *(*pair_fn)(tensor *x, tensor *y, int64_t reduction);
typedef tensor *(*pair_grad_fn)(tensor *grad, tensor *x, tensor *y, int64_t reduction);

#define WITH(NAME, V)                                                                         \
	static tensor *NAME(tensor *x, tensor *y, int64_t reduction)                          \
	{                                                                                     \
		return tensor_##NAME##_loss(x, y, reduction, V);                              \
	}                                                                                     \
	static tensor *NAME##_backward(tensor *grad, tensor *x, tensor *y, int64_t reduction) \
	{                                                                                     \
		return tensor_##NAME##_loss_backward(grad, x, y, reduction, V);               \
	}
WITH(smooth_l1, 1.5)
WITH(huber, 2)

static const struct {
	pair_fn loss;
	pair_grad_fn backward;
} losses[] = { { tensor_mse_loss, tensor_mse_loss_backward },
	       { tensor_l1_loss, NULL },
	       { smooth_l1, smooth_l1_backward },
	       { huber, huber_backward } };

static void losses_of_pairs_equal_the_cpu(void **state)
{
	static const int64_t lengths[] = { 0, 77, 9001 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(losses) * 9; i++)
		tensor_scope {
			const enum tensor_dtype d = wide[i % 2];
			const int64_t n = lengths[i % 9 / 3], reduction = i % 3;
			tensor *x = pseudo_random(TENSOR_SHAPE(n), d);
			tensor *y = pseudo_random(TENSOR_SHAPE(n), d);
			tensor *grad =
				pseudo_random(reduction ? TENSOR_SCALAR_SHAPE : TENSOR_SHAPE(n), d);

			assert_near(losses[i / 9].loss(on_cuda(x), on_cuda(y), reduction),
				    losses[i / 9].loss(x, y, reduction), tolerance(d));
			if (losses[i / 9].backward)
				assert_near(losses[i / 9].backward(on_cuda(grad), on_cuda(x),
								   on_cuda(y), reduction),
					    losses[i / 9].backward(grad, x, y, reduction),
					    tolerance(d));
		}
}

/* ---- CTC ---- */

static void ctc_equals_the_cpu_in(enum tensor_dtype d, bool zero_infinity)
{
	/* A label twice in a row, a target that is too long, one without labels. */
	static const int64_t labels[] = { 1, 1, 2, 3, 4, 1, 2, 3, 1, 2, 3, 4 };
	const tensor_ints input = TENSOR_INTS(12, 9, 3, 12), target = TENSOR_INTS(5, 3, 4, 0);
	tensor *p = ok(tensor_log_softmax(pseudo_random(TENSOR_SHAPE(12, 4, 5), d), -1));
	tensor *t = integers(TENSOR_SHAPE(12), labels), *y[2], *g[2];
	tensor *grad = pseudo_random(TENSOR_SHAPE(4), d);

	assert_done(tensor__ctc_loss(p, t, input, target, 0, zero_infinity, &y[0], &y[1]));
	assert_done(tensor__ctc_loss(on_cuda(p), on_cuda(t), input, target, 0, zero_infinity, &g[0],
				     &g[1]));
	for (int i = 0; i < 2; i++)
		assert_near(g[i], y[i], tolerance(d));
	assert_near(tensor__ctc_loss_backward(on_cuda(grad), on_cuda(p), on_cuda(t), input, target,
					      on_cuda(y[0]), on_cuda(y[1]), 0, zero_infinity),
		    tensor__ctc_loss_backward(grad, p, t, input, target, y[0], y[1], 0,
					      zero_infinity),
		    20 * tolerance(d));
}

static void ctc_takes_lengths_on_the_device(void **state)
{
	const int64_t labels[] = { 1, 2, 3, 1 }, steps[] = { 5, 4 }, lengths[] = { 2, 1 };

	NEED_DEVICE();
	for (int reduction = 0; reduction < 3; reduction++)
		tensor_scope {
			tensor *p = ok(tensor_log_softmax(
				pseudo_random(TENSOR_SHAPE(5, 2, 4), TENSOR_F32), 2));
			tensor *t = integers(TENSOR_SHAPE(2, 2), labels);
			tensor *n = integers(TENSOR_SHAPE(2), steps);
			tensor *m = integers(TENSOR_SHAPE(2), lengths);

			assert_near(tensor_ctc_loss_tensor(on_cuda(p), on_cuda(t), on_cuda(n),
							   on_cuda(m), 0, reduction, false),
				    tensor_ctc_loss_tensor(p, t, n, m, 0, reduction, false),
				    tolerance(TENSOR_F32));
		}
}

static void ctc_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int i = 0; i < 4; i++)
		tensor_scope
			ctc_equals_the_cpu_in(wide[i % 2], i / 2);
	assert_int_equal(tensor_cuda_fallbacks("_ctc_loss"), 0);
}

/* ---- layers of an LSTM ---- */

static void lstm_equals_the_cpu(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F16, TENSOR_BF16 };

	NEED_DEVICE();
	for (int i = 0; i < 6; i++)
		tensor_scope {
			const enum tensor_dtype d = dtypes[i % 3];
			const bool reverse = i / 3;
			tensor *in[4] = { pseudo_random(TENSOR_SHAPE(3, 2, 20), d),
					  pseudo_random(TENSOR_SHAPE(2, 5), d),
					  pseudo_random(TENSOR_SHAPE(2, 5), d),
					  pseudo_random(TENSOR_SHAPE(20, 5), d) };
			tensor *leaf[2][4], *out[2][3];

			for (int k = 0; k < 8; k++) {
				tensor **to = &leaf[k / 4][k % 4];

				*to = k / 4 ? on_cuda(in[k % 4]) : ok(tensor_clone(in[k % 4]));
				assert_done(tensor_set_requires_grad(*to, true));
			}
			for (int k = 0; k < 2; k++) {
				assert_done(tensor__lstm_layer((tensor_list){ leaf[k], 4 }, reverse,
							       true, &out[k][0], &out[k][1],
							       &out[k][2]));
				assert_done(tensor_backward(
					ok(tensor_sum(tensor_mul(out[k][0], out[k][1])))));
			}
			for (int k = 0; k < 3; k++)
				assert_near(tensor_detach(out[1][k]), tensor_detach(out[0][k]),
					    2 * tolerance(d));
			for (int k = 0; k < 4; k++)
				assert_near(tensor_grad(leaf[1][k]), tensor_grad(leaf[0][k]),
					    4 * tolerance(d));
		}
}

/* ---- sampling by a grid ---- */

static void grid_samples_equal_the_cpu_in(enum tensor_dtype d, int mode, int padding, bool align)
{
	static const double far[] = { NAN, INFINITY, -INFINITY, 1e7,  -1.1e7,
				      3e7, -7.3e8,   1.3e9,	1e12, -1e20 };
	tensor *x = pseudo_random(TENSOR_SHAPE(2, 3, 5, 4), d);
	tensor *grid = ok(
		tensor_mul_scalar(pseudo_random(TENSOR_SHAPE(2, 11, 8, 2), d), TENSOR_SCALAR(0.4)));
	tensor *grad = pseudo_random(TENSOR_SHAPE(2, 3, 11, 8), d), *y[2], *g[2];
	const double tol = 10 * tolerance(d);

	/* Coordinates whose position has no fraction, or that an integer cannot hold. */
	for (size_t i = 0; i < ARRAY_SIZE(far); i++)
		ok(tensor_fill_(tensor_select(tensor_select(grid, 0, 0), 0, (int64_t)i),
				TENSOR_SCALAR(far[i])));
	assert_near(tensor_grid_sampler_2d(on_cuda(x), on_cuda(grid), mode, padding, align),
		    tensor_grid_sampler_2d(x, grid, mode, padding, align), tol);
	assert_done(tensor_grid_sampler_2d_backward(grad, x, grid, mode, padding, align, 3, &y[0],
						    &y[1]));
	assert_done(tensor_grid_sampler_2d_backward(on_cuda(grad), on_cuda(x), on_cuda(grid), mode,
						    padding, align, 3, &g[0], &g[1]));
	for (int i = 0; i < 2; i++)
		assert_near(g[i], y[i], 4 * tol);
}

static void grid_samples_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int i = 0; i < 18; i++)
		tensor_scope
			grid_samples_equal_the_cpu_in(wide[i % 2], i / 6, i / 2 % 3, i % 4 < 2);
}

/* ---- lists of tensors ---- */

static void lists_equal_the_cpu(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16,
						    TENSOR_BF16 };
	static const double orders[] = { 1, 2, 3, INFINITY };
	/* More of one dtype than a launch has, if there is time. */
	const int64_t same = long_cases() ? 66 : 2, n = same + 4;

	NEED_DEVICE();
	tensor_scope {
		tensor *a[70], *b[70], *c[70], *ends[70];
		const tensor_list host = { a, n }, other = { c, n }, device = { b, n };
		tensor *found = on_cuda(tensor_zeros(TENSOR_SHAPE(1), F32));
		tensor *scale = on_cuda(tensor_full(TENSOR_SHAPE(1), TENSOR_SCALAR(0.5), F32));
		double value;

		for (int64_t k = 0; k < n; k++) {
			const enum tensor_dtype d = k < same ? TENSOR_F32 : dtypes[k - same];
			const int64_t length = k == 1 ? 5000 : k % 5 * 3;

			a[k] = pseudo_random(TENSOR_SHAPE(length), d);
			c[k] = pseudo_random(TENSOR_SHAPE(length), d);
			b[k] = on_cuda(a[k]);
			ends[k] = on_cuda(c[k]);
		}
		for (int k = 0; k < 4; k++)
			assert_near(tensor__list_norm(device, orders[k]),
				    tensor__list_norm(host, orders[k]), 1e-6);
		assert_done(tensor__list_scale_(host, 0.75));
		assert_done(tensor__list_scale_(device, 0.75));
		assert_done(tensor__list_lerp_(host, other, 0.25));
		assert_done(tensor__list_lerp_(device, (tensor_list){ ends, n }, 0.25));
		assert_done(tensor__list_clamp_(host, 1.5));
		assert_done(tensor__list_clamp_(device, 1.5));
		for (int64_t k = 0; k < n; k++)
			assert_near(b[k], a[k], 2 * tolerance(tensor_dtype(a[k])));
		for (int k = 0; k < 2; k++) {
			assert_done(tensor__amp_foreach_non_finite_check_and_unscale_(device, found,
										      scale));
			assert_done(tensor_item(found, &value));
			assert_true(value == k);
			ok(tensor_fill_(tensor_narrow(b[1], 0, 4500, 1), TENSOR_SCALAR(INFINITY)));
		}
		assert_int_equal(tensor_cuda_fallbacks("_list_norm"), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances_equal_the_cpu),
		cmocka_unit_test(losses_of_pairs_equal_the_cpu),
		cmocka_unit_test(ctc_equals_the_cpu),
		cmocka_unit_test(ctc_takes_lengths_on_the_device),
		cmocka_unit_test(lstm_equals_the_cpu),
		cmocka_unit_test(grid_samples_equal_the_cpu),
		cmocka_unit_test(lists_equal_the_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
