/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Shared by the files of the emulation, which are compiled without a sanitizer; CUDA_HOST_ASAN and
 * CUDA_HOST_TSAN say which one the plugin has. One lock covers all state: every function of the API
 * takes it (class host_call), and queued work runs in the calling thread, with the lock held.
 *
 * Order of the files, lowest first: memory.cc, queue.cc, graph.cc, block.cc, runtime.cc, driver.cc, blas.cc; fft/, solver/ and nccl/ are
 * libraries of their own.
 */
#ifndef CUDA_HOST_HPP
#define CUDA_HOST_HPP

#include "cuda_host.h"
#include "cuda_runtime.h"

#include <functional>
#include <memory>
#include <pthread.h>
#include <vector>

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

/* ---- sanitizers ---- */

#ifdef CUDA_HOST_TSAN
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
void __tsan_read_range(void *address, unsigned long size);
void __tsan_write_range(void *address, unsigned long size);
}
static inline void host_acquire(void *address)
{
	__tsan_acquire(address);
}
static inline void host_release(void *address)
{
	__tsan_release(address);
}
/* Contexts of ThreadSanitizer. A switch orders nothing. */
static inline void *host_context(void)
{
	return __tsan_get_current_fiber();
}
static inline void *host_context_new(void)
{
	return __tsan_create_fiber(0);
}
static inline void host_context_switch(void *context)
{
	__tsan_switch_to_fiber(context, 1);
}
#else
static inline void host_acquire(void *)
{
}
static inline void host_release(void *)
{
}
static inline void *host_context(void)
{
	return nullptr;
}
static inline void *host_context_new(void)
{
	return nullptr;
}
static inline void host_context_switch(void *)
{
}
#endif

/* Prints the message, with the kernel and the thread that runs, and ends the process. */
[[noreturn]] void host_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Calls what cuda_host_before_free() has set; the caller holds no lock. */
void host_before_free(void);

/* ---- memory of the devices (memory.cc) ---- */

enum { HOST_DEVICES = 8 };

int host_device_count(void);
cudaError_t host_malloc(int device, size_t size, void **data);
/* False if data is not the begin of an allocation. */
bool host_free(void *data);
/* The device that a pointer belongs to, or -1. */
int host_device_of(const void *data);
/* Ends the process unless all bytes may be accessed. `what` describes the access. */
void host_check(const void *data, size_t size, bool write, const char *what);
/* Allows or forbids the access of a part of an allocation; an allowed one has garbage. */
void host_allow(void *data, size_t size);
void host_forbid(void *data, size_t size);
/* Device memory of `devices` (a bit each) is accessible in between. */
void host_open(unsigned devices);
void host_close(void);
/* Ranges of addresses without memory, and files that are mapped into parts of them. NULL: no address is free. */
void *host_reserve(int device, size_t size, size_t alignment);
/* Whether a reserved range has these bytes. */
bool host_reserved(void *data, size_t size);
bool host_unreserve(void *data, size_t size);
void host_map(void *data, size_t size, int fd);
/* Allows the access, and keeps the content. */
void host_permit(void *data, size_t size);
void host_unmap(void *data, size_t size);
/* Counts memory that has no address; false if the device has no more. */
bool host_take(int device, size_t size);
void host_give(int device, size_t size);
void host_memory_info(int device, size_t *available, size_t *total);
size_t host_memory_allocated(void);

/* Pinned ranges of host memory. */
cudaError_t host_pin(void *data, size_t size, unsigned flags);
cudaError_t host_unpin(void *data);
bool host_pinned(const void *data, size_t size);
/* Whether kernels may access that host memory. */
bool host_mapped(const void *data, size_t size);

/* ---- streams and queued work (queue.cc) ---- */

struct host_op {
	const char *name;
	CUstream_st *stream;
	unsigned devices;			     /* whose memory it accesses */
	std::vector<std::shared_ptr<host_op>> after; /* what it waits for; empty once it has run */
	std::function<void()> work;
	std::function<bool()> ready; /* or none: what other processes must have done before */
	bool done;
};

struct host_fibers;

/* What an operation of a graph becomes when the graph is launched. */
struct host_node {
	const char *name;
	unsigned devices;
	std::function<void()> work;
};

