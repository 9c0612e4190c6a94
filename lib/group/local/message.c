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
#include <tensor/channel.h>

#define PIECE  (256 << 10) /* bytes of a lent buffer */
#define PIECES 4

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

static struct local_peer *peer_of(const tensor_request *r)
{
	return local_peer_of(r->group, LOCAL_MESSAGES, r->call.root);
}

/* ---- sending ---- */

static bool is_whole(const tensor_request *r)
{
	const struct tensor_buffer *b = r->in_packed ? NULL :
						       tensor_storage_buffer(r->in_tensor->storage);

	return b && buffer_is_sendable(b) && request_bytes(r) > PIECE / 4;
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
	int err = channel_send_leased(peer_of(r)->out, &o, &lease);

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
			tensor *loan = tensor_pool_loan(peer_of(r)->pool, 0);

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
	struct local_peer *p = peer_of(r);
	const int64_t piece = PIECE;
	int res;

	if (!p->pool)
		p->pool = tensor_pool_open((tensor_ints){ &piece, 1 },
					   TENSOR_POOL_OPTIONS(.n = PIECES, .dtype = TENSOR_U8));
	if (!p->pool)
		return -thread()->error.code;
	res = local_connect(r->group, LOCAL_MESSAGES, r->call.root);
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
	/* Its send lasts until this rank has copied, but may have failed, and its program changed the tensor. */
	return head.whole && local_has_given_up(r->group, r->call.root) ?
		       local_gone(r->group, r->call.root) :
		       0;
}

static int recv_next(tensor_request *r)
{
	struct local_peer *p = peer_of(r);
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
	int res = local_accept(r->group, LOCAL_MESSAGES, r->call.root);

	while (res > 0 && (!(r->phase & BEGUN) || r->at < (int64_t)r->step))
		res = recv_next(r);
	if (res > 0 && r->phase & WRONG)
		return tensor_fail(EINVAL, "%s", r->text);
	return res;
}

/* ---- both ---- */

void message_drop(tensor_request *r)
{
	if (!request_is_message(r))
		return;
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
	return res;
}
