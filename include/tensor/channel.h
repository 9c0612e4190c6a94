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

/* ---- several tensors in a message ---- */

#define TENSOR_MESSAGE_MAX 64 /* tensors of a message */

/*
 * Send n tensors, 0 to TENSOR_MESSAGE_MAX, and a number as one message; flags and timeout as tensor_send_timeout().
 * ETIMEDOUT, EAGAIN and other errors: the peer receives none of it. Tensors on one storage are on one storage again at
 * the receiver. A peer with an older version of the library refuses the message with EBADMSG.
 */
int tensor_send_many(tensor_channel *channel, tensor *const *tensors, int n, uint64_t tag,
		     unsigned flags, int64_t timeout_ns);
/*
 * Receive a message with at most max tensors, which are owned like an operator's results; max 0 with tensors NULL is
 * possible. *tag, unless tag is NULL: the number. A message of tensor_send() has one tensor and the number 0, and
 * tensor_recv() receives a message of one tensor.
 * Return: the number of tensors; -errno as tensor_recv_timeout(). -EMSGSIZE: the message has more than max tensors, or
 *   not one for tensor_recv(); it stays for the next call.
 */
int tensor_recv_many(tensor_channel *channel, tensor **tensors, int max, uint64_t *tag,
		     int64_t timeout_ns);

/* ---- pools ---- */

/*
 * A pool: buffers of one shape that are lent, sent, and lent again when no receiver uses them any more. A message with
 * a tensor of a pool has a lease: its receiver has the buffer until it has released the last tensor of the message,
 * with its views and what autograd saved of it. docs/sharing.md, Pools and leases, has the rules.
 */
typedef struct tensor_pool tensor_pool;

/* A loan while all buffers are lent or with receivers. */
enum tensor_pool_full {
	TENSOR_POOL_WAIT, /* waits */
	TENSOR_POOL_DROP, /* takes back the message that was sent longest ago and not received; else waits */
	TENSOR_POOL_REFUSE, /* fails with EAGAIN */
};

struct tensor_pool_options {
	int32_t n;		 /* buffers, 1 to 4096; 0: 4 */
	enum tensor_dtype dtype; /* TENSOR_DTYPE_NONE: f32 */
	enum tensor_pool_full full;
	/*
	 * NULL: new buffers, zeroed. Otherwise n tensors, each of its own storage and buffer. Private ones are moved into
	 * buffers as by tensor_share_memory(). The pool has a reference to each; the program leaves them alone. Their shapes and
	 * dtypes may differ, and sizes and dtype must be TENSOR_NO_INTS and TENSOR_DTYPE_NONE.
	 */
	tensor *const *tensors;
};

#define TENSOR_POOL_OPTIONS(...) (&(const struct tensor_pool_options){ __VA_ARGS__ })

/* A pool of tensors with these sizes; NULL: 4 of f32 that waits. NULL with the error set: EINVAL, ENOMEM, EMFILE, ENOTSUP. */
tensor_pool *tensor_pool_open(tensor_ints sizes, const struct tensor_pool_options *options);
/* Close the pool; NULL is ignored. Loans and received tensors stay valid. No other thread may use the pool. */
void tensor_pool_close(tensor_pool *pool);
/*
 * A tensor on a free buffer, owned like an operator's result; its values are those of the last use. Released without
 * having been sent it is free again. A negative timeout: none.
 * NULL with the error set: ETIMEDOUT, EAGAIN, ENOMEM.
 */
tensor *tensor_pool_loan(tensor_pool *pool, int64_t timeout_ns);
/* The number of buffers that are free now. -EINVAL without a pool. */
int tensor_pool_available(tensor_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
