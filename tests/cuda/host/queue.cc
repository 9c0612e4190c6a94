// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Streams as a graph: each operation has the operations that must run before it, by the order of
 * its stream, by events, and by the rules of the legacy default stream (CUDA programming guide,
 * "Implicit synchronization"). An operation runs when something requires it, or earlier; for
 * ThreadSanitizer it is ordered only after those of the graph.
 */
#include "host.hpp"

#include <cstdio>
#include <cstdlib>
#include <set>

typedef std::shared_ptr<host_op> op_ref;

/* Never freed: streams are used until the process has ended. */
static struct queue_state {
	CUstream_st *defaults[HOST_DEVICES];
	std::vector<CUstream_st *> streams; /* also destroyed ones */
	std::set<CUstream_st *> handles;
	std::vector<op_ref> pending;
	enum cuda_host_streams mode;
	uint32_t random;
	const host_op *running;
} &q = *new queue_state();

static bool queue_init(void)
{
	const char *mode = getenv("CUDA_HOST_STREAMS"), *seed = getenv("CUDA_HOST_SEED");

	if (mode && !strcmp(mode, "lazy"))
		q.mode = CUDA_HOST_LAZY;
	else if (mode && !strcmp(mode, "random"))
		q.mode = CUDA_HOST_RANDOM;
	else if (mode && *mode && strcmp(mode, "eager"))
		host_fatal("CUDA_HOST_STREAMS=%s is not eager, lazy or random", mode);
	q.random = seed ? (uint32_t)strtoul(seed, nullptr, 0) : 1;
	return true;
}

static const bool initialised = queue_init();

void cuda_host_set_streams(enum cuda_host_streams mode, unsigned seed)
{
	host_call call(nullptr);

	q.mode = mode;
	q.random = seed;
}

enum cuda_host_streams cuda_host_streams(void)
{
	return q.mode;
}

unsigned host_random(unsigned n)
{
	q.random = q.random * 1664525 + 1013904223;
	return (unsigned)(((uint64_t)(q.random ^ q.random >> 16) * n) >> 32);
}

unsigned long host_pending(void)
{
	return q.pending.size();
}

const std::vector<CUstream_st *> &host_streams(void)
{
	return q.streams;
}

const host_op *host_running(void)
{
	return q.running;
}

/* ---- streams ---- */

CUstream_st *host_stream_new(int device, bool blocking)
{
	CUstream_st *s = new CUstream_st();

	s->device = device;
	s->blocking = blocking;
	s->context = host_context_new();
	q.streams.push_back(s);
	q.handles.insert(s);
	return s;
}

/* Its queued work runs nevertheless. */
void host_stream_delete(CUstream_st *stream)
{
	q.handles.erase(stream);
}

CUstream_st *host_stream(cudaStream_t handle, int device)
{
	if (handle) {
		if (!q.handles.count(handle) || handle->is_default)
			host_fatal("%p is not a stream, or was destroyed", (void *)handle);
		return handle;
	}
	if (!q.defaults[device]) {
		q.defaults[device] = host_stream_new(device, true);
		q.defaults[device]->is_default = true;
	}
	return q.defaults[device];
}

/* ---- operations ---- */

/* By value: the operation is removed from the list that it may come from. */
static void execute(op_ref op)
{
	void *host = host_context();

	for (size_t i = 0; i < q.pending.size(); i++) {
		if (q.pending[i] == op) {
			q.pending.erase(q.pending.begin() + i);
			break;
		}
	}
	q.running = op.get();
	host_context_switch(op->stream->context);
	host_acquire(op.get());
	for (const op_ref &former : op->after)
		host_acquire(former.get());
	if (op->devices)
		host_open(op->devices);
	op->work();
	if (op->devices)
		host_close();
	op->ready = nullptr;
	op->work = nullptr; /* here, because the work has read its arguments in this context */
	host_release(op.get());
	host_context_switch(host);
	q.running = nullptr;
	op->done = true;
	op->after.clear();
}

static bool ready(const op_ref &op)
{
	for (const op_ref &former : op->after)
		if (!former->done)
			return false;
	return !op->ready || op->ready();
}

/* Runs one operation that could run now; false if there is none. */
static bool execute_any(void)
{
	std::vector<op_ref> choice;

	for (const op_ref &op : q.pending)
		if (ready(op))
			choice.push_back(op);
	if (choice.empty())
		return false;
	execute(choice[host_random((unsigned)choice.size())]);
	return true;
}

/* Runs all that can run, in the order of the calls. */
static void execute_all(void)
{
	for (size_t i = 0; i < q.pending.size();)
		if (ready(q.pending[i]))
			execute(q.pending[i]);
		else
			i++;
}

void host_progress(void)
{
	if (q.mode == CUDA_HOST_RANDOM && !q.pending.empty())
		for (unsigned n = host_random(3); n; n--)
			execute_any();
}

bool host_try(const op_ref &op)
{
	std::vector<op_ref> stack;

	if (q.mode == CUDA_HOST_EAGER)
		execute_all();
	while (q.mode == CUDA_HOST_RANDOM && !op->done)
		if (!execute_any())
			return false;
	if (!op->done)
		stack.push_back(op);
	while (!stack.empty()) {
		op_ref top = stack.back(), former;

		for (const op_ref &o : top->after)
			if (!o->done)
				former = o;
		if (former) {
			stack.push_back(former);
			continue;
		}
		stack.pop_back();
		if (!top->done && !ready(top))
			return false;
		if (!top->done)
			execute(top);
	}
	return true;
}

void host_require(op_ref op)
{
	if (!op)
		return;
	while (!host_try(op))
		host_wait();
	host_acquire(op.get());
}

void host_require_device(int device)
{
	/* Other threads may add streams while an operation waits for another process. */
	const std::vector<CUstream_st *> all = q.streams;

	/* The latest stream first: an order that differs from that of the calls. */
	for (auto s = all.rbegin(); s != all.rend(); ++s)
		if ((*s)->device == device)
			host_require((*s)->last);
}

op_ref host_submit(CUstream_st *stream, const char *name, unsigned devices,
		   std::function<void()> work, const op_ref &event, std::function<bool()> ready)
{
	if (stream->capture) {
		stream->capture->nodes.push_back({ name, devices, std::move(work) });
		return nullptr;
	}
	op_ref op = std::make_shared<host_op>();

	op->name = name;
	op->stream = stream;
	op->devices = devices;
	op->work = std::move(work);
	op->ready = std::move(ready);
	if (stream->last)
		op->after.push_back(stream->last);
	if (event)
		op->after.push_back(event);
	if (stream->is_default) {
		for (CUstream_st *s : q.streams)
			if (s->blocking && s->device == stream->device && s != stream && s->last)
				op->after.push_back(s->last);
	} else if (stream->blocking && q.defaults[stream->device] &&
		   q.defaults[stream->device]->last) {
		op->after.push_back(q.defaults[stream->device]->last);
	}
	host_release(op.get());
	stream->last = op;
	q.pending.push_back(op);
	if (q.mode == CUDA_HOST_EAGER)
		execute_all();
	return op;
}
