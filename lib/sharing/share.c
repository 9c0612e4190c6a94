// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Channels, and the message of one tensor (docs/sharing.md describes the protocol). send.c has the public functions.
 *
 * The sender numbers the buffers that the receiver keeps: a table of slots, mirrored by the
 * receiver. A buffer enters a slot with its fd; later messages have the number of the slot and the
 * identity of the buffer. Only the sender removes a buffer from a slot, because the buffer is freed
 * or the slot is needed, and announces it in its next message. The receiver relies on its own table
 * only.
 */
#include "sharing/send.h"

#include "base/init.h"
#include "sharing/group.h"
#include "sharing/pool.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- channels ---- */

static int socket_option(int fd, int option)
{
	socklen_t len = sizeof(int);
	int value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -errno : value;
}

/* A power of two. */
static uint32_t ring_records(int32_t asked)
{
	uint32_t n = RING_MIN;

	while (n < RING_MAX && n < (uint32_t)(asked ? asked : RING_DEFAULT))
		n *= 2;
	return n;
}

tensor_channel *channel_new(const char *function, int socket)
{
	tensor_channel *ch = calloc(1, sizeof(*ch));

	if (!ch) {
		tensor_fail(ENOMEM, "%s: no memory", function);
		return NULL;
	}
	ch->socket = socket;
	ch->in.fd = ch->lease_memory = -1;
	ch->lease_fds[0] = ch->lease_fds[1] = -1;
	link_open(ch);
	pthread_mutex_init(&ch->sending, NULL);
	pthread_mutex_init(&ch->receiving, NULL);
	pthread_mutex_init(&ch->changing, NULL);
	return ch;
}

TENSOR_EXPORT tensor_channel *tensor_channel_open_with(int socket,
						       const struct tensor_channel_options *o)
{
	int domain = socket_option(socket, SO_DOMAIN), type = socket_option(socket, SO_TYPE);
	tensor_channel *ch;

	if (domain != AF_UNIX || (type != SOCK_STREAM && type != SOCK_SEQPACKET)) {
		tensor_fail(domain < 0 ? -domain : EINVAL,
			    "channel_open: fd %d is no unix stream or seqpacket socket", socket);
		return NULL;
	}
	if (o && (o->records < 0 || o->records > (int32_t)RING_MAX || o->spin_ns < -1)) {
		tensor_fail(
			EINVAL,
			"channel_open: %d records, a spin of %lld ns: 0 to %u and -1 to any are possible",
			o->records, (long long)o->spin_ns, RING_MAX);
		return NULL;
	}
	ch = channel_new("channel_open", socket);
	if (!ch)
		return NULL;
	ch->packets = type == SOCK_SEQPACKET;
	if (o) {
		ch->ring_wanted = o->ring;
		ch->takes_files = o->ring && o->files;
		ch->adaptive = !o->spin_ns;
		ch->ring_records = ring_records(o->records);
		ch->spin_ns = o->spin_ns ? (o->spin_ns < 0 ? 0 : o->spin_ns) : link_default_spin();
	}
	channel_publish(ch);
	return ch;
}

TENSOR_EXPORT tensor_channel *tensor_channel_open(int socket)
{
	return tensor_channel_open_with(socket, NULL);
}

TENSOR_EXPORT int tensor_channel_fd(tensor_channel *ch)
{
	return ch ? ch->socket : tensor_fail(EINVAL, "channel_fd: the channel is NULL");
}

TENSOR_EXPORT bool tensor_channel_has_ring(tensor_channel *ch)
{
	bool has = false;

	if (ch) {
		pthread_mutex_lock(&ch->sending);
		has = link_has_ring(ch);
		pthread_mutex_unlock(&ch->sending);
	}
	return has;
}

TENSOR_EXPORT void tensor_channel_close(tensor_channel *ch)
{
	if (!ch)
		return;
	channel_withdraw(ch);
	if (ch->remote)
		ch->remote->close(ch);
	group_end(ch);
	lease_table_put(ch->lease_table);
	for (int i = 0; i < 2; i++)
		if (ch->lease_fds[i] >= 0)
			close(ch->lease_fds[i]);
	for (int i = 0; i < WIRE_SLOTS; i++)
		if (ch->held[i].storage)
			storage_put(ch->held[i].storage);
	link_close(ch);
	wire_end(&ch->in);
	pthread_mutex_destroy(&ch->sending);
	pthread_mutex_destroy(&ch->receiving);
	pthread_mutex_destroy(&ch->changing);
	free(ch);
}

