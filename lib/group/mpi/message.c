// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sends and receives. The first message is a head, which says what the sender's tensor is, with its elements if they are
 * few. The others follow in pieces, from the sender's memory into that of the receiver; if the tensors differ, into memory
 * that is freed.
 */
#include "group/mpi/mpi.h"

#include <stdio.h>
#include <stdlib.h>

struct head {
	struct group_call call;
	int64_t bytes;
};

#define FIRST 4096 /* bytes of the first message at most */
#define FEW   ((int64_t)(FIRST - sizeof(struct head)))

static struct message *message_of(const tensor_request *r)
{
	return r->private[0];
}

static void free_message(struct message *s)
{
	free(s->dropped);
	free(s->first);
	free(s);
}

/* Takes it out of the list of its group. */
static void forget(struct message *s)
{
	struct message **at = &mpi_of(s->request->group)->messages;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	s->request->private[0] = NULL;
}

/* Ends it before MPI has. */
static void give_up(struct message *s)
{
	tensor_request *r = s->request;

	forget(s);
	if (mpi_abandon(s->pending, 2))
		free_message(s);
	else {
		mpi_of(r->group)->is_stuck = true;
		mpi_keep_tensors(r);
	}
}

/* ---- the first message ---- */

static int send_first(tensor_request *r, struct message *s)
{
	struct mpi *m = mpi_of(r->group);
	const struct head head = { r->call, request_bytes(r) };
	int n = (int)sizeof(head);

	s->bytes = head.bytes;
	memcpy(s->first, &head, sizeof(head));
	if (s->bytes && s->bytes <= FEW) {
		memcpy(s->first + n, r->in, (size_t)s->bytes);
		n += (int)s->bytes;
		r->at = s->bytes;
	}
	return mpi_failed(r->group,
			  MPI_Isend(s->first, n, MPI_BYTE, r->call.root, TAG_HEAD, m->comm,
				    &s->pending[0]),
			  "MPI_Isend");
}

static int begin(tensor_request *r, struct message *s)
{
	if (r->call.kind == GROUP_SEND)
		return send_first(r, s);
	return mpi_failed(r->group,
			  MPI_Irecv(s->first, FIRST, MPI_BYTE, r->call.root, TAG_HEAD,
				    mpi_of(r->group)->comm, &s->pending[0]),
			  "MPI_Irecv");
}

int message_start(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	struct message *s = calloc(1, sizeof(*s));
	int err;

	if (s)
		s->first = malloc(FIRST);
	if (!s || !s->first) {
		free(s);
		return tensor_fail(ENOMEM, "no memory");
	}
	s->request = r;
	s->pending[0] = s->pending[1] = MPI_REQUEST_NULL;
	s->bytes = -1;
	s->next = m->messages;
	m->messages = s;
	r->private[0] = s;
	err = begin(r, s);
	if (err < 0)
		give_up(s);
	return err;
}

/* The head of the sender's tensor has come. */
static int compare(tensor_request *r, struct message *s)
{
	struct group_call mine = r->call;
	struct head head;

	memcpy(&head, s->first, sizeof(head));
	s->bytes = head.bytes;
	mine.kind = head.call.kind;
	mine.root = head.call.root;
	if (group_calls_match(&mine, &head.call)) {
		if (s->bytes && s->bytes <= FEW)
			memcpy(r->out, s->first + sizeof(head), (size_t)s->bytes);
	} else {
		group_calls_differ(r->group->rank, &r->call, r->call.root, &head.call);
		snprintf(s->why, sizeof(s->why), "%s", tensor_last_error()->text);
		if (s->bytes > FEW)
			s->dropped = malloc((size_t)(s->bytes < PIECE ? s->bytes : PIECE));
		if (s->bytes > FEW && !s->dropped)
			return group_fail(r->group, r->group->rank, ENOMEM, "no memory");
	}
	if (s->bytes <= FEW)
		r->at = s->bytes;
	return 0;
}

/* ---- the rest ---- */

static int next_piece(tensor_request *r, struct message *s)
{
	struct mpi *m = mpi_of(r->group);
	int64_t left = s->bytes - r->at;
	int n = (int)(left < PIECE ? left : PIECE), err;
	char *to = s->dropped ? s->dropped : (char *)r->out + r->at;

	if (r->call.kind == GROUP_SEND)
		err = MPI_Isend((const char *)r->in + r->at, n, MPI_BYTE, r->call.root, TAG_DATA,
				m->comm, &s->pending[1]);
	else
		err = MPI_Irecv(to, n, MPI_BYTE, r->call.root, TAG_DATA, m->comm, &s->pending[1]);
	r->at += n;
	return mpi_failed(r->group, err, r->call.kind == GROUP_SEND ? "MPI_Isend" : "MPI_Irecv");
}

/* 1: MPI has nothing of it to do. */
static int test(tensor_request *r, struct message *s)
{
	int done = 0;
	int err = mpi_failed(r->group, MPI_Testall(2, s->pending, &done, MPI_STATUSES_IGNORE),
			     "MPI_Testall");

	if (done && s->bytes > FEW)
		mpi_of(r->group)->moved = mpi_now();
	return err ? err : done;
}

/* 1: all of it was sent or received, 0: it goes on, -errno with the error set. */
static int advance(tensor_request *r, struct message *s)
{
	int res;

	for (;;) {
		res = test(r, s);
		if (res <= 0)
			return res;
		if (s->bytes < 0)
			res = compare(r, s);
		if (res >= 0 && r->at >= s->bytes)
			return 1;
		if (res >= 0)
			res = next_piece(r, s);
		if (res < 0)
			return res;
	}
}

int message_step(tensor_request *r)
{
	struct message *s = message_of(r);
	int res = advance(r, s);

	if (res < 0)
		give_up(s);
	if (res <= 0)
		return res;
	forget(s);
	if (*s->why)
		res = tensor_fail(EINVAL, "%s", s->why);
	free_message(s);
	return res;
}

void message_drop(tensor_request *r)
{
	if (message_of(r))
		give_up(message_of(r));
}

/* A sender does not know. */
bool message_moves(const tensor_request *r)
{
	const struct message *s = message_of(r);

	return s && r->call.kind == GROUP_RECV && s->bytes >= 0;
}

void messages_end(tensor_group *g)
{
	while (mpi_of(g)->messages)
		give_up(mpi_of(g)->messages);
}
