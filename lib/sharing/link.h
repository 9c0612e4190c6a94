/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The messages of a channel, by the socket or by a ring, with deadlines. */
#ifndef TENSOR_LINK_H
#define TENSOR_LINK_H

#include "sharing/channel.h"

#include <poll.h>

/* Deadlines: nanoseconds of CLOCK_MONOTONIC, or one of these. */
#define LINK_FOREVER INT64_MAX
#define LINK_BY_SOCKET \
	(-1) /* none if the socket blocks; -EAGAIN instead of waiting if it does not */

int64_t link_now(void);
/* The deadline of a timeout in nanoseconds; negative: LINK_FOREVER. */
int64_t link_deadline(int64_t timeout_ns);
/* The time until then, at least 0. */
int64_t link_left(int64_t until);
/* The deadline of a call that has to wait; -EAGAIN if it must not. */
int link_resolve(const tensor_channel *ch, int64_t *until);
/* 0 if a receive may go on; -EAGAIN or -ETIMEDOUT if its time is over, whatever there is: the next record rings. */
int link_late(tensor_channel *ch, int64_t until);
/* Takes the lock. 0 or -ETIMEDOUT. */
int link_lock(pthread_mutex_t *lock, int64_t until);
/* The time for which a wait for the other end of a channel spins if the program does not say: both may use this one's processors. */
int64_t link_default_spin(void);
/*
 * The same for waits among n processes, each of which may be bound to processors of its own, by mpirun, taskset or a
 * cpuset: all together must have as many.
 */
int64_t link_spin_among(const int32_t *pids, int n);

/* The time of a wait that spins. */
struct link_spin {
	int socket;
	int64_t look, end;
};

struct link_spin link_spin_begin(const tensor_channel *ch, int64_t until);
/* False when the time or the deadline is over, or the peer is dead. */
bool link_spin_on(struct link_spin *s);

/* Whether a receiver's wait may spin. */
bool link_may_spin(const tensor_channel *ch, struct link_habit *h);
/* It has spun: until something came, or in vain. */
void link_has_spun(const tensor_channel *ch, struct link_habit *h, bool in_vain);

/* poll() with a deadline. The number of descriptors with events; -ETIMEDOUT; -errno. */
int link_poll(struct pollfd *fds, int n, int64_t until);
/* Waits for events, errors and the death of the peer. The events that came; -ETIMEDOUT; -errno. */
int link_wait_socket(int socket, short events, int64_t until);

void link_open(tensor_channel *ch);
void link_close(tensor_channel *ch);

/* ---- the caller holds sending ---- */

/* Whether the peer takes records. */
bool link_has_ring(tensor_channel *ch);
/* Sends the message by the socket. 0; -EAGAIN or -ETIMEDOUT: it was not sent; -EPIPE; -errno. */
int link_send_socket(tensor_channel *ch, const struct wire_message *m, int fd, int64_t until);
/* Waits until n records are free in the ring, which has at least as many. The results of link_send_ring(). */
int link_wait_records(tensor_channel *ch, uint32_t n, int64_t until);
/* Sends the message, which has no fd, by the ring. The same results; -EBADMSG: the peer wrote nonsense to the ring. */
int link_send_ring(tensor_channel *ch, const struct wire_message *m, int64_t until);

/* ---- the caller holds receiving ---- */

/*
 * The next message of a tensor: *in is valid until link_done(). -EAGAIN or -ETIMEDOUT: there is none; -EPIPE; -EBADMSG;
 * -errno. For a channel that wants no ring, the state after an error is that of wire_recv().
 */
int link_next(tensor_channel *ch, int64_t until, struct wire_in **in);
void link_done(tensor_channel *ch, struct wire_in *in);
/* Whether link_next() would return at once. If not, the peer's next message makes the socket readable. */
bool link_ready(tensor_channel *ch);

#endif
