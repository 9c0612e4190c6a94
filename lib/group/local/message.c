// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sends and receives of a local group, each direction between two ranks through a channel that the first send makes. A
 * message begins with the geometry of its tensor. A tensor in a buffer goes as it is, and the send ends when the receiver
 * has copied it; of private memory go pieces in lent buffers, and the send ends when the last one was received.
 */
#include "group/local/local.h"

#include "sharing/lease.h"
#include "sharing/link.h"
#include "sharing/send.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tensor/channel.h>
#include <unistd.h>

#define PIECE  (256 << 10) /* bytes of a lent buffer */
#define PIECES 4

struct local_peer {
	int out_socket, in_socket; /* or -1 */
	tensor_channel *out, *in;
	tensor_pool *pool;
};

/* The beginning of the first buffer of a message. */
struct head {
	struct group_call call;
	int64_t bytes;
	int32_t whole; /* the tensor follows in the same message */
};

#define HEAD ((int64_t)((sizeof(struct head) + LOCAL_LINE - 1) / LOCAL_LINE * LOCAL_LINE))

/* Members of private[], and bits of phase. */
enum { LOAN, LEASE };
enum { BEGUN = 1, WRONG = 2 };

static struct local_peer *peer_of(tensor_group *g, int rank)
{
	struct local *l = g->state;

	return &l->peers[rank];
}

/* ---- channels ---- */

static socklen_t address_of(const struct local *l, int rank, struct sockaddr_un *to)
{
	char name[32];

	snprintf(name, sizeof(name), "#%016llx", (unsigned long long)l->page->id);
	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			   (size_t)local_address(name, rank, to->sun_path, sizeof(to->sun_path)));
}

int messages_open(tensor_group *g)
{
	struct local *l = g->state;
	struct sockaddr_un at;
	socklen_t n = address_of(l, g->rank, &at);

	l->peers = calloc((size_t)g->size, sizeof(*l->peers));
	l->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!l->peers)
		return tensor_fail(ENOMEM, "group_open: no memory");
	for (int i = 0; i < g->size; i++)
		l->peers[i].out_socket = l->peers[i].in_socket = -1;
	if (l->listener < 0 || bind(l->listener, (struct sockaddr *)&at, n) < 0 ||
	    listen(l->listener, g->size) < 0)
		return tensor_fail(errno, "group_open: local: no socket: %s", strerror(errno));
	return 0;
}

