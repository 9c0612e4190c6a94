// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The order of ready nodes in a backward over several devices: the heaviest path first, then the latest node. The devices are
 * those of lazy_device.h.
 */
#include "depth.h"
#include "devices.h"

static char order[32];

static tensor *note_order(tensor *grad, void *ctx)
{
	strcat(order, ctx);
	return grad;
}

/* Runs until the caller has run all nodes of the CPU. */
static tensor *keep_busy(tensor *grad, void *ctx)
{
	expect_here(meet(2) && meet(4));
	return grad;
}

static tensor *meet_last(tensor *grad, void *ctx)
{
	expect_here(meet(4));
	return grad;
}

/* While the device runs a node, five others become ready, the earliest one first. */
static void latest_ready_node_of_a_device_runs_first(void **state)
{
	static char *const names[] = { "1", "2", "3", "4", "5" };

	order[0] = 0;
	meeting.arrived = 0;
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *first = ok(tensor_exp(x)), *y[5], *busy,
		       *gate, *z = first;

		assert_done(tensor_register_hook(first, meet_last, NULL, NULL, NULL));
		for (int i = 0; i < 5; i++) {
			y[i] = ok(tensor_neg(on(0, x)));
			assert_done(tensor_register_hook(y[i], note_order, names[i], NULL, NULL));
		}
		busy = ok(tensor_neg(on(0, x)));
		assert_done(tensor_register_hook(busy, keep_busy, NULL, NULL, NULL));
		for (int i = 5; i-- > 0;)
			y[i] = cpu(y[i]);
		gate = ok(tensor_neg(x));
		assert_done(tensor_register_hook(gate, meet_there, NULL, NULL, NULL));
		z = ok(tensor_add(z, ok(tensor_add(gate, cpu(busy)))));
		for (int i = 0; i < 5; i++)
			z = ok(tensor_add(z, y[i]));
		assert_done(tensor_backward(ok(tensor_sum(z))));
	}
	assert_string_equal(order, "54321");
}

/* ---- the heaviest path first ---- */

/* The operators that follow x: many small ones, or one of many bytes. */
typedef tensor *(*path_fn)(tensor *x);

static tensor *one(tensor *x)
{
	return ok(tensor_exp(x));
}

static tensor *four(tensor *x)
{
	return ok(tensor_neg(ok(tensor_sin(ok(tensor_cos(ok(tensor_exp(x))))))));
}

static tensor *wide(tensor *x)
{
	return ok(tensor_sum_dim(ok(tensor_mul(ok(tensor_expand(x, TENSOR_INTS(300000, 2))),
					       ok(tensor_ones(TENSOR_INTS(1), F32)))),
				 TENSOR_INTS(0), false));
}

/* Its path has one of the two sides: three operators. */
static tensor *diamond(tensor *x)
{
	tensor *y = ok(tensor_exp(x));

	return ok(tensor_add(ok(tensor_sin(y)), ok(tensor_cos(y))));
}

static tensor *named(tensor *y, char *name)
{
	y = ok(tensor_neg(y));
	assert_done(tensor_register_hook(y, note_order, name, NULL, NULL));
	return y;
}

/* The paths begin at x in this order, the first one is "1". They meet in sums, whose nodes make them ready together. */
static void assert_order(tensor *x, tensor *other, const path_fn *paths, int n, const char *wanted)
{
	static char *const names[] = { "1", "2", "3", "4" };
	tensor *y[4], *z;

	order[0] = 0;
	for (int i = 0; i < n; i++)
		y[i] = named(paths[i](x), names[i]);
	z = y[0];
	for (int i = 1; i < n; i++)
		z = ok(tensor_add(z, y[i]));
	z = ok(tensor_sum(z));
	if (other)
		z = ok(tensor_add(cpu(z), cpu(other)));
	assert_done(tensor_backward(z));
	assert_string_equal(order, wanted);
}

