// SPDX-License-Identifier: GPL-2.0-only
/*
 * The source of a chunk: its node, its zone, who is charged, and whether the pool or the core
 * provides it. All of this is decided once per request; only the order differs between chunks.
 *
 * Pages are charged to the memory cgroup of the caller. Pages of the root cgroup, or all pages with
 * account=N, are not charged, and only these requests are served from the pool: its pages are
 * charged to no cgroup, so a container could otherwise exceed its limit.
 */
#include <linux/cpuset.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nodemask.h>
#include <linux/pfn.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/topology.h>

#include "alloc.h"

bool tensor_param_account = true;
module_param_named(account, tensor_param_account, bool, 0644);
MODULE_PARM_DESC(account,
		 "Charge buffers to the memory cgroup of the task that allocates them (default: Y)");

/* Node of the last interleaved chunk, so that buffers begin on different nodes. */
static int last_node = NUMA_NO_NODE;

#ifdef CONFIG_MEMCG
static bool is_in_cgroup(void)
{
	struct mem_cgroup *memcg;
	bool inside;

	if (mem_cgroup_disabled())
		return false;
	rcu_read_lock();
	memcg = mem_cgroup_from_task(current);
	inside = memcg && memcg->css.parent;
	rcu_read_unlock();
	return inside;
}
#else
static bool is_in_cgroup(void)
{
	return false;
}
#endif

static bool has_policy(void)
{
#ifdef CONFIG_NUMA
	return current->mempolicy;
#else
	return false;
#endif
}

static int next_node_allowed(int node)
{
	nodemask_t allowed;

	nodes_and(allowed, node_states[N_MEMORY], cpuset_current_mems_allowed);
	if (nodes_empty(allowed))
		allowed = node_states[N_MEMORY];
	node = next_node(node, allowed);
	return node < MAX_NUMNODES ? node : first_node(allowed);
}

/**
 * tensor_source_charged() - whether memory of the calling task is charged to a memory cgroup
 *
 * Return: whether it is.
 */
bool tensor_source_charged(void)
{
	return READ_ONCE(tensor_param_account) && is_in_cgroup();
}

/**
 * tensor_source_init() - decide where the chunks of a request come from
 * @src: filled in
 * @request: the request; must outlive @src
 *
 * Pages are never movable, because a buffer does not support migration. So neither ZONE_MOVABLE nor
 * CMA is used.
 */
void tensor_source_init(struct tensor_source *src, const struct tensor_request *request)
{
	bool charge = tensor_source_charged();

	src->request = request;
	src->node = request->interleave ? next_node_allowed(READ_ONCE(last_node)) : request->node;
	src->gfp = __GFP_COMP | __GFP_NOWARN;
	/* ZONE_DMA32 lies below all highmem */
	src->gfp |= request->dma32 ? GFP_USER | GFP_DMA32 : GFP_HIGHUSER;
	if (charge)
		src->gfp |= __GFP_ACCOUNT;
	if (request->node_only)
		src->gfp |= __GFP_THISNODE;
	src->least = request->contig ? TENSOR_TOP_ORDER : request->min_order;
	src->pool = !charge && !request->dma32;
}

/*
 * The pool serves from the local node, which would ignore the memory policy of a task that has one.
 */
static struct page *source_pool(const struct tensor_source *src, unsigned int order, bool *zeroed)
{
	int node = src->node;

	if (node == NUMA_NO_NODE) {
		node = numa_mem_id();
		if (has_policy())
			return NULL;
	}
	if (!node_isset(node, cpuset_current_mems_allowed))
		return NULL;
	return tensor_pool_take(node, order, zeroed);
}

/*
 * A large order is optional, so it must not cause reclaim beyond one attempt; the smallest order
 * may wait for reclaim. Either flag keeps the OOM killer out, also that of a full memory cgroup:
 * the caller gets -ENOMEM.
 */
static struct page *source_core(const struct tensor_source *src, unsigned int order)
{
	gfp_t gfp = src->gfp;

	gfp |= order > src->least ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL;
	/* alloc_pages() follows the task's memory policy, alloc_pages_node() does not */
	if (src->node == NUMA_NO_NODE)
		return alloc_pages(gfp, order);
	return alloc_pages_node(src->node, gfp, order);
}

/**
 * tensor_source_too_far() - whether pages lie above the address limit of the request
 * @src: the source
 * @page: the first page
 * @pages: number of pages
 *
 * Without a ZONE_DMA32 the lowest zone may extend beyond 4 GiB.
 *
 * Return: whether they do.
 */
bool tensor_source_too_far(const struct tensor_source *src, struct page *page, unsigned long pages)
{
	return src->request->dma32 && PFN_PHYS(page_to_pfn(page) + pages) > SZ_4G;
}

/**
 * tensor_source_get() - allocate a chunk
 * @src: filled in by tensor_source_init()
 * @order: order of the chunk
 *
 * Return: a zeroed chunk with one reference; NULL if there is none of this order; an ERR_PTR() of
 * -EINTR.
 */
struct page *tensor_source_get(struct tensor_source *src, unsigned int order)
{
	struct page *head = NULL;
	bool zeroed;
	int err = 0;

	if (src->pool)
		head = source_pool(src, order, &zeroed);
	if (!head) {
		head = source_core(src, order);
		zeroed = tensor_zero_by_core();
	}
	if (!head)
		return NULL;
	if (tensor_source_too_far(src, head, 1UL << order)) {
		put_page(head);
		return NULL;
	}
	if (!zeroed)
		err = tensor_zero(head, 1UL << order, true);
	if (err) {
		put_page(head);
		return ERR_PTR(err);
	}
	if (src->request->interleave) {
		WRITE_ONCE(last_node, src->node);
		src->node = next_node_allowed(src->node);
	}
	return head;
}
