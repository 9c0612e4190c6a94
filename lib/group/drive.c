// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Carries operations out, in the thread that holds running: steps of the engine, and sleeps between them. */
#include "group/group.h"

#include "core/trace.h"
#include "sharing/link.h"

#include "family/copy.h"

#include <stdio.h>
#include <stdlib.h>

#define SLEEP_NS INT64_C(10000000) /* at most, until the next look whether the ranks live */

void request_drop_tensors(tensor_request *r)
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
		void *stream = group_enter_stream(r->device, r->stream);

		before = thread_enter_plain();
		done = call_copy_(r->out_tensor, r->out_packed);
		thread()->modes = before;
		group_enter_stream(r->device, stream);
	} else
		tensor_bump_version(r->out_tensor);
	return done ? 0 : -thread()->error.code;
}

static uint64_t bytes_of(const tensor *t)
{
	return t ? (uint64_t)t->numel * itemsize(t) : 0;
}

/* Also after an error, which remains: the device may use the tensors. */
static int finish_on_device(tensor_request *r, int err)
{
	const struct tensor_error first = thread()->error;
	int res = r->group->engine->device->finish(r);

	if (err < 0)
		return tensor_fail(first.code, "%s", first.text);
	return res < 0 ? res : err;
}

void request_finish(tensor_request *r, int err)
{
	tensor_group *g = r->group;

	if (err >= 0)
		err = unpack(r);
	if (r->operation)
		err = finish_on_device(r, err);
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
	if (g->engine->drop)
		g->engine->drop(r);
	request_drop_tensors(r);
}

/* ---- steps ---- */

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

/* ---- queues of messages ---- */

int messages_prepare(tensor_group *g)
{
	int n = 2 * g->size;

	g->queues = malloc((size_t)n * sizeof(*g->queues));
	if (!g->queues)
		return tensor_fail(ENOMEM, "group_open: no memory");
	for (int i = 0; i < n; i++)
		g->queues[i] = (struct message_queue){ NULL, &g->queues[i].first };
	return 0;
}

void message_append(tensor_request *r)
{
	tensor_group *g = r->group;
	struct message_queue *q =
		&g->queues[r->call.root + (r->call.kind == GROUP_RECV ? g->size : 0)];

	r->next = NULL;
	*q->last = r;
	q->last = &r->next;
	g->messages++;
}

/* The message, which is the first of its queue, has ended. The caller holds lock. */
static void end_first(struct message_queue *q)
{
	tensor_request *r = q->first;

	q->first = r->next;
	if (!r->next)
		q->last = &q->first;
	r->group->messages--;
	r->ended = true;
	pthread_cond_broadcast(&r->group->changed);
}

/* The first message of queue *at or of the next one that has any; NULL: there is none. */
static tensor_request *next_message(tensor_group *g, int *at)
{
	tensor_request *r = NULL;

	pthread_mutex_lock(&g->lock);
	for (; g->messages && *at < 2 * g->size && !r; *at += !r)
		r = g->queues[*at].first;
	pthread_mutex_unlock(&g->lock);
	return r;
}

static void end_message(tensor_group *g, int queue, int res)
{
	request_finish(g->queues[queue].first, res);
	pthread_mutex_lock(&g->lock);
	end_first(&g->queues[queue]);
	pthread_mutex_unlock(&g->lock);
}

/* Goes on with the sends and receives. Returns whether some have not ended. */
static bool step_messages(tensor_group *g)
{
	tensor_request *r;
	bool left = false;

	for (int i = 0; (r = next_message(g, &i));) {
		int res = step(r);

		if (res)
			end_message(g, i, res);
		else
			i++;
		left |= !res;
	}
	return left;
}

/* ---- all operations ---- */

/* r: a collective, which is in no list, a message that is in its queue, or NULL: all messages. 1: it has ended. */
static int step_all(tensor_group *g, tensor_request *r)
{
	bool left = step_messages(g);

	if (r && request_is_message(r))
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
	tensor_request *collective = r && !request_is_message(r) ? r : NULL;
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
		if ((!r || request_is_message(r)) && has_collective(g))
			return 0;
	}
}

/* The caller holds running. */
static void leave(tensor_group *g)
{
	if (!g->left && g->engine->give_up)
		g->engine->give_up(g);
	g->left = true;
}

TENSOR_EXPORT void group_leave(tensor_group *g)
{
	pthread_mutex_lock(&g->running);
	leave(g);
	pthread_mutex_unlock(&g->running);
}

/* As an event of its own: the span of the public function can be of another thread, and end before. */
static int drive_collective(tensor_group *g, tensor_request *r)
{
	char call[CALL_TEXT];

	TRACE_SPAN("group", group_kind_names[r->call.kind]);
	if (trace_describes(&trace_span))
		trace_add(&trace_span, "\"rank\":%d,\"call\":\"%s\",\"bytes\":%lld", g->rank,
			  group_call_text(&r->call, call),
			  (long long)(request_bytes(r) * (request_has_parts(r) ? g->size : 1)));
	return drive(g, r);
}

int requests_carry_out(tensor_group *g, tensor_request *r)
{
	int res = r && !request_is_message(r) ? drive_collective(g, r) : drive(g, r);
	bool failed = res < 0 || (r && request_is_message(r) && r->err < 0);

	if (failed && group_ended(g) < 0)
		leave(g);
	return res;
}

void requests_fail_messages(tensor_group *g, int err)
{
	char text[TENSOR_ERROR_TEXT];

	snprintf(text, sizeof(text), "%s", thread()->error.text);
	for (int i = 0; next_message(g, &i);)
		end_message(g, i, tensor_fail(-err, "%s", text));
}
