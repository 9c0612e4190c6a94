// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Messages that come. One at a time is received, by whichever thread serves the connection; those that are complete wait for
 * the program. Their tensors are on shareable buffers of this machine: those of a long message have them before its elements
 * come, those of a short one when the program receives it. The sender may be hostile: a message has memory only within max_bytes,
 * buffers, each of which has a descriptor, only within the limit of room_for(), and what does not fit its table ends the
 * connection.
 */
#include "remote/remote.h"

#include <stdlib.h>

struct incoming {
	struct incoming *next;
	uint64_t number, tag, total;
	uint64_t asked; /* bytes of elements that have come or are under way */
	uint64_t done;	/* that have come */
	uint32_t n;
	unsigned pending; /* arrivals */
	bool has_table, has_memory, is_dropped;
	tensor *tensors[FRAME_TENSORS]; /* owned */
	uint64_t shown;			/* bytes that the program's function was called with */
	struct frame_tensor table[];	/* with the elements of a short message behind it */
};

static bool is_short(const struct incoming *in)
{
	return in->total <= FRAME_SHORT;
}

static void drop_tensors(struct incoming *in)
{
	for (uint32_t i = 0; i < in->n; i++) {
		tensor_put(in->tensors[i]);
		in->tensors[i] = NULL;
	}
}

static void free_incoming(struct incoming *in)
{
	drop_tensors(in);
	free(in);
}

/* The message counts against the limits of the connection, or no longer. */
static void count(struct remote *r, struct incoming *in, bool holds)
{
	r->held += holds ? in->total : -in->total;
	if (!is_short(in))
		r->buffers += holds ? in->n : -in->n;
}

/* The message that is being received is not delivered. Its memory is freed when no piece of it comes any more. */
static void drop(struct remote *r)
{
	struct incoming *in = r->in;

	r->in = NULL;
	r->dropped = in->number;
	if (in->has_memory)
		count(r, in, false);
	if (in->pending)
		in->is_dropped = true;
	else
		free_incoming(in);
}

static void refuse(struct remote *r, int code)
{
	remote_say(r, FRAME_REFUSED, r->in->number, (uint64_t)code, r->max_bytes);
	drop(r);
}

/* ---- memory ---- */

static tensor *make_tensor(const struct frame_tensor *t)
{
	struct tensor_storage *s = storage_alloc(TENSOR_DEVICE_CPU, t->bytes, true);

	return s ? tensor_new_on_storage(s, t->dtype, t->sizes, t->strides, (int)t->ndim, 0) : NULL;
}

/* The tensors of the message, with the values that the memory has; false with the error set. */
static bool make_tensors(struct incoming *in)
{
	struct thread_modes before = thread_enter_plain();
	bool done = true;

	for (uint32_t i = 0; i < in->n && done; i++) {
		in->tensors[i] = make_tensor(&in->table[i]);
		done = in->tensors[i];
	}
	thread()->modes = before;
	if (!done)
		drop_tensors(in);
	return done;
}

/* Label and rights, when the elements are there. */
static void finish_tensor(tensor *t, const struct frame_tensor *table)
{
	struct tensor_buffer *b = tensor_storage_buffer(t->storage);

	if (b && *table->label)
		describe_tensor(b, t, table->label);
	if (!(table->flags & FRAME_READONLY))
		return;
	if (b) {
		describe_once(b, t);
		share_mark(b); /* a sealed buffer is never reused */
		b->provider->seal(b);
	}
	t->storage->readonly = true;
}

static void finish_tensors(struct incoming *in)
{
	for (uint32_t i = 0; i < in->n; i++)
		finish_tensor(in->tensors[i], &in->table[i]);
}

/* The tensors of a short message with its elements; false with the error set. */
static bool unpack(struct incoming *in)
{
	const char *from = (const char *)(in->table + in->n);

	if (!make_tensors(in))
		return false;
	for (uint32_t i = 0; i < in->n; from += in->table[i++].bytes)
		if (in->table[i].bytes)
			memcpy(in->tensors[i]->storage->data, from, in->table[i].bytes);
	finish_tensors(in);
	return true;
}

