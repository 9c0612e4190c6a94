// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The begin and end of every call, which ends a capture if it fails; the streams that programs and backward set. */
#include "kernels/cuda/runtime/devices.h"

/* ---- streams ---- */

int cuda_set_stream(int device, void *stream)
{
	int err = cuda_check_device("cuda_set_stream", device);

	if (err)
		return err;
	/* The cache would give memory of one thread's stream to that of another. */
	if (stream == CUDA_STREAM_PER_THREAD)
		return tensor_fail(EINVAL,
				   "cuda_set_stream: cudaStreamPerThread is another stream in each "
				   "thread: use one of tensor_cuda_stream()");
	if (cuda_capture_of(cuda_thread_streams[device]) || cuda_capture_of(stream))
		return tensor_fail(EBUSY, "cuda_set_stream: a graph is being captured in the %s",
				   cuda_capture_of(stream) ? "stream" : "thread's current stream");
	cuda_thread_streams[device] = stream;
	if (stream)
		atomic_store(&cuda_streams_set, true);
	return 0;
}

bool cuda_is_capturing(int device)
{
	return !cuda_forked && device >= 0 && device < cuda_device_count() &&
	       cuda_capture_of(cuda_thread_streams[device]);
}

/* ---- a call ---- */

int cuda_begin(struct cuda_call *c, const char *op, int device)
{
	int err = cuda_check_device(op, device);

	if (err)
		return err;
	*c = (struct cuda_call){ .op = op,
				 .device = device,
				 .stream = cuda_thread_streams[device],
				 .capture = cuda_capture_of(cuda_thread_streams[device]) };
	err = cuda_check(op, cudaGetDevice(&c->before));
	if (!err && c->before != device)
		err = cuda_check(op, cudaSetDevice(device));
	if (unlikely(err && c->capture))
		cuda_capture_break(c->capture);
	if (unlikely(!err && !c->capture && cuda_thread_captures())) {
		c->mode = cuda_relax();
		c->relaxed = true;
	}
	return err;
}

int cuda_end(struct cuda_call *c, int err)
{
	if (unlikely(c->relaxed))
		cuda_unrelax(c->mode);
	if (c->before != c->device)
		cudaSetDevice(c->before);
	if (unlikely(err && c->capture))
		cuda_capture_break(c->capture);
	return err;
}

int cuda_launched(const struct cuda_call *c, int err, enum tensor_dtype dtype)
{
	if (unlikely(err == CUDA_NO_DTYPE))
		return tensor_kernel_no_dtype(c->op, dtype, "cuda");
	return cuda_check(c->op, err);
}

int cuda_drain(const struct cuda_call *c)
{
	if (cuda_capturing(c))
		return cuda_refuse(c, "waits for the device");
	return cuda_check(c->op, cudaStreamSynchronize(c->stream));
}

int cuda_wait(const struct cuda_call *c)
{
	int err = cuda_drain(c);

	return err ? err : cuda_checks_report(c->op, c->device);
}

/* ---- streams of a backward (struct tensor_streams) ---- */

/* A capture has one stream, in which all of a backward runs: it is not ordered with other streams. */
static char captured_event;

/*
 * In a capture that before it: the nodes of the capture may run in a backward outside of it, whose work must not be in a
 * stream of captures.
 */
static void *backward_current(tensor_device device)
{
	cudaStream_t stream = cuda_current_stream(device.index);
	const struct tensor_cuda_graph *g = cuda_capture_of(stream);

	return g ? cuda_capture_before(g) : stream;
}

static int backward_set(tensor_device device, void *stream)
{
	if (cuda_is_capturing(device.index))
		return 0;
	return cuda_set_stream(device.index, stream);
}

static void *backward_record(tensor_device device, void *stream)
{
	cudaEvent_t event = NULL;
	struct cuda_call c;
	int err;

	if (cuda_is_capturing(device.index))
		return &captured_event;
	err = cuda_begin(&c, "backward", device.index);

	if (err)
		return NULL;
	err = cuda_check(c.op, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	if (!err) {
		err = cuda_check(c.op, cudaEventRecord(event, stream));
		if (err)
			cudaEventDestroy(event);
	}
	return cuda_end(&c, err) ? NULL : event;
}

static int backward_wait(tensor_device device, void *stream, void *event)
{
	struct cuda_call c;
	int err;

	if (event == &captured_event)
		return 0;
	err = cuda_begin(&c, "backward", device.index);
	return err ? err : cuda_end(&c, cuda_check(c.op, cudaStreamWaitEvent(stream, event, 0)));
}

/* CUDA frees the event once it has been reached. */
static void backward_release(tensor_device device, void *event)
{
	if (event != &captured_event)
		cudaEventDestroy(event);
}

const struct tensor_streams cuda_backward_streams = {
	.current = backward_current,
	.set = backward_set,
	.record = backward_record,
	.wait = backward_wait,
	.release = backward_release,
};
