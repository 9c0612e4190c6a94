// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Collectives, in pieces. Reductions do not use those of MPI: each rank gets the parts of all that it is to reduce
 * (MPI_Ialltoall), reduces them in the order of the ranks by the library's kernels, and the results are gathered. That moves
 * as many bytes as a ring, serves every dtype, rounds f16 and bf16 once, gives the same bits on all ranks, and those of the
 * engine "local".
 */
#include "group/mpi/mpi.h"

#include <stdlib.h>

#define REDUCED	 (INT64_C(4) << 20)  /* bytes of a piece that ranks reduce together ... */
#define PER_RANK (INT64_C(16) << 10) /* ... but at least this for each of them */
#define LINE	 64

static bool is_root(const tensor_request *r)
{
	return r->call.root == r->group->rank;
}

static int64_t item_of(const tensor_request *r)
{
	return (int64_t)tensor_itemsize((enum tensor_dtype)r->call.dtype);
}

/* Element `at`, NULL where this rank has no tensor. */
static const char *in_at(const tensor_request *r, int64_t at)
{
	return r->in ? (const char *)r->in + at * item_of(r) : NULL;
}

static char *out_at(const tensor_request *r, int64_t at)
{
	return r->out ? (char *)r->out + at * item_of(r) : NULL;
}

static bool is_reduced_in_shares(const tensor_request *r)
{
	return r->call.kind == GROUP_ALL_REDUCE || r->call.kind == GROUP_REDUCE;
}

static int reduce(tensor_request *r, void *to, const char *parts, int64_t pitch, int64_t n)
{
	tensor_group *g = r->group;
	int err = group_reduce(to, parts, pitch, g->size, n, (enum tensor_dtype)r->call.dtype,
			       (enum tensor_group_op)r->call.op);

	return err < 0 ? group_fail_here(g) : 0;
}

/* ---- operands in records ---- */

static const char *record_of(const tensor_request *r, int rank, int part)
{
	return mpi_of(r->group)->records[rank].payload + part * r->n * item_of(r);
}

static void take(tensor_request *r, int to, int rank, int part)
{
	memcpy(out_at(r, to * r->n), record_of(r, rank, part), (size_t)(r->n * item_of(r)));
}

static int take_inline(tensor_request *r)
{
	int size = r->group->size, rank = r->group->rank, err = 0;

	if (!r->out || !r->n)
		return 1;
	switch (r->call.kind) {
	case GROUP_BROADCAST:
		take(r, 0, r->call.root, 0);
		break;
	case GROUP_SCATTER:
		take(r, 0, r->call.root, rank);
		break;
	case GROUP_ALL_REDUCE:
	case GROUP_REDUCE:
		err = reduce(r, r->out, record_of(r, 0, 0), RECORD, r->n);
		break;
	case GROUP_REDUCE_SCATTER:
		err = reduce(r, r->out, record_of(r, 0, rank), RECORD, r->n);
		break;
	case GROUP_ALL_GATHER:
	case GROUP_GATHER:
		for (int i = 0; i < size; i++)
			take(r, i, i, 0);
		break;
	default:
		for (int i = 0; i < size; i++)
			take(r, i, i, rank);
	}
	return err < 0 ? err : 1;
}

/* ---- scratch memory and types ---- */

/* Elements of the part of a rank in a piece that ranks reduce together. */
static int64_t share_of(const tensor_request *r)
{
	int64_t line = LINE / item_of(r), size = r->group->size;

	return ((mpi_of(r->group)->piece + size - 1) / size + line - 1) / line * line;
}

static int need_scratch(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	int64_t n = is_reduced_in_shares(r) ? share_of(r) : m->piece;
	size_t bytes = (size_t)((r->group->size + 1) * n * item_of(r));

	if (m->scratch_bytes >= bytes)
		return 0;
	free(m->scratch);
	m->scratch_bytes = 0;
	m->scratch = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
	if (!m->scratch)
		return group_fail(r->group, r->group->rank, ENOMEM, "no memory");
	m->scratch_bytes = bytes;
	return 0;
}

