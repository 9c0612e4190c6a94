// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Who carries operations out (drive.c). A call that waits does it in its own thread if nothing else runs; otherwise a
 * thread of the group, the worker, does it. Collectives wait for their turn in one list; sends and receives, in a queue
 * for each direction and rank, go on beside them.
 */
#include "group/group.h"

#include "core/trace.h"
#include "sharing/link.h"
#include "storage/devices.h"

#include <signal.h>
#include <stdlib.h>

/* ---- the worker ---- */

/* One collective, or the messages while there is none. The caller holds lock. */
static void work(tensor_group *g)
{
	tensor_request *r = g->first;
	int err;

	pthread_mutex_unlock(&g->lock);
	pthread_mutex_lock(&g->running);
	err = requests_carry_out(g, r);
	if (r)
		request_finish(r, err);
	if (err < 0 && (!r || group_ended(g) < 0))
		requests_fail_messages(g, err);
	pthread_mutex_unlock(&g->running);
	pthread_mutex_lock(&g->lock);
	if (!r)
		return;
	g->first = r->next;
	if (!r->next)
		g->last = &g->first;
	r->ended = true;
	pthread_cond_broadcast(&g->changed);
}

static void *worker(void *arg)
{
	tensor_group *g = arg;

	pthread_mutex_lock(&g->lock);
	while (!g->stop || g->first || g->messages)
		if (g->first || g->messages)
			work(g);
		else
			pthread_cond_wait(&g->changed, &g->lock);
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

/* The thread that carries operations out may sleep in the engine. The caller holds lock. */
static void wake(tensor_group *g)
{
	if (g->engine->wake)
		g->engine->wake(g);
}

/* The caller holds lock. */
static int need_worker(tensor_group *g)
{
	sigset_t all, before;
	int err;

	if (g->has_worker)
		return 0;
	/* Signals are for the threads of the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&g->worker, NULL, worker, g);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	g->has_worker = !err;
	return err ? tensor_fail(err, "group: no thread: %s", strerror(err)) : 0;
}

void requests_stop(tensor_group *g)
{
	pthread_mutex_lock(&g->lock);
	g->stop = true;
	pthread_cond_broadcast(&g->changed);
	wake(g);
	pthread_mutex_unlock(&g->lock);
	if (g->has_worker)
		pthread_join(g->worker, NULL);
}

/* ---- callers ---- */

static int result_of(tensor_request *r)
{
	return r->err < 0 ? tensor_fail(-r->err, "%s", r->text) : 0;
}

static void release_operation(tensor_request *r)
{
	if (r->operation)
		r->group->engine->device->release(r);
}

/* What the thread queues on the device from now on comes after the operation. 0, or -errno with the error set. */
static int order_after(tensor_request *r)
{
	const struct tensor_streams *s = device_streams(r->group->device);

	if (!r->operation || !s)
		return 0;
	return r->group->engine->device->order(r, s->current(r->group->device));
}

/* The caller holds lock. */
static void wait_until_ended(tensor_request *r)
{
	while (!r->ended)
		pthread_cond_wait(&r->group->changed, &r->group->lock);
}

/* The caller holds running; nothing waits for its turn. A message is in its queue, so that later ones wait for it. */
static int run_here(tensor_request *r)
{
	tensor_group *g = r->group;
	int err = requests_carry_out(g, r);
	bool ended = true;

	if (!request_is_message(r))
		request_finish(r, err);
	else if (err < 0)
		requests_fail_messages(g, err);
	else
		ended = err;
	pthread_mutex_unlock(&g->running);
	if (!ended) {
		/* A collective has come, and with it the worker, which carries out both. */
		pthread_mutex_lock(&g->lock);
		wait_until_ended(r);
		pthread_mutex_unlock(&g->lock);
	}
	return result_of(r);
}

/* The caller holds lock. */
static void put_last(tensor_request *r)
{
	tensor_group *g = r->group;

	if (request_is_message(r)) {
		message_append(r);
		return;
	}
	r->next = NULL;
	*g->last = r;
	g->last = &r->next;
}

/* For the worker. The caller holds lock. */
static void append(tensor_request *r)
{
	tensor_group *g = r->group;

	put_last(r);
	pthread_cond_broadcast(&g->changed);
	wake(g);
}

static int submit_and_wait(tensor_request *r)
{
	tensor_group *g = r->group;
	int err;

	pthread_mutex_lock(&g->lock);
	if (!g->first && !g->messages && !pthread_mutex_trylock(&g->running)) {
		if (request_is_message(r))
			put_last(r);
		pthread_mutex_unlock(&g->lock);
		return run_here(r);
	}
	err = need_worker(g);
	if (!err) {
		append(r);
		wait_until_ended(r);
	}
	pthread_mutex_unlock(&g->lock);
	if (err < 0) {
		request_drop_tensors(r);
		return err;
	}
	return result_of(r);
}

static int submit(const tensor_request *given, tensor_request **to)
{
	tensor_request *r = malloc(sizeof(*r));
	int err;

	if (!r)
		return tensor_fail(ENOMEM, "%s: no memory", group_kind_names[given->call.kind]);
	*r = *given;
	pthread_mutex_lock(&r->group->lock);
	err = need_worker(r->group);
	if (!err) {
		r->group->refs++;
		append(r);
	}
	pthread_mutex_unlock(&r->group->lock);
	if (err < 0)
		free(r);
	else
		*to = r;
	return err;
}

int request_submit(tensor_request *r, tensor_request **to)
{
	int err;

	if (to) {
		err = submit(r, to);
		if (err >= 0)
			return err;
		request_drop_tensors(r);
	} else {
		err = submit_and_wait(r);
	}
	release_operation(r);
	return err;
}

static int wait_ended(tensor_request *r, int64_t until)
{
	tensor_group *g = r->group;
	struct timespec t = { until / 1000000000, until % 1000000000 };
	int err = 0;

	pthread_mutex_lock(&g->lock);
	while (!r->ended && !err)
		err = until == LINK_FOREVER ? pthread_cond_wait(&g->changed, &g->lock) :
					      pthread_cond_timedwait(&g->changed, &g->lock, &t);
	err = r->ended ? 0 : -err;
	pthread_mutex_unlock(&g->lock);
	return err;
}

TENSOR_EXPORT int tensor_request_wait(tensor_request *r, int64_t timeout_ns)
{
	int err;

	TRACE_SPAN("group", "tensor_request_wait");
	if (!r)
		return tensor_fail(EINVAL, "request_wait: the request is NULL");
	if (group_is_parents(r->group))
		return tensor_fail(EBUSY, "request_wait: the group is the parent's");
	if (wait_ended(r, link_deadline(timeout_ns)) < 0)
		return tensor_fail(ETIMEDOUT, "request_wait: the operation has not ended in time");
	err = result_of(r);
	if (!err)
		err = order_after(r);
	release_operation(r);
	group_put(r->group);
	free(r);
	return err;
}

TENSOR_EXPORT int tensor_request_done(tensor_request *r)
{
	int ended;

	if (!r)
		return tensor_fail(EINVAL, "request_done: the request is NULL");
	if (group_is_parents(r->group))
		return tensor_fail(EBUSY, "request_done: the group is the parent's");
	pthread_mutex_lock(&r->group->lock);
	ended = r->ended;
	pthread_mutex_unlock(&r->group->lock);
	if (ended && !r->err && r->operation)
		ended = r->group->engine->device->reached(r);
	return ended;
}
