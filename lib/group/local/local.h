/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The engine "local": ranks of one machine, which share one segment of memory. join.c makes it and gives every rank a
 * pidfd of each other; page.h is its beginning; wait.c waits for others, local.c carries collectives out step by step,
 * in_place.c those on large tensors in buffers; channel.c makes the channels of these and of message.c, which sends.
 *
 * In a step every rank writes its part to one of its two slots, posts the number of the step, waits until all have
 * posted it, and reads from the slots. The slots alternate: a rank writes to a slot again two steps later, when all have
 * posted the step between them, which they do after they have read.
 */
#ifndef TENSOR_GROUP_LOCAL_H
#define TENSOR_GROUP_LOCAL_H

#include "group/engine/engine.h"
#include "group/local/page.h"

#include "sharing/ring.h"
#include "sharing/shm.h"
#include "storage/provider/provider.h"

#include <tensor/channel.h>

#define LOCAL_LINE  64
#define LOCAL_MAX   TENSOR_GROUP_LOCAL_MAX
#define LOCAL_TOTAL (16u << 20)	 /* bytes of all slots, at most, */
#define LOCAL_SLOT  (256u << 10) /* and of one: it stays in a cache of the processor */
#define LOCAL_LEAST (32u << 10)
/* Bytes of an address: with the name of a user of ten digits it fits in sun_path. */
#define LOCAL_NAME 80

/* The channels between two ranks; each has its order. */
enum local_lane { LOCAL_MESSAGES, LOCAL_TENSORS, LOCAL_LANES };

struct local_peer {
	int out_socket, in_socket; /* or -1 */
	tensor_channel *out, *in;  /* or NULL */
	tensor_pool *pool;	   /* message.c */
};

/* The state of the collective that runs. */
struct local_in_place {
	tensor *in[LOCAL_MAX], *out[LOCAL_MAX]; /* of the ranks that this one reads; owned */
	bool sent[LOCAL_MAX];			/* the ranks that have this one's */
	int stage;
	tensor *part; /* of u8, owned: of a reduce; the group keeps it */
	struct tensor_identity tried[64]; /* buffers whose descriptor could be passed, by number */
};

struct local {
	struct local_page *page;
	char *slots; /* of rank r and parity p: slots + (2 * r + p) * slot */
	size_t bytes, slot;
	int fd;	     /* of the segment */
	int *pidfds; /* of each rank; -1: this one */
	int32_t *pids;
	uint64_t step;		  /* this rank's last one */
	uint32_t heard;		  /* the bell when the rank began to wait */
	struct local_peer *peers; /* of each lane and rank */
	struct local_in_place in_place;
	char address[LOCAL_NAME];
	int listener; /* for channels of other ranks, or -1 */
};

/* Joins; sets all but peers. 0, or -errno with the error set. */
int local_join(tensor_group *g, struct local *l, const char *address);
/* The address of the socket of a rank, which begins with a zero; its length. */
int local_address(const char *address, int rank, char *to, size_t size);

/* Whether the process at the other end is of this user, or of root. */
bool local_is_same_user(int socket);

/* ---- channel.c ---- */

int local_channels_open(tensor_group *g);
void local_channels_close(tensor_group *g);
struct local_peer *local_peer_of(const tensor_group *g, enum local_lane lane, int rank);
/* The peer's out, or in. 1: it is there; 0: the rank is not ready yet; -errno with the error set. */
int local_connect(tensor_group *g, enum local_lane lane, int rank);
int local_accept(tensor_group *g, enum local_lane lane, int rank);

/* ---- message.c ---- */

int message_step(tensor_request *r);
void message_drop(tensor_request *r);

/* ---- in_place.c ---- */

/* Whether such an operation can be in place, by what all ranks know; its first step carries no data. */
bool in_place_is_possible(const tensor_request *r);
/* Whether this rank's tensors are in buffers that others can get. */
bool in_place_is_offered(const tensor_request *r);
/* All ranks have offered it, and r->step is the next one, which this rank posts when it has read. */
void in_place_begin(tensor_request *r);
/* As the engine's step(). */
int in_place_step(tensor_request *r);
/* Releases what it has; an operation may have failed. */
void in_place_close(struct local_in_place *p);

/* ---- local.c and wait.c ---- */

/* The memory of a rank for a step. */
static inline char *local_slot(const struct local *l, int rank, uint64_t step)
{
	return l->slots + (2 * (size_t)rank + (step & 1)) * l->slot;
}

/* r->step: the next one. */
static inline void local_begin_step(tensor_request *r)
{
	r->step = ++((struct local *)r->group->state)->step;
}

/* This rank is at the step. */
void local_post(const tensor_group *g, uint64_t step);
bool local_has_posted(const struct local *l, int rank, uint64_t step);
/* The first rank that has not posted the step, or -1. */
int local_missing(const tensor_group *g, uint64_t step);
/* Wakes the rank, or all, if they sleep. */
void local_ring(struct local *l, int rank);
void local_ring_all(const tensor_group *g);
/* The engine's functions. */
void local_arm(tensor_group *g);
int local_sleep(tensor_group *g, tensor_request *r, int64_t ns);
/* Whether the process of the rank has ended. */
bool local_is_dead(const struct local *l, int rank);
/* Whether the rank has left after an error: what this one has read of its memory may have been changed meanwhile. */
bool local_has_given_up(const tensor_group *g, int rank);
/* Sets the error that the rank is gone; returns -errno. */
int local_gone(tensor_group *g, int rank);

#endif
