// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "sharing/group.h"

#include "core/tensor_impl.h"
#include "storage/provider/provider.h"

#include <fcntl.h>
#include <unistd.h>

void group_drop(struct group *g)
{
	for (uint32_t i = 0; i < g->have; i++)
		tensor_put(g->tensors[i]);
	taken_put(g->taken);
	group_clear(g);
}

void group_end(tensor_channel *ch)
{
	group_drop(&ch->group);
	lease_source_close(ch->lease_source);
	ch->lease_source = NULL;
	if (ch->lease_memory >= 0)
		close(ch->lease_memory);
	ch->lease_memory = -1;
}

/* All parts are here: the message is received now, unless a part was refused or the sender took it back. */
static void complete(struct group *g)
{
	g->open = false;
	if (g->bad || (g->taken && !taken_take(g->taken)))
		group_drop(g);
	else
		g->complete = true;
}

static int begin(tensor_channel *ch, const struct wire_message *m)
{
	struct group *g = &ch->group;

	group_drop(g);
	if (m->offset >= 0) {
		g->taken = taken_new(ch->lease_source, (uint64_t)m->offset, m->ino);
		/* The parts are read all the same: their buffers enter slots. */
		g->bad = !g->taken && m->slot;
		if (!g->taken && !g->bad)
			return -thread()->error.code;
	}
	g->open = true;
	g->count = m->slot;
	g->tag = m->dev;
	if (!g->count)
		complete(g);
	return g->bad ? -thread()->error.code : 0;
}

static int refuse_leases(const char *why)
{
	return tensor_fail(EBADMSG, "recv: %s of leases", why);
}

static int take_memory(tensor_channel *ch, struct wire_in *in)
{
	if (ch->lease_source || ch->lease_memory >= 0)
		return refuse_leases("a second table");
	/* A file that is no memfd may belong to a file system of the peer: wire_reset() closes it. */
	if (fcntl(in->fd, F_GET_SEALS) < 0)
		return refuse_leases("an invalid table");
	ch->lease_memory = in->fd;
	in->fd = -1;
	return 0;
}

static int take_holder(tensor_channel *ch, struct wire_in *in)
{
	int err;

	if (ch->lease_source || ch->lease_memory < 0)
		return refuse_leases("a socket without a table");
	err = lease_source_open(ch->lease_memory, in->fd, &ch->lease_source);
	if (err < 0) {
		close(ch->lease_memory);
		ch->lease_memory = -1;
	}
	if (err == -ENOMEM) {
		/* Here: without memory there may be no thread for it, and its end tells the sender. */
		close(in->fd);
		in->fd = -1;
		return tensor_fail(ENOMEM, "recv: no memory for the table of leases; open a new "
					   "channel on both ends");
	}
	if (err < 0)
		return refuse_leases("an invalid table");
	ch->lease_memory = in->fd = -1;
	return 0;
}

int group_note(tensor_channel *ch, struct wire_in *in)
{
	const struct wire_message *m = &in->m;

	/* The socket of the holder is closed then, so that the sender sees that its leases are over. */
	if (m->flags & WIRE_FD && in->fd < 0 && in->lost)
		return tensor_fail(
			EMFILE,
			"recv: the table of leases is lost, as many files were open as RLIMIT_NOFILE "
			"permits (%llu%s); close some, and open a new channel on both ends",
			fd_limit(), fd_limit_raise() ? ", raised for the next ones" : "");
	if (in->extra || (in->fd >= 0) != !!(m->flags & WIRE_FD))
		return tensor_fail(EBADMSG,
				   "recv: a note came with more or fewer fds than announced");
	ch->device_came = m->dtype == WIRE_NOTE_DEVICE;
	switch (m->dtype) {
	case WIRE_NOTE_HEAD:
		return begin(ch, m);
	case WIRE_NOTE_LEASES:
		return take_memory(ch, in);
	case WIRE_NOTE_DEVICE:
		memcpy(ch->device.uuid, (uint64_t[]){ m->dev, m->ino }, sizeof(ch->device.uuid));
		ch->device.size = (uint64_t)m->offset;
		return 0;
	default:
		return take_holder(ch, in);
	}
}

struct tensor_storage *group_storage(struct group *g, struct tensor_storage *base)
{
	/* Parts on one storage stay on one storage. */
	for (uint32_t i = 0; i < g->have && !g->bad; i++) {
		struct tensor_storage *s = g->tensors[i]->storage;

		if (taken_base(s) == base) {
			storage_put(base);
			storage_get(s);
			return s;
		}
	}
	return taken_storage(g->taken, base);
}

void group_add(struct group *g, tensor *t)
{
	if (!t)
		g->bad = true;
	if (t && g->bad)
		tensor_put(t);
	if (g->bad) {
		/* Keeps the count of the parts alone. */
		for (uint32_t i = 0; i < g->have; i++) {
			tensor_put(g->tensors[i]);
			g->tensors[i] = NULL;
		}
		t = NULL;
	}
	g->tensors[g->have++] = t;
	if (g->have == g->count)
		complete(g);
}
