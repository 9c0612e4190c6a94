/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The streams of a device that lazy_device.h registers: every operator is a closure in a stream, and a thread of the device runs it on
 * host memory with the CPU's operators. The thread runs a closure only when the host waits for something behind it, or
 * picks any stream at random. A wait between streams that is missing therefore shows: memory is filled with NaN when it
 * is allocated, and is not used again before the end of a test.
 */
#ifndef TESTS_LAZY_STREAM_H
#define TESTS_LAZY_STREAM_H

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tensor/dlpack.h>

/* For tests in which allocations of the library fail. */
#ifndef LAZY_CALLOC
#define LAZY_CALLOC calloc
#endif

enum { LAZY_DEVICES = 2, LAZY_STREAMS = 4, LAZY_ARGS = 16 };

/* A tensor in host memory as the thread sees it: kept if it is the CPU's. */
struct lazy_tensor {
	void *data;
	enum tensor_dtype dtype;
	int ndim;
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	tensor *host;
};

struct lazy_stream;

struct lazy_event {
	atomic_int refs;
	struct lazy_stream *stream;
	uint64_t at; /* the number of closures of the stream before it */
};

struct lazy_work {
	struct lazy_work *next;
	struct lazy_event *wait; /* wait for it, or: */
	const tensor_op *op;
	tensor_value args[LAZY_ARGS];
	struct lazy_tensor tensors[LAZY_ARGS];
	int64_t ints[LAZY_ARGS][TENSOR_MAX_DIMS];
	int nargs, nrets;
	struct lazy_tensor rets[4];
};

struct lazy_stream {
	struct lazy_work *first, *last;
	uint64_t queued, done, wanted; /* the host waits for the first `wanted` closures */
};

struct lazy_block {
	struct lazy_block *next;
	void *data;
};

static struct lazy_device {
	int id, key;
	tensor_device device;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool running;
	atomic_bool at_random;
	struct lazy_stream streams[LAZY_STREAMS]; /* 0: the default stream */
	struct lazy_block *freed;
	atomic_int live, events;
	unsigned seed;
	uint64_t kernels;
	_Atomic uint64_t waits;
	struct tensor_allocator allocator;
} lazy[LAZY_DEVICES];

/* The thread's current streams, by number. */
static __thread int lazy_current[LAZY_DEVICES];

#define LAZY(d) TENSOR_OPTIONS(.device = lazy[d].device)

static inline struct lazy_device *lazy_of(tensor_device d)
{
	for (int i = 0; i < LAZY_DEVICES; i++)
		if (lazy[i].device.type == d.type && lazy[i].device.index == d.index)
			return &lazy[i];
	return NULL;
}

/* ---- the device's thread ---- */

static inline tensor *lazy_wrap(struct lazy_tensor *t)
{
	static const DLDataType types[TENSOR_DTYPE_COUNT] = {
		[TENSOR_F32] = { kDLFloat, 32, 1 }, [TENSOR_F64] = { kDLFloat, 64, 1 },
		[TENSOR_I64] = { kDLInt, 64, 1 },   [TENSOR_BOOL] = { kDLBool, 8, 1 },
		[TENSOR_F16] = { kDLFloat, 16, 1 },
	};
	DLManagedTensorVersioned *m;
	tensor *wrapped;

	if (t->host)
		return t->host;
	m = LAZY_CALLOC(1, sizeof(*m));
	m->version = (DLPackVersion){ 1, 0 };
	m->deleter = (void (*)(DLManagedTensorVersioned *))free;
	m->dl_tensor = (DLTensor){ .data = t->data,
				   .device = { kDLCPU, 0 },
				   .ndim = t->ndim,
				   .dtype = types[t->dtype],
				   .shape = t->sizes,
				   .strides = t->strides };
	wrapped = tensor_from_dlpack(m);
	if (!wrapped)
		free(m);
	return wrapped;
}

/* A failure cannot be reported to the caller, as on a real device. */
static inline void lazy_must(bool done, const tensor_op *op)
{
	if (done)
		return;
	fprintf(stderr, "the device's thread: %s: %s\n", tensor_op_schema(op)->name,
		tensor_last_error()->text);
	abort();
}

static inline void lazy_execute(struct lazy_work *w)
{
	tensor_value rets[4] = { { 0 } };

	tensor_scope {
		for (int i = 0; i < w->nargs; i++)
			if (w->args[i].kind == TENSOR_VALUE_TENSOR && w->args[i].t != tensor_none)
				w->args[i].t = lazy_wrap(&w->tensors[i]);
		lazy_must(tensor_op_call(w->op, w->args, w->nargs, rets, w->nrets) == 0, w->op);
		for (int i = 0; i < w->nrets; i++)
			if (w->rets[i].data)
				lazy_must(tensor_copy_(lazy_wrap(&w->rets[i]), rets[i].t), w->op);
	}
	for (int i = 0; i < w->nargs; i++)
		tensor_release(w->tensors[i].host);
}

static inline void lazy_event_put(struct lazy_device *d, struct lazy_event *e)
{
	if (atomic_fetch_sub(&e->refs, 1) > 1)
		return;
	d->events--;
	free(e);
}

