/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * CUDA devices: availability, streams and events, memory, graphs. Tensors are created on or moved to
 * a device through options (TENSOR_DEVICE_CUDA(0)) and tensor_to(); operators are the same as on the
 * CPU.
 *
 * CUDA is a plugin, libtensor_cuda.so.0, which the first of these calls or the first CUDA tensor
 * loads. TENSOR_CUDA_PLUGIN names another file; otherwise it is searched beside libtensor and then
 * in the loader's path. Without plugin, driver or device, every call here fails with the reason in
 * the error record.
 *
 * A forked child cannot use its parent's devices: every call fails there with ENODEV.
 */
#ifndef TENSOR_CUDA_H
#define TENSOR_CUDA_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tensor_cuda_graph tensor_cuda_graph;
typedef struct tensor_cuda_event tensor_cuda_event;

/* True if tensors can be made on a CUDA device. Does not change the error record. */
bool tensor_cuda_is_available(void);
/* Number of devices, at least 1; -ENODEV with the reason in the error record if there are none. */
int tensor_cuda_device_count(void);

/*
 * The calling thread's current device, that of cudaGetDevice(). It is where Python's device "cuda" is; functions of this
 * library take the device from their arguments and keep the current one. 0 or -errno.
 */
int tensor_cuda_set_device(int device);
int tensor_cuda_current_device(void); /* or -errno */

struct tensor_cuda_properties {
	char name[256];
	uint8_t uuid[16];
	uint64_t memory;	 /* bytes */
	uint64_t shared_memory;	 /* bytes of a block at most */
	int32_t major, minor;	 /* compute capability */
	int32_t multiprocessors; /* also called SMs */
	int32_t threads;	 /* of a multiprocessor at most */
	int32_t l2_cache;	 /* bytes */
	int32_t pci_domain, pci_bus, pci_device;
	int32_t integrated; /* 1: it shares the host's memory */
};
/* 0 or -errno. */
int tensor_cuda_device_properties(int device, struct tensor_cuda_properties *properties);

/*
 * Streams. Work is ordered only within a stream, and the work of different streams may run at the same time: to use a
 * tensor in another stream, make that stream wait for an event. Memory is not reused before every stream in which an
 * operator used it has finished.
 *
 *	void *side = tensor_cuda_stream(0, 0);
 *	tensor_cuda_event *ready = tensor_cuda_event_new(0, 0);
 *
 *	tensor_cuda_event_record(ready, tensor_cuda_current_stream(0));
 *	tensor_cuda_stream_wait(0, side, ready);        side sees all that was queued so far
 *	tensor_cuda_set_stream(0, side);
 *	...                                             operators
 *	tensor_cuda_event_release(ready);
 *
 * A stream is a cudaStream_t. NULL is CUDA's default stream, which is a thread's initial one. The streams of
 * tensor_cuda_stream() do not wait for the default stream, and belong to the library. A stream of the program must live
 * as long as memory that was allocated in it: before it is destroyed, wait for it, release its tensors and call
 * tensor_cuda_memory_trim(). It must also live as long as tensors of other streams that an operator used in it, or that
 * tensor_cuda_record_stream() was called for with it. Functions return 0 or -errno. In a thread that captures a graph on the device, those that
 * order streams or wait fail with EOPNOTSUPP, which ends the capture.
 */
/* One of the device's 32 streams of a priority, in turns, so that many callers get different ones. priority: 0, or less for
 * higher ones, as far as the device has them. NULL with the error set. */
void *tensor_cuda_stream(int device, int priority);
/* The calling thread's current stream on the device, in which its operators run. EINVAL: cudaStreamPerThread, because
 * memory belongs to streams, and that one is another stream in each thread. */
