/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a buffer's pages come from, and who may have how many.
 *
 * This folder knows pages, nodes and limits; it knows no file, no ioctl and no netlink, so that a
 * test can drive it alone.
 */
#ifndef TENSOR_ALLOC_H
#define TENSOR_ALLOC_H

#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/types.h>

#include "../compat.h"

/* The order of what one PMD entry maps; the largest chunk is one of these where there are any. */
#define TENSOR_PMD_ORDER	(PMD_SHIFT - PAGE_SHIFT)
#define TENSOR_TOP_ORDER	MIN(TENSOR_PMD_ORDER, MAX_PAGE_ORDER)
#define TENSOR_ORDERS		(TENSOR_TOP_ORDER + 1)

/**
 * struct tensor_chunk - 2^order physically contiguous pages of a buffer
 * @head: first page; of a compound page unless the order is 0. Carries the order.
 * @first: index within the buffer of that page, a multiple of 2^order
 */
struct tensor_chunk {
	struct page *head;
	unsigned long first;
};

/**
 * struct tensor_chunks - all pages of a buffer, written once and read without a lock
 * @list: @nr chunks without a gap, by ascending first
 * @nr: chunks in @list
 * @room: chunks that @list has room for
 * @pages: pages in all of them
 * @node: node of all pages, or NUMA_NO_NODE
 * @count: chunks of each order
 */
struct tensor_chunks {
	struct tensor_chunk *list;
	size_t nr;
	size_t room;
	unsigned long pages;
	int node;
	u32 count[TENSOR_ORDERS];
};

/**
 * struct tensor_want - what tensor_chunks_alloc() shall find
 * @pages: how many, a multiple of 2^min_order, not 0
 * @node: a node with memory, or NUMA_NO_NODE: as the task's memory policy says
 * @node_only: no other node will do
 * @min_order: smallest chunk
 * @max_order: largest chunk
 */
struct tensor_want {
	unsigned long pages;
	int node;
	bool node_only;
	unsigned int min_order;
	unsigned int max_order;
};

int tensor_chunks_alloc(struct tensor_chunks *c, const struct tensor_want *want);
void tensor_chunks_free(struct tensor_chunks *c);
struct page *tensor_chunks_page(const struct tensor_chunks *c, unsigned long index);
u64 tensor_chunks_huge_bytes(const struct tensor_chunks *c);
u64 tensor_chunks_dma_bytes(const struct tensor_chunks *c);

int tensor_limit_charge(u64 bytes);
void tensor_limit_uncharge(u64 bytes);
u64 tensor_limit_bytes(void);
u64 tensor_limit_used(void);
u64 tensor_limit_refused(void);

#endif /* TENSOR_ALLOC_H */
