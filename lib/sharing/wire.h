/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What crosses the socket when a tensor does: one message of fixed size in the machine's byte
 * order, and the buffer's fd when the peer has not seen the buffer. docs/sharing.md tells what
 * each side does with it.
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
#define WIRE_NO_SLOT UINT32_MAX /* remember nothing: the buffer is sent this once */

/* wire_message.flags */
#define WIRE_FD	      1u /* the buffer's fd came along, and goes into the slot */
#define WIRE_READONLY 2u /* the tensor may not be written */
#define WIRE_FLAGS    (WIRE_FD | WIRE_READONLY)

struct wire_message {
	uint32_t magic;
	uint16_t version;
	uint16_t size; /* of this struct */
	uint32_t flags;
	uint32_t slot;			  /* where the receiver keeps, or is to keep, the buffer */
	uint64_t dev, ino;		  /* the buffer */
	uint64_t forget[WIRE_SLOTS / 64]; /* bit n: slot n is empty from now on; before the rest */
	uint32_t dtype, ndim;
	int64_t offset;		    /* bytes from the begin of the buffer to element 0, 0, ... */
	int64_t sizes[WIRE_DIMS];   /* 0 from ndim on, like the strides */
	int64_t strides[WIRE_DIMS]; /* elements */
};

_Static_assert(sizeof(struct wire_message) == 336, "the message is an ABI between processes");

/* Descriptors of one channel that were refused and are not closed yet. Past this many it ends: the peer
 * may have sent files whose close() waits for it. */
#define WIRE_REFUSED_MAX 64

struct wire_refused;

/* A message on its way in. What came of it stays here until the rest is there. */
struct wire_in {
	struct wire_message m;
	size_t have;
	int fd;			      /* -1: none came */
	bool extra;		      /* more than one came, and are closed */
	bool lost;		      /* the kernel had no room for one */
	struct wire_refused *refused; /* NULL: none yet */
};

/* Sends one message, with fd unless it is -1. 0; -EPIPE: the peer is gone; -EAGAIN on a socket
 * that does not block; -errno. All or nothing, unless the peer goes away. */
int wire_send(int socket, const struct wire_message *m, int fd);

/* Receives one whole message; packets: a packet is a message. After -EAGAIN it goes on where it
 * was; else the caller empties *in with wire_reset(). -EPIPE at the end of the stream. */
int wire_recv(int socket, bool packets, struct wire_in *in);
/* Closes the fd, too: later, where that could wait for somebody. */
void wire_reset(struct wire_in *in);
/* Are as many as WIRE_REFUSED_MAX waiting, and were for a moment? */
bool wire_overrun(struct wire_in *in);
/* The end of a channel: wire_reset(), and the rest. */
void wire_end(struct wire_in *in);

/* Does the message make sense in itself? 0, -EPROTO for a foreign one, -EBADMSG; *why tells. */
int wire_check(const struct wire_message *m, const char **why);
/* Does the tensor lie within a buffer of so many bytes? */
bool wire_fits(const struct wire_message *m, uint64_t bytes, unsigned itemsize);

#endif
