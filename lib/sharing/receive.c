// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The receiving side of a channel: checks a message, imports its buffer or finds it among the
 * earlier ones, and makes a tensor on it. The sender may be hostile.
 */
#include "sharing/group.h"
#include "sharing/link.h"

#include "core/trace.h"
#include "storage/devices.h"

#include <unistd.h>

#define LATE_EVERY 16384 /* messages that are none of a tensor, between looks at the time */

/* See changing. A process with one thread has no other one that could fork: it needs no lock. */
static bool change_begin(tensor_channel *ch)
{
	if (__libc_single_threaded)
		return false;
	pthread_mutex_lock(&ch->changing);
	return true;
}

static void change_end(tensor_channel *ch, bool locked)
{
	if (locked)
		pthread_mutex_unlock(&ch->changing);
}

static void drop_held(struct held *h)
{
	if (h->storage)
		storage_put(h->storage);
	*h = (struct held){ 0 };
}

static void forget_held(tensor_channel *ch, const struct wire_message *m)
{
	for (int word = 0; word < WIRE_SLOTS / 64; word++)
		for (uint64_t bits = m->forget[word]; bits; bits &= bits - 1)
			drop_held(&ch->held[word * 64 + __builtin_ctzll(bits)]);
}

static struct tensor_storage *storage_null(int code, const char *text)
{
	tensor_fail(code, "recv: %s", text);
	return NULL;
}

/*
 * The kernel dropped the descriptor at the limit of open files. A higher limit helps the next
 * message.
 */
static struct tensor_storage *lost_storage(void)
{
	unsigned long long limit = fd_limit();

	tensor_fail(
		EMFILE,
		"recv: the buffer is lost, as many files were open as RLIMIT_NOFILE permits (%llu%s); "
		"close some, and open a new channel on both ends to get it",
		limit, fd_limit_raise() ? ", raised for the next ones" : "");
	return NULL;
}

static struct tensor_storage *imported_device(tensor_channel *ch, int fd)
{
	if (!ch->device_came)
		return storage_null(EBADMSG, "memory of a device came without its description");
	if (!cuda_share_calls())
		return NULL;
	channels_before_plugin();
	return device_import(fd, &ch->device);
}

/* The storage of the message; the caller owns a reference. */
static struct tensor_storage *imported_storage(tensor_channel *ch, struct wire_in *in)
{
	struct tensor_identity id = { in->m.dev, in->m.ino };
	bool readonly = in->m.flags & WIRE_READONLY;
	struct tensor_storage *s;

	if (in->fd < 0 && in->lost)
		return lost_storage();
	if (in->fd < 0)
		return storage_null(EBADMSG, "the announced fd is missing");
	if (in->m.flags & WIRE_DEVICE)
		s = imported_device(ch, in->fd);
	else if (in->m.flags & WIRE_FILE)
		s = import_file(in->fd, id);
	else
		s = import_storage(in->fd, id);
	if (s) {
		close(in->fd);
		in->fd = -1;
	}
	/* The opposite is allowed: a memfd that was sent read-only once stays read-only. */
	if (s && readonly && !s->readonly) {
		storage_put(s);
		return storage_null(EBADMSG, "a writable fd came for a read-only tensor");
	}
	return s;
}

static struct tensor_storage *held_storage(tensor_channel *ch, const struct wire_message *m)
{
	const struct held *h = &ch->held[m->slot];

	if (!h->storage || h->id.dev != m->dev || h->id.ino != m->ino ||
	    h->readonly != !!(m->flags & WIRE_READONLY) ||
	    (h->storage->device.type != TENSOR_CPU) != !!(m->flags & WIRE_DEVICE))
		return storage_null(EBADMSG, "the buffer of the message is not in the slot");
	storage_get(h->storage);
	return h->storage;
}

static void hold(tensor_channel *ch, const struct wire_message *m, struct tensor_storage *s)
{
	struct held *h;

	if (!(m->flags & WIRE_FD) || m->slot == WIRE_NO_SLOT)
		return;
	h = &ch->held[m->slot];
	drop_held(h);
	storage_get(s);
	*h = (struct held){ s, { m->dev, m->ino }, m->flags & WIRE_READONLY };
}