/* ---- slots ---- */

static unsigned set_of(struct tensor_identity id)
{
	return id.ino % SETS;
}

/* The caller holds the lock. The slot of the buffer, or -1. */
static int find_sent(const tensor_channel *ch, struct tensor_identity id, bool readonly)
{
	int first = set_of(id) * WAYS;

	for (int i = first; i < first + WAYS; i++) {
		const struct sent *s = &ch->sent[i];

		if (s->used && s->readonly == readonly && identity_equal(s->id, id))
			return i;
	}
	return -1;
}

static void give_up(tensor_channel *ch, int slot)
{
	ch->sent[slot].used = false;
	ch->forget[slot / 64] |= 1ull << slot % 64;
}

void share_mark(struct tensor_buffer *b)
{
	channels_lock_tables();
	b->shared = true;
	channels_unlock_tables();
}

static void forget_buffer(const struct tensor_buffer *b)
{
	int slot;

	channels_lock_tables();
	for (tensor_channel *ch = channels_first(); ch; ch = ch->next)
		for (int readonly = 0; readonly < 2; readonly++)
			while ((slot = find_sent(ch, b->id, readonly)) >= 0)
				give_up(ch, slot);
	channels_unlock_tables();
}

/* The caller holds the lock. An empty slot for the buffer, or the next one of its set. */
static int new_slot(tensor_channel *ch, struct tensor_identity id)
{
	unsigned set = set_of(id);

	for (unsigned i = set * WAYS; i < (set + 1) * WAYS; i++)
		if (!ch->sent[i].used)
			return (int)i;
	return (int)(set * WAYS + ch->victim[set]++ % WAYS);
}

/* Sets slot, flags and forget. The receiver processes forget first. */
static void choose_slot(tensor_channel *ch, struct tensor_buffer *b, bool once, bool readonly,
			struct wire_message *m)
{
	int slot = -1;

	m->flags |= readonly ? WIRE_READONLY : 0;
	m->slot = WIRE_NO_SLOT;
	channels_lock_tables();
	if (!once)
		slot = find_sent(ch, b->id, readonly);
	if (slot < 0) {
		m->flags |= WIRE_FD;
		b->shared = true;
		if (!once) {
			slot = new_slot(ch, b->id);
			ch->sent[slot] = (struct sent){ b->id, true, readonly };
		}
	}
	if (slot >= 0)
		m->slot = slot;
	memcpy(m->forget, ch->forget, sizeof(m->forget));
	memset(ch->forget, 0, sizeof(ch->forget));
	channels_unlock_tables();
}

/* Reverts the table after a failed send: the receiver did not get the buffer or the forget bits. */
static void undo_slot(tensor_channel *ch, const struct wire_message *m)
{
	channels_lock_tables();
	for (size_t i = 0; i < ARRAY_SIZE(m->forget); i++)
		ch->forget[i] |= m->forget[i];
	if (m->flags & WIRE_FD && m->slot != WIRE_NO_SLOT)
		give_up(ch, (int)m->slot);
	channels_unlock_tables();
}

/* ---- send ---- */

static void set_geometry(struct wire_message *m, const tensor *t, const struct tensor_buffer *b)
{
	m->magic = WIRE_MAGIC;
	m->version = WIRE_VERSION;
	m->size = sizeof(*m);
	m->dev = b->id.dev;
	m->ino = b->id.ino;
	m->dtype = t->dtype;
	m->ndim = t->ndim;
	m->offset = (const char *)t->data - (const char *)b->map;
	for (int i = 0; i < t->ndim; i++) {
		m->sizes[i] = t->sizes[i];
		m->strides[i] = t->strides[i];
	}
}

