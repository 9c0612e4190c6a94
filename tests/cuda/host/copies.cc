// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Copies of the runtime's API, and the functions that set memory. */
#include "host.hpp"

#include <cstring>

static unsigned device_bit(const void *data)
{
	int device = host_device_of(data);

	return device < 0 ? 0 : 1u << device;
}

static std::shared_ptr<host_op> submit_copy(CUstream_st *s, const char *name, void *to,
					    const void *from, size_t size)
{
	bool pinned_to = host_pinned(to, size), pinned_from = host_pinned(from, size);

	host_counts.copies++;
	return host_submit(s, name, device_bit(to) | device_bit(from), [=] {
		if ((pinned_to && !host_pinned(to, size)) ||
		    (pinned_from && !host_pinned(from, size)))
			host_fatal("%s uses pinned memory that was unregistered", name);
		if (device_bit(to))
			host_check(to, size, true, name);
		if (device_bit(from))
			host_check(from, size, false, name);
		memcpy(to, from, size);
	});
}

static bool direction_is(enum cudaMemcpyKind kind, const void *to, const void *from)
{
	bool to_device = device_bit(to), from_device = device_bit(from);

	switch (kind) {
	case cudaMemcpyHostToHost:
		return !to_device && !from_device;
	case cudaMemcpyHostToDevice:
		return to_device && !from_device;
	case cudaMemcpyDeviceToHost:
		return !to_device && from_device;
	case cudaMemcpyDeviceToDevice:
		return to_device && from_device;
	default:
		return true;
	}
}

/* A copy from pageable memory reads it when it runs. CUDA may do that earlier, but has no promise
 * of a moment before the next synchronisation. A copy to pageable memory waits, as documented. */
static cudaError_t copy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
			cudaStream_t stream, bool wait)
{
	CUstream_st *s = host_stream(stream, host_current_device());

	if ((unsigned)kind > cudaMemcpyDefault || !direction_is(kind, to, from))
		return cudaErrorInvalidValue;
	if (!size)
		return cudaSuccess;
	cudaError_t err = host_may_queue(s);
	if (err != cudaSuccess)
		return err;
	/* Stricter than the documentation, which leaves open what copies of pageable memory do. */
	if (s->capture && (wait || (!device_bit(to) && !host_pinned(to, size)) ||
			   (!device_bit(from) && !host_pinned(from, size)))) {
		host_invalidate(s);
		return cudaErrorStreamCaptureUnsupported;
	}
	std::shared_ptr<host_op> op = submit_copy(s, "cudaMemcpyAsync", to, from, size);
	if (wait || (!device_bit(to) && !host_pinned(to, size))) {
		host_count_wait(&host_counts.waits_copy);
		host_require(op);
	}
	return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
	API();
	cudaError_t err = host_may_be_unsafe();

	return host_result(err != cudaSuccess ? err : copy(to, from, size, kind, nullptr, true));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	API();
	return host_result(copy(to, from, size, kind, stream, false));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
				size_t size, cudaStream_t stream)
{
	API();
	if (host_device_of(to) != to_device || host_device_of(from) != from_device)
		return host_result(cudaErrorInvalidValue);
	CUstream_st *s = host_stream(stream, host_current_device());
	cudaError_t err = host_may_queue(s);
	if (size && err == cudaSuccess)
		submit_copy(s, "cudaMemcpyPeerAsync", to, from, size);
	return host_result(err);
}

static void submit_set(void *data, int byte, size_t size, CUstream_st *s)
{
	host_submit(s, "cudaMemsetAsync", device_bit(data), [=] {
		host_check(data, size, true, "cudaMemsetAsync");
		memset(data, byte, size);
	});
}

cudaError_t cudaMemsetAsync(void *data, int byte, size_t size, cudaStream_t stream)
{
	API();
	if (!device_bit(data))
		return host_result(cudaErrorInvalidValue);
	CUstream_st *s = host_stream(stream, host_current_device());
	cudaError_t err = host_may_queue(s);
	if (size && err == cudaSuccess)
		submit_set(data, byte, size, s);
	return host_result(err);
}

cudaError_t cudaMemset(void *data, int byte, size_t size)
{
	return cudaMemsetAsync(data, byte, size, nullptr);
}
