// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pool's thread: zeroes chunks that were freed, and allocates huge chunks in advance.
 *
 * It has the lowest priority, so that it uses idle time only. It allocates in advance only while
 * huge chunks are requested, only memory that is already free, and not right after memory was
 * short. It starts when fewer zeroed chunks are ready than a quarter of the node's share of the
 * pool and stops at half of that share.
 *
 * Lock: none of its own; see pool.c.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/nodemask.h>
#include <linux/sched.h>

#include "pool.h"

#define WAKE_DELAY msecs_to_jiffies(20)
#define QUIET	   (10 * HZ)

static struct kthread_worker *thread;
static struct kthread_delayed_work work;
static unsigned long quiet_until;
static atomic64_t zeroed;
static atomic64_t fetched;

/* Add a chunk with reserved room to the pool, if it is zeroed and the bound was not lowered. */
static bool pool_add(struct pool_node *node, struct folio *folio, bool is_zeroed)
{
	if (is_zeroed && tensor_pool_push(node, folio, true))
		return true;
	tensor_pool_drop(folio_nr_pages(folio));
	folio_put(folio);
	return false;
}

static void zero_dirty(struct pool_node *node)
{
	struct folio *folio;
	size_t bytes;

	while ((folio = tensor_pool_pop_dirty(node))) {
		bytes = folio_size(folio);
		if (pool_add(node, folio, !tensor_zero(&folio->page, bytes >> PAGE_SHIFT, false)))
			atomic64_add(bytes, &zeroed);
	}
}

/* Only memory that is already free: nothing is reclaimed or migrated to fill the pool. */
static struct folio *fetch_chunk(int nid)
{
	gfp_t gfp = (GFP_HIGHUSER & ~__GFP_RECLAIM) | __GFP_COMP | __GFP_NOWARN | __GFP_THISNODE;
	struct page *head = alloc_pages_node(nid, gfp, TENSOR_TOP_ORDER);

	if (!head)
		return NULL;
	if (!tensor_zero_by_core() && tensor_zero(head, 1UL << TENSOR_TOP_ORDER, false)) {
		put_page(head);
		return NULL;
	}
	return page_folio(head);
}

static void fetch(int nid)
{
	unsigned long share = tensor_pool_limit() / num_node_state(N_MEMORY);
	unsigned long pages = 1UL << TENSOR_TOP_ORDER;
	struct pool_node *node = &tensor_pool[nid];
	struct folio *folio;

	if (!READ_ONCE(node->asked) || READ_ONCE(node->ready) >= share / 4)
		return;
	WRITE_ONCE(node->asked, false);
	while (time_after_eq(jiffies, READ_ONCE(quiet_until)) &&
	       READ_ONCE(node->ready) + pages <= share / 2 && tensor_pool_reserve(pages)) {
		folio = fetch_chunk(nid);
		if (!folio) {
			tensor_pool_drop(pages);
			return;
		}
		if (pool_add(node, folio, true))
			atomic64_add(PAGE_SIZE << TENSOR_TOP_ORDER, &fetched);
	}
}

static void work_run(struct kthread_work *unused)
{
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		zero_dirty(&tensor_pool[nid]);
		fetch(nid);
	}
}

/**
 * tensor_pool_thread_wake() - schedule the thread, because there is work for it
 *
 * It runs after a delay, so that it does not slow down the caller.
 */
void tensor_pool_thread_wake(void)
{
	kthread_queue_delayed_work(thread, &work, WAKE_DELAY);
}

/**
 * tensor_pool_thread_pause() - allocate nothing in advance for a while, because memory is short
 */
void tensor_pool_thread_pause(void)
{
	WRITE_ONCE(quiet_until, jiffies + QUIET);
}

/**
 * tensor_pool_thread_stat() - counters of the thread since the module was loaded
 * @stat: the members for these counters are filled in
 */
void tensor_pool_thread_stat(struct tensor_pool_stat *stat)
{
	stat->zeroed_bytes = atomic64_read(&zeroed);
	stat->fetched_bytes = atomic64_read(&fetched);
}

/**
 * tensor_pool_thread_init() - start the thread
 *
 * Return: 0 or -errno.
 */
int tensor_pool_thread_init(void)
{
	struct kthread_worker *worker = kthread_run_worker(0, "tensor-pool");

	if (IS_ERR(worker))
		return PTR_ERR(worker);
	set_user_nice(worker->task, MAX_NICE);
	/* a work item remembers its former thread */
	kthread_init_delayed_work(&work, work_run);
	quiet_until = jiffies;
	thread = worker;
	return 0;
}

/**
 * tensor_pool_thread_exit() - stop the thread; pending work is dropped
 */
void tensor_pool_thread_exit(void)
{
	kthread_cancel_delayed_work_sync(&work);
	kthread_destroy_worker(thread);
	thread = NULL;
}
