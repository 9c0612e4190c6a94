// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The connection of a channel to another machine: its frames, signs of life, beginning and end. */
#include "remote/remote.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TIMEOUT_NS INT64_C(10000000000)
#define RECORDS	   64
#define STEPS	   256	/* of the network in one turn */
#define OPS_MAX	   1024 /* frames that are being sent, besides the messages */
#define FLUSH_NS   INT64_C(200000000)

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

static void op_end(struct remote *r, struct remote_op *op, int err)
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

static struct arrival *arrival_new(struct remote *r, struct incoming *in, size_t bytes)
{
	struct arrival *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->in = in;
	a->bytes = bytes;
	a->next = r->arrivals;
	a->link = &r->arrivals;
	if (a->next)
		a->next->link = &a->next;
	r->arrivals = a;
	return a;
}

static void arrival_end(struct remote *r, struct arrival *a, int err)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	incoming_data(r, a, err);
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

/*
 * Nothing is under way afterwards. The network may take its time, in which the lock is free; what it says meanwhile does not
 * count.
 */
static void disconnect(struct remote *r, int64_t wait_ns)
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

void remote_greet(struct remote *r)
{
	struct frame f = frame_of(FRAME_HELLO, 0);

	f.values[0] = r->max_bytes;
	f.values[1] = (uint64_t)r->timeout_ns;
	f.values[2] = r->records;
	remote_post(r, &f, NULL, NULL, NULL, 0);
}

/* ---- frames that come ---- */

static void take_hello(struct remote *r, const struct frame *f)
{
	int64_t theirs = f->values[1] < (uint64_t)REMOTE_LEAST_NS ? REMOTE_LEAST_NS :
			 f->values[1] > INT64_MAX		  ? INT64_MAX :
								    (int64_t)f->values[1];

	if (r->is_open || !f->values[2] || f->values[2] > RING_MAX) {
		remote_fail(r, -EPROTO,
			    "the peer greets twice, or with numbers that are not possible");
		return;
	}
	r->is_open = true;
	r->peer_max = f->values[0];
	r->credits = r->peer_records = (uint32_t)f->values[2];
	r->ping_ns = (theirs < r->timeout_ns ? theirs : r->timeout_ns) / 4;
}

static void take_taken(struct remote *r, const struct frame *f)
{
	if (f->values[0] > r->peer_records - r->credits)
		remote_fail(r, -EPROTO, "the peer has received more messages than were sent");
	else
		r->credits += (uint32_t)f->values[0];
}

static void take_bye(struct remote *r)
{
	r->has_left = true;
	if (r->in)
		remote_fail(r, -EPROTO, "the peer has left in the middle of a message");
	remote_say(r, FRAME_BYE_BACK, 0, 0, 0);
}

static void take_frame(struct remote *r, const struct frame *f)
{
	switch ((enum frame_kind)f->kind) {
	case FRAME_HELLO:
		take_hello(r, f);
		break;
	case FRAME_GRANT:
	case FRAME_DONE:
	case FRAME_REFUSED:
		remote_answered(r, f);
		break;
	case FRAME_ABORT:
		incoming_abort(r, f);
		break;
	case FRAME_TAKEN:
		take_taken(r, f);
		break;
	case FRAME_BYE:
		take_bye(r);
		break;
	case FRAME_BYE_BACK:
		r->all_came = true;
		break;
	default:
		break;
	}
}

static bool on_frame(void *owner, const void *header, size_t header_bytes, size_t bytes, void **to,
		     void **token)
{
	struct remote *r = owner;
	struct incoming *in;
	struct arrival *a;
	struct frame f = { 0 };
	const char *why;

	if (r->dead || !r->connection)
		return false;
	memcpy(&f, header, header_bytes < sizeof(f) ? header_bytes : sizeof(f));
	why = frame_check(&f, header_bytes, bytes);
	if (!why && !r->is_open && f.kind != FRAME_HELLO)
		why = "it does not greet";
	if (why) {
		remote_fail(r, -EPROTO, "what the peer sends is not valid: %s", why);
		return false;
	}
	r->heard = link_now();
	if (f.kind != FRAME_MESSAGE && f.kind != FRAME_PIECE_OF) {
		take_frame(r, &f);
		return false;
	}
	in = f.kind == FRAME_MESSAGE ? incoming_begin(r, &f, bytes, to) :
				       incoming_piece(r, &f, bytes, to);
	a = in ? arrival_new(r, in, bytes) : NULL;
	if (in && !a)
		remote_fail(r, -ENOMEM, "no memory for a message");
	*token = a;
	return a;
}

