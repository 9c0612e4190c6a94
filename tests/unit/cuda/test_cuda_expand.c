// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Expandable segments (TENSOR_CUDA_SEGMENTS=expandable). On the emulation (make test-cuda) or a GPU, else skipped; what counts
 * the memory of the device needs the emulation. The variable is read once, so that other settings are for other processes.
 */
#include "cuda_results.h"
#include "cuda_trim.h"
#include "peer.h"

#include <sys/resource.h>
#include <tensor/dlpack.h>

#define BYTES	TENSOR_OPTIONS(.dtype = TENSOR_U8, .device = TENSOR_DEVICE_CUDA(0))
#define MIB	((int64_t)1 << 20)
#define GRANULE (20 * MIB)

static __typeof__(&cuda_host_fail) inject;

static bool emulated(void)
{
	inject = emulation("cuda_host_fail");
	return inject;
}

static struct tensor_cuda_stats now(void)
{
	struct tensor_cuda_stats s;

	assert_done(tensor_cuda_memory_stats(0, &s));
	return s;
}

static uint64_t unused_memory(void)
{
	uint64_t unused, total;

	assert_done(tensor_cuda_memory_info(0, &unused, &total));
	return unused;
}

/* All memory is returned, but for the live tensors of the caller. */
static struct tensor_cuda_stats begin(void)
{
	assert_done(tensor_cuda_synchronize(0));
	assert_done(tensor_cuda_memory_trim(0));
	assert_done(tensor_cuda_memory_reset_peak(0));
	assert_done(tensor_cuda_memory_reset_accumulated(0));
	return now();
}

/* The first and the last bytes, which the tests write and read: the emulation is slow with all. */
static tensor *end_of(tensor *t, bool last)
{
	const int64_t n = tensor_numel(t), part = n < 64 ? n : 64;

	return ok(tensor_slice(t, 0, last ? n - part : 0, last ? n : part, 1));
}

/* n bytes, owned by the caller. */
static tensor *bytes(int64_t n, int value)
{
	tensor *t;

	tensor_scope {
		t = tensor_retain(ok(tensor_empty(TENSOR_SHAPE(n), BYTES)));
		for (int last = 0; last < 2; last++)
			ok(tensor_fill_(end_of(t, last), TENSOR_SCALAR((double)value)));
	}
	return t;
}

static void assert_bytes(tensor *t, int value)
{
	tensor_scope {
		double least, most;

		for (int last = 0; last < 2; last++) {
			assert_done(tensor_item(ok(tensor_min(end_of(t, last))), &least));
			assert_done(tensor_item(ok(tensor_max(end_of(t, last))), &most));
			assert_true(least == value && most == value);
		}
	}
}

/* ---- another process ---- */

/* Sizes that rise by a little in each step. 0: no more memory is reserved than one granule above what was in use. */
static int growth(tensor_channel *ch)
{
	struct tensor_cuda_stats s;

	for (int i = 0; i < 5; i++) {
		tensor *a = bytes(21 * MIB + i * MIB, i), *b = bytes(3 * MIB + i * MIB / 4, i);

		tensor_release(a);
		tensor_release(b);
	}
	if (tensor_cuda_memory_stats(0, &s) < 0)
		return 2;
	if (s.num_alloc_retries)
		return 3;
	return s.reserved_bytes.large_pool.current >
	       s.allocated_bytes.large_pool.peak + (uint64_t)GRANULE;
}

/* A kernel reads memory that was returned. Ends the process. */
static int stray(tensor_channel *ch)
{
	int64_t sizes[] = { 64 };
	struct DLManagedTensorVersioned m = { .version = { 1, 0 } };
	struct rlimit none = { 0 };
	tensor *t;
	double sum;

	setrlimit(RLIMIT_CORE, &none);
	freopen("/dev/null", "w", stderr); /* the report that the test is about */
	tensor_scope {
		tensor *gone = bytes(2 * GRANULE, 1);

		m.dl_tensor = (DLTensor){ .data = (char *)tensor_device_data(gone) + GRANULE,
					  .device = { kDLCUDA, 0 },
					  .ndim = 1,
					  .dtype = { kDLFloat, 32, 1 },
					  .shape = sizes };
		tensor_release(gone);
		if (tensor_cuda_memory_trim(0) < 0)
			return 10;
		t = tensor_from_dlpack(&m);
		if (!t)
			return 11;
		if (tensor_item(ok(tensor_sum(t)), &sum) < 0)
			return 12;
	}
	return 0;
}

/* Without virtual memory management there are segments. */
static int segments(tensor_channel *ch)
{
	tensor *t = bytes(2 * MIB, 7);
	struct tensor_cuda_stats s;

	assert_bytes(t, 7);
	tensor_release(t);
	if (tensor_cuda_memory_stats(0, &s) < 0 || s.num_device_alloc < 1)
		return 1;
	return s.segment.large_pool.current != 1 ||
	       s.reserved_bytes.large_pool.current != (uint64_t)GRANULE;
}

