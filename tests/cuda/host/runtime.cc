// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The functions of the runtime's API, but those of streams.cc, copies.cc and graph.cc. Arguments are checked as its
 * documentation describes. Where the documentation leaves the behaviour undefined, the process ends with a message.
 */
#include "host.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <dlfcn.h>
#include <map>
#include <pthread.h>
#include <string>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int current;
static __thread cudaError_t last;
struct cuda_host_counts host_counts;

static struct {
	std::string function; /* empty: any */
	unsigned long nth, calls;
	int error;
} fails;

/* ---- a call ---- */

static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void drop_lock(void)
{
	pthread_mutex_unlock(&lock);
}

static bool runtime_init(void)
{
	pthread_atfork(take_lock, drop_lock, drop_lock);
	return true;
}

static const bool initialised = runtime_init();

/* Of the functions that cuda_host_fail(NULL) means. */
static bool can_fail(const char *function)
{
	return !strncmp(function, "cuda", 4) && strcmp(function, "cudaSetDevice") != 0;
}

host_call::host_call(const char *function) : injected(0)
{
	take_lock();
	if (!function)
		return;
	host_progress();
	if (fails.nth &&
	    (fails.function.empty() ? can_fail(function) : fails.function == function)) {
		fails.calls++;
		if (fails.calls == fails.nth)
			injected = fails.error;
	}
}

host_call::~host_call()
{
	drop_lock();
}

void host_wait(void)
{
	drop_lock();
	usleep(50);
	take_lock();
}

int host_current_device(void)
{
	return current;
}

cudaError_t host_result(cudaError_t error)
{
	if (error != cudaSuccess)
		last = error;
	return error;
}

void cuda_host_fail(const char *function, unsigned long nth, int error)
{
	host_call call(nullptr);

	fails.function = function ? function : "";
	fails.nth = nth;
	fails.calls = 0;
	fails.error = error;
}

unsigned long cuda_host_calls(void)
{
	host_call call(nullptr);

	return fails.calls;
}

void cuda_host_counts(struct cuda_host_counts *counts)
{
	host_call call(nullptr);

	*counts = host_counts;
	counts->pending = host_pending();
	counts->allocated = host_memory_allocated();
}

static int64_t read_narrow(void)
{
	const char *text = getenv("CUDA_HOST_NARROW");

	return text && *text ? strtoll(text, nullptr, 0) : INT32_MAX;
}

int64_t cuda_host_narrow_limit = read_narrow();

int64_t cuda_host_narrow(void)
{
	return cuda_host_narrow_limit;
}

void cuda_host_offset_too_large(int64_t value)
{
	host_fatal("an offset of 32 bits is %lld, above the limit %lld", (long long)value,
		   (long long)cuda_host_narrow_limit);
}

void host_count_wait(unsigned long *kind)
{
	host_counts.waits++;
	++*kind;
}

/* ---- errors ---- */

static const std::map<int, std::pair<const char *, const char *>> texts = {
	{ cudaSuccess, { "cudaSuccess", "no error" } },
	{ cudaErrorInvalidValue, { "cudaErrorInvalidValue", "invalid argument" } },
	{ cudaErrorMemoryAllocation, { "cudaErrorMemoryAllocation", "out of memory" } },
	{ cudaErrorInvalidConfiguration,
	  { "cudaErrorInvalidConfiguration", "invalid configuration argument" } },
	{ cudaErrorNoDevice, { "cudaErrorNoDevice", "no CUDA-capable device is detected" } },
	{ cudaErrorInvalidDevice, { "cudaErrorInvalidDevice", "invalid device ordinal" } },
	{ cudaErrorInvalidResourceHandle,
	  { "cudaErrorInvalidResourceHandle", "invalid resource handle" } },
	{ cudaErrorNotReady, { "cudaErrorNotReady", "device not ready" } },
	{ cudaErrorIllegalAddress,
	  { "cudaErrorIllegalAddress", "an illegal memory access was encountered" } },
	{ cudaErrorLaunchFailure, { "cudaErrorLaunchFailure", "unspecified launch failure" } },
	{ cudaErrorStreamCaptureUnsupported,
	  { "cudaErrorStreamCaptureUnsupported",
	    "operation not permitted when stream is capturing" } },
	{ cudaErrorStreamCaptureInvalidated,
	  { "cudaErrorStreamCaptureInvalidated",
	    "operation failed due to a previous error during capture" } },
	{ cudaErrorStreamCaptureUnmatched,
	  { "cudaErrorStreamCaptureUnmatched",
	    "capture was not ended in the same stream as it began" } },
	{ cudaErrorStreamCaptureIsolation,
	  { "cudaErrorStreamCaptureIsolation",
	    "dependency created on uncaptured work in another stream" } },
	{ cudaErrorStreamCaptureImplicit,
	  { "cudaErrorStreamCaptureImplicit",
	    "operation would make the legacy stream depend on a capturing blocking stream" } },
	{ cudaErrorCapturedEvent,
	  { "cudaErrorCapturedEvent",
	    "operation not permitted on an event last recorded in a capturing stream" } },
	{ cudaErrorStreamCaptureWrongThread,
	  { "cudaErrorStreamCaptureWrongThread",
	    "attempt to terminate a thread-local capture sequence from another thread" } },
};