/* The tensor of a message that was checked, as a part of the group. */
static tensor *receive_tensor(tensor_channel *ch, struct wire_in *in)
{
	const struct wire_message *m = &in->m;
	struct tensor_storage *s;
	unsigned item;

	if (in->extra || (in->fd >= 0 && !(m->flags & WIRE_FD)))
		return tensor_fail_null(EBADMSG, "recv: more fds than announced");
	if (m->flags & WIRE_FILE && !ch->takes_files)
		return tensor_fail_null(EBADMSG,
					"recv: a file came, which the channel was not opened for");
	s = m->flags & WIRE_FD ? imported_storage(ch, in) : held_storage(ch, m);
	ch->device_came = false;
	if (!s)
		return NULL;
	item = dtype_sizes[m->dtype];
	if (!wire_fits(m, s->nbytes, item)) {
		char text[SHAPE_TEXT];

		storage_put(s);
		return tensor_fail_null(EBADMSG, "recv: a tensor %s of %s does not fit its buffer",
					format_sizes(m->sizes, (int)m->ndim, text, sizeof(text)),
					tensor_dtype_name(m->dtype));
	}
	hold(ch, m, s);
	if (ch->group.taken)
		s = group_storage(&ch->group, s);
	return s ? tensor_new_on_storage(s, m->dtype, m->sizes, m->strides, (int)m->ndim,
					 m->offset / (int64_t)item) :
		   NULL;
}

/* A part of a message, which counts even if it is refused; why: the result of wire_check(). */
static int receive_part(tensor_channel *ch, struct wire_in *in, const char *why)
{
	struct group *g = &ch->group;
	tensor *t = NULL;

	if (!g->open)
		return tensor_fail(EBADMSG, "recv: a part came without the head of its message");
	if (why)
		tensor_fail(EBADMSG, "recv: %s", why);
	else
		t = receive_tensor(ch, in);
	group_add(g, t);
	return t ? 0 : -thread()->error.code;
}

/* Processes one message of the link. 0, or -errno with the error set. */
static int receive(tensor_channel *ch, struct wire_in *in)
{
	const struct wire_message *m = &in->m;
	struct group *g = &ch->group;
	const char *why;
	tensor *t;
	int err = wire_check(m, &why);

	if (err == -EPROTO)
		ch->dead = err; /* the begin of the next message is unknown */
	else if (!(m->flags & WIRE_NOTE))
		forget_held(ch, m);
	if (!err && m->flags & WIRE_NOTE)
		return group_note(ch, in);
	if (err != -EPROTO && m->flags & WIRE_PART)
		return receive_part(ch, in, why);
	/* The sender of a message that is not complete has given it up. */
	if (g->open)
		group_drop(g);
	if (err < 0)
		return tensor_fail(-err, "recv: %s", why);
	t = receive_tensor(ch, in);
	if (!t)
		return -thread()->error.code;
	group_set_one(g, t);
	return 0;
}

static int recv_error(tensor_channel *ch, int err)
{
	if (err == -EPIPE)
		return tensor_fail(EPIPE, "recv: the peer is gone");
	if (err == -ETIMEDOUT)
		return tensor_fail(ETIMEDOUT, "recv: no message came in time");
	/* The rest of it would be read as the begin of the next message. */
	if (!ch->packets && ch->in.have && err != -EAGAIN)
		ch->dead = err;
	if (err == -EBADMSG && ch->ring_wanted)
		return tensor_fail(EBADMSG,
				   "recv: the peer wrote nonsense to the ring or to the socket");
	if (err == -EBADMSG)
		return tensor_fail(EBADMSG, "recv: the message is cut short or too long");
	return tensor_fail(-err, "recv: %s", strerror(-err));
}

static int dead_error(const tensor_channel *ch)
{
	if (ch->dead == -ETOOMANYREFS)
		return tensor_fail(ETOOMANYREFS,
				   "recv: the channel ended: %d descriptors that were "
				   "refused could not be closed yet",
				   WIRE_REFUSED_MAX);
	return tensor_fail(-ch->dead,
			   "recv: an earlier message was not a tensor: the channel has ended");
}

