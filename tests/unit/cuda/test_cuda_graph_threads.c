// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Graphs with other threads, devices and processes. On the emulation (make test-cuda) or a GPU, else skipped. */
#include "cuda_graph.h"

#include <pthread.h>
#include <stdatomic.h>

static void *work(void *unused)
{
	for (int i = 0; i < 20; i++) {
		tensor_scope {
			tensor *x = tensor_full(TENSOR_SHAPE(200), S((double)i), CUDA);
			tensor *y = tensor_to(tensor_add(x, x), CPU);
			double v;

			if (!y || tensor_item(tensor_sum(y), &v) < 0 || v != 400.0 * i)
				return "a thread that does not capture got another result";
			if (tensor_cuda_is_capturing(0))
				return "another thread's capture is seen";
		}
	}
	if (tensor_cuda_synchronize(0) != -EBUSY)
		return "synchronize must fail during a capture";
	return NULL;
}

static void another_thread_works_during_a_capture(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(200), CUDA)), *y;
		pthread_t thread;
		void *error;

		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
		y = ok(tensor_add(x, x));
		for (int i = 0; i < 20; i++)
			y = ok(tensor_mul_scalar(y, S(1.0)));
		pthread_join(thread, &error);
		if (error)
			fail_msg("%s", (char *)error);
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_done(tensor_cuda_graph_replay(g));
		assert_true(value_of(tensor_sum(y)) == 400);
		assert_done(tensor_cuda_synchronize(0));
		assert_done(tensor_cuda_graph_release(g));
	}
}

/* What waits for one device is no part of a capture on another one. */
static void another_device_works_during_a_capture(void **state)
{
	const tensor_options on_other = TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(1));

	NEED_DEVICE();
	if (tensor_cuda_device_count() < 2)
		skip();
	tensor_scope {
		tensor_cuda_graph *g = new_graph(), *other = tensor_cuda_graph_new(1);
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(200), CUDA)), *y, *a, *b;

		assert_non_null(other);
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		y = ok(tensor_add(x, x));
		a = ok(tensor_full(TENSOR_SHAPE(3), S(2.0), on_other));
		assert_true(value_of(tensor_sum(ok(tensor_mul(a, a)))) == 12);
		assert_true(value_of(tensor_sum(ok(tensor_nonzero(a)))) == 3);
		assert_done(tensor_cuda_synchronize(1));
		assert_done(tensor_cuda_memory_trim(1));
		assert_done(tensor_cuda_graph_capture_begin(other, NULL));
		b = ok(tensor_add(a, a));
		assert_done(tensor_cuda_graph_capture_end(other));
		assert_done(tensor_cuda_graph_replay(other));
		assert_done(tensor_cuda_graph_wait(other));
		assert_true(value_of(tensor_sum(b)) == 12);
		assert_done(tensor_cuda_graph_release(other));
		y = ok(tensor_add(y, x));
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_done(tensor_cuda_graph_replay(g));
		assert_true(value_of(tensor_sum(y)) == 600);
		assert_done(tensor_cuda_graph_release(g));
	}
}

static atomic_bool ended;

/* Waits until no capture is open are allowed; each other one must be an error that leaves the capture as it is. */
static void *synchronise(void *unused)
{
	while (!atomic_load(&ended)) {
		int err = tensor_cuda_synchronize(0);

		if (err && err != -EBUSY)
			return "an error other than EBUSY";
	}
	return NULL;
}

static void waits_of_other_threads_leave_captures_alone(void **state)
{
	pthread_t threads[2];
	const char *wrong = NULL;
	int failed = 0;

	NEED_DEVICE();
	atomic_store(&ended, false);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, synchronise, NULL), 0);
	for (int i = 0; i < 500; i++) {
		tensor_cuda_graph *g = new_graph();

		usleep(50);
		failed += tensor_cuda_graph_capture_begin(g, NULL) != 0;
		usleep(50);
		failed += tensor_cuda_graph_capture_end(g) != 0;
		failed += tensor_cuda_graph_release(g) != 0;
	}
	atomic_store(&ended, true);
	for (int i = 0; i < 2; i++) {
		void *found;

		assert_int_equal(pthread_join(threads[i], &found), 0);
		wrong = wrong ? wrong : found;
	}
	assert_null(wrong);
	assert_int_equal(failed, 0);
}

