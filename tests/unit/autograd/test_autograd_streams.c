// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Streams of a device in a backward, and eight callers at once. The devices of lazy_device.h run only what the host
 * waits for, or any stream at random: a wait between streams that is missing gives NaN or another sum.
 */
#include "autograd.h"
#include "lazy_device.h"
#include "threads.h"

static const tensor_list all = { NULL, 0 };

#define CPU TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU)

static tensor *cpu(tensor *t)
{
	return ok(tensor_to(t, CPU));
}

static int end(void **state)
{
	for (int i = 0; i < LAZY_DEVICES; i++) {
		lazy[i].at_random = false;
		assert_int_equal(lazy_drain(&lazy[i]), 0);
		assert_int_equal(lazy[i].events, 0);
	}
	return 0;
}

/* Orders two streams as a program does: stream `to` waits for stream `from`. */
static void order(int from, int to)
{
	void *event = lazy_record(lazy[0].device, lazy_stream(0, from));

	lazy_wait(lazy[0].device, lazy_stream(0, to), event);
	lazy_release(lazy[0].device, event);
}

/* (2x)^2 + 3x over three streams; its gradient is 8x + 3. */
static tensor *three_streams(tensor *x)
{
	tensor *a = NULL, *b = NULL, *c = NULL, *d = NULL;

	with_stream(0, 1) a = ok(tensor_mul_scalar(x, S(2)));
	order(1, 2);
	with_stream(0, 2) b = ok(tensor_mul(a, a));
	with_stream(0, 3) c = ok(tensor_mul_scalar(x, S(3)));
	order(2, 3);
	with_stream(0, 3) d = ok(tensor_sum(ok(tensor_add(b, c))));
	return d;
}

static tensor *leaf_on(int stream, tensor *values)
{
	tensor *x = NULL;

	with_stream(0, stream) x = leaf(ok(tensor_to(values, LAZY(0))));
	order(stream, 1);
	order(stream, 2);
	order(stream, 3);
	return x;
}

static void gradients_wait_for_each_other_over_streams(void **state)
{
	for (int i = 0; i < 200; i++)
		tensor_scope {
			tensor *x = leaf_on(i % 4, iota(1, TENSOR_INTS(4))), *y;

			lazy[0].at_random = i & 1;
			y = three_streams(x);
			/* The caller's stream is that of the loss, or waits for it. */
			order(3, i / 4 % 4);
			with_stream(0, i / 4 % 4)
			{
				assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, all, NULL,
							       TENSOR_RETAIN_GRAPH));
				assert_values(cpu(tensor_grad(x)), 0, 11, 19, 27, 35);
				/* A leaf's gradient that the caller changed in its stream before. */
				ok(tensor_mul_scalar_(tensor_grad(x), S(10)));
				assert_done(tensor_backward(y));
				assert_values(cpu(tensor_grad(x)), 0, 121, 209, 297, 385);
			}
			assert_int_equal(lazy_current[0], 0);
		}
}

static int seen_stream[4];

static tensor *note_stream(tensor *grad, void *ctx)
{
	*(int *)ctx = lazy_current[0];
	return grad;
}

static void node_runs_in_the_stream_of_its_forward(void **state)
{
	tensor_scope {
		tensor *x = leaf_on(2, iota(1, TENSOR_INTS(4))), *y[4], *sum;

		for (int i = 1; i < 4; i++) {
			with_stream(0, i) y[i] = ok(tensor_mul_scalar(x, S(i)));
			assert_done(tensor_register_hook(y[i], note_stream, &seen_stream[i], NULL,
							 NULL));
			order(i, 0);
		}
		sum = ok(tensor_add(ok(tensor_add(y[1], y[2])), y[3]));
		assert_done(tensor_register_hook(sum, note_stream, &seen_stream[0], NULL, NULL));
		seen_stream[0] = 9;
		assert_done(tensor_backward(ok(tensor_sum(sum))));
		for (int i = 0; i < 4; i++)
			assert_int_equal(seen_stream[i], i);
		assert_values(cpu(tensor_grad(x)), 0, 6, 6, 6, 6);
	}
}

static void one_stream_needs_no_events(void **state)
{
	tensor_scope {
		tensor *x = leaf(ok(tensor_to(iota(1, TENSOR_INTS(4)), LAZY(0)))),
		       *y = ok(tensor_sum(ok(tensor_mul(x, x))));
		uint64_t waits = lazy[0].waits;

		assert_done(tensor_backward(y));
		assert_int_equal(lazy[0].waits, waits);
		assert_values(cpu(tensor_grad(x)), 0, 2, 4, 6, 8);
	}
}

