// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * libtensor_cuda.so: registers its loops and its table of functions when it is opened, or says
 * why it cannot. Also here: devices, the current stream of a thread, errors and fork.
 */
#include "kernels/cuda/cuda.h"

#include <pthread.h>
#include <stdio.h>

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
	cudaGetLastError(); /* it has been seen: the next call begins clean where it can */
	return tensor_fail(error_of(err), "%s: cuda: %s (%s)", op, cudaGetErrorString(err),
			   cudaGetErrorName(err));
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

/* ---- a call ---- */

cudaStream_t cuda_stream(int device)
{
	return streams[device];
}

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
		return kernel_no_dtype(c->op, dtype, "cuda");
	return cuda_check(c->op, err);
}

int cuda_wait(const struct cuda_call *c)
{
	return cuda_check(c->op, cudaStreamSynchronize(c->stream));
}

/* ---- the table ---- */

static bool usable(void)
{
	return !cuda_forked;
}

static int count(void)
{
	int err = check_device("cuda_device_count", 0);

	return err ? err : device_count;
}

static int set_stream(int device, void *stream)
{
	int err = check_device("cuda_set_stream", device);

	if (err)
		return err;
	streams[device] = stream;
	if (stream)
		atomic_store(&cuda_streams_set, true);
	return 0;
}

static void *current_stream(int device)
{
	return check_device("cuda_current_stream", device) ? NULL : streams[device];
}

static int synchronize(int device)
{
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_synchronize", device);

	if (err)
		return err;
	err = cuda_end(&c, cuda_check(c.op, cudaDeviceSynchronize()));
	cuda_reap();
	return err;
}

static const struct cuda_plugin plugin = {
	.allocator = &cuda_memory,
	.usable = usable,
	.device_count = count,
	.set_stream = set_stream,
	.current_stream = current_stream,
	.synchronize = synchronize,
	.set_nonblocking = cuda_set_nonblocking,
};

/* ---- loading ---- */

#define LOOP(name)                                \
	{                                         \
#name, (tensor_kernel)cuda_##name \
	}
static const struct {
	const char *name;
	tensor_kernel fn;
} loops[] = {
	LOOP(copy),
	LOOP(fill),
	LOOP(add),
	LOOP(add_alpha),
	LOOP(sub),
	LOOP(mul),
	LOOP(div),
	LOOP(relu),
	LOOP(relu_backward),
	LOOP(sum),
	LOOP(softmax),
	LOOP(log_softmax),
	LOOP(softmax_backward),
	LOOP(log_softmax_backward),
	LOOP(mm),
	LOOP(index_select),
	LOOP(index_add),
	LOOP(gather),
	LOOP(scatter_add),
};

/* The name of a loop that this libtensor does not have, or NULL. */
static const char *register_kernels(void)
{
	const char *unknown = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(loops); i++)
		if (tensor_kernel_table_set(loops[i].name, TENSOR_KEY_CUDA, loops[i].fn) < 0)
			unknown = loops[i].name;
	return unknown;
}

static void mark_child(void)
{
	cuda_forked = true;
}

__attribute__((constructor)) static void load(void)
{
	struct tensor_error before = *tensor_last_error();
	const char *unknown = register_kernels();
	char why[TENSOR_ERROR_TEXT];
	cudaError_t err;

	if (unknown) {
		snprintf(why, sizeof(why),
			 "libtensor_cuda.so is of another build: libtensor has "
			 "no loop named %s",
			 unknown);
		tensor_fail(before.code, "%s", before.text);
		tensor_register_cuda(NULL, why);
		return;
	}
	err = cudaGetDeviceCount(&device_count);
	if (err == cudaSuccess && device_count < 1)
		err = cudaErrorNoDevice;
	if (err != cudaSuccess) {
		cudaGetLastError();
		snprintf(why, sizeof(why), "no device: %s (%s)", cudaGetErrorString(err),
			 cudaGetErrorName(err));
		device_count = 0;
		tensor_register_cuda(NULL, why);
		return;
	}
	if (device_count > CUDA_DEVICES)
		device_count = CUDA_DEVICES;
	pthread_atfork(NULL, NULL, mark_child);
	tensor_register_cuda(&plugin, NULL);
}
