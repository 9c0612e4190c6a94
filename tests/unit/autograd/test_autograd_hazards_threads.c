// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Common errors of autograd engines (test_autograd_hazards.c): nodes that threads share, and forks. */
#include "autograd.h"
#include "peer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static const tensor_list all = { NULL, 0 };

static int retain(tensor *y)
{
	return tensor_backward_ex(TENSOR_LIST(y), NULL, all, NULL, TENSOR_RETAIN_GRAPH);
}

/* ---- backwards inside of backwards ---- */

/* Backwards inside of each other run on other stacks beyond some depth. */
static int left;

static tensor *nests(tensor *grad, void *ctx)
{
	int err = 0;

	if (--left > 0)
		tensor_scope
			tensor_enable_grad
			{
				tensor *x = tensor_ones(TENSOR_INTS(2), F32), *y;

				tensor_set_requires_grad(x, true);
				y = tensor_exp(x);
				err = tensor_register_hook(y, nests, ctx, NULL, NULL) ?:
					      tensor_backward(tensor_sum(y));
			}
	return err < 0 ? NULL : grad;
}

static void *nest_a_thousand(void *err)
{
	tensor_scope {
		tensor *x = tensor_ones(TENSOR_INTS(2), F32), *y;

		tensor_set_requires_grad(x, true);
		y = tensor_exp(x);
		left = 1000;
		if (tensor_register_hook(y, nests, NULL, NULL, NULL) == 0)
			*(int *)err = tensor_backward(tensor_sum(y));
	}
	return NULL;
}

/* 10: the stack has space for the backwards of the first sixty, and not of a thousand. */
static void reentrant_backward_beyond_a_depth_has_another_stack(void **state)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = -1;

	pthread_attr_init(&attr);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	assert_int_equal(pthread_attr_setstacksize(&attr, 4096 * 1024), 0);
#else
	assert_int_equal(pthread_attr_setstacksize(&attr, 384 * 1024), 0);
#endif
	assert_int_equal(pthread_create(&thread, &attr, nest_a_thousand, &err), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	assert_int_equal(err, 0);
	assert_int_equal(left, 0);
}

/* ---- threads ---- */

static tensor *common;

static void *two_hundred_backwards(void *arg)
{
	for (int i = 0; i < 200; i++)
		assert_done(retain(common));
	return arg;
}

/* 14 */
static void node_is_locked_while_it_runs(void **state)
{
	pthread_t thread[4];

	tensor_scope {
		tensor *x = leaf(ok(tensor_zeros(TENSOR_INTS(4), F64)));

		common = ok(tensor_sum(tensor_mul(tensor_exp(x), tensor_exp(x))));
		for (int i = 0; i < 4; i++)
			assert_int_equal(
				pthread_create(&thread[i], NULL, two_hundred_backwards, NULL), 0);
		for (int i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
		assert_values(tensor_grad(x), 1e-9, 1600, 1600, 1600, 1600);
	}
}

static atomic_int inside, most;

static void *pack_it(tensor *t, void *ctx)
{
	(void)ctx;
	return tensor_retain(t);
}

/* Is called by the node while it runs. */
static tensor *unpack_slowly(void *packed, void *ctx)
{
	int n = ++inside;

	(void)ctx;
	if (n > most)
		most = n;
	usleep(1000);
	inside--;
	return packed;
}

static void drop_it(void *packed, void *ctx)
{
	(void)ctx;
	tensor_release(packed);
}

static void *ten_backwards(void *arg)
{
	for (int i = 0; i < 10; i++)
		if (retain(common) < 0)
			return NULL;
	return arg;
}

/* 14 */
static void node_runs_on_one_thread_at_a_time(void **state)
{
	const struct tensor_saved_hooks hooks = { pack_it, unpack_slowly, drop_it, NULL, NULL };
	pthread_t thread[4];
	void *done;

	tensor_scope {
		tensor *x = leaf(ok(tensor_zeros(TENSOR_INTS(4), F64))), *y = NULL;

		tensor_with_saved_hooks(&hooks) y = ok(tensor_exp(x));
		common = ok(tensor_sum(y));
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, ten_backwards, &most), 0);
		for (int i = 0; i < 4; i++) {
			pthread_join(thread[i], &done);
			assert_ptr_equal(done, &most);
		}
		assert_int_equal(most, 1);
		assert_values(tensor_grad(x), 1e-9, 40, 40, 40, 40);
	}
}

/* 15 */
static void backward_works_after_a_fork(void **state)
{
	/* The child starts threads for the operators. */
	NOT_UNDER_TSAN(THREADS_AFTER_FORK);
	tensor_scope {
		tensor *x = leaf(ok(tensor_ones(TENSOR_INTS(512, 512), F32))),
		       *y = ok(tensor_sum(tensor_matmul(x, x)));

		assert_done(retain(y));
		assert_int_equal(IN_CHILD({
					 alarm(60);
					 if (retain(y) < 0 ||
					     tensor_backward(tensor_sum(tensor_matmul(x, x))) < 0)
						 _exit(1);
				 }),
				 0);
		assert_done(retain(y));
	}
}

static atomic_bool held, go_on;

/* Is called by the node, with its lock: waits in the thread, not in the child of the fork. */
static tensor *unpack_and_wait(void *packed, void *ctx)
{
	(void)ctx;
	held = true;
	while (!go_on)
		usleep(100);
	return packed;
}

static void *backward_of_common(void *arg)
{
	*(int *)arg = retain(common);
	return NULL;
}

/* 15 */
static void lock_of_a_node_is_free_in_the_child_of_a_fork(void **state)
{
	const struct tensor_saved_hooks hooks = { pack_it, unpack_and_wait, drop_it, NULL, NULL };
	pthread_t thread;
	int err = -1;

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = NULL;

		held = go_on = false;
		tensor_with_saved_hooks(&hooks) y = ok(tensor_exp(x));
		common = ok(tensor_sum(y));
		assert_int_equal(pthread_create(&thread, NULL, backward_of_common, &err), 0);
		while (!held)
			usleep(100);
		assert_int_equal(IN_CHILD({
					 alarm(20);
					 go_on = true;
					 if (retain(common) < 0)
						 _exit(1);
				 }),
				 0);
		go_on = true;
		pthread_join(thread, NULL);
		assert_int_equal(err, 0);
	}
}

/* 15 */
static void backward_after_a_fork_starts_the_threads_that_it_needs(void **state)
{
	NOT_UNDER_TSAN(THREADS_AFTER_FORK);
	tensor_scope {
		tensor *y = ok(tensor_exp(leaf_iota(1, TENSOR_INTS(2))));

		left = 2 * 60;
		assert_done(tensor_register_hook(y, nests, NULL, NULL, NULL));
		y = ok(tensor_sum(y));
		assert_done(retain(y));
		assert_int_equal(IN_CHILD({
					 alarm(60);
					 left = 2 * 60;
					 if (retain(y) < 0)
						 _exit(1);
				 }),
				 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reentrant_backward_beyond_a_depth_has_another_stack),
		cmocka_unit_test(node_is_locked_while_it_runs),
		cmocka_unit_test(node_runs_on_one_thread_at_a_time),
		cmocka_unit_test(backward_works_after_a_fork),
		cmocka_unit_test(lock_of_a_node_is_free_in_the_child_of_a_fork),
		cmocka_unit_test(backward_after_a_fork_starts_the_threads_that_it_needs),
	};

	return cmocka_run_group_tests_name("autograd_hazards_threads", tests, NULL, NULL);
}