static void requested_and_retained_gradients_are_in_the_callers_stream(void **state)
{
	for (int i = 0; i < 20; i++)
		tensor_scope {
			tensor *x = leaf_on(1, iota(1, TENSOR_INTS(4))), *y = three_streams(x), *z,
			       *g = NULL;

			order(3, 0);
			assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), &g,
						       TENSOR_RETAIN_GRAPH));
			assert_values(cpu(g), 0, 11, 19, 27, 35);
			with_stream(0, 2)
			{
				z = ok(tensor_exp(ok(tensor_mul_scalar(x, S(0)))));
				assert_done(tensor_retain_grad(z));
			}
			order(2, 0);
			assert_done(
				tensor_backward(ok(tensor_sum(ok(tensor_mul_scalar(z, S(7)))))));
			assert_values(cpu(tensor_grad(z)), 0, 7, 7, 7, 7);
		}
}

/* The caller's gradient was computed in the caller's stream. */
static void gradient_of_the_caller_is_waited_for(void **state)
{
	tensor_scope {
		tensor *x = leaf_on(1, iota(1, TENSOR_INTS(4))), *y = NULL, *g = NULL;

		with_stream(0, 1) y = ok(tensor_mul_scalar(x, S(2)));
		with_stream(0, 3)
		{
			g = ok(tensor_exp(
				ok(tensor_to(ok(tensor_zeros(TENSOR_INTS(4), F32)), LAZY(0)))));
			assert_done(tensor_backward_ex(TENSOR_LIST(y), &g, all, NULL, 0));
			assert_values(cpu(tensor_grad(x)), 0, 2, 2, 2, 2);
		}
	}
}

static void recorded_backward_keeps_streams(void **state)
{
	for (int i = 0; i < 20; i++)
		tensor_scope {
			tensor *x = leaf_on(2, iota(1, TENSOR_INTS(4))), *y, *g = NULL, *s;

			lazy[0].at_random = i & 1;
			y = three_streams(x);
			order(3, 0);
			assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), &g,
						       TENSOR_CREATE_GRAPH));
			s = ok(tensor_sum(ok(tensor_mul(g, g))));
			assert_done(tensor_backward(s)); /* 2 (8x + 3) 8 */
			assert_values(cpu(tensor_grad(x)), 0, 176, 304, 432, 560);
		}
}

/* ---- failures of the device ---- */

static int fail_wait;

static int failing_wait(tensor_device device, void *stream, void *event)
{
	return fail_wait && !--fail_wait ? -EIO : lazy_wait(device, stream, event);
}

static struct tensor_streams failing_streams;

static void failed_wait_ends_the_backward(void **state)
{
	int failed = 0;

	for (int n = 1; n < 20; n++)
		tensor_scope {
			tensor *x = leaf_on(1, iota(1, TENSOR_INTS(4))), *y = three_streams(x);

			order(3, 2);
			with_stream(0, 2)
			{
				fail_wait = n;
				if (tensor_backward(y) < 0) {
					failed++;
					assert_int_equal(tensor_last_error()->code, EIO);
					assert_contains(tensor_last_error()->text, "wait");
				}
				fail_wait = 0;
			}
		}
	assert_true(failed > 3 && failed < 19);
}

static void wrong_streams_are_refused(void **state)
{
	struct tensor_streams half = lazy_streams;

	half.record = NULL;
	assert_fails(tensor_register_streams(lazy[0].device, NULL), EINVAL, "all functions");
	assert_fails(tensor_register_streams(lazy[0].device, &half), EINVAL, "all functions");
	assert_fails(tensor_register_streams(TENSOR_DEVICE_CPU, &lazy_streams), EINVAL,
		     "no backend");
	assert_fails(tensor_register_streams((tensor_device){ TENSOR_PRIVATE, 3 }, &lazy_streams),
		     EINVAL, "no backend");
	assert_fails(tensor_register_streams((tensor_device){ TENSOR_PRIVATE, -1 }, &lazy_streams),
		     EINVAL, "no backend");
	assert_fails(tensor_register_streams(lazy[0].device, &lazy_streams), EBUSY, "lazy0");
}

/* ---- eight callers ---- */

enum { CALLERS = 8, ROUNDS = 20 };

static struct {
	tensor *host, *there[LAZY_DEVICES];
	atomic_int hooks;
	pthread_barrier_t start;
	atomic_int failed;
} shared;

static tensor *count(tensor *grad, void *ctx)
{
	shared.hooks++;
	return grad;
}

/* A hook that runs a backward of its own to the same leaves. */
static tensor *count_and_nest(tensor *grad, void *ctx)
{
	shared.hooks++;
	tensor_scope
		tensor_enable_grad if (tensor_backward(tensor_sum(tensor_to(
					       tensor_mul(shared.there[0], shared.there[0]),
					       CPU))) < 0) shared.failed++;
	return grad;
}

