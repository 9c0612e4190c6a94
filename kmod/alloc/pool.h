/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions that pool.c and pool_thread.c share. */
#ifndef TENSOR_POOL_H
#define TENSOR_POOL_H

#include <linux/list.h>
#include <linux/spinlock.h>

#include "alloc.h"

/**
 * struct pool_node - the pool of one NUMA node
 * @lock: guards the struct
 * @clean: zeroed chunks by order
 * @dirty: chunks by order with the data of their last owner
 * @pages: pages in @clean and @dirty
 * @ready: pages in @clean of the top order
 * @asked: a chunk of the top order was requested since the thread last checked
 */
struct pool_node {
	spinlock_t lock; /* guards the struct */
	struct list_head clean[TENSOR_ORDERS];
	struct list_head dirty[TENSOR_ORDERS];
	unsigned long pages;
	unsigned long ready;
	bool asked;
};

/* Indexed by node id. */
extern struct pool_node *tensor_pool;

long tensor_pool_limit(void);
bool tensor_pool_reserve(unsigned long pages);
void tensor_pool_drop(unsigned long pages);
bool tensor_pool_push(struct pool_node *node, struct folio *folio, bool zeroed);
struct folio *tensor_pool_pop_dirty(struct pool_node *node);

int tensor_pool_thread_init(void);
void tensor_pool_thread_exit(void);
void tensor_pool_thread_wake(void);
void tensor_pool_thread_pause(void);
void tensor_pool_thread_stat(struct tensor_pool_stat *stat);

#endif /* TENSOR_POOL_H */
