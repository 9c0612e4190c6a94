// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Sending: one tensor, or a message of several (group.h), which has a lease if a tensor is lent by a pool. */
#include "sharing/send.h"

#include "core/trace.h"
#include "sharing/pool.h"

#include <unistd.h>

static struct wire_message note(uint32_t kind, uint32_t flags)
{
	return (struct wire_message){ .magic = WIRE_MAGIC,
				      .version = WIRE_VERSION,
				      .size = sizeof(struct wire_message),
				      .flags = WIRE_NOTE | flags,
				      .dtype = kind };
}

/* Sends the table of leases unless the peer has it. 0, or -errno with the error set. */
static int send_table(tensor_channel *ch, int64_t until)
{
	static const uint32_t kinds[] = { WIRE_NOTE_LEASES, WIRE_NOTE_HOLDER };

	if (!ch->lease_table)
		ch->lease_table = lease_table_new(ch->lease_fds);
	if (!ch->lease_table)
		return -thread()->error.code;
	for (int i = 0; i < 2; i++) {
		struct wire_message m = note(kinds[i], WIRE_FD);
		int err;

		if (ch->lease_fds[i] < 0)
			continue;
		err = link_send_socket(ch, &m, ch->lease_fds[i], until);
		if (err < 0)
			return send_error(err);
		close(ch->lease_fds[i]);
		ch->lease_fds[i] = -1;
	}
	return 0;
}

static int send_head(tensor_channel *ch, const struct outgoing *o, const struct lease *lease,
		     bool ring)
{
	struct wire_message m = note(WIRE_NOTE_HEAD, 0);
	int err;

	m.slot = (uint32_t)o->n;
	m.dev = o->tag;
	m.ino = lease ? lease->generation : 0;
	m.offset = lease ? (int64_t)lease->index : -1;
	err = ring ? link_send_ring(ch, &m, o->until) : link_send_socket(ch, &m, -1, o->until);
	return err < 0 ? send_error(err) : 0;
}

static int send_parts(tensor_channel *ch, const struct outgoing *o, const struct lease *lease)
{
	uint32_t records = (uint32_t)o->n + 1;
	bool ring = link_has_ring(ch) && records <= ch->ring_out.ring.n;
	int err = ring ? link_wait_records(ch, records, o->until) : 0;

	if (err < 0)
		return send_error(err);
	err = send_head(ch, o, lease, ring);
	for (int i = 0; i < o->n && !err; i++)
		err = channel_send_tensor(ch, o->tensors[i],
					  o->flags | SEND_PART | (ring ? 0 : SEND_BY_SOCKET),
					  o->until);
	return err;
}

/* With a lease, which the loans of the message own, and the caller unless kept is NULL. */
static int send_leased(tensor_channel *ch, const struct outgoing *o, struct lease **kept)
{
	struct lease *lease = send_table(ch, o->until) < 0 ? NULL : lease_new(ch->lease_table);
	int err;

	if (!lease)
		return -thread()->error.code;
	err = loans_lease(o->tensors, o->n, lease);
	if (!err)
		err = send_parts(ch, o, lease);
	if (err < 0)
		lease_recall(lease);
	if (!err && kept)
		*kept = lease;
	else
		lease_put(lease);
	return err;
}

int outgoing_check(const char *function, const struct outgoing *o)
{
	if (o->n < 0 || o->n > TENSOR_MESSAGE_MAX || (o->n && !o->tensors))
		return tensor_fail(EINVAL, "%s: %d tensors: 0 to %d are possible", function, o->n,
				   TENSOR_MESSAGE_MAX);
	return o->flags & ~TENSOR_SEND_READONLY ?
		       tensor_fail(EINVAL, "%s: flags 0x%x are unknown", function, o->flags) :
		       0;
}

