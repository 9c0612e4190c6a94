// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * State and helpers of every call: the devices, the current stream of each thread, CUDA's errors,
 * and the check for a forked child. The other files of the plugin are above this one.
 */
#include "kernels/cuda/cuda.h"

#include <pthread.h>

static int device_count;
static __thread cudaStream_t streams[CUDA_DEVICES];
bool cuda_forked;
atomic_bool cuda_streams_set;

/* ---- errors ---- */

static int error_of(cudaError_t err)
{
	switch (err) {
	case cudaErrorMemoryAllocation:
		return ENOMEM;
	case cudaErrorNoDevice:
	case cudaErrorInsufficientDriver:
	case cudaErrorInvalidDevice:
	case cudaErrorInitializationError:
	case cudaErrorNoKernelImageForDevice:
		return ENODEV;
	default:
		return EIO;
	}
}

int cuda_error(const char *op, cudaError_t err)
{
	cudaGetLastError(); /* clears it for the next call, unless it is sticky */
	return tensor_fail(error_of(err), "%s: cuda: %s (%s)", op, cudaGetErrorString(err),
			   cudaGetErrorName(err));
}

/* ---- devices and streams ---- */

static void mark_child(void)
{
	cuda_forked = true;
}

cudaError_t cuda_open_devices(void)
{
	cudaError_t err = cudaGetDeviceCount(&device_count);

	if (err == cudaSuccess && device_count < 1)
		err = cudaErrorNoDevice;
	if (err != cudaSuccess) {
		cudaGetLastError();
		device_count = 0;
		return err;
	}
	if (device_count > CUDA_DEVICES)
		device_count = CUDA_DEVICES;
	pthread_atfork(NULL, NULL, mark_child);
	return cudaSuccess;
}

static int check_device(const char *op, int device)
{
	if (unlikely(cuda_forked))
		return tensor_fail(ENODEV,
				   "%s: cuda: this process was forked from one that had "
				   "opened CUDA; fork before the first use, or exec",
				   op);
	if (unlikely(device < 0 || device >= device_count))
		return tensor_fail(ENODEV, "%s: there is no cuda:%d, only %d device%s", op, device,
				   device_count, device_count == 1 ? "" : "s");
	return 0;
}

int cuda_device_count(void)
{
	int err = check_device("cuda_device_count", 0);

	return err ? err : device_count;
}

int cuda_set_stream(int device, void *stream)
{
	int err = check_device("cuda_set_stream", device);

	if (err)
		return err;
	streams[device] = stream;
	if (stream)
		atomic_store(&cuda_streams_set, true);
	return 0;
}

void *cuda_current_stream(int device)
{
	return check_device("cuda_current_stream", device) ? NULL : streams[device];
}

/* ---- a call ---- */

int cuda_begin(struct cuda_call *c, const char *op, int device)
{
	int err = check_device(op, device);

	if (err)
		return err;
	*c = (struct cuda_call){ .op = op, .device = device, .stream = streams[device] };
	err = cuda_check(op, cudaGetDevice(&c->before));
	if (!err && c->before != device)
		err = cuda_check(op, cudaSetDevice(device));
	return err;
}

int cuda_end(struct cuda_call *c, int err)
{
	if (c->before != c->device)
		cudaSetDevice(c->before);
	return err;
}

int cuda_launched(const struct cuda_call *c, int err, enum tensor_dtype dtype)
{
	if (unlikely(err == CUDA_NO_DTYPE))
		return tensor_kernel_refuse_dtype(c->op, dtype, "cuda");
	return cuda_check(c->op, err);
}

int cuda_wait(const struct cuda_call *c)
{
	return cuda_check(c->op, cudaStreamSynchronize(c->stream));
}

/* ---- streams of a backward (struct tensor_streams) ---- */

static void *backward_current(tensor_device device)
{
	return cuda_current_stream(device.index);
}

static int backward_set(tensor_device device, void *stream)
{
	return cuda_set_stream(device.index, stream);
}

static void *backward_record(tensor_device device, void *stream)
{
	cudaEvent_t event = NULL;
	struct cuda_call c;
	int err = cuda_begin(&c, "backward", device.index);

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
	int err = cuda_begin(&c, "backward", device.index);

	return err ? err : cuda_end(&c, cuda_check(c.op, cudaStreamWaitEvent(stream, event, 0)));
}

/* CUDA frees the event once it has been reached. */
static void backward_release(tensor_device device, void *event)
{
	cudaEventDestroy(event);
}

const struct tensor_streams cuda_backward_streams = {
	.current = backward_current,
	.set = backward_set,
	.record = backward_record,
	.wait = backward_wait,
	.release = backward_release,
};
