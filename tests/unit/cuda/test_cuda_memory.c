// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Statistics of device memory. On the emulation (make test-cuda) or a GPU, else skipped. */
#include "cuda_results.h"

#define BYTES TENSOR_OPTIONS(.dtype = TENSOR_U8, .device = TENSOR_DEVICE_CUDA(0))
#define MIB   ((int64_t)1 << 20)

static struct tensor_cuda_stats now(void)
{
	struct tensor_cuda_stats s;

	assert_done(tensor_cuda_memory_stats(0, &s));
	return s;
}

static tensor *bytes(int64_t n)
{
	tensor *t = tensor_empty(TENSOR_SHAPE(n), BYTES);

	assert_non_null(t);
	return t;
}

/* No cached memory, and all sums and peaks from here on. */
static struct tensor_cuda_stats begin(void)
{
	assert_done(tensor_cuda_memory_trim(0));
	assert_done(tensor_cuda_memory_reset_peak(0));
	assert_done(tensor_cuda_memory_reset_accumulated(0));
	return now();
}

static void blocks_count_by_size_and_pool(void **state)
{
	struct tensor_cuda_stats a, b;
	tensor *small, *large;

	NEED_DEVICE();
	a = begin();
	small = bytes(100);
	large = bytes(2 * MIB + 1);
	b = now();
	assert_int_equal(b.allocation.all.current - a.allocation.all.current, 2);
	assert_int_equal(b.allocation.small_pool.current - a.allocation.small_pool.current, 1);
	assert_int_equal(b.allocation.large_pool.allocated, 1);
	assert_int_equal(b.requested_bytes.small_pool.allocated, 100);
	assert_int_equal(b.requested_bytes.all.allocated, 100 + 2 * MIB + 1);
	assert_int_equal(b.allocated_bytes.small_pool.allocated, 512);
	assert_int_equal(b.allocated_bytes.all.allocated, 512 + 2 * MIB + 512);
	assert_int_equal(b.allocated_bytes.all.freed, 0);
	assert_memory_equal(&b.active, &b.allocation, sizeof(b.active));
	assert_memory_equal(&b.active_bytes, &b.allocated_bytes, sizeof(b.active_bytes));
	tensor_release(large);
	tensor_release(small);
	b = now();
	assert_int_equal(b.allocation.all.current, a.allocation.all.current);
	assert_int_equal(b.allocation.all.freed, 2);
	assert_int_equal(b.requested_bytes.all.current, a.requested_bytes.all.current);
	assert_int_equal(b.requested_bytes.all.freed, 100 + 2 * MIB + 1);
	assert_int_equal(b.allocated_bytes.large_pool.freed, 2 * MIB + 512);
	assert_int_equal(b.allocated_bytes.all.peak - a.allocated_bytes.all.peak,
			 512 + 2 * MIB + 512);
}

static void segments_count_until_the_trim(void **state)
{
	struct tensor_cuda_stats a, b;

	NEED_DEVICE();
	a = begin();
	tensor_release(bytes(2 * MIB));
	b = now();
	assert_int_equal(b.segment.large_pool.current - a.segment.large_pool.current, 1);
	assert_int_equal(b.reserved_bytes.large_pool.allocated, 20 * MIB);
	assert_int_equal(b.reserved_bytes.small_pool.allocated, 0);
	assert_int_equal(b.num_device_alloc, 1);
	assert_int_equal(b.num_device_free, 0);
	assert_done(tensor_cuda_memory_trim(0));
	b = now();
	assert_int_equal(b.segment.all.current, a.segment.all.current);
	assert_int_equal(b.reserved_bytes.all.current, a.reserved_bytes.all.current);
	assert_int_equal(b.reserved_bytes.all.freed, 20 * MIB);
	assert_int_equal(b.reserved_bytes.all.peak - a.reserved_bytes.all.current, 20 * MIB);
	assert_int_equal(b.num_device_free, 1);
}