static void free_type(struct mpi *m)
{
	if (m->type != MPI_DATATYPE_NULL)
		MPI_Type_free(&m->type);
}

/* A part of m->piece elements, of which the next one begins r->n elements later. */
static int make_type(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	MPI_Datatype bytes;
	int err = MPI_Type_contiguous((int)(m->piece * item_of(r)), MPI_BYTE, &bytes);

	if (err == MPI_SUCCESS) {
		err = MPI_Type_create_resized(bytes, 0, (MPI_Aint)(r->n * item_of(r)), &m->type);
		MPI_Type_free(&bytes);
	}
	if (err == MPI_SUCCESS)
		err = MPI_Type_commit(&m->type);
	return mpi_failed(r->group, err, "MPI_Type_create_resized");
}

/* ---- pieces ---- */

static int64_t most_elements(const tensor_request *r)
{
	int64_t size = r->group->size,
		reduced = REDUCED > size * PER_RANK ? REDUCED : size * PER_RANK;

	if (is_reduced_in_shares(r))
		return reduced / item_of(r);
	if (r->call.kind == GROUP_REDUCE_SCATTER)
		return reduced / size / item_of(r);
	return PIECE / item_of(r);
}

/* The bytes of each rank's share of the piece, and where they begin. */
static void count_shares(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	int64_t share = share_of(r);

	for (int i = 0; i < r->group->size; i++) {
		int64_t begin = i * share < m->piece ? i * share : m->piece;
		int64_t end = begin + share < m->piece ? begin + share : m->piece;

		m->places[i] = (int)(begin * item_of(r));
		m->counts[i] = (int)((end - begin) * item_of(r));
	}
}

/* Each rank gets the same share of all ranks' pieces. */
static int begin_shares(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	int size = r->group->size;
	int *counts = m->counts + size, *places = m->places + size;

	count_shares(r);
	for (int i = 0; i < size; i++) {
		counts[i] = m->counts[r->group->rank];
		places[i] = i * m->counts[r->group->rank];
	}
	m->phase = PARTS;
	return mpi_failed(r->group,
			  MPI_Ialltoallv(in_at(r, r->at), m->counts, m->places, MPI_BYTE,
					 m->scratch, counts, places, MPI_BYTE, m->comm, m->pending),
			  "MPI_Ialltoallv");
}

/*
 * all_gather among a few ranks: each sends its part to all others. The non-blocking collective takes twice the time of the
 * blocking one in Open MPI 4.1, and both three times this in MPICH 4.0.
 */
static int send_parts(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	int size = r->group->size, rank = r->group->rank, bytes = (int)(m->piece * item_of(r));
	int err = MPI_SUCCESS, k = 0;

	m->n_pending = 2 * (size - 1);
	for (int i = 0; i < m->n_pending; i++)
		m->pending[i] = MPI_REQUEST_NULL;
	for (int i = 0; i < size && err == MPI_SUCCESS; i++)
		if (i != rank)
			err = MPI_Irecv(out_at(r, i * r->n + r->at), bytes, MPI_BYTE, i, TAG_PART,
					m->comm, &m->pending[k++]);
	for (int i = 0; i < size && err == MPI_SUCCESS; i++)
		if (i != rank)
			err = MPI_Isend(in_at(r, r->at), bytes, MPI_BYTE, i, TAG_PART, m->comm,
					&m->pending[k++]);
	memcpy(out_at(r, rank * r->n + r->at), in_at(r, r->at), (size_t)bytes);
	return err;
}

static int begin_copy(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	const char *in = in_at(r, r->at);
	char *out = out_at(r, r->at);
	int root = r->call.root, bytes = (int)(m->piece * item_of(r));

	m->phase = COPY;
	switch (r->call.kind) {
	case GROUP_BROADCAST:
		return MPI_Ibcast(is_root(r) ? (void *)in : out, bytes, MPI_BYTE, root, m->comm,
				  m->pending);
	case GROUP_ALL_GATHER:
		if (r->group->size <= RECORDS_MAX)
			return send_parts(r);
		return MPI_Iallgather(in, bytes, MPI_BYTE, out, 1, m->type, m->comm, m->pending);
	case GROUP_GATHER:
		return MPI_Igather(in, bytes, MPI_BYTE, out, 1, m->type, root, m->comm, m->pending);
	case GROUP_SCATTER:
		return MPI_Iscatter(in, 1, m->type, out, bytes, MPI_BYTE, root, m->comm,
				    m->pending);
	case GROUP_REDUCE_SCATTER:
		m->phase = PARTS;
		return MPI_Ialltoall(in, 1, m->type, m->scratch, bytes, MPI_BYTE, m->comm,
				     m->pending);
	default:
		return MPI_Ialltoall(in, 1, m->type, out, 1, m->type, m->comm, m->pending);
	}
}

