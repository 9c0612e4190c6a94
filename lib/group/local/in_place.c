// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Large collectives on tensors in buffers. Each rank sends its tensor to those that read it, by a channel, which passes the
 * descriptor of a buffer once; they read from the owner's memory. The step ends when all have read: until then the owner's
 * call, which keeps the tensor, has not returned.
 *
 * In an all_reduce a rank reduces its share of the elements of all ranks into its own result, in a second step it reads the
 * other shares from the results of the others, and a third one ends it. Of a tensor in place each rank reads its share
 * alone before it is written. In a reduce a rank reduces its share into a buffer of the group, its part, from which the root
 * reads it; a rank does not write to another one's tensor, because the call of that rank may have failed meanwhile.
 */
#include "group/local/local.h"

#include "core/scope.h"
#include "sharing/sharing.h"

#include <tensor/channel.h>
#include <tensor/ops.h>
#include <unistd.h>

/* Bytes from which it is faster than the slots (make bench-group). */
#define LEAST (INT64_C(1) << 20)

/* For each rank: sockets, what its channels have, and buffers. */
#define DESCRIPTORS 8

enum { OPENING, READING, ENDING };

static struct local_in_place *state_of(const tensor_request *r)
{
	return &((struct local *)r->group->state)->in_place;
}

static bool is_all_reduce(const tensor_request *r)
{
	return r->call.kind == GROUP_ALL_REDUCE;
}

/* A rank other than the root, which has no result. */
static bool has_part(const tensor_request *r, int rank)
{
	return r->call.kind == GROUP_REDUCE && rank != r->call.root;
}

/* Whether the ranks reduce shares, which are read in a second step. */
static bool is_shared(const tensor_request *r)
{
	return is_all_reduce(r) || r->call.kind == GROUP_REDUCE;
}

static int64_t bytes_of_in(const tensor_request *r)
{
	return request_bytes(r) * (request_has_parts(r) ? r->group->size : 1);
}

bool in_place_is_possible(const tensor_request *r)
{
	return r->call.kind != GROUP_BARRIER && r->group->size > 1 && bytes_of_in(r) >= LEAST;
}

/* Whether other ranks read the memory of this one. */
static bool is_read(const tensor_request *r, int rank)
{
	switch (r->call.kind) {
	case GROUP_BROADCAST:
	case GROUP_SCATTER:
		return rank == r->call.root;
	case GROUP_GATHER:
		return rank != r->call.root;
	default:
		return true;
	}
}

/* Whether it reads the memory of others. */
static bool is_reader(const tensor_request *r, int rank)
{
	switch (r->call.kind) {
	case GROUP_BROADCAST:
	case GROUP_SCATTER:
		return rank != r->call.root;
	case GROUP_GATHER:
		return rank == r->call.root;
	default:
		return true;
	}
}

/* Elements of the share of a rank; shares begin at cache lines. */
static int64_t share_of(const tensor_request *r, int rank, int64_t *begin)
{
	int64_t each = (r->n / r->group->size / LOCAL_LINE + 1) * LOCAL_LINE;

	*begin = rank * each < r->n ? rank * each : r->n;
	return r->n - *begin < each ? r->n - *begin : each;
}

/* ---- what this rank offers ---- */

/* In place without them the group would end, and copies need none. */
static bool has_descriptors(const tensor_group *g)
{
	const struct local *l = g->state;

	return fd_limit_leaves(l->fd, (unsigned)(DESCRIPTORS * g->size));
}

/* Rights, forks and limits can prevent that other processes get a descriptor: it is tried once for each buffer. */
static bool can_send(struct local_in_place *p, const tensor *t)
{
	struct tensor_buffer *b = tensor_storage_buffer(t->storage);
	struct tensor_identity *tried;
	int fd;

	if (!b || b->purgeable || !buffer_is_sendable(b))
		return false;
	tried = &p->tried[b->id.ino % ARRAY_SIZE(p->tried)];
	if (identity_equal(*tried, b->id))
		return true;
	fd = b->provider->export(b, b->rights & (b->readonly ? SHARE_RO : SHARE_RW));
	if (fd < 0)
		return false;
	close(fd);
	*tried = b->id;
	return true;
}

/* The buffer for this rank's part, which the group keeps. */
static bool make_part(const tensor_request *r)
{
	struct local_in_place *p = state_of(r);
	int64_t begin, bytes = share_of(r, r->group->rank, &begin) * dtype_sizes[r->call.dtype];

	if (p->part && p->part->numel >= bytes)
		return true;
	tensor_put(p->part);
	p->part = NULL;
	tensor_scope {
		tensor *t = tensor_empty(TENSOR_INTS(bytes ? bytes : 1),
					 TENSOR_OPTIONS(.dtype = TENSOR_U8, .shareable = true));

		if (t && can_send(p, t))
			p->part = tensor_get(t);
	}
	return p->part;
}

