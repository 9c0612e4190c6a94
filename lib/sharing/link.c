// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The messages of a channel, by the socket or by a ring (docs/sharing.md, Rings).
 *
 * The receiver makes the ring of a direction when the mark in the first message has shown that the peer can use one,
 * and offers it on the socket. From then on the sender writes messages without fd to the ring. Messages with fd stay on
 * the socket; each has the number of records before it, and each record the number of messages before it, so that the
 * receiver gets both in the order in which they were sent. A receiver that goes to sleep arms the ring, and the sender
 * of the next record sends a bell on the socket: a wait for the socket sees messages and the death of the peer.
 */
#include "sharing/link.h"

#include "sharing/record.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAP_MIN_NS  1000000 /* a wait for a full ring, until the next look whether the peer lives */
#define NAP_MAX_NS  10000000
#define BELL_NAP_NS 1000000
#define PUMP_MAX    64 /* messages on the socket that are read without a look at the deadline */
#define PUMP_ROUNDS 256
#define BELL_TRIES  100 /* while the kernel has no memory */
#define LIVES_EVERY 16	/* records between looks whether the peer lives */

static const uint64_t mark[WIRE_SLOTS / 64] = WIRE_MARK;

/* ---- begin and end ---- */

void link_open(tensor_channel *ch)
{
	ch->ring_in.fd = -1;
	ch->ring_in.message.fd = -1;
	atomic_init(&ch->offer_fd, -1);
}

void link_close(tensor_channel *ch)
{
	int fd = atomic_load(&ch->offer_fd);

	if (fd >= 0)
		close(fd);
	if (ch->ring_in.fd >= 0)
		close(ch->ring_in.fd);
	ring_close(&ch->ring_in.ring);
	ring_close(&ch->ring_out.ring);
}

/* ---- messages of the channel itself ---- */

static int send_control(const tensor_channel *ch, uint32_t kind, int fd)
{
	struct wire_message m = { .magic = WIRE_MAGIC,
				  .version = WIRE_VERSION,
				  .size = sizeof(m),
				  .flags = WIRE_CONTROL | (fd >= 0 ? WIRE_FD : 0),
				  .slot = WIRE_NO_SLOT,
				  .dtype = kind };

	if (kind == WIRE_OFFER) {
		memcpy(m.forget, mark, sizeof(mark));
		m.offset = ch->takes_files;
	}
	return wire_send(ch->socket, &m, fd, MSG_DONTWAIT);
}

/* Offers the ring to the peer; again later if the socket is full. The caller holds receiving and sending. */
static void offer(tensor_channel *ch)
{
	struct link_in *in = &ch->ring_in;
	int err;

	if (!in->ring.page && ring_make(&in->ring, ch->ring_records, &in->fd) < 0) {
		in->offered = true; /* without memory the channel stays on the socket */
		return;
	}
	err = send_control(ch, WIRE_OFFER, in->fd);
	if (err == -EAGAIN)
		return;
	ch->ring_out.marked |= !err;
	in->offered = true;
	close(in->fd);
	in->fd = -1;
}

/* A message that is not of a tensor is complete. */
static int take_control(tensor_channel *ch)
{
	struct wire_in *in = &ch->in;
	bool is_offer = in->m.flags == (WIRE_CONTROL | WIRE_FD) && in->m.dtype == WIRE_OFFER;
	int fd = in->fd;

	if (in->extra ||
	    (!is_offer && (in->m.flags != WIRE_CONTROL || in->m.dtype != WIRE_BELL || fd >= 0)))
		return -EBADMSG;
	/* A file that is no memfd may belong to a file system of the peer: wire_reset() closes it. */
	if (is_offer && fd >= 0 && fcntl(fd, F_GET_SEALS) >= 0) {
		in->fd = -1;
		ch->peer_takes_files = in->m.offset == 1;
		fd = atomic_exchange(&ch->offer_fd, fd);
		if (fd >= 0)
			close(fd);
	}
	wire_reset(in);
	return 0;
}

static bool is_control(const struct wire_message *m)
{
	return m->magic == WIRE_MAGIC && m->version == WIRE_VERSION && m->size == sizeof(*m) &&
	       m->flags & WIRE_CONTROL;
}

