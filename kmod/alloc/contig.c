// SPDX-License-Identifier: GPL-2.0-only
/*
 * Physically contiguous memory, for devices that cannot gather.
 *
 * In order of price: a single chunk; a power of two of single pages, of which those that are too
 * many are given back; an area set aside for this (CMA, reached through a device of our own, as for
 * any driver's); ordinary memory made contiguous by moving what is in the way, where the kernel
 * lends that to modules.
 *
 * All but the first are kept as single pages, each with its own reference, because each may be
 * mapped and pinned by itself. Those of an area must go back to it all at once and unreferenced. So
 * an area that somebody still has pinned pages of waits, and the module with it, until they let go.
 *
 * The core charges neither of the last two to a memory cgroup. An area is bounded by itself; the
 * last one is only for those who are charged for nothing anyway.
 *
 * Lock: contig_lock guards the list of areas that wait; nothing is taken inside of it.
 */
#include <linux/cc_platform.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "alloc.h"

/**
 * struct tensor_area - a part of a CMA area
 * @list: while it waits
 * @dev: whose it is
 * @first: first page
 * @pages: how many
 * @dma: address of it for @dev
 */
struct tensor_area {
	struct list_head list;
	struct device *dev;
	struct page *first;
	unsigned long pages;
	dma_addr_t dma;
};

/* Nobody's hardware: what makes areas available to us. The second one reaches up to 4 GiB only. */
static struct device *contig_dev;
static struct device *contig_dev32;

static DEFINE_SPINLOCK(contig_lock);
static LIST_HEAD(contig_waiting);

static bool area_busy(const struct tensor_area *area)
{
	unsigned long i;

	for (i = 0; i < area->pages; i++) {
		if (page_count(area->first + i) != 1)
			return true;
	}
	return false;
}

static void area_free(struct tensor_area *area)
{
	dma_free_pages(area->dev, area->pages << PAGE_SHIFT, area->first, area->dma,
		       DMA_BIDIRECTIONAL);
	kfree(area);
}

static void contig_work_run(struct work_struct *work);
static DECLARE_DELAYED_WORK(contig_work, contig_work_run);

/* The lock is not held for long: nobody but us takes areas off the list. */
static void contig_work_run(struct work_struct *work)
{
	struct tensor_area *area, *next;
	LIST_HEAD(mine);

	spin_lock(&contig_lock);
	list_splice_init(&contig_waiting, &mine);
	spin_unlock(&contig_lock);
	list_for_each_entry_safe(area, next, &mine, list) {
		if (area_busy(area))
			continue;
		list_del(&area->list);
		area_free(area);
		/* tear-down waits for us */
		module_put(THIS_MODULE);
	}
	if (list_empty(&mine))
		return;
	spin_lock(&contig_lock);
	list_splice(&mine, &contig_waiting);
	spin_unlock(&contig_lock);
	schedule_delayed_work(&contig_work, HZ);
}

/**
 * tensor_area_put() - give an area back, or have that done when it can be
 * @area: the area; each of its pages has one reference that is ours
 */
void tensor_area_put(struct tensor_area *area)
{
	if (!area_busy(area)) {
		area_free(area);
		return;
	}
	__module_get(THIS_MODULE);
	spin_lock(&contig_lock);
	list_add(&area->list, &contig_waiting);
	spin_unlock(&contig_lock);
	schedule_delayed_work(&contig_work, HZ);
}

static struct page *contig_area(struct tensor_source *src, struct tensor_area **out)
{
	struct device *dev = src->want->dma32 ? contig_dev32 : contig_dev;
	struct tensor_area *area;

	/* what devices share with such a guest is not encrypted, but what processes map is */
	if (!dev || cc_platform_has(CC_ATTR_MEM_ENCRYPT))
		return NULL;
	area = kzalloc(sizeof(*area), GFP_KERNEL_ACCOUNT);
	if (!area)
		return NULL;
	area->dev = dev;
	area->pages = src->want->pages;
	area->first = dma_alloc_pages(dev, area->pages << PAGE_SHIFT, &area->dma,
				      DMA_BIDIRECTIONAL, GFP_KERNEL | __GFP_NOWARN);
	if (!area->first) {
		kfree(area);
		return NULL;
	}
	*out = area;
	return area->first;
}