static void on_data(void *owner, void *token, int err)
{
	struct remote *r = owner;

	if (!r->connection)
		return;
	r->heard = link_now();
	arrival_end(r, token, err);
}

static void on_sent(void *owner, void *token, int err)
{
	struct remote *r = owner;

	if (r->connection)
		op_end(r, token, err);
}

static void on_failed(void *owner, int err, const char *why)
{
	struct remote *r = owner;

	if (!r->has_left && r->connection)
		remote_fail(r, err, "%s", why);
}

const struct transport_events remote_events = { on_frame, on_data, on_sent, on_failed };

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

/* Asks the network for its descriptor. False if there is more to do. */
static bool arm(struct remote *r)
{
	return !r->connection || r->transport->arm(r->connection);
}

void remote_wait(struct remote *r, int64_t until)
{
	int64_t end = link_deadline(REMOTE_LOOK_NS);
	struct timespec t;

	if (remote_step(r) || !arm(r))
		return;
	end = end < until ? end : until;
	t = (struct timespec){ end / 1000000000, end % 1000000000 };
	pthread_cond_timedwait(&r->changed, &r->lock, &t);
}

static int remote_fd(struct served *s)
{
	struct remote *r = (struct remote *)s;

	return r->connection ? r->transport->fd(r->connection) : -1;
}

/* Says that this end lives, and looks whether the other one does. */
static void look(struct remote *r, int64_t now)
{
	if (r->dead || r->has_left)
		return;
	if (now - r->heard > r->timeout_ns)
		remote_fail(r, -ECONNRESET, "nothing came from the peer for %lld ms",
			    (long long)(r->timeout_ns / 1000000));
	else if (r->is_open && now >= r->ping_at && !r->pings) {
		r->pings = true;
		r->ping_at = now + r->ping_ns;
		remote_say(r, FRAME_PING, 0, 0, 0);
	}
}

static void remote_serve(struct served *s)
{
	struct remote *r = (struct remote *)s;
	bool ended;
	int64_t now;

	pthread_mutex_lock(&r->lock);
	remote_step(r);
	now = link_now();
	look(r, now);
	ended = r->dead;
	remote_show(r);
	pthread_cond_broadcast(&r->changed);
	/* A dead connection sends nothing more, but may still have memory of messages. */
	if (ended)
		disconnect(r, 0);
	s->due = ended	    ? LINK_FOREVER :
		 !arm(r)    ? now :
		 r->ping_ns ? now + r->ping_ns / 2 :
			      now + REMOTE_LEAST_NS / 2;
	if (r->listener)
		((struct served *)r->listener)->due = now;
	pthread_mutex_unlock(&r->lock);
}

/* At the end of the program: what was sent arrives. */
static void remote_leave(struct served *s)
{
	struct remote *r = (struct remote *)s;
	int64_t until = link_deadline(FLUSH_NS);

	if (pthread_mutex_trylock(&r->lock))
		return;
	if (r->is_open && !r->dead && !r->has_left)
		remote_say(r, FRAME_BYE, 0, 0, 0);
	while (r->is_open && !r->dead && !r->has_left && !r->all_came && link_left(until))
		if (!remote_step(r))
			link_wait_socket(remote_fd(s), POLLIN, link_deadline(1000000));
	pthread_mutex_unlock(&r->lock);
}

/* ---- beginning and end ---- */

static uint64_t memory_quarter(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;
}

