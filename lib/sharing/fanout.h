/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Groups of receivers: fanout.c has them and what is on its way to them, fanout_send.c sends. */
#ifndef TENSOR_FANOUT_H
#define TENSOR_FANOUT_H

#include "sharing/channel.h"

/* A message that its receiver has not released, as far as the group has looked. */
struct flight {
	struct lease *lease;
	uint64_t tag, number;
};

struct member {
	tensor_channel *ch;
	bool dead;
	int n; /* flights, oldest first */
	uint64_t sent, dropped;
	uint64_t last; /* number of its last message */
	struct flight flights[];
};

struct tensor_channel_group {
	pthread_mutex_t lock;
	bool orphan; /* of a child of fork(), whose parent was in a call */
	enum tensor_channel_group_kind kind;
	enum tensor_pool_full full;
	int window, event;
	bool channel_full; /* a receiver is not ready because of its ring or socket alone */
	atomic_int waiters;
	uint64_t number; /* of messages */
	int n, space;
	struct member **members;
	int nlost, lost_space;
	uint64_t *lost; /* tags, oldest first */
	struct tensor_channel_group *next, **link;
};

/* Takes the lock. 0, or -EBUSY with the error set: the group is the parent's. */
int group_lock(tensor_channel_group *g);

/* ---- the caller holds the lock of the group ---- */

void flight_end(struct member *m, int i);
/* The receiver is gone. Messages that it had not released are lost if they were for this receiver alone. */
void member_bury(tensor_channel_group *g, struct member *m);
/* Ends the messages that were released, or that a pool took back. */
void member_settle(tensor_channel_group *g, struct member *m);
/* The same of all; sees also receivers that died while they had no message. */
void fanout_settle(tensor_channel_group *g);
/* Makes room for the tags of all that is on its way, so that a death cannot fail. 0, or -ENOMEM with the error set. */
int fanout_reserve(tensor_channel_group *g);

/* Wakes the threads that wait with a group. */
void fanout_wake_all(void);

#endif