/* Single pages, of which those that nobody wants go back at once. */
static struct page *contig_split(struct tensor_source *src)
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
	for (i = pages; i < 1UL << order; i++)
		__free_page(first + i);
	return first;
}

static struct page *contig_range(struct tensor_source *src)
{
	gfp_t gfp = GFP_USER | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	int node = src->node == NUMA_NO_NODE ? numa_mem_id() : src->node;

	if (src->gfp & __GFP_ACCOUNT)
		return NULL;
	return tensor_alloc_contig_pages(src->want->pages, gfp | (src->gfp & GFP_ZONEMASK), node,
					 src->want->node_only);
}

static void contig_free(struct page *first, unsigned long pages, struct tensor_area *area)
{
	unsigned long i;

	if (area) {
		tensor_area_put(area);
		return;
	}
	for (i = 0; i < pages; i++)
		put_page(first + i);
}

static bool contig_fits(const struct tensor_source *src, struct page *first)
{
	const struct tensor_want *want = src->want;

	if (want->node_only && page_to_nid(first) != want->node)
		return false;
	return !tensor_source_too_far(src, first, want->pages);
}

static int contig_pages(struct tensor_chunks *c, struct tensor_source *src)
{
	unsigned long pages = src->want->pages, i;
	struct tensor_area *area = NULL;
	struct page *first;
	int err;

	err = tensor_chunks_grow(c, pages);
	if (err)
		return err;
	first = contig_split(src) ?: contig_area(src, &area) ?: contig_range(src);
	if (!first)
		return -ENOMEM;
	err = contig_fits(src, first) ? 0 : -ENOMEM;
	/* an area comes zeroed */
	if (!err && !area)
		err = tensor_zero(first, pages, true);
	if (err) {
		contig_free(first, pages, area);
		return err;
	}
	for (i = 0; i < pages; i++)
		tensor_chunks_append(c, first + i, 0);
	c->area = area;
	/* so many single pages are of no use to anybody else */
	c->recycle = false;
	return 0;
}

/**
 * tensor_contig_fill() - find the pages of a buffer in one piece
 * @c: filled in; empty before
 * @src: where from
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

static struct device *contig_dev_new(const char *name, u64 mask)
{
	/* no link to a module whose folder in sysfs may not be there yet */
	struct device *dev = __root_device_register(name, NULL);

	if (!IS_ERR(dev) && dma_coerce_mask_and_coherent(dev, mask)) {
		root_device_unregister(dev);
		return ERR_PTR(-EIO);
	}
	return dev;
}

/**
 * tensor_contig_init() - get at the areas that were set aside, if this kernel does that
 *
 * Return: 0 or -errno.
 */
int tensor_contig_init(void)
{
	struct device *dev, *dev32;

	if (!IS_ENABLED(CONFIG_DMA_CMA))
		return 0;
	dev = contig_dev_new("tensor-dma", DMA_BIT_MASK(64));
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	dev32 = contig_dev_new("tensor-dma32", DMA_BIT_MASK(32));
	if (IS_ERR(dev32)) {
		root_device_unregister(dev);
		return PTR_ERR(dev32);
	}
	contig_dev = dev;
	contig_dev32 = dev32;
	return 0;
}

/**
 * tensor_contig_exit() - undo tensor_contig_init(); no area is left
 */
void tensor_contig_exit(void)
{
	/* the last area may have let the module go a moment ago */
	cancel_delayed_work_sync(&contig_work);
	WARN_ON_ONCE(!list_empty(&contig_waiting));
	if (!IS_ENABLED(CONFIG_DMA_CMA))
		return;
	root_device_unregister(contig_dev32);
	root_device_unregister(contig_dev);
	contig_dev32 = NULL;
	contig_dev = NULL;
}
