// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * How the ranks of a local group meet: rank 0 listens on a socket of the abstract namespace. Each other rank connects,
 * says who it is and passes a pidfd of itself. When all have come, rank 0 sends each the shared memory and all pidfds.
 */
#include "group/local/local.h"

#include "base/init.h"
#include "sharing/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RETRY_NS INT64_C(5000000)
#define HELLO_NS INT64_C(2000000000) /* for a connected rank to say who it is */

struct hello {
	uint32_t magic;
	int32_t rank, size, pid;
};

struct welcome {
	uint32_t magic;
	int32_t code; /* 0, or errno: the rank is refused */
	char text[192];
	int32_t pids[LOCAL_MAX];
};

/* ---- messages with descriptors ---- */

static int send_fds(int socket, const void *data, size_t n, const int *fds, int nfds)
{
	char control[CMSG_SPACE(sizeof(int) * (LOCAL_MAX + 1))] = { 0 };
	struct iovec iov = { (void *)data, n };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)nfds);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)nfds);
	}
	if (sendmsg(socket, &m, MSG_NOSIGNAL) == (ssize_t)n)
		return 0;
	/* The other end is gone. */
	return errno == EPIPE ? -ECONNRESET : errno ? -errno : -EIO;
}

static void close_fds(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		close(fds[i]);
}

/* The number of descriptors; -EMFILE: they were more than the process may have; -EPIPE, -EPROTO, -errno. */
static int recv_fds(int socket, void *data, size_t n, int *fds, int most)
{
	char control[CMSG_SPACE(sizeof(int) * (LOCAL_MAX + 1))];
	struct iovec iov = { data, n };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	int nfds = 0;

	if (got <= 0)
		return got < 0 ? -errno : -EPIPE;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		int count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		int all[LOCAL_MAX + 1];

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(all, CMSG_DATA(c), sizeof(int) * (size_t)count);
		for (int i = 0; i < count; i++)
			if (nfds < most)
				fds[nfds++] = all[i];
			else
				close(all[i]);
	}
	if (got == (ssize_t)n && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return nfds;
	close_fds(fds, nfds);
	return m.msg_flags & MSG_CTRUNC ? -EMFILE : -EPROTO;
}

/* ---- addresses ---- */

int local_address(const char *address, int rank, char *to, size_t size)
{
	/* A name of another user is another name. */
	int n = snprintf(to + 1, size - 1, "tensor-group/%u/%s/%d", (unsigned)getuid(), address,
			 rank);

	*to = 0;
	return n + 1;
}

static socklen_t socket_address(const char *address, int rank, struct sockaddr_un *to)
{
	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			   (size_t)local_address(address, rank, to->sun_path,
						 sizeof(to->sun_path)));
}

bool local_is_same_user(int socket)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &n) &&
	       (who.uid == getuid() || !who.uid);
}

/* ---- sockets that listen ---- */

/* A child of fork() closes its copy: it would keep the address as long as it lives. */
struct listener {
	int fd; /* or -1 */
	struct listener *next;
};

static struct {
	pthread_mutex_t lock;
	struct listener *first;
} listeners = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void lock_listeners(void)
{
	pthread_mutex_lock(&listeners.lock);
}

static void unlock_listeners(void)
{
	pthread_mutex_unlock(&listeners.lock);
}

static void close_listeners(void)
{
	for (struct listener *s = listeners.first; s; s = s->next)
		if (s->fd >= 0)
			close(s->fd);
	listeners.first = NULL;
	unlock_listeners();
}

INIT(INIT_GROUP_JOIN) static void join_init(void)
{
	pthread_atfork(lock_listeners, unlock_listeners, close_listeners);
}

/* 0, or -errno with the error set; end_listening() either way. */
static int listen_at(const struct local *l, int size, struct listener *s)
{
	struct sockaddr_un to;
	socklen_t n = socket_address(l->address, 0, &to);
	int err = 0;

	lock_listeners();
	s->next = listeners.first;
	listeners.first = s;
	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&to, n) < 0 || listen(s->fd, size) < 0)
		err = errno;
	unlock_listeners();
	return err ? tensor_fail(err, "group_open: local: address %s: %s", QUOTED(l->address),
				 strerror(err)) :
		     0;
}

static void end_listening(struct listener *s)
{
	struct listener **at = &listeners.first;

	lock_listeners();
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	if (s->fd >= 0)
		close(s->fd);
	unlock_listeners();
}

/* ---- the shared memory ---- */

static size_t slot_size(int size)
{
	size_t each = LOCAL_TOTAL / 2 / (unsigned)size / 4096 * 4096;

	return each > LOCAL_SLOT ? LOCAL_SLOT : each < LOCAL_LEAST ? LOCAL_LEAST : each;
}

static size_t page_size(int size)
{
	size_t n = sizeof(struct local_page) + (size_t)size * sizeof(struct local_rank);

	return (n + 4095) / 4096 * 4096;
}

