/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Two devices whose operators run later, on threads of their own (lazy_stream.h), as a backend that the program registers.
 * An operator is a boxed fallback: its closure calls the operator of the CPU.
 */
#ifndef TESTS_LAZY_DEVICE_H
#define TESTS_LAZY_DEVICE_H

#include "lazy_stream.h"

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
		if (args[i].kind == TENSOR_VALUE_TENSOR && args[i].t != tensor_none) {
			w->tensors[i] = lazy_describe(args[i].t);
			if (!w->tensors[i].data && !w->tensors[i].host)
				return -ENOMEM;
		} else if (args[i].kind == TENSOR_VALUE_INTS) {
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
			if (t)
				continue;
			t = tensor_empty_on(d->device, tensor_shape(out[r].t),
					    tensor_dtype(out[r].t));
			err = t ? 0 : -ENOMEM;
			rets[r].t = tensor_retain(t);
			if (err)
				continue;
			w->rets[r] = lazy_describe(t);
			if (tensor_dtype(t) == TENSOR_BOOL) /* other bytes are no bool */
				memset(w->rets[r].data, 0, tensor_numel(t));
		}
		for (int r = 0; r < nrets && err; r++)
			if (w->rets[r].data)
				tensor_release(rets[r].t);
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
		if (!d || !from) {
			err = tensor_copy_(to, from) ? 0 : -EIO;
		} else {
			w = LAZY_CALLOC(1, sizeof(*w));
			err = lazy_copy_args(
				w, op,
				(tensor_value[]){ { .kind = TENSOR_VALUE_TENSOR, .t = to },
						  { .kind = TENSOR_VALUE_TENSOR, .t = from } },
				2);
			w->nrets = 1;
			if (err)
				free(w);
			else
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
	if (t && lazy_copy(t, args[0].t) == 0)
		return 0;
	tensor_release(t);
	return -ENOMEM;
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
	w = LAZY_CALLOC(1, sizeof(*w));
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
