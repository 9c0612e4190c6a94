// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Numbers of streams, and waits between them (stream.h). */
#include "autograd/graph/stream.h"

#include "autograd/graph/lock.h"
#include "autograd/graph/state.h"

#include <stdlib.h>

#define BLOCK  256
#define BLOCKS 256

atomic_bool streams_seen;

/* Number nr is entry nr - 1. Entries are only appended and never move, so they are read without the lock. */
static struct {
	node_lock lock;
	struct {
		tensor_device device;
		void *handle;
	} * block[BLOCKS];
	uint32_t n;
} known;

/* With the lock held: the number, which is added if missing; 0 without memory. */
static uint16_t number_of(tensor_device device, void *handle)
{
	for (uint32_t i = 0; i < known.n; i++)
		if (known.block[i / BLOCK][i % BLOCK].handle == handle &&
		    same_device(known.block[i / BLOCK][i % BLOCK].device, device))
			return (uint16_t)(i + 1);
	if (known.n == UINT16_MAX)
		return 0;
	if (!known.block[known.n / BLOCK])
		known.block[known.n / BLOCK] = calloc(BLOCK, sizeof(*known.block[0]));
	if (!known.block[known.n / BLOCK])
		return 0;
	known.block[known.n / BLOCK][known.n % BLOCK].device = device;
	known.block[known.n / BLOCK][known.n % BLOCK].handle = handle;
	return (uint16_t)++known.n;
}

uint16_t stream_current(tensor_device device)
{
	const struct tensor_streams *f = device_streams(device);
	void *handle = f ? f->current(device) : NULL;
	struct autograd_thread *at = thread()->autograd;
	uint16_t nr;

	if (!atomic_load_explicit(&streams_seen, memory_order_relaxed))
		atomic_store(&streams_seen, true);
	if (!handle)
		return 0;
	if (at && at->stream.handle == handle && same_device(at->stream.device, device))
		return at->stream.nr;
	node_lock_take(&known.lock);
	nr = number_of(device, handle);
	node_lock_drop(&known.lock);
	if (nr && at)
		at->stream = (struct last_stream){ handle, nr, device };
	/* A stream without a number: the default stream takes its place. */
	if (!nr && stream_order(device, handle, NULL) < 0)
		tensor_clear_error();
	return nr;
}

void *stream_handle(uint32_t nr)
{
	return nr ? known.block[(nr - 1) / BLOCK][(nr - 1) % BLOCK].handle : NULL;
}

/* -errno of a function of the backend that failed, with the error set. */
static int failed(const char *what, int err)
{
	if (thread()->error.code)
		return -thread()->error.code;
	return tensor_fail(err < 0 ? -err : EIO, "backward: a stream's %s failed", what);
}

int stream_order(tensor_device device, void *from, void *to)
{
	const struct tensor_streams *f = device_streams(device);
	void *event;
	int err;

	if (!f || from == to)
		return 0;
	tensor_clear_error();
	event = f->record(device, from);
	if (!event)
		return failed("record", 0);
	err = f->wait(device, to, event);
	f->release(device, event);
	return err < 0 ? failed("wait", err) : 0;
}

int stream_enter(struct stream_guard *g, tensor_device device, uint32_t nr)
{
	void *handle = stream_handle(nr);
	int err;

	*g = (struct stream_guard){ NULL };
	if (device.type == TENSOR_CPU)
		return 0;
	g->streams = device_streams(device);
	if (!g->streams)
		return 0;
	g->device = device;
	g->before = g->streams->current(device);
	if (g->before == handle) {
		g->streams = NULL;
		return 0;
	}
	tensor_clear_error();
	err = g->streams->set(device, handle);
	if (err >= 0)
		return 0;
	g->streams = NULL;
	return failed("set", err);
}
