// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Backwards that hooks and functions of the program run inside of a backward, on the threads of devices. */
#include "devices.h"

#include <unistd.h>

static const tensor_list all = { NULL, 0 };

/* ---- backwards inside of backwards ---- */

enum { NESTED = 200 };

static int left;
static pthread_t first;

/* A backward on the device of the hook, from the thread of the device: it runs there, or beyond a depth on another
 * stack. */
static tensor *nests(tensor *grad, void *ctx)
{
	if (left == NESTED)
		first = pthread_self();
	if (left > NESTED - 50)
		expect_here(pthread_equal(pthread_self(), first));
	tensor_scope {
		tensor *x, *y;

		tensor_enable_grad
		{
			x = ok(tensor_to(tensor_ones(TENSOR_INTS(2), F32), LAZY(0)));
			expect_here(tensor_set_requires_grad(x, true) == 0);
			y = tensor_mul(x, x);
			if (--left > 0)
				expect_here(tensor_register_hook(y, nests, NULL, NULL, NULL) == 0);
			y = tensor_sum(y);
		}
		expect_here(tensor_backward(y) == 0 && tensor_grad(x));
	}
	return grad;
}

static void nested_backward_runs_on_the_thread_of_its_device(void **state)
{
	tensor_scope {
		tensor *x = leaf(on(0, iota(1, TENSOR_INTS(2)))), *y = ok(tensor_neg(x));

		left = NESTED;
		assert_done(tensor_register_hook(y, nests, NULL, NULL, NULL));
		assert_done(tensor_backward(ok(tensor_sum(y))));
		assert_int_equal(left, 0);
		assert_values(cpu(tensor_grad(x)), 0, -1, -1);
	}
}

/* From the thread of one device through the other one and the CPU, while that one does the same. */
static tensor *crosses(tensor *grad, void *ctx)
{
	int other = *(int *)ctx;

	expect_here(meet(2));
	tensor_scope {
		tensor *x, *y;

		tensor_enable_grad
		{
			x = leaf_iota(1, TENSOR_INTS(2));
			y = tensor_mul(tensor_to(tensor_exp(x), LAZY(other)),
				       tensor_to(x, LAZY(other)));
			y = tensor_tanh(tensor_to(y, LAZY(1 - other)));
			y = tensor_sum(tensor_to(y, CPU));
		}
		expect_here(tensor_backward(y) == 0 && tensor_grad(x));
	}
	return grad;
}

static void devices_whose_hooks_need_each_other_do_not_block(void **state)
{
	int other[] = { 1, 0 };

	for (int n = 0; n < 10; n++) {
		meeting.arrived = 0;
		tensor_scope {
			tensor *x = leaf_iota(1, TENSOR_INTS(4)), *y[2];

			for (int i = 0; i < 2; i++) {
				y[i] = ok(tensor_neg(on(i, x)));
				assert_done(
					tensor_register_hook(y[i], crosses, &other[i], NULL, NULL));
			}
			assert_done(tensor_backward(
				ok(tensor_sum(ok(tensor_add(cpu(y[0]), cpu(y[1])))))));
		}
	}
}

/* ---- a node or a checkpoint that runs is found on every thread ---- */

static tensor *again;
static int deep, code;

/* Goes through the graph of `again` from the bottom of `deep` backwards. */
static tensor *goes_deep(tensor *grad, void *ctx)
{
	tensor_scope {
		tensor *x, *y;

		if (!deep--) {
			expect_here(tensor_backward_ex(TENSOR_LIST(again), NULL, all, NULL,
						       TENSOR_RETAIN_GRAPH) < 0);
			code = tensor_last_error()->code;
		} else
			tensor_enable_grad
			{
				x = tensor_to(tensor_ones(TENSOR_INTS(2), F32),
					      ctx ? LAZY(deep % 2) : CPU);
				tensor_set_requires_grad(x, true);
				y = tensor_neg(x);
				expect_here(tensor_register_hook(y, goes_deep, ctx, NULL, NULL) ==
					    0);
				expect_here(tensor_backward(tensor_sum(y)) == 0);
			}
	}
	tensor_clear_error();
	return grad;
}

static int run_twice(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	if (again)
		goes_deep(in[0], ctx);
	out[0] = tensor_exp(in[0]);
	return out[0] ? 0 : -1;
}

static void checkpoint_that_runs_is_not_entered_again(int nested, void *devices)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y;

		again = NULL;
		code = 0;
		deep = nested;
		assert_done(tensor_checkpoint(run_twice, devices, NULL, TENSOR_LIST(x), &y, 1));
		again = y = ok(tensor_sum(y));
		assert_done(
			tensor_backward_ex(TENSOR_LIST(y), NULL, all, NULL, TENSOR_RETAIN_GRAPH));
		assert_int_equal(code, EDEADLK);
	}
}