int tensor_cuda_set_stream(int device, void *stream);
void *tensor_cuda_current_stream(int device);
/* Wait for the work that is queued in the stream; also returns errors of that work. */
int tensor_cuda_stream_synchronize(int device, void *stream);
/* 1: all work of the stream is done; 0: it is not. */
int tensor_cuda_stream_query(int device, void *stream);
/* Work that is queued in the stream from now on follows what the event recorded, also on another device. The host does not wait. */
int tensor_cuda_stream_wait(int device, void *stream, tensor_cuda_event *event);
/* For work that is not the library's: the stream uses the memory of t, which is not reused before the work that is in the
 * stream when t's memory is released has finished: the stream must exist until then. It may be of another device. The call
 * does nothing for memory of another library (tensor_from_dlpack()). EINVAL: t is not on a CUDA device. */
int tensor_cuda_record_stream(tensor *t, void *stream);

/* Events: points in the work of a stream. An event that was never recorded counts as reached. */
#define TENSOR_CUDA_EVENT_TIMING   1 /* for tensor_cuda_event_elapsed() */
#define TENSOR_CUDA_EVENT_BLOCKING 2 /* tensor_cuda_event_synchronize() sleeps rather than spins */
/* Owned by the caller. NULL with the error set. */
tensor_cuda_event *tensor_cuda_event_new(int device, unsigned int flags);
/* After all work that is queued now in a stream of the event's device. */
int tensor_cuda_event_record(tensor_cuda_event *event, void *stream);
int tensor_cuda_event_query(tensor_cuda_event *event); /* 1: reached, 0: not yet */
int tensor_cuda_event_synchronize(tensor_cuda_event *event);
/* Milliseconds between two events of a device that were recorded and reached. EINVAL: one was made without timing or not
 * recorded, or they are of different devices; EAGAIN: one is not reached. */
int tensor_cuda_event_elapsed(tensor_cuda_event *from, tensor_cuda_event *to, float *milliseconds);
void tensor_cuda_event_release(tensor_cuda_event *event); /* NULL is ignored; waits for nothing */

/* Wait for all work of a device; 0, or -errno for an error in that work. */
int tensor_cuda_synchronize(int device);

/*
 * Memory of the calling process on a device, in bytes. Freed memory stays in a cache; an allocation
 * that CUDA refuses trims it and is tried again (`retries`). tensor_cuda_memory_trim() returns what
 * is not in use to the driver: segments without a tensor, or with TENSOR_CUDA_SEGMENTS=expandable
 * (docs/cuda.md) all parts of 2 or 20 MiB without one. 0 or -errno.
 */
struct tensor_cuda_usage {
	uint64_t allocated, allocated_peak; /* in tensors, rounded to 512 */
	uint64_t reserved, reserved_peak;   /* taken from the driver: tensors and cache */
	uint64_t segments;		    /* allocations of the driver, or ranges of addresses */
	uint64_t allocations;		    /* of tensors and kernels, since the start or a reset */
	uint64_t retries;
};
int tensor_cuda_memory(int device, struct tensor_cuda_usage *memory);
int tensor_cuda_memory_trim(int device);

/*
 * Statistics of the same memory, with the names and meanings of PyTorch's memory_stats(): of all, of
 * requests of up to 1 MiB (small_pool), and of larger ones (large_pool).
 */
struct tensor_cuda_stat {
	uint64_t current, peak;	   /* peak: since the start or its last reset */
	uint64_t allocated, freed; /* sums since the start or their last reset */
};
struct tensor_cuda_stat_pools {
	struct tensor_cuda_stat all, small_pool, large_pool;
};
struct tensor_cuda_stats {
	/* Blocks of tensors and kernels, and their bytes, rounded to 512 and as they were requested. */
	struct tensor_cuda_stat_pools allocation, allocated_bytes, requested_bytes;
	/* The same as allocation and allocated_bytes: a freed block can be used at once. */
	struct tensor_cuda_stat_pools active, active_bytes;
	/* Taken from the driver. */
	struct tensor_cuda_stat_pools segment, reserved_bytes;
	/* Free parts of segments that are in use. */
	struct tensor_cuda_stat_pools inactive_split, inactive_split_bytes;
	uint64_t num_alloc_retries; /* allocations that were tried again after a trim */
	uint64_t num_ooms;	    /* and that failed for lack of device memory */
	uint64_t num_device_alloc, num_device_free; /* calls of the driver */
};
int tensor_cuda_memory_stats(int device, struct tensor_cuda_stats *stats);
/* The peaks become the current values, also that of tensor_cuda_memory(). */
int tensor_cuda_memory_reset_peak(int device);
/* The sums and the four numbers at the end become 0, and `allocations` and `retries` of tensor_cuda_memory(). */
int tensor_cuda_memory_reset_accumulated(int device);
/* Bytes of the device, and those of them that no process has; the cache of this process is not among the latter. */
int tensor_cuda_memory_info(int device, uint64_t *unused, uint64_t *total);

