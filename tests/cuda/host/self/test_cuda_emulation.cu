// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The emulation behaves as CUDA's documentation says: order of work, kernels, errors, cuBLASLt. */
#include "self.hpp"

#include <cublasLt.h>

/* ---- kernels ---- */

__global__ void append_kernel(int *list, int value)
{
	list[1 + list[0]++] = value;
}

__global__ void positions_kernel(int *p)
{
	int block = (int)((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
	int thread = (int)((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
	int size = (int)(blockDim.x * blockDim.y * blockDim.z);

	p[block * size + thread] += block * size + thread + 1;
}

/* The value of shared memory before the block has written it. */
__global__ void shared_kernel(unsigned *p)
{
	__shared__ unsigned s;

	if (threadIdx.x == 0) {
		p[blockIdx.x] = s;
		s = 0;
	}
	__syncthreads();
}

__global__ void tree_kernel(int *p)
{
	__shared__ int s[256];

	s[threadIdx.x] = (int)threadIdx.x;
	__syncthreads();
	for (unsigned half = blockDim.x / 2; half; half /= 2) {
		if (threadIdx.x < half)
			s[threadIdx.x] += s[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		p[blockIdx.x] = s[0];
}

__global__ void warp_kernel(int *p)
{
	const unsigned all = 0xffffffff;
	int lane = (int)threadIdx.x % 32, sum = (int)threadIdx.x;

	for (int bits = 16; bits; bits /= 2)
		sum += __shfl_xor_sync(all, sum, bits);
	p[threadIdx.x] = sum;
	p[64 + threadIdx.x] = __shfl_down_sync(all, lane, 1);
	p[128 + threadIdx.x] = __shfl_up_sync(all, lane, 2, 8);
	p[192 + threadIdx.x] = __shfl_sync(all, lane, 3, 16);
	p[256 + threadIdx.x] = (int)__ballot_sync(all, lane & 1);
	p[320 + threadIdx.x] = __any_sync(all, lane == 5) + 2 * __all_sync(all, lane < 31);
}

static void read_all(int *host, const int *p, size_t n)
{
	done(cudaMemcpy(host, p, n * sizeof(*host), cudaMemcpyDeviceToHost));
}

/* ---- kernels ---- */

static void each_thread_runs_once(void **)
{
	int *p = device_array<int>(6 * 5 * 2 * 24), host[6 * 5 * 2 * 24];

	launch(positions_kernel, dim3(6, 5, 2), dim3(4, 3, 2), nullptr, p);
	read_all(host, p, 6 * 5 * 2 * 24);
	for (int i = 0; i < 6 * 5 * 2 * 24; i++)
		assert_int_equal(host[i], i + 1);
	done(cudaFree(p));
}

static void barriers_order_the_threads(void **)
{
	int *p = device_array<int>(3), host[3];

	for (int mode = CUDA_HOST_EAGER; mode <= CUDA_HOST_RANDOM; mode++) {
		cuda_host_set_streams((enum cuda_host_streams)mode, 7);
		launch(tree_kernel, 3, 256, nullptr, p);
		read_all(host, p, 3);
		for (int i = 0; i < 3; i++)
			assert_int_equal(host[i], 255 * 128);
	}
	done(cudaFree(p));
}

static void blocks_begin_with_garbage_in_shared_memory(void **)
{
	unsigned *p = device_array<unsigned>(4), host[4];

	launch(shared_kernel, 4, 32, nullptr, p);
	read_all((int *)host, (int *)p, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(host[i], 0xf7f7f7f7);
	done(cudaFree(p));
}

static void warps_exchange_values(void **)
{
	int *p = device_array<int>(384), host[384];

	launch(warp_kernel, 1, 64, nullptr, p);
	read_all(host, p, 384);
	for (int i = 0; i < 64; i++) {
		int lane = i % 32;

		assert_int_equal(host[i], i < 32 ? 31 * 16 : 31 * 16 + 32 * 32);
		assert_int_equal(host[64 + i], lane < 31 ? lane + 1 : 31);
		assert_int_equal(host[128 + i], lane % 8 < 2 ? lane : lane - 2);
		assert_int_equal(host[192 + i], lane / 16 * 16 + 3);
		assert_int_equal((unsigned)host[256 + i], 0xaaaaaaaa);
		assert_int_equal(host[320 + i], 1);
	}
	done(cudaFree(p));
}

static void launches_outside_of_the_limits_fail(void **)
{
	int *p = device_array<int>(1);
	cudaStream_t other;

	assert_int_equal(launch(append_kernel, 0, 1, nullptr, p, 1), cudaErrorInvalidConfiguration);
	assert_int_equal(launch(append_kernel, 1, 1025, nullptr, p, 1),
			 cudaErrorInvalidConfiguration);
	assert_int_equal(launch(append_kernel, dim3(1, 65536), 1, nullptr, p, 1),
			 cudaErrorInvalidConfiguration);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
	done(cudaSetDevice(1));
	done(cudaStreamCreate(&other));
	done(cudaSetDevice(0));
	assert_int_equal(launch(append_kernel, 1, 1, other, p, 1), cudaErrorInvalidResourceHandle);
	done(cudaStreamDestroy(other));
	done(cudaFree(p));
}

/* ---- order ---- */

static unsigned long pending(void)
{
	struct cuda_host_counts n;

	cuda_host_counts(&n);
	return n.pending;
}

static void eager_work_runs_at_once(void **)
{
	int *p = device_array<int>(8);

	cuda_host_set_streams(CUDA_HOST_EAGER, 0);
	launch(append_kernel, 1, 1, nullptr, p, 1);
	assert_int_equal(pending(), 0);
	done(cudaFree(p));
}

static void lazy_work_runs_when_something_waits(void **)
{
	int *p = device_array<int>(8), *q = device_array<int>(8);
	cudaStream_t a, b;
	cudaEvent_t e;

	done(cudaDeviceSynchronize());
	cuda_host_set_streams(CUDA_HOST_LAZY, 0);
	done(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	done(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	done(cudaEventCreate(&e));
	launch(append_kernel, 1, 1, a, p, 1);
	done(cudaEventRecord(e, a));
	launch(append_kernel, 1, 1, a, p, 2);
	launch(append_kernel, 1, 1, b, q, 3);
	assert_int_equal(pending(), 4);
	/* Only what the event needs. */
	done(cudaEventSynchronize(e));
	assert_int_equal(pending(), 2);
	assert_int_equal(cudaStreamQuery(a), cudaErrorNotReady);
	assert_int_equal(cudaStreamQuery(a), cudaSuccess);
	assert_int_equal(pending(), 1);
	done(cudaStreamDestroy(b));
	done(cudaDeviceSynchronize());
	assert_int_equal(pending(), 0);
	assert_int_equal(value_at(q + 1), 3);
	done(cudaStreamDestroy(a));
	done(cudaEventDestroy(e));
	done(cudaFree(p));
	done(cudaFree(q));
}

/* Appends 1 in one stream and 2 in another one; returns the first element. */
static int first_of_two(unsigned seed, bool event, bool default_stream)
{
	int *p = device_array<int>(4), host[3];
	cudaStream_t a, b;
	cudaEvent_t e;

	done(cudaDeviceSynchronize());
	cuda_host_set_streams(CUDA_HOST_RANDOM, seed);
	done(cudaStreamCreateWithFlags(&a, default_stream ? 0 : cudaStreamNonBlocking));
	done(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	done(cudaEventCreate(&e));
	launch(append_kernel, 1, 1, a, p, 1);
	done(cudaEventRecord(e, a));
	if (event)
		done(cudaStreamWaitEvent(b, e, 0));
	launch(append_kernel, 1, 1, default_stream ? nullptr : b, p, 2);
	done(cudaDeviceSynchronize());
	read_all(host, p, 3);
	assert_int_equal(host[0], 2);
	assert_int_equal(host[1] + host[2], 3);
	done(cudaStreamDestroy(a));
	done(cudaStreamDestroy(b));
	done(cudaEventDestroy(e));
	done(cudaFree(p));
	return host[1];
}

static void random_work_runs_in_any_order_that_streams_allow(void **)
{
	bool seen[3] = {};

	if (CHECKED_BY_TSAN)
		skip(); /* the race is intended */
	for (unsigned seed = 0; seed < 40; seed++) {
		seen[first_of_two(seed, false, false)] = true;
		assert_int_equal(first_of_two(seed, true, false), 1);
		assert_int_equal(first_of_two(seed, false, true), 1);
	}
	assert_true(seen[1] && seen[2]);
}

/* ---- copies, memory ---- */

static void waits_of_the_host_are_counted(void **)
{
	static int host[4096] __attribute__((aligned(4096)));
	struct cuda_host_counts before, after;
	int *p = device_array<int>(4096), pageable[4];

	done(cudaHostRegister(host, sizeof(host), 0));
	cuda_host_counts(&before);
	done(cudaMemcpyAsync(host, p, sizeof(host), cudaMemcpyDeviceToHost, nullptr));
	done(cudaMemcpyAsync(p, host, sizeof(host), cudaMemcpyHostToDevice, nullptr));
	cuda_host_counts(&after);
	assert_int_equal(after.copies - before.copies, 2);
	assert_int_equal(after.waits, before.waits);
	done(cudaMemcpyAsync(pageable, p, sizeof(pageable), cudaMemcpyDeviceToHost, nullptr));
	done(cudaStreamSynchronize(nullptr));
	done(cudaFree(p));
	cuda_host_counts(&after);
	assert_int_equal(after.waits - before.waits, 3);
	assert_int_equal(after.waits_copy - before.waits_copy, 1);
	assert_int_equal(after.waits_stream - before.waits_stream, 1);
	assert_int_equal(after.waits_free - before.waits_free, 1);
	done(cudaHostUnregister(host));
}

static void memory_is_limited_and_has_garbage(void **)
{
	size_t unused, all;
	void *p, *q;

	done(cudaMemGetInfo(&unused, &all));
	assert_int_equal(cudaMalloc(&q, unused + 1), cudaErrorMemoryAllocation);
	done(cudaMalloc(&p, unused / 2));
	assert_int_equal((uintptr_t)p % 256, 0);
	assert_int_equal(value_at((unsigned *)p), 0xf7f7f7f7);
	assert_int_equal(cudaMalloc(&q, unused / 2 + 1), cudaErrorMemoryAllocation);
	done(cudaFree(p));
	done(cudaMalloc(&q, unused));
	done(cudaFree(q));
	cudaGetLastError();
}

static void wrong_arguments_of_copies_fail(void **)
{
	int *p = device_array<int>(1), host = 0;

	assert_int_equal(cudaMemcpy(p, &host, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	assert_int_equal(cudaMemcpy(&host, p, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	assert_int_equal(cudaMemcpyPeerAsync(p, 1, p, 0, 4, nullptr), cudaErrorInvalidValue);
	assert_int_equal(cudaMemset(&host, 0, 4), cudaErrorInvalidValue);
	assert_int_equal(cudaSetDevice(99), cudaErrorInvalidDevice);
	assert_int_equal(cudaHostUnregister(&host), cudaErrorHostMemoryNotRegistered);
	done(cudaFree(p));
	cudaGetLastError();
}

static void the_nth_call_fails(void **)
{
	void *p;

	cuda_host_fail("cudaMalloc", 2, cudaErrorUnknown);
	done(cudaMalloc(&p, 4));
	done(cudaFree(p));
	assert_int_equal(cudaMalloc(&p, 4), cudaErrorUnknown);
	assert_int_equal(cuda_host_calls(), 2);
	done(cudaMalloc(&p, 4));
	cuda_host_fail(NULL, 1, cudaErrorLaunchFailure);
	assert_int_equal(launch(append_kernel, 1, 1, nullptr, (int *)p, 1), cudaErrorLaunchFailure);
	done(cudaFree(p));
	cuda_host_fail(NULL, 0, 0);
	cudaGetLastError();
}

/* ---- cuBLASLt ---- */

/* A product of 3x4 and 4x2 in columns, with an argument changed. */
struct product {
	int64_t lda = 3, ldc = 3;
	uint64_t inner = 4;
	uint32_t alignment = 256;
	size_t offset = 0; /* bytes, of A */
	size_t workspace = 1 << 16;
	bool small_workspace = false;
};

static cublasStatus_t multiply(const product &x, float *result)
{
	const float a[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	const float b[8] = { 1, 0, 0, 0, 0, 1, 0, 1 }, alpha = 2, beta = 0;
	float *pa = device_array<float>(16), *pb = device_array<float>(8),
	      *pc = device_array<float>(6);
	void *workspace;
	cublasLtHandle_t handle;
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t la, lb, lc;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t algo;
	cublasStatus_t st;
	int found;

	pa = (float *)((char *)pa + x.offset);
	done(cudaMalloc(&workspace, 1 << 16));
	done(cudaMemcpy(pa, a, sizeof(a), cudaMemcpyHostToDevice));
	done(cudaMemcpy(pb, b, sizeof(b), cudaMemcpyHostToDevice));
	done(cublasLtCreate(&handle));
	done(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	done(cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, 3, x.inner, x.lda));
	done(cublasLtMatrixLayoutCreate(&lb, CUDA_R_32F, 4, 2, 4));
	done(cublasLtMatrixLayoutCreate(&lc, CUDA_R_32F, 3, 2, x.ldc));
	done(cublasLtMatmulPreferenceCreate(&preference));
	done(cublasLtMatmulPreferenceSetAttribute(preference,
						  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
						  &x.workspace, sizeof(x.workspace)));
	done(cublasLtMatmulPreferenceSetAttribute(preference,
						  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
						  &x.alignment, sizeof(x.alignment)));
	st = cublasLtMatmulAlgoGetHeuristic(handle, desc, la, lb, lc, lc, preference, 1, &algo,
					    &found);
	if (st == CUBLAS_STATUS_SUCCESS)
		st = cublasLtMatmul(handle, desc, &alpha, pa, la, pb, lb, &beta, pc, lc, pc, lc,
				    &algo.algo, workspace,
				    x.small_workspace ? algo.workspaceSize - 1 : algo.workspaceSize,
				    nullptr);
	done(cudaMemcpy(result, pc, 6 * sizeof(float), cudaMemcpyDeviceToHost));
	done(cublasLtMatmulPreferenceDestroy(preference));
	done(cublasLtMatrixLayoutDestroy(la));
	done(cublasLtMatrixLayoutDestroy(lb));
	done(cublasLtMatrixLayoutDestroy(lc));
	done(cublasLtMatmulDescDestroy(desc));
	done(cublasLtDestroy(handle));
	done(cudaFree((char *)pa - x.offset));
	done(cudaFree(pb));
	done(cudaFree(pc));
	done(cudaFree(workspace));
	return st;
}

static void products_are_computed_and_their_arguments_checked(void **)
{
	const float expected[6] = { 2, 4, 6, 28, 32, 36 };
	float c[6];
	product x;

	done(multiply(x, c));
	assert_memory_equal(c, expected, sizeof(c));
	x.workspace = 0;
	done(multiply(x, c));
	assert_memory_equal(c, expected, sizeof(c));
	x = product();
	x.offset = 4;
	assert_int_equal(multiply(x, c), CUBLAS_STATUS_INVALID_VALUE);
	x.alignment = 4;
	done(multiply(x, c));
	x.alignment = 2;
	assert_int_equal(multiply(x, c), CUBLAS_STATUS_NOT_SUPPORTED);
	x = product();
	x.lda = 2;
	assert_int_equal(multiply(x, c), CUBLAS_STATUS_INVALID_VALUE);
	x = product();
	x.ldc = 2;
	assert_int_equal(multiply(x, c), CUBLAS_STATUS_INVALID_VALUE);
	x = product();
	x.inner = 3;
	assert_int_equal(multiply(x, c), CUBLAS_STATUS_INVALID_VALUE);
	x = product();
	x.inner = 0;
	assert_int_equal(multiply(x, c), CUBLAS_STATUS_INVALID_VALUE);
	x = product();
	x.small_workspace = true;
	assert_int_equal(multiply(x, c), CUBLAS_STATUS_INVALID_VALUE);
}

int main(int argc, char **argv)
{
	/* The limit is read when the library is loaded; all memory is filled with garbage. */
	if (!getenv("CUDA_HOST_MEMORY")) {
		setenv("CUDA_HOST_MEMORY", "0x800000", 1);
		execv("/proc/self/exe", argv);
		return 1;
	}

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_thread_runs_once),
		cmocka_unit_test(barriers_order_the_threads),
		cmocka_unit_test(blocks_begin_with_garbage_in_shared_memory),
		cmocka_unit_test(warps_exchange_values),
		cmocka_unit_test(launches_outside_of_the_limits_fail),
		cmocka_unit_test(eager_work_runs_at_once),
		cmocka_unit_test(lazy_work_runs_when_something_waits),
		cmocka_unit_test(random_work_runs_in_any_order_that_streams_allow),
		cmocka_unit_test(waits_of_the_host_are_counted),
		cmocka_unit_test(memory_is_limited_and_has_garbage),
		cmocka_unit_test(wrong_arguments_of_copies_fail),
		cmocka_unit_test(the_nth_call_fails),
		cmocka_unit_test(products_are_computed_and_their_arguments_checked),
	};

	return cmocka_run_group_tests_name("cuda_emulation", tests, NULL, NULL);
}
