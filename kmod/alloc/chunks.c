// SPDX-License-Identifier: GPL-2.0-only
/*
 * A buffer's pages as a list of chunks.
 *
 * Large chunks make mappings cheap: a chunk of PMD size needs one page table entry and one TLB
 * entry. The core installs such an entry by mapping the *head* of the compound page at the aligned
 * address, so a chunk of order N must lie at an index that is a multiple of 2^N, and its folio must
 * know that index. When a large order is not available the next smaller one is tried, down to
 * single pages, so that fragmentation never makes an allocation fail.
 *
 * source.c returns zeroed pages; freed pages go to the pool or to put_page(). A folio that has
 * other references when its buffer is freed, for example a pin of a device, goes to linger.c. The
 * chunks own the charge to the limits, which is returned folio by folio.
 */
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "alloc.h"

/**
 * tensor_chunks_grow() - reserve room for chunks; internal to alloc/
 * @c: the chunks
 * @room: number of chunks to have room for, at least @c->nr
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
 * tensor_chunks_append() - append a chunk; internal to alloc/
 * @c: the chunks, with room for it
 * @head: the chunk, with a reference that passes to @c
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

/* Return the number of pages that are no longer charged. */
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
 * A folio that has other references is freed and uncharged when they are dropped. Does not
 * allocate.
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
 * @index: page index within the buffer
 *
 * Return: the page, without a reference, or NULL if @index is past the end.
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
 * tensor_chunks_huge_bytes() - bytes in chunks that one PMD entry can map
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
 * tensor_chunks_dma_bytes() - bytes in chunks that are pinned now
 * @c: the chunks
 *
 * Uses the core's estimate, which has no false negatives and may count a single page with very many
 * references as pinned.
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
 * tensor_chunks_busy() - whether a page has a reference that is not from a mapping
 * @c: the chunks
 *
 * The answer may be outdated on return: faults and unmaps may be in progress.
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
 * Unlike the number of pins this is exact, and includes references without a pin, such as those of
 * direct I/O in old kernels. A walk over physical memory may hold a reference for a moment.
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
