// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Messages that go. A short one ends when the network has it; a long one when the receiver has all of it. It is sent in pieces,
 * after the receiver has said that it has memory.
 */
#include "remote/remote.h"

#include <stdlib.h>

/* ---- what the peer and the network say ---- */

static bool is_all_sent(const struct parcel *p)
{
	return p->part == p->n;
}

void remote_answered(struct remote *r, const struct frame *f)
{
	struct parcel *p = r->out;
	bool is_valid =
		p && f->message == p->number &&
		(f->kind == FRAME_GRANT ? p->answer == ANSWER_NONE :
		 f->kind == FRAME_DONE	? p->answer == ANSWER_GRANT && is_all_sent(p) :
					  p->answer != ANSWER_DONE && p->answer != ANSWER_REFUSED);

	if (!is_valid) {
		remote_fail(r, -EPROTO, "what the peer sends is not valid: an answer to nothing");
		return;
	}
	p->answer = f->kind == FRAME_GRANT ? ANSWER_GRANT :
		    f->kind == FRAME_DONE  ? ANSWER_DONE :
					     ANSWER_REFUSED;
	p->code = (int)f->values[0];
}

/* ---- a long message ---- */

static void skip_empty(struct parcel *p)
{
	while (p->part < p->n && p->at == p->table[p->part].bytes) {
		p->part++;
		p->at = 0;
	}
}

static void send_pieces(struct remote *r, struct parcel *p)
{
	skip_empty(p);
	while (p->answer == ANSWER_GRANT && p->pending < REMOTE_WINDOW && !is_all_sent(p) &&
	       !r->dead) {
		struct frame f = frame_of(FRAME_PIECE_OF, p->number);
		uint64_t left = p->table[p->part].bytes - p->at;
		const char *from = p->from[p->part] + p->at;
		size_t bytes = left < FRAME_PIECE ? left : FRAME_PIECE;

		f.values[0] = p->part;
		f.values[1] = p->at;
		/* Before the send, inside of which it may end. */
		p->at += bytes;
		skip_empty(p);
		remote_post(r, &f, NULL, p, from, bytes);
	}
}

static int refused(const struct remote *r, const struct parcel *p)
{
	unsigned long long bytes = p->total;

	switch (p->code) {
	case EMSGSIZE:
		return tensor_fail(
			EMSGSIZE,
			"send: the message has %llu bytes, and the peer takes at most %llu", bytes,
			(unsigned long long)r->peer_max);
	case ENOMEM:
		return tensor_fail(ENOMEM, "send: the peer has no memory for %llu bytes", bytes);
	default:
		return tensor_fail(ECANCELED, "send: the receiver ended the transfer");
	}
}

/* Calls the program's function without the lock. 0, or its error. */
static int show_progress(struct remote *r, uint64_t done, uint64_t total)
{
	int err;

	if (!r->progress)
		return 0;
	pthread_mutex_unlock(&r->lock);
	err = r->progress(r->progress_context, true, done, total);
	pthread_mutex_lock(&r->lock);
	return err < 0 ? err : 0;
}

/*
 * Until the peer has answered, and the network reads the tensors no more. It gives up at the deadline and when the program says
 * so, and the peer then answers that it has dropped the message, or that it had it before. A peer that lives but does not
 * answer in its timeout has ended the connection: the call would not end otherwise.
 */
static int carry(struct remote *r, struct parcel *p, int64_t until)
{
	int64_t answer = LINK_FOREVER; /* until which the peer may take after ABORT */
	bool is_late = false;
	int err = 0; /* of the program's function */

	for (;;) {
		remote_step(r);
		/* Also if the peer has left since, and if the network has not said yet that it is done with the last pieces. */
		if (p->answer == ANSWER_DONE) {
			show_progress(r, p->total, p->total);
			return 0;
		}
		if (r->dead || r->has_left)
			return remote_ended(r, "send");
		if (p->answer == ANSWER_REFUSED && !p->pending)
			return err     ? tensor_fail(-err, "send: the function for the progress "
							       "ended the transfer") :
			       is_late ? send_error(-ETIMEDOUT) :
					 refused(r, p);
		if (!err && !is_late) {
			send_pieces(r, p);
			err = show_progress(r, p->done, p->total);
			is_late = !link_left(until);
			if (err || is_late) {
				remote_say(r, FRAME_ABORT, p->number, 0, 0);
				answer = link_deadline(r->timeout_ns);
			}
		} else if (!link_left(answer)) {
			remote_fail(r, -ECONNRESET,
				    "the peer did not answer the end of a message in %lld ms",
				    (long long)(r->timeout_ns / 1000000));
		}
		remote_wait(r, err || is_late ? answer : until);
	}
}

