// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The emulation reports defects: each test runs a small kernel or a few calls with one defect in a
 * child, and where it is possible the same without it.
 */
#include "self.hpp"

/* ---- kernels ---- */

__global__ void store_kernel(int *p, int value)
{
	p[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void read_kernel(int *out, hidden<const int> from, int at)
{
	out[0] = from.p[at];
}

__global__ void write_kernel(hidden<int> to, int at)
{
	to.p[at] = 1;
}

__global__ void diverging_kernel(int *p, unsigned waiting)
{
	if (threadIdx.x < waiting)
		__syncthreads();
	p[threadIdx.x] = 1;
}

__global__ void diverging_warp_kernel(int *p, unsigned waiting)
{
	if (threadIdx.x < waiting)
		__syncwarp();
	else
		__syncthreads();
	p[threadIdx.x] = 1;
}

/* Each thread writes an element of shared memory and reads the one of its neighbour. */
__global__ void neighbours_kernel(int *p, bool with_barrier)
{
	__shared__ int s[64];

	s[threadIdx.x] = (int)threadIdx.x;
	if (with_barrier)
		__syncthreads();
	p[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x ^ 1];
}

/* Reads before the other threads have read, without the second barrier. */
__global__ void reused_kernel(int *p, bool with_barrier)
{
	__shared__ int s[64];

	for (int round = 0; round < 2; round++) {
		s[threadIdx.x] = round;
		__syncthreads();
		p[threadIdx.x] += s[63 - threadIdx.x];
		if (with_barrier)
			__syncthreads();
	}
}

__global__ void lanes_kernel(int *p, bool with_barrier)
{
	__shared__ int s[32];

	s[threadIdx.x] = 1;
	if (with_barrier)
		__syncwarp();
	p[threadIdx.x] = s[31 - threadIdx.x];
}

__global__ void count_kernel(int *p, bool atomic)
{
	if (atomic)
		atomicAdd(p, 1);
	else
		*p += 1;
}

__global__ void offset_kernel(int *p, int64_t stride)
{
	cuda_host_offset at = 0;

	at += (cuda_host_offset)threadIdx.x * (cuda_host_offset)stride;
	p[at + (cuda_host_offset)1] = 1;
}

static void synchronize(void)
{
	done(cudaDeviceSynchronize());
}

/* ---- memory ---- */

static void host_accesses_of_device_memory_are_reported(void **)
{
	assert_reported(
		[] {
			volatile int *p = device_array<int>(4);

			p[1] = 2;
		},
		"the host accessed device memory");
}

static void host_pointers_as_arguments_are_reported(void **)
{
	assert_reported(
		[] {
			static int host[4];

			launch(store_kernel, 1, 4, nullptr, host, 1);
			synchronize();
		},
		"is host memory");
}

static void kernel_accesses_of_host_memory_are_reported(void **)
{
	if (!CHECKED_BY_ITSELF)
		skip();
	assert_reported(
		[] {
			static int host[4];

			launch(read_kernel, 1, 1, nullptr, device_array<int>(1),
			       hidden<const int>{ host }, 1);
			synchronize();
		},
		"host memory, in block (0,0,0) thread (0,0,0) of kernel read_kernel");
}

static void memory_of_another_device_is_reported(void **)
{
	assert_reported(
		[] {
			int *p = device_array<int>(4);

			done(cudaSetDevice(1));
			launch(store_kernel, 1, 4, nullptr, p, 1);
			synchronize();
		},
		"on cuda:1 is memory of cuda:0");
	assert_reported(
		[] {
			int *p = device_array<int>(4);

			done(cudaSetDevice(1));
			launch(write_kernel, 1, 1, nullptr, hidden<int>{ p }, 1);
			synchronize();
		},
		"cuda:0");
}

static void accesses_outside_of_an_allocation_are_reported(void **)
{
	if (CHECKED_BY_TSAN)
		skip();
	assert_reported(
		[] {
			launch(write_kernel, 1, 1, nullptr, hidden<int>{ device_array<int>(5) }, 5);
			synchronize();
		},
		CHECKED_BY_ASAN ? "use-after-poison" : "0 bytes past an allocation of 20 bytes");
	assert_reported(
		[] {
			launch(read_kernel, 1, 1, nullptr, device_array<int>(1),
			       hidden<const int>{ device_array<int>(5) }, -1);
			synchronize();
		},
		CHECKED_BY_ASAN ? "use-after-poison" : "a kernel reads");
	assert_clean([] {
		launch(write_kernel, 1, 1, nullptr, hidden<int>{ device_array<int>(5) }, 4);
		synchronize();
	});
}

static void copies_outside_of_an_allocation_are_reported(void **)
{
	if (CHECKED_BY_TSAN)
		skip();
	assert_reported(
		[] {
			int host[6] = {};

			cudaMemcpy(device_array<int>(5), host, sizeof(host),
				   cudaMemcpyHostToDevice);
		},
		"cudaMemcpyAsync writes");
	assert_reported(
		[] {
			cudaMemset(device_array<char>(5), 0, 6);
			synchronize();
		},
		"cudaMemsetAsync writes");
}

static void accesses_of_freed_memory_are_reported(void **)
{
	if (CHECKED_BY_TSAN)
		skip();
	assert_reported(
		[] {
			int *p = device_array<int>(5);

			done(cudaFree(p));
			launch(write_kernel, 1, 1, nullptr, hidden<int>{ p }, 1);
			synchronize();
		},
		CHECKED_BY_ASAN ? "use-after-poison" : "freed");
}

/* The plugin keeps memory that it does not use; the hooks of its allocator say which. */
static void use_block(bool before, bool after, bool other_stream)
{
	int *p = device_array<int>(1024);
	cudaStream_t s = nullptr;

	cuda_host_set_streams(CUDA_HOST_LAZY, 0);
	if (other_stream)
		done(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	cuda_host_block_free(0, p, 4096, nullptr);
	synchronize();
	cuda_host_block_used(0, p, 100, 512, nullptr);
	launch(write_kernel, 1, 1, s, hidden<int>{ p }, before ? 25 : 24);
	if (other_stream)
		done(cudaStreamSynchronize(s));
	cuda_host_block_free(0, p, 512, nullptr);
	if (after)
		launch(write_kernel, 1, 1, nullptr, hidden<int>{ p }, 24);
	synchronize();
}

static void accesses_of_a_released_block_are_reported(void **)
{
	const char *words = CHECKED_BY_ASAN ? "use-after-poison" : "byte 96 of an allocation";

	if (CHECKED_BY_TSAN)
		skip();
	assert_clean([] { use_block(false, false, false); });
	assert_reported([] { use_block(false, true, false); }, words);
	assert_reported([] { use_block(true, false, false); },
			CHECKED_BY_ASAN ? "use-after-poison" : "byte 100 of an allocation");
}

/* The kernel runs in a stream that does not wait for the allocation. */
static void blocks_in_another_stream_without_order_are_reported(void **)
{
	if (CHECKED_BY_TSAN) {
		assert_reported([] { use_block(false, false, true); }, "data race");
		return;
	}
	assert_clean([] { use_block(false, false, false); });
	assert_reported([] { use_block(false, false, true); },
			CHECKED_BY_ASAN ? "use-after-poison" : "byte 96 of an allocation");
}

static void unaligned_accesses_are_reported(void **)
{
	if (!CHECKED_BY_ASAN)
		skip(); /* that build has UBSan, too */
	assert_reported(
		[] {
			char *p = device_array<char>(16);

			launch(write_kernel, 1, 1, nullptr, hidden<int>{ (int *)(p + 2) }, 1);
			synchronize();
		},
		"misaligned");
}

static void narrow_offsets_above_the_limit_are_reported(void **)
{
	assert_clean([] {
		launch(offset_kernel, 1, 4, nullptr, device_array<int>(8), 2);
		synchronize();
	});
	assert_reported(
		[] {
			launch(offset_kernel, 1, 2, nullptr, device_array<int>(8), INT32_MAX);
			synchronize();
		},
		"an offset of 32 bits is 2147483648, above the limit 2147483647");
}

/* ---- barriers ---- */

static void barriers_of_a_part_of_a_block_are_reported(void **)
{
	assert_reported(
		[] {
			launch(diverging_kernel, 1, 64, nullptr, device_array<int>(64), 63);
			synchronize();
		},
		"63 wait in __syncthreads(), 1 have returned, in block 0 of kernel diverging_kernel");
	assert_clean([] {
		launch(diverging_kernel, 2, 64, nullptr, device_array<int>(64), 64);
		synchronize();
	});
}

static void barriers_of_a_part_of_a_warp_are_reported(void **)
{
	assert_reported(
		[] {
			launch(diverging_warp_kernel, 1, 64, nullptr, device_array<int>(64), 16);
			synchronize();
		},
		"threads of a warp diverge");
	assert_clean([] {
		launch(diverging_warp_kernel, 1, 64, nullptr, device_array<int>(64), 64);
		synchronize();
	});
}

/* ---- races ---- */

static void missing_barriers_are_reported(void **)
{
	if (!CHECKED_BY_TSAN)
		skip();
	assert_reported(
		[] {
			launch(neighbours_kernel, 1, 64, nullptr, device_array<int>(64), false);
			synchronize();
		},
		"data race");
	assert_clean([] {
		launch(neighbours_kernel, 9, 64, nullptr, device_array<int>(9 * 64), true);
		synchronize();
	});
	assert_reported(
		[] {
			launch(reused_kernel, 1, 64, nullptr, device_array<int>(64), false);
			synchronize();
		},
		"data race");
	assert_clean([] {
		launch(reused_kernel, 1, 64, nullptr, device_array<int>(64), true);
		synchronize();
	});
}

static void missing_barriers_of_a_warp_are_reported(void **)
{
	if (!CHECKED_BY_TSAN)
		skip();
	assert_reported(
		[] {
			launch(lanes_kernel, 1, 32, nullptr, device_array<int>(32), false);
			synchronize();
		},
		"data race");
	assert_clean([] {
		launch(lanes_kernel, 1, 32, nullptr, device_array<int>(32), true);
		synchronize();
	});
}

static void races_of_threads_are_reported(void **)
{
	if (!CHECKED_BY_TSAN)
		skip();
	assert_reported(
		[] {
			launch(count_kernel, 1, 2, nullptr, device_array<int>(1), false);
			synchronize();
		},
		"data race");
	/* One thread in each of two blocks. */
	assert_reported(
		[] {
			launch(count_kernel, 2, 1, nullptr, device_array<int>(1), false);
			synchronize();
		},
		"data race");
	assert_clean([] {
		launch(count_kernel, 8, 64, nullptr, device_array<int>(1), true);
		synchronize();
	});
}

/* Two streams write the same memory. */
static void write_in_two_streams(bool wait, bool blocking)
{
	cudaStream_t s[2];
	cudaEvent_t event;
	int *p = device_array<int>(1);

	synchronize();
	for (int i = 0; i < 2; i++)
		done(cudaStreamCreateWithFlags(&s[i], blocking ? 0 : cudaStreamNonBlocking));
	done(cudaEventCreate(&event));
	launch(store_kernel, 1, 1, s[0], p, 1);
	done(cudaEventRecord(event, s[0]));
	if (wait)
		done(cudaStreamWaitEvent(s[1], event, 0));
	launch(store_kernel, 1, 1, blocking ? nullptr : s[1], p, 2);
	synchronize();
	if (wait || blocking)
		done(value_at(p) != 2);
}

static void races_of_streams_are_reported(void **)
{
	if (!CHECKED_BY_TSAN)
		skip();
	assert_reported([] { write_in_two_streams(false, false); }, "data race");
	assert_clean([] { write_in_two_streams(true, false); });
	/* The default stream waits for others. */
	assert_clean([] { write_in_two_streams(false, true); });
}

static void copy_then_write(bool wait)
{
	static int host[1024] __attribute__((aligned(4096)));
	int *p = device_array<int>(1024);

	done(cudaHostRegister(host, sizeof(host), 0));
	done(cudaMemcpyAsync(p, host, sizeof(host), cudaMemcpyHostToDevice, nullptr));
	if (wait)
		synchronize();
	host[3] = 1;
	synchronize();
	done(cudaHostUnregister(host));
}

static void host_memory_that_a_copy_uses_is_watched(void **)
{
	if (!CHECKED_BY_TSAN)
		skip();
	assert_reported([] { copy_then_write(false); }, "data race");
	assert_clean([] { copy_then_write(true); });
}

/* ---- handles ---- */

static void misuse_of_handles_is_reported(void **)
{
	assert_reported(
		[] {
			int *p = device_array<int>(1);

			done(cudaFree(p));
			cudaFree(p);
		},
		"freed twice");
	assert_reported(
		[] {
			cudaStream_t s;

			done(cudaStreamCreate(&s));
			done(cudaStreamDestroy(s));
			cudaStreamSynchronize(s);
		},
		"is not a stream, or was destroyed");
	assert_reported(
		[] {
			cudaEvent_t e;

			done(cudaEventCreate(&e));
			done(cudaEventDestroy(e));
			cudaEventQuery(e);
		},
		"is not an event, or was destroyed");
	assert_reported(
		[] {
			static int host[4096] __attribute__((aligned(4096)));
			int *p = device_array<int>(4096);

			cuda_host_set_streams(CUDA_HOST_LAZY, 0);
			done(cudaHostRegister(host, sizeof(host), 0));
			done(cudaMemcpyAsync(p, host, sizeof(host), cudaMemcpyHostToDevice,
					     nullptr));
			done(cudaHostUnregister(host));
			synchronize();
		},
		"uses pinned memory that was unregistered");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_accesses_of_device_memory_are_reported),
		cmocka_unit_test(host_pointers_as_arguments_are_reported),
		cmocka_unit_test(kernel_accesses_of_host_memory_are_reported),
		cmocka_unit_test(memory_of_another_device_is_reported),
		cmocka_unit_test(accesses_outside_of_an_allocation_are_reported),
		cmocka_unit_test(copies_outside_of_an_allocation_are_reported),
		cmocka_unit_test(accesses_of_freed_memory_are_reported),
		cmocka_unit_test(accesses_of_a_released_block_are_reported),
		cmocka_unit_test(blocks_in_another_stream_without_order_are_reported),
		cmocka_unit_test(unaligned_accesses_are_reported),
		cmocka_unit_test(narrow_offsets_above_the_limit_are_reported),
		cmocka_unit_test(barriers_of_a_part_of_a_block_are_reported),
		cmocka_unit_test(barriers_of_a_part_of_a_warp_are_reported),
		cmocka_unit_test(missing_barriers_are_reported),
		cmocka_unit_test(missing_barriers_of_a_warp_are_reported),
		cmocka_unit_test(races_of_threads_are_reported),
		cmocka_unit_test(races_of_streams_are_reported),
		cmocka_unit_test(host_memory_that_a_copy_uses_is_watched),
		cmocka_unit_test(misuse_of_handles_is_reported),
	};

	return cmocka_run_group_tests_name("cuda_defects", tests, NULL, NULL);
}
