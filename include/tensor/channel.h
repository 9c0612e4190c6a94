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
	/*
	 * With ring: this end trusts its peer, so that tensors of a file that the peer has mapped read-only come as a mapping
	 * of the file instead of a copy. An access raises SIGBUS if anyone truncates the file meanwhile.
	 */
	bool files;
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

/* ---- groups ---- */

/*
 * A group: one call sends to several receivers, each with a channel of its own. Its messages have leases, as those with
 * tensors of a pool: the group knows what a receiver has not released, and at most `window` messages are on their way to
 * a receiver or with it. docs/sharing.md, Groups, has the rules. In a child of fork() calls fail with -EBUSY if another
 * thread was in one of the group meanwhile.
 */
typedef struct tensor_channel_group tensor_channel_group;

enum tensor_channel_group_kind {
	TENSOR_CHANNEL_GROUP_ALL,  /* each message goes to all receivers */
	TENSOR_CHANNEL_GROUP_NEXT, /* to one: the one that has the fewest */
};

struct tensor_channel_group_options {
	enum tensor_channel_group_kind kind;
	/*
	 * A send while a receiver, or with TENSOR_CHANNEL_GROUP_NEXT all of them, have a full window. WAIT: waits. DROP: takes the
	 * oldest message back that the slow receiver has not received; if it has received all, a message to all does not go
	 * to it, and one to the next waits. REFUSE: fails with EAGAIN, and no receiver gets the message.
	 */
	enum tensor_pool_full full;
	int32_t window; /* messages, 1 to 4096; 0: 8 */
};

#define TENSOR_CHANNEL_GROUP_OPTIONS(...) \
	(&(const struct tensor_channel_group_options){ __VA_ARGS__ })

struct tensor_channel_group_stats {
	uint64_t sent;	    /* messages to the receiver */
	uint64_t dropped;   /* those that were taken back, or that did not go to it */
	uint32_t in_flight; /* those that it has not released */
	bool alive;
};

/* A group without receivers; NULL as options: to all, waits. NULL with the error set: EINVAL, ENOMEM, EMFILE. */
tensor_channel_group *tensor_channel_group_open(const struct tensor_channel_group_options *options);
/* Close the group, not its channels; NULL is ignored. Messages that were sent are received. No other thread may use the group. */
void tensor_channel_group_close(tensor_channel_group *group);
/*
 * Add a receiver at any time: it gets the messages from then on. The channel stays the caller's, who removes it from the
 * group, or closes the group, before the channel; meanwhile it may also be used alone. 0; -EINVAL, -EEXIST, -ENOMEM.
 */
int tensor_channel_group_add(tensor_channel_group *group, tensor_channel *channel);
/* Remove a receiver; what was sent to it is received. 0; -EINVAL; -ENOENT: it is not in the group. */
int tensor_channel_group_remove(tensor_channel_group *group, tensor_channel *channel);
/*
 * Send a message as tensor_send_many() does. A receiver that has died is passed over.
 * Return: the number of receivers, 0 if the group has none (TENSOR_CHANNEL_GROUP_ALL); -ETIMEDOUT and -EAGAIN: no receiver gets
 *   it; -ENOTCONN: no receiver lives (TENSOR_CHANNEL_GROUP_NEXT); other errors as of tensor_send_many().
 */
int tensor_channel_group_send(tensor_channel_group *group, tensor *const *tensors, int n,
			      uint64_t tag, unsigned flags, int64_t timeout_ns);
/* The number of receivers that live. -EINVAL without a group. */
int tensor_channel_group_count(tensor_channel_group *group);
/* Read the state of a receiver. 0; -EINVAL; -ENOENT: it is not in the group. */
#ifdef __cplusplus /* a function with the name of a structure, as stat() */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
int tensor_channel_group_stats(tensor_channel_group *group, tensor_channel *channel,
			       struct tensor_channel_group_stats *stats);
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
/*
 * The number of a message of TENSOR_CHANNEL_GROUP_NEXT whose receiver died before it had released it, oldest first, each once.
 * 1 with the number in *tag; 0: there is none; -EINVAL.
 */
int tensor_channel_group_lost(tensor_channel_group *group, uint64_t *tag);

#ifdef __cplusplus
}
#endif
#endif
