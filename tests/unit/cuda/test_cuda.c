// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * CUDA: a missing device, large tensors, threads, processes and memory. The first test runs everywhere, the
 * others are skipped with a reason where there is no device.
 */
#include "cuda_results.h"

/* ---- without a device ---- */

static void missing_device_is_refused_with_a_reason(void **state)
{
	int n = tensor_cuda_is_available() ? tensor_cuda_device_count() : 0;
	tensor_device none = TENSOR_DEVICE_CUDA(n);
	tensor *t = iota(0, TENSOR_SHAPE(3));

	assert_fails(tensor_empty_on(none, TENSOR_SHAPE(2), TENSOR_F32), ENODEV, "cuda");
	assert_fails(tensor_zeros(TENSOR_SHAPE(2), TENSOR_OPTIONS(.device = none)), ENODEV, "cuda");
	assert_fails(tensor_to(t, TENSOR_OPTIONS(.device = none)), ENODEV, "cuda");
	assert_values(t, 0, 0, 1, 2);
	if (!n) {
		assert_false(tensor_cuda_is_available());
		assert_int_equal(tensor_cuda_device_count(), -ENODEV);
		assert_int_equal(tensor_cuda_synchronize(0), -ENODEV);
		assert_int_equal(tensor_cuda_set_stream(0, NULL), -ENODEV);
		assert_null(tensor_cuda_current_stream(0));
		/* The text states a reason; it never says that the plugin lacks an operator. */
		assert_true(strlen(tensor_last_error()->text) > 20);
		assert_null(strstr(tensor_last_error()->text, "another build"));
	} else {
		assert_fails(tensor_cuda_synchronize(n), ENODEV, "there is no cuda:");
	}
	tensor_release(t);
}

/* ---- large tensors ---- */

static void elements_past_2_gib_are_reached(void **state)
{
	int64_t n = (int64_t)1 << 31;
	double v;

	NEED_DEVICE();
	tensor_scope {
		/* u8, with a stride that puts the last element past 2^31 bytes. */
		tensor *g = tensor_zeros(TENSOR_SHAPE(n + 16), CUDA_OF(TENSOR_U8));
		tensor *ends;

		if (!g) {
			print_message("# skipped: %s\n", tensor_last_error()->text);
			skip();
		}
		ends = tensor_slice(g, 0, 0, n + 16, n + 8);
		ok(tensor_fill_(ends, TENSOR_SCALAR(3)));
		assert_done(tensor_item(tensor_sum(g), &v));
		assert_true(v == 6);
		assert_done(tensor_item(tensor_sum(tensor_add(ends, ends)), &v));
		assert_true(v == 12);
	}
}

/* Offsets of rows and of elements in a row are below 2^31 each, their sums are not. */
static void sums_of_offsets_past_2_gib_are_reached(void **state)
{
	int64_t half = (int64_t)3 << 29;
	double v;

	NEED_DEVICE();
	tensor_scope {
		tensor *g = tensor_zeros(TENSOR_SHAPE(2 * half + 16), CUDA_OF(TENSOR_U8)), *corners;

		if (!g) {
			print_message("# skipped: %s\n", tensor_last_error()->text);
			skip();
		}
		corners = ok(
			tensor_as_strided(g, TENSOR_SHAPE(2, 2), TENSOR_INTS(half + 8, half), 0));
		ok(tensor_fill_(corners, TENSOR_SCALAR(3)));
		assert_done(tensor_item(
			tensor_select(tensor_sum_dim(corners, TENSOR_INTS(1), false), 0, 1), &v));
		assert_true(v == 6);
		assert_done(tensor_item(tensor_sum(corners), &v));
		assert_true(v == 12);
	}
}

static void stream_belongs_to_the_thread(void **state)
{
	NEED_DEVICE();
	assert_null(tensor_cuda_current_stream(0));
	assert_done(tensor_cuda_set_stream(0, NULL));
	assert_fails(tensor_cuda_set_stream(-1, NULL), ENODEV, "cuda:-1");
	assert_fails(tensor_cuda_set_stream(127, NULL), ENODEV, "cuda:127");
}