static int map_segment(tensor_group *g, struct local *l)
{
	void *p;
	int err;

	l->slot = slot_size(g->size);
	l->bytes = page_size(g->size) + 2 * (size_t)g->size * l->slot;
	if (shm_size(l->fd) != (int64_t)l->bytes)
		return tensor_fail(EPROTO, "group_open: local: the shared memory has another size");
	err = shm_map(l->fd, l->bytes, &p);
	if (err < 0)
		return tensor_fail(-err, "group_open: local: %zu bytes: %s", l->bytes,
				   strerror(-err));
	l->page = p;
	l->slots = (char *)p + page_size(g->size);
	return 0;
}

static int make_segment(tensor_group *g, struct local *l)
{
	int err = shm_make(LOCAL_MEMFD,
			   page_size(g->size) + 2 * (size_t)g->size * slot_size(g->size), &l->fd);

	if (err < 0)
		return tensor_fail(-err, "group_open: local: no shared memory: %s", strerror(-err));
	err = map_segment(g, l);
	if (!err) {
		l->page->magic = LOCAL_MAGIC;
		l->page->size = (uint32_t)g->size;
		l->page->slot = (uint32_t)l->slot;
		if (getrandom(&l->page->id, sizeof(l->page->id), 0) != sizeof(l->page->id))
			l->page->id = (uint64_t)link_now() ^ (uint64_t)getpid();
	}
	return err;
}

/* ---- rank 0 ---- */

static int no_pidfd(void)
{
	return tensor_fail(errno, "group_open: local: no pidfd: %s", strerror(errno));
}

static void refuse(int fd, int code, const char *text)
{
	struct welcome w = { .magic = LOCAL_MAGIC, .code = code };

	snprintf(w.text, sizeof(w.text), "%s", text);
	send_fds(fd, &w, sizeof(w), NULL, 0);
	close(fd);
}

/* Who has connected; consumes fd unless it is kept in sockets. */
static void admit(tensor_group *g, struct local *l, int fd, int *sockets)
{
	struct hello hello;
	int pidfd = -1;

	if (!local_is_same_user(fd) || link_wait_socket(fd, POLLIN, link_now() + HELLO_NS) < 0 ||
	    recv_fds(fd, &hello, sizeof(hello), &pidfd, 1) != 1 || hello.magic != LOCAL_MAGIC)
		refuse(fd, EPROTO, "another version of the library");
	else if (hello.size != g->size)
		refuse(fd, EINVAL, "rank 0 has another size of the group");
	else if (hello.rank <= 0 || hello.rank >= g->size)
		refuse(fd, EINVAL, "there is no such rank");
	else if (sockets[hello.rank] >= 0)
		refuse(fd, EEXIST, "the rank is taken");
	else {
		sockets[hello.rank] = fd;
		l->pidfds[hello.rank] = pidfd;
		l->pids[hello.rank] = hello.pid;
		return;
	}
	if (pidfd >= 0)
		close(pidfd);
}

/* A rank that died while the others were awaited can come again. */
static void forget_dead(tensor_group *g, struct local *l, int *sockets)
{
	for (int i = 1; i < g->size; i++)
		if (sockets[i] >= 0 && link_wait_socket(sockets[i], POLLIN, 0) != -ETIMEDOUT) {
			close(sockets[i]);
			close(l->pidfds[i]);
			sockets[i] = l->pidfds[i] = -1;
		}
}

static int missing_error(const tensor_group *g, const int *sockets)
{
	char ranks[TENSOR_ERROR_TEXT / 2] = "";

	for (int i = 1; i < g->size; i++)
		if (sockets[i] < 0)
			group_list_rank(ranks, sizeof(ranks), i);
	return tensor_fail(ETIMEDOUT, "group_open: local: of %d ranks these have not come: %s",
			   g->size, ranks);
}

static int missing(const tensor_group *g, const int *sockets)
{
	int n = 0;

	for (int i = 1; i < g->size; i++)
		n += sockets[i] < 0;
	return n;
}

static int gather(tensor_group *g, struct local *l, int listener, int *sockets, int64_t until)
{
	while (missing(g, sockets)) {
		int64_t look = link_now() + 100 * RETRY_NS;
		int came = link_wait_socket(listener, POLLIN, look < until ? look : until), fd;

		if (came < 0 && came != -ETIMEDOUT)
			return tensor_fail(-came, "group_open: local: %s", strerror(-came));
		fd = came > 0 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
		forget_dead(g, l, sockets);
		if (fd >= 0)
			admit(g, l, fd, sockets);
		if (!link_left(until) && missing(g, sockets))
			return missing_error(g, sockets);
	}
	return 0;
}

static int welcome_all(tensor_group *g, struct local *l, int self, const int *sockets)
{
	struct welcome w = { .magic = LOCAL_MAGIC };
	int fds[LOCAL_MAX + 1], n = 0, err;

	memcpy(w.pids, l->pids, sizeof(l->pids[0]) * (size_t)g->size);
	fds[n++] = l->fd;
	fds[n++] = self;
	for (int i = 1; i < g->size; i++)
		fds[n++] = l->pidfds[i];
	for (int i = 1; i < g->size; i++) {
		err = send_fds(sockets[i], &w, sizeof(w), fds, n);
		if (err < 0)
			return tensor_fail(-err, "group_open: local: rank %d: %s", i,
					   strerror(-err));
	}
	return 0;
}

