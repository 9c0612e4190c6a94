// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Capture of a stream, and graphs: the operations of the stream in the order of the calls. Which calls are forbidden
 * while a capture is open is that of the documentation of cudaThreadExchangeStreamCaptureMode() and of the programming
 * guide, "Creating a Graph Using Stream Capture"; a call that the documentation does not classify is forbidden.
 * Other streams cannot join a capture here.
 */
#include "host.hpp"

#include <set>

struct CUgraph_st {
	int device;
	std::vector<host_node> nodes;
};

struct CUgraphExec_st {
	int device;
	std::vector<host_node> nodes;
};

static std::set<CUgraph_st *> &graphs = *new std::set<CUgraph_st *>();
static std::set<CUgraphExec_st *> &execs = *new std::set<CUgraphExec_st *>();
static unsigned long captures;
static __thread enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

#define API()                     \
	host_call call(__func__); \
	if (call.injected)        \
	return host_result((cudaError_t)call.injected)

/* ---- calls that a capture forbids ---- */

void host_invalidate(CUstream_st *stream)
{
	if (stream->capture)
		stream->capture->invalid = true;
}

cudaError_t host_may_queue(CUstream_st *stream)
{
	cudaError_t err = cudaSuccess;

	if (stream->capture)
		return stream->capture->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
	for (CUstream_st *s : host_streams()) {
		if (!stream->is_default || !s->capture || !s->blocking ||
		    s->device != stream->device)
			continue;
		host_invalidate(s);
		err = cudaErrorStreamCaptureImplicit;
	}
	return err;
}

cudaError_t host_may_be_unsafe(void)
{
	cudaError_t err = cudaSuccess;

	if (thread_mode == cudaStreamCaptureModeRelaxed)
		return err;
	for (CUstream_st *s : host_streams()) {
		const host_capture *c = s->capture;
		bool own = c && pthread_equal(c->thread, pthread_self());

		if (!c || (own ? c->mode == cudaStreamCaptureModeRelaxed :
				 c->mode != cudaStreamCaptureModeGlobal ||
					   thread_mode != cudaStreamCaptureModeGlobal))
			continue;
		host_invalidate(s);
		err = cudaErrorStreamCaptureUnsupported;
	}
	return err;
}

cudaError_t host_may_wait(CUstream_st *stream)
{
	if (!stream->capture)
		return host_may_be_unsafe();
	host_invalidate(stream);
	return cudaErrorStreamCaptureUnsupported;
}

cudaError_t host_may_wait_device(int device)
{
	cudaError_t err = host_may_be_unsafe();

	for (CUstream_st *s : host_streams()) {
		if (!s->capture || s->device != device)
			continue;
		host_invalidate(s);
		err = cudaErrorStreamCaptureUnsupported;
	}
	return err;
}

cudaError_t host_may_follow(CUstream_st *stream, const CUevent_st *event)
{
	cudaError_t err = host_may_queue(stream);
	unsigned long own = stream->capture ? stream->capture->id : 0;

	if (err != cudaSuccess || event->captured == own || (!event->captured && !event->recorded))
		return err;
	for (CUstream_st *s : host_streams())
		if (s == stream || (s->capture && s->capture->id == event->captured))
			host_invalidate(s);
	return cudaErrorStreamCaptureIsolation;
}

/* ---- captures ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	API();
	CUstream_st *s = host_stream(stream, host_current_device());

	if (s->is_default || s->capture || (unsigned)mode > cudaStreamCaptureModeRelaxed)
		return host_result(s->is_default ? cudaErrorStreamCaptureUnsupported :
						   cudaErrorInvalidValue);
	s->capture = new host_capture{ ++captures, pthread_self(), mode, false, {} };
	return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	API();
	CUstream_st *s = host_stream(stream, host_current_device());
	host_capture *c = s->capture;

	*graph = nullptr;
	if (!c)
		return host_result(cudaErrorStreamCaptureUnmatched);
	if (c->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self())) {
		host_invalidate(s);
		return host_result(cudaErrorStreamCaptureWrongThread);
	}
	s->capture = nullptr;
	std::unique_ptr<host_capture> ended(c);
	if (c->invalid)
		return host_result(cudaErrorStreamCaptureInvalidated);
	*graph = new CUgraph_st{ s->device, std::move(c->nodes) };
	graphs.insert(*graph);
	return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	API();
	const host_capture *c = host_stream(stream, host_current_device())->capture;

	*status = !c	     ? cudaStreamCaptureStatusNone :
		  c->invalid ? cudaStreamCaptureStatusInvalidated :
			       cudaStreamCaptureStatusActive;
	return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	enum cudaStreamCaptureMode before = thread_mode;

	if ((unsigned)*mode > cudaStreamCaptureModeRelaxed)
		return host_result(cudaErrorInvalidValue);
	thread_mode = *mode;
	*mode = before;
	return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	API();
	if (!graphs.count(graph))
		host_fatal("%p is not a graph, or was destroyed", (void *)graph);
	if (flags)
		return host_result(cudaErrorInvalidValue);
	*exec = new CUgraphExec_st{ graph->device, graph->nodes };
	execs.insert(*exec);
	return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	API();
	CUstream_st *s = host_stream(stream, host_current_device());
	cudaError_t err = host_may_queue(s);

	if (!execs.count(exec))
		host_fatal("%p is not an executable graph, or was destroyed", (void *)exec);
	if (err == cudaSuccess && s->device != exec->device)
		err = cudaErrorInvalidValue;
	/* It would become a node. */
	if (err == cudaSuccess && s->capture) {
		host_invalidate(s);
		err = cudaErrorStreamCaptureUnsupported;
	}
	if (err != cudaSuccess)
		return host_result(err);
	host_counts.graphs++;
	for (const host_node &n : exec->nodes)
		host_submit(s, n.name, n.devices, n.work);
	return cudaSuccess;
}

/* Nodes that are queued keep what they need. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	API();
	if (!execs.erase(exec))
		host_fatal("%p is not an executable graph, or was destroyed", (void *)exec);
	delete exec;
	return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	API();
	if (!graphs.erase(graph))
		host_fatal("%p is not a graph, or was destroyed", (void *)graph);
	delete graph;
	return cudaSuccess;
}