/* ---- any message ---- */

static struct frame head_of(const struct parcel *p, const struct outgoing *o)
{
	struct frame f = frame_of(FRAME_MESSAGE, p->number);

	f.values[0] = o->tag;
	f.values[1] = p->n;
	f.values[2] = p->total;
	return f;
}

static int send_short(struct remote *r, struct parcel *p, const struct outgoing *o)
{
	struct frame f = head_of(p, o);
	size_t bytes = parcel_short(p);

	remote_post(r, &f, p->table, NULL, NULL, bytes);
	p->table = NULL;
	return r->dead ? remote_ended(r, "send") : 0;
}

static int send_long(struct remote *r, struct parcel *p, const struct outgoing *o, int64_t until)
{
	size_t bytes = p->n * sizeof(*p->table);
	struct frame f = head_of(p, o);
	void *table = malloc(bytes);
	int err;

	if (!table)
		return tensor_fail(ENOMEM, "send: no memory for a message");
	memcpy(table, p->table, bytes);
	r->out = p;
	remote_post(r, &f, table, NULL, NULL, bytes);
	err = carry(r, p, until);
	r->out = NULL;
	/* A hostile peer may have given the credit back by TAKEN as well. */
	if (p->answer == ANSWER_REFUSED && r->credits < r->peer_records)
		r->credits++;
	return err;
}

/* Until a message may be sent. 0, or -errno with the error set. */
static int await_credit(struct remote *r, const struct parcel *p, int late, int64_t until)
{
	int err;

	for (;;) {
		remote_step(r);
		if (r->dead || r->has_left)
			return remote_ended(r, "send");
		if (r->credits)
			return 0;
		if (late < 0 || !link_left(until))
			return send_error(late < 0 ? late : -ETIMEDOUT);
		err = show_progress(r, 0, p->total);
		if (err < 0)
			return tensor_fail(-err, "send: the function for the progress ended the "
						 "transfer");
		remote_wait(r, until);
	}
}

static int send_locked(tensor_channel *ch, struct remote *r, struct parcel *p,
		       const struct outgoing *o)
{
	int64_t until = o->until;
	int late = link_resolve(ch, &until), err = await_credit(r, p, late, until);
	bool is_long = p->total > FRAME_SHORT;

	if (err < 0)
		return err;
	if (p->total > r->peer_max) {
		p->code = EMSGSIZE;
		return refused(r, p);
	}
	/* A long one takes its time. */
	if (is_long && (late < 0 || !link_left(until)))
		return send_error(late < 0 ? late : -ETIMEDOUT);
	p->number = ++r->number;
	r->credits--;
	return is_long ? send_long(r, p, o, until) : send_short(r, p, o);
}

int remote_send(tensor_channel *ch, const struct outgoing *o)
{
	struct remote *r = ch->state;
	struct parcel *p = parcel_new(o);
	bool is_left;
	int err;

	if (!p)
		return -thread()->error.code;
	for (uint32_t i = 0; i < p->n && p->total > FRAME_SHORT; i++)
		memory_register(r->transport, p->tensors[i]->storage);
	err = link_lock(&r->lock, o->until);
	if (err < 0) {
		parcel_free(p);
		return send_error(-ETIMEDOUT);
	}
	err = send_locked(ch, r, p, o);
	/* After an error pieces may still be under way. */
	is_left = p->is_left = p->pending;
	pthread_mutex_unlock(&r->lock);
	if (!is_left)
		parcel_free(p);
	return err;
}
