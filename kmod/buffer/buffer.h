/* SPDX-License-Identifier: GPL-2.0-only */
/* Lifetime of a buffer, from allocation to eviction. */
#ifndef TENSOR_BUFFER_H
#define TENSOR_BUFFER_H

#include "../core/owner.h"
#include "buf.h"

int tensor_buffer_init(void);
void tensor_buffer_exit(void);
struct tensor_buf *tensor_buf_alloc(const struct tensor_request *request, struct tensor_owner *hint,
				    u64 client);
struct tensor_buf *tensor_buf_adopt(const struct tensor_backing *backing, void *source, u64 bytes,
				    struct tensor_owner *hint, u64 client);
int tensor_buf_fill(struct tensor_buf *buf, struct tensor_chunks *chunks);
bool tensor_buf_block(struct tensor_buf *buf, bool wait);
void tensor_buf_unmap(struct tensor_buf *buf);
void tensor_buf_unblock(struct tensor_buf *buf);
void tensor_buf_swap(struct tensor_buf *buf, struct tensor_chunks *chunks);
void tensor_buf_info(const struct tensor_hold *hold, struct tensor_info *info);

#endif /* TENSOR_BUFFER_H */