const char *cudaGetErrorName(cudaError_t error)
{
	auto at = texts.find(error);

	return at == texts.end() ? "cudaErrorUnknown" : at->second.first;
}

const char *cudaGetErrorString(cudaError_t error)
{
	auto at = texts.find(error);

	return at == texts.end() ? "unknown error" : at->second.second;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last;

	last = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last;
}

/* ---- devices ---- */

cudaError_t cudaRuntimeGetVersion(int *version)
{
	API();
	*version = 13000;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	API();
	*count = host_device_count();
	return host_result(*count ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device)
{
	API();
	*device = current;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	API();
	if (device < 0 || device >= host_device_count())
		return host_result(cudaErrorInvalidDevice);
	current = device;
	return cudaSuccess;
}

/* Each process has devices of its own. */
cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device)
{
	API();
	if (device < 0 || device >= host_device_count())
		return host_result(cudaErrorInvalidDevice);
	if (!id || size < 20)
		return host_result(cudaErrorInvalidValue);
	snprintf(id, (size_t)size, "%08x:%02x:00.0", (unsigned)getpid(), (unsigned)device);
	return cudaSuccess;
}

/* Different for each process as its PCI address, unless the processes of a test name one machine. */
static void set_uuid(cudaUUID_t *uuid, int device)
{
	const char *machine = getenv("CUDA_HOST_UUID");

	if (machine && *machine)
		snprintf(uuid->bytes, sizeof(uuid->bytes), "%s", machine);
	else
		snprintf(uuid->bytes, sizeof(uuid->bytes), "%x", (unsigned)getpid());
	uuid->bytes[sizeof(uuid->bytes) - 1] = (char)device;
}

/* An invented device. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	API();
	size_t available;

	if (device < 0 || device >= host_device_count())
		return host_result(cudaErrorInvalidDevice);
	*properties = {};
	snprintf(properties->name, sizeof(properties->name), "Emulated device %d", device);
	set_uuid(&properties->uuid, device);
	host_memory_info(device, &available, &properties->totalGlobalMem);
	properties->sharedMemPerBlockOptin = 232448;
	properties->major = 9;
	properties->multiProcessorCount = 132;
	properties->maxThreadsPerMultiProcessor = 2048;
	properties->l2CacheSize = 50 << 20;
	properties->pciBusID = device;
	properties->pciDomainID = getpid();
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
	/* Another thread may begin a capture after the caller has looked for one. */
	usleep(20);
	API();
	cudaError_t err = host_may_wait_device(current);

	if (err != cudaSuccess)
		return host_result(err);
	host_count_wait(&host_counts.waits_device);
	host_require_device(current);
	return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *data)
{
	API();
	const int device = host_device_of(data);

	*attributes = {};
	attributes->device = device >= 0 ? device : -2;
	if (device >= 0) {
		attributes->type = cudaMemoryTypeDevice;
		attributes->devicePointer = (void *)data;
	} else if (host_pinned(data, 1)) {
		attributes->type = cudaMemoryTypeHost;
		attributes->hostPointer = (void *)data;
	}
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **data, size_t size)
{
	API();
	cudaError_t err = host_may_be_unsafe();

	*data = nullptr;
	if (err != cudaSuccess)
		return host_result(err);
	host_counts.mallocs++;
	return host_result(size ? host_malloc(current, size, data) : cudaSuccess);
}

static std::atomic<void (*)(void)> before_free;

void cuda_host_before_free(void (*fn)(void))
{
	before_free = fn;
}

