/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The engine "mpi". An operation begins with an exchange of what each rank calls (check.c), so that no data is sent
 * between ranks that differ; small operands travel with it. Then MPI's collectives carry the data (collective.c). Sends
 * and receives are messages on the same communicator (message.c). plugin.c has the table, and begins and ends MPI.
 *
 * The order of the files, lowest first: common.c; check.c and message.c; collective.c; plugin.c.
 */
#ifndef TENSOR_GROUP_MPI_H
#define TENSOR_GROUP_MPI_H

#include "group/engine/engine.h"

#include <limits.h>
#include <mpi.h>
#include <stdatomic.h>

/* Up to this many ranks send their records to each other; more of them reduce hashes, in a logarithmic number of steps. */
#define RECORDS_MAX 8
#define RECORD	    64
#define INLINE	    (RECORD - 8)

/* Bytes of the parts of one rank in one collective: counts of MPI are int, and its implementations allocate as much. */
#define PIECE (INT64_C(32) << 20)

enum { TAG_CHECK, TAG_HEAD, TAG_DATA, TAG_PART };

/* The record of a rank: the hash of its call, or that it calls nothing any more. */
enum { SAYS_CALL, SAYS_CLOSED, SAYS_GAVE_UP };

struct record {
	uint64_t hash;
	char payload[INLINE];
};

_Static_assert(sizeof(struct record) == RECORD, "records lie side by side");

/* A send or receive that has begun. */
struct message {
	tensor_request *request;
	MPI_Request pending[2];
	struct message *next;
	char *first;   /* the head, and the elements if they are few */
	char *dropped; /* where elements go that the receiver does not want */
	int64_t bytes; /* of the sender's tensor; -1: not known yet */
	char why[TENSOR_ERROR_TEXT];
};

enum phase {
	IDLE,
	CHECK,	/* records or hashes */
	CALLS,	/* the ranks differ: what each of them calls */
	COPY,	/* a piece, after which nothing is left to do */
	PARTS,	/* the parts of all ranks that this one reduces */
	SHARES, /* the parts that the ranks have reduced */
};

struct mpi {
	tensor_group *group;
	MPI_Comm comm;
	struct mpi *next; /* of the open groups */
	bool is_over; /* this rank or another one has said that it calls nothing any more, or MPI failed */
	bool is_stuck; /* MPI may use the memory of this struct for ever: it is not freed */
	int64_t moved; /* when a message last went on */
	int64_t since; /* when the wait began ... */
	tensor_request *asleep; /* ... for this one */
	bool was_moving;	/* whose data moved */

	/* The collective, one at a time. */
	tensor_request *current;
	enum phase phase;
	MPI_Request pending[2 * RECORDS_MAX];
	int n_pending;
	struct record *records; /* of each rank, up to RECORDS_MAX ranks; and one to send */
	uint64_t said[4],
		most[4]; /* of more ranks: a hash and its complement; the second pair is that of check_leave() */
	struct group_call *calls;
	char *scratch; /* parts of all ranks, and one for their reduction */
	size_t scratch_bytes;
	int *counts, *places; /* of each rank, elements or bytes */
	MPI_Datatype type;    /* of a part, or MPI_DATATYPE_NULL */
	int64_t piece;	      /* elements */

	struct message *messages;
};

static inline struct mpi *mpi_of(const tensor_group *g)
{
	return g->state;
}

int64_t mpi_now(void);
/* Zero: the result of a function of MPI is no error. Otherwise ends the group and returns -EIO with the error set. */
int mpi_failed(tensor_group *g, int result, const char *function);
/* The requests may use the tensors of r after its end: they are never freed. */
void mpi_keep_tensors(tensor_request *r);
/* Ends requests of an operation that is given up. True if MPI does not use their memory any more. */
bool mpi_abandon(MPI_Request *requests, int n);

/* ---- check.c ---- */

bool check_is_inline(const tensor_request *r);
/* Begins the exchange. r: NULL for a rank that says something else than a call. 0, or -errno with the error set. */
int check_begin(tensor_group *g, const tensor_request *r, int says);
/* Says that this rank has left, without an answer. */
void check_leave(tensor_group *g);
/* All have answered. 1: they agree; 0: they differ, and exchange their calls; -errno with the error set. */
int check_end(tensor_request *r);
/* The calls are there: sets the error of those that differ; returns -EINVAL. */
int check_compare(tensor_request *r);
/* The ranks that have not answered: "1, 3" or "". */
void check_missing(tensor_group *g, char *list, size_t size);

/* ---- message.c ---- */

int message_start(tensor_request *r);
int message_step(tensor_request *r);
bool message_moves(const tensor_request *r);
/* Gives it up if it has not ended. */
void message_drop(tensor_request *r);
/* Gives up all of them; sets is_stuck if MPI may still use the memory of one. */
void messages_end(tensor_group *g);

/* ---- collective.c ---- */

int collective_start(tensor_request *r);
int collective_step(tensor_request *r);
/* Gives up the one that runs. True if MPI does not use its memory any more. */
bool collective_end(tensor_group *g);
/* Tests the requests of the phase: 1, 0, or -errno with the error set. */
int collective_test(tensor_group *g);

#endif
