// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Devices, streams and events of CUDA. On the emulation (make test-cuda) or a GPU, else skipped. */
#include "cuda_results.h"
#include "tests/cuda/host/include/cuda_host.h"

#include <limits.h>
#include <pthread.h>

#define STREAMS 32

static void *new_stream(void)
{
	void *s = tensor_cuda_stream(0, 0);

	assert_non_null(s);
	return s;
}

static tensor_cuda_event *new_event(unsigned int flags)
{
	tensor_cuda_event *e = tensor_cuda_event_new(0, flags);

	assert_non_null(e);
	return e;
}

static void assert_all(tensor *t, double value)
{
	tensor *wrong = ok(tensor_ne_scalar(ok(tensor_to(ok(t), CPU)), TENSOR_SCALAR(value)));
	double any = -1;

	assert_done(tensor_item(tensor_any(wrong), &any));
	assert_true(any == 0);
}

/* ---- devices ---- */

static void *device_of_thread(void *unused)
{
	return (void *)(intptr_t)tensor_cuda_current_device();
}

static void each_thread_has_a_current_device(void **state)
{
	int last = 0;
	pthread_t thread;
	void *device;

	NEED_DEVICE();
	last = tensor_cuda_device_count() - 1;
	assert_int_equal(tensor_cuda_current_device(), 0);
	assert_done(tensor_cuda_set_device(last));
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(3), CUDA));

		assert_values(tensor_to(tensor_add(x, x), CPU), 0, 2, 2, 2);
	}
	assert_int_equal(tensor_cuda_current_device(), last);
	assert_int_equal(pthread_create(&thread, NULL, device_of_thread, NULL), 0);
	assert_int_equal(pthread_join(thread, &device), 0);
	assert_int_equal((intptr_t)device, 0);
	assert_fails(tensor_cuda_set_device(last + 1), ENODEV, "cuda:");
	assert_fails(tensor_cuda_set_device(-1), ENODEV, "cuda:-1");
	assert_int_equal(tensor_cuda_current_device(), last);
	assert_done(tensor_cuda_set_device(0));
}

/* cudaSetDevice() makes a context, which takes hundreds of MiB of that device. */
static void the_current_device_is_asked_for_without_another(void **state)
{
	__typeof__(&cuda_host_fail) inject = emulation("cuda_host_fail");
	__typeof__(&cuda_host_calls) calls = emulation("cuda_host_calls");
	int last;

	if (!inject || !calls) {
		print_message("# skipped: make test-cuda runs it\n");
		skip();
	}
	last = tensor_cuda_device_count() - 1;
	assert_true(last > 0);
	assert_done(tensor_cuda_set_device(last));
	inject("cudaSetDevice", ULONG_MAX, 1);
	assert_int_equal(tensor_cuda_current_device(), last);
	assert_int_equal(calls(), 0);
	inject(NULL, 0, 0);
	assert_done(tensor_cuda_set_device(0));
}

static void properties_of_a_device(void **state)
{
	struct tensor_cuda_properties p = { .major = -1 };
	uint64_t unused = 0, total = 0;

	NEED_DEVICE();
	assert_done(tensor_cuda_device_properties(0, &p));
	assert_true(strlen(p.name) > 0 && strlen(p.name) < sizeof(p.name));
	assert_true(p.major >= 5 && p.minor >= 0 && p.multiprocessors > 0 && p.threads >= 1024);
	assert_true(p.shared_memory >= 48 << 10 && p.l2_cache > 0);
	assert_done(tensor_cuda_memory_info(0, &unused, &total));
	assert_true(unused > 0 && unused <= total && p.memory == total);
	assert_done(tensor_cuda_memory_info(0, NULL, NULL));
	assert_fails(tensor_cuda_device_properties(0, NULL), EINVAL, "NULL");
	assert_fails(tensor_cuda_device_properties(100, &p), ENODEV, "cuda:100");
	assert_fails(tensor_cuda_memory_info(100, &unused, &total), ENODEV, "cuda:100");
}

/* ---- streams ---- */

static void streams_are_taken_in_turns(void **state)
{
	void *s[STREAMS + 1], *high;

	NEED_DEVICE();
	for (int i = 0; i <= STREAMS; i++) {
		s[i] = new_stream();
		for (int j = 0; j < i && i < STREAMS; j++)
			assert_ptr_not_equal(s[i], s[j]);
	}
	assert_ptr_equal(s[STREAMS], s[0]);
	high = tensor_cuda_stream(0, -1);
	assert_non_null(high);
	for (int i = 0; i < STREAMS; i++)
		assert_ptr_not_equal(high, s[i]);
	assert_non_null(tensor_cuda_stream(0, INT_MIN));
	assert_fails(tensor_cuda_stream(0, 1), EINVAL, "priority 1");
	assert_fails(tensor_cuda_stream(-1, 0), ENODEV, "cuda:-1");
}

