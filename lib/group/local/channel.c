// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Channels between the ranks of a local group: each direction of two ranks has one for messages, and one for the tensors
 * that collectives read in place, so that neither waits for the other. The first use makes it.
 */
#include "group/local/local.h"

#include "sharing/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tensor/channel.h>
#include <unistd.h>

/* The first message of a socket. */
struct caller {
	int32_t rank, lane;
};

struct local_peer *local_peer_of(const tensor_group *g, enum local_lane lane, int rank)
{
	struct local *l = g->state;

	return &l->peers[(int)lane * g->size + rank];
}

static socklen_t address_of(const struct local *l, int rank, struct sockaddr_un *to)
{
	char name[32];

	snprintf(name, sizeof(name), "#%016llx", (unsigned long long)l->page->id);
	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			   (size_t)local_address(name, rank, to->sun_path, sizeof(to->sun_path)));
}

int local_channels_open(tensor_group *g)
{
	struct local *l = g->state;
	int n = LOCAL_LANES * g->size;
	struct sockaddr_un at;
	socklen_t length = address_of(l, g->rank, &at);

	l->peers = calloc((size_t)n, sizeof(*l->peers));
	l->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!l->peers)
		return tensor_fail(ENOMEM, "group_open: no memory");
	for (int i = 0; i < n; i++)
		l->peers[i].out_socket = l->peers[i].in_socket = -1;
	if (l->listener < 0 || bind(l->listener, (struct sockaddr *)&at, length) < 0 ||
	    listen(l->listener, n) < 0)
		return tensor_fail(errno, "group_open: local: no socket: %s", strerror(errno));
	return 0;
}

void local_channels_close(tensor_group *g)
{
	struct local *l = g->state;

	for (int i = 0; l->peers && i < LOCAL_LANES * g->size; i++) {
		struct local_peer *p = &l->peers[i];

		tensor_pool_close(p->pool);
		tensor_channel_close(p->out);
		tensor_channel_close(p->in);
		if (p->out_socket >= 0)
			close(p->out_socket);
		if (p->in_socket >= 0)
			close(p->in_socket);
	}
	free(l->peers);
	l->peers = NULL;
}

static tensor_channel *open_channel(int socket)
{
	return tensor_channel_open_with(socket, TENSOR_CHANNEL_OPTIONS(.ring = true));
}

int local_connect(tensor_group *g, enum local_lane lane, int rank)
{
	struct local_peer *p = local_peer_of(g, lane, rank);
	const struct caller self = { g->rank, lane };
	struct sockaddr_un to;
	socklen_t n;
	int fd, code;

	if (p->out)
		return 1;
	n = address_of(g->state, rank, &to);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&to, n) &&
	    send(fd, &self, sizeof(self), MSG_NOSIGNAL) == sizeof(self)) {
		p->out = open_channel(fd);
		if (p->out) {
			p->out_socket = fd;
			return 1;
		}
		close(fd);
		return -thread()->error.code;
	}
	code = errno;
	if (fd >= 0)
		close(fd);
	if (code == ECONNREFUSED || code == EAGAIN || code == EINTR || code == EPIPE)
		return 0;
	return tensor_fail(code, "rank %d: %s", rank, strerror(code));
}

static int accept_one(tensor_group *g, int fd)
{
	struct caller who = { -1, -1 };
	struct local_peer *p = NULL;

	/* The names of sockets can be read by all users. */
	if (local_is_same_user(fd) &&
	    link_wait_socket(fd, POLLIN, link_now() + INT64_C(1000000000)) >= 0 &&
	    recv(fd, &who, sizeof(who), 0) == sizeof(who) && who.rank >= 0 && who.rank < g->size &&
	    who.lane >= 0 && who.lane < LOCAL_LANES)
		p = local_peer_of(g, (enum local_lane)who.lane, who.rank);
	if (!p || p->in) {
		close(fd);
		return 0;
	}
	p->in = open_channel(fd);
	if (!p->in) {
		close(fd);
		return -thread()->error.code;
	}
	p->in_socket = fd;
	return 0;
}

int local_accept(tensor_group *g, enum local_lane lane, int rank)
{
	const struct local_peer *p = local_peer_of(g, lane, rank);
	struct local *l = g->state;
	int fd, err = 0;

	if (p->in)
		return 1;
	while (!err && (fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		err = accept_one(g, fd);
	if (!err && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		err = tensor_fail(errno, "no socket for a rank: %s", strerror(errno));
	return err < 0 ? err : p->in ? 1 : 0;
}
