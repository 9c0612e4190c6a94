/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Channels between machines. tensor_send(), tensor_recv() and the other functions of a channel work as between processes of
 * one machine, but that a tensor is copied: docs/sharing.md, Between machines, has the rules.
 */
#ifndef TENSOR_REMOTE_H
#define TENSOR_REMOTE_H

#include <tensor/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of one end of a channel; the peer has its own. */
struct tensor_remote_options {
	/*
	 * The peer has gone if nothing comes from it for this time: calls then fail with ECONNRESET, a quarter of the time later at
	 * the latest. 0: 10 seconds; at least 100 ms.
	 */
	int64_t timeout_ns;
	/*
	 * The most bytes of elements of a message that this end receives, and of all messages that wait to be received; 0: a
	 * quarter of the machine's memory. A longer message is an error of its sender (EMSGSIZE).
	 */
	uint64_t max_bytes;
	int32_t records; /* messages that wait to be received; 0: 64; at most 4096 */
	int64_t spin_ns; /* as of tensor_channel_options */
};

#define TENSOR_REMOTE_OPTIONS(...) (&(const struct tensor_remote_options){ __VA_ARGS__ })

/*
 * A channel to the listener at an address, "ucx://HOST:PORT", with HOST a name, an IPv4 address or an IPv6 address in
 * brackets. Its messages are received and acknowledged by a thread of the library, also while the program is in no call. NULL
 * as options: the defaults; a negative timeout: that of the options.
 * NULL with the error set: EINVAL; ENOTSUP: the plugin or UCX is not installed; ECONNREFUSED, ETIMEDOUT, EPROTO; EMFILE: fewer than 40
 * descriptors are free; EBUSY in a
 * child of fork() of a process that has used UCX.
 */
tensor_channel *tensor_channel_connect(const char *address,
				       const struct tensor_remote_options *options,
				       int64_t timeout_ns);

/* Accepts channels. */
typedef struct tensor_channel_listener tensor_channel_listener;

/* Listen at an address, "ucx://0.0.0.0:4711"; port 0: any that is free. Options: of the channels. NULL with the error set. */
tensor_channel_listener *tensor_channel_listen(const char *address,
					       const struct tensor_remote_options *options);
/* Stop listening; NULL is ignored. Channels that were accepted stay open. No other thread may use the listener. */
void tensor_channel_listener_close(tensor_channel_listener *listener);
/*
 * The next channel that a peer has connected; at most 16 wait. A negative timeout: none.
 * NULL with the error set: ETIMEDOUT, ENOMEM, EMFILE, EBUSY in a child of fork().
 */
tensor_channel *tensor_channel_accept(tensor_channel_listener *listener, int64_t timeout_ns);
/* The address with the number of the port; valid as long as the listener. NULL without one. */
const char *tensor_channel_listener_address(const tensor_channel_listener *listener);
/* A descriptor for poll(), readable while tensor_channel_accept() would not wait. -EINVAL without a listener. */
int tensor_channel_listener_fd(const tensor_channel_listener *listener);

/*
 * Called by a thread that sends or receives a long message on a channel between machines, while the message is on its way: as
 * pieces go or come, and every 50 ms; for a sender at the end, too. It must not use the channel, whose lock is held. done and
 * total: bytes of elements. A negative errno as
 * result ends the transfer: the call fails with it, the send of the peer, if it is the sender, with ECANCELED, and the
 * channel goes on.
 */
typedef int (*tensor_channel_progress)(void *context, bool sending, uint64_t done, uint64_t total);

/* Set it, or none (NULL). No other thread may use the channel. 0; -EINVAL: not a channel between machines. */
int tensor_channel_set_progress(tensor_channel *channel, tensor_channel_progress progress,
				void *context);
/* Whether the channel leads to another machine, or to this one by an address. */
bool tensor_channel_is_remote(const tensor_channel *channel);

#ifdef __cplusplus
}
#endif
#endif
