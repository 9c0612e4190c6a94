// SPDX-License-Identifier: GPL-2.0-only
/*
 * Physically contiguous memory, for devices without scatter-gather.
 *
 * Three sources, cheapest first: a single chunk, if the size is that of one; a power of two of
 * pages, split into single pages, of which the surplus is freed; a range from which the core
 * migrates other pages, on kernels that export alloc_contig_pages() to modules. That function
 * charges no memory cgroup, so only a task whose memory is not charged may use it.
 *
 * Pages of the last two sources may be mapped and pinned one by one, so each has its own reference
 * count and is a chunk of order 0. Memory of a CMA area is never used: the core must be able to
 * migrate its content, so GUP refuses long-term pins there. The masks below exclude it: they are
 * not movable, and the range allocator refuses CMA pageblocks and zones above the mask's.
 */
#include <linux/bits.h>
#include <linux/cpuset.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/topology.h>

#include "alloc.h"

static unsigned long contig_max_pages(bool charged)
{
	return TENSOR_CONTIG_PAGES && !charged ? totalram_pages() : BIT(MAX_PAGE_ORDER);
}

/**
 * tensor_contig_bytes() - the largest contiguous size that the calling task can get
 *
 * Return: bytes.
 */
u64 tensor_contig_bytes(void)
{
	return (u64)contig_max_pages(tensor_source_charged()) << PAGE_SHIFT;
}

/**
 * tensor_contig_check() - check that this kernel can serve a request
 * @src: the request
 *
 * Return: 0; -EOPNOTSUPP: larger than the contiguous memory that this kernel offers to modules.
 */
int tensor_contig_check(const struct tensor_source *src)
{
	return src->request->pages > contig_max_pages(src->gfp & __GFP_ACCOUNT) ? -EOPNOTSUPP : 0;
}

static struct page *contig_split(const struct tensor_source *src)
{
	gfp_t gfp = (src->gfp & ~__GFP_COMP) | __GFP_RETRY_MAYFAIL;
	unsigned long pages = src->request->pages, i;
	unsigned int order = get_order(pages << PAGE_SHIFT);
	struct page *first;

	if (order > MAX_PAGE_ORDER)
		return NULL;
	first = src->node == NUMA_NO_NODE ? alloc_pages(gfp, order) :
					    alloc_pages_node(src->node, gfp, order);
	if (!first)
		return NULL;
	split_page(first, order);
	for (i = pages; i < BIT(order); i++)
		__free_page(first + i);
	return first;
}

static struct page *contig_range(const struct tensor_source *src)
{
	gfp_t gfp = GFP_USER | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	int node = src->node == NUMA_NO_NODE ? numa_mem_id() : src->node;
	nodemask_t nodes = cpuset_current_mems_allowed;

	if (src->gfp & __GFP_ACCOUNT)
		return NULL;
	if (src->request->node_only)
		nodes = nodemask_of_node(node);
	return tensor_alloc_contig_pages(src->request->pages, gfp | (src->gfp & GFP_ZONEMASK), node,
					 &nodes);
}

static int contig_pages(struct tensor_chunks *c, const struct tensor_source *src)
{
	unsigned long pages = src->request->pages, i;
	struct page *first;
	int err;

	err = tensor_chunks_grow(c, pages);
	if (err)
		return err;
	first = contig_split(src) ?: contig_range(src);
	if (!first)
		return -ENOMEM;
	/* tensor_chunks_free() frees the pages from here on, also after an error */
	for (i = 0; i < pages; i++)
		tensor_chunks_append(c, first + i, 0);
	/* the pool keeps only chunks that other requests can use; these are single pages */
	c->recycle = false;
	if (tensor_source_too_far(src, first, pages))
		return -ENOMEM;
	return tensor_zero(first, pages, true);
}

/**
 * tensor_contig_fill() - allocate the pages of a buffer contiguously
 * @c: filled in; empty before
 * @src: a request that tensor_contig_check() allows
 *
 * Return: 0; -ENOMEM, also when there is enough free memory but no contiguous range; -EINTR.
 */
int tensor_contig_fill(struct tensor_chunks *c, struct tensor_source *src)
{
	unsigned int order = get_order(src->request->pages << PAGE_SHIFT);
	struct page *head;
	int err;

	if (!is_power_of_2(src->request->pages) || order > TENSOR_TOP_ORDER)
		return contig_pages(c, src);
	err = tensor_chunks_grow(c, 1);
	if (err)
		return err;
	head = tensor_source_get(src, order);
	if (IS_ERR_OR_NULL(head))
		return head ? PTR_ERR(head) : -ENOMEM;
	tensor_chunks_append(c, head, order);
	return 0;
}
