/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Leases: the sender of a message learns when the receiver has released its last tensor on the buffers of the message.
 *
 * Each channel has a table of words in shared memory for the leases that its sender gave, made by the sender. A word
 * has a generation, which the sender counts in private memory, and a state. The sender stores SENT. The receiver
 * changes it to TAKEN when the message is complete, and to RELEASED at the end or if the message fails; the sender changes SENT to RECALLED to
 * take a message back that was not received. Each change of a state is one compare-and-swap. The receiver can write all
 * of the table: it can end its own leases early or never, and no other.
 *
 * The receiver also gets one end of a socket pair, and keeps it as long as it has leases or the channel. A byte on it
 * wakes a sender that waits; its end, which the kernel makes when the receiver dies, ends all leases of the table.
 */
#ifndef TENSOR_LEASE_H
#define TENSOR_LEASE_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEASE_WORDS 16384u /* messages of a channel that have a lease at the same time */

enum lease_state { LEASE_SENT, LEASE_TAKEN, LEASE_RELEASED, LEASE_RECALLED };

static inline uint64_t lease_word(uint64_t generation, enum lease_state state)
{
	return generation << 2 | state;
}

struct lease_page {
	_Atomic uint32_t waiting; /* 1: the next release writes to the socket */
	_Atomic uint32_t closed;  /* 1: the receiver takes no more messages */
	char pad[56];
	_Atomic uint64_t words[LEASE_WORDS];
};

_Static_assert(sizeof(struct lease_page) == 64 + 8 * LEASE_WORDS,
	       "the table is an ABI between processes");

struct tensor_storage;

/* ---- sender (lease_out.c) ---- */

struct lease_table;

/* A lease that was given; its owners are the loans of the message. */
struct lease {
	struct lease_table *table;
	uint64_t generation;
	uint32_t index;
	uint32_t refs; /* protected by the lock of lease_out.c */
};

/*
 * A new table with one reference, and the two descriptors for the receiver, which the caller sends and closes. NULL
 * with the error set.
 */
struct lease_table *lease_table_new(int fds[2]);
void lease_table_get(struct lease_table *t);
void lease_table_put(struct lease_table *t);
/* Asks the receiver to make lease_table_fd() readable at the next release. Call lease_over() afterwards. */
void lease_table_arm(struct lease_table *t);
int lease_table_fd(const struct lease_table *t);
/* Reads what made the descriptor readable; ended: POLLHUP, which comes before the bytes are read. */
void lease_table_drain(struct lease_table *t, bool ended);

/* A lease in the state SENT with one reference; NULL with the error set. */
struct lease *lease_new(struct lease_table *t);
void lease_get(struct lease *l);
/* The last reference frees the word: the lease is over, or its message was not sent. */
void lease_put(struct lease *l);
/* Whether the receiver has no tensor of the message, and will get none. */
bool lease_over(const struct lease *l);
/* Whether the receiver has had it, and has released it. */
bool lease_released(const struct lease *l);
/* Whether the sender has taken the message back. */
bool lease_recalled(const struct lease *l);
/* Whether the message was not received yet. */
bool lease_can_recall(const struct lease *l);
/* Takes the message back. True: the receiver has not received it and will not. */
bool lease_recall(const struct lease *l);

/* ---- sender, waiting (lease_watch.c) ---- */

/* An eventfd, and the tables for which a thread waits, each once, with a reference. */
struct lease_watch {
	struct lease_table **tables; /* from 1 on */
	struct pollfd *fds;	     /* 0: of the eventfd */
	int n;			     /* of fds */
};

/* For at most so many leases. 0 or -ENOMEM; either way lease_watch_end() frees it. */
int lease_watch_begin(struct lease_watch *w, size_t most, int event);
void lease_watch_add(struct lease_watch *w, struct lease_table *t);
/* Wakes the groups that wait, whose tables a pool may have read from; set by fanout.c. */
extern void (*lease_watch_wake)(void);
/* After poll(): true if another thread may have waited for what was read from a table. */
bool lease_watch_end(struct lease_watch *w);

/* ---- receiver (lease_in.c) ---- */

struct lease_source;

/*
 * The state of a channel's receiver; consumes both descriptors only if it succeeds. 0; -EBADMSG: they are not what they
 * should be; -ENOMEM.
 */
int lease_source_open(int memory, int socket, struct lease_source **s);
/* The channel is closed: no message is taken any more. */
void lease_source_close(struct lease_source *s);

/* The lease of one message; its owners are the message until it is delivered, and storages. */
struct taken;

/* NULL with the error set; the lease is over then, if there is one. */
struct taken *taken_new(struct lease_source *s, uint64_t index, uint64_t generation);
/* The message is complete. False: the sender has taken it back. */
bool taken_take(struct taken *t);
/* The last reference ends the lease, whether the message was taken or failed. */
void taken_put(struct taken *t);
/* A storage on the memory of base whose release ends its part of the lease. Consumes base. NULL with the error set. */
struct tensor_storage *taken_storage(struct taken *t, struct tensor_storage *base);
/* The storage below one of taken_storage(), NULL for others. */
struct tensor_storage *taken_base(const struct tensor_storage *s);

#endif