/*
 * A dma-buf of the memory that the tensor's storage is in, for drivers of other devices (RDMA, video, storage) and for
 * tensor_from_buffer_fd(), which maps it if the driver of the GPU permits that. It is of the caller, who closes it. *size:
 * bytes of it; *offset: where the first element of t is, whose other elements follow by its strides.
 *
 * As before a first tensor_send(), the first export of a storage waits for the device and moves the storage into memory of
 * its own, which the cache never uses again: addresses that the program took before are invalid. The descriptor keeps the
 * memory, also after the tensor's release. Nothing orders the accesses of other devices with the GPU's work: call
 * tensor_cuda_synchronize() before they begin, and let them end before the GPU uses the tensor.
 *
 * Returns the descriptor, or -errno. EINVAL: t is not a strided tensor on a CUDA device. EOPNOTSUPP: the driver makes no
 * dma-bufs of the device's memory (they need the open kernel modules), or t's memory is of another library. EBUSY: a graph
 * or another library has the address: clone the tensor. EMFILE: as many files are open as RLIMIT_NOFILE permits.
 */
int tensor_cuda_export_dmabuf(tensor *t, uint64_t *offset, uint64_t *size);

/*
 * An operator that CUDA has no kernel for (docs/cuda.md) runs on the CPU: its tensors are copied to
 * the host, and its results to the device. The first such call of an operator prints a warning. If
 * that is not allowed, the operator fails with EOPNOTSUPP; the environment variable
 * TENSOR_CUDA_FALLBACK=0 forbids it, too. For all threads; returns the previous state.
 */
bool tensor_cuda_set_fallback(bool allow);
/* Calls of the operator with that schema name that the CPU computed for CUDA, NULL: of all operators; -ENOENT. */
int64_t tensor_cuda_fallbacks(const char *name);

/*
 * Checks of values on a device: indices, classes of nll_loss, offsets of embedding_bag, probabilities, divisors of integers.
 *
 * LATE, the default: the call queues the check and returns. If a value is refused, results that depend on it are defined, but
 * of no use (zeros in their places), and index_put, index_add, scatter and in-place divisions leave their destination unchanged.
 * The error is that of the next call of any thread that waits for work of the device on behalf of the program: a copy to the
 * host, tensor_item(), an operator that waits for a value, tensor_cuda_synchronize(), tensor_cuda_stream_synchronize(),
 * tensor_cuda_event_synchronize(), tensor_cuda_graph_wait(), tensor_cuda_memory_trim(). It has the code of the check, and its
 * text names the operator, the value and the number of further refused checks, and that it is late. The call that returns it
 * has done its work, but for operators, which have changed nothing; it succeeds when it is repeated. If no call waits, the
 * error is printed when the process exits.
 * WAIT: the call waits for its stream and fails itself, before the program can use what it has computed.
 *
 * For all threads and devices. The environment variable TENSOR_CUDA_CHECKS=wait sets the initial value. Replays of graphs
 * report to tensor_cuda_graph_wait() in both cases.
 */
#define TENSOR_CUDA_CHECKS_LATE 0
#define TENSOR_CUDA_CHECKS_WAIT 1
/* The mode before; -EINVAL for another one. Loads no plugin. */
int tensor_cuda_set_checks(int mode);
int tensor_cuda_checks(void);

/*
 * By default, copies between a device and host memory have finished when they return. If this is
 * enabled in a thread, a copy returns at once if its host side is a pinned buffer (a shareable
 * tensor, contiguous and of the device tensor's dtype). The thread must not access the host side
 * before tensor_cuda_synchronize(); its memory is kept until then. Returns the previous state.
 */