void host_before_free(void)
{
	void (*fn)(void) = before_free;

	if (fn)
		fn();
}

cudaError_t cudaFree(void *data)
{
	if (data)
		host_before_free();
	API();
	cudaError_t err = host_may_be_unsafe();

	if (err != cudaSuccess)
		return host_result(err);
	if (!data)
		return cudaSuccess;
	host_counts.frees++;
	host_count_wait(&host_counts.waits_free);
	for (int d = 0; d < host_device_count(); d++)
		host_require_device(d);
	if (!host_free(data))
		host_fatal("cudaFree(%p): not an allocation, or freed twice", data);
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
	API();
	host_memory_info(current, available, total);
	return cudaSuccess;
}

cudaError_t cudaHostRegister(void *data, size_t size, unsigned flags)
{
	API();
	cudaError_t err = host_may_be_unsafe();

	return host_result(err != cudaSuccess ? err : host_pin(data, size, flags));
}

cudaError_t cudaHostUnregister(void *data)
{
	API();
	cudaError_t err = host_may_be_unsafe();

	return host_result(err != cudaSuccess ? err : host_unpin(data));
}

/* Devices and the host have one address space. */
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
	API();
	if (!host_pinned(host, 1) || flags)
		return host_result(cudaErrorInvalidValue);
	*device = host;
	return cudaSuccess;
}

/* ---- the plugin's allocator ---- */

void cuda_host_block_used(int device, void *data, size_t nbytes, size_t size, cudaStream_t stream)
{
	host_call call("block");

	host_submit(host_stream(stream, device), "allocation", 1u << device, [=] {
		host_forbid(data, size);
		host_allow(data, nbytes);
	});
}

void cuda_host_block_free(int device, void *data, size_t size, cudaStream_t stream)
{
	host_call call("block");

	host_submit(host_stream(stream, device), "release", 1u << device,
		    [=] { host_forbid(data, size); });
}

/* ---- launches ---- */

static std::string kernel_name(const void *kernel)
{
	Dl_info info;
	int status;

	if (!dladdr(kernel, &info) || !info.dli_sname)
		return "?";
	char *text = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
	std::string name = text ? text : info.dli_sname;

	free(text);
	return name;
}

static cudaError_t check_launch(const cuda_host_kernel *l, const CUstream_st *s)
{
	const uint64_t most = (uint64_t)1 << 31;
	const dim3 g = l->grid, t = l->block;

	if (!g.x || !g.y || !g.z || !t.x || !t.y || !t.z || g.x >= most || g.y > 65535 ||
	    g.z > 65535 || t.z > 64 || (uint64_t)t.x * t.y > 1024 ||
	    (uint64_t)t.x * t.y * t.z > 1024)
		return cudaErrorInvalidConfiguration;
	return s->device == current ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

/* A pointer among the arguments must be memory of the device, or pinned memory of the host. */
static void check_pointer(const void *p, int device, const char *kernel)
{
	if (!p || host_pinned(p, 1))
		return;
	if (host_device_of(p) < 0)
		host_fatal("an argument of kernel %s is host memory: %p", kernel, p);
	if (host_device_of(p) != device)
		host_fatal("an argument of kernel %s on cuda:%d is memory of cuda:%d: %p", kernel,
			   device, host_device_of(p), p);
}

cudaError_t cuda_host_launch(const cuda_host_kernel *launch, cudaStream_t stream)
{
	host_call call("cudaLaunchKernel");
	CUstream_st *s = host_stream(stream, current);
	std::shared_ptr<void> arguments(launch->arguments, launch->destroy);
	cudaError_t err = call.injected ? (cudaError_t)call.injected : check_launch(launch, s);

	if (err == cudaSuccess)
		err = host_may_queue(s);
	if (err != cudaSuccess)
		return host_result(err);
	std::string name = kernel_name(launch->kernel);
	std::vector<const void *> pointers(launch->pointers, launch->pointers + launch->npointers);
	cuda_host_kernel l = *launch;

	host_counts.launches++;
	for (const void *p : pointers)
		check_pointer(p, s->device, name.c_str());
	l.pointers = nullptr;
	/* A node of a graph runs in the stream of the graph's launch. */
	host_submit(s, "a kernel", 1u << s->device, [l, name, arguments = std::move(arguments)] {
		host_run_kernel(&l, name.c_str(), host_running()->stream);
	});
	return cudaSuccess;
}
