// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sends of groups (fanout.h). A thread that waits polls the sockets of the tables with leases, and an eventfd that is
 * written to when a receiver joins. The lock of the group is not held meanwhile.
 */
#include "sharing/fanout.h"

#include "core/trace.h"
#include "sharing/link.h"
#include "sharing/pool.h"
#include "sharing/send.h"

#include <stdlib.h>
#include <unistd.h>

/* Between looks at a ring or socket that is full, of which no descriptor tells when it is not. */
#define ROOM_LOOK_NS 200000

static bool has_window(const tensor_channel_group *g, const struct member *m)
{
	return !m->dead && m->n < g->window;
}

/* A group that waits does not begin a message before all of it fits: a part of the receivers could not be undone. */
static bool has_room(tensor_channel_group *g, const struct member *m, const struct outgoing *o)
{
	if (!has_window(g, m))
		return false;
	if (g->full != TENSOR_POOL_WAIT || channel_has_room(m->ch, o->n))
		return true;
	g->channel_full = true;
	return false;
}

/* The first of its messages that it has not received, or -1. */
static int oldest_waiting(const struct member *m)
{
	for (int i = 0; i < m->n; i++)
		if (lease_can_recall(m->flights[i].lease))
			return i;
	return -1;
}

/* Takes its oldest message back that it has not received. */
static bool drop_oldest(struct member *m)
{
	for (int i; (i = oldest_waiting(m)) >= 0;)
		if (lease_recall(m->flights[i].lease)) {
			flight_end(m, i);
			m->dropped++;
			return true;
		}
	return false;
}

/* ---- waiting ---- */

/* Whether a message can be sent without waiting, or never. */
static bool is_ready(tensor_channel_group *g, const struct outgoing *o)
{
	int living = 0, room = 0;

	g->channel_full = false;
	for (int i = 0; i < g->n; i++) {
		member_settle(g, g->members[i]);
		living += !g->members[i]->dead;
		room += has_room(g, g->members[i], o);
	}
	return !living || (g->kind == TENSOR_CHANNEL_GROUP_ALL ? room == living : room > 0);
}

/* The caller holds the lock. 0 or -ENOMEM. */
static int watch(tensor_channel_group *g, struct lease_watch *w)
{
	size_t most = 0;

	for (int i = 0; i < g->n; i++)
		most += (size_t)g->members[i]->n;
	if (lease_watch_begin(w, most, g->event) < 0)
		return -ENOMEM;
	for (int i = 0; i < g->n; i++)
		for (int k = 0; k < g->members[i]->n; k++)
			lease_watch_add(w, g->members[i]->flights[k].lease->table);
	return 0;
}

/* Waits until the group is ready. The caller holds the lock, which is not held meanwhile. 0 or -errno. */
static int wait_ready(tensor_channel_group *g, const struct outgoing *o)
{
	int err = 0;

	while (!err && !is_ready(g, o)) {
		struct lease_watch w;
		int64_t look = INT64_MAX;
		uint64_t count;

		err = watch(g, &w);
		atomic_fetch_add(&g->waiters, 1);
		if (!err && !is_ready(g, o)) {
			if (g->channel_full)
				look = link_now() + ROOM_LOOK_NS;
			pthread_mutex_unlock(&g->lock);
			err = link_poll(w.fds, w.n, look < o->until ? look : o->until);
			if (err > 0 && w.fds[0].revents &&
			    read(g->event, &count, sizeof(count)) < 0)
				err = 0; /* another thread has read it */
			pthread_mutex_lock(&g->lock);
			err = err > 0 ? 0 : err;
		}
		atomic_fetch_sub(&g->waiters, 1);
		/* The bytes that were read may be for a pool, or for another thread. */
		if (lease_watch_end(&w)) {
			pools_wake();
			fanout_wake_all();
		}
		if (err == -ETIMEDOUT && (look < o->until || is_ready(g, o)))
			err = 0;
	}
	return err;
}

/* ---- sending; the caller holds the lock ---- */

/* The peer is gone, or cannot be sent anything any more. */
static bool ends_channel(int err)
{
	return err == -EPIPE || err == -EBADMSG || err == -EPROTO || err == -ECONNRESET;
}

/* 1: sent; 0: the receiver is gone; -errno with the error set. */
static int deliver(tensor_channel_group *g, struct member *m, struct outgoing o)
{
	struct lease *lease;
	int err;

	if (g->full != TENSOR_POOL_WAIT)
		o.until =
			link_now(); /* for the ring or the socket, which may be full of what was taken back */
	err = channel_send_leased(m->ch, &o, &lease);
	if (ends_channel(err)) {
		member_bury(g, m);
		return 0;
	}
	if (err < 0)
		return err;
	m->flights[m->n++] = (struct flight){ lease, o.tag, g->number };
	m->last = g->number;
	m->sent++;
	return 1;
}

