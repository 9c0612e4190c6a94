// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * tensor_vmap() inside and around autograd, batches of gradients. The numbers of PyTorch are of
 *
 *   l = lambda w, x: torch.sigmoid(w @ x).pow(2).sum();  vmap(grad(l), (None, 0))(w, x)
 */
#include "autograd.h"
#include "threads.h"

#include <tensor/function.h>

static tensor *numbers(tensor_ints shape, const double *v)
{
	return ok(tensor_from_data(v, shape, F64));
}

static const double weights[] = { 1, 2, 3, 4 }, rows[] = { 1, -1, 0.5, 2, 0, 1 };
static const double torch_gradients[] = { 0.10575418556853343,
					  -0.10575418556853343,
					  0.10575418556853343,
					  -0.10575418556853343,
					  0.010746843079656308,
					  0.04298737231862523,
					  7.483502401426802e-05,
					  0.00029934009605707206,
					  0.0,
					  0.18495608645965972,
					  0.0,
					  0.03469004214168023 };

static tensor *weight; /* a leaf without the batch */

static tensor *loss_of(tensor *x)
{
	return tensor_sum(tensor_square(tensor_sigmoid(tensor_mv(weight, x))));
}

static int loss(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)n, (void)nout, (void)ctx;
	out[0] = loss_of(in[0]);
	return out[0] ? 0 : -1;
}

static int gradient(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	tensor *y = loss_of(in[0]);

	(void)n, (void)nout;
	return tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(weight), out,
				  ctx ? TENSOR_CREATE_GRAPH : 0);
}

static void make_weight(void)
{
	weight = leaf(numbers(TENSOR_INTS(2, 2), weights));
}

#define assert_numbers(t, list) \
	check_values_((t), (list), ARRAY_SIZE(list), 1e-12, __FILE__, __LINE__)

static bool close_to(tensor *a, tensor *b, double bound)
{
	bool close = false;

	assert_done(tensor_allclose(ok(tensor_detach(a)), ok(tensor_detach(b)), bound, bound, false,
				    &close));
	return close;
}

/* ---- backward inside ---- */

static void gradients_of_samples_are_those_of_pytorch(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(3, 2), rows), *g;

		make_weight();
		assert_done(tensor_vmap(gradient, NULL, TENSOR_LIST(x), NULL, &g, 1, NULL, NULL));
		assert_shape(g, 3, 2, 2);
		assert_numbers(g, torch_gradients);
		assert_null(tensor_grad(weight));
	}
}

static int accumulate(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)n, (void)nout, (void)ctx;
	out[0] = loss_of(in[0]);
	return tensor_backward(out[0]);
}

static void gradients_of_samples_are_not_accumulated_in_a_leaf_outside(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(3, 2), rows), *y;

		make_weight();
		assert_fails(!tensor_vmap(accumulate, NULL, TENSOR_LIST(x), NULL, &y, 1, NULL,
					  NULL),
			     EINVAL, "differs between the samples");
		assert_null(tensor_grad(weight));
	}
}

static int own_leaf(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	tensor *x = tensor_detach(in[0]);

	(void)n, (void)nout, (void)ctx;
	assert_done(tensor_set_requires_grad(x, true));
	for (int i = 0; i < 2; i++)
		assert_done(tensor_backward(tensor_sum(tensor_mul(x, tensor_mul(x, x)))));
	out[0] = tensor_grad(x);
	return 0;
}

static void leaf_inside_accumulates_the_gradients_of_its_sample(void **state)
{
	tensor_scope {
		tensor *g, *x = iota(1, TENSOR_INTS(2, 2));

		assert_done(tensor_vmap(own_leaf, NULL, TENSOR_LIST(x), NULL, &g, 1, NULL, NULL));
		assert_values(g, 1e-5, 6, 24, 54, 96);
	}
}

/* y = x, of which a view is multiplied by x[1] in place */
static int in_place_view(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	tensor *x = tensor_detach(in[0]), *y;

	(void)n, (void)nout, (void)ctx;
	assert_done(tensor_set_requires_grad(x, true));
	y = tensor_mul_scalar(x, S(1));
	ok(tensor_mul_(tensor_select(y, 0, 0), tensor_select(x, 0, 1)));
	return tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, TENSOR_LIST(x), out, 0);
}

static void in_place_change_of_a_view_is_differentiated(void **state)
{
	tensor_scope {
		tensor *g, *x = iota(1, TENSOR_INTS(2, 2));

		assert_done(
			tensor_vmap(in_place_view, NULL, TENSOR_LIST(x), NULL, &g, 1, NULL, NULL));
		/* y0 = x0 x1, y1 = x1 */
		assert_values(g, 0, 2, 2, 4, 4);
	}
}

/* ---- backward around ---- */

