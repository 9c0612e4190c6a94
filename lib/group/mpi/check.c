// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The comparison of the calls of all ranks before any data is sent. Up to RECORDS_MAX ranks send each other a record with the hash of
 * the call, and elements if there are few. More ranks reduce the maximum of the hash and of its complement: all have called
 * the same if the two are complements again. A rank that closes the group, or leaves it after an error, takes part in one
 * more exchange and says so.
 */
#include "group/mpi/mpi.h"

#include <stdio.h>
#include <stdlib.h>

/* Above all hashes of calls, so that the maximum shows them. */
static uint64_t hash_of_word(int says)
{
	return UINT64_MAX - (uint64_t)says;
}

static uint64_t mixed(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint64_t hash_of_call(const struct group_call *c)
{
	uint64_t hash = mixed(mixed(1, (uint64_t)c->kind << 32 | (uint32_t)c->op),
			      (uint64_t)c->root << 32 | (uint32_t)c->dtype);

	hash = mixed(hash, (uint64_t)c->device << 32 | (uint32_t)c->ndim);
	for (int i = 0; i < c->ndim; i++)
		hash = mixed(hash, (uint64_t)c->sizes[i]);
	return hash >> 1;
}

static int64_t bytes_of(const tensor_request *r)
{
	return request_bytes(r) * (request_has_parts(r) ? r->group->size : 1);
}

bool check_is_inline(const tensor_request *r)
{
	if (r->call.kind == GROUP_BARRIER || !r->n)
		return true;
	return r->group->size <= RECORDS_MAX && bytes_of(r) <= INLINE;
}

/* ---- records ---- */

static int send_records(tensor_group *g, const tensor_request *r, uint64_t hash)
{
	struct mpi *m = mpi_of(g);
	struct record *mine = &m->records[g->rank];
	int err = 0;

	mine->hash = hash;
	if (r && r->in && check_is_inline(r))
		memcpy(mine->payload, r->in, (size_t)bytes_of(r));
	m->n_pending = 2 * (g->size - 1);
	for (int i = 0; i < m->n_pending; i++)
		m->pending[i] = MPI_REQUEST_NULL;
	/* Receives first, in the order of the ranks. */
	for (int i = 0, k = 0; !err && i < g->size; i++)
		if (i != g->rank)
			err = MPI_Irecv(&m->records[i], RECORD, MPI_BYTE, i, TAG_CHECK, m->comm,
					&m->pending[k++]);
	for (int i = 0, k = g->size - 1; !err && i < g->size; i++)
		if (i != g->rank)
			err = MPI_Isend(mine, RECORD, MPI_BYTE, i, TAG_CHECK, m->comm,
					&m->pending[k++]);
	return mpi_failed(g, err, "MPI_Isend");
}

static int reduce_hashes(tensor_group *g, uint64_t hash)
{
	struct mpi *m = mpi_of(g);

	m->said[0] = hash;
	m->said[1] = ~hash;
	m->n_pending = 1;
	return mpi_failed(
		g, MPI_Iallreduce(m->said, m->most, 2, MPI_UINT64_T, MPI_MAX, m->comm, m->pending),
		"MPI_Iallreduce");
}

int check_begin(tensor_group *g, const tensor_request *r, int says)
{
	uint64_t hash = says == SAYS_CALL ? hash_of_call(&r->call) : hash_of_word(says);

	mpi_of(g)->phase = CHECK;
	return g->size <= RECORDS_MAX ? send_records(g, r, hash) : reduce_hashes(g, hash);
}

void check_leave(tensor_group *g)
{
	struct mpi *m = mpi_of(g);
	const uint64_t hash = hash_of_word(SAYS_GAVE_UP);
	struct record *mine = &m->records[RECORDS_MAX];
	MPI_Request request;

	m->is_stuck = true;
	if (g->size > RECORDS_MAX) {
		m->said[2] = hash;
		m->said[3] = ~hash;
		MPI_Iallreduce(m->said + 2, m->most + 2, 2, MPI_UINT64_T, MPI_MAX, m->comm,
			       &request);
		return;
	}
	mine->hash = hash;
	for (int i = 0; i < g->size; i++)
		if (i != g->rank && MPI_Isend(mine, RECORD, MPI_BYTE, i, TAG_CHECK, m->comm,
					      &request) == MPI_SUCCESS)
			MPI_Request_free(&request);
}

static int left(tensor_group *g, int rank, uint64_t hash)
{
	char name[32] = "a rank";

	if (rank >= 0)
		snprintf(name, sizeof(name), "rank %d", rank);
	mpi_of(g)->is_over = true;
	return group_fail(g, rank, EPIPE,
			  hash == hash_of_word(SAYS_CLOSED) ?
				  "%s has closed the group" :
				  "%s has left the group after an error",
			  name);
}

static bool is_word(uint64_t hash)
{
	return hash >= hash_of_word(SAYS_GAVE_UP);
}

static int exchange_calls(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	const int bytes = sizeof(r->call);

	m->calls = malloc((size_t)r->group->size * sizeof(*m->calls));
	if (!m->calls)
		return group_fail(r->group, r->group->rank, ENOMEM, "no memory");
	m->phase = CALLS;
	m->n_pending = 1;
	return mpi_failed(r->group,
			  MPI_Iallgather(&r->call, bytes, MPI_BYTE, m->calls, bytes, MPI_BYTE,
					 m->comm, m->pending),
			  "MPI_Iallgather");
}

int check_end(tensor_request *r)
{
	tensor_group *g = r->group;
	struct mpi *m = mpi_of(g);
	bool same = true;

	if (g->size > RECORDS_MAX) {
		if (is_word(m->most[0]))
			return left(g, -1, m->most[0]);
		same = m->most[0] == ~m->most[1];
	}
	for (int i = 0; g->size <= RECORDS_MAX && i < g->size; i++) {
		if (is_word(m->records[i].hash))
			return left(g, i, m->records[i].hash);
		same &= m->records[i].hash == m->records[0].hash;
	}
	return same ? 1 : exchange_calls(r);
}

int check_compare(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	int other = 1, err;

	while (other < r->group->size - 1 && group_calls_match(&m->calls[0], &m->calls[other]))
		other++;
	err = group_calls_differ(0, &m->calls[0], other, &m->calls[other]);
	free(m->calls);
	m->calls = NULL;
	m->phase = IDLE;
	return err;
}

void check_missing(tensor_group *g, char *list, size_t size)
{
	struct mpi *m = mpi_of(g);

	*list = 0;
	for (int i = 0, k = 0; m->phase == CHECK && g->size <= RECORDS_MAX && i < g->size; i++) {
		int done = 0;

		if (i == g->rank)
			continue;
		MPI_Test(&m->pending[k++], &done, MPI_STATUS_IGNORE);
		if (!done)
			group_list_rank(list, size, i);
	}
}