static void checkpoint_is_found_from_another_stack(void **state)
{
	checkpoint_that_runs_is_not_entered_again(150, NULL);
}

static void checkpoint_is_found_from_the_thread_of_a_device(void **state)
{
	checkpoint_that_runs_is_not_entered_again(1, "devices");
	checkpoint_that_runs_is_not_entered_again(8, "devices");
}

static void *pack_it(tensor *t, void *ctx)
{
	return tensor_retain(t);
}

static tensor *unpack_deep(void *packed, void *ctx)
{
	if (again)
		goes_deep(packed, ctx);
	return packed;
}

static void drop_it(void *packed, void *ctx)
{
	tensor_release(packed);
}

static void node_that_runs_is_found_from_the_thread_of_a_device(void **state)
{
	struct tensor_saved_hooks hooks = {
		.pack = pack_it, .unpack = unpack_deep, .discard = drop_it, .ctx = "devices"
	};

	for (int i = 0; i < 4; i++)
		tensor_scope {
			tensor *x = leaf(on(0, iota(1, TENSOR_INTS(2)))), *y = NULL;

			again = NULL;
			code = 0;
			deep = i;
			tensor_with_saved_hooks(&hooks) y = ok(tensor_exp(x));
			again = y = ok(tensor_sum(y));
			assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, all, NULL,
						       TENSOR_RETAIN_GRAPH));
			assert_int_equal(code, EDEADLK);
			again = NULL;
		}
}

/* ---- locks ---- */

static atomic_int unpacked;

/* In the thread of lazy1: needs a node of lazy0 while its thread waits for the lock of a node that another one holds. */
static tensor *comes_back(tensor *grad, void *ctx)
{
	expect_here(meet(2));
	usleep(50000);
	tensor_scope {
		tensor *x = NULL;

		tensor_enable_grad
		{
			x = tensor_to(tensor_ones(TENSOR_INTS(2), F32), LAZY(0));
			expect_here(tensor_set_requires_grad(x, true) == 0);
			expect_here(tensor_backward(tensor_sum(tensor_to(tensor_neg(x), CPU))) ==
				    0);
		}
	}
	return grad;
}

/* The first time, in the thread of lazy0 with the lock of a node. */
static tensor *unpack_over_devices(void *packed, void *ctx)
{
	if (unpacked++)
		return packed;
	tensor_scope
		tensor_enable_grad
		{
			tensor *x = tensor_to(tensor_ones(TENSOR_INTS(2), F32), LAZY(1)), *y;

			expect_here(tensor_set_requires_grad(x, true) == 0);
			y = tensor_neg(x);
			expect_here(tensor_register_hook(y, comes_back, NULL, NULL, NULL) == 0);
			expect_here(tensor_backward(tensor_sum(y)) == 0);
		}
	return packed;
}

static void *second_caller(void *arg)
{
	expect_here(meet(2));
	expect_here(tensor_backward_ex(TENSOR_LIST(arg), NULL, all, NULL, TENSOR_RETAIN_GRAPH) ==
		    0);
	return NULL;
}

static void device_is_served_while_its_thread_waits_for_a_lock(void **state)
{
	const struct tensor_saved_hooks hooks = { .pack = pack_it,
						  .unpack = unpack_over_devices,
						  .discard = drop_it };
	pthread_t thread;

	unpacked = 0;
	meeting.arrived = 0;
	alarm(60);
	tensor_scope {
		tensor *x = leaf(on(0, iota(1, TENSOR_INTS(2)))), *y = NULL;

		tensor_with_saved_hooks(&hooks) y = ok(tensor_sum(ok(tensor_exp(x))));
		assert_int_equal(pthread_create(&thread, NULL, second_caller, y), 0);
		assert_done(
			tensor_backward_ex(TENSOR_LIST(y), NULL, all, NULL, TENSOR_RETAIN_GRAPH));
		pthread_join(thread, NULL);
		assert_values(cpu(tensor_grad(x)), 1e-5, 2 * exp(1), 2 * exp(2));
	}
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nested_backward_runs_on_the_thread_of_its_device),
		TEST(devices_whose_hooks_need_each_other_do_not_block),
		TEST(checkpoint_is_found_from_another_stack),
		TEST(checkpoint_is_found_from_the_thread_of_a_device),
		TEST(node_that_runs_is_found_from_the_thread_of_a_device),
		TEST(device_is_served_while_its_thread_waits_for_a_lock),
	};

	return cmocka_run_group_tests_name("autograd_reentrant", tests, lazy_register, NULL);
}