/* Meets the other ranks; their sockets, -1 for those that have not come. */
static int meet(tensor_group *g, struct local *l, int *sockets, int64_t until)
{
	struct listener s;
	int err = listen_at(l, g->size, &s);

	if (!err)
		err = gather(g, l, s.fd, sockets, until);
	/* Before the others go on: one that opens its next group at the address must not connect to this listener. */
	end_listening(&s);
	return err;
}

static int lead(tensor_group *g, struct local *l, int self, int64_t until)
{
	int sockets[LOCAL_MAX], err;

	memset(sockets, 0xff, sizeof(sockets));
	err = make_segment(g, l);
	if (!err && g->size > 1)
		err = meet(g, l, sockets, until);
	if (!err && g->size > 1)
		err = welcome_all(g, l, self, sockets);
	for (int i = 1; i < g->size; i++)
		if (sockets[i] >= 0)
			close(sockets[i]);
	return err;
}

/* ---- other ranks ---- */

/* Rank 0 may not have come yet. */
static int connect_to(const struct local *l, int64_t until)
{
	struct sockaddr_un to;
	socklen_t n = socket_address(l->address, 0, &to);

	for (;;) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err;

		if (fd >= 0 && !connect(fd, (struct sockaddr *)&to, n))
			return fd;
		err = errno;
		if (fd >= 0)
			close(fd);
		if (err != ECONNREFUSED && err != EINTR && err != EAGAIN)
			return tensor_fail(err, "group_open: local: address %s: %s",
					   QUOTED(l->address), strerror(err));
		if (!link_left(until))
			return tensor_fail(ETIMEDOUT,
					   "group_open: local: rank 0 has not come to address %s",
					   QUOTED(l->address));
		nanosleep(&(struct timespec){ 0, RETRY_NS }, NULL);
	}
}

static int take_welcome(tensor_group *g, struct local *l, const struct welcome *w, int *fds, int n)
{
	if (w->magic == LOCAL_MAGIC && w->code)
		return tensor_fail(w->code, "group_open: local: rank %d of %d was refused: %.*s",
				   g->rank, g->size, (int)sizeof(w->text) - 1, w->text);
	if (w->magic != LOCAL_MAGIC || n != g->size + 1)
		return tensor_fail(
			EPROTO, "group_open: local: address %s is not of a group of this version",
			QUOTED(l->address));
	l->fd = fds[0];
	fds[0] = -1;
	for (int i = 0; i < g->size; i++)
		if (i != g->rank) {
			l->pidfds[i] = fds[i + 1];
			fds[i + 1] = -1;
		}
	memcpy(l->pids, w->pids, sizeof(l->pids[0]) * (size_t)g->size);
	return map_segment(g, l);
}

static int await_welcome(tensor_group *g, struct local *l, int fd, int64_t until)
{
	int fds[LOCAL_MAX + 1], err = link_wait_socket(fd, POLLIN, until), n;
	struct welcome w;

	if (err < 0)
		return tensor_fail(-err, "group_open: local: not all of %d ranks have come",
				   g->size);
	n = recv_fds(fd, &w, sizeof(w), fds, LOCAL_MAX + 1);
	if (n == -EMFILE)
		return tensor_fail(EMFILE, "group_open: local: no %d descriptors: %s", g->size + 1,
				   strerror(EMFILE));
	if (n < 0)
		return tensor_fail(n == -EPIPE ? ECONNRESET : -n,
				   "group_open: local: rank 0 has given up");
	err = take_welcome(g, l, &w, fds, n);
	for (int i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return err;
}

static int follow(tensor_group *g, struct local *l, int self, int64_t until)
{
	struct hello hello = { LOCAL_MAGIC, g->rank, g->size, getpid() };
	int fd = connect_to(l, until), err;

	if (fd < 0)
		return fd;
	err = local_is_same_user(fd) ? send_fds(fd, &hello, sizeof(hello), &self, 1) : -EPERM;
	err = err < 0 ? tensor_fail(-err, "group_open: local: rank 0: %s", strerror(-err)) :
			await_welcome(g, l, fd, until);
	close(fd);
	return err;
}

int local_join(tensor_group *g, struct local *l, const char *address)
{
	int64_t until = link_deadline(g->timeout_ns);
	int self = g->size > 1 ? pidfd_open(getpid(), 0) : -1, err;

	if (g->size > 1 && self < 0)
		return no_pidfd();
	snprintf(l->address, sizeof(l->address), "%s", address);
	l->pids[g->rank] = getpid();
	err = g->rank ? follow(g, l, self, until) : lead(g, l, self, until);
	if (!err)
		atomic_store(&l->page->ranks[g->rank].pid, getpid());
	if (self >= 0)
		close(self);
	return err;
}