/*
 * Reads messages from the socket until one is of a tensor; how: MSG_DONTWAIT, or 0 to read one and wait for it if the
 * socket blocks. 1 if any came, else -EAGAIN; -EPIPE; another error ends the channel.
 */
static int pump(tensor_channel *ch, int how)
{
	struct link_in *in = &ch->ring_in;
	int err = 0, n = 0;

	if (in->ring.page)
		ring_look(&in->ring);
	while (!in->full && n < (how ? PUMP_MAX : 1) && !err) {
		err = wire_recv(ch->socket, ch->packets, &ch->in, how);
		if (err < 0)
			break;
		n++;
		in->peer_rings |= !memcmp(ch->in.m.forget, mark, sizeof(mark));
		if (is_control(&ch->in.m)) {
			err = take_control(ch);
		} else {
			in->full = true;
			in->position = (uint16_t)(ch->in.m.flags >> WIRE_POSITION_SHIFT);
			ch->in.m.flags &= (1u << WIRE_POSITION_SHIFT) - 1;
		}
	}
	/* A thread that sends may be this one. */
	if (in->peer_rings && !in->offered && !pthread_mutex_trylock(&ch->sending)) {
		offer(ch);
		pthread_mutex_unlock(&ch->sending);
	}
	if (err == -EPIPE)
		ch->eof = true;
	else if (err < 0 && err != -EAGAIN)
		ch->dead = err;
	return n && err == -EAGAIN ? 1 : err ? err : n ? 1 : -EAGAIN;
}

/*
 * Reads what is in the socket, up to the message of a tensor; 1 if that is complete, else as pump(). Bells may be before
 * it, as many as the socket takes; a peer that sends more of them meanwhile does not keep this process.
 */
static int pump_all(tensor_channel *ch)
{
	int err = 1;

	for (int i = 0; i < PUMP_ROUNDS && err > 0 && !ch->ring_in.full; i++)
		err = pump(ch, MSG_DONTWAIT);
	return ch->ring_in.full ? 1 : err;
}

/* ---- sending ---- */

bool link_has_ring(tensor_channel *ch)
{
	int fd;

	if (ch->ring_out.ring.page || !ch->ring_wanted || !ch->ring_out.marked)
		return ch->ring_out.ring.page;
	/* A program that only sends looks for the offer here. */
	if (atomic_load(&ch->offer_fd) < 0 && !pthread_mutex_trylock(&ch->receiving)) {
		if (!ch->dead && !ch->eof)
			pump(ch, MSG_DONTWAIT);
		pthread_mutex_unlock(&ch->receiving);
	}
	fd = atomic_exchange(&ch->offer_fd, -1);
	if (fd < 0)
		return false;
	if (ring_open(&ch->ring_out.ring, fd) < 0)
		ch->ring_out.ring.page = NULL; /* refused: the channel stays on the socket */
	close(fd);
	return ch->ring_out.ring.page;
}

int link_send_socket(tensor_channel *ch, const struct wire_message *m, int fd, int64_t until)
{
	struct wire_message out = *m;
	int err;

	if (ch->ring_wanted && !ch->ring_out.marked)
		memcpy(out.forget, mark, sizeof(mark));
	if (ch->ring_out.ring.page)
		out.flags |= (uint32_t)ch->ring_out.ring.at << WIRE_POSITION_SHIFT;
	for (;;) {
		err = wire_send(ch->socket, &out, fd, until == LINK_BY_SOCKET ? 0 : MSG_DONTWAIT);
		if (err != -EAGAIN || until == LINK_BY_SOCKET)
			break;
		err = link_wait_socket(ch->socket, POLLOUT, until);
		if (err < 0)
			return err;
	}
	if (!err) {
		ch->ring_out.marked = true;
		ch->ring_out.sent++;
		if (ch->ring_out.ring.page)
			ring_mail(&ch->ring_out.ring);
	}
	return err;
}

/* Spins until there is room. The room, 0 if it is less, or -EBADMSG. */
static int spin_for_room(tensor_channel *ch, uint32_t need, int64_t until)
{
	struct link_spin s = link_spin_begin(ch, until);
	int room;

	do {
		for (int i = 0; i < 16; i++) {
			room = ring_room(&ch->ring_out.ring, need);
			if (room < 0 || room >= (int)need)
				return room;
			ring_pause();
		}
	} while (link_spin_on(&s));
	return 0;
}