/* The message is complete: it waits for the program. */
static void finish(struct remote *r)
{
	struct incoming *in = r->in;

	if (!is_short(in))
		finish_tensors(in);
	r->in = NULL;
	*r->last = in;
	r->last = &in->next;
	r->waiting++;
	if (!is_short(in))
		remote_say(r, FRAME_DONE, in->number, 0, 0);
}

/* Whether the message may have its memory now. A message alone always may, and so do as many as may wait with one tensor each. */
static bool room_for(const struct remote *r, const struct incoming *in)
{
	uint32_t most = r->records < FRAME_TENSORS ? FRAME_TENSORS : r->records;

	return (!r->held || r->held <= r->max_bytes - in->total) && in->n <= most - r->buffers;
}

void incoming_grant(struct remote *r)
{
	struct incoming *in = r->in;

	if (!in || !in->has_table || in->has_memory || is_short(in))
		return;
	if (in->total > r->max_bytes) {
		refuse(r, EMSGSIZE);
		return;
	}
	/* Again when the program has accepted the channel, or has received a message. */
	if (r->listener || !room_for(r, in))
		return;
	if (!make_tensors(in)) {
		refuse(r, ENOMEM);
		return;
	}
	in->has_memory = true;
	count(r, in, true);
	remote_say(r, FRAME_GRANT, in->number, 0, 0);
}

/* The table has come, with the elements of a short message. */
static void take_table(struct remote *r)
{
	struct incoming *in = r->in;
	const char *why = frame_check_table(in->table, in->n, in->total);

	if (why) {
		remote_fail(r, -EPROTO, "what the peer sends is not valid: %s", why);
		return;
	}
	in->has_table = true;
	if (!is_short(in)) {
		incoming_grant(r);
		return;
	}
	if (in->total > r->max_bytes) {
		remote_fail(r, -EPROTO, "no memory for a message of %llu bytes",
			    (unsigned long long)in->total);
		return;
	}
	in->has_memory = true;
	count(r, in, true);
	finish(r);
}

/* ---- frames ---- */

struct incoming *incoming_begin(struct remote *r, const struct frame *f, size_t bytes, void **to)
{
	struct incoming *in;

	if (r->in || r->has_left || r->waiting >= r->records) {
		remote_fail(r, -EPROTO, "the peer sends more messages than it may");
		return NULL;
	}
	in = calloc(1, sizeof(*in) + bytes);
	if (!in) {
		remote_fail(r, -ENOMEM, "no memory for a message");
		return NULL;
	}
	in->number = f->message;
	in->tag = f->values[0];
	in->n = (uint32_t)f->values[1];
	in->total = f->values[2];
	in->pending = 1;
	r->in = in;
	*to = in->table;
	return in;
}

struct incoming *incoming_piece(struct remote *r, const struct frame *f, size_t bytes, void **to)
{
	struct incoming *in = r->in;
	uint64_t i = f->values[0], at = f->values[1];

	if (!in && f->message == r->dropped)
		return NULL;
	if (!in || f->message != in->number || !in->has_memory || i >= in->n ||
	    at > in->table[i].bytes || bytes > in->table[i].bytes - at ||
	    bytes > in->total - in->asked) {
		remote_fail(r, -EPROTO,
			    "what the peer sends is not valid: more than it has announced");
		return NULL;
	}
	in->asked += bytes;
	in->pending++;
	*to = (char *)in->tensors[i]->storage->data + at;
	return in;
}

void incoming_data(struct remote *r, const struct arrival *a, int err)
{
	struct incoming *in = a->in;

	in->pending--;
	if (in->is_dropped) {
		if (!in->pending)
			free_incoming(in);
		return;
	}
	if (err < 0) {
		remote_fail(r, -ECONNRESET, "the elements of a message did not come");
	} else if (!in->has_table) {
		take_table(r);
	} else {
		in->done += a->bytes;
		if (in->done == in->total)
			finish(r);
	}
}

