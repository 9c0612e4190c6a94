// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Device memory that other processes can map: an allocation of the driver's virtual memory each, outside of the cache, whose
 * handle becomes a file descriptor. The driver keeps the memory as long as a process has a handle, a descriptor or a
 * mapping of it, so a process frees its own without asking the others.
 */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime/driver.h"
#include "kernels/cuda/runtime/uses.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define SIZE_LIMIT ((uint64_t)1 << 46)

/* A block with what the plugin knows of it. */
struct shared {
	struct cuda_share_block block;
	struct cuda_uses uses;
};

static struct shared *shared_of(struct cuda_share_block *b)
{
	return (struct shared *)b;
}

/* ---- the driver ---- */

/* Whether memory of the call's device can be shared: 0, or -errno with the error set. */
static int begin_sharing(const struct cuda_call *c)
{
	static const CUdevice_attribute needed[] = {
		CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
		CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
	};
	const char *missing = cuda_driver_open();
	size_t lacks;
	CUresult err;

	if (missing)
		return tensor_fail(EOPNOTSUPP,
				   "%s: cuda: the driver has no %s: memory of its devices cannot "
				   "be shared",
				   c->op, missing);
	err = cuda_driver_lacks(c->device, needed, ARRAY_SIZE(needed), &lacks);
	if (err != CUDA_SUCCESS)
		return cuda_driver_error(c->op, "attributes of the device", err);
	return lacks == ARRAY_SIZE(needed) ?
		       0 :
		       tensor_fail(EOPNOTSUPP,
				   "%s: memory of cuda:%d cannot be shared: the device has no "
				   "%s",
				   c->op, c->device,
				   lacks ? "descriptors of memory" : "virtual memory management");
}

/* ---- a block ---- */

static int granularity_of(const struct cuda_call *c, size_t *to)
{
	const CUmemAllocationProp p = cuda_driver_properties(c->device, true);
	CUresult err = cuda_driver.granularity(to, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);

	return err == CUDA_SUCCESS ? 0 : cuda_driver_error(c->op, "granularity of memory", err);
}

/* Maps the memory of a handle. CUDA_ERROR_INVALID_VALUE: it has fewer than b->size bytes. */
static CUresult map(struct cuda_share_block *b, CUmemGenericAllocationHandle handle)
{
	CUdeviceptr at = 0;
	CUresult err = cuda_driver.reserve(&at, b->size, 0, 0, 0);

	if (err != CUDA_SUCCESS)
		return err;
	err = cuda_driver.map(at, b->size, 0, handle, 0);
	if (err != CUDA_SUCCESS)
		goto unreserve;
	err = cuda_driver_permit(b->device, at, b->size);
	if (err != CUDA_SUCCESS)
		goto unmap;
	b->data = (void *)at;
	uses_begin(&shared_of(b)->uses, b->data);
	return CUDA_SUCCESS;
unmap:
	cuda_driver.unmap(at, b->size);
unreserve:
	cuda_driver.unreserve(at, b->size);
	return err;
}

/* The memory is lost, or is the parent's. */
static void forget(struct cuda_share_block *b)
{
	struct cuda_uses *u = &shared_of(b)->uses;

	if (cuda_forked)
		free(u->streams);
	else
		uses_end(u);
	free(shared_of(b));
}

/* No work uses the block. */
static void destroy(struct cuda_share_block *b)
{
	if (b->data) {
		cuda_driver.unmap((CUdeviceptr)b->data, b->size);
		cuda_driver.unreserve((CUdeviceptr)b->data, b->size);
	}
	if (b->handle)
		cuda_driver.release(b->handle);
	forget(b);
}

static int no_description(const char *op)
{
	return tensor_fail(ENOMEM, "%s: no memory for a block's description", op);
}

/* ---- release ---- */