/*
 * Waits until the ring has room. The receiver sends no bell for room, because messages that were not received yet could
 * be before it in the socket: it wakes a futex, and short sleeps see its death.
 */
static int wait_room(tensor_channel *ch, uint32_t need, int64_t until)
{
	int64_t nap = NAP_MIN_NS, now;
	int n = ring_room(&ch->ring_out.ring, need);
	bool spun = false;

	while (n >= 0 && n < (int)need) {
		n = link_resolve(ch, &until);
		if (n < 0)
			return n;
		n = spun ? 0 : spin_for_room(ch, need, until);
		spun = true;
		if (n)
			break;
		now = link_now();
		if (now >= until)
			return -ETIMEDOUT;
		ring_sleep(&ch->ring_out.ring, need, until - now < nap ? until - now : nap);
		nap = nap < NAP_MAX_NS / 2 ? 2 * nap : NAP_MAX_NS;
		n = link_wait_socket(ch->socket, 0, 0);
		if (n != -ETIMEDOUT)
			return n < 0 ? n : -EPIPE;
		n = ring_room(&ch->ring_out.ring, need);
	}
	return n < 0 ? n : 0;
}

/* Wakes the receiver of a record. A full socket is readable at the other end, so that it wakes anyway. */
static int ring_bell(tensor_channel *ch)
{
	int err = -ENOBUFS;

	for (int i = 0; i < BELL_TRIES && (err == -ENOBUFS || err == -ENOMEM); i++) {
		if (i)
			link_wait_socket(ch->socket, 0, link_now() + BELL_NAP_NS);
		err = send_control(ch, WIRE_BELL, -1);
	}
	if (err == -EPIPE)
		return err;
	/* The record is sent. Without memory for the bell the next record gets one. */
	if (err < 0 && err != -EAGAIN)
		ring_arm(&ch->ring_out.ring);
	return 0;
}

int link_wait_records(tensor_channel *ch, uint32_t n, int64_t until)
{
	return ch->eof ? -EPIPE : wait_room(ch, n, until);
}

int link_send_ring(tensor_channel *ch, const struct wire_message *m, int64_t until)
{
	struct ring *ring = &ch->ring_out.ring;
	struct record_body body;
	int err = link_wait_records(ch, 1, until);

	if (err < 0)
		return err;
	if (ring->at % LIVES_EVERY == LIVES_EVERY - 1 &&
	    link_wait_socket(ch->socket, 0, 0) != -ETIMEDOUT)
		return -EPIPE;
	if (!ring_push(ring, RECORD_TENSOR, &body, record_pack(&body, m, ch->ring_out.sent)))
		return 0;
	return ring_bell(ch);
}

/* ---- receiving ---- */

/* Copies the next record to in->copy. in->have says whether there is one. */
static int take_record(tensor_channel *ch)
{
	struct link_in *in = &ch->ring_in;
	int n = in->have || !in->offered || !in->ring.page ? 0 : ring_pop(&in->ring, &in->copy);

	in->have |= n > 0;
	return n < 0 ? n : 0;
}

static int deliver_socket(tensor_channel *ch, struct wire_in **in)
{
	ch->ring_in.full = false;
	ch->ring_in.taken++;
	*in = &ch->in;
	return 0;
}

/* The next message, by whichever way it came. -EAGAIN: there is none. */
static int take(tensor_channel *ch, struct wire_in **in)
{
	struct link_in *l = &ch->ring_in;
	uint32_t after = 0;
	int err = take_record(ch);

	if (err < 0)
		return err;
	if (!l->have && !l->full)
		return -EAGAIN;
	/* All records that were sent before the message have been seen by now. */
	if (!l->have)
		return l->position == (uint16_t)l->ring.at ? deliver_socket(ch, in) : -EBADMSG;
	if (!record_unpack(&l->copy, &after, &l->message.m))
		return -EBADMSG;
	if (after == l->taken) {
		l->have = false;
		*in = &l->message;
		return 0;
	}
	/* The message was sent before the record, so it is here. */
	err = pump_all(ch);
	if (err < 0 && err != -EAGAIN && err != -EPIPE)
		return err;
	return l->full && l->position == (uint16_t)(l->ring.at - 1) ? deliver_socket(ch, in) :
								      -EBADMSG;
}