static const struct peer_role roles[] = {
	{ "growth", growth },
	{ "stray", stray },
	{ "segments", segments },
	{ NULL, NULL },
};

static int status_of(const char *role, const char *variable, const char *value)
{
	char *before = getenv(variable) ? strdup(getenv(variable)) : NULL;
	struct peer p;

	setenv(variable, value, 1);
	p = peer_start(role, SOCK_STREAM);
	if (before)
		setenv(variable, before, 1);
	else
		unsetenv(variable);
	free(before);
	return peer_end(&p);
}

/* ---- tests ---- */

static void sizes_that_rise_extend_the_memory(void **state)
{
	NEED_DEVICE();
	if (!long_cases())
		skip();
	assert_int_equal(status_of("growth", "TENSOR_CUDA_SEGMENTS", "expandable"), 0);
	assert_int_equal(status_of("growth", "TENSOR_CUDA_SEGMENTS", ""), 1);
}

static void memory_without_tensors_is_returned(void **state)
{
	struct tensor_cuda_stats a, b;
	uint64_t unused;
	tensor *t[3];

	NEED_DEVICE();
	a = begin();
	unused = unused_memory();
	t[0] = bytes(18 * MIB, 1);
	t[1] = bytes(3 * MIB, 2);
	t[2] = bytes(38 * MIB, 3);
	b = now();
	assert_int_equal(b.segment.large_pool.current, a.segment.large_pool.current + 1);
	assert_int_equal(b.reserved_bytes.large_pool.allocated, 3 * GRANULE);
	assert_int_equal(b.num_device_alloc, 3 + (b.reserved_bytes.small_pool.allocated != 0));
	tensor_release(t[0]);
	tensor_release(t[2]);
	assert_done(tensor_cuda_memory_trim(0));
	/* t[1] is in two granules, and keeps them. */
	b = now();
	assert_int_equal(b.reserved_bytes.large_pool.current - a.reserved_bytes.large_pool.current,
			 2 * GRANULE);
	assert_int_equal(b.inactive_split_bytes.large_pool.current -
				 a.inactive_split_bytes.large_pool.current,
			 2 * GRANULE - 3 * MIB);
	t[0] = bytes(18 * MIB, 4);
	t[2] = bytes(50 * MIB, 5);
	assert_int_equal(now().reserved_bytes.large_pool.current -
				 a.reserved_bytes.large_pool.current,
			 4 * GRANULE);
	for (int i = 0; i < 3; i++)
		assert_bytes(t[i], i ? i == 1 ? 2 : 5 : 4);
	for (int i = 0; i < 3; i++)
		tensor_release(t[i]);
	b = begin();
	assert_int_equal(b.reserved_bytes.all.current, a.reserved_bytes.all.current);
	assert_int_equal(b.segment.all.current, a.segment.all.current);
	assert_int_equal(b.inactive_split.all.current, a.inactive_split.all.current);
	if (emulated())
		assert_int_equal(unused_memory(), unused);
}

static void small_requests_have_small_granules(void **state)
{
	struct tensor_cuda_stats a, b;
	tensor *t[120];

	NEED_DEVICE();
	if (!long_cases())
		skip();
	a = begin();
	for (int i = 0; i < 120; i++)
		t[i] = bytes(20000, i);
	b = now();
	assert_int_equal(b.reserved_bytes.small_pool.current - a.reserved_bytes.small_pool.current,
			 4 * MIB);
	for (int i = 0; i < 120; i += 30)
		assert_bytes(t[i], i);
	for (int i = 0; i < 120; i++)
		tensor_release(t[i]);
	assert_int_equal(begin().reserved_bytes.all.current, a.reserved_bytes.all.current);
}

/* Half of the memory is free, but nowhere as much as is wanted; or is in the cache of another stream. */
static void holes_serve_large_requests(void **state)
{
	enum { PARTS = 7 };
	tensor *t[PARTS], *large;
	void *side;

	NEED_DEVICE();
	if (!emulated())
		skip();
	begin();
	for (int i = 0; i < PARTS; i++)
		t[i] = bytes(GRANULE, i);
	for (int i = 0; i < PARTS; i += 2)
		tensor_release(t[i]);
	large = bytes(70 * MIB, 99);
	assert_int_equal(now().num_alloc_retries, 1);
	for (int i = 1; i < PARTS; i += 2)
		assert_bytes(t[i], i);
	assert_bytes(large, 99);
	tensor_release(large);
	for (int i = 1; i < PARTS; i += 2)
		tensor_release(t[i]);

	side = tensor_cuda_stream(0, 0);
	assert_non_null(side);
	large = bytes(120 * MIB, 1);
	tensor_release(large);
	assert_done(tensor_cuda_set_stream(0, side));
	large = bytes(120 * MIB, 2);
	assert_bytes(large, 2);
	tensor_release(large);
	assert_null(tensor_empty(TENSOR_SHAPE(180 * MIB), BYTES));
	assert_int_equal(tensor_last_error()->code, ENOMEM);
	assert_done(tensor_cuda_set_stream(0, NULL));
	assert_int_equal(begin().reserved_bytes.all.current, 0);
}

