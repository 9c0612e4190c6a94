// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Threads and devices that share the allocator of device memory: one returns memory to CUDA, which takes as long as the test
 * wants, and others allocate meanwhile. On the emulation (make test-cuda), else skipped but for the last test.
 */
#include "cuda_trim.h"

#include <time.h>

#define BYTES(d) TENSOR_OPTIONS(.dtype = TENSOR_U8, .device = TENSOR_DEVICE_CUDA(d))
#define MIB	 ((int64_t)1 << 20)

static tensor *bytes(int device, int64_t n)
{
	tensor *t = tensor_empty(TENSOR_SHAPE(n), BYTES(device));

	assert_non_null(t);
	return t;
}

static struct tensor_cuda_stats stats_of(int device)
{
	struct tensor_cuda_stats s;

	assert_done(tensor_cuda_memory_stats(device, &s));
	return s;
}

static void an_allocation_does_not_wait_for_a_trim(void **state)
{
	pthread_t thread;
	tensor *kept, *t;
	uint64_t before;

	NEED_DEVICE();
	if (!trim_is_emulated())
		skip();
	kept = bytes(0, 3 * MIB); /* the rest of its segment serves the next one */
	thread = trim_begin();
	before = stats_of(0).num_device_free;
	t = bytes(0, 2 * MIB);
	tensor_release(t);
	t = bytes(0, 50 * MIB); /* of a new segment */
	tensor_release(kept);
	assert_int_equal(stats_of(0).num_device_free, before);
	trim_end(thread);
	assert_true(stats_of(0).num_device_free > before);
	tensor_release(t);
}

static void another_device_does_not_wait_for_a_trim(void **state)
{
	pthread_t thread;
	uint64_t before;

	NEED_DEVICE();
	if (!trim_is_emulated() || tensor_cuda_device_count() < 2)
		skip();
	tensor_release(bytes(1, 30 * MIB));
	thread = trim_begin();
	before = stats_of(0).num_device_free;
	tensor_release(bytes(1, 30 * MIB));
	assert_done(tensor_cuda_memory_trim(1));
	assert_int_equal(stats_of(0).num_device_free, before);
	trim_end(thread);
}

/* Memory counts as reserved until the device has it, and a trim returns a segment once. */
static void memory_is_reserved_until_it_is_returned(void **state)
{
	struct tensor_cuda_stats a, b;
	pthread_t thread;

	NEED_DEVICE();
	if (!trim_is_emulated())
		skip();
	assert_done(tensor_cuda_memory_trim(0));
	a = stats_of(0);
	thread = trim_begin();
	b = stats_of(0);
	assert_int_equal(b.reserved_bytes.all.current - a.reserved_bytes.all.current, TRIM_BYTES);
	assert_int_equal(b.allocated_bytes.all.current, a.allocated_bytes.all.current);
	trim_end(thread);
	b = stats_of(0);
	assert_int_equal(b.reserved_bytes.all.current, a.reserved_bytes.all.current);
	assert_int_equal(b.segment.all.current, a.segment.all.current);
	assert_true(b.num_device_free > a.num_device_free);
}

static void *allocate_most(void *n)
{
	tensor *t = tensor_empty(TENSOR_SHAPE((intptr_t)n), BYTES(0));

	tensor_release(t);
	return (void *)(intptr_t)(t ? 0 : tensor_last_error()->code);
}

/* A request that finds no memory while another thread returns some waits for it, instead of failing. */
static void a_request_without_memory_waits_for_a_trim(void **state)
{
	const struct timespec soon = { .tv_nsec = 20000000 };
	uint64_t unused, total;
	pthread_t trimming, thread;
	void *result;

	NEED_DEVICE();
	if (!trim_is_emulated())
		skip();
	trimming = trim_begin();
	assert_done(tensor_cuda_memory_info(0, &unused, &total));
	assert_int_equal(pthread_create(&thread, NULL, allocate_most,
					(void *)(intptr_t)(unused + 10 * MIB)),
			 0);
	nanosleep(&soon, NULL);
	trim_end(trimming);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
}

static void *leave_later(void *delay)
{
	nanosleep(delay, NULL);
	sem_post(&trim_leave);
	return NULL;
}