/* Spins until a record comes. False if none came, or if a message came by the socket. */
static bool spin(tensor_channel *ch, int64_t until)
{
	struct link_in *in = &ch->ring_in;
	struct link_spin s;

	/* Before the first record the peer may not have the ring. */
	if (!in->ring.at || !link_may_spin(ch, &in->habit))
		return false;
	s = link_spin_begin(ch, until);
	do {
		for (int i = 0; i < 16; i++) {
			if (ring_ready(&in->ring)) {
				link_has_spun(ch, &in->habit, false);
				return true;
			}
			ring_pause();
		}
		if (ring_has_mail(&in->ring))
			return false;
	} while (link_spin_on(&s));
	link_has_spun(ch, &in->habit, true);
	return false;
}

/* Asks to be woken. False if a record has come meanwhile. */
static bool arm(tensor_channel *ch)
{
	struct ring *ring = &ch->ring_in.ring;

	if (!ring->page)
		return true;
	ring_arm(ring);
	if (!ring_ready(ring))
		return true;
	ring_disarm(ring);
	return false;
}

/* Nothing has come: waits as long as the mode of the socket says, with one system call. */
static int wait_by_socket(tensor_channel *ch)
{
	int err;

	if (!arm(ch))
		return 0;
	err = pump(ch, 0);
	return err == 1 || err == -EPIPE ? 0 : err;
}

/*
 * The same until a time, which may be over. 0: look again; -EAGAIN, -ETIMEDOUT: the ring is armed, so that the next
 * message makes the socket readable.
 */
static int wait_until(tensor_channel *ch, int64_t until)
{
	int err = pump(ch, MSG_DONTWAIT);
	bool over = until != LINK_FOREVER && link_now() >= until;

	if (err == -EPIPE)
		return 0;
	if (err < 0 && err != -EAGAIN)
		return err;
	if ((err != -EAGAIN && !over) || !arm(ch) || ch->ring_in.full)
		return 0;
	if (over)
		return -ETIMEDOUT;
	err = link_wait_socket(ch->socket, POLLIN, until);
	return err < 0 && err != -ETIMEDOUT ? err : 0;
}

static int next_by_ring(tensor_channel *ch, int64_t until, struct wire_in **in)
{
	bool spins = ch->spin_ns;
	int err;

	do {
		err = take(ch, in);
		if (err < 0 && err != -EAGAIN)
			ch->dead = err;
		if (err != -EAGAIN)
			return err;
		if (ch->eof)
			return -EPIPE;
		if (spins && until == LINK_BY_SOCKET)
			spins = !(fcntl(ch->socket, F_GETFL) & O_NONBLOCK);
		if (spins && spin(ch, until))
			continue;
		err = until == LINK_BY_SOCKET ? wait_by_socket(ch) : wait_until(ch, until);
		if (err < 0)
			return err;
	} while (true);
}

int link_next(tensor_channel *ch, int64_t until, struct wire_in **in)
{
	int err;

	if (ch->ring_wanted)
		return next_by_ring(ch, until, in);
	*in = &ch->in;
	for (;;) {
		err = wire_recv(ch->socket, ch->packets, &ch->in,
				until == LINK_BY_SOCKET ? 0 : MSG_DONTWAIT);
		if (err != -EAGAIN || until == LINK_BY_SOCKET)
			return err;
		err = link_wait_socket(ch->socket, POLLIN, until);
		if (err < 0)
			return err;
	}
}

void link_done(tensor_channel *ch, struct wire_in *in)
{
	if (in == &ch->in)
		wire_reset(in);
}

bool link_ready(tensor_channel *ch)
{
	struct link_in *in = &ch->ring_in;

	if (!ch->ring_wanted)
		return ch->dead;
	for (int i = 0; i < 2; i++) {
		if (ch->dead || ch->eof || in->full || in->have ||
		    (in->offered && in->ring.page && ring_ready(&in->ring)))
			return true;
		if (i == 0)
			pump_all(ch);
	}
	return !arm(ch);
}