/* y = x * 2^n, in the current stream. */
static tensor *doubled(tensor *x, int n)
{
	for (int i = 0; i < n; i++)
		x = ok(tensor_add(x, x));
	return x;
}

/* Without the event the other stream would read what is not yet written. */
static void a_stream_waits_for_an_event(void **state)
{
	tensor_cuda_event *ready;
	void *a, *b;

	NEED_DEVICE();
	a = new_stream();
	b = new_stream();
	ready = new_event(0);
	for (int round = 0; round < 5; round++)
		tensor_scope {
			tensor *x, *y, *z;

			assert_done(tensor_cuda_set_stream(0, a));
			x = ok(tensor_full(TENSOR_SHAPE(20000), TENSOR_SCALAR(1 + round), CUDA));
			y = doubled(x, 10);
			assert_done(tensor_cuda_event_record(ready, a));
			assert_done(tensor_cuda_stream_wait(0, b, ready));
			assert_done(tensor_cuda_set_stream(0, b));
			z = doubled(y, 3);
			assert_ptr_equal(tensor_cuda_current_stream(0), b);
			assert_done(tensor_cuda_stream_synchronize(0, b));
			assert_int_equal(tensor_cuda_stream_query(0, b), 1);
			assert_int_equal(tensor_cuda_event_query(ready), 1);
			assert_all(z, 8192.0 * (1 + round));
		}
	assert_done(tensor_cuda_set_stream(0, NULL));
	tensor_cuda_event_release(ready);
}

/* The memory of x is that of stream a; the copy in b is not the library's. */
static void recorded_streams_keep_memory(void **state)
{
	int (*copy)(void *to, const void *from, size_t size, int kind, void *stream);
	tensor_cuda_event *ready;
	void *a, *b;

	NEED_DEVICE();
	copy = emulation("cudaMemcpyAsync");
	if (!copy) {
		print_message("# skipped: make test-cuda runs it\n");
		skip();
	}
	a = new_stream();
	b = new_stream();
	ready = new_event(0);
	tensor_scope {
		tensor *to = ok(tensor_zeros(TENSOR_SHAPE(300), CUDA)), *other;

		assert_done(tensor_cuda_set_stream(0, a));
		tensor_scope {
			tensor *x = ok(tensor_full(TENSOR_SHAPE(300), TENSOR_SCALAR(3.0), CUDA));

			assert_done(tensor_cuda_event_record(ready, a));
			assert_done(tensor_cuda_event_record(ready, NULL));
			assert_done(tensor_cuda_stream_wait(0, b, ready));
			assert_done(tensor_cuda_event_record(ready, a));
			assert_done(tensor_cuda_stream_wait(0, b, ready));
			assert_done(tensor_cuda_record_stream(x, b));
			assert_int_equal(
				copy(tensor_device_data(to), tensor_device_data(x), 1200, 3, b), 0);
		}
		other = ok(tensor_full(TENSOR_SHAPE(300), TENSOR_SCALAR(100.0), CUDA));
		assert_done(tensor_cuda_stream_synchronize(0, a));
		assert_done(tensor_cuda_stream_synchronize(0, b));
		assert_done(tensor_cuda_set_stream(0, NULL));
		assert_all(to, 3);
		assert_all(other, 100);
		assert_fails(tensor_cuda_record_stream(tensor_ones(TENSOR_SHAPE(2), CPU), a),
			     EINVAL, "CUDA device");
	}
	assert_fails(tensor_cuda_record_stream(NULL, a), EINVAL, "NULL");
	tensor_cuda_event_release(ready);
}

/* Its events are not those of the memory's device. A block remembers four uses. */
static void recorded_streams_may_be_of_another_device(void **state)
{
	const tensor_options on_1 = TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(1));
	void *far;

	NEED_DEVICE();
	if (tensor_cuda_device_count() < 2)
		skip();
	far = tensor_cuda_stream(1, 0);
	assert_non_null(far);
	for (int others = 0; others <= 6; others += 3) {
		tensor_scope {
			tensor *x = ok(tensor_zeros(TENSOR_SHAPE(300), CUDA)), *y;

			for (int i = 0; i < others; i++)
				assert_done(tensor_cuda_record_stream(x, tensor_cuda_stream(0, 0)));
			assert_done(tensor_cuda_synchronize(0));
			assert_done(tensor_cuda_set_stream(1, far));
			y = ok(tensor_ones(TENSOR_SHAPE(1000), on_1));
			assert_done(tensor_cuda_record_stream(x, far));
			doubled(y, 20);
			assert_done(tensor_cuda_set_stream(1, NULL));
		}
		assert_int_equal(tensor_cuda_stream_query(1, far), 1);
	}
}

