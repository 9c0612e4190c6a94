// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Devices, streams and events as programs use them (include/tensor/cuda.h). */
#include "kernels/cuda/runtime/devices.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct tensor_cuda_event {
	int device;
	unsigned int flags;
	atomic_bool recorded; /* by any thread */
	cudaEvent_t event;
};

/* ---- devices ---- */

static int set_device(int device)
{
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_set_device", device);

	if (!err)
		c.before = device;
	return err ? err : cuda_end(&c, 0);
}

/* Without cuda_begin(), which would make a context on the device that it sets. */
static int current_device(void)
{
	int device = 0, err = cuda_check_device("cuda_current_device", 0);

	if (!err)
		err = cuda_check("cuda_current_device", cudaGetDevice(&device));
	return err ? err : device;
}

static int properties(int device, struct tensor_cuda_properties *to)
{
	struct cudaDeviceProp p;
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_device_properties", device);

	if (err)
		return err;
	err = cuda_check(c.op, cudaGetDeviceProperties(&p, device));
	if (err)
		return cuda_end(&c, err);
	*to = (struct tensor_cuda_properties){
		.memory = p.totalGlobalMem,
		.shared_memory = p.sharedMemPerBlockOptin,
		.major = p.major,
		.minor = p.minor,
		.multiprocessors = p.multiProcessorCount,
		.threads = p.maxThreadsPerMultiProcessor,
		.l2_cache = p.l2CacheSize,
		.pci_domain = p.pciDomainID,
		.pci_bus = p.pciBusID,
		.pci_device = p.pciDeviceID,
		.integrated = p.integrated,
	};
	memcpy(to->uuid, p.uuid.bytes, sizeof(to->uuid));
	memcpy(to->name, p.name, strnlen(p.name, sizeof(to->name) - 1));
	return cuda_end(&c, 0);
}

static int memory_info(int device, uint64_t *unused, uint64_t *total)
{
	size_t rest = 0, all = 0;
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_memory_info", device);

	if (err)
		return err;
	err = cuda_check(c.op, cudaMemGetInfo(&rest, &all));
	*unused = rest;
	*total = all;
	return cuda_end(&c, err);
}

/* ---- streams ---- */

#define STREAMS	   32
#define PRIORITIES 8

