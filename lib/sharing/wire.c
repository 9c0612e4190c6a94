// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Messages on a unix socket, and the checks that need only the message. The sender may be hostile:
 * every field is checked and every received fd is closed or used.
 */
#include "sharing/wire.h"

#include "base/compiler.h"
#include "base/init.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS_MAX	  8   /* descriptors in one message; the kernel drops further ones */
#define LABEL_MAX 512 /* bytes of a security label */
#ifndef SCM_PIDFD
#define SCM_PIDFD 4 /* Linux 6.5 */
#endif

/* ---- out ---- */

static int out_error(void)
{
	return errno == ECONNRESET || errno == ENOTCONN ? -EPIPE : -errno;
}

static ssize_t send_part(int socket, const char *data, size_t len, int fd, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { (void *)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *c = &control.align;

		memset(&control, 0, sizeof(control));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	do {
		n = sendmsg(socket, &msg, MSG_NOSIGNAL | flags);
	} while (n < 0 && errno == EINTR);
	return n;
}

int wire_send(int socket, const struct wire_message *m, int fd, int flags)
{
	size_t done = 0;

	while (done < sizeof(*m)) {
		ssize_t n = send_part(socket, (const char *)m + done, sizeof(*m) - done,
				      done ? -1 : fd, flags);

		if (n >= 0) {
			done += n;
		} else if (errno == EAGAIN && done) {
			/* Waits for the rest: a partial message would make the stream unusable. */
			struct pollfd p = { .fd = socket, .events = POLLOUT };

			poll(&p, 1, -1);
		} else {
			return out_error();
		}
	}
	return 0;
}

/* ---- refused descriptors ---- */

/*
 * close() of a file on FUSE may wait for the process that serves it, which may be the sender. So a
 * thread closes refused descriptors; it ends when none is left.
 */
struct refused {
	struct refused *next;
	int fd;
	struct wire_refused *by;
};

/* Refused descriptors of one channel; protected by the closer's lock. */
struct wire_refused {
	unsigned waiting;
	bool ended; /* the channel was closed: the last descriptor frees this struct */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t closed; /* one was closed */
	struct refused *first;
	bool running;
} closer = { .lock = PTHREAD_MUTEX_INITIALIZER, .closed = PTHREAD_COND_INITIALIZER };

static void lock_closer(void)
{
	pthread_mutex_lock(&closer.lock);
}

static void unlock_closer(void)
{
	pthread_mutex_unlock(&closer.lock);
}

/* The child has the descriptors but not the thread. */
static void begin_anew(void)
{
	closer.running = false;
	closer.closed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	unlock_closer();
}

INIT(INIT_WIRE) static void watch_forks(void)
{
	pthread_atfork(lock_closer, unlock_closer, begin_anew);
}

static struct refused *next_refused(void)
{
	struct refused *r;

	lock_closer();
	r = closer.first;
	if (r)
		closer.first = r->next;
	else
		closer.running = false;
	unlock_closer();
	return r;
}

static void count_closed(struct wire_refused *by)
{
	lock_closer();
	if (!--by->waiting && by->ended)
		free(by);
	pthread_cond_broadcast(&closer.closed);
	unlock_closer();
}

static void *close_refused(void *arg)
{
	struct refused *r;

	while ((r = next_refused())) {
		close(r->fd);
		count_closed(r->by);
		free(r);
	}
	return NULL;
}

/* The caller holds the lock. The thread blocks all signals. */
static bool start_closer(void)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, close_refused, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		pthread_detach(thread);
	return !err;
}

static void refuse(struct wire_in *in, int fd)
{
	struct refused *r = malloc(sizeof(*r));

	if (!in->refused)
		in->refused = calloc(1, sizeof(*in->refused));
	/* close() of a memfd or a buffer does not block. */
	if (!r || !in->refused || fcntl(fd, F_GET_SEALS) >= 0) {
		close(fd);
		free(r);
		return;
	}
	r->fd = fd;
	r->by = in->refused;
	lock_closer();
	r->by->waiting++;
	r->next = closer.first;
	closer.first = r;
	if (!closer.running)
		closer.running = start_closer();
	unlock_closer();
}

bool wire_overrun(struct wire_in *in)
{
	struct timespec until;
	bool over;
	int err = 0;

	if (!in->refused)
		return false;
	lock_closer();
	over = in->refused->waiting >= WIRE_REFUSED_MAX;
	/* Waits a moment: the thread may only be slow. */
	if (over) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		while (!err && in->refused->waiting >= WIRE_REFUSED_MAX)
			err = pthread_cond_timedwait(&closer.closed, &closer.lock, &until);
		over = err;
	}
	unlock_closer();
	return over;
}

void wire_end(struct wire_in *in)
{
	wire_reset(in);
	if (!in->refused)
		return;
	lock_closer();
	in->refused->ended = true;
	if (!in->refused->waiting)
		free(in->refused);
	unlock_closer();
	in->refused = NULL;
}

/* ---- in ---- */

static void take_fds(struct wire_in *in, struct cmsghdr *c)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		if (in->fd < 0 && !in->extra) {
			in->fd = fd;
		} else {
			refuse(in, fd);
			in->extra = true;
		}
	}
}

static void drop_fd(struct cmsghdr *c)
{
	int fd;

	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	if (fd >= 0)
		close(fd);
}

static ssize_t recv_part(int socket, struct wire_in *in, int how, int *flags)
{
	union {
		struct cmsghdr align;
		/*
		 * and ancillary data that the owner of the socket enabled: credentials, pidfd,
		 * security label
		 */
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred)) +
			   CMSG_SPACE(sizeof(int)) + CMSG_SPACE(LABEL_MAX)];
	} control;
	struct iovec iov = { (char *)&in->m + in->have, sizeof(in->m) - in->have };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;

	do {
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | how);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS)
			take_fds(in, c);
		else if (c->cmsg_type == SCM_PIDFD)
			drop_fd(c);
	}
	in->lost |= !!(msg.msg_flags & MSG_CTRUNC);
	*flags = msg.msg_flags;
	return n;
}