int send_error(int err)
{
	if (err == -ETIMEDOUT)
		return tensor_fail(ETIMEDOUT, "send: the peer took no message in time");
	if (err == -EBADMSG)
		return tensor_fail(EBADMSG, "send: the peer wrote nonsense to the ring");
	if (err == -EPIPE)
		return tensor_fail(EPIPE, "send: the peer is gone");
	if (err == -EACCES)
		return tensor_fail(EACCES, "send: the buffer came with rights that do not permit "
					   "to send it on like this");
	if (err == -EIDRM)
		return tensor_fail(EIDRM, "send: the buffer was revoked");
	if (err == -EBUSY)
		return tensor_fail(EBUSY, "send: the buffer is purgeable");
	return tensor_fail(-err, "send: %s", strerror(-err));
}

/* The note that is before the descriptor of a device's memory. */
static int send_device(tensor_channel *ch, const struct tensor_buffer *b, int64_t until)
{
	struct wire_message m = { .magic = WIRE_MAGIC,
				  .version = WIRE_VERSION,
				  .size = sizeof(m),
				  .flags = WIRE_NOTE,
				  .dtype = WIRE_NOTE_DEVICE };
	struct device_note n;
	uint64_t id[2];
	int err = device_describe(b, &n);

	if (err < 0)
		return err;
	memcpy(id, n.uuid, sizeof(id));
	m.dev = id[0];
	m.ino = id[1];
	m.offset = (int64_t)n.size;
	err = link_send_socket(ch, &m, -1, until);
	return err < 0 ? send_error(err) : 0;
}

/* Sends or records what describes a buffer, before its descriptor is sent. */
static int describe_buffer(tensor_channel *ch, const tensor *t, struct tensor_buffer *b,
			   int64_t until)
{
	if (b->provider == &cuda_provider)
		return send_device(ch, b, until);
	describe_once(b, t); /* for tools that list buffers */
	return 0;
}

/*
 * The caller holds sending. -ESTALE without an error record: the buffer cannot be sent, only a copy
 * of its content.
 */
static int send_buffer(tensor_channel *ch, tensor *t, struct tensor_buffer *b, bool once,
		       unsigned flags, int64_t until)
{
	bool readonly = flags & TENSOR_SEND_READONLY || b->readonly;
	struct wire_message m = { 0 };
	bool ring = link_has_ring(ch) && !(flags & SEND_BY_SOCKET);
	int fd = -1, err;

	set_geometry(&m, t, b);
	if (flags & SEND_PART)
		m.flags |= WIRE_PART;
	if (b->provider == &file_provider)
		m.flags |= WIRE_FILE;
	if (b->provider == &cuda_provider)
		m.flags |= WIRE_DEVICE;
	choose_slot(ch, b, once, readonly, &m);
	if (m.flags & WIRE_FD) {
		err = describe_buffer(ch, t, b, until);
		if (err < 0) {
			undo_slot(ch, &m);
			return err;
		}
		fd = b->provider->export(b, b->rights & (readonly ? SHARE_RO : SHARE_RW));
		if (fd < 0) {
			undo_slot(ch, &m);
			/* An error of CUDA is set. */
			return fd == -ESTALE || b->provider == &cuda_provider ? fd : send_error(fd);
		}
	}
	err = ring && fd < 0 ? link_send_ring(ch, &m, until) : link_send_socket(ch, &m, fd, until);
	if (fd >= 0)
		close(fd);
	if (err < 0) {
		undo_slot(ch, &m);
		return send_error(err);
	}
	return 0;
}

/* Copies strided elements to contiguous memory; returns the end. */
static char *pack(char *to, const char *from, const tensor *t, const int64_t *sizes, int dim)
{
	size_t item = itemsize(t);

	if (dim == t->ndim) {
		memcpy(to, from, item);
		return to + item;
	}
	if (dim == t->ndim - 1 && t->strides[dim] == 1) {
		memcpy(to, from, sizes[dim] * item);
		return to + sizes[dim] * item;
	}
	for (int64_t i = 0; i < sizes[dim]; i++)
		to = pack(to, from + i * t->strides[dim] * (int64_t)item, t, sizes, dim + 1);
	return to;
}

