// SPDX-License-Identifier: GPL-2.0-only
/*
 * A buffer's pages as a list of chunks.
 *
 * Large chunks are what makes a mapping cheap: a chunk of PMD size is one page table entry and
 * one TLB entry. The core installs such an entry by mapping the *head* of the compound page at
 * the aligned address, so a chunk of order N must lie at an index that is a multiple of 2^N, and
 * its folio must know that index. When a large order cannot be had the next smaller one is taken,
 * down to single pages: memory that is there is never refused for being in pieces.
 *
 * Pages come zeroed from source.c, and go to the pool or back by put_page(). A folio that has
 * other references when its buffer is freed, for example a pin of a device, goes to linger.c. The
 * charge to the limits belongs to the chunks, and ends folio by folio.
 */
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "alloc.h"

/**
 * tensor_chunks_grow() - make room; inside this folder
 * @c: the chunks
 * @room: how many it shall have room for, at least those that are there
 *
 * Return: 0 or -ENOMEM.
 */
int tensor_chunks_grow(struct tensor_chunks *c, size_t room)
{
	struct tensor_chunk *list;

	list = kvmalloc_array(room, sizeof(*list), TENSOR_GFP);
	if (!list)
		return -ENOMEM;
	if (c->nr)
		memcpy(list, c->list, c->nr * sizeof(*list));
	kvfree(c->list);
	c->list = list;
	c->room = room;
	return 0;
}

/**
 * tensor_chunks_append() - one more chunk; inside this folder
 * @c: the chunks, with room for it
 * @head: the chunk, with a reference that is @c's from now on
 * @order: its order
 */
void tensor_chunks_append(struct tensor_chunks *c, struct page *head, unsigned int order)
{
	int node = page_to_nid(head);

	page_folio(head)->index = c->pages;
	if (!c->nr)
		c->node = node;
	else if (c->node != node)
		c->node = NUMA_NO_NODE;
	c->list[c->nr].head = head;
	c->list[c->nr].first = c->pages;
	c->nr++;
	c->count[order]++;
	c->pages += 1UL << order;
}

/* Returns how many pages are not charged any more. */
static unsigned long chunk_put(const struct tensor_chunks *c, struct page *head)
{
	struct folio *folio = page_folio(head);
	unsigned long pages = folio_nr_pages(folio);

	if (folio_ref_count(folio) != 1) {
		tensor_linger_add(folio, c->user);
		return 0;
	}
	if (!c->recycle || !tensor_pool_put(head))
		folio_put(folio);
	return pages;
}

/**
 * tensor_chunks_free() - free and uncharge all pages
 * @c: what tensor_chunks_alloc() filled in, or zeroes; zeroes afterwards
 *
 * A folio that has other references is freed and uncharged when they are gone. Allocates nothing.
 */
void tensor_chunks_free(struct tensor_chunks *c)
{
	unsigned long pages = 0;
	size_t i;

	if (!c->user)
		return;
	for (i = 0; i < c->nr; i++) {
		pages += chunk_put(c, c->list[i].head);
		cond_resched();
	}
	tensor_limit_uncharge(c->user, (u64)pages << PAGE_SHIFT);
	tensor_user_put(c->user);
	kvfree(c->list);
	memset(c, 0, sizeof(*c));
}

/**
 * tensor_chunks_page() - the page at an index
 * @c: the chunks
 * @index: page number from the begin of the buffer
 *
 * Return: the page, without a reference of its own, or NULL if @index is past the end.
 */
struct page *tensor_chunks_page(const struct tensor_chunks *c, unsigned long index)
{
	size_t low = 0, high = c->nr;

	if (index >= c->pages)
		return NULL;
	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (c->list[mid].first <= index)
			low = mid;
		else
			high = mid;
	}
	return c->list[low].head + (index - c->list[low].first);
}

/**
 * tensor_chunks_huge_bytes() - how much of it one page table entry a chunk can map
 * @c: the chunks
 *
 * Return: bytes.
 */
u64 tensor_chunks_huge_bytes(const struct tensor_chunks *c)
{
	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE) || TENSOR_TOP_ORDER < TENSOR_PMD_ORDER)
		return 0;
	return (u64)c->count[TENSOR_TOP_ORDER] << PMD_SHIFT;
}

/**
 * tensor_chunks_dma_bytes() - how much of it is pinned now
 * @c: the chunks
 *
 * The core's own estimate: never too little; too much for a single page with very many references.
 *
 * Return: bytes of the chunks that have a pinned page.
 */
u64 tensor_chunks_dma_bytes(const struct tensor_chunks *c)
{
	u64 bytes = 0;
	size_t i;

	for (i = 0; i < c->nr; i++) {
		struct folio *folio = page_folio(c->list[i].head);

		if (folio_maybe_dma_pinned(folio))
			bytes += folio_size(folio);
		cond_resched();
	}
	return bytes;
}

/**
 * tensor_chunks_busy() - whether a page has a reference that is no mapping's
 * @c: the chunks
 *
 * Faults and unmappings under way make it right for a moment only.
 *
 * Return: whether that is so.
 */
bool tensor_chunks_busy(const struct tensor_chunks *c)
{
	struct folio *folio;
	size_t i;

	for (i = 0; i < c->nr; i++) {
		folio = page_folio(c->list[i].head);
		if (folio_ref_count(folio) > 1 + tensor_folio_mapcount(folio))
			return true;
		cond_resched();
	}
	return false;
}

/**
 * tensor_chunks_idle() - whether the chunks have the only reference to each page
 * @c: the chunks, without a mapping
 *
 * Unlike the number of pins this is no estimate, and includes references without a pin, as of
 * direct I/O in old kernels. A walk over physical memory may have a reference for a moment.
 *
 * Return: whether that is so.
 */
bool tensor_chunks_idle(const struct tensor_chunks *c)
{
	size_t i;

	for (i = 0; i < c->nr; i++) {
		if (folio_ref_count(page_folio(c->list[i].head)) != 1)
			return false;
		cond_resched();
	}
	return true;
}