static int send_remote(tensor_channel *ch, const struct outgoing *o)
{
	int err;

	if (channel_orphan(ch) < 0)
		return -EBUSY;
	if (link_lock(&ch->sending, o->until) < 0)
		return send_error(-ETIMEDOUT);
	err = ch->remote->send(ch, o);
	pthread_mutex_unlock(&ch->sending);
	return err;
}

static int send_message(tensor_channel *ch, const struct outgoing *o, struct lease **kept)
{
	bool leased = kept;
	int err = 0;

	if (ch->remote)
		return send_remote(ch, o);
	for (int i = 0; i < o->n && !err; i++) {
		err = channel_send_check(o->tensors[i], o->flags);
		leased |= !err && is_loan(o->tensors[i]->storage);
	}
	if (err < 0)
		return err;
	if (channel_orphan(ch) < 0)
		return -EBUSY;
	if (link_lock(&ch->sending, o->until) < 0)
		return send_error(-ETIMEDOUT);
	err = leased ? send_leased(ch, o, kept) : send_parts(ch, o, NULL);
	pthread_mutex_unlock(&ch->sending);
	return err;
}

bool channel_has_room(tensor_channel *ch, int n)
{
	uint32_t records = (uint32_t)n + 1;
	bool room, ring;

	if (pthread_mutex_trylock(&ch->sending))
		return false;
	ring = link_has_ring(ch) && records <= ch->ring_out.ring.n;
	/* An error is for the send, which does not wait for it. */
	room = ring ? (uint32_t)ring_room(&ch->ring_out.ring, records) >= records :
		      link_wait_socket(ch->socket, POLLOUT, 0) != -ETIMEDOUT;
	pthread_mutex_unlock(&ch->sending);
	return room;
}

int channel_send_leased(tensor_channel *ch, const struct outgoing *o, struct lease **lease)
{
	return send_message(ch, o, lease);
}

static int send_one(tensor_channel *ch, tensor *t, unsigned flags, int64_t until)
{
	struct outgoing one = { &t, 1, 0, flags, until };
	int err;

	if (ch->remote)
		return outgoing_check("send", &one) < 0 ? -EINVAL : send_remote(ch, &one);
	err = channel_send_check(t, flags);
	if (err < 0)
		return err;
	if (is_loan(t->storage))
		return send_message(ch, &one, NULL);
	if (channel_orphan(ch) < 0)
		return -EBUSY;
	if (link_lock(&ch->sending, until) < 0)
		return send_error(-ETIMEDOUT);
	err = channel_send_tensor(ch, t, flags, until);
	pthread_mutex_unlock(&ch->sending);
	return err;
}

static int send_until(tensor_channel *ch, tensor *t, unsigned flags, int64_t until)
{
	int err;

	TRACE_SPAN("sharing", "tensor_send");
	if (!ch)
		return tensor_fail(EINVAL, "send: the channel is NULL");
	err = send_one(ch, t, flags, until);
	if (!err)
		trace_tensor(&trace_span, t);
	return err;
}

TENSOR_EXPORT int tensor_send(tensor_channel *ch, tensor *t, unsigned flags)
{
	return send_until(ch, t, flags, LINK_BY_SOCKET);
}

TENSOR_EXPORT int tensor_send_timeout(tensor_channel *ch, tensor *t, unsigned flags,
				      int64_t timeout_ns)
{
	return send_until(ch, t, flags, link_deadline(timeout_ns));
}

TENSOR_EXPORT int tensor_send_many(tensor_channel *ch, tensor *const *tensors, int n, uint64_t tag,
				   unsigned flags, int64_t timeout_ns)
{
	struct outgoing o = { tensors, n, tag, flags, link_deadline(timeout_ns) };

	TRACE_SPAN("sharing", "tensor_send_many");
	if (!ch)
		return tensor_fail(EINVAL, "send_many: the channel is NULL");
	if (outgoing_check("send_many", &o) < 0)
		return -EINVAL;
	return send_message(ch, &o, NULL);
}