/* A free part of a segment counts as split while another part of it is in use. */
static void free_parts_of_used_segments_are_split(void **state)
{
	struct tensor_cuda_stats a, b;
	tensor *t[3];

	NEED_DEVICE();
	a = begin();
	for (int i = 0; i < 3; i++)
		t[i] = bytes(4 * MIB);
	b = now();
	assert_int_equal(b.inactive_split.all.current - a.inactive_split.all.current, 1);
	assert_int_equal(b.inactive_split_bytes.all.current - a.inactive_split_bytes.all.current,
			 8 * MIB);
	tensor_release(t[0]);
	b = now();
	assert_int_equal(b.inactive_split.large_pool.current - a.inactive_split.large_pool.current,
			 2);
	assert_int_equal(b.inactive_split_bytes.all.current - a.inactive_split_bytes.all.current,
			 12 * MIB);
	tensor_release(t[1]); /* joins both neighbours but t[2] */
	b = now();
	assert_int_equal(b.inactive_split.all.current - a.inactive_split.all.current, 2);
	assert_int_equal(b.inactive_split_bytes.all.current - a.inactive_split_bytes.all.current,
			 16 * MIB);
	tensor_release(t[2]);
	b = now();
	assert_int_equal(b.inactive_split.all.current, a.inactive_split.all.current);
	assert_int_equal(b.inactive_split_bytes.all.current, a.inactive_split_bytes.all.current);
	assert_int_equal(b.inactive_split_bytes.all.allocated, b.inactive_split_bytes.all.freed);
}

static void peaks_and_sums_are_reset_separately(void **state)
{
	struct tensor_cuda_usage usage;
	struct tensor_cuda_stats a, b;
	tensor *t;

	NEED_DEVICE();
	a = begin();
	tensor_release(bytes(8 * MIB));
	t = bytes(2 * MIB);
	assert_done(tensor_cuda_memory_reset_peak(0));
	b = now();
	assert_int_equal(b.allocated_bytes.all.peak - a.allocated_bytes.all.current, 2 * MIB);
	assert_int_equal(b.allocated_bytes.large_pool.peak, b.allocated_bytes.large_pool.current);
	assert_int_equal(b.allocated_bytes.all.allocated, 10 * MIB);
	assert_done(tensor_cuda_memory(0, &usage));
	assert_int_equal(usage.allocated_peak, b.allocated_bytes.all.peak);
	assert_int_equal(usage.allocations, 2);
	tensor_release(t);
	assert_done(tensor_cuda_memory_reset_accumulated(0));
	b = now();
	assert_int_equal(b.allocation.all.allocated, 0);
	assert_int_equal(b.allocated_bytes.all.freed, 0);
	assert_int_equal(b.num_device_alloc, 0);
	assert_int_equal(b.allocated_bytes.all.peak - a.allocated_bytes.all.current, 2 * MIB);
	assert_int_equal(b.allocated_bytes.all.current, a.allocated_bytes.all.current);
}

static void failures_count_as_retry_and_out_of_memory(void **state)
{
	struct tensor_cuda_stats b;
	uint64_t unused, total;

	NEED_DEVICE();
	assert_done(tensor_cuda_memory_info(0, &unused, &total));
	begin();
	assert_null(tensor_empty(TENSOR_SHAPE((int64_t)total + MIB), BYTES));
	assert_int_equal(tensor_last_error()->code, ENOMEM);
	b = now();
	assert_int_equal(b.num_alloc_retries, 1);
	assert_int_equal(b.num_ooms, 1);
	/* A request that no device can have fails before it reaches the driver. */
	assert_null(tensor_empty(TENSOR_SHAPE((int64_t)1 << 50), BYTES));
	b = now();
	assert_int_equal(b.num_alloc_retries, 1);
	assert_int_equal(b.num_ooms, 2);
	assert_int_equal(b.allocation.all.allocated, 0);
}

static void wrong_arguments_are_refused(void **state)
{
	struct tensor_cuda_stats s;

	assert_fails(tensor_cuda_memory_stats(0, NULL), EINVAL, "stats is NULL");
	NEED_DEVICE();
	assert_fails(tensor_cuda_memory_stats(100, &s), ENODEV, "cuda:100");
	assert_fails(tensor_cuda_memory_reset_peak(-1), ENODEV, "cuda:-1");
	assert_fails(tensor_cuda_memory_reset_accumulated(100), ENODEV, "cuda:100");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_count_by_size_and_pool),
		cmocka_unit_test(segments_count_until_the_trim),
		cmocka_unit_test(free_parts_of_used_segments_are_split),
		cmocka_unit_test(peaks_and_sums_are_reset_separately),
		cmocka_unit_test(failures_count_as_retry_and_out_of_memory),
		cmocka_unit_test(wrong_arguments_are_refused),
	};

	return cmocka_run_group_tests_name("cuda_memory", tests, NULL, NULL);
}
