/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A device made of a registered backend: every operator is a closure in a stream, and a thread of the device runs it on
 * host memory with the CPU's operators. The thread runs a closure only when the host waits for something behind it, or
 * picks any stream at random. A wait between streams that is missing therefore shows: memory is filled with NaN when it
 * is allocated, and is not used again before the end of a test.
 */
#ifndef TESTS_LAZY_DEVICE_H
#define TESTS_LAZY_DEVICE_H

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tensor/dlpack.h>

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
	bool running, at_random;
	struct lazy_stream streams[LAZY_STREAMS]; /* 0: the default stream */
	struct lazy_block *freed;
	atomic_int live, events;
	unsigned seed;
	uint64_t kernels, waits;
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

	if (t->host)
		return t->host;
	m = calloc(1, sizeof(*m));
	m->version = (DLPackVersion){ 1, 0 };
	m->deleter = (void (*)(DLManagedTensorVersioned *))free;
	m->dl_tensor = (DLTensor){ .data = t->data,
				   .device = { kDLCPU, 0 },
				   .ndim = t->ndim,
				   .dtype = types[t->dtype],
				   .shape = t->sizes,
				   .strides = t->strides };
	return tensor_from_dlpack(m);
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
	int n = 0, idle = 0;

	tensor_set_grad_enabled(false);
	pthread_mutex_lock(&d->lock);
	for (;;) {
		struct lazy_stream *s = &d->streams[d->at_random ? rand_r(&d->seed) % LAZY_STREAMS :
								   n++ % LAZY_STREAMS];

		if (s->first && (d->at_random || s->done < s->wanted) && lazy_step(d, s))
			idle = 0;
		else if (++idle > 8 * LAZY_STREAMS) {
			pthread_cond_wait(&d->changed, &d->lock);
			idle = 0;
		}
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
	struct lazy_event *e = calloc(1, sizeof(*e));

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
	struct lazy_work *w = calloc(1, sizeof(*w));
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
	struct lazy_block *b = malloc(sizeof(*b));

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

/* ---- operators ---- */

static inline struct lazy_tensor lazy_describe(tensor *t)
{
	struct lazy_tensor l = { .dtype = tensor_dtype(t), .ndim = tensor_dim(t) };

	if (tensor_get_device(t).type == TENSOR_CPU) {
		l.host = tensor_retain(tensor_clone(t));
		return l;
	}
	l.data = tensor_device_data(t);
	for (int i = 0; i < l.ndim; i++) {
		l.sizes[i] = tensor_size(t, i);
		l.strides[i] = tensor_stride(t, i);
	}
	return l;
}

static inline int lazy_copy_args(struct lazy_work *w, const tensor_op *op, const tensor_value *args,
				 int nargs)
{
	if (nargs > LAZY_ARGS)
		return -E2BIG;
	w->op = op;
	w->nargs = nargs;
	memcpy(w->args, args, nargs * sizeof(*args));
	for (int i = 0; i < nargs; i++) {
		if (args[i].kind == TENSOR_VALUE_TENSOR && args[i].t != tensor_none)
			w->tensors[i] = lazy_describe(args[i].t);
		else if (args[i].kind == TENSOR_VALUE_INTS) {
			memcpy(w->ints[i], args[i].ints.data, args[i].ints.len * sizeof(int64_t));
			w->args[i].ints.data = w->ints[i];
		} else if (args[i].kind == TENSOR_VALUE_DEVICE)
			w->args[i].device = TENSOR_DEVICE_CPU;
		else if (args[i].kind == TENSOR_VALUE_TENSOR_LIST)
			return -EOPNOTSUPP;
	}
	return 0;
}

/* Results of the right shape: those of the CPU's operator on other values. */
static inline int lazy_results(struct lazy_device *d, struct lazy_work *w, const tensor_value *args,
			       tensor_value *rets, int nrets)
{
	const struct tensor_schema *schema = tensor_op_schema(w->op);
	tensor_value like[LAZY_ARGS], out[4] = { { 0 } };
	int err;

	memcpy(like, w->args, sizeof(like));
	tensor_scope {
		for (int i = 0; i < w->nargs; i++)
			if (args[i].kind == TENSOR_VALUE_TENSOR && args[i].t != tensor_none)
				like[i].t = tensor_ones(tensor_shape(args[i].t),
							OF(tensor_dtype(args[i].t)));
		err = tensor_op_call(w->op, like, w->nargs, out, nrets);
		for (int r = 0; r < nrets && !err; r++) {
			tensor *t = NULL;

			for (int i = 0; i < w->nargs; i++)
				if (schema->args[i].mutated)
					t = args[i].t;
			rets[r] = (tensor_value){ .kind = TENSOR_VALUE_TENSOR, .t = t };
			if (!t) {
				t = tensor_empty_on(d->device, tensor_shape(out[r].t),
						    tensor_dtype(out[r].t));
				w->rets[r] = lazy_describe(t);
				if (tensor_dtype(t) == TENSOR_BOOL) /* other bytes are no bool */
					memset(w->rets[r].data, 0, tensor_numel(t));
				rets[r].t = tensor_retain(t);
			}
		}
	}
	return err;
}

/* Copies to the host wait for the current stream; those from it take the values at once. */
static inline int lazy_copy(tensor *to, tensor *from)
{
	struct lazy_tensor source;
	struct lazy_work *w;
	const tensor_op *op = tensor_op_find("copy_");
	struct lazy_device *d = lazy_of(tensor_get_device(from));
	int err = 0;

	tensor_scope {
		if (d) {
			lazy_sync(d);
			source = lazy_describe(from);
			from = tensor_clone(lazy_wrap(&source));
		}
		d = lazy_of(tensor_get_device(to));
		if (!d) {
			err = tensor_copy_(to, from) ? 0 : -EIO;
		} else {
			w = calloc(1, sizeof(*w));
			err = lazy_copy_args(
				w, op,
				(tensor_value[]){ { .kind = TENSOR_VALUE_TENSOR, .t = to },
						  { .kind = TENSOR_VALUE_TENSOR, .t = from } },
				2);
			w->nrets = 1;
			lazy_queue(d, w);
		}
	}
	return err;
}

/* _to_copy to another device. */
static inline int lazy_move(const tensor_op *op, const tensor_value *args, int nargs,
			    tensor_device to, tensor_value *ret)
{
	enum tensor_dtype dtype =
		args[1].kind == TENSOR_VALUE_INT && args[1].i ? args[1].i : tensor_dtype(args[0].t);
	tensor *t = tensor_retain(tensor_empty(tensor_shape(args[0].t),
					       TENSOR_OPTIONS(.dtype = dtype, .device = to)));

	*ret = (tensor_value){ .kind = TENSOR_VALUE_TENSOR, .t = t };
	return t ? lazy_copy(t, args[0].t) : -ENOMEM;
}

static inline int lazy_fallback(const tensor_op *op, enum tensor_key key, const tensor_value *args,
				int nargs, tensor_value *rets, int nrets, void *ctx)
{
	struct lazy_device *d = ctx;
	struct lazy_work *w;
	int err;

	if (!strcmp(tensor_op_schema(op)->name, "copy_") &&
	    (lazy_of(tensor_get_device(args[0].t)) != d ||
	     lazy_of(tensor_get_device(args[1].t)) != d)) {
		rets[0] = args[0];
		return lazy_copy(args[0].t, args[1].t);
	}
	for (int i = 0; i < nargs && !strcmp(tensor_op_schema(op)->name, "_to_copy"); i++)
		if (args[i].kind == TENSOR_VALUE_DEVICE && args[i].device.type &&
		    lazy_of(args[i].device) != d)
			return lazy_move(op, args, nargs, args[i].device, rets);
	w = calloc(1, sizeof(*w));
	w->nrets = nrets;
	err = nrets > 4 ? -E2BIG : lazy_copy_args(w, op, args, nargs);
	if (!err)
		err = lazy_results(d, w, args, rets, nrets);
	if (!err) {
		lazy_queue(d, w);
		return 0;
	}
	if (err == -E2BIG || err == -EOPNOTSUPP)
		fprintf(stderr, "the test's device does not support %s\n",
			tensor_op_schema(op)->name);
	for (int i = 0; i < w->nargs; i++)
		tensor_release(w->tensors[i].host);
	free(w);
	return err;
}

/* ---- registration ---- */

static inline void lazy_before_fork(void)
{
	for (int i = 0; i < LAZY_DEVICES; i++)
		pthread_mutex_lock(&lazy[i].lock);
}

static inline void lazy_after_fork(void)
{
	for (int i = 0; i < LAZY_DEVICES; i++)
		pthread_mutex_unlock(&lazy[i].lock);
}

/* The child's device has no thread yet, and its work goes on. */
static inline void lazy_in_child(void)
{
	for (int i = 0; i < LAZY_DEVICES; i++) {
		pthread_cond_init(&lazy[i].changed, NULL);
		lazy[i].running = false;
		pthread_mutex_unlock(&lazy[i].lock);
	}
}

static inline int lazy_register_with(const struct tensor_streams *streams)
{
	static const char *const names[] = { "lazy0", "lazy1" };

	for (int i = 0; i < LAZY_DEVICES; i++) {
		struct lazy_device *d = &lazy[i];

		d->id = i;
		d->seed = i + 1;
		pthread_mutex_init(&d->lock, NULL);
		pthread_cond_init(&d->changed, NULL);
		d->allocator = (struct tensor_allocator){
			.name = names[i], .alloc = lazy_alloc, .free = lazy_free, .ctx = d
		};
		d->key = tensor_register_backend(names[i], &d->allocator, &d->device);
		assert_true(d->key >= 0);
		assert_done(tensor_register_fallback(d->key, lazy_fallback, d));
		assert_done(tensor_register_streams(d->device, streams));
	}
	pthread_atfork(lazy_before_fork, lazy_after_fork, lazy_in_child);
	return 0;
}

static inline int lazy_register(void **state)
{
	return lazy_register_with(&lazy_streams);
}

static inline void *lazy_stream(int device, int nr)
{
	return nr ? &lazy[device].streams[nr] : NULL;
}

/* The block runs with the stream as the current one. */
#define with_stream(device, nr)                                                                   \
	for (int before_ = lazy_current[device], once_ = (lazy_current[device] = (nr), 1); once_; \
	     once_ = 0, lazy_current[device] = before_)

#endif
