// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The emulation's captures and graphs: what is replayed, and the calls that a capture forbids. */
#include "self.hpp"

#include <thread>

__global__ void add_kernel(int *to, int value)
{
	*to += value;
}

static cudaStream_t captured, other;
static int *number;

static int begin(enum cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal)
{
	return cudaStreamBeginCapture(captured, mode);
}

static int end_of(void)
{
	cudaGraph_t graph;
	int err = cudaStreamEndCapture(captured, &graph);

	if (!err)
		done(cudaGraphDestroy(graph));
	return err;
}

static int set_up(void **state)
{
	done(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
	done(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	number = device_array<int>(1);
	return 0;
}

static void a_graph_runs_at_each_launch(void **state)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	done(cudaMemset(number, 0, sizeof(*number)));
	done(begin());
	done(launch(add_kernel, 1, 1, captured, number, 3));
	done(launch(add_kernel, 1, 1, captured, number, 4));
	done(cudaStreamEndCapture(captured, &graph));
	done(cudaGraphInstantiate(&exec, graph, 0));
	done(cudaGraphDestroy(graph));
	assert_int_equal(value_at(number), 0);
	done(cudaGraphLaunch(exec, other));
	done(cudaGraphLaunch(exec, other));
	done(cudaGraphExecDestroy(exec));
	done(cudaStreamSynchronize(other));
	assert_int_equal(value_at(number), 14);
}

/* The call fails with this error, and so does the end of the capture. */
template <class Call> static void check_forbidden(Call call, int error)
{
	enum cudaStreamCaptureStatus status;

	done(begin());
	assert_int_equal(call(), error);
	done(cudaStreamIsCapturing(captured, &status));
	assert_int_equal(status, cudaStreamCaptureStatusInvalidated);
	assert_int_equal(launch(add_kernel, 1, 1, captured, number, 1),
			 cudaErrorStreamCaptureInvalidated);
	assert_int_equal(end_of(), cudaErrorStreamCaptureInvalidated);
	done(cudaDeviceSynchronize());
}

static void calls_that_wait_or_allocate_invalidate_a_capture(void **state)
{
	static int host;
	void *data;
	cudaEvent_t outside;

	done(cudaEventCreate(&outside));
	done(cudaEventRecord(outside, other));
	check_forbidden([] { return cudaStreamSynchronize(captured); },
			cudaErrorStreamCaptureUnsupported);
	check_forbidden([] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported);
	check_forbidden([&] { return cudaMalloc(&data, 16); }, cudaErrorStreamCaptureUnsupported);
	check_forbidden([&] { return cudaEventSynchronize(outside); },
			cudaErrorStreamCaptureUnsupported);
	check_forbidden(
		[] {
			return cudaMemcpyAsync(&host, number, sizeof(host), cudaMemcpyDeviceToHost,
					       captured);
		},
		cudaErrorStreamCaptureUnsupported);
	check_forbidden([&] { return cudaStreamWaitEvent(captured, outside, 0); },
			cudaErrorStreamCaptureIsolation);
	check_forbidden(
		[&] {
			done(cudaEventRecord(outside, captured));
			assert_int_equal(cudaEventQuery(outside), cudaErrorCapturedEvent);
			return cudaStreamWaitEvent(other, outside, 0);
		},
		cudaErrorStreamCaptureIsolation);
	done(cudaEventDestroy(outside));
}

static void modes_allow_what_they_say(void **state)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	void *data;
	int err = 0;

	done(begin());
	done(cudaThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, cudaStreamCaptureModeGlobal);
	done(cudaMalloc(&data, 16));
	done(cudaThreadExchangeStreamCaptureMode(&mode));
	std::thread([&] {
		err = cudaMalloc(&data, 16);
		done(end_of() == cudaErrorStreamCaptureWrongThread ? 0 : 1);
	}).join();
	assert_int_equal(err, 0);
	assert_int_equal(end_of(), cudaErrorStreamCaptureInvalidated);

	done(begin(cudaStreamCaptureModeGlobal));
	std::thread([&] { err = cudaMalloc(&data, 16); }).join();
	assert_int_equal(err, cudaErrorStreamCaptureUnsupported);
	assert_int_equal(end_of(), cudaErrorStreamCaptureInvalidated);

	done(begin(cudaStreamCaptureModeRelaxed));
	done(cudaMalloc(&data, 16));
	assert_int_equal(end_of(), 0);
	assert_int_equal(end_of(), cudaErrorStreamCaptureUnmatched);
	assert_int_equal(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
			 cudaErrorStreamCaptureUnsupported);
}

/* The default stream waits for blocking streams, which a capture cannot be waited for. */
static void the_default_stream_does_not_wait_for_a_capture(void **state)
{
	cudaStream_t blocking;
	cudaGraph_t graph;

	done(cudaStreamCreate(&blocking));
	done(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeThreadLocal));
	assert_int_equal(launch(add_kernel, 1, 1, nullptr, number, 1),
			 cudaErrorStreamCaptureImplicit);
	assert_int_equal(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
	done(cudaStreamDestroy(blocking));
	done(begin());
	done(launch(add_kernel, 1, 1, nullptr, number, 1));
	assert_int_equal(end_of(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_graph_runs_at_each_launch),
		cmocka_unit_test(calls_that_wait_or_allocate_invalidate_a_capture),
		cmocka_unit_test(modes_allow_what_they_say),
		cmocka_unit_test(the_default_stream_does_not_wait_for_a_capture),
	};

	return cmocka_run_group_tests_name("cuda_capture", tests, set_up, NULL);
}
