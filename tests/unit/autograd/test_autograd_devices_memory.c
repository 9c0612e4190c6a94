// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The n-th allocation of a backward over devices fails, for each n, on the caller's thread and on that of a device: the
 * backward fails with ENOMEM, leaves no tensor, and the next one succeeds.
 */
#include "tests/fuzz/calls/fail.c" /* replaces malloc() in this program */

/* The device's own allocations do not fail. */
#if defined(__SANITIZE_THREAD__)
#define LAZY_CALLOC calloc
#else
#define LAZY_CALLOC real_calloc
#endif

#include "devices.h"

enum { MOST = 3000 };

static const tensor_list all = { NULL, 0 };
static tensor *x, *w;
static long fail_there;
static bool failed_there;

/* On the thread of the device. */
static tensor *arm(tensor *grad, void *ctx)
{
	fail_at(fail_there);
	return grad;
}

static tensor *disarm(tensor *grad, void *ctx)
{
	failed_there = fail_end();
	return grad;
}

/* Over three streams, both devices and the CPU, with a node of two outputs and a leaf on each device. */
static tensor *graph(void)
{
	tensor *a = on(0, x), *b = NULL, *two[2], *y;

	with_stream(0, 1) b = ok(tensor_mul(a, w));
	assert_done(tensor_register_hook(b, arm, NULL, NULL, NULL));
	y = ok(tensor_add(ok(tensor_mul(on(1, b), on(1, x))), on(1, w)));
	assert_done(tensor_max_dim(cpu(y), 0, false, &two[0], &two[1]));
	return ok(tensor_sum(ok(tensor_mul(two[0], x))));
}

static void end_there(void)
{
	tensor *y = ok(tensor_neg(w));

	assert_done(tensor_register_hook(y, disarm, NULL, NULL, NULL));
	assert_done(tensor_backward(ok(tensor_sum(y))));
}

static void clear(struct tensor_live_counts *live)
{
	tensor_set_grad(x, NULL);
	tensor_set_grad(w, NULL);
	for (int i = 0; i < LAZY_DEVICES; i++)
		lazy_drain(&lazy[i]);
	tensor_live_counts(live);
}

static void one_more_fails(long n, bool there, bool *again)
{
	struct tensor_live_counts before, after;

	clear(&before);
	tensor_scope {
		tensor *y = graph();
		int err;

		tensor_clear_error();
		fail_there = there ? n : 0;
		fail_at(there ? 0 : n);
		err = tensor_backward_ex(TENSOR_LIST(y), NULL, all, NULL, TENSOR_RETAIN_GRAPH);
		*again = fail_end();
		if (err)
			assert_int_equal(tensor_last_error()->code, ENOMEM);
		fail_there = 0;
		end_there();
		if (there)
			*again = failed_there;
		assert_true(!err || *again);
		assert_done(tensor_backward(y));
	}
	clear(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
}

static void backward_without_memory(bool there)
{
	bool again = true;
	long n = 0;

	if (!fail_possible)
		skip();
	tensor_scope {
		x = leaf_iota(1, TENSOR_INTS(4));
		w = leaf(on(0, iota(2, TENSOR_INTS(4))));
		fail_spare_others();
		for (int i = 0; i < 3; i++)
			one_more_fails(0, there, &again);
		for (again = true; again && n < MOST;)
			one_more_fails(++n, there, &again);
		assert_in_range(n, 3, MOST - 1);
	}
}

static void caller_without_memory_gets_enomem(void **state)
{
	backward_without_memory(false);
}

static void thread_of_a_device_without_memory_gives_the_caller_enomem(void **state)
{
	backward_without_memory(true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(caller_without_memory_gets_enomem),
		TEST(thread_of_a_device_without_memory_gives_the_caller_enomem),
	};

	(void)argc;
	fail_without_caches(argv);
	return cmocka_run_group_tests_name("autograd_devices_memory", tests, lazy_register, NULL);
}
