/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A channel: what share.c sends over it, receive.c receives. See share.c. */
#ifndef TENSOR_CHANNEL_H
#define TENSOR_CHANNEL_H

#include "sharing/sharing.h"

#include "sharing/wire.h"

#include <pthread.h>

/* A buffer may be in one of WAYS neighbouring slots, so that it is found without a search. */
#define WAYS 4
#define SETS (WIRE_SLOTS / WAYS)

_Static_assert(WIRE_DIMS == TENSOR_MAX_DIMS, "a tensor fits into a message");

struct sent {
	struct tensor_identity id;
	bool used, readonly;
};

struct held {
	struct tensor_storage *storage; /* NULL: empty */
	struct tensor_identity id;
	bool readonly; /* as the sender said; the storage may be it besides */
};

struct tensor_channel {
	int socket;
	bool packets;
	/* One sender and one receiver at a time; both may be at work at once. */
	pthread_mutex_t sending, receiving;

	/* Out; with tables_lock. */
	struct sent sent[WIRE_SLOTS];
	uint64_t forget[WIRE_SLOTS / 64]; /* slots to give up, not yet said */
	uint8_t victim[SETS];
	struct tensor_channel *next, **link;

	/* In; with `receiving`. */
	struct held held[WIRE_SLOTS];
	struct wire_in in;
	int dead; /* what the channel ended with, -errno */
};

#endif