/* Receives one message of the link. 0, or -errno with the error set. */
static int receive_one(tensor_channel *ch, int64_t until)
{
	struct wire_in *in;
	bool locked;
	int err;

	if (!ch->dead && wire_overrun(&ch->in))
		ch->dead = -ETOOMANYREFS;
	if (ch->dead)
		return dead_error(ch);
	err = link_next(ch, until, &in);
	if (!err) {
		locked = change_begin(ch);
		err = receive(ch, in);
		link_done(ch, in);
		change_end(ch, locked);
		return err;
	}
	recv_error(ch, err);
	if (!ch->ring_wanted && err != -EAGAIN && err != -ETIMEDOUT)
		wire_reset(&ch->in);
	return err;
}

/*
 * Receives until a message is complete. 0, or -errno with the error set. What is there is received whatever the time: parts,
 * and messages to skip that were taken back. A limit holds if the peer sends more all the time.
 */
static int complete_group(tensor_channel *ch, int64_t until)
{
	int err = 0;

	for (int n = 1; !ch->group.complete && !err; n++) {
		err = ch->remote ? ch->remote->receive(ch, until) : receive_one(ch, until);
		if (err || ch->group.complete || n % LATE_EVERY)
			continue;
		err = link_late(ch, until);
		if (err)
			recv_error(ch, err);
	}
	return err;
}

static int refuse_size(const struct group *g, int max)
{
	return tensor_fail(EMSGSIZE,
			   "recv: the message has %u tensors, and there are places for %d",
			   g->count, max);
}

/* Takes the message that is complete; the caller owns the tensors. */
static void take_group(tensor_channel *ch, tensor **tensors)
{
	struct group *g = &ch->group;
	bool locked = change_begin(ch);

	for (uint32_t i = 0; i < g->count; i++)
		tensors[i] = g->tensors[i];
	if (g->taken)
		taken_put(g->taken);
	group_clear(g);
	change_end(ch, locked);
}

static tensor *recv_until(tensor_channel *ch, int64_t until)
{
	tensor *t = NULL;

	TRACE_SPAN("sharing", "tensor_recv");
	if (!ch)
		return tensor_fail_null(EINVAL, "recv: the channel is NULL");
	if (channel_orphan(ch) < 0)
		return NULL;
	if (link_lock(&ch->receiving, until) < 0) {
		recv_error(ch, -ETIMEDOUT);
		return NULL;
	}
	if (complete_group(ch, until) == 0) {
		if (ch->group.count == 1)
			take_group(ch, &t);
		else
			refuse_size(&ch->group, 1);
	}
	pthread_mutex_unlock(&ch->receiving);
	trace_tensor(&trace_span, t);
	return scope_own(thread(), t);
}

TENSOR_EXPORT int tensor_recv_many(tensor_channel *ch, tensor **tensors, int max, uint64_t *tag,
				   int64_t timeout_ns)
{
	int64_t until = link_deadline(timeout_ns);
	int n;

	TRACE_SPAN("sharing", "tensor_recv_many");
	if (!ch || max < 0 || (max && !tensors))
		return tensor_fail(EINVAL, "recv_many: %s",
				   !ch	   ? "the channel is NULL" :
				   max < 0 ? "a negative number of tensors" :
					     "there is no place for tensors");
	if (channel_orphan(ch) < 0)
		return -EBUSY;
	if (link_lock(&ch->receiving, until) < 0)
		return recv_error(ch, -ETIMEDOUT);
	n = complete_group(ch, until);
	if (!n && ch->group.count > (uint32_t)max)
		n = refuse_size(&ch->group, max);
	if (!n) {
		n = (int)ch->group.count;
		if (tag)
			*tag = ch->group.tag;
		take_group(ch, tensors);
	}
	pthread_mutex_unlock(&ch->receiving);
	if (n > 0 && scope_own_list(tensors, n) < 0)
		return -ENOMEM;
	return n;
}

TENSOR_EXPORT tensor *tensor_recv(tensor_channel *ch)
{
	return recv_until(ch, LINK_BY_SOCKET);
}

TENSOR_EXPORT tensor *tensor_recv_timeout(tensor_channel *ch, int64_t timeout_ns)
{
	return recv_until(ch, link_deadline(timeout_ns));
}
