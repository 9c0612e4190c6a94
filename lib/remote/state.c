// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The state of a connection: what is under way, its error, frames that go, and waiting. */
#include "remote/remote.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STEPS	256  /* of the network in one turn */
#define OPS_MAX 1024 /* frames that are being sent, besides the messages */

/* ---- lists of what is under way ---- */

static struct remote_op *op_new(struct remote *r)
{
	struct remote_op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->next = r->ops;
	op->link = &r->ops;
	if (op->next)
		op->next->link = &op->next;
	r->ops = op;
	r->n_ops++;
	return op;
}

void op_end(struct remote *r, struct remote_op *op, int err)
{
	*op->link = op->next;
	if (op->next)
		op->next->link = op->link;
	r->n_ops--;
	if (op->frame.kind == FRAME_PING)
		r->pings = false;
	if (op->parcel)
		parcel_sent(op->parcel, op->bytes, err);
	free(op->data);
	free(op);
}

struct arrival *arrival_new(struct remote *r, struct incoming *in, size_t bytes, arrival_fn end)
{
	struct arrival *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->in = in;
	a->bytes = bytes;
	a->end = end;
	a->next = r->arrivals;
	a->link = &r->arrivals;
	if (a->next)
		a->next->link = &a->next;
	r->arrivals = a;
	return a;
}

void arrival_end(struct remote *r, struct arrival *a, int err)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	a->end(r, a, err);
	free(a);
}

/* ---- the end ---- */

void remote_fail(struct remote *r, int err, const char *fmt, ...)
{
	va_list args;

	if (r->dead)
		return;
	r->dead = err;
	va_start(args, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, args);
	va_end(args);
}

int remote_ended(const struct remote *r, const char *function)
{
	if (r->has_left || !r->dead)
		return tensor_fail(EPIPE, "%s: the peer is gone", function);
	return tensor_fail(-r->dead, "%s: the connection has ended: %s", function, r->why);
}

void remote_disconnect(struct remote *r, int64_t wait_ns)
{
	struct transport_connection *c = r->connection;

	if (!c)
		return;
	r->connection = NULL;
	pthread_mutex_unlock(&r->lock);
	r->transport->close(c, wait_ns);
	pthread_mutex_lock(&r->lock);
	while (r->ops)
		op_end(r, r->ops, -ECANCELED);
	while (r->arrivals)
		arrival_end(r, r->arrivals, -ECANCELED);
}

/* ---- frames that go ---- */

void remote_post(struct remote *r, const struct frame *f, void *data, struct parcel *parcel,
		 const void *from, size_t bytes)
{
	struct remote_op *op = r->connection && !r->dead ? op_new(r) : NULL;
	int res;

	if (!op) {
		if (!r->dead)
			remote_fail(r, -ENOMEM, "no memory for a frame");
		free(data);
		return;
	}
	op->frame = *f;
	op->data = data;
	op->parcel = parcel;
	op->bytes = bytes;
	if (parcel)
		parcel->pending++;
	/* A peer that asks all the time and reads no answers. */
	if (r->n_ops > OPS_MAX + r->peer_records)
		remote_fail(r, -EPROTO, "the peer does not read what it has asked for");
	res = r->transport->send(r->connection, &op->frame, sizeof(op->frame), data ? data : from,
				 bytes, parcel != NULL, op);
	if (res < 0)
		remote_fail(r, res == -ENOMEM ? res : -ECONNRESET, "a frame was not sent: %s",
			    strerror(-res));
	if (res <= 0)
		op_end(r, op, res);
}

void remote_say(struct remote *r, enum frame_kind kind, uint64_t message, uint64_t a, uint64_t b)
{
	struct frame f = frame_of(kind, message);

	f.values[0] = a;
	f.values[1] = b;
	remote_post(r, &f, NULL, NULL, NULL, 0);
}

/* ---- progress ---- */

bool remote_step(struct remote *r)
{
	bool any = false;

	for (int i = 0; i < STEPS && r->connection && r->transport->step(r->connection); i++)
		any = true;
	if (any) {
		remote_show(r);
		pthread_cond_broadcast(&r->changed);
	}
	return any;
}

void remote_show(struct remote *r)
{
	bool is_ready = r->first || r->dead || r->has_left;
	uint64_t count = 1;

	if (is_ready == r->is_shown)
		return;
	r->is_shown = is_ready;
	/* Neither blocks: the count is 0 or 1. A program that reads the descriptor itself has the loss. */
	if (is_ready ? write(r->event, &count, sizeof(count)) < 0 :
		       link_wait_socket(r->event, POLLIN, 0) > 0 &&
			       read(r->event, &count, sizeof(count)) < 0)
		return;
}

bool remote_arm(struct remote *r)
{
	return !r->connection || r->transport->arm(r->connection);
}

void remote_wait(struct remote *r, int64_t until)
{
	int64_t end = link_deadline(REMOTE_LOOK_NS);
	struct timespec t;

	if (remote_step(r) || !remote_arm(r))
		return;
	end = end < until ? end : until;
	t = (struct timespec){ end / 1000000000, end % 1000000000 };
	pthread_cond_timedwait(&r->changed, &r->lock, &t);
}