static int refuse_full(void)
{
	return tensor_fail(EAGAIN, "group_send: a receiver has not released enough messages");
}

static int wait_error(int err)
{
	return tensor_fail(-err, "group_send: %s",
			   err == -ETIMEDOUT ? "the receivers have released too little in time" :
					       strerror(-err));
}

static int send_all(tensor_channel_group *g, const struct outgoing *o)
{
	int err = 0, sent = 0, one;

	if (g->full == TENSOR_POOL_WAIT)
		err = wait_ready(g, o);
	if (err < 0)
		return wait_error(err);
	if (g->full == TENSOR_POOL_REFUSE && !is_ready(g, o))
		return refuse_full();
	for (int i = 0; i < g->n; i++) {
		struct member *m = g->members[i];

		member_settle(g, m);
		if (m->dead)
			continue;
		one = has_window(g, m) || (g->full == TENSOR_POOL_DROP && drop_oldest(m)) ?
			      deliver(g, m, *o) :
			      -EAGAIN;
		sent += one > 0;
		m->dropped += one < 0;
		/* An error of the message itself is the result if no receiver got it. */
		if (one < 0 && one != -EAGAIN && one != -ETIMEDOUT)
			err = one;
	}
	return sent || !err ? sent : err;
}

/* The receiver with the fewest messages; of those the one that got its last message first. NULL: all are full. */
static struct member *least_busy(tensor_channel_group *g, const struct outgoing *o)
{
	struct member *best = NULL;

	for (int i = 0; i < g->n; i++) {
		struct member *m = g->members[i];

		if (has_room(g, m, o) &&
		    (!best || m->n < best->n || (m->n == best->n && m->last < best->last)))
			best = m;
	}
	return best;
}

/* The receiver of the oldest message that was not received. */
static struct member *longest_waiting(const tensor_channel_group *g)
{
	uint64_t oldest = UINT64_MAX;
	struct member *found = NULL;

	for (int i = 0; i < g->n; i++) {
		struct member *m = g->members[i];
		int k = oldest_waiting(m);

		if (k >= 0 && m->flights[k].number < oldest) {
			oldest = m->flights[k].number;
			found = m;
		}
	}
	return found;
}

/* A receiver with room; NULL with *err. */
static struct member *next_member(tensor_channel_group *g, const struct outgoing *o, int *err)
{
	struct member *m;

	*err = 0;
	for (;;) {
		bool ready = is_ready(g, o);

		m = least_busy(g, o);
		if (m)
			return m;
		fanout_settle(g);
		if (ready) {
			*err = tensor_fail(ENOTCONN,
					   "group_send: the group has no receiver that lives");
			return NULL;
		}
		if (least_busy(g, o))
			continue;
		if (g->full == TENSOR_POOL_REFUSE) {
			*err = refuse_full();
			return NULL;
		}
		m = g->full == TENSOR_POOL_DROP ? longest_waiting(g) : NULL;
		if (m && drop_oldest(m))
			continue;
		*err = wait_ready(g, o);
		if (*err < 0) {
			wait_error(*err);
			return NULL;
		}
	}
}

static int send_next(tensor_channel_group *g, const struct outgoing *o)
{
	struct member *m;
	int err;

	do {
		m = next_member(g, o, &err);
		if (m)
			err = deliver(g, m, *o);
	} while (m && !err); /* the receiver is gone: to another one */
	return err;
}

TENSOR_EXPORT int tensor_channel_group_send(tensor_channel_group *g, tensor *const *tensors, int n,
					    uint64_t tag, unsigned flags, int64_t timeout_ns)
{
	struct outgoing o = { tensors, n, tag, flags, link_deadline(timeout_ns) };
	int err;

	TRACE_SPAN("sharing", "tensor_channel_group_send");
	if (!g)
		return tensor_fail(EINVAL, "group_send: the group is NULL");
	if (outgoing_check("group_send", &o) < 0)
		return -EINVAL;
	if (group_lock(g) < 0)
		return -EBUSY;
	err = fanout_reserve(g);
	g->number++;
	if (!err)
		err = g->kind == TENSOR_CHANNEL_GROUP_ALL ? send_all(g, &o) : send_next(g, &o);
	pthread_mutex_unlock(&g->lock);
	return err;
}
