// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Carries operations out. A call that waits does it in its own thread if nothing else runs; otherwise a thread of the
 * group, the worker, does it. Collectives wait for their turn in one list; sends and receives, in another one, go on
 * beside them.
 */
#include "group/group.h"

#include "core/trace.h"
#include "sharing/link.h"

#include "family/copy.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define SLEEP_NS INT64_C(10000000) /* at most, until the next look whether the ranks live */

static bool is_message(const tensor_request *r)
{
	return r->call.kind == GROUP_SEND || r->call.kind == GROUP_RECV;
}

static void drop_tensors(tensor_request *r)
{
	tensor_put(r->out_packed);
	tensor_put(r->in_packed);
	tensor_put(r->out_tensor);
	tensor_put(r->in_tensor);
	r->out_packed = r->in_packed = r->out_tensor = r->in_tensor = NULL;
}

/* Writes a result that was packed. 0, or -errno with the error set. */
static int unpack(tensor_request *r)
{
	struct thread_modes before;
	bool done = true;

	if (!r->out_tensor)
		return 0;
	if (r->out_packed) {
		before = thread_enter_plain();
		done = call_copy_(r->out_tensor, r->out_packed);
		thread()->modes = before;
	} else
		tensor_bump_version(r->out_tensor);
	return done ? 0 : -thread()->error.code;
}

static uint64_t bytes_of(const tensor *t)
{
	return t ? (uint64_t)t->numel * itemsize(t) : 0;
}

/* The operation has ended with this error, whose text is the thread's. */
static void finish(tensor_request *r, int err)
{
	tensor_group *g = r->group;

	if (err >= 0)
		err = unpack(r);
	if (err < 0) {
		const char *text = thread()->error.text;
		const char *name = group_kind_names[r->call.kind];
		bool named = !strncmp(text, name, strlen(name));

		snprintf(r->text, sizeof(r->text), "%s%s%.*s", named ? "" : name, named ? "" : ": ",
			 TENSOR_ERROR_TEXT - 32, text);
	}
	r->err = err < 0 ? err : 0;
	pthread_mutex_lock(&g->lock);
	g->stats.operations++;
	g->stats.bytes += bytes_of(r->in_tensor) +
			  (r->out_tensor == r->in_tensor ? 0 : bytes_of(r->out_tensor));
	if (g->engine->counted)
		g->engine->counted(g);
	pthread_mutex_unlock(&g->lock);
	drop_tensors(r);
}

/* ---- the thread that holds running ---- */

/* 1, 0 or -errno, as the engine's function. */
static int step(tensor_request *r)
{
	const struct group_engine *e = r->group->engine;

	if (!r->started) {
		int err = group_ended(r->group);

		r->started = true;
		if (!err && e->start)
			err = e->start(r);
		if (err < 0)
			return err;
	}
	return e->step(r);
}

/* Takes a message out of the list. The caller holds lock. */
static void unlink_message(tensor_request **at)
{
	tensor_group *g = (*at)->group;
	tensor_request *r = *at;

	*at = r->next;
	if (!r->next)
		g->messages_last = at;
}

/* Whether an earlier message of the list has the same direction and peer: the order is kept. The caller holds lock. */
static bool is_behind(const tensor_request *r)
{
	for (const tensor_request *o = r->group->messages; o != r; o = o->next)
		if (o->call.kind == r->call.kind && o->call.root == r->call.root)
			return true;
	return false;
}

/* Goes on with the sends and receives. Returns how many have not ended. */
static int step_messages(tensor_group *g)
{
	tensor_request **at, *r;
	int left = 0, res;

	pthread_mutex_lock(&g->lock);
	for (at = &g->messages; (r = *at);) {
		if (is_behind(r)) {
			at = &r->next;
			left++;
			continue;
		}
		pthread_mutex_unlock(&g->lock);
		res = step(r);
		if (res)
			finish(r, res);
		pthread_mutex_lock(&g->lock);
		/* Only the end of the list can have changed meanwhile. */
		if (res) {
			unlink_message(at);
			r->ended = true;
			pthread_cond_broadcast(&g->changed);
		} else {
			at = &r->next;
			left++;
		}
	}
	pthread_mutex_unlock(&g->lock);
	return left;
}

/* r: a collective, which is in no list, a message that is in one, or NULL: all messages. 1: it has ended. */
static int step_all(tensor_group *g, tensor_request *r)
{
	int left = step_messages(g);

	if (r && is_message(r))
		return r->ended;
	return r ? step(r) : !left;
}

