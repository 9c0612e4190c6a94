/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The engine "local": ranks of one machine, which share one segment of memory. join.c makes it and gives every rank a
 * pidfd of each other; page.h is its beginning; wait.c waits for others, local.c carries collectives out step by step, message.c sends through channels.
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

#define LOCAL_LINE  64
#define LOCAL_MAX   TENSOR_GROUP_LOCAL_MAX
#define LOCAL_TOTAL (16u << 20)	 /* bytes of all slots, at most, */
#define LOCAL_SLOT  (256u << 10) /* and of one: it stays in a cache of the processor */
#define LOCAL_LEAST (32u << 10)
/* Bytes of an address: with the name of a user of ten digits it fits in sun_path. */
#define LOCAL_NAME 80

struct local {
	struct local_page *page;
	char *slots; /* of rank r and parity p: slots + (2 * r + p) * slot */
	size_t bytes, slot;
	int fd;	     /* of the segment */
	int *pidfds; /* of each rank; -1: this one */
	int32_t *pids;
	uint64_t step;		  /* this rank's last one */
	uint32_t heard;		  /* the bell when the rank began to wait */
	struct local_peer *peers; /* message.c */
	char address[LOCAL_NAME];
	int listener; /* for channels of other ranks, or -1 */
};

/* Joins; sets all but peers. 0, or -errno with the error set. */
int local_join(tensor_group *g, struct local *l, const char *address);
/* The address of the socket of a rank, which begins with a zero; its length. */
int local_address(const char *address, int rank, char *to, size_t size);

/* Whether the process at the other end is of this user, or of root. */
bool local_is_same_user(int socket);

int messages_open(tensor_group *g);
int message_step(tensor_request *r);
void messages_close(tensor_group *g);

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
/* Sets the error that the rank is gone; returns -errno. */
int local_gone(tensor_group *g, int rank);

#endif