/* Never destroyed: memory of the cache belongs to them. */
static struct {
	unsigned int next;
	cudaStream_t stream[STREAMS];
} pools[CUDA_DEVICES][PRIORITIES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_pools(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_pools(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void streams_init(void)
{
	pthread_atfork(lock_pools, unlock_pools, unlock_pools);
}

static int stream_of_pool(const struct cuda_call *c, int priority, void **to)
{
	int least = 0, greatest = 0;
	cudaStream_t *place;
	int err = cuda_check(c->op, cudaDeviceGetStreamPriorityRange(&least, &greatest));

	if (err)
		return err;
	if (priority < greatest)
		priority = greatest;
	if (priority < 1 - PRIORITIES)
		priority = 1 - PRIORITIES;
	lock_pools();
	place = &pools[c->device][-priority].stream[pools[c->device][-priority].next++ % STREAMS];
	if (!*place)
		err = cuda_check(c->op, cudaStreamCreateWithPriority(place, cudaStreamNonBlocking,
								     priority));
	*to = *place;
	unlock_pools();
	return err;
}

static int stream(int device, int priority, void **to)
{
	enum cudaStreamCaptureMode mode;
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_stream", device);

	if (err)
		return err;
	if (priority > 0)
		return cuda_end(&c,
				tensor_fail(EINVAL, "%s: priority %d: 0, or less for a higher one",
					    c.op, priority));
	mode = cuda_relax();
	err = stream_of_pool(&c, priority, to);
	cuda_unrelax(mode);
	return cuda_end(&c, err);
}

/* Begins a call that waits for, or orders, streams of the program. */
static int begin_outside(struct cuda_call *c, const char *op, int device, const void *stream)
{
	int err = cuda_begin(c, op, device);

	if (err)
		return err;
	if (c->capture)
		return cuda_end(c, cuda_refuse(c, "orders streams of the program"));
	if (cuda_capture_of((cudaStream_t)stream))
		return cuda_end(c, tensor_fail(EOPNOTSUPP,
					       "%s: a graph is being captured in the stream", op));
	return 0;
}

/* 1, 0 or -errno. */
static int is_done(const struct cuda_call *c, cudaError_t err)
{
	if (err != cudaErrorNotReady)
		return cuda_check(c->op, err) ?: 1;
	cudaGetLastError();
	return 0;
}

static int stream_synchronize(int device, void *stream)
{
	struct cuda_call c;
	int err = begin_outside(&c, "cuda_stream_synchronize", device, stream);

	if (err)
		return err;
	err = cuda_end(&c, cuda_check(c.op, cudaStreamSynchronize(stream)));
	cuda_reap();
	return err ? err : cuda_checks_report(c.op, device);
}

static int stream_query(int device, void *stream)
{
	struct cuda_call c;
	int err = begin_outside(&c, "cuda_stream_query", device, stream);

	if (err)
		return err;
	err = is_done(&c, cudaStreamQuery(stream));
	return err < 0 ? cuda_end(&c, err) : cuda_end(&c, 0) ?: err;
}

bool cuda_streams_busy(int device)
{
	bool busy;
	int before;

	if (cudaGetDevice(&before) != cudaSuccess || cudaSetDevice(device) != cudaSuccess)
		return false;
	busy = cudaStreamQuery(NULL) == cudaErrorNotReady;
	lock_pools();
	for (int i = 0; i < PRIORITIES * STREAMS && !busy; i++) {
		cudaStream_t s = pools[device][i / STREAMS].stream[i % STREAMS];

		busy = s && cudaStreamQuery(s) == cudaErrorNotReady;
	}
	unlock_pools();
	cudaGetLastError(); /* clears cudaErrorNotReady */
	cudaSetDevice(before);
	return busy;
}

static int stream_wait(int device, void *stream, tensor_cuda_event *event)
{
	struct cuda_call c;
	int err = begin_outside(&c, "cuda_stream_wait", device, stream);

	if (err)
		return err;
	return cuda_end(&c, cuda_check(c.op, cudaStreamWaitEvent(stream, event->event, 0)));
}

static int record_stream(tensor *t, void *stream)
{
	struct cuda_call c;
	int err;

	if (!t->storage || t->storage->device.type != TENSOR_CUDA)
		return tensor_fail(EINVAL,
				   "cuda_record_stream: the tensor has no memory on a CUDA device");
	err = begin_outside(&c, "cuda_record_stream", t->storage->device.index, stream);
	if (err)
		return err;
	c.stream = stream;
	return cuda_end(&c, cuda_record_use(&c, t));
}

/* ---- memory of other libraries ---- */

static int check_memory(const char *op, int device, const void *data)
{
	struct cudaPointerAttributes a;
	struct cuda_call c;
	int err = cuda_begin(&c, op, device);

	if (err)
		return err;
	err = cuda_check(op, cudaPointerGetAttributes(&a, data));
	if (!err && (a.type != cudaMemoryTypeManaged &&
		     (a.type != cudaMemoryTypeDevice || a.device != device)))
		err = tensor_fail(EINVAL, "%s: %p is not memory of cuda:%d", op, data, device);
	return cuda_end(&c, err);
}

static int read_memory(const char *op, int device, void *to, const void *from, size_t nbytes)
{
	struct cuda_call c;
	int err = cuda_begin(&c, op, device);

	if (err)
		return err;
	if (c.capture)
		return cuda_end(&c, cuda_refuse(&c, "waits for the device"));
	err = cuda_check(op, cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDeviceToHost, c.stream));
	return cuda_end(&c, err ? err : cuda_wait(&c));
}

static void when_done(int device, void (*fn)(void *arg), void *arg)
{
	struct cuda_call c;

	if (cuda_forked || cuda_begin(&c, "release", device) < 0) {
		fn(arg);
		return;
	}
	if (c.capture) {
		c.stream = cuda_capture_before(c.capture);
		c.capture = NULL;
	}
	cuda_call_later(&c, fn, arg);
	cuda_end(&c, 0);
	cuda_reap();
}

/* ---- events ---- */

static int event_new(int device, unsigned int flags, tensor_cuda_event **to)
{
	tensor_cuda_event *e;
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_event_new", device);

	if (err)
		return err;
	if (flags & ~(unsigned int)(TENSOR_CUDA_EVENT_TIMING | TENSOR_CUDA_EVENT_BLOCKING))
		return cuda_end(&c, tensor_fail(EINVAL, "%s: unknown flags %#x", c.op, flags));
	e = calloc(1, sizeof(*e));
	if (!e)
		return cuda_end(&c, tensor_fail(ENOMEM, "%s: no memory", c.op));
	e->device = device;
	e->flags = flags;
	err = cuda_check(
		c.op,
		cudaEventCreateWithFlags(
			&e->event,
			(flags & TENSOR_CUDA_EVENT_TIMING ? 0 : cudaEventDisableTiming) |
				(flags & TENSOR_CUDA_EVENT_BLOCKING ? cudaEventBlockingSync : 0)));
	if (err)
		free(e);
	else
		*to = e;
	return cuda_end(&c, err);
}

static int event_record(tensor_cuda_event *e, void *stream)
{
	struct cuda_call c;
	int err = begin_outside(&c, "cuda_event_record", e->device, stream);

	if (err)
		return err;
	err = cuda_check(c.op, cudaEventRecord(e->event, stream));
	if (!err)
		atomic_store(&e->recorded, true);
	return cuda_end(&c, err);
}

static int event_query(tensor_cuda_event *e)
{
	struct cuda_call c;
	int err = begin_outside(&c, "cuda_event_query", e->device, NULL);

	if (err)
		return err;
	err = is_done(&c, cudaEventQuery(e->event));
	return err < 0 ? cuda_end(&c, err) : cuda_end(&c, 0) ?: err;
}

static int event_synchronize(tensor_cuda_event *e)
{
	struct cuda_call c;
	int err = begin_outside(&c, "cuda_event_synchronize", e->device, NULL);

	if (err)
		return err;
	err = cuda_end(&c, cuda_check(c.op, cudaEventSynchronize(e->event)));
	cuda_reap();
	return err ? err : cuda_checks_report(c.op, e->device);
}

static int event_elapsed(tensor_cuda_event *from, tensor_cuda_event *to, float *ms)
{
	const char *why = !(from->flags & to->flags & TENSOR_CUDA_EVENT_TIMING) ?
				  "was made without TENSOR_CUDA_EVENT_TIMING" :
			  !from->recorded || !to->recorded ? "was not recorded" :
							     NULL;
	struct cuda_call c;
	cudaError_t status;
	int err;

	if (why)
		return tensor_fail(EINVAL, "cuda_event_elapsed: an event %s", why);
	if (from->device != to->device)
		return tensor_fail(EINVAL, "cuda_event_elapsed: events of cuda:%d and cuda:%d",
				   from->device, to->device);
	err = begin_outside(&c, "cuda_event_elapsed", from->device, NULL);
	if (err)
		return err;
	status = cudaEventElapsedTime(ms, from->event, to->event);
	if (status != cudaErrorNotReady)
		return cuda_end(&c, cuda_check(c.op, status));
	cudaGetLastError();
	return cuda_end(&c, tensor_fail(EAGAIN, "%s: an event is not reached", c.op));
}

/* CUDA frees the event once it has been reached. */
static void event_release(tensor_cuda_event *e)
{
	if (!cuda_forked)
		cudaEventDestroy(e->event);
	free(e);
}

const struct cuda_stream_calls cuda_stream_functions = {
	.set_device = set_device,
	.current_device = current_device,
	.properties = properties,
	.memory_info = memory_info,
	.stream = stream,
	.synchronize = stream_synchronize,
	.query = stream_query,
	.wait = stream_wait,
	.record_stream = record_stream,
	.check_memory = check_memory,
	.read = read_memory,
	.when_done = when_done,
	.event = event_new,
	.event_record = event_record,
	.event_query = event_query,
	.event_synchronize = event_synchronize,
	.event_elapsed = event_elapsed,
	.event_release = event_release,
};