static bool has_collective(tensor_group *g)
{
	bool has;

	pthread_mutex_lock(&g->lock);
	has = g->first;
	pthread_mutex_unlock(&g->lock);
	return has;
}

/* Sleeps until a peer does something. 0, or what step_all() gave meanwhile. */
static int sleep_once(tensor_group *g, tensor_request *r, int64_t until)
{
	tensor_request *collective = r && !is_message(r) ? r : NULL;
	int64_t left = link_left(until);
	int res;

	if (!left)
		return g->engine->late(g, collective);
	if (g->engine->arm) {
		g->engine->arm(g);
		res = step_all(g, r);
		/* A collective that came ends the sleep of messages as well. */
		if (res || (!collective && has_collective(g))) {
			g->engine->sleep(g, NULL, 0);
			return res;
		}
	}
	res = g->engine->sleep(g, r, left < SLEEP_NS ? left : SLEEP_NS);
	return res < 0 ? res : group_ended(g);
}

static uint64_t operations(tensor_group *g)
{
	uint64_t n;

	pthread_mutex_lock(&g->lock);
	n = g->stats.operations;
	pthread_mutex_unlock(&g->lock);
	return n;
}

/* Carries r out as step_all(), and messages beside it; messages until they have ended (1) or a collective comes (0). */
static int drive(tensor_group *g, tensor_request *r)
{
	int64_t begin = 0, until = LINK_FOREVER;
	uint64_t ended = 0;
	int res;

	for (;;) {
		res = step_all(g, r);
		if (res)
			return res;
		if (!begin || (!r && operations(g) != ended)) {
			ended = r ? 0 : operations(g);
			begin = link_now();
			until = link_deadline(g->timeout_ns);
		}
		if (link_now() - begin < g->spin_ns) {
			ring_pause();
			continue;
		}
		res = sleep_once(g, r, until);
		if (res)
			return res;
		if ((!r || is_message(r)) && has_collective(g))
			return 0;
	}
}

/* The same, and the end of the group if it was an error that no operation can follow. */
static int carry_out(tensor_group *g, tensor_request *r)
{
	int res = drive(g, r);
	bool failed = res < 0 || (r && is_message(r) && r->err < 0);

	if (failed && group_ended(g) < 0 && !g->left && g->engine->give_up) {
		g->left = true;
		g->engine->give_up(g);
	}
	return res;
}

/* ---- the worker ---- */

/* All sends and receives fail with the error of the thread. The caller holds running. */
static void fail_messages(tensor_group *g, int err)
{
	char text[TENSOR_ERROR_TEXT];
	tensor_request *r;

	snprintf(text, sizeof(text), "%s", thread()->error.text);
	pthread_mutex_lock(&g->lock);
	while ((r = g->messages)) {
		pthread_mutex_unlock(&g->lock);
		finish(r, tensor_fail(-err, "%s", text));
		pthread_mutex_lock(&g->lock);
		unlink_message(&g->messages);
		r->ended = true;
	}
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

/* One collective, or the messages while there is none. The caller holds lock. */
static void work(tensor_group *g)
{
	tensor_request *r = g->first;
	int err;

	pthread_mutex_unlock(&g->lock);
	pthread_mutex_lock(&g->running);
	err = carry_out(g, r);
	if (r)
		finish(r, err);
	if (err < 0 && (!r || group_ended(g) < 0))
		fail_messages(g, err);
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

/* The caller holds lock. */
static void wait_until_ended(tensor_request *r)
{
	while (!r->ended)
		pthread_cond_wait(&r->group->changed, &r->group->lock);
}

/* The caller holds running; nothing waits for its turn. A message is in the list, so that later ones wait for it. */
static int run_here(tensor_request *r)
{
	tensor_group *g = r->group;
	int err = carry_out(g, r);
	bool ended = true;

	if (!is_message(r))
		finish(r, err);
	else if (err < 0)
		fail_messages(g, err);
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
	tensor_request ***last = is_message(r) ? &g->messages_last : &g->last;

	r->next = NULL;
	**last = r;
	*last = &r->next;
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
		if (is_message(r))
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
		drop_tensors(r);
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

	if (!to)
		return submit_and_wait(r);
	err = submit(r, to);
	if (err < 0)
		drop_tensors(r);
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
	return ended;
}
