/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The list of purgeable buffers. It holds no references, because dropping one could evict a buffer
 * in the shrinker: eviction removes the buffer from the list, under the buffer's lock, before it is
 * freed.
 */
#ifndef TENSOR_PURGELIST_H
#define TENSOR_PURGELIST_H

#include "buf.h"

void tensor_purgelist_add(struct tensor_buf *buf, struct list_head *busy);
void tensor_purgelist_del(struct tensor_buf *buf);
struct tensor_buf *tensor_purgelist_take(void);
void tensor_purgelist_splice(struct list_head *busy);
unsigned long tensor_purgelist_pages(void);

#endif /* TENSOR_PURGELIST_H */