/* Blocks that were released, and whose device may still use them. */
static struct cuda_share_block *released;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_released(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_released(void)
{
	pthread_mutex_unlock(&lock);
}

/*
 * A fork does not wait for the lock: it takes the plugin's locks before those of channels, which release blocks. The
 * memory is the parent's.
 */
static void forget_released(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	released = NULL;
}

__attribute__((constructor)) static void shared_init(void)
{
	pthread_atfork(NULL, NULL, forget_released);
}

/* False if the block may be in use, and must wait. After an error of the device it is lost. */
static bool end(struct cuda_share_block *b)
{
	cudaError_t err;
	int before;

	if (atomic_load_explicit(&cuda_captures, memory_order_acquire))
		return false;
	if (cudaGetDevice(&before) != cudaSuccess || cudaSetDevice(b->device) != cudaSuccess) {
		cudaGetLastError();
		forget(b);
		return true;
	}
	err = cuda_try_wait_device(b->device);
	/* Streams of other devices. */
	if (err == cudaSuccess)
		err = uses_wait(&shared_of(b)->uses);
	if (err == cudaSuccess)
		destroy(b);
	else
		cudaGetLastError();
	cudaSetDevice(before);
	if (err == cudaErrorStreamCaptureUnsupported)
		return false;
	if (err != cudaSuccess)
		forget(b);
	return true;
}

static void release_later(struct cuda_share_block *b)
{
	lock_released();
	b->next = released;
	released = b;
	unlock_released();
}

void cuda_shared_reap(void)
{
	struct cuda_share_block *b, *next;

	/* They are many if a capture releases many, each of which comes here. */
	if (atomic_load_explicit(&cuda_captures, memory_order_acquire))
		return;
	lock_released();
	b = released;
	released = NULL;
	unlock_released();
	for (; b; b = next) {
		next = b->next;
		if (!end(b))
			release_later(b);
	}
}

static void release(struct cuda_share_block *b)
{
	if (cuda_forked) {
		forget(b);
		return;
	}
	cuda_shared_reap();
	if (!end(b))
		release_later(b);
}

/* ---- out ---- */

/* After a call that found no memory: whether the cache and released blocks may have had it. */
static bool make_place(const struct cuda_call *c)
{
	/* The end of a capture would be more than the caller asked for. */
	if (cuda_thread_captures() || cuda_memory_trim(c->device))
		return false;
	cuda_shared_reap();
	return true;
}

static int create(const struct cuda_call *c, size_t n, struct cuda_share_block *b)
{
	const CUmemAllocationProp p = cuda_driver_properties(c->device, true);
	CUmemGenericAllocationHandle handle;
	size_t unit;
	CUresult result;
	int err = granularity_of(c, &unit);

	if (err)
		return err;
	b->size = n ? (n + unit - 1) / unit * unit : unit;
	result = cuda_driver.create(&handle, b->size, &p, 0);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && (cuda_driver_again(result) || make_place(c)))
		result = cuda_driver.create(&handle, b->size, &p, 0);
	if (result != CUDA_SUCCESS)
		return cuda_driver_no_descriptor(c->op, "memory to share", result);
	b->handle = handle;
	result = map(b, handle);
	return result == CUDA_SUCCESS ? 0 : cuda_driver_error(c->op, "mapping of memory", result);
}

static int fill(const struct cuda_call *c, const struct cuda_share_block *b, const void *from,
		size_t n)
{
	cudaError_t err = cudaSuccess;

	if (n)
		err = cudaMemcpyAsync(b->data, from, n, cudaMemcpyDeviceToDevice, c->stream);
	return cuda_check(c->op, err != cudaSuccess ? err : cudaStreamSynchronize(c->stream));
}

static int make(const char *op, int device, const void *from, size_t n,
		struct cuda_share_block **to)
{
	struct cuda_share_block *b;
	struct cuda_call c;
	int err = cuda_begin(&c, op, device);

	if (err)
		return err;
	err = cuda_wait_device(op, device);
	if (!err && cuda_memory_of_capture(device, from))
		err = tensor_fail(EBUSY,
				  "%s: the memory belongs to a graph, whose replays use its "
				  "address: clone the tensor",
				  op);
	if (!err)
		err = begin_sharing(&c);
	if (err)
		return cuda_end(&c, err);
	b = calloc(1, sizeof(struct shared));
	if (!b)
		return cuda_end(&c, no_description(op));
	b->device = device;
	err = create(&c, n, b);
	if (!err)
		err = fill(&c, b, from, n);
	if (err)
		destroy(b);
	else
		*to = b;
	return cuda_end(&c, err);
}