static void assert_heaviest_first(tensor *x, tensor *other)
{
	assert_order(x, other, (path_fn[]){ four, one }, 2, "12");
	assert_order(x, other, (path_fn[]){ wide, four, one }, 3, "123");
	assert_order(x, other, (path_fn[]){ one, four, one, wide }, 4, "4231");
	assert_order(x, other, (path_fn[]){ four, diamond }, 2, "12");
	assert_order(x, other, (path_fn[]){ diamond, one }, 2, "12");
}

static void heaviest_path_of_a_device_runs_first(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2));

		assert_heaviest_first(on(0, x), ok(tensor_sum(x)));
		assert_heaviest_first(on(0, x), ok(tensor_sum(on(1, x))));
	}
}

static void heaviest_path_of_the_caller_runs_first(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2));

		assert_heaviest_first(x, ok(tensor_sum(on(0, x))));
	}
}

/* Only nodes that lead to a requested input count. */
static void path_to_no_requested_input_has_no_weight(void **state)
{
	tensor_scope {
		tensor *x = on(0, leaf_iota(1, TENSOR_INTS(2))), *w = leaf_iota(1, TENSOR_INTS(2)),
		       *a = ok(tensor_mul(x, wide(on(0, w)))), *b = four(x), *g = NULL;

		order[0] = 0;
		a = named(a, "a");
		b = named(b, "b");
		a = ok(tensor_add(cpu(ok(tensor_sum(ok(tensor_add(a, b))))), ok(tensor_sum(w))));
		assert_done(tensor_backward_ex(TENSOR_LIST(a), NULL, TENSOR_LIST(x), &g, 0));
		assert_string_equal(order, "ba");
	}
}

static void one_thread_runs_the_latest_node_first(void **state)
{
	tensor_scope {
		tensor *x = leaf(on(0, iota(1, TENSOR_INTS(2)))), *y = leaf_iota(1, TENSOR_INTS(2));

		assert_order(x, NULL, (path_fn[]){ wide, four, one }, 3, "321");
		assert_order(y, NULL, (path_fn[]){ wide, four, one }, 3, "321");
	}
}

static tensor *scaled(tensor *x, double by, int negations)
{
	tensor *y = ok(tensor_mul_scalar(x, S(by)));

	for (int i = 0; i < negations; i++)
		y = ok(tensor_neg(y));
	return y;
}

/* 1e8 - 1e8 + 1 is 1 in the order of the nodes, and 0 in that of the paths. */
static void gradients_of_one_device_are_summed_in_the_order_of_the_cpu(void **state)
{
	tensor_scope
		for (int i = 0; i < 2; i++) {
			tensor *x = ok(tensor_ones(TENSOR_INTS(2), F32)), *y;

			x = leaf(i ? on(0, x) : x);
			y = scaled(x, 1, 6);
			y = ok(tensor_add(y, scaled(x, -1e8, 0)));
			y = ok(tensor_add(y, scaled(x, 1e8, 2)));
			assert_done(tensor_backward(ok(tensor_sum(y))));
			assert_values(cpu(tensor_grad(x)), 0, 1, 1);
		}
}

/* ---- depth ---- */

/* A million nodes of the caller, and some of a device. */
static bool paths(void)
{
	tensor_scope {
		tensor *x = ones_leaf(), *g = NULL;
		tensor *y = chain(x, negate, DEPTH), *z = tensor_to(x, LAZY(0));

		z = tensor_add(tensor_to(tensor_exp(z), CPU), y);
		tensor_release(y);
		expect(z && tensor_backward_ex(TENSOR_LIST(tensor_sum(z)), NULL, TENSOR_LIST(x), &g,
					       0) == 0);
		expect(has_value(g, exp(1) + 1));
	}
	return true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(latest_ready_node_of_a_device_runs_first),
		TEST(heaviest_path_of_a_device_runs_first),
		TEST(heaviest_path_of_the_caller_runs_first),
		TEST(path_to_no_requested_input_has_no_weight),
		TEST(one_thread_runs_the_latest_node_first),
		TEST(gradients_of_one_device_are_summed_in_the_order_of_the_cpu),
		ROW(paths),
	};

	return cmocka_run_group_tests_name("autograd_devices_order", tests, lazy_register, NULL);
}
