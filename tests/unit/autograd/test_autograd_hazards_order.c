// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Common errors of autograd engines (test_autograd_hazards.c): order of hooks and nodes, devices, anomaly mode. */
#include "devices.h"

#include <tensor/function.h>

static const tensor_list all = { NULL, 0 };

static int retain(tensor *y)
{
	return tensor_backward_ex(TENSOR_LIST(y), NULL, all, NULL, TENSOR_RETAIN_GRAPH);
}

/* ---- hooks ---- */

static char order[32];
static tensor *
	retained; /* its gradient is kept after the hooks of the tensor and before those of the node */

static tensor *note(tensor *grad, void *ctx)
{
	strcat(order, ctx);
	if (retained && tensor_grad(retained))
		strcat(order, "!");
	return grad;
}

static int note_before(tensor **grads, int n, void *ctx)
{
	(void)grads;
	(void)n;
	strcat(order, ctx);
	if (retained && !tensor_grad(retained))
		strcat(order, "!");
	return 0;
}

static int note_after(tensor **in, int nin, tensor *const *out, int nout, void *ctx)
{
	(void)in, (void)nin, (void)out, (void)nout;
	strcat(order, ctx);
	return 0;
}

static int note_leaf(tensor *leaf, void *ctx)
{
	assert_non_null(tensor_grad(leaf));
	strcat(order, ctx);
	return 0;
}

/* 8 */
static void hooks_run_in_order_also_those_of_a_tensor_whose_node_is_skipped(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_exp(x)), *g[1];
		tensor_node *node = tensor_grad_fn(y);

		order[0] = 0;
		retained = y;
		assert_done(tensor_node_register_hook(node, note_after, "d", NULL, NULL));
		assert_done(tensor_node_register_prehook(node, note_before, "c", NULL, NULL));
		assert_done(tensor_retain_grad(y));
		assert_done(tensor_register_hook(y, note, "a", NULL, NULL));
		assert_done(tensor_register_hook(y, note, "b", NULL, NULL));
		assert_done(
			tensor_register_post_accumulate_grad_hook(x, note_leaf, "e", NULL, NULL));
		assert_done(retain(ok(tensor_sum(y))));
		assert_string_equal(order, "abcde");
		assert_non_null(tensor_grad(y));
		assert_done(tensor_set_grad(x, NULL));
		retained = NULL;
		/* The node does not run, its tensor's hook does. */
		order[0] = 0;
		assert_done(
			tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, TENSOR_LIST(y), g, 0));
		assert_string_equal(order, "ab");
	}
}

static pthread_t ran_on;

static tensor *note_thread(tensor *grad, void *ctx)
{
	(void)ctx;
	ran_on = pthread_self();
	return grad;
}

/* 9 */
static void cpu_nodes_run_on_the_calling_thread_latest_first(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *a = ok(tensor_exp(x)),
		       *b = ok(tensor_sin(x));

		order[0] = 0;
		assert_done(tensor_register_hook(a, note, "a", NULL, NULL));
		assert_done(tensor_register_hook(b, note, "b", NULL, NULL));
		assert_done(tensor_register_hook(x, note_thread, NULL, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(tensor_add(a, b))));
		assert_string_equal(order, "ba");
		assert_true(pthread_equal(ran_on, pthread_self()));
	}
}

/* ---- queues of devices ---- */

/* On the device's thread: arrives, and stays until the inner backward has queued its node. */
static tensor *wait_for_busy(tensor *grad, void *ctx)
{
	expect_here(meet(2) && meet(4));
	return grad;
}

static tensor *arrive(tensor *grad, void *ctx)
{
	expect_here(meet(*(int *)ctx));
	return grad;
}

/* On the caller's thread, inside of the outer backward: a backward whose graph is the earliest one. */
static tensor *runs_inner(tensor *grad, void *ctx)
{
	expect_here(meet(2) && tensor_backward(ctx) == 0);
	return grad;
}

/* 9: the device is busy while a node of the outer backward, and then an earlier one of the inner backward become ready. */
static void device_runs_nodes_of_the_innermost_backward_first(void **state)
{
	static int last = 4;

	order[0] = 0;
	meeting.arrived = 0;
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *release = ok(tensor_neg(x)),
		       *inner = ok(tensor_neg(on(0, x))), *gate, *outer, *busy, *a, *b;

		assert_done(tensor_register_hook(release, arrive, &last, NULL, NULL));
		assert_done(tensor_register_hook(inner, note, "i", NULL, NULL));
		inner = ok(tensor_sum(ok(tensor_add(release, cpu(inner)))));
		gate = ok(tensor_neg(x));
		assert_done(tensor_register_hook(gate, runs_inner, inner, NULL, NULL));
		outer = ok(tensor_neg(on(0, x)));
		assert_done(tensor_register_hook(outer, note, "o", NULL, NULL));
		busy = ok(tensor_neg(on(0, x)));
		assert_done(tensor_register_hook(busy, wait_for_busy, NULL, NULL, NULL));
		a = cpu(outer);
		b = cpu(busy);
		assert_done(tensor_backward(
			ok(tensor_sum(ok(tensor_add(gate, ok(tensor_add(a, b))))))));
	}
	assert_string_equal(order, "io");
}