void incoming_abort(struct remote *r, const struct frame *f)
{
	/* Otherwise the answer has been sent, and the sender will get it. */
	if (r->in && r->in->number == f->message && r->in->has_table)
		refuse(r, ECANCELED);
}

void incoming_end(struct remote *r)
{
	struct incoming *in;

	if (r->in)
		drop(r);
	while ((in = r->first)) {
		r->first = in->next;
		free_incoming(in);
	}
}

/* ---- the program ---- */

/* Gives the first message to the channel, or leaves it where it is. 0, or -errno with the error set. */
static int deliver(tensor_channel *ch, struct remote *r)
{
	struct incoming *in = r->first;
	struct group *g = &ch->group;

	if (is_short(in) && !unpack(in))
		return -thread()->error.code;
	r->first = in->next;
	if (!r->first)
		r->last = &r->first;
	r->waiting--;
	r->taken++;
	count(r, in, false);
	if (!r->first || r->taken >= r->records / 2) {
		remote_say(r, FRAME_TAKEN, 0, r->taken, 0);
		r->taken = 0;
	}
	incoming_grant(r);
	remote_show(r);
	memcpy(g->tensors, in->tensors, in->n * sizeof(*in->tensors));
	g->count = g->have = in->n;
	g->tag = in->tag;
	g->complete = true;
	free(in);
	return 0;
}

/* Calls the program's function without the lock. 0, or its error with the record set. */
static int show_progress(struct remote *r)
{
	struct incoming *in = r->in;
	uint64_t number, done, total;
	int err;

	if (!r->progress || !in || !in->has_memory)
		return 0;
	number = in->number;
	done = in->done;
	total = in->total;
	pthread_mutex_unlock(&r->lock);
	err = r->progress(r->progress_context, false, done, total);
	pthread_mutex_lock(&r->lock);
	if (err >= 0)
		return 0;
	/* It may have become complete meanwhile. */
	if (r->in && r->in->number == number)
		refuse(r, ECANCELED);
	return tensor_fail(-err, "recv: the function for the progress ended the transfer");
}

/* Spins until a message comes. */
static void spin(const tensor_channel *ch, struct remote *r, int64_t until)
{
	struct link_spin s;

	if (!link_may_spin(ch, &r->habit))
		return;
	s = link_spin_begin(ch, until);
	s.look = LINK_FOREVER;
	do {
		remote_step(r);
		if (r->first || r->in || r->dead || r->has_left) {
			link_has_spun(ch, &r->habit, false);
			return;
		}
		ring_pause();
	} while (link_spin_on(&s));
	link_has_spun(ch, &r->habit, true);
}

/* With the lock: 0 with a message in r->first. */
static int await(tensor_channel *ch, struct remote *r, int64_t until)
{
	int late = link_resolve(ch, &until), err;
	bool has_spun = late < 0 || !link_left(until);

	for (;;) {
		remote_step(r);
		if (r->first)
			return 0;
		if (r->dead || r->has_left)
			return remote_ended(r, "recv");
		if (late < 0)
			return tensor_fail(EAGAIN, "recv: %s", strerror(EAGAIN));
		if (!link_left(until))
			return tensor_fail(ETIMEDOUT, "recv: no message came in time");
		if (!has_spun)
			spin(ch, r, until);
		else
			remote_wait(r, until);
		has_spun = true;
		err = show_progress(r);
		if (err < 0)
			return err;
	}
}

int remote_receive(tensor_channel *ch, int64_t until)
{
	struct remote *r = ch->state;
	int err;

	err = link_lock(&r->lock, until);
	if (err < 0)
		return tensor_fail(ETIMEDOUT, "recv: no message came in time");
	err = await(ch, r, until);
	if (!err)
		err = deliver(ch, r);
	pthread_mutex_unlock(&r->lock);
	return err;
}
