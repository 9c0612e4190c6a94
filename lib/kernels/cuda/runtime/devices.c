// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The devices, the current stream of each thread, CUDA's errors, and the check for a forked child. The other files of the
 * plugin are above this one.
 */
#include "kernels/cuda/runtime/devices.h"

#include <pthread.h>

int cuda_devices_opened;
__thread cudaStream_t cuda_thread_streams[CUDA_DEVICES];
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
	case cudaErrorStreamCaptureUnsupported:
	case cudaErrorStreamCaptureInvalidated:
	case cudaErrorStreamCaptureIsolation:
	case cudaErrorStreamCaptureImplicit:
	case cudaErrorCapturedEvent:
		return EOPNOTSUPP;
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
	cudaError_t err = cudaGetDeviceCount(&cuda_devices_opened);

	if (err == cudaSuccess && cuda_devices_opened < 1)
		err = cudaErrorNoDevice;
	if (err != cudaSuccess) {
		cudaGetLastError();
		cuda_devices_opened = 0;
		return err;
	}
	if (cuda_devices_opened > CUDA_DEVICES)
		cuda_devices_opened = CUDA_DEVICES;
	pthread_atfork(NULL, NULL, mark_child);
	return cudaSuccess;
}

int cuda_check_device(const char *op, int device)
{
	if (unlikely(cuda_forked))
		return tensor_fail(ENODEV,
				   "%s: cuda: this process was forked from one that had "
				   "opened CUDA; fork before the first use, or exec",
				   op);
	if (unlikely(device < 0 || device >= cuda_devices_opened))
		return tensor_fail(ENODEV, "%s: there is no cuda:%d, only %d device%s", op, device,
				   cuda_devices_opened, cuda_devices_opened == 1 ? "" : "s");
	return 0;
}

int cuda_device_count(void)
{
	int err = cuda_check_device("cuda_device_count", 0);

	return err ? err : cuda_devices_opened;
}

cudaStream_t cuda_swap_stream(int device, cudaStream_t stream)
{
	cudaStream_t before = cuda_thread_streams[device];

	cuda_thread_streams[device] = stream;
	if (stream)
		atomic_store(&cuda_streams_set, true);
	return before;
}

void *cuda_current_stream(int device)
{
	return cuda_check_device("cuda_current_stream", device) ? NULL :
								  cuda_thread_streams[device];
}
