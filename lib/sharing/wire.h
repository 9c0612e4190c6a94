/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The message of a tensor: fixed size, byte order of the machine, with the fd of the buffer if the
 * peer does not have it yet (docs/sharing.md).
 */
#ifndef TENSOR_WIRE_H
#define TENSOR_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAGIC   0x52534e54u /* "TNSR" */
#define WIRE_VERSION 1
#define WIRE_DIMS    16
#define WIRE_SLOTS   256	/* buffers that a channel remembers in one direction */
#define WIRE_NO_SLOT UINT32_MAX /* no slot: the buffer is not remembered */

/* wire_message.flags */
#define WIRE_FD	      1u /* the fd of the buffer is attached; the buffer enters the slot */
#define WIRE_READONLY 2u /* the tensor is read-only */
/*
 * Messages of several tensors (group.h): a note, which is no tensor but has its place among them, and a part, a tensor
 * that belongs to the head before it. A receiver of an older version refuses both.
 */
#define WIRE_NOTE 8u
#define WIRE_PART 16u
/*
 * The buffer is a file that the sender has mapped. Only to a peer whose offer of a ring has 1 in its offset: it trusts
 * the sender not to truncate the file.
 */
#define WIRE_FILE 32u
/*
 * The buffer is memory of a CUDA device. With WIRE_FD, the note that describes it is before the message, and the fd is
 * that of the driver. A receiver of an older version refuses both.
 */
#define WIRE_DEVICE 64u
#define WIRE_FLAGS  (WIRE_FD | WIRE_READONLY | WIRE_PART | WIRE_FILE | WIRE_DEVICE)

/* wire_message.dtype of a note; the other members are 0 but for those that are named */
#define WIRE_NOTE_HEAD \
	1u /* the message after it: slot: parts; dev: tag; ino: generation; offset: lease, -1: none */
#define WIRE_NOTE_LEASES 2u /* the memfd of the words of leases (lease.h) */
#define WIRE_NOTE_HOLDER 3u /* the socket that the receiver holds as long as it has leases */
#define WIRE_NOTE_DEVICE 4u /* dev, ino: the UUID of the device; offset: bytes of the memory */
#define WIRE_PARTS	 64 /* of a message */

/*
 * Messages between two channels with rings (link.c). A message of a channel, not of a tensor; dtype is its kind: a bell
 * wakes the receiver of a record, an offer brings the memfd of the ring that its sender will receive from.
 */
#define WIRE_CONTROL 4u
#define WIRE_BELL    1u
#define WIRE_OFFER   2u
/* The message of a tensor has the number of records that were sent before it in the upper half of its flags. */
#define WIRE_POSITION_SHIFT 16
/*
 * The first message of a channel that can use rings has this in forget. Another receiver has nothing to forget then, so
 * the mark has no effect there.
 */
#define WIRE_MARK                                                                              \
	{                                                                                      \
		0x7465676e69727431, 0x9d3f6a8be1c24705, 0x5b0e7d96c83fa21e, 0xe4a1930bd57c682f \
	}

struct wire_message {
	uint32_t magic;
	uint16_t version;
	uint16_t size; /* size of this struct in bytes */
	uint32_t flags;
	uint32_t slot;			  /* slot of the buffer at the receiver */
	uint64_t dev, ino;		  /* identity of the buffer */
	uint64_t forget[WIRE_SLOTS / 64]; /* bit n: slot n becomes empty; processed first */
	uint32_t dtype, ndim;
	int64_t offset;		    /* bytes from the begin of the buffer to element 0, 0, ... */
	int64_t sizes[WIRE_DIMS];   /* 0 from ndim on, like the strides */
	int64_t strides[WIRE_DIMS]; /* elements */
};

_Static_assert(sizeof(struct wire_message) == 336, "the message is an ABI between processes");

/*
 * Maximum of refused descriptors of one channel that are not closed yet. Beyond it the channel
 * ends: the peer may have sent files whose close() blocks.
 */
#define WIRE_REFUSED_MAX 64

struct wire_refused;

/* A partially received message. */
struct wire_in {
	struct wire_message m;
	size_t have;
	int fd;			      /* -1 if none was received */
	bool extra;		      /* more than one was received; all are closed */
	bool lost;		      /* the kernel dropped one at the limit of open files */
	struct wire_refused *refused; /* NULL if none was refused */
};

/*
 * Sends one message, with fd unless it is -1. 0 or -errno; -EPIPE: the peer closed the socket;
 * -EAGAIN: a non-blocking socket is full, or any with flags MSG_DONTWAIT. Sends all bytes or none, unless the peer
 * closes.
 */
int wire_send(int socket, const struct wire_message *m, int fd, int flags);

/*
 * Receives one complete message; packets: a packet is a message; how: 0 or MSG_DONTWAIT. After -EAGAIN the next call
 * continues; after other results the caller calls wire_reset(). -EPIPE at the end of the stream.
 */
int wire_recv(int socket, bool packets, struct wire_in *in, int how);
/* Resets the message and closes its fd, in another thread if close() could block. */
void wire_reset(struct wire_in *in);
/* Whether WIRE_REFUSED_MAX descriptors stay unclosed for a second. */
bool wire_overrun(struct wire_in *in);
/* Frees the state of a channel. */
void wire_end(struct wire_in *in);

/* Checks a message, also a note. 0; -EPROTO if it is not of this protocol; -EBADMSG with the reason in *why. */
int wire_check(const struct wire_message *m, const char **why);
/* Whether the tensor lies within a buffer of this size. */
bool wire_fits(const struct wire_message *m, uint64_t bytes, unsigned itemsize);

#endif
