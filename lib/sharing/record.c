// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Messages of tensors as records of a ring. */
#include "sharing/record.h"

#include <string.h>

#define BODY_BYTES(ndim) (offsetof(struct record_body, dims) + (ndim)*2 * sizeof(int64_t))

_Static_assert(sizeof(struct record_body) <= RING_BODY, "the message of a tensor is one record");

uint32_t record_pack(struct record_body *to, const struct wire_message *m, uint32_t after)
{
	size_t n = m->ndim * sizeof(int64_t);

	to->after = after;
	to->flags = m->flags;
	to->slot = m->slot;
	to->dtype = m->dtype;
	to->ndim = m->ndim;
	to->zero = 0;
	to->dev = m->dev;
	to->ino = m->ino;
	memcpy(to->forget, m->forget, sizeof(to->forget));
	to->offset = m->offset;
	memcpy(to->dims, m->sizes, n);
	memcpy(to->dims + m->ndim, m->strides, n);
	return (uint32_t)BODY_BYTES(m->ndim);
}

bool record_unpack(const struct ring_copy *from, uint32_t *after, struct wire_message *m)
{
	struct record_body t;

	if (from->kind != RECORD_TENSOR || from->bytes < BODY_BYTES(0) || from->bytes > sizeof(t))
		return false;
	memcpy(&t, from->body, from->bytes);
	if (t.ndim > WIRE_DIMS || from->bytes != BODY_BYTES(t.ndim) || t.zero ||
	    t.flags & ~(WIRE_READONLY | WIRE_NOTE | WIRE_PART | WIRE_FILE | WIRE_DEVICE))
		return false;
	*after = t.after;
	*m = (struct wire_message){ .magic = WIRE_MAGIC,
				    .version = WIRE_VERSION,
				    .size = sizeof(*m),
				    .flags = t.flags,
				    .slot = t.slot,
				    .dev = t.dev,
				    .ino = t.ino,
				    .dtype = t.dtype,
				    .ndim = t.ndim,
				    .offset = t.offset };
	memcpy(m->forget, t.forget, sizeof(m->forget));
	memcpy(m->sizes, t.dims, t.ndim * sizeof(int64_t));
	memcpy(m->strides, t.dims + t.ndim, t.ndim * sizeof(int64_t));
	return true;
}