static int begin_piece(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	int64_t most = most_elements(r), left = r->n - r->at;
	int err = 0;

	m->piece = left < most ? left : most;
	m->n_pending = 1;
	m->pending[0] = MPI_REQUEST_NULL;
	if (is_reduced_in_shares(r) || r->call.kind == GROUP_REDUCE_SCATTER)
		err = need_scratch(r);
	if (!err && is_reduced_in_shares(r))
		return begin_shares(r);
	if (!err && r->call.kind != GROUP_BROADCAST)
		err = make_type(r);
	return err ? err : mpi_failed(r->group, begin_copy(r), "a collective");
}

static int end_piece(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);

	free_type(m);
	r->at += m->piece;
	return r->at < r->n ? begin_piece(r) : 1;
}

/* The parts of all ranks are in scratch memory; their reduction follows there. */
static int reduce_parts(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	int size = r->group->size, mine = m->counts[r->group->rank], err;
	char *to = m->scratch + (int64_t)size * mine;
	char *out = out_at(r, r->at);

	if (r->call.kind == GROUP_REDUCE_SCATTER) {
		err = reduce(r, out, m->scratch, m->piece * item_of(r), m->piece);
		return err < 0 ? err : end_piece(r);
	}
	if (r->call.kind == GROUP_ALL_REDUCE)
		to = out + m->places[r->group->rank];
	err = mine ? reduce(r, to, m->scratch, mine, mine / item_of(r)) : 0;
	if (err < 0)
		return err;
	m->phase = SHARES;
	err = r->call.kind == GROUP_REDUCE ?
		      MPI_Igatherv(to, mine, MPI_BYTE, out, m->counts, m->places, MPI_BYTE,
				   r->call.root, m->comm, m->pending) :
		      MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, m->counts, m->places,
				      MPI_BYTE, m->comm, m->pending);
	return mpi_failed(r->group, err, "MPI_Iallgatherv");
}

/* ---- steps ---- */

int collective_start(tensor_request *r)
{
	mpi_of(r->group)->current = r;
	return check_begin(r->group, r, SAYS_CALL);
}

int collective_test(tensor_group *g)
{
	struct mpi *m = mpi_of(g);
	int done = 0, err;

	err = mpi_failed(g, MPI_Testall(m->n_pending, m->pending, &done, MPI_STATUSES_IGNORE),
			 "MPI_Testall");
	return err ? err : done;
}

/* The phase is over. 1: the operation has ended, 0: the next phase has begun, -errno with the error set. */
static int next_phase(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	int res;

	switch (m->phase) {
	case CHECK:
		res = check_end(r);
		if (res <= 0)
			return res;
		return check_is_inline(r) ? take_inline(r) : begin_piece(r);
	case CALLS:
		return check_compare(r);
	case PARTS:
		return reduce_parts(r);
	default:
		return end_piece(r);
	}
}

int collective_step(tensor_request *r)
{
	struct mpi *m = mpi_of(r->group);
	int res;

	do {
		res = collective_test(r->group);
		if (res <= 0)
			return res;
		res = next_phase(r);
	} while (!res);
	m->phase = IDLE;
	m->current = NULL;
	return res;
}

bool collective_end(tensor_group *g)
{
	struct mpi *m = mpi_of(g);
	bool ended = m->phase == IDLE || mpi_abandon(m->pending, m->n_pending);

	if (!ended && m->current)
		mpi_keep_tensors(m->current);
	m->current = NULL;
	return ended;
}