/* ---- backward inside of backward ---- */

enum { NESTED = 1000 };
static int left;

static tensor *(*deepest)(tensor *grad, void *ctx);

static tensor *nests(tensor *grad, void *ctx)
{
	int err = 0;

	if (--left == 0 && deepest)
		return deepest(grad, ctx);
	if (left > 0)
		tensor_scope
			tensor_enable_grad
			{
				tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_exp(x));

				assert_done(tensor_register_hook(y, nests, ctx, NULL, NULL));
				err = tensor_backward(tensor_sum(y));
				if (!err && !tensor_grad(x))
					err = -1;
			}
	return err < 0 ? NULL : grad;
}

static tensor *fails_deep(tensor *grad, void *ctx)
{
	(void)ctx;
	return tensor_matmul(grad, tensor_none);
}

static int exponential(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	out[0] = tensor_exp(in[0]);
	return out[0] ? 0 : -1;
}

/* Its backwards run on another stack: nodes that they record have numbers after those of the calling thread. */
static tensor *forward_mode_deep(tensor *grad, void *ctx)
{
	tensor *x = tensor_zeros(TENSOR_INTS(2), F32), *t = tensor_ones(TENSOR_INTS(2), F32), *y;

	expect_here(tensor_jvp(exponential, NULL, TENSOR_LIST(x), &t, &y, ctx, 1) == 0);
	tensor_keep(*(tensor **)ctx);
	return grad;
}

/* 10 */
static void deep_reentrant_backward_has_a_stack(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_exp(x));

		left = NESTED;
		assert_done(tensor_register_hook(y, nests, NULL, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(y)));
		assert_int_equal(left, 0);
		assert_values(tensor_grad(x), 1e-4, exp(1), exp(2));
		deepest = fails_deep;
		left = 150;
		y = ok(tensor_exp(x));
		assert_done(tensor_register_hook(y, nests, NULL, NULL, NULL));
		assert_fails(tensor_backward(tensor_sum(y)), EINVAL, "matmul");
		deepest = forward_mode_deep;
		for (left = 55; left < 66; left++) {
			tensor *tangent = NULL;
			int depth = left;

			y = ok(tensor_exp(x));
			assert_done(tensor_register_hook(y, nests, &tangent, NULL, NULL));
			assert_done(tensor_backward(tensor_sum(y)));
			assert_values(tangent, 0, 1, 1);
			tensor_release(tangent);
			left = depth;
		}
		deepest = NULL;
	}
}

/* ---- a gradient on another device ---- */

static int copy_forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out,
			int nout)
{
	out[0] = tensor_clone(in[0]);
	return out[0] ? 0 : -1;
}

static int elsewhere_backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads,
			      tensor **out, int nin)
{
	out[0] = tensor_to(grads[0], LAZY(0));
	return out[0] ? 0 : -1;
}

static const struct tensor_function elsewhere = { "Elsewhere", copy_forward, elsewhere_backward,
						  0 };

/* 7 */
static void gradient_on_another_device_is_an_error(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y;

		assert_done(tensor_function_apply(&elsewhere, NULL, NULL, TENSOR_LIST(x), &y, 1));
		assert_fails(tensor_backward(ok(tensor_sum(y))), EINVAL, "another device");
		assert_null(tensor_grad(x));
	}
}

/* 16: the second gradient of mul, 0 * inf, is NaN. */
static void anomaly_mode_tests_every_output_for_nan(void **state)
{
	tensor_scope
		tensor_anomaly_mode
		{
			tensor *x = leaf(ok(tensor_full(TENSOR_INTS(2), S(INFINITY), F32))),
			       *w = leaf_iota(1, TENSOR_INTS(2));
			tensor *y = ok(tensor_sum(tensor_mul_scalar(tensor_mul(x, w), S(0))));

			assert_fails(tensor_backward(y), EDOM, "MulBackward");
			assert_contains(tensor_last_error()->text, "called tensor_mul at");
			y = ok(tensor_sum(tensor_mul_scalar(tensor_mul(w, x), S(0))));
			assert_fails(tensor_backward(y), EDOM, "MulBackward");
		}
}

/* 16 */
static void anomaly_mode_knows_the_call(void **state)
{
	tensor_scope
		tensor_anomaly_mode
		{
			tensor *x = leaf(ok(tensor_zeros(TENSOR_INTS(2), F32)));
			tensor *y = ok(tensor_sum(tensor_mul_scalar(tensor_sqrt(x), S(0))));

			assert_fails(tensor_backward(y), EDOM, "SqrtBackward");
			assert_non_null(strstr(tensor_last_error()->text, "called tensor_sqrt at"));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hooks_run_in_order_also_those_of_a_tensor_whose_node_is_skipped),
		TEST(cpu_nodes_run_on_the_calling_thread_latest_first),
		TEST(device_runs_nodes_of_the_innermost_backward_first),
		TEST(deep_reentrant_backward_has_a_stack),
		TEST(gradient_on_another_device_is_an_error),
		TEST(anomaly_mode_tests_every_output_for_nan),
		TEST(anomaly_mode_knows_the_call),
	};

	return cmocka_run_group_tests_name("autograd_hazards_order", tests, lazy_register, NULL);
}
