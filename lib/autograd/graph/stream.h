/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Streams of devices (struct tensor_streams) in the graph. A node stores the number of a stream instead of its handle,
 * for which there is space; 0 is the default stream.
 */
#ifndef TENSOR_AUTOGRAD_STREAM_H
#define TENSOR_AUTOGRAD_STREAM_H

#include "core/tensor_impl.h"
#include "storage/devices.h"

/* A gradient of a tensor on another device than the CPU was, or may have been, recorded. */
extern atomic_bool streams_seen;

/* The number of the thread's current stream of the device. */
uint16_t stream_current(tensor_device device);
void *stream_handle(uint32_t nr);

/* The stream that computed t, which is new. */
static inline uint16_t stream_of_new(const tensor *t)
{
	return likely(t->device.type == TENSOR_CPU) ? 0 : stream_current(t->device);
}

static inline bool same_device(tensor_device a, tensor_device b)
{
	return a.type == b.type && a.index == b.index;
}

/* Work that the stream `to` queues later waits for what `from` has queued. 0, or -errno. */
int stream_order(tensor_device device, void *from, void *to);

/* Makes a stream current; stream_leave() restores the one before. */
struct stream_guard {
	const struct tensor_streams *streams; /* NULL: nothing to restore */
	tensor_device device;
	void *before;
};
int stream_enter(struct stream_guard *g, tensor_device device, uint32_t nr);
static inline void stream_leave(const struct stream_guard *g)
{
	if (g->streams)
		g->streams->set(g->device, g->before);
}

#endif