static void *calls(void *arg)
{
	int id = (int)(intptr_t)arg, device = id % LAZY_DEVICES;

	lazy_current[0] = id % LAZY_STREAMS;
	pthread_barrier_wait(&shared.start);
	for (int i = 0; i < ROUNDS; i++)
		tensor_scope {
			tensor *a = tensor_mul(tensor_to(shared.host, LAZY(device)),
					       shared.there[device]);
			tensor *b = tensor_to(tensor_mul(tensor_to(a, LAZY(1 - device)),
							 shared.there[1 - device]),
					      CPU);

			if (tensor_register_hook(a, id % 4 ? count : count_and_nest, NULL, NULL,
						 NULL) < 0 ||
			    tensor_backward(tensor_sum(tensor_mul(b, shared.host))) < 0) {
				fprintf(stderr, "caller %d: %s\n", id, tensor_last_error()->text);
				shared.failed++;
			}
		}
	return NULL;
}

static void eight_callers_share_leaves_on_all_devices(void **state)
{
	pthread_t thread[CALLERS];
	const int n = CALLERS * ROUNDS;

	pthread_barrier_init(&shared.start, NULL, CALLERS);
	shared.hooks = shared.failed = 0;
	tensor_scope {
		shared.host = leaf(ok(tensor_full(TENSOR_INTS(3), S(2), F32)));
		for (int i = 0; i < LAZY_DEVICES; i++) {
			lazy[i].at_random = true;
			shared.there[i] = leaf(
				ok(tensor_to(tensor_full(TENSOR_INTS(3), S(3 + i), F32), LAZY(i))));
			for (int s = 0; s < LAZY_STREAMS && !i; s++)
				order(0, s);
		}
		for (intptr_t i = 0; i < CALLERS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, calls, (void *)i), 0);
		for (int i = 0; i < CALLERS; i++)
			pthread_join(thread[i], NULL);
		assert_int_equal(shared.failed, 0);
		assert_int_equal(shared.hooks, n);
		/* host^2 t0 t1, and for a quarter of the callers t0^2 from the hook */
		assert_values(tensor_grad(shared.host), 0, 48 * n, 48 * n, 48 * n);
		assert_values(cpu(tensor_grad(shared.there[0])), 0, 16 * n + 6 * n / 4,
			      16 * n + 6 * n / 4, 16 * n + 6 * n / 4);
		assert_values(cpu(tensor_grad(shared.there[1])), 0, 12 * n, 12 * n, 12 * n);
	}
	pthread_barrier_destroy(&shared.start);
}

/* One graph, read by eight callers. */
static tensor *loss;

static void *calls_one_graph(void *arg)
{
	pthread_barrier_wait(&shared.start);
	for (int i = 0; i < ROUNDS; i++)
		if (tensor_backward_ex(TENSOR_LIST(loss), NULL, all, NULL, TENSOR_RETAIN_GRAPH) < 0)
			shared.failed++;
	return NULL;
}

static void eight_callers_share_a_graph_over_devices(void **state)
{
	pthread_t thread[CALLERS];
	const int n = CALLERS * ROUNDS;

	pthread_barrier_init(&shared.start, NULL, CALLERS);
	shared.failed = 0;
	tensor_scope {
		tensor *x = leaf(ok(tensor_full(TENSOR_INTS(3), S(2), F32))),
		       *y = ok(tensor_to(x, LAZY(0)));

		y = ok(tensor_mul(y, ok(tensor_mul(y, y))));
		loss = ok(tensor_sum(ok(tensor_mul(cpu(ok(tensor_to(y, LAZY(1)))), x))));
		for (intptr_t i = 0; i < CALLERS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, calls_one_graph, NULL),
					 0);
		for (int i = 0; i < CALLERS; i++)
			pthread_join(thread[i], NULL);
		assert_int_equal(shared.failed, 0);
		assert_values(tensor_grad(x), 0, 32 * n, 32 * n, 32 * n); /* 4 x^3 */
	}
	pthread_barrier_destroy(&shared.start);
}

static int register_devices(void **state)
{
	failing_streams = lazy_streams;
	failing_streams.wait = failing_wait;
	return lazy_register_with(&failing_streams);
}

#define TEST(name) cmocka_unit_test_teardown(name, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(gradients_wait_for_each_other_over_streams),
		TEST(node_runs_in_the_stream_of_its_forward),
		TEST(one_stream_needs_no_events),
		TEST(requested_and_retained_gradients_are_in_the_callers_stream),
		TEST(gradient_of_the_caller_is_waited_for),
		TEST(recorded_backward_keeps_streams),
		TEST(failed_wait_ends_the_backward),
		TEST(wrong_streams_are_refused),
		TEST(eight_callers_share_leaves_on_all_devices),
		TEST(eight_callers_share_a_graph_over_devices),
	};

	return cmocka_run_group_tests_name("autograd_streams", tests, register_devices, NULL);
}