/* The same for one that captures, which may not trim itself. */
static void a_capture_without_memory_waits_for_a_trim(void **state)
{
	struct timespec soon = { .tv_nsec = 20000000 };
	tensor_cuda_graph *g;
	uint64_t unused, total;
	pthread_t trimming, opener;
	tensor *t;

	NEED_DEVICE();
	if (!trim_is_emulated())
		skip();
	g = tensor_cuda_graph_new(0);
	assert_non_null(g);
	trimming = trim_begin();
	assert_done(tensor_cuda_memory_info(0, &unused, &total));
	assert_done(tensor_cuda_graph_capture_begin(g, NULL));
	assert_int_equal(pthread_create(&opener, NULL, leave_later, &soon), 0);
	t = tensor_empty(TENSOR_SHAPE((int64_t)unused + 10 * MIB), BYTES(0));
	assert_int_equal(pthread_join(opener, NULL), 0);
	trim_end(trimming);
	assert_non_null(t);
	tensor_release(t);
	assert_done(tensor_cuda_graph_capture_end(g));
	assert_done(tensor_cuda_graph_release(g));
}

static void a_fork_does_not_wait_for_a_trim(void **state)
{
	pthread_t thread;
	tensor *t;
	uint64_t before;
	int status;
	pid_t pid;

	NEED_DEVICE();
	if (!trim_is_emulated())
		skip();
	t = bytes(0, 3 * MIB);
	thread = trim_begin();
	before = stats_of(0).num_device_free;
	pid = fork();
	if (!pid) {
		alarm(10);
		tensor_release(t); /* memory of the parent: a description alone is released */
		_exit(tensor_empty(TENSOR_SHAPE(1), BYTES(0)) ||
		      tensor_cuda_memory_trim(0) != -ENODEV);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(stats_of(0).num_device_free, before);
	trim_end(thread);
	tensor_release(t);
}

struct worker {
	pthread_t thread;
	unsigned seed;
};

/* Allocations of all sizes on each device, with trims between them. */
static void *churn(void *arg)
{
	struct worker *w = arg;
	tensor *kept[8] = { NULL };
	const int devices = tensor_cuda_device_count();

	for (int i = 0; i < 200; i++) {
		const unsigned r = w->seed = w->seed * 1664525 + 1013904223;
		const int at = (int)(r >> 8) % 8, device = (int)(r >> 12) % devices;

		tensor_release(kept[at]);
		kept[at] = tensor_empty(TENSOR_SHAPE((int64_t)1 << (r >> 16) % 22), BYTES(device));
		if (!kept[at])
			return "an allocation failed";
		if (r >> 24 < 20 && tensor_cuda_memory_trim(device))
			return "a trim failed";
	}
	for (int i = 0; i < 8; i++)
		tensor_release(kept[i]);
	return NULL;
}

static void threads_allocate_and_trim_together(void **state)
{
	struct tensor_cuda_stats before[2] = { 0 }, after;
	struct worker w[4];
	void *error;
	int devices;

	NEED_DEVICE();
	devices = tensor_cuda_device_count() < 2 ? 1 : 2;
	for (int d = 0; d < devices; d++) {
		assert_done(tensor_cuda_memory_trim(d));
		before[d] = stats_of(d);
	}
	for (unsigned i = 0; i < 4; i++) {
		w[i].seed = i + 1;
		assert_int_equal(pthread_create(&w[i].thread, NULL, churn, &w[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(w[i].thread, &error), 0);
		if (error)
			fail_msg("%s", (char *)error);
	}
	for (int d = 0; d < devices; d++) {
		assert_done(tensor_cuda_memory_trim(d));
		after = stats_of(d);
		assert_int_equal(after.allocated_bytes.all.current,
				 before[d].allocated_bytes.all.current);
		assert_int_equal(after.reserved_bytes.all.current,
				 before[d].reserved_bytes.all.current);
		assert_int_equal(after.segment.all.current, before[d].segment.all.current);
		assert_int_equal(after.inactive_split_bytes.all.current,
				 before[d].inactive_split_bytes.all.current);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_allocation_does_not_wait_for_a_trim),
		cmocka_unit_test(another_device_does_not_wait_for_a_trim),
		cmocka_unit_test(memory_is_reserved_until_it_is_returned),
		cmocka_unit_test(a_request_without_memory_waits_for_a_trim),
		cmocka_unit_test(a_capture_without_memory_waits_for_a_trim),
		cmocka_unit_test(a_fork_does_not_wait_for_a_trim),
		cmocka_unit_test(threads_allocate_and_trim_together),
	};

	return cmocka_run_group_tests_name("cuda_memory_threads", tests, NULL, NULL);
}