static void gradient_flows_through_vmap(void **state)
{
	tensor_scope {
		tensor *x = leaf(numbers(TENSOR_INTS(3, 2), rows)), *y, *gw, *gx;

		make_weight();
		assert_done(tensor_vmap(loss, NULL, TENSOR_LIST(x), NULL, &y, 1, NULL, NULL));
		assert_done(tensor_backward(ok(tensor_sum(y))));
		gw = tensor_grad(weight);
		gx = tensor_grad(x);
		tensor_scope {
			tensor *g[2], *all = loss_of(tensor_select(x, 0, 0));

			for (int i = 1; i < 3; i++)
				all = ok(tensor_add(all, loss_of(tensor_select(x, 0, i))));
			assert_done(tensor_backward_ex(TENSOR_LIST(all), NULL,
						       TENSOR_LIST(weight, x), g, 0));
			assert_true(close_to(gw, g[0], 1e-14));
			assert_true(close_to(gx, g[1], 1e-14));
		}
	}
}

/* The gradient of a function of gradients of samples: both levels record. */
static void gradients_of_samples_are_differentiated_again(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(3, 2), rows), *g, *second, *all = NULL, *expected;

		make_weight();
		assert_done(tensor_vmap(gradient, &x, TENSOR_LIST(x), NULL, &g, 1, NULL, NULL));
		assert_true(tensor_requires_grad(g));
		assert_done(tensor_backward_ex(TENSOR_LIST(tensor_sum(tensor_square(g))), NULL,
					       TENSOR_LIST(weight), &second, 0));
		for (int i = 0; i < 3; i++) {
			tensor *row = tensor_select(x, 0, i), *one;

			assert_done(gradient(&row, 1, &one, 1, &x));
			one = tensor_sum(tensor_square(one));
			all = all ? tensor_add(all, one) : one;
		}
		assert_done(tensor_backward_ex(TENSOR_LIST(all), NULL, TENSOR_LIST(weight),
					       &expected, 0));
		assert_true(close_to(second, expected, 1e-13));
	}
}

/* ---- functions of the program ---- */

static int double_forward(tensor_function_ctx *f, tensor *const *in, int n, tensor **out, int nout)
{
	(void)f, (void)n, (void)nout;
	out[0] = tensor_mul_scalar(in[0], S(2));
	return out[0] ? 0 : -1;
}

static int double_backward(tensor_function_ctx *f, tensor *const *grads, int nout, tensor **out,
			   int n)
{
	(void)f, (void)nout, (void)n;
	out[0] = tensor_mul_scalar(grads[0], S(2));
	return out[0] ? 0 : -1;
}

static const struct tensor_function doubling = { .name = "double",
						 .forward = double_forward,
						 .backward = double_backward };

static int gradient_of_function(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	tensor *x = ctx ? in[0] : tensor_detach(in[0]), *y;

	(void)n, (void)nout;
	if (!ctx && tensor_set_requires_grad(x, true) < 0)
		return -1;
	if (tensor_function_apply(&doubling, NULL, NULL, TENSOR_LIST(x), &y, 1) < 0)
		return -1;
	out[0] = y;
	y = tensor_sum(tensor_mul(y, y));
	return ctx ? 0 : tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), out, 0);
}

static void functions_of_the_program_are_differentiated_inside(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2, 2)), *g;

		assert_done(tensor_vmap(gradient_of_function, NULL, TENSOR_LIST(x), NULL, &g, 1,
					NULL, NULL));
		assert_values(g, 0, 8, 16, 24, 32);
		assert_fails(!tensor_vmap(gradient_of_function, &g, TENSOR_LIST(leaf(x)), NULL, &g,
					  1, NULL, NULL),
			     EOPNOTSUPP, "a function of the program does not record");
	}
}

static int square(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)n, (void)nout, (void)ctx;
	out[0] = tensor_mul(in[0], in[0]);
	return out[0] ? 0 : -1;
}

static int gradient_of_checkpoint(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	tensor *x = ctx ? in[0] : tensor_detach(in[0]), *y;

	(void)n, (void)nout;
	if (!ctx && tensor_set_requires_grad(x, true) < 0)
		return -1;
	if (tensor_checkpoint(square, NULL, NULL, TENSOR_LIST(x), &y, 1) < 0)
		return -1;
	out[0] = y;
	return ctx ? 0 :
		     tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, TENSOR_LIST(x), out, 0);
}

static void checkpoints_run_again_inside(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2, 2)), *g;

		assert_done(tensor_vmap(gradient_of_checkpoint, NULL, TENSOR_LIST(x), NULL, &g, 1,
					NULL, NULL));
		assert_values(g, 0, 2, 4, 6, 8);
		assert_done(tensor_vmap(gradient_of_checkpoint, &g, TENSOR_LIST(x), NULL, &g, 1,
					NULL, NULL));
		assert_values(g, 0, 1, 4, 9, 16);
		assert_fails(!tensor_vmap(gradient_of_checkpoint, &g, TENSOR_LIST(leaf(x)), NULL,
					  &g, 1, NULL, NULL),
			     EOPNOTSUPP, "where the function cannot run again");
	}
}

/* ---- forward mode ---- */

static int sine(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)n, (void)nout, (void)ctx;
	out[0] = tensor_mul(tensor_sin(in[0]), in[0]);
	return out[0] ? 0 : -1;
}