static void returned_memory_cannot_be_read(void **state)
{
	int status;

	NEED_DEVICE();
	if (!emulated())
		skip();
#ifdef __SANITIZE_THREAD__
	skip(); /* the emulation knows no forbidden bytes then */
#endif
	status = status_of("stray", "TENSOR_CUDA_SEGMENTS", "expandable");
	assert_true(status && status != 10 && status != 11 && status != 12);
}

static void devices_without_it_have_segments(void **state)
{
	NEED_DEVICE();
	if (!emulated())
		skip();
	assert_int_equal(status_of("segments", "CUDA_HOST_NO_VMM", "1"), 0);
}

/* The pool of a graph has ranges of its own, which its end frees. */
static void graphs_have_ranges_of_their_own(void **state)
{
	tensor_cuda_graph *g;
	struct tensor_cuda_stats a;

	NEED_DEVICE();
	a = begin();
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(MIB / 4 + 1), CUDA)), *y;

		g = tensor_cuda_graph_new(0);
		assert_non_null(g);
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		y = ok(tensor_add(ok(tensor_mul(x, x)), x));
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_int_equal(now().segment.large_pool.current,
				 a.segment.large_pool.current + 2);
		ok(tensor_fill_(x, TENSOR_SCALAR(3.0)));
		assert_done(tensor_cuda_memory_trim(0)); /* not the graph's */
		assert_done(tensor_cuda_graph_replay(g));
		assert_done(tensor_cuda_graph_wait(g));
		assert_values(tensor_to(ok(tensor_slice(y, 0, 0, 2, 1)), CPU), 0, 12, 12);
	}
	assert_done(tensor_cuda_graph_release(g));
	assert_int_equal(begin().reserved_bytes.all.current, a.reserved_bytes.all.current);
}

static void sent_memory_leaves_the_range(void **state)
{
	struct tensor_cuda_stats a;
	struct pair e;

	NEED_DEVICE();
	a = begin();
	e = pair_open(SOCK_STREAM);
	tensor_scope {
		tensor *t = bytes(4 * MIB, 6);

		assert_done(tensor_send(e.out, t, 0));
		assert_int_equal(begin().reserved_bytes.large_pool.current,
				 a.reserved_bytes.large_pool.current);
		assert_bytes(ok(tensor_recv(e.in)), 6);
		tensor_release(t);
	}
	pair_close(&e);
	assert_int_equal(begin().reserved_bytes.all.current, a.reserved_bytes.all.current);
}

/* A call that fails leaves the ranges as they were; without a range, memory is in segments. */
static void failing_calls_lose_nothing(void **state)
{
	static const char *const calls[] = { "cuMemCreate", "cuMemMap", "cuMemSetAccess" };
	struct tensor_cuda_stats a;
	uint64_t unused;
	tensor *t;

	NEED_DEVICE();
	if (!emulated() || !long_cases())
		skip();
	a = begin();
	unused = unused_memory();
	for (int held = 0; held < 2; held++) {
		tensor *beside = held ? bytes(3 * MIB, 8) : NULL;

		for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
			for (unsigned long nth = 1; nth <= 2u - held; nth++) {
				inject(calls[i], nth, 719);
				tensor_clear_error();
				t = tensor_empty(TENSOR_SHAPE(25 * MIB), BYTES);
				assert_true(!t == (i < 2 || nth == 1));
				if (!t)
					assert_int_equal(tensor_last_error()->code, EIO);
				tensor_release(t);
				inject(NULL, 0, 0);
				assert_done(tensor_cuda_memory_trim(0));
			}
		}
		inject("cuMemCreate", 2, 2);
		t = bytes(25 * MIB, 9);
		inject(NULL, 0, 0);
		assert_bytes(t, 9);
		tensor_release(t);
		if (held)
			assert_bytes(beside, 8);
		tensor_release(beside);
		assert_int_equal(begin().reserved_bytes.all.current, a.reserved_bytes.all.current);
		assert_int_equal(unused_memory(), unused);
	}
	for (int i = 0; i < 2; i++) {
		inject(i ? "cuMemAddressReserve" : "cuMemGetAllocationGranularity", 1, 2);
		t = tensor_empty(TENSOR_SHAPE(2 * MIB), BYTES);
		assert_non_null(t);
		inject(NULL, 0, 0);
		assert_done(tensor_cuda_memory_trim(0));
		tensor_release(t);
		assert_int_equal(begin().reserved_bytes.all.current, a.reserved_bytes.all.current);
	}
	assert_int_equal(unused_memory(), unused);
}

