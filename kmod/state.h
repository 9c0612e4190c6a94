/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The small state of a buffer: seals, revocation, purging, generation, writers and devices.
 */
#ifndef TENSOR_STATE_H
#define TENSOR_STATE_H

#include "buf.h"

#define TENSOR_SEALED	INT_MIN

u32 tensor_buf_seals(struct tensor_buf *buf);
u32 tensor_buf_state(struct tensor_buf *buf);
int tensor_buf_usable(struct tensor_buf *buf);
int tensor_buf_may(const struct tensor_hold *hold, bool read, bool write);

void tensor_state_change(struct tensor_buf *buf, u32 set, u32 clear);
void tensor_state_seal(struct tensor_buf *buf, u32 seals);
u64 tensor_state_wrote(struct tensor_buf *buf);
u64 tensor_state_generation(struct tensor_buf *buf);

void tensor_memory_count(struct tensor_buf *buf);
void tensor_memory_get(struct tensor_buf *buf, struct tensor_memory *memory);

int tensor_write_get(struct tensor_buf *buf);
void tensor_write_put(struct tensor_buf *buf);
int tensor_device_join(struct tensor_buf *buf, bool write);
int tensor_device_get(struct tensor_buf *buf, bool write);
void tensor_device_put(struct tensor_buf *buf, bool write);

#endif /* TENSOR_STATE_H */