/* More streams than a block of the cache remembers one by one: its release waits for the device. */
static tensor *used_in_many_streams(void)
{
	tensor *x;

	tensor_scope {
		x = tensor_retain(ok(tensor_ones(TENSOR_SHAPE(200), CUDA)));
		assert_done(tensor_cuda_synchronize(0));
		for (int i = 0; i < 6; i++) {
			assert_done(tensor_cuda_set_stream(0, tensor_cuda_stream(0, 0)));
			ok(tensor_add(x, x));
		}
		assert_done(tensor_cuda_set_stream(0, NULL));
	}
	return x;
}

static void *release(void *t)
{
	tensor_release(t);
	return NULL;
}

static void memory_that_many_streams_used_is_released_during_a_capture(void **state)
{
	uint64_t before;

	NEED_DEVICE();
	assert_done(tensor_cuda_synchronize(0));
	before = usage().allocated;
	for (int trims = 0; trims < 2; trims++) {
		tensor *own = used_in_many_streams(), *others = used_in_many_streams();
		tensor_cuda_graph *g = new_graph();
		pthread_t thread;

		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		tensor_release(own);
		assert_int_equal(pthread_create(&thread, NULL, release, others), 0);
		pthread_join(thread, NULL);
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_int_equal(usage().allocated - before, 2 * 1024);
		/* The memory comes back with the next allocation, or a trim. */
		if (trims)
			assert_done(tensor_cuda_memory_trim(0));
		else
			tensor_release(tensor_ones(TENSOR_SHAPE(1), CUDA));
		assert_int_equal(usage().allocated, before);
		assert_done(tensor_cuda_graph_release(g));
	}
}

static void *capture_and_end(void *graph)
{
	return tensor_cuda_graph_capture_begin(graph, NULL) < 0 ? "no capture" : NULL;
}

static void a_thread_that_ends_ends_its_capture(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		pthread_t thread;
		void *error;

		assert_int_equal(pthread_create(&thread, NULL, capture_and_end, g), 0);
		pthread_join(thread, &error);
		assert_null(error);
		assert_int_equal(tensor_cuda_graph_capture_end(g), -ECANCELED);
		assert_done(tensor_cuda_synchronize(0));
		assert_done(tensor_cuda_graph_release(g));
	}
}

static void a_child_of_a_fork_in_a_capture_cannot_use_the_graph(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph(), *ready = new_graph();
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(200), CUDA)), *y;
		int status;
		pid_t child;

		assert_done(tensor_cuda_graph_capture_begin(ready, NULL));
		ok(tensor_add(x, x));
		assert_done(tensor_cuda_graph_capture_end(ready));
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		y = tensor_retain(ok(tensor_add(x, x)));
		child = fork();
		if (!child)
			_exit(tensor_cuda_graph_replay(ready) != -ENODEV ||
			      tensor_cuda_graph_capture_end(g) != -ENODEV ||
			      tensor_cuda_graph_release(ready) || tensor_cuda_graph_release(g) ||
			      (tensor_release(y), tensor_cuda_is_capturing(0)));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_done(tensor_cuda_graph_replay(g));
		assert_true(value_of(tensor_sum(y)) == 400);
		tensor_release(y);
		assert_done(tensor_cuda_graph_release(g));
		assert_done(tensor_cuda_graph_release(ready));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_thread_works_during_a_capture),
		cmocka_unit_test(another_device_works_during_a_capture),
		cmocka_unit_test(waits_of_other_threads_leave_captures_alone),
		cmocka_unit_test(memory_that_many_streams_used_is_released_during_a_capture),
		cmocka_unit_test(a_thread_that_ends_ends_its_capture),
		cmocka_unit_test(a_child_of_a_fork_in_a_capture_cannot_use_the_graph),
	};

	return cmocka_run_group_tests_name("cuda_graph_threads", tests, NULL, NULL);
}