/* Requests and releases in any order, in two streams, with trims in between. */
static void any_order_keeps_what_tensors_have(void **state)
{
	enum { SLOTS = 24 };
	tensor *t[SLOTS] = { 0 };
	int value[SLOTS];
	uint32_t random = 12345;
	struct tensor_cuda_stats a, b;
	void *streams[2] = { 0 };

	NEED_DEVICE();
	a = begin();
	streams[1] = tensor_cuda_stream(0, 0);
	for (int i = 0; i < 160; i++) {
		unsigned slot, size;

		random = random * 1664525 + 1013904223;
		slot = random >> 8 & 31;
		size = random >> 16 & 0xfff;
		if (slot >= SLOTS) {
			/* The other stream reads what this one writes. */
			assert_done(tensor_cuda_synchronize(0));
			assert_done(slot == 31 ? tensor_cuda_memory_trim(0) :
						 tensor_cuda_set_stream(0, streams[slot & 1]));
			continue;
		}
		if (t[slot]) {
			if (i % 4 == 0)
				assert_bytes(t[slot], value[slot]);
			tensor_release(t[slot]);
			t[slot] = NULL;
			continue;
		}
		value[slot] = i % 251;
		t[slot] = bytes(size % 3 ? 1 + size : (int64_t)size * 1000 + 1, value[slot]);
		b = now();
		assert_true(b.reserved_bytes.all.current >= b.allocated_bytes.all.current);
		/* What is reserved and not allocated is free. */
		assert_true(b.inactive_split_bytes.all.current <=
			    b.reserved_bytes.all.current - b.allocated_bytes.all.current);
	}
	assert_done(tensor_cuda_set_stream(0, NULL));
	for (int i = 0; i < SLOTS; i++) {
		if (t[i])
			assert_bytes(t[i], value[i]);
		tensor_release(t[i]);
	}
	b = begin();
	assert_int_equal(b.reserved_bytes.all.current, a.reserved_bytes.all.current);
	assert_int_equal(b.segment.all.current, a.segment.all.current);
	assert_int_equal(b.inactive_split_bytes.all.current, a.inactive_split_bytes.all.current);
}

/* Granules that are being returned are neither free nor gaps: what lies beside them is allocated, extended and freed. */
static void a_range_is_used_while_a_part_of_it_is_returned(void **state)
{
	struct tensor_cuda_stats a, b;
	pthread_t thread;
	tensor *kept, *t, *u;

	NEED_DEVICE();
	if (!trim_is_emulated())
		skip();
	kept = bytes(30 * MIB, 1);
	begin();
	thread = trim_begin();
	a = now();
	assert_int_equal(a.num_device_free, 0);
	t = bytes(9 * MIB, 2);	/* beside `kept` */
	u = bytes(35 * MIB, 3); /* after the granules */
	assert_bytes(kept, 1);
	tensor_release(t);
	tensor_release(kept);
	assert_bytes(u, 3);
	trim_end(thread);
	b = now();
	assert_true(b.num_device_free > 0);
	assert_int_equal(a.reserved_bytes.all.current % GRANULE, 0);
	tensor_release(u);
	b = begin();
	t = bytes(90 * MIB, 4); /* of all of it */
	assert_bytes(t, 4);
	tensor_release(t);
	a = begin();
	assert_int_equal(a.reserved_bytes.all.current, b.reserved_bytes.all.current);
	assert_int_equal(a.inactive_split_bytes.all.current, b.inactive_split_bytes.all.current);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_that_rise_extend_the_memory),
		cmocka_unit_test(a_range_is_used_while_a_part_of_it_is_returned),
		cmocka_unit_test(memory_without_tensors_is_returned),
		cmocka_unit_test(small_requests_have_small_granules),
		cmocka_unit_test(holes_serve_large_requests),
		cmocka_unit_test(returned_memory_cannot_be_read),
		cmocka_unit_test(devices_without_it_have_segments),
		cmocka_unit_test(graphs_have_ranges_of_their_own),
		cmocka_unit_test(sent_memory_leaves_the_range),
		cmocka_unit_test(failing_calls_lose_nothing),
		cmocka_unit_test(any_order_keeps_what_tensors_have),
	};

	setenv("CUDA_HOST_MEMORY", "167772160", 1);
	setenv("TENSOR_CUDA_SEGMENTS", "expandable", 0);
	peer_main(argc, argv, roles);
	return cmocka_run_group_tests_name("cuda_expand", tests, NULL, NULL);
}