bool in_place_is_offered(const tensor_request *r)
{
	struct local_in_place *p = state_of(r);

	if (!has_descriptors(r->group))
		return false;
	if (!is_read(r, r->group->rank))
		return true;
	if (r->in_packed || !can_send(p, r->in_tensor))
		return false;
	if (has_part(r, r->group->rank))
		return make_part(r);
	return !is_all_reduce(r) || r->out == r->in ||
	       (!r->out_packed && can_send(p, r->out_tensor));
}

/* ---- the tensors of the others ---- */

static void drop(struct local_in_place *p)
{
	for (int i = 0; i < LOCAL_MAX; i++) {
		tensor_put(p->in[i]);
		tensor_put(p->out[i]);
		p->in[i] = p->out[i] = NULL;
	}
}

void in_place_close(struct local_in_place *p)
{
	drop(p);
	tensor_put(p->part);
}

void in_place_begin(tensor_request *r)
{
	struct local_in_place *p = state_of(r);

	p->stage = OPENING;
	memset(p->sent, 0, sizeof(p->sent));
}

static int lost(tensor_request *r, int rank, int err)
{
	return err == -EPIPE || err == -ECONNRESET ? local_gone(r->group, rank) : err;
}

/* 1; 0: the rank takes no message yet; -errno with the error set. */
static int send_to(tensor_request *r, int rank)
{
	bool part = rank == r->call.root && has_part(r, r->group->rank);
	tensor *list[] = { r->in_tensor, part ? state_of(r)->part : r->out_tensor };
	int n = part || (is_all_reduce(r) && r->out != r->in) ? 2 : 1;
	int res = local_connect(r->group, LOCAL_TENSORS, rank);

	if (res <= 0)
		return res;
	res = tensor_send_many(local_peer_of(r->group, LOCAL_TENSORS, rank)->out, list, n,
			       (uint64_t)r->call.kind, 0, 0);
	if (res == -ETIMEDOUT || res == -EAGAIN)
		return 0;
	if (res < 0)
		return lost(r, rank, res);
	state_of(r)->sent[rank] = true;
	local_ring(r->group->state, rank);
	return 1;
}

static bool is_operand(const tensor_request *r, const tensor *t)
{
	return t->contiguous && t->dtype == r->call.dtype &&
	       t->numel * (int64_t)itemsize(t) == bytes_of_in(r);
}

static bool is_part(const tensor_request *r, int rank, const tensor *t)
{
	int64_t begin, bytes = share_of(r, rank, &begin) * dtype_sizes[r->call.dtype];

	return t->contiguous && t->dtype == TENSOR_U8 && t->numel >= bytes;
}

static int take(tensor_request *r, int rank, tensor *const *t, int n)
{
	struct local_in_place *p = state_of(r);
	bool part = r->group->rank == r->call.root && has_part(r, rank);

	if (n < (part ? 2 : 1) || !is_operand(r, t[0]) ||
	    (n > 1 && !(part ? is_part(r, rank, t[1]) : is_operand(r, t[1]))))
		return tensor_fail(EPROTO, "rank %d sent another tensor", rank);
	p->in[rank] = tensor_get(t[0]);
	p->out[rank] = tensor_get(t[n - 1]);
	return 1;
}

static int recv_from(tensor_request *r, int rank)
{
	int res = local_accept(r->group, LOCAL_TENSORS, rank), err = 0;

	if (res <= 0)
		return res;
	tensor_scope {
		tensor *t[2] = { NULL, NULL };

		res = tensor_recv_many(local_peer_of(r->group, LOCAL_TENSORS, rank)->in, t, 2, NULL,
				       0);
		if (res >= 0)
			err = take(r, rank, t, res);
	}
	if (res >= 0)
		return err;
	return res == -ETIMEDOUT || res == -EAGAIN ? 0 : lost(r, rank, res);
}

/* Sends this rank's tensor, and receives those that it reads. 1: done, 0: others are not as far, -errno with the error set. */
static int open_tensors(tensor_request *r)
{
	const struct local_in_place *p = state_of(r);
	int self = r->group->rank, done = 1, res;

	for (int i = 0; i < r->group->size; i++) {
		if (i == self)
			continue;
		if (is_read(r, self) && is_reader(r, i) && !p->sent[i]) {
			res = send_to(r, i);
			if (res < 0)
				return res;
			done &= res;
		}
		if (is_reader(r, self) && is_read(r, i) && !p->in[i]) {
			res = recv_from(r, i);
			if (res < 0)
				return res;
			done &= res;
		}
	}
	return done;
}

