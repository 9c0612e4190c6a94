/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a buffer: seals, revocation, purging, generation, and counts of writers and devices.
 *
 * A single word may be read without a lock. A decision that must stay valid is made with the
 * buffer's lock held.
 */
#ifndef TENSOR_STATE_H
#define TENSOR_STATE_H

#include <linux/compiler.h>
#include <linux/errno.h>

#include "buf.h"

#define TENSOR_SEALED INT_MIN

/* Returns TENSOR_SEAL_*. */
static inline u32 tensor_buf_seals(const struct tensor_buf *buf)
{
	return READ_ONCE(buf->seals);
}

/* Returns TENSOR_STATE_REVOKED, TENSOR_STATE_PURGEABLE and TENSOR_STATE_PURGED. */
static inline u32 tensor_buf_state(const struct tensor_buf *buf)
{
	return READ_ONCE(buf->state);
}

/* Returns 0, or -EIDRM if the buffer was revoked. */
static inline int tensor_buf_usable(const struct tensor_buf *buf)
{
	return tensor_buf_state(buf) & TENSOR_STATE_REVOKED ? -EIDRM : 0;
}

/* Number of writes that have ended. */
static inline u64 tensor_state_generation(const struct tensor_buf *buf)
{
	return READ_ONCE(buf->generation);
}

int tensor_buf_may(const struct tensor_hold *hold, bool read, bool write);

void tensor_state_change(struct tensor_buf *buf, u32 set, u32 clear);
void tensor_state_seal(struct tensor_buf *buf, u32 seals);
u64 tensor_state_wrote(struct tensor_buf *buf);

void tensor_memory_count(struct tensor_buf *buf);
void tensor_memory_get(struct tensor_buf *buf, struct tensor_memory *memory);

int tensor_write_get(struct tensor_buf *buf);
void tensor_write_put(struct tensor_buf *buf);
int tensor_device_join(struct tensor_buf *buf, bool write);
int tensor_device_get(struct tensor_buf *buf, bool write);
void tensor_device_put(struct tensor_buf *buf, bool write);

#endif /* TENSOR_STATE_H */
