/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The record of a tensor's message in a ring: the message without what is known or unused. */
#ifndef TENSOR_RECORD_H
#define TENSOR_RECORD_H

#include "sharing/ring.h"
#include "sharing/wire.h"

#define RECORD_TENSOR 1u /* ring_record.kind */

/* The body of a record. */
struct record_body {
	uint32_t after; /* messages on the socket before it */
	uint32_t flags, slot, dtype, ndim, zero;
	uint64_t dev, ino;
	uint64_t forget[WIRE_SLOTS / 64];
	int64_t offset;
	int64_t dims[2 * WIRE_DIMS]; /* ndim sizes, then ndim strides */
};

/* Writes the body of a record for a message without fd, after as many messages on the socket. Its bytes. */
uint32_t record_pack(struct record_body *to, const struct wire_message *m, uint32_t after);
/* The message of a record, for wire_check(). False if the record is not valid. */
bool record_unpack(const struct ring_copy *from, uint32_t *after, struct wire_message *m);

#endif