/* cudaStreamPerThread, the number 2, names another stream in each thread. */
static void the_stream_of_a_thread_is_recorded_and_never_current(void **state)
{
	void *per_thread = (void *)2, *side;

	NEED_DEVICE();
	side = new_stream();
	assert_fails(tensor_cuda_set_stream(0, per_thread), EINVAL, "cudaStreamPerThread");
	assert_null(tensor_cuda_current_stream(0));
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(300), CUDA));

		assert_done(tensor_cuda_record_stream(x, NULL));
		assert_done(tensor_cuda_record_stream(x, per_thread));
		assert_done(tensor_cuda_record_stream(x, per_thread));
		assert_done(tensor_cuda_set_stream(0, side));
		doubled(ok(tensor_ones(TENSOR_SHAPE(300), CUDA)), 20);
		assert_done(tensor_cuda_set_stream(0, NULL));
	}
	/* Its release has waited for the device. */
	assert_int_equal(tensor_cuda_stream_query(0, side), 1);
}

/* ---- events ---- */

static void events_measure_time(void **state)
{
	tensor_cuda_event *from, *to, *plain, *fresh;
	float ms = -1;

	NEED_DEVICE();
	from = new_event(TENSOR_CUDA_EVENT_TIMING);
	to = new_event(TENSOR_CUDA_EVENT_TIMING | TENSOR_CUDA_EVENT_BLOCKING);
	fresh = new_event(TENSOR_CUDA_EVENT_TIMING);
	plain = new_event(0);
	assert_int_equal(tensor_cuda_event_query(plain), 1);
	assert_done(tensor_cuda_event_synchronize(plain));
	assert_done(tensor_cuda_event_record(from, NULL));
	tensor_scope {
		doubled(ok(tensor_ones(TENSOR_SHAPE(1000), CUDA)), 20);
	}
	assert_done(tensor_cuda_event_record(to, NULL));
	assert_done(tensor_cuda_event_record(plain, NULL));
	assert_done(tensor_cuda_event_synchronize(to));
	assert_done(tensor_cuda_event_elapsed(from, to, &ms));
	assert_true(ms > 0 && ms < 60000);
	assert_fails(tensor_cuda_event_elapsed(from, plain, &ms), EINVAL, "TIMING");
	assert_fails(tensor_cuda_event_elapsed(fresh, to, &ms), EINVAL, "not recorded");
	assert_fails(tensor_cuda_event_elapsed(NULL, to, &ms), EINVAL, "NULL");
	assert_fails(tensor_cuda_event_elapsed(from, to, NULL), EINVAL, "NULL");
	assert_fails(tensor_cuda_event_new(0, 4), EINVAL, "flags 0x4");
	assert_fails(tensor_cuda_event_new(99, 0), ENODEV, "cuda:99");
	tensor_cuda_event_release(from);
	tensor_cuda_event_release(to);
	tensor_cuda_event_release(plain);
	tensor_cuda_event_release(fresh);
	tensor_cuda_event_release(NULL);
}

/* Of the emulation with lazy streams, where nothing runs before something waits for it. */
static void unreached_events_are_told(void **state)
{
	const char *mode = getenv("CUDA_HOST_STREAMS");
	tensor_cuda_event *from, *to;
	float ms;

	NEED_DEVICE();
	if (!mode || strcmp(mode, "lazy")) {
		print_message("# skipped: make test-cuda runs it with lazy streams\n");
		skip();
	}
	from = new_event(TENSOR_CUDA_EVENT_TIMING);
	to = new_event(TENSOR_CUDA_EVENT_TIMING);
	assert_done(tensor_cuda_synchronize(0));
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(1000), CUDA));

		assert_done(tensor_cuda_event_record(from, NULL));
		doubled(x, 3);
		assert_done(tensor_cuda_event_record(to, NULL));
		assert_fails(tensor_cuda_event_elapsed(from, to, &ms), EAGAIN, "not reached");
		assert_int_equal(tensor_cuda_event_query(to), 0);
		assert_int_equal(tensor_cuda_stream_query(0, NULL), 0);
	}
	assert_done(tensor_cuda_event_synchronize(to));
	assert_done(tensor_cuda_event_elapsed(from, to, &ms));
	tensor_cuda_event_release(from);
	tensor_cuda_event_release(to);
}

