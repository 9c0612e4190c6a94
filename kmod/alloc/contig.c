// SPDX-License-Identifier: GPL-2.0-only
/*
 * Physically contiguous memory, for devices that cannot gather.
 *
 * In order of price: a single chunk, if the size is that of one; a power of two of pages, split
 * into single pages, of which the surplus is freed; ordinary memory made contiguous by migrating
 * what is in the way, on kernels that export this to modules. The last one is charged to no
 * memory cgroup, so only a task whose memory is charged to none may use it.
 *
 * Any page of the last two may be mapped and pinned by itself, so each has its own reference
 * count and is a chunk of its own. Memory of a CMA area is never used: the core must be able to
 * migrate what is in it, so GUP refuses longterm pins there. None can come out of the masks
 * below: they are not movable, and the range allocator refuses pageblocks of CMA and zones above
 * the mask's.
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

static unsigned long contig_most(bool charged)
{
	return TENSOR_CONTIG_PAGES && !charged ? totalram_pages() : BIT(MAX_PAGE_ORDER);
}

/**
 * tensor_contig_bytes() - the largest size in one piece that the calling task can ever get
 *
 * Return: bytes.
 */
u64 tensor_contig_bytes(void)
{
	return (u64)contig_most(tensor_source_charged()) << PAGE_SHIFT;
}

/**
 * tensor_contig_check() - can this kernel serve a request at all?
 * @src: the request
 *
 * Return: 0; -EOPNOTSUPP: more in one piece than this kernel gives modules.
 */
int tensor_contig_check(const struct tensor_source *src)
{
	return src->want->pages > contig_most(src->gfp & __GFP_ACCOUNT) ? -EOPNOTSUPP : 0;
}

static struct page *contig_split(const struct tensor_source *src)
{
	gfp_t gfp = (src->gfp & ~__GFP_COMP) | __GFP_RETRY_MAYFAIL;
	unsigned long pages = src->want->pages, i;
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
	if (src->want->node_only)
		nodes = nodemask_of_node(node);
	return tensor_alloc_contig_pages(src->want->pages, gfp | (src->gfp & GFP_ZONEMASK), node,
					 &nodes);
}

static int contig_pages(struct tensor_chunks *c, const struct tensor_source *src)
{
	unsigned long pages = src->want->pages, i;
	struct page *first;
	int err;

	err = tensor_chunks_grow(c, pages);
	if (err)
		return err;
	first = contig_split(src) ?: contig_range(src);
	if (!first)
		return -ENOMEM;
	/* from here on tensor_chunks_free() frees them, also after an error */
	for (i = 0; i < pages; i++)
		tensor_chunks_append(c, first + i, 0);
	/* keep the pool for chunks that others can use: these were expensive and are small */
	c->recycle = false;
	if (tensor_source_too_far(src, first, pages))
		return -ENOMEM;
	return tensor_zero(first, pages, true);
}

/**
 * tensor_contig_fill() - find the pages of a buffer in one piece
 * @c: filled in; empty before
 * @src: a request that tensor_contig_check() allows
 *
 * Return: 0; -ENOMEM, also where there is enough memory but none in one piece; -EINTR.
 */
int tensor_contig_fill(struct tensor_chunks *c, struct tensor_source *src)
{
	unsigned int order = get_order(src->want->pages << PAGE_SHIFT);
	struct page *head;
	int err;

	if (!is_power_of_2(src->want->pages) || order > TENSOR_TOP_ORDER)
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
