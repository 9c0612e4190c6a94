// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The connection of a channel to another machine: what its frames do, signs of life, beginning and end. */
#include "remote/remote.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TIMEOUT_NS  INT64_C(10000000000)
#define RECORDS	    64
#define DESCRIPTORS 40 /* that must be free before a connection, which has 7 over TCP */
#define FLUSH_NS    INT64_C(200000000)

/* ---- frames ---- */

void remote_greet(struct remote *r)
{
	struct frame f = frame_of(FRAME_HELLO, 0);

	f.values[0] = r->max_bytes;
	f.values[1] = (uint64_t)r->timeout_ns;
	f.values[2] = r->records;
	remote_post(r, &f, NULL, NULL, NULL, 0);
}

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
	a = in ? arrival_new(r, in, bytes, incoming_data) : NULL;
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

/* ---- the thread ---- */

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
		remote_disconnect(r, 0);
	s->due = ended		? LINK_FOREVER :
		 !remote_arm(r) ? now :
		 r->ping_ns	? now + r->ping_ns / 2 :
				  now + REMOTE_LEAST_NS / 2;
	if (r->listener)
		((struct served *)r->listener)->due = now;
	pthread_mutex_unlock(&r->lock);
}

/* At the end of the program: what was sent arrives. */
static void remote_leave(struct served *s)
{
	struct remote *r = (struct remote *)s;

	if (pthread_mutex_trylock(&r->lock))
		return;
	if (r->is_open && !r->dead && !r->has_left) {
		remote_say(r, FRAME_BYE, 0, 0, 0);
		remote_step(r);
	}
	pthread_mutex_unlock(&r->lock);
}

static void remote_flush(struct served *s, int64_t until)
{
	struct remote *r = (struct remote *)s;

	if (pthread_mutex_trylock(&r->lock))
		return;
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
	/* UCX ends the program when it gets none in the middle of a connection. */
	if (!fd_limit_leaves(r->event, DESCRIPTORS)) {
		tensor_fail(EMFILE, "%s: fewer than %d descriptors are left for a connection",
			    function, DESCRIPTORS);
		close(r->event);
		free(r);
		return NULL;
	}
	r->served = (struct served){
		.fd = remote_fd, .serve = remote_serve, .leave = remote_leave, .flush = remote_flush
	};
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
	remote_disconnect(r, r->is_open && !r->dead ? FLUSH_NS : 0);
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
	ch->spin_ns = r->spin_ns < 0 ? 0 : r->spin_ns ? r->spin_ns : link_default_spin();
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
