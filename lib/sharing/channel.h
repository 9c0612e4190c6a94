/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A channel: send.c and share.c send, receive.c and group.c receive, link.c has the socket and the rings, channels.c the
 * list of all channels. One to another machine has functions of lib/remote instead (channel_remote).
 */
#ifndef TENSOR_LIB_CHANNEL_H
#define TENSOR_LIB_CHANNEL_H

#include "sharing/sharing.h"

#include "sharing/lease.h"
#include "sharing/ring.h"
#include "sharing/wire.h"

#include <pthread.h>
#include <tensor/channel.h>

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

/* Whether waits of a receiver spin. */
struct link_habit {
	unsigned failed, skip; /* waits that spun in vain, and waits that are not to spin */
};

/* The receiving side of a channel with rings; protected by receiving. */
struct link_in {
	struct ring ring;
	bool peer_rings;   /* the peer's mark came */
	bool offered;	   /* the peer has the ring */
	int fd;		   /* of the ring, until it is offered */
	bool full;	   /* channel.in is complete, the message of a tensor */
	uint16_t position; /* of that message */
	uint32_t taken;	   /* messages of tensors that were taken from the socket */
	bool have;	   /* copy is a record that was not delivered yet */
	struct ring_copy copy;
	struct wire_in message; /* of that record */
	struct link_habit habit;
};

/* The sending side. */
struct link_out {
	struct ring ring;
	bool marked;   /* the mark was sent */
	uint32_t sent; /* messages of tensors on the socket */
};

/* A message of several tensors that is being received, or is complete and was not delivered; protected by receiving. */
struct group {
	uint32_t count, have;
	bool open; /* parts are missing */
	bool bad;  /* a part was refused: the message is not delivered */
	bool complete;
	uint64_t tag;
	struct taken *taken;	     /* its lease, or NULL */
	tensor *tensors[WIRE_PARTS]; /* owned; the first have of them */
};

struct outgoing;

/* The functions of a channel to another machine (lib/remote). Its socket is an eventfd, readable while a receive would not wait. */
struct channel_remote {
	/* Sends a message; the caller holds sending. 0, or -errno with the error set. */
	int (*send)(struct tensor_channel *ch, const struct outgoing *o);
	/* Receives the next message into group; the caller holds receiving. 0, or -errno with the error set. */
	int (*receive)(struct tensor_channel *ch, int64_t until);
	/* Frees state and socket; also in a child of fork(), which must not touch the connection. */
	void (*close)(struct tensor_channel *ch);
};

struct tensor_channel {
	int socket;
	const struct channel_remote *remote; /* NULL: a channel on a socket */
	void *state;			     /* of those functions */
	bool packets;
	/* One sender and one receiver at a time; both may run concurrently. */
	pthread_mutex_t sending, receiving;
	/*
	 * Held inside receiving while a message changes the members below, but not while the receiver waits for one: a
	 * fork waits for it, so that a child finds whole parts and slots.
	 */
	pthread_mutex_t changing;
	bool orphan; /* in a child: another thread of the parent used the channel at the fork; it can only be closed */

	/* Sending; protected by channels_lock_tables(). */
	struct sent sent[WIRE_SLOTS];
	uint64_t forget[WIRE_SLOTS / 64]; /* slots to forget, not sent yet */
	uint8_t victim[SETS];
	struct tensor_channel *next, **link; /* protected by list_lock and tables_lock */

	/* Receiving; protected by receiving. */
	struct held held[WIRE_SLOTS];
	struct wire_in in;
	int dead; /* error that ended the channel, -errno */
	struct link_in ring_in;
	struct group group;
	struct device_note device; /* of the message after it, if device_came */
	bool device_came;
	struct lease_source *lease_source; /* NULL before the first message with a lease */
	int lease_memory; /* came, and the socket that belongs to it did not; or -1 */

	/* Leases that this end gives; protected by sending. */
	struct lease_table *lease_table;
	int lease_fds[2]; /* for the peer; -1: sent */

	struct link_out ring_out; /* protected by sending */
	bool ring_wanted;	  /* the socket belongs to the channel, and rings may be used */
	bool takes_files;	  /* this end trusts its peer with mapped files */
	_Atomic bool peer_takes_files;
	uint32_t ring_records; /* of the ring that this end makes */
	int64_t spin_ns;       /* a wait spins for this time before it blocks */
	bool adaptive;	       /* the program has set no time */
	_Atomic bool
		eof; /* the peer has closed its end, and all that it sent on the socket was read */
	_Atomic int offer_fd; /* the ring that the peer offered and that is not mapped yet, or -1 */
	uint64_t chosen;      /* when tensor_channel_wait() returned it last */
};

/* A channel on a descriptor, which is not in the list of channels yet; NULL with the error set (share.c). */
tensor_channel *channel_new(const char *function, int socket);

/* ---- the list of all channels (channels.c) ---- */

/* From now on forks and the ends of buffers see it; until it is withdrawn. */
void channel_publish(tensor_channel *ch);
void channel_withdraw(tensor_channel *ch);
/* The lock of the tables of sent buffers, and of the list from its first channel on. */
void channels_lock_tables(void);
void channels_unlock_tables(void);
tensor_channel *channels_first(void);

/* 0, or -EBUSY with the error set if the channel is an orphan. */
int channel_orphan(const tensor_channel *ch);

#endif