/* ---- reading ---- */

static const char *source(const tensor_request *r, int rank, int part)
{
	const void *in = rank == r->group->rank ? r->in : state_of(r)->in[rank]->data;

	return (const char *)in + part * request_bytes(r);
}

static void copy(const tensor_request *r, int to_part, int from, int part)
{
	memcpy((char *)r->out + to_part * request_bytes(r), source(r, from, part),
	       (size_t)request_bytes(r));
}

/* Elements begin to begin + n of a part of all ranks, reduced, to `to`; through a slot of this rank, which is not in use. */
static int reduce(const tensor_request *r, int part, int64_t begin, int64_t n, char *to)
{
	const struct local *l = r->group->state;
	const int size = r->group->size;
	const int64_t item = dtype_sizes[r->call.dtype];
	const int64_t room = (int64_t)(l->slot / (size_t)size) / LOCAL_LINE * LOCAL_LINE;
	char *parts = local_slot(l, r->group->rank, r->step);
	int err = 0;

	for (int64_t at = begin; at < begin + n && !err; at += room / item) {
		int64_t count = begin + n - at < room / item ? begin + n - at : room / item;

		for (int i = 0; i < size; i++)
			memcpy(parts + i * room, source(r, i, part) + at * item,
			       (size_t)(count * item));
		err = group_reduce(to + (at - begin) * item, parts, room, size, count,
				   (enum tensor_dtype)r->call.dtype,
				   (enum tensor_group_op)r->call.op);
	}
	return err;
}

static int reduce_share(const tensor_request *r)
{
	int64_t begin, n = share_of(r, r->group->rank, &begin);
	char *to = has_part(r, r->group->rank) ?
			   state_of(r)->part->data :
			   (char *)r->out + begin * dtype_sizes[r->call.dtype];

	return reduce(r, 0, begin, n, to);
}

static void copy_shares(const tensor_request *r)
{
	const int64_t item = dtype_sizes[r->call.dtype];
	int size = r->group->size;

	for (int k = 1; k < size && !has_part(r, r->group->rank); k++) {
		int i = (r->group->rank + k) % size;
		int64_t begin, n = share_of(r, i, &begin);
		const char *from = state_of(r)->out[i]->data;

		memcpy((char *)r->out + begin * item, from + (has_part(r, i) ? 0 : begin * item),
		       (size_t)(n * item));
	}
}

/* All that this rank reads in the first step. 0, or -errno with the error set. */
static int read_all(const tensor_request *r)
{
	int rank = r->group->rank, size = r->group->size;

	switch (r->call.kind) {
	case GROUP_BROADCAST:
		if (rank != r->call.root)
			copy(r, 0, r->call.root, 0);
		return 0;
	case GROUP_SCATTER:
		copy(r, 0, r->call.root, rank);
		return 0;
	case GROUP_GATHER:
	case GROUP_ALL_GATHER:
	case GROUP_ALL_TO_ALL:
		/* Each rank begins with another one. */
		for (int k = 0; k < size && is_reader(r, rank); k++) {
			int i = (rank + k) % size;

			copy(r, i, i, r->call.kind == GROUP_ALL_TO_ALL ? rank : 0);
		}
		return 0;
	case GROUP_REDUCE_SCATTER:
		return reduce(r, rank, 0, r->n, r->out);
	default:
		return reduce_share(r);
	}
}

/*
 * After this rank has read: a rank whose call has failed, for instance because it was late for its timeout, may have changed
 * its tensor meanwhile. 0, or -errno with the error set.
 */
static int check_owners(const tensor_request *r)
{
	for (int i = 0; i < r->group->size; i++)
		if (state_of(r)->in[i] && local_has_given_up(r->group, i))
			return local_gone(r->group, i);
	return 0;
}

int in_place_step(tensor_request *r)
{
	struct local_in_place *p = state_of(r);
	int res;

	if (p->stage == OPENING) {
		res = open_tensors(r);
		if (res > 0)
			res = read_all(r) < 0 ? -1 : 1;
		if (res < 0)
			return group_fail_here(r->group);
		if (!res)
			return 0;
		res = check_owners(r);
		if (res < 0)
			return res;
		p->stage = READING;
		local_post(r->group, r->step);
	}
	while (local_missing(r->group, r->step) < 0) {
		if (p->stage == ENDING || !is_shared(r)) {
			drop(p);
			return 1;
		}
		copy_shares(r);
		res = check_owners(r);
		if (res < 0)
			return res;
		p->stage = ENDING;
		local_begin_step(r);
		local_post(r->group, r->step);
	}
	return 0;
}
