// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where one chunk comes from: which node, which zone, who is charged, and whether the pool or the
 * core gives it. All of that is decided once a request; what is left for each chunk is its order.
 *
 * Pages are charged to the memory cgroup of the caller. Those of the root cgroup, or all of them
 * with account=N, are not charged, and only these requests are served from the pool: a page of the
 * pool is charged to no cgroup, so a container could otherwise exceed its limit.
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
MODULE_PARM_DESC(account, "Charge buffers to the memory cgroup of who allocates them (default: Y)");

/* Node of the chunk that was interleaved last, so that not all buffers begin on the same one. */
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
 * tensor_source_charged() - is memory of the calling task charged to a memory cgroup?
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
 * @want: the request; must outlive @src
 *
 * Never movable: a buffer cannot follow a migration. So neither ZONE_MOVABLE nor CMA is used.
 */
void tensor_source_init(struct tensor_source *src, const struct tensor_want *want)
{
	bool charge = tensor_source_charged();

	src->want = want;
	src->node = want->interleave ? next_node_allowed(READ_ONCE(last_node)) : want->node;
	src->gfp = __GFP_COMP | __GFP_NOWARN;
	/* that zone lies below all memory that would be high */
	src->gfp |= want->dma32 ? GFP_USER | GFP_DMA32 : GFP_HIGHUSER;
	if (charge)
		src->gfp |= __GFP_ACCOUNT;
	if (want->node_only)
		src->gfp |= __GFP_THISNODE;
	src->least = want->contig ? TENSOR_TOP_ORDER : want->min_order;
	src->pool = !charge && !want->dma32;
}

/* Pages of the pool lie where a task without a policy finds them; no answer to one with a policy */
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
 * A large order is optional, so it may not cause reclaim beyond one attempt; the smallest may wait
 * for reclaim. Either flag keeps the OOM killer out, also that of a full memory cgroup: the caller
 * gets -ENOMEM.
 */
static struct page *source_core(const struct tensor_source *src, unsigned int order)
{
	gfp_t gfp = src->gfp;

	gfp |= order > src->least ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL;
	/* alloc_pages() asks the task's memory policy, alloc_pages_node() does not */
	if (src->node == NUMA_NO_NODE)
		return alloc_pages(gfp, order);
	return alloc_pages_node(src->node, gfp, order);
}

/**
 * tensor_source_too_far() - is this memory beyond what the request allows?
 * @src: where it comes from
 * @page: the first page of it
 * @pages: how many
 *
 * Where there is no zone for it, the lowest one may still reach too far.
 *
 * Return: whether it is.
 */
bool tensor_source_too_far(const struct tensor_source *src, struct page *page, unsigned long pages)
{
	return src->want->dma32 && PFN_PHYS(page_to_pfn(page) + pages) > SZ_4G;
}

/**
 * tensor_source_get() - get a chunk
 * @src: what tensor_source_init() decided
 * @order: of the chunk
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
	if (src->want->interleave) {
		WRITE_ONCE(last_node, src->node);
		src->node = next_node_allowed(src->node);
	}
	return head;
}