void messages_close(tensor_group *g)
{
	struct local *l = g->state;

	for (int i = 0; l->peers && i < g->size; i++) {
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

/* 1; 0: the peer does not listen yet; -errno with the error set. */
static int connect_peer(tensor_group *g, int rank)
{
	struct local_peer *p = peer_of(g, rank);
	const int64_t piece = PIECE;
	struct sockaddr_un to;
	socklen_t n = address_of(g->state, rank, &to);
	const int32_t self = g->rank;
	int fd, code;

	if (!p->pool)
		p->pool = tensor_pool_open((tensor_ints){ &piece, 1 },
					   TENSOR_POOL_OPTIONS(.n = PIECES, .dtype = TENSOR_U8));
	if (!p->pool)
		return -thread()->error.code;
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

static int accept_peer(tensor_group *g, int fd)
{
	int32_t rank = -1;

	/* The names of sockets can be read by all users. */
	if (!local_is_same_user(fd) ||
	    link_wait_socket(fd, POLLIN, link_now() + INT64_C(1000000000)) < 0 ||
	    recv(fd, &rank, sizeof(rank), 0) != sizeof(rank) || rank < 0 || rank >= g->size ||
	    peer_of(g, rank)->in) {
		close(fd);
		return 0;
	}
	peer_of(g, rank)->in = open_channel(fd);
	if (!peer_of(g, rank)->in) {
		close(fd);
		return -thread()->error.code;
	}
	peer_of(g, rank)->in_socket = fd;
	return 0;
}

static int accept_all(tensor_group *g)
{
	struct local *l = g->state;
	int fd, err = 0;

	while (!err && (fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		err = accept_peer(g, fd);
	if (!err && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		err = tensor_fail(errno, "no socket for a rank: %s", strerror(errno));
	return err;
}

/* ---- sending ---- */

static bool is_whole(const tensor_request *r)
{
	const tensor *t = r->in_tensor;

	return !r->in_packed && tensor_storage_buffer(t->storage) && request_bytes(r) > PIECE / 4;
}

/* Bytes of the message's next buffer behind its head. */
static int64_t piece_begin(const tensor_request *r)
{
	return r->at ? 0 : HEAD;
}

static void fill(tensor_request *r, char *to, bool whole)
{
	const struct head head = { r->call, request_bytes(r), whole };
	int64_t begin = piece_begin(r), n = request_bytes(r) - r->at;

	if (begin)
		memcpy(to, &head, sizeof(head));
	n = n < PIECE - begin ? n : PIECE - begin;
	if (!whole)
		memcpy(to + begin, (const char *)r->in + r->at, (size_t)n);
}

/* 1: sent; 0: the ring is full; -errno with the error set. */
static int send_piece(tensor_request *r, bool whole)
{
	tensor *list[] = { r->private[LOAN], r -> in_tensor };
	struct outgoing o = { list, whole ? 2 : 1, r->call.kind, 0, link_now() };
	struct lease *lease;
	int err = channel_send_leased(peer_of(r->group, r->call.root)->out, &o, &lease);

	if (err < 0)
		return err == -ETIMEDOUT || err == -EAGAIN ? 0 : err;
	tensor_put(r->private[LOAN]);
	r->private[LOAN] = NULL;
	if (r->private[LEASE])
		lease_put(r->private[LEASE]);
	r->private[LEASE] = lease;
	local_ring(r->group->state, r->call.root);
	return 1;
}

/* The same as the next function's. */
static int send_next(tensor_request *r)
{
	bool whole = is_whole(r);
	int64_t begin = piece_begin(r), left = request_bytes(r) - r->at;
	int res;

	if (!r->private[LOAN]) {
		tensor_scope {
			tensor *loan = tensor_pool_loan(peer_of(r->group, r->call.root)->pool, 0);

			if (loan) {
				r->private[LOAN] = tensor_get(loan);
				fill(r, loan->data, whole);
			}
		}
		if (!r->private[LOAN])
			return thread()->error.code == ETIMEDOUT ? 0 : -thread()->error.code;
	}
	res = send_piece(r, whole);
	if (res > 0) {
		r->at += whole ? left : left < PIECE - begin ? left : PIECE - begin;
		r->phase |= BEGUN;
	}
	return res;
}

/* 1: ended, 0: it waits for the peer, -errno with the error set. */
static int send_step(tensor_request *r)
{
	struct local_peer *p = peer_of(r->group, r->call.root);
	int res = 1;

	if (!p->out)
		res = connect_peer(r->group, r->call.root);
	while (res > 0 && (!(r->phase & BEGUN) || r->at < request_bytes(r)))
		res = send_next(r);
	if (res <= 0)
		return res;
	/* Until the last buffer was received, the end of this rank would take it back. */
	if (is_whole(r) ? !lease_over(r->private[LEASE]) : lease_can_recall(r->private[LEASE]))
		return 0;
	lease_put(r->private[LEASE]);
	r->private[LEASE] = NULL;
	return 1;
}

/* ---- receiving ---- */

static int begin_message(tensor_request *r, const tensor *first, struct head *head)
{
	struct group_call mine = r->call;

	if (first->numel * (int64_t)itemsize(first) != PIECE || !first->contiguous)
		return tensor_fail(EPROTO, "rank %d sent no message", r->call.root);
	memcpy(head, first->data, sizeof(*head));
	if (head->bytes < 0)
		return tensor_fail(EPROTO, "rank %d sent no message", r->call.root);
	mine.kind = head->call.kind;
	mine.root = head->call.root;
	if (group_calls_match(&mine, &head->call)) {
		if (head->bytes != request_bytes(r))
			return tensor_fail(EPROTO, "rank %d sent no message", r->call.root);
	} else {
		head->call.root = r->group->rank;
		r->phase |= WRONG;
		group_calls_differ(r->group->rank, &r->call, r->call.root, &head->call);
		snprintf(r->text, sizeof(r->text), "%s", thread()->error.text);
	}
	r->phase |= BEGUN;
	r->step = (uint64_t)head->bytes; /* the bytes of the sender's tensor */
	return 0;
}

static int take(tensor_request *r, tensor **t, int n)
{
	int64_t begin = 0, left, count;
	struct head head = { .whole = 0 };

	if (!(r->phase & BEGUN)) {
		int err = begin_message(r, t[0], &head);

		if (err < 0)
			return err;
		begin = HEAD;
	}
	left = (int64_t)r->step - r->at;
	count = head.whole ? left : left < PIECE - begin ? left : PIECE - begin;
	if (head.whole &&
	    (n != 2 || t[1]->numel * (int64_t)itemsize(t[1]) != left || !t[1]->contiguous))
		return tensor_fail(EPROTO, "rank %d sent another tensor", r->call.root);
	if (!(r->phase & WRONG))
		memcpy((char *)r->out + r->at, head.whole ? t[1]->data : (char *)t[0]->data + begin,
		       (size_t)count);
	r->at += count;
	return 0;
}

static int recv_next(tensor_request *r)
{
	struct local_peer *p = peer_of(r->group, r->call.root);
	int err = 0, n = 0;

	tensor_scope {
		tensor *t[2] = { NULL, NULL };

		n = tensor_recv_many(p->in, t, 2, NULL, 0);
		if (n > 0)
			err = take(r, t, n);
	}
	if (n > 0)
		local_ring(r->group->state, r->call.root);
	if (n < 0)
		return n == -ETIMEDOUT || n == -EAGAIN ? 0 : n;
	return err < 0 ? err : 1;
}

static int recv_step(tensor_request *r)
{
	struct local_peer *p = peer_of(r->group, r->call.root);
	int res = 1;

	if (!p->in) {
		res = accept_all(r->group);
		if (res < 0)
			return res;
		res = p->in ? 1 : 0;
	}
	while (res > 0 && (!(r->phase & BEGUN) || r->at < (int64_t)r->step))
		res = recv_next(r);
	if (res > 0 && r->phase & WRONG)
		return tensor_fail(EINVAL, "%s", r->text);
	return res;
}

/* ---- both ---- */

static void drop(tensor_request *r)
{
	tensor_put(r->private[LOAN]);
	if (r->private[LEASE])
		lease_put(r->private[LEASE]);
	r->private[LOAN] = r->private[LEASE] = NULL;
}

int message_step(tensor_request *r)
{
	struct local *l = r->group->state;
	int rank = r->call.root;
	bool gone = atomic_load(&l->page->ranks[rank].state) != LOCAL_ALIVE ||
		    local_is_dead(l, rank);
	int res = r->call.kind == GROUP_SEND ? send_step(r) : recv_step(r);

	/* Messages that the peer sent before its end have been looked for. */
	if (res == -EPIPE || res == -ECONNRESET || (!res && gone))
		res = local_gone(r->group, rank);
	if (res < 0)
		drop(r);
	return res;
}
