/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A channel: share.c sends, receive.c receives. */
#ifndef TENSOR_CHANNEL_H
#define TENSOR_CHANNEL_H

#include "sharing/sharing.h"

#include "sharing/wire.h"

#include <pthread.h>

/* A set-associative table: a buffer is in one of WAYS neighbouring slots. */
#define WAYS 4
#define SETS (WIRE_SLOTS / WAYS)

_Static_assert(WIRE_DIMS == TENSOR_MAX_DIMS, "a tensor fits into a message");

struct sent {
	struct tensor_identity id;
	bool used, readonly;
};

struct held {
	struct tensor_storage *storage; /* NULL if empty */
	struct tensor_identity id;
	bool readonly; /* as the sender sent it; the storage may also be read-only */
};

struct tensor_channel {
	int socket;
	bool packets;
	/* One sender and one receiver at a time; both may run concurrently. */
	pthread_mutex_t sending, receiving;

	/* Sending; protected by tables_lock. */
	struct sent sent[WIRE_SLOTS];
	uint64_t forget[WIRE_SLOTS / 64]; /* slots to forget, not sent yet */
	uint8_t victim[SETS];
	struct tensor_channel *next, **link;

	/* Receiving; protected by receiving. */
	struct held held[WIRE_SLOTS];
	struct wire_in in;
	int dead; /* error that ended the channel, -errno */
};

#endif
