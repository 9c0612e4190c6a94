/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The frames of a channel between machines (docs/sharing.md, Between machines), and the tensors of a message. The byte order
 * is that of the sender: a machine with another one finds a wrong magic. A message has the table of its tensors as data, and
 * behind it the elements of a short one; those of a long one follow in pieces when the receiver has memory for them.
 */
#ifndef TENSOR_REMOTE_FRAME_H
#define TENSOR_REMOTE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAGIC   0x4d524e54u /* "TNRM" */
#define FRAME_VERSION 1
#define FRAME_DIMS    16
#define FRAME_LABEL   32
#define FRAME_TENSORS 64	 /* of a message */
#define FRAME_SHORT   (16 << 10) /* bytes of elements that travel with their message */
#define FRAME_PIECE   (1 << 20)	 /* of a long one */

enum frame_kind {
	FRAME_HELLO = 1, /* first. values: max_bytes, timeout_ns, records of its sender */
	FRAME_PING,
	FRAME_MESSAGE, /* values: tag, tensors, bytes of elements; data: the table, and the elements of a short one */
	FRAME_GRANT,	/* the receiver has memory for the message */
	FRAME_PIECE_OF, /* values: number of the tensor, byte in it; data: elements */
	FRAME_DONE,	/* the receiver has all of the message */
	FRAME_REFUSED,	/* it will not have it. values: errno, max_bytes */
	FRAME_ABORT,	/* its sender gives up; the answer is DONE or REFUSED */
	FRAME_TAKEN,	/* values: messages that the program has received since the last one */
	FRAME_BYE,	/* no more messages come */
	FRAME_BYE_BACK, /* all of the other's have come */
	FRAME_KINDS
};

struct frame {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	uint64_t message; /* number of the message; 0 where there is none */
	uint64_t values[3];
};

_Static_assert(sizeof(struct frame) == 40, "the frame is an ABI between machines");

#define FRAME_READONLY 1u

struct frame_tensor {
	uint32_t dtype, ndim, flags, zero;
	uint64_t bytes; /* of its elements in memory, the first of which is the lowest */
	int64_t sizes[FRAME_DIMS];
	int64_t strides[FRAME_DIMS]; /* elements; 0 where the elements are stored once */
	char label[FRAME_LABEL];
};

_Static_assert(sizeof(struct frame_tensor) == 312, "the table is an ABI between machines");

static inline struct frame frame_of(enum frame_kind kind, uint64_t message)
{
	return (struct frame){ FRAME_MAGIC, FRAME_VERSION, (uint16_t)kind, message, { 0 } };
}

/* Checks a frame by itself. NULL, or the reason why it ends the channel. */
const char *frame_check(const struct frame *f, size_t header_bytes, size_t bytes);
/* Checks the table of a message of n tensors with so many bytes of elements. The same. */
const char *frame_check_table(const struct frame_tensor *table, uint64_t n, uint64_t bytes);

#endif