/*
 * recvmsg() returned 0: end of the stream or an empty packet. It is the end only if the peer has
 * closed its side and nothing is queued.
 */
static int nothing_came(int socket, bool packets, const struct wire_in *in)
{
	struct pollfd p = { .fd = socket, .events = POLLRDHUP };
	char byte;

	if (in->have)
		return -EBADMSG;
	if (packets && (poll(&p, 1, 0) == 0 || recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0))
		return -EBADMSG;
	return -EPIPE;
}

int wire_recv(int socket, bool packets, struct wire_in *in, int how)
{
	while (in->have < sizeof(in->m)) {
		int flags;
		ssize_t n = recv_part(socket, in, how, &flags);

		if (n < 0)
			return errno == ECONNRESET ? -EPIPE : -errno;
		if (n == 0)
			return nothing_came(socket, packets, in);
		in->have += n;
		if (packets && (flags & MSG_TRUNC || in->have < sizeof(in->m)))
			return -EBADMSG;
	}
	return 0;
}

void wire_reset(struct wire_in *in)
{
	if (in->fd >= 0)
		refuse(in, in->fd);
	in->fd = -1;
	in->have = 0;
	in->extra = in->lost = false;
}

/* ---- checks ---- */

static bool tail_zero(const struct wire_message *m)
{
	for (uint32_t i = m->ndim; i < WIRE_DIMS; i++)
		if (m->sizes[i] || m->strides[i])
			return false;
	return true;
}

static int check_note(const struct wire_message *m, const char **why)
{
	bool head = m->dtype == WIRE_NOTE_HEAD, device = m->dtype == WIRE_NOTE_DEVICE;
	bool leases = m->dtype == WIRE_NOTE_LEASES || m->dtype == WIRE_NOTE_HOLDER;

	if (m->flags != (leases ? WIRE_NOTE | WIRE_FD : WIRE_NOTE) || !(head || device || leases))
		*why = "the kind of a note is unknown";
	else if (head && (m->slot > WIRE_PARTS || m->offset < -1))
		*why = "there are too many tensors in a message";
	else if (device && m->offset <= 0)
		*why = "memory of a device has no size";
	else if (m->ndim || !tail_zero(m) || (!head && m->slot) ||
		 (leases && (m->dev || m->ino || m->offset)))
		*why = "a note has a member that it does not need";
	return *why ? -EBADMSG : 0;
}

int wire_check(const struct wire_message *m, const char **why)
{
	if (m->magic != WIRE_MAGIC || m->version != WIRE_VERSION || m->size != sizeof(*m)) {
		*why = m->magic != WIRE_MAGIC ? "this is no tensor message" :
						"the message is of another version";
		return -EPROTO;
	}
	*why = NULL;
	if (m->flags & WIRE_NOTE)
		return check_note(m, why);
	if (m->flags & ~WIRE_FLAGS)
		*why = "a flag is unknown";
	else if (m->flags & WIRE_FILE && !(m->flags & WIRE_READONLY))
		*why = "a file is not read-only";
	else if (m->flags & WIRE_DEVICE && m->flags & (WIRE_FILE | WIRE_READONLY))
		*why = "memory of a device is neither a file nor read-only";
	else if (m->slot >= WIRE_SLOTS && m->slot != WIRE_NO_SLOT)
		*why = "the slot is out of range";
	else if (m->slot == WIRE_NO_SLOT && !(m->flags & WIRE_FD))
		*why = "there is neither a slot nor an fd";
	else if (!m->dtype || m->dtype >= TENSOR_DTYPE_COUNT)
		*why = "the dtype is unknown";
	else if (m->ndim > WIRE_DIMS)
		*why = "there are too many dimensions";
	else if (!tail_zero(m))
		*why = "a dimension that does not exist has a size or a stride";
	return *why ? -EBADMSG : 0;
}

/* Whether the bytes of all elements fit into 63 bits. *empty: a size is 0. */
static bool count_fits(const struct wire_message *m, int64_t itemsize, bool *empty)
{
	int64_t bytes = itemsize;

	*empty = false;
	for (uint32_t i = 0; i < m->ndim; i++) {
		if (m->sizes[i] < 0)
			return false;
		if (m->sizes[i] == 0)
			*empty = true;
		else if (__builtin_mul_overflow(bytes, m->sizes[i], &bytes))
			return false;
	}
	return true;
}

bool wire_fits(const struct wire_message *m, uint64_t bytes, unsigned itemsize)
{
	int64_t low = 0, high = 1, step; /* elements before and after the offset */
	bool empty;

	if (m->offset < 0 || (uint64_t)m->offset > bytes || m->offset % itemsize)
		return false;
	if (!count_fits(m, itemsize, &empty))
		return false;
	if (empty)
		return true;
	for (uint32_t i = 0; i < m->ndim; i++) {
		int64_t *side;

		if (__builtin_mul_overflow(m->sizes[i] - 1, m->strides[i], &step))
			return false;
		side = step < 0 ? &low : &high;
		if (__builtin_add_overflow(*side, step, side))
			return false;
	}
	if (__builtin_mul_overflow(low, (int64_t)itemsize, &low) ||
	    __builtin_mul_overflow(high, (int64_t)itemsize, &high))
		return false;
	/* 0 <= offset <= bytes: neither side overflows. */
	return m->offset + low >= 0 && (uint64_t)high <= bytes - (uint64_t)m->offset;
}