int remote_options(const char *function, const struct tensor_remote_options *o,
		   struct tensor_remote_options *to)
{
	*to = o ? *o : (struct tensor_remote_options){ 0 };
	if ((to->timeout_ns && to->timeout_ns < REMOTE_LEAST_NS) || to->records < 0 ||
	    to->records > (int32_t)RING_MAX || to->spin_ns < -1)
		return tensor_fail(
			EINVAL,
			"%s: a timeout of %lld ns, %d records, a spin of %lld ns: 100 ms and "
			"more, 0 to %u, -1 to any are possible",
			function, (long long)to->timeout_ns, to->records, (long long)to->spin_ns,
			RING_MAX);
	to->timeout_ns = to->timeout_ns ? to->timeout_ns : TIMEOUT_NS;
	to->max_bytes = to->max_bytes ? to->max_bytes : memory_quarter();
	to->records = to->records ? to->records : RECORDS;
	return 0;
}

static void init_locks(struct remote *r)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attr);
	pthread_condattr_destroy(&attr);
}

struct remote *remote_new(const char *function, const struct transport *transport,
			  const struct tensor_remote_options *o)
{
	struct remote *r = calloc(1, sizeof(*r));

	if (!r) {
		tensor_fail(ENOMEM, "%s: no memory", function);
		return NULL;
	}
	/* Not close-on-exec alone: its mode says whether calls without a timeout wait. */
	r->event = eventfd(0, EFD_CLOEXEC);
	if (r->event < 0) {
		tensor_fail(errno, "%s: no descriptor: %s", function, strerror(errno));
		free(r);
		return NULL;
	}
	r->served =
		(struct served){ .fd = remote_fd, .serve = remote_serve, .leave = remote_leave };
	r->transport = transport;
	r->timeout_ns = o->timeout_ns;
	r->spin_ns = o->spin_ns;
	r->max_bytes = o->max_bytes;
	r->records = (uint32_t)o->records;
	r->last = &r->first;
	r->opened = r->heard = link_now();
	init_locks(r);
	return r;
}

void remote_free(struct remote *r)
{
	pthread_mutex_lock(&r->lock);
	disconnect(r, r->is_open && !r->dead ? FLUSH_NS : 0);
	incoming_end(r);
	pthread_mutex_unlock(&r->lock);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	close(r->event);
	free(r);
}

/* Says that no more comes, and waits until the peer has received all, but not longer than it may be silent. */
static void leave(struct remote *r)
{
	int64_t until =
		link_deadline(r->timeout_ns < REMOTE_LEAVE_NS ? r->timeout_ns : REMOTE_LEAVE_NS);

	pthread_mutex_lock(&r->lock);
	if (!r->dead && !r->has_left)
		remote_say(r, FRAME_BYE, 0, 0, 0);
	while (!r->dead && !r->has_left && !r->all_came && link_left(until))
		remote_wait(r, until);
	pthread_mutex_unlock(&r->lock);
}

/* In a child of fork() the connection is the parent's: only the descriptor is the child's, too. */
static void close_channel(tensor_channel *ch)
{
	struct remote *r = ch->state;

	if (ch->orphan) {
		close(ch->socket);
		return;
	}
	leave(r);
	serve_remove(&r->served);
	remote_free(r);
}

static const struct channel_remote functions = { remote_send, remote_receive, close_channel };

tensor_channel *remote_channel(const char *function, struct remote *r)
{
	tensor_channel *ch = channel_new(function, r->event);

	if (!ch) {
		serve_remove(&r->served);
		remote_free(r);
		return NULL;
	}
	ch->remote = &functions;
	ch->state = r;
	ch->adaptive = !r->spin_ns;
	ch->spin_ns = r->spin_ns < 0 ? 0 : r->spin_ns ? r->spin_ns : link_default_spin(2);
	channel_publish(ch);
	return ch;
}

TENSOR_EXPORT bool tensor_channel_is_remote(const tensor_channel *ch)
{
	return ch && ch->remote;
}

TENSOR_EXPORT int tensor_channel_set_progress(tensor_channel *ch, tensor_channel_progress progress,
					      void *context)
{
	struct remote *r;

	if (!ch || !ch->remote)
		return tensor_fail(EINVAL, "channel_set_progress: %s",
				   ch ? "the channel leads to a process of this machine" :
					"the channel is NULL");
	r = ch->state;
	r->progress = progress;
	r->progress_context = context;
	return 0;
}