/* A copy of t in a buffer of its own; a dimension with stride 0 keeps it. */
static tensor *packed(const tensor *t)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS],
		n = packed_geometry(t, sizes, strides);
	struct tensor_storage *s;

	s = storage_alloc(TENSOR_DEVICE_CPU, n * itemsize(t), true);
	if (!s)
		return NULL;
	if (n)
		pack(s->data, t->data, t, sizes, 0);
	return tensor_new_on_storage(s, t->dtype, t->sizes, strides, t->ndim, 0);
}

static int send_copy(tensor_channel *ch, const tensor *t, unsigned flags, int64_t until)
{
	tensor *copy = packed(t);
	int err;

	if (!copy)
		return -thread()->error.code;
	err = send_buffer(ch, copy, tensor_storage_buffer(copy->storage), true, flags, until);
	tensor_put(copy);
	return err;
}

int channel_send_once(tensor_channel *ch, tensor *t)
{
	struct tensor_buffer *b = tensor_storage_buffer(t->storage);
	int err;

	pthread_mutex_lock(&ch->sending);
	err = send_buffer(ch, t, b, true, 0, LINK_BY_SOCKET);
	pthread_mutex_unlock(&ch->sending);
	return err == -ESTALE ?
		       tensor_fail(ESTALE, "send: the buffer was the parent's before fork()") :
		       err;
}

static int driver_check(const tensor *t)
{
	struct tensor_storage *s = is_loan(t->storage) ? loan_base(t->storage) : t->storage;
	const struct tensor_buffer *b = tensor_storage_buffer(s);

	return !b || buffer_is_sendable(b) ?
		       0 :
		       tensor_fail(
			       EOPNOTSUPP,
			       "send: the memory of the tensor %s is a dma-buf of another driver, "
			       "which makes its mappings: clone it, or pass tensor_buffer_fd() to "
			       "a process that trusts the driver",
			       SHAPE_STR(t));
}

int channel_send_check(tensor *t, unsigned flags)
{
	if (tensor_absent("send", t))
		return -thread()->error.code;
	if (flags & ~TENSOR_SEND_READONLY)
		return tensor_fail(EINVAL, "send: flags 0x%x are unknown", flags);
	if (t->device.type == TENSOR_CUDA && t->layout == TENSOR_STRIDED && !t->ext)
		return device_send_check(t, flags);
	if (t->device.type != TENSOR_CPU || t->ext)
		return tensor_fail(
			EOPNOTSUPP,
			"send: a strided tensor of plain numbers in host memory or on a CUDA "
			"device is needed, got a %s one %s of another kind or on another device",
			tensor_layout_name(t->layout), SHAPE_STR(t));
	if (storage_is_private(t->storage) && !t->storage->readonly)
		return storage_share(t);
	return driver_check(t);
}

/* The file that t is a part of, to a peer that takes files; else NULL. */
static struct tensor_buffer *file_to_send(const tensor_channel *ch, const tensor *t)
{
	struct tensor_buffer *b;

	if (!ch->peer_takes_files || !t->storage->readonly)
		return NULL;
	b = storage_file(t->storage);
	/* Offsets of a message are multiples of the size of an element. */
	return b && ((const char *)t->data - (const char *)b->map) % (ptrdiff_t)itemsize(t) == 0 ?
		       b :
		       NULL;
}

int channel_send_tensor(tensor_channel *ch, tensor *t, unsigned flags, int64_t until)
{
	struct tensor_storage *s = is_loan(t->storage) ? loan_base(t->storage) : t->storage;
	struct tensor_buffer *b = tensor_storage_buffer(s);
	int err = -ESTALE;

	/* A program that only sends looks for the offer of the peer here. */
	if (!b && s->readonly && !(flags & SEND_BY_SOCKET))
		link_has_ring(ch);
	if (!b)
		b = s->device.type == TENSOR_CPU ? file_to_send(ch, t) : device_buffer(s);
	if (b)
		err = send_buffer(ch, t, b, false, flags, until);
	return err == -ESTALE ? send_copy(ch, t, flags, until) : err;
}

INIT(INIT_HOOKS) static void share_init(void)
{
	buffer_forget = forget_buffer;
}