static int export(const char *op, const struct cuda_share_block *b)
{
	enum cudaStreamCaptureMode mode;
	struct cuda_call c;
	CUresult result;
	int fd = -1, err = cuda_begin(&c, op, b->device);

	if (err)
		return err;
	mode = cuda_relax();
	do
		result = cuda_driver.export(&fd, b->handle,
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	while (cuda_driver_again(result));
	cuda_unrelax(mode);
	if (result != CUDA_SUCCESS)
		err = cuda_driver_no_descriptor(op, "descriptor of memory", result);
	return cuda_end(&c, err) ?: fd;
}

static int dmabuf(const char *op, const struct cuda_share_block *b)
{
	static const CUdevice_attribute needed = CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED;
	enum cudaStreamCaptureMode mode;
	struct cuda_call c;
	CUresult result;
	size_t lacks = 0;
	int fd = -1, err = cuda_begin(&c, op, b->device);

	if (err)
		return err;
	mode = cuda_relax();
	result = cuda_driver_lacks(b->device, &needed, 1, &lacks);
	if (result != CUDA_SUCCESS)
		err = cuda_driver_error(op, "attributes of the device", result);
	else if (!lacks || !cuda_driver.range_handle)
		err = tensor_fail(EOPNOTSUPP, "%s: the driver makes no dma-bufs of cuda:%d", op,
				  b->device);
	if (!err) {
		do
			result = cuda_driver.range_handle(&fd, (CUdeviceptr)b->data, b->size,
							  CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
		while (cuda_driver_again(result));
		if (result != CUDA_SUCCESS)
			err = cuda_driver_no_descriptor(op, "dma-buf of memory", result);
	}
	cuda_unrelax(mode);
	return cuda_end(&c, err) ?: fd;
}

static int settle(const char *op, int device)
{
	struct cuda_call c;
	int err = cuda_begin(&c, op, device);

	return err ? err : cuda_end(&c, cuda_drain(&c));
}

/* ---- in ---- */

/* The runtime takes a millisecond for the properties of a device: they are read once. */
static int uuid_of(int device, uint8_t uuid[16])
{
	static struct {
		atomic_bool known;
		_Atomic uint64_t half[2];
	} uuids[CUDA_DEVICES];
	struct tensor_cuda_properties p;
	uint64_t half[2];
	int err;

	if (!atomic_load(&uuids[device].known)) {
		err = cuda_stream_functions.properties(device, &p);
		if (err)
			return err;
		memcpy(half, p.uuid, sizeof(half));
		for (int i = 0; i < 2; i++)
			atomic_store(&uuids[device].half[i], half[i]);
		atomic_store(&uuids[device].known, true);
	}
	for (int i = 0; i < 2; i++)
		half[i] = atomic_load(&uuids[device].half[i]);
	memcpy(uuid, half, sizeof(half));
	return 0;
}

/* The number that this process has for the device, or -errno. */
static int device_of(const char *op, const uint8_t uuid[16])
{
	int count = cuda_device_count(), err;
	uint8_t found[16];

	if (count < 0)
		return count;
	for (int d = 0; d < count; d++) {
		err = uuid_of(d, found);
		if (err)
			return err;
		if (!memcmp(found, uuid, sizeof(found)))
			return d;
	}
	return tensor_fail(ENODEV, "%s: the tensor is on a CUDA device that this process has not",
			   op);
}

static int refuse(const char *op, const char *why)
{
	return tensor_fail(EBADMSG, "%s: the memory of a CUDA device that came %s", op, why);
}

/* The handle is of the peer's choice. */
static int map_handle(const struct cuda_call *c, CUmemGenericAllocationHandle handle,
		      struct cuda_share_block *b)
{
	CUmemAllocationProp p;
	CUresult result = cuda_driver.properties(&p, handle);

	if (result != CUDA_SUCCESS)
		return cuda_driver_error(c->op, "properties of memory", result);
	if (p.location.type != CU_MEM_LOCATION_TYPE_DEVICE || p.location.id != c->device)
		return refuse(c->op, "is of another device than the message names");
	result = map(b, handle);
	if (result == CUDA_ERROR_INVALID_VALUE)
		return refuse(c->op, "has fewer bytes than the message says");
	return result == CUDA_SUCCESS ? 0 : cuda_driver_error(c->op, "mapping of memory", result);
}

static CUresult import_handle(CUmemGenericAllocationHandle *to, int fd)
{
	return cuda_driver.import(to, (void *)(intptr_t)fd,
				  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static int import_block(const struct cuda_call *c, int fd, struct cuda_share_block *b)
{
	CUmemGenericAllocationHandle handle;
	CUresult result;
	size_t unit;
	int err = begin_sharing(c);

	if (!err)
		err = granularity_of(c, &unit);
	if (err)
		return err;
	if (!b->size || b->size > SIZE_LIMIT || b->size % unit)
		return refuse(c->op, "has a size that no memory has");
	result = import_handle(&handle, fd);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && (cuda_driver_again(result) || make_place(c)))
		result = import_handle(&handle, fd);
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		return cuda_driver_no_descriptor(c->op, "memory of another process", result);
	if (result != CUDA_SUCCESS)
		return refuse(c->op, "is none that the driver knows");
	err = map_handle(c, handle, b);
	cuda_driver.release(handle); /* the mapping keeps the memory */
	return err;
}

static int import(const char *op, const uint8_t uuid[16], uint64_t size, int fd,
		  struct cuda_share_block **to)
{
	int device = device_of(op, uuid), err;
	enum cudaStreamCaptureMode mode;
	struct cuda_share_block *b;
	struct cuda_call c;

	if (device < 0)
		return device;
	b = calloc(1, sizeof(struct shared));
	if (!b)
		return no_description(op);
	b->device = device;
	b->size = size;
	cuda_shared_reap();
	err = cuda_begin(&c, op, device);
	if (err)
		goto free_block;
	mode = cuda_relax(); /* a mapping is no part of a capture */
	err = import_block(&c, fd, b);
	cuda_unrelax(mode);
	if (cuda_end(&c, err))
		goto free_block;
	*to = b;
	return 0;
free_block:
	forget(b);
	return err;
}

const struct cuda_share_calls cuda_shared_memory = {
	.uuid = uuid_of,
	.quiesce = cuda_quiesce,
	.make = make,
	.export = export,
	.import = import,
	.dmabuf = dmabuf,
	.settle = settle,
	.release = release,
};