static void forked_child_is_refused(void **state)
{
	int status;
	pid_t pid;

	NEED_DEVICE();
	tensor_scope {
		tensor *g = on_cuda(iota(0, TENSOR_SHAPE(4)));

		pid = fork();
		if (!pid) {
			bool refused = !tensor_add(g, g) && tensor_last_error()->code == ENODEV &&
				       strstr(tensor_last_error()->text, "fork") &&
				       !tensor_cuda_is_available();

			tensor_release(tensor_retain(g));
			_exit(refused ? 0 : 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_values(tensor_to(tensor_add(g, g), CPU), 0, 0, 2, 4, 6);
	}
}

static void device_memory_is_reused(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *warm = ok(tensor_zeros(TENSOR_SHAPE(1000), CUDA));
		void *first = tensor_device_data(warm), *second = NULL;
		tensor *t;

		assert_int_equal((uintptr_t)first % 256, 0);
		for (int i = 0; i < 2; i++) {
			tensor_scope {
				t = ok(tensor_zeros(TENSOR_SHAPE(1010), CUDA));
				assert_ptr_not_equal(tensor_device_data(t), first);
				if (i)
					assert_ptr_equal(tensor_device_data(t), second);
				second = tensor_device_data(t);
			}
		}
		assert_fails(tensor_empty(TENSOR_SHAPE((int64_t)1 << 50), CUDA), ENOMEM,
			     "no memory");
	}
}

static struct tensor_cuda_usage memory_now(void)
{
	struct tensor_cuda_usage m;

	assert_done(tensor_cuda_memory(0, &m));
	return m;
}

static tensor *bytes(int64_t n)
{
	return ok(tensor_empty(TENSOR_SHAPE(n), CUDA_OF(TENSOR_U8)));
}

/* Parts of a segment serve other sizes, join when they are free, and return to the driver. */
static void device_memory_is_cut_and_joined(void **state)
{
	const int64_t mib = 1 << 20;
	struct tensor_cuda_usage before, m;

	NEED_DEVICE();
	assert_done(tensor_cuda_memory_trim(0));
	tensor_scope
		bytes(100); /* there is a segment for small tensors now */
	before = memory_now();
	tensor_scope {
		tensor *t[4];
		char *first;

		for (int i = 0; i < 4; i++)
			t[i] = bytes(4 * mib);
		first = tensor_device_data(t[0]);
		m = memory_now();
		assert_int_equal(m.allocated - before.allocated, 16 * mib);
		assert_int_equal(m.segments - before.segments, 1);
		assert_ptr_equal((char *)tensor_device_data(t[1]), first + 4 * mib);
	}
	tensor_scope {
		tensor *whole = bytes(20 * mib), *small = bytes(100), *odd;

		m = memory_now();
		assert_int_equal(m.segments - before.segments, 1);
		odd = bytes(21 * mib + 1);
		assert_int_equal(memory_now().reserved - m.reserved, 22 * mib);
		assert_int_equal((uintptr_t)tensor_device_data(odd) % 512, 0);
		assert_non_null(tensor_device_data(whole));
		assert_non_null(tensor_device_data(small));
	}
	m = memory_now();
	assert_int_equal(m.allocated, before.allocated);
	assert_int_equal(m.segments - before.segments, 2);
	assert_done(tensor_cuda_memory_trim(0));
	assert_true(memory_now().reserved <= before.reserved);
	assert_int_equal(tensor_cuda_memory(0, NULL), -EINVAL);
}

/* An allocation returns cached segments of other sizes to the driver before it fails. */
static void cached_memory_does_not_cause_a_failure(void **state)
{
	struct tensor_cuda_usage before, after;
	int64_t gib = 1 << 30, most = 0;
	tensor *t[512];

	NEED_DEVICE();
	assert_done(tensor_cuda_memory_trim(0));
	before = memory_now();
	while (most < 512 && (t[most] = tensor_empty(TENSOR_SHAPE(gib), CUDA_OF(TENSOR_U8))))
		most++;
	if (most < 2 || most == 512) {
		while (most)
			tensor_release(t[--most]);
		skip();
	}
	assert_non_null(strstr(tensor_last_error()->text, "tensors of this process"));
	for (int64_t i = 0; i < most; i++)
		tensor_release(t[i]);
	/* No segment of 1 GiB can serve this one. */
	t[0] = ok(tensor_empty(TENSOR_SHAPE((most - 1) * gib), CUDA_OF(TENSOR_U8)));
	tensor_release(t[0]);
	after = memory_now();
	assert_true(after.retries > before.retries);
	assert_int_equal(after.allocated, before.allocated);
	assert_done(tensor_cuda_memory_trim(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_device_is_refused_with_a_reason),
		cmocka_unit_test(elements_past_2_gib_are_reached),
		cmocka_unit_test(sums_of_offsets_past_2_gib_are_reached),
		cmocka_unit_test(stream_belongs_to_the_thread),
		cmocka_unit_test(forked_child_is_refused),
		cmocka_unit_test(device_memory_is_reused),
		cmocka_unit_test(device_memory_is_cut_and_joined),
		cmocka_unit_test(cached_memory_does_not_cause_a_failure),
	};

	return cmocka_run_group_tests_name("cuda", tests, NULL, NULL);
}
