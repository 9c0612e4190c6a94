// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Streams and events of the runtime's API. */
#include "host.hpp"

#include <ctime>
#include <set>

static std::set<CUevent_st *> &events = *new std::set<CUevent_st *>();

/* ---- streams ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	API();
	if (flags & ~(unsigned)cudaStreamNonBlocking)
		return host_result(cudaErrorInvalidValue);
	*stream = host_stream_new(host_current_device(), !(flags & cudaStreamNonBlocking));
	return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	API();
	*least = 0;
	*greatest = -5;
	return cudaSuccess;
}

/* Priorities have no effect. CUDA takes the nearest one of the range. */
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
	return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	API();
	if (!stream)
		return host_result(cudaErrorInvalidResourceHandle);
	host_stream_delete(host_stream(stream, host_current_device()));
	return cudaSuccess;
}

/* Required work, of which a query has said that it is not ready, runs at the second one. */
static bool query(const std::shared_ptr<host_op> &op, unsigned long *queries)
{
	if (op && !op->done && cuda_host_streams() == CUDA_HOST_LAZY && (*queries)++)
		host_try(op);
	if (op && !op->done)
		return false;
	*queries = 0;
	host_require(op);
	return true;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	static unsigned long queries;

	API();
	CUstream_st *s = host_stream(stream, host_current_device());
	cudaError_t err = host_may_wait(s);

	if (err != cudaSuccess)
		return host_result(err);
	return host_result(query(s->last, &queries) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	API();
	CUstream_st *s = host_stream(stream, host_current_device());
	cudaError_t err = host_may_wait(s);

	if (err != cudaSuccess)
		return host_result(err);
	host_count_wait(&host_counts.waits_stream);
	host_require(s->last);
	return cudaSuccess;
}

/* ---- events ---- */

static double milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static CUevent_st *event_of(cudaEvent_t event)
{
	if (!events.count(event))
		host_fatal("%p is not an event, or was destroyed", (void *)event);
	return event;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	API();
	if (flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming))
		return host_result(cudaErrorInvalidValue);
	*event = new CUevent_st();
	(*event)->device = host_current_device();
	if (!(flags & cudaEventDisableTiming))
		(*event)->when = std::make_shared<double>(0);
	events.insert(*event);
	return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	API();
	events.erase(event_of(event));
	delete event;
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	API();
	CUevent_st *e = event_of(event);
	CUstream_st *s = host_stream(stream, host_current_device());

	if (e->device != s->device)
		return host_result(cudaErrorInvalidResourceHandle);
	cudaError_t err = host_may_queue(s);
	if (err != cudaSuccess)
		return host_result(err);
	e->queries = 0;
	e->captured = s->capture ? s->capture->id : 0;
	e->recorded = host_submit(s, "cudaEventRecord", 0, [when = e->when] {
		if (when)
			*when = milliseconds();
	});
	return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	API();
	CUevent_st *e = event_of(event);
	CUstream_st *s = host_stream(stream, host_current_device());

	if (flags)
		return host_result(cudaErrorInvalidValue);
	cudaError_t err = host_may_follow(s, e);
	if (err != cudaSuccess)
		return host_result(err);
	if (e->recorded)
		host_submit(
			s, "cudaStreamWaitEvent", 0, [] {}, e->recorded);
	return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	API();
	CUevent_st *a = event_of(from), *b = event_of(to);

	if (!a->when || !b->when || !a->recorded || !b->recorded || a->device != b->device)
		return host_result(cudaErrorInvalidResourceHandle);
	if (a->captured || b->captured)
		return host_result(cudaErrorCapturedEvent);
	if (!a->recorded->done || !b->recorded->done)
		return host_result(cudaErrorNotReady);
	*ms = (float)(*b->when - *a->when);
	return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	API();
	CUevent_st *e = event_of(event);
	cudaError_t err = e->captured ? cudaErrorCapturedEvent : host_may_be_unsafe();

	if (err != cudaSuccess)
		return host_result(err);
	return host_result(query(e->recorded, &e->queries) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	API();
	CUevent_st *e = event_of(event);
	cudaError_t err = e->captured ? cudaErrorCapturedEvent : host_may_be_unsafe();

	if (err != cudaSuccess)
		return host_result(err);
	host_count_wait(&host_counts.waits_event);
	host_require(e->recorded);
	return cudaSuccess;
}