static void null_events_are_refused(void **state)
{
	NEED_DEVICE();
	assert_fails(tensor_cuda_event_record(NULL, NULL), EINVAL, "NULL");
	assert_fails(tensor_cuda_event_query(NULL), EINVAL, "NULL");
	assert_fails(tensor_cuda_event_synchronize(NULL), EINVAL, "NULL");
	assert_fails(tensor_cuda_stream_wait(0, NULL, NULL), EINVAL, "NULL");
	assert_fails(tensor_cuda_stream_query(-1, NULL), ENODEV, "cuda:-1");
	assert_fails(tensor_cuda_stream_synchronize(99, NULL), ENODEV, "cuda:99");
}

/* ---- captures, and children ---- */

static int record(tensor_cuda_event *e)
{
	return tensor_cuda_event_record(e, tensor_cuda_current_stream(0));
}

static int wait_in_other(tensor_cuda_event *e)
{
	return tensor_cuda_stream_wait(0, NULL, e);
}

static int synchronize_other(tensor_cuda_event *e)
{
	return tensor_cuda_stream_synchronize(0, NULL);
}

static void a_capture_has_one_stream(void **state)
{
	static int (*const call[])(tensor_cuda_event *
				   e) = { record, wait_in_other, synchronize_other,
					  tensor_cuda_event_query, tensor_cuda_event_synchronize };
	tensor_cuda_graph *g;
	tensor_cuda_event *e;

	NEED_DEVICE();
	g = tensor_cuda_graph_new(0);
	assert_non_null(g);
	e = new_event(0);
	for (size_t i = 0; i < sizeof(call) / sizeof(*call); i++) {
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		tensor_cuda_event_release(new_event(0));
		new_stream();
		assert_fails(call[i](e), EOPNOTSUPP, "streams of the program");
		assert_fails(tensor_cuda_graph_capture_end(g), ECANCELED, "streams");
		assert_done(tensor_cuda_graph_reset(g));
		assert_done(record(e));
		assert_done(tensor_cuda_event_synchronize(e));
	}
	/* The stream of a capture, from another device of the same thread. */
	assert_done(tensor_cuda_graph_capture_begin(g, NULL));
	tensor_cuda_event_release(new_event(0));
	assert_done(tensor_cuda_graph_capture_end(g));
	assert_done(tensor_cuda_graph_release(g));
	tensor_cuda_event_release(e);
}

static void forked_child_is_refused(void **state)
{
	tensor_cuda_event *e;
	int status;
	pid_t pid;

	NEED_DEVICE();
	e = new_event(0);
	assert_done(record(e));
	pid = fork();
	if (!pid) {
		bool refused = tensor_cuda_event_query(e) == -ENODEV &&
			       tensor_cuda_event_record(e, NULL) == -ENODEV &&
			       !tensor_cuda_stream(0, 0) && !tensor_cuda_event_new(0, 0) &&
			       tensor_cuda_current_device() == -ENODEV &&
			       tensor_cuda_set_device(0) == -ENODEV &&
			       tensor_cuda_stream_synchronize(0, NULL) == -ENODEV &&
			       strstr(tensor_last_error()->text, "fork");

		tensor_cuda_event_release(e);
		_exit(refused ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_done(tensor_cuda_event_synchronize(e));
	tensor_cuda_event_release(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_thread_has_a_current_device),
		cmocka_unit_test(the_current_device_is_asked_for_without_another),
		cmocka_unit_test(properties_of_a_device),
		cmocka_unit_test(streams_are_taken_in_turns),
		cmocka_unit_test(a_stream_waits_for_an_event),
		cmocka_unit_test(recorded_streams_keep_memory),
		cmocka_unit_test(recorded_streams_may_be_of_another_device),
		cmocka_unit_test(the_stream_of_a_thread_is_recorded_and_never_current),
		cmocka_unit_test(events_measure_time),
		cmocka_unit_test(unreached_events_are_told),
		cmocka_unit_test(null_events_are_refused),
		cmocka_unit_test(a_capture_has_one_stream),
		cmocka_unit_test(forked_child_is_refused),
	};

	return cmocka_run_group_tests_name("cuda_streams", tests, NULL, NULL);
}