bool tensor_cuda_set_nonblocking(bool nonblocking);

/*
 * Graphs: operators are captured once, without running, and a replay queues all of them by one call.
 *
 *	tensor_cuda_graph *step = tensor_cuda_graph_new(0);
 *
 *	...                                         one step as usual, so that all states exist
 *	tensor_cuda_graph_capture_begin(step, NULL);
 *	...                                         the same step: forward, backward, optimizer
 *	tensor_cuda_graph_capture_end(step);
 *	while (next(x, y))                          writes to the tensors that were captured
 *		tensor_cuda_graph_replay(step);
 *
 * Between begin and end the calling thread's operators on the device are captured; other threads and devices work as
 * usual. Operators on the CPU run as usual, once. A replay is work of the calling thread's current stream. It
 * reads and writes the same memory as the captured operators: results of the capture are defined after a replay, and
 * change with each one. The graph holds the memory that its operators use; that of tensors which are allocated in the
 * capture comes from a pool of the graph, which is not used for other tensors before the graph is reset. What reads
 * results in another stream must be finished (an event) before the next replay, as with any work of two streams.
 *
 * Numbers of host code are those of the capture, sizes, loops and learning rates among them, except: a replay draws new
 * random numbers, the same ones as the captured operators would draw then, and counts the steps of tensor_optim_step().
 * The states of optimizers must exist before the capture. An index or value that is out of range in a replay is an error
 * of tensor_cuda_graph_wait().
 *
 * What makes the host wait for the device, or runs on the CPU, cannot be captured: tensor_item() and copies to the
 * host, copies of host memory that is not pinned (a shareable tensor, contiguous), operators whose result's shape
 * depends on values, operators without a kernel, Fourier transforms, copies between devices, collectives of process
 * groups, the second run of a checkpoint that drew random numbers outside of the capture. Such a call fails with
 * EOPNOTSUPP, and as every call that fails on the device it ends the capture: capture_end fails with ECANCELED and the
 * reason, later calls run as usual, and tensor_cuda_graph_reset() makes the graph usable again.
 *
 * A graph is used by one thread at a time. Functions return 0 or -errno.
 */
/* An empty graph for a device, owned by the caller. NULL with the error set. */
tensor_cuda_graph *tensor_cuda_graph_new(int device);
/*
 * Begin to capture. The thread must not set the device's stream until the end. with: a graph that was captured, whose
 * pool is used, too, if their replays never run at the same time and results of one are not needed after a replay of
 * the other; NULL: a pool of its own. EBUSY: the graph is not empty, or the thread or a graph of the pool is capturing.
 */
int tensor_cuda_graph_capture_begin(tensor_cuda_graph *graph, tensor_cuda_graph *with);
/* End the capture, in the same thread, and make the graph ready. A step of an optimizer has not been counted. */
int tensor_cuda_graph_capture_end(tensor_cuda_graph *graph);
/*
 * Allow operators of the capture to draw from g, before the first of them. The default generator is registered by
 * itself. EBUSY after the capture, ENOSPC: 32 are registered.
 */
int tensor_cuda_graph_register_generator(tensor_cuda_graph *graph, tensor_generator *g);
/* Queue the captured work. EINVAL: nothing was captured. */
int tensor_cuda_graph_replay(tensor_cuda_graph *graph);
/* Wait for the last replay of the graph's pool. ERANGE: an index or value of a replay since the last call was out of
 * range, and what was computed from it is undefined. */
int tensor_cuda_graph_wait(tensor_cuda_graph *graph);
/* Wait for the replays, and release what the graph holds; it is empty then. Ends a capture of this thread. */
int tensor_cuda_graph_reset(tensor_cuda_graph *graph);
/* Reset and free the graph; NULL is ignored. EBUSY if another thread captures it. Does not wait in a forked child. */
int tensor_cuda_graph_release(tensor_cuda_graph *graph);
/* True if the calling thread captures on the device. */
bool tensor_cuda_is_capturing(int device);

#ifdef __cplusplus
}
#endif
#endif