/* With the lock held: runs the next closure of the stream; false if it waits for an event. */
static inline bool lazy_step(struct lazy_device *d, struct lazy_stream *s)
{
	struct lazy_work *w = s->first;

	if (w->wait && w->wait->stream->done < w->wait->at) {
		if (w->wait->stream->wanted < w->wait->at)
			w->wait->stream->wanted = w->wait->at;
		return false;
	}
	pthread_mutex_unlock(&d->lock);
	if (w->wait)
		lazy_event_put(d, w->wait);
	else
		lazy_execute(w);
	pthread_mutex_lock(&d->lock);
	s->first = w->next;
	s->done++;
	free(w);
	pthread_cond_broadcast(&d->changed);
	return true;
}

static inline void *lazy_thread(void *arg)
{
	struct lazy_device *d = arg;
	unsigned from = 0;

	tensor_set_grad_enabled(false);
	pthread_mutex_lock(&d->lock);
	for (;;) {
		bool ran = false;

		from = d->at_random ? (unsigned)rand_r(&d->seed) : from + 1;
		/* Several times: a stream that waits for another one makes that one run. */
		for (unsigned i = 0; i < LAZY_STREAMS * LAZY_STREAMS && !ran; i++) {
			struct lazy_stream *s = &d->streams[(from + i) % LAZY_STREAMS];

			ran = s->first && (d->at_random || s->done < s->wanted) && lazy_step(d, s);
		}
		if (!ran)
			pthread_cond_wait(&d->changed, &d->lock);
	}
	return NULL;
}

/* ---- streams ---- */

static inline void lazy_queue(struct lazy_device *d, struct lazy_work *w)
{
	struct lazy_stream *s = &d->streams[lazy_current[d->id]];
	pthread_t t;

	pthread_mutex_lock(&d->lock);
	if (!d->running) {
		if (pthread_create(&t, NULL, lazy_thread, d))
			abort();
		pthread_detach(t);
		d->running = true;
	}
	if (s->first)
		s->last->next = w;
	else
		s->first = w;
	s->last = w;
	s->queued++;
	d->kernels++;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

/* Waits for the thread's current stream. */
static inline void lazy_sync(struct lazy_device *d)
{
	struct lazy_stream *s = &d->streams[lazy_current[d->id]];
	uint64_t to;

	pthread_mutex_lock(&d->lock);
	to = s->queued;
	if (s->wanted < to)
		s->wanted = to;
	pthread_cond_broadcast(&d->changed);
	while (s->done < to)
		pthread_cond_wait(&d->changed, &d->lock);
	pthread_mutex_unlock(&d->lock);
}

static inline void *lazy_get(tensor_device device)
{
	struct lazy_device *d = lazy_of(device);

	return lazy_current[d->id] ? &d->streams[lazy_current[d->id]] : NULL;
}

static inline int lazy_set(tensor_device device, void *stream)
{
	struct lazy_device *d = lazy_of(device);

	lazy_current[d->id] = stream ? (int)((struct lazy_stream *)stream - d->streams) : 0;
	return 0;
}

static inline void *lazy_record(tensor_device device, void *stream)
{
	struct lazy_device *d = lazy_of(device);
	struct lazy_event *e = LAZY_CALLOC(1, sizeof(*e));

	pthread_mutex_lock(&d->lock);
	e->refs = 1;
	e->stream = stream ?: &d->streams[0];
	e->at = e->stream->queued;
	d->events++;
	pthread_mutex_unlock(&d->lock);
	return e;
}

static inline int lazy_wait(tensor_device device, void *stream, void *event)
{
	struct lazy_device *d = lazy_of(device);
	struct lazy_work *w = LAZY_CALLOC(1, sizeof(*w));
	void *before = lazy_get(device);

	w->wait = event;
	w->wait->refs++;
	d->waits++;
	lazy_set(device, stream);
	lazy_queue(d, w);
	lazy_set(device, before);
	return 0;
}

static inline void lazy_release(tensor_device device, void *event)
{
	lazy_event_put(lazy_of(device), event);
}

static const struct tensor_streams lazy_streams = { .current = lazy_get,
						    .set = lazy_set,
						    .record = lazy_record,
						    .wait = lazy_wait,
						    .release = lazy_release };

/* ---- memory ---- */

static inline int lazy_alloc(const struct tensor_allocator *self, tensor_device device, size_t n,
			     void **data)
{
	struct lazy_device *d = self->ctx;

	*data = aligned_alloc(64, (n + 63) / 64 * 64);
	if (!*data)
		return -ENOMEM;
	memset(*data, 0xff, n);
	d->live++;
	return 0;
}

static inline void lazy_free(const struct tensor_allocator *self, tensor_device device, void *data,
			     size_t n)
{
	struct lazy_device *d = self->ctx;
	struct lazy_block *b = LAZY_CALLOC(1, sizeof(*b));

	pthread_mutex_lock(&d->lock);
	*b = (struct lazy_block){ d->freed, data };
	d->freed = b;
	pthread_mutex_unlock(&d->lock);
}

/* Runs all work and frees the memory that was released. Returns the number of blocks that are in use. */
static inline int lazy_drain(struct lazy_device *d)
{
	struct lazy_block *b;
	int before = lazy_current[d->id];

	for (int i = 0; i < LAZY_STREAMS; i++) {
		lazy_current[d->id] = i;
		lazy_sync(d);
	}
	lazy_current[d->id] = before;
	while ((b = d->freed)) {
		d->freed = b->next;
		free(b->data);
		free(b);
		d->live--;
	}
	return d->live;
}

#endif
