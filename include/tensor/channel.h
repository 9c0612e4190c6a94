/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Channels with rings in shared memory, timeouts, and waiting for several channels. <tensor/storage.h> has the
 * functions that every channel needs; docs/sharing.md describes all of them.
 */
#ifndef TENSOR_CHANNEL_H
#define TENSOR_CHANNEL_H

#include <tensor/storage.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Rings: messages whose buffer the peer already has go through shared memory instead of the socket, once both ends have
 * asked for it. See docs/sharing.md. The socket then belongs to the channel: nothing else may be sent on it.
 */
struct tensor_channel_options {
	bool ring; /* use rings if the peer does, too; otherwise all messages use the socket */
	int32_t records; /* of the ring from which this end receives; 0: 64. Rounded up to a power of two, at most 4096 */
	/*
	 * A wait spins for this time before it blocks; -1: never. 0: 50 us, never with one processor, and seldom while it
	 * is in vain.
	 */
	int64_t spin_ns;
};

#define TENSOR_CHANNEL_OPTIONS(...) (&(const struct tensor_channel_options){ __VA_ARGS__ })

/* Open a channel with options; NULL: as tensor_channel_open(). EINVAL for options out of range. */
tensor_channel *tensor_channel_open_with(int socket, const struct tensor_channel_options *options);
/*
 * The descriptor to wait for with poll(): the socket. With rings a message makes it readable only after a receive has
 * failed with EAGAIN or ETIMEDOUT, or tensor_channel_wait() has; so receive until then, and poll after. It may be
 * readable although no message has come. -EINVAL without a channel.
 */
int tensor_channel_fd(tensor_channel *channel);
/* Whether sends to the peer use a ring by now. */
bool tensor_channel_has_ring(tensor_channel *channel);

/*
 * tensor_send() and tensor_recv() with a timeout in nanoseconds, whatever the mode of the socket; negative: none.
 * ETIMEDOUT: nothing was sent, or received. A message that is incomplete when the time is over is received by a later
 * call.
 */
int tensor_send_timeout(tensor_channel *channel, tensor *t, unsigned flags, int64_t timeout_ns);
tensor *tensor_recv_timeout(tensor_channel *channel, int64_t timeout_ns);
/*
 * Wait until a receive from one of n channels would not wait: a message, or the end of the peer. One thread at a time
 * may wait for a channel or receive from it. Of several, the one that was returned longest ago.
 * Return: its index; -ETIMEDOUT, -EINVAL, -ENOMEM.
 */
int tensor_channel_wait(tensor_channel *const *channels, int n, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