struct host_capture {
	unsigned long id; /* never used again */
	pthread_t thread;
	enum cudaStreamCaptureMode mode;
	bool invalid;
	std::vector<host_node> nodes;
};

struct CUstream_st {
	int device;
	bool blocking, is_default;
	std::shared_ptr<host_op> last;
	void *context;	       /* of ThreadSanitizer */
	host_fibers *fibers;   /* of block.cc */
	host_capture *capture; /* open, or NULL */
};

struct CUevent_st {
	int device;
	unsigned long queries;
	std::shared_ptr<host_op> recorded;
	std::shared_ptr<double> when; /* in milliseconds; NULL: without timing */
	unsigned long captured;	      /* recorded last in the capture of this id, or 0 */
};

/* NULL is the default stream of the device. Ends the process if the handle is not a stream. */
CUstream_st *host_stream(cudaStream_t handle, int device);
CUstream_st *host_stream_new(int device, bool blocking);
void host_stream_delete(CUstream_st *stream);
/* Queues work; it also waits for `event` unless that is NULL. In a stream that is captured the work becomes a node, and
 * there is no result. */
std::shared_ptr<host_op> host_submit(CUstream_st *stream, const char *name, unsigned devices,
				     std::function<void()> work,
				     const std::shared_ptr<host_op> &event = nullptr,
				     std::function<bool()> ready = nullptr);
/* Runs the operation and what it waits for. The host's thread is ordered after it. Without the lock while it waits for
 * another process. */
void host_require(std::shared_ptr<host_op> op);
/* The same as far as it needs no other process. True if the operation has run. */
bool host_try(const std::shared_ptr<host_op> &op);
void host_require_device(int device);
/* May run some operations; called at the begin of each call of the API. */
void host_progress(void);
/* A number below n, from the seed. */
unsigned host_random(unsigned n);
unsigned long host_pending(void);
/* All streams, also destroyed ones. */
const std::vector<CUstream_st *> &host_streams(void);
/* The operation that runs, or NULL. */
const host_op *host_running(void);

/* ---- dma-bufs (dmabuf.cc) ---- */

/* A dma-buf of a part of a memfd: its descriptor. -1: there is no /dev/udmabuf; -2: it fails. */
int host_udmabuf(int memory, size_t offset, size_t size);
/* Memory that is a dma-buf with this name: its descriptor. -1: there is /dev/udmabuf, or no vgem. */
int host_vgem(size_t size, const char *name);

/* ---- captures (graph.cc) ---- */

/* Each returns cudaSuccess, or the error of a call that a capture forbids, which invalidates the capture. */
/* Before work in the stream. */
cudaError_t host_may_queue(CUstream_st *stream);
/* Before a call that the documentation names potentially unsafe. */
cudaError_t host_may_be_unsafe(void);
/* Before a wait for the stream, or for all of a device. */
cudaError_t host_may_wait(CUstream_st *stream);
cudaError_t host_may_wait_device(int device);
/* Before the stream waits for the event. */
cudaError_t host_may_follow(CUstream_st *stream, const CUevent_st *event);
/* Ends the usefulness of the stream's capture, if there is one. */
void host_invalidate(CUstream_st *stream);

/* ---- kernels (block.cc) ---- */

/* Runs all blocks, in the context of the stream. */
void host_run_kernel(const cuda_host_kernel *launch, const char *name, CUstream_st *stream);
/* Name, block and thread of the kernel that this thread of the process runs; false if none. */
bool host_kernel_position(char *text, size_t size);

/* ---- calls (runtime.cc) ---- */

extern struct cuda_host_counts host_counts;
/* Takes the lock, lets queued work make progress and finds out whether the call is to fail. */
class host_call
{
      public:
	explicit host_call(const char *function);
	~host_call();
	/* The error that cuda_host_fail() has set for this call, or 0. */
	int injected;
};
/* Begins a function of the API that returns a cudaError_t. */
#define API()                     \
	host_call call(__func__); \
	if (call.injected)        \
	return host_result((cudaError_t)call.injected)

/* A call that makes the host wait; kind: one of the counters. */
void host_count_wait(unsigned long *kind);
/* Drops the lock for a moment. */
void host_wait(void);
int host_current_device(void);
cudaError_t host_result(cudaError_t error);

#endif