static int jvp_of_sine(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)n, (void)nout, (void)ctx;
	return tensor_jvp(sine, NULL, TENSOR_LIST(in[0]), (tensor *const[]){ in[1] }, out, out + 1,
			  1);
}

static int vmap_of_sine(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)n, (void)nout, (void)ctx;
	return tensor_vmap(sine, NULL, TENSOR_LIST(in[0]), NULL, out, 1, NULL, NULL);
}

static void forward_mode_works_inside_and_around(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(3, 2), rows), *t = ok(tensor_cos(x)), *y, *ty,
		       *in[2], *around[2];

		assert_done(tensor_jvp(sine, NULL, TENSOR_LIST(x), &t, &y, &ty, 1));
		assert_done(
			tensor_vmap(jvp_of_sine, NULL, TENSOR_LIST(x, t), NULL, in, 2, NULL, NULL));
		assert_done(
			tensor_jvp(vmap_of_sine, NULL, TENSOR_LIST(x), &t, around, around + 1, 1));
		assert_true(close_to(in[0], y, 1e-15));
		assert_true(close_to(in[1], ty, 1e-15));
		assert_true(close_to(around[0], y, 1e-15));
		assert_true(close_to(around[1], ty, 1e-15));
	}
}

/* ---- batches of gradients ---- */

static void batch_of_gradients_is_one_backward(void **state)
{
	tensor_scope {
		tensor *x = leaf(numbers(TENSOR_INTS(3, 2), rows)),
		       *other = leaf(iota(0, TENSOR_INTS(2)));
		tensor *y = ok(tensor_mul(tensor_sin(x), x)),
		       *u = ok(tensor_rand(TENSOR_INTS(4, 3, 2), F64));
		tensor *g[2], *one, *grads[] = { u };

		assert_done(tensor_backward_ex(TENSOR_LIST(y), grads, TENSOR_LIST(x, other), g,
					       TENSOR_GRADS_BATCHED | TENSOR_RETAIN_GRAPH));
		assert_shape(g[0], 4, 3, 2);
		assert_null(g[1]);
		for (int i = 0; i < 4; i++) {
			grads[0] = tensor_select(u, 0, i);
			assert_done(tensor_backward_ex(TENSOR_LIST(y), grads, TENSOR_LIST(x), &one,
						       TENSOR_RETAIN_GRAPH));
			assert_true(close_to(tensor_select(g[0], 0, i), one, 1e-15));
		}
		assert_fails(!tensor_backward_ex(TENSOR_LIST(y), &u, (tensor_list){ NULL, 0 }, NULL,
						 TENSOR_GRADS_BATCHED),
			     EINVAL, "not accumulated in leaves");
		assert_fails(!tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), g,
						 TENSOR_GRADS_BATCHED),
			     EINVAL, "batched gradients need");
		assert_fails(!tensor_backward_ex(TENSOR_LIST(y), &x, TENSOR_LIST(x), g,
						 TENSOR_GRADS_BATCHED),
			     EINVAL, "the gradient of output 0 must be");
		assert_null(tensor_grad(x));
	}
}

/* ---- threads, lifetime ---- */

static void *gradients_in_a_thread(struct worker *w)
{
	for (int i = 0; i < 20; i++)
		tensor_scope {
			tensor *x = tensor_from_data(rows, TENSOR_INTS(3, 2), F64), *g;
			double value;

			if (!expect(w, !tensor_vmap(gradient, NULL, TENSOR_LIST(x), NULL, &g, 1,
						    NULL, NULL)))
				return NULL;
			tensor_at(g, TENSOR_INTS(2, 0, 1), &value);
			expect(w, fabs(value - torch_gradients[9]) < 1e-12);
		}
	return NULL;
}

static void threads_share_parameters(void **state)
{
	tensor_scope {
		make_weight();
		with_threads(gradients_in_a_thread, NULL);
	}
}

static void nothing_is_left(void **state)
{
	struct tensor_live_counts before, after;

	tensor_live_counts(&before);
	gradients_of_samples_are_those_of_pytorch(state);
	gradients_of_samples_are_differentiated_again(state);
	gradients_of_samples_are_not_accumulated_in_a_leaf_outside(state);
	batch_of_gradients_is_one_backward(state);
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients_of_samples_are_those_of_pytorch),
		cmocka_unit_test(gradients_of_samples_are_not_accumulated_in_a_leaf_outside),
		cmocka_unit_test(leaf_inside_accumulates_the_gradients_of_its_sample),
		cmocka_unit_test(in_place_change_of_a_view_is_differentiated),
		cmocka_unit_test(gradient_flows_through_vmap),
		cmocka_unit_test(gradients_of_samples_are_differentiated_again),
		cmocka_unit_test(functions_of_the_program_are_differentiated_inside),
		cmocka_unit_test(checkpoints_run_again_inside),
		cmocka_unit_test(forward_mode_works_inside_and_around),
		cmocka_unit_test(batch_of_gradients_is_one_backward),
		cmocka_unit_test(threads_share_parameters),
		cmocka_unit_test(nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
