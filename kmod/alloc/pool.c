// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chunks kept between one buffer and the next, zeroed in the background.
 *
 * Half of what a huge chunk costs is to find it, the other half to zero it, and a program that
 * makes and drops buffers pays both each time. A chunk that nobody else refers to is kept instead
 * of freed: on the list of its node and order, dirty, until a thread of lowest priority has zeroed
 * it. While huge chunks are asked for the same thread fetches fresh ones, if they are there for the
 * taking: when fewer are ready than a quarter of the node's share, until half of it is ready.
 *
 * What must never happen here:
 *   - a page that somebody has pinned comes to a new owner: only one whose single reference is ours
 *     is kept;
 *   - one owner sees what another left: a chunk leaves as zeroed, or is handed out as dirty;
 *   - a memory cgroup pays for what it has given back: charged pages are not kept;
 *   - the machine starves while we hoard: there is a bound, and a shrinker gives all of it back.
 *
 * Locks: pool_mutex guards set-up, tear-down and trimming. Each node has a spinlock for its lists,
 * taken inside of it; nothing sleeps or allocates under one, and the shrinker only tries it.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/shrinker.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "alloc.h"

/* The parameter was not given. */
#define POOL_DEFAULT	ULLONG_MAX

/* How long the thread lets those in the foreground alone, and how long after a shrink it fetches
 * nothing.
 */
#define POOL_DELAY	msecs_to_jiffies(20)
#define POOL_QUIET	(10 * HZ)

/**
 * struct pool_node - what is kept of a node
 * @lock: guards all of it
 * @clean: zeroed chunks of each order
 * @dirty: chunks of each order as their last owner left them
 * @pages: pages in both
 * @ready: pages in @clean of the top order
 * @asked: a chunk of the top order was asked for since the thread last looked
 */
struct pool_node {
	spinlock_t lock; /* guards the struct */
	struct list_head clean[TENSOR_ORDERS];
	struct list_head dirty[TENSOR_ORDERS];
	unsigned long pages;
	unsigned long ready;
	bool asked;
};

static DEFINE_MUTEX(pool_mutex);
static struct pool_node *pool;
static struct kthread_worker *pool_thread;
static struct shrinker *pool_shrinker;
static unsigned long pool_quiet_until;
static unsigned long long pool_bytes = POOL_DEFAULT;

/* Pages in all lists, and those that the thread has in hand: what pool_bytes bounds. */
static atomic_long_t pool_held;

static atomic64_t pool_hits;
static atomic64_t pool_misses;
static atomic64_t pool_zeroed;
static atomic64_t pool_fetched;
static atomic64_t pool_reclaimed;

static unsigned long pool_limit(void)
{
	return min_t(u64, READ_ONCE(pool_bytes) >> PAGE_SHIFT, LONG_MAX);
}

static bool pool_reserve(unsigned long pages)
{
	long limit = pool_limit(), old = atomic_long_read(&pool_held);

	do {
		if (old + (long)pages > limit)
			return false;
	} while (!atomic_long_try_cmpxchg(&pool_held, &old, old + pages));
	return true;
}

/* Gives chunks back to the core that are on no list of the pool any more. Returns their pages. */
static unsigned long pool_free(struct list_head *chunks)
{
	struct folio *folio, *next;
	unsigned long pages = 0;

	list_for_each_entry_safe(folio, next, chunks, lru) {
		list_del(&folio->lru);
		pages += folio_nr_pages(folio);
		folio_put(folio);
	}
	atomic_long_sub(pages, &pool_held);
	return pages;
}

static void pool_push(struct pool_node *node, struct folio *folio, bool zeroed)
{
	unsigned int order = folio_order(folio);

	spin_lock(&node->lock);
	list_add(&folio->lru, zeroed ? &node->clean[order] : &node->dirty[order]);
	WRITE_ONCE(node->pages, node->pages + (1UL << order));
	if (zeroed && order == TENSOR_TOP_ORDER)
		WRITE_ONCE(node->ready, node->ready + (1UL << order));
	spin_unlock(&node->lock);
}

static struct folio *pool_pop_locked(struct pool_node *node, unsigned int order, bool zeroed)
{
	struct list_head *list = zeroed ? &node->clean[order] : &node->dirty[order];
	struct folio *folio = list_first_entry_or_null(list, struct folio, lru);

	lockdep_assert_held(&node->lock);
	if (!folio)
		return NULL;
	list_del(&folio->lru);
	WRITE_ONCE(node->pages, node->pages - (1UL << order));
	if (zeroed && order == TENSOR_TOP_ORDER)
		WRITE_ONCE(node->ready, node->ready - (1UL << order));
	return folio;
}

/* Takes at least @pages off a node, those first that are of least worth: dirty ones, small ones. */
static void pool_pop_many_locked(struct pool_node *node, unsigned long pages,
				 struct list_head *chunks)
{
	unsigned int zeroed, order;
	unsigned long got = 0;

	for (zeroed = 0; zeroed < 2; zeroed++) {
		for (order = 0; order < TENSOR_ORDERS; order++) {
			struct folio *folio;

			while (got < pages && (folio = pool_pop_locked(node, order, zeroed))) {
				list_add(&folio->lru, chunks);
				got += 1UL << order;
			}
		}
	}
}

static struct folio *pool_pop_dirty(struct pool_node *node)
{
	struct folio *folio = NULL;
	int order;

	spin_lock(&node->lock);
	for (order = TENSOR_TOP_ORDER; order >= 0 && !folio; order--)
		folio = pool_pop_locked(node, order, false);
	spin_unlock(&node->lock);
	return folio;
}

static void pool_drop(struct folio *folio)
{
	atomic_long_sub(folio_nr_pages(folio), &pool_held);
	folio_put(folio);
}

/* Memory that is broken must not come to anybody again. */
static bool pool_poisoned(struct folio *folio)
{
	long i, pages = IS_ENABLED(CONFIG_MEMORY_FAILURE) ? folio_nr_pages(folio) : 0;

	for (i = 0; i < pages; i++) {
		if (PageHWPoison(folio_page(folio, i)))
			return true;
	}
	return false;
}

static void pool_zero_dirty(struct pool_node *node)
{
	struct folio *folio;

	while ((folio = pool_pop_dirty(node))) {
		if (pool_poisoned(folio) ||
		    tensor_zero(&folio->page, folio_nr_pages(folio), false)) {
			pool_drop(folio);
			continue;
		}
		atomic64_add(folio_size(folio), &pool_zeroed);
		pool_push(node, folio, true);
	}
}

/* Only what is free already: nothing is reclaimed or moved to fill a pool. */
static struct folio *pool_fetch_chunk(int nid)
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

static void pool_fetch(int nid)
{
	unsigned long share = pool_limit() / num_node_state(N_MEMORY);
	unsigned long pages = 1UL << TENSOR_TOP_ORDER;
	struct pool_node *node = &pool[nid];
	struct folio *folio;

	if (!READ_ONCE(node->asked) || READ_ONCE(node->ready) >= share / 4)
		return;
	WRITE_ONCE(node->asked, false);
	while (time_after_eq(jiffies, READ_ONCE(pool_quiet_until)) &&
	       READ_ONCE(node->ready) + pages <= share / 2 && pool_reserve(pages)) {
		folio = pool_fetch_chunk(nid);
		if (!folio) {
			atomic_long_sub(pages, &pool_held);
			return;
		}
		atomic64_add(folio_size(folio), &pool_fetched);
		pool_push(node, folio, true);
	}
}

static void pool_work_run(struct kthread_work *work)
{
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		pool_zero_dirty(&pool[nid]);
		pool_fetch(nid);
	}
}

static DEFINE_KTHREAD_DELAYED_WORK(pool_work, pool_work_run);

/* Later, so that who has just asked or given back can go on at full speed. */
static void pool_wake(void)
{
	kthread_queue_delayed_work(pool_thread, &pool_work, POOL_DELAY);
}

/**
 * tensor_pool_take() - take a chunk out of the pool
 * @nid: its node
 * @order: its order
 * @zeroed: set if there is one: whether it is zeroed
 *
 * Only for requests that no memory cgroup would be charged for.
 *
 * Return: the chunk with one reference, the caller's, or NULL.
 */
struct page *tensor_pool_take(int nid, unsigned int order, bool *zeroed)
{
	struct pool_node *node = &pool[nid];
	struct folio *folio;

	if (!READ_ONCE(pool_bytes))
		return NULL;
	spin_lock(&node->lock);
	folio = pool_pop_locked(node, order, true);
	*zeroed = folio;
	if (!folio)
		folio = pool_pop_locked(node, order, false);
	if (order == TENSOR_TOP_ORDER)
		WRITE_ONCE(node->asked, true);
	spin_unlock(&node->lock);
	if (order == TENSOR_TOP_ORDER)
		pool_wake();
	if (!folio) {
		atomic64_inc(&pool_misses);
		return NULL;
	}
	atomic_long_sub(1UL << order, &pool_held);
	atomic64_inc(&pool_hits);
	return &folio->page;
}

/**
 * tensor_pool_put() - offer a chunk to the pool
 * @head: the chunk, with the reference of the caller, who has no mapping of it left
 *
 * Return: whether the pool has taken it, and with it the reference.
 */
bool tensor_pool_put(struct page *head)
{
	struct folio *folio = page_folio(head);

	if (folio_ref_count(folio) != 1 || folio_memcg_kmem(folio) ||
	    folio_order(folio) > TENSOR_TOP_ORDER)
		return false;
	if (!pool_reserve(folio_nr_pages(folio)))
		return false;
	/* what mappings of it have left; the rest is cleared when it is freed */
	folio_clear_dirty(folio);
	folio_clear_referenced(folio);
	pool_push(&pool[folio_nid(folio)], folio, false);
	pool_wake();
	return true;
}

/**
 * tensor_pool_stat() - what the pool has and has done since the module was loaded
 * @stat: filled in
 */
void tensor_pool_stat(struct tensor_pool_stat *stat)
{
	stat->limit_bytes = (u64)pool_limit() << PAGE_SHIFT;
	stat->bytes = (u64)atomic_long_read(&pool_held) << PAGE_SHIFT;
	stat->hits = atomic64_read(&pool_hits);
	stat->misses = atomic64_read(&pool_misses);
	stat->zeroed_bytes = atomic64_read(&pool_zeroed);
	stat->fetched_bytes = atomic64_read(&pool_fetched);
	stat->reclaimed_bytes = atomic64_read(&pool_reclaimed);
}

static unsigned long pool_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return READ_ONCE(pool[sc->nid].pages) ?: SHRINK_EMPTY;
}

static unsigned long pool_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct pool_node *node = &pool[sc->nid];
	unsigned long pages;
	LIST_HEAD(chunks);

	if (!spin_trylock(&node->lock))
		return SHRINK_STOP;
	pool_pop_many_locked(node, sc->nr_to_scan, &chunks);
	spin_unlock(&node->lock);
	WRITE_ONCE(pool_quiet_until, jiffies + POOL_QUIET);
	pages = pool_free(&chunks);
	sc->nr_scanned = max(sc->nr_scanned, pages);
	atomic64_add((u64)pages << PAGE_SHIFT, &pool_reclaimed);
	return pages;
}

/* Free what is above @limit pages. */
static void pool_trim(unsigned long limit)
{
	LIST_HEAD(chunks);
	int nid;

	lockdep_assert_held(&pool_mutex);
	for_each_node_state(nid, N_MEMORY) {
		unsigned long held = atomic_long_read(&pool_held);

		if (held <= limit)
			return;
		spin_lock(&pool[nid].lock);
		pool_pop_many_locked(&pool[nid], held - limit, &chunks);
		spin_unlock(&pool[nid].lock);
		pool_free(&chunks);
		cond_resched();
	}
}

/**
 * tensor_pool_resize() - give the pool another bound
 * @bytes: most bytes it may hold; what is above is freed now. 0: no pool
 */
void tensor_pool_resize(u64 bytes)
{
	mutex_lock(&pool_mutex);
	WRITE_ONCE(pool_bytes, bytes);
	if (pool)
		pool_trim(pool_limit());
	mutex_unlock(&pool_mutex);
}

static int pool_bytes_set(const char *text, const struct kernel_param *kp)
{
	unsigned long long bytes;
	int err = kstrtoull(text, 0, &bytes);

	if (!err)
		tensor_pool_resize(bytes);
	return err;
}

static const struct kernel_param_ops pool_bytes_ops = {
	.set = pool_bytes_set,
	.get = param_get_ullong,
};
module_param_cb(pool_bytes, &pool_bytes_ops, &pool_bytes, 0644);
MODULE_PARM_DESC(pool_bytes,
		 "Most bytes of free chunks to keep; 0: none; default: 1/64 of memory, 256 MiB at most");

static int pool_shrinker_init(void)
{
	pool_shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE, "tensor-pool");
	if (!pool_shrinker)
		return -ENOMEM;
	pool_shrinker->count_objects = pool_count;
	pool_shrinker->scan_objects = pool_scan;
	/* what is in here costs no I/O to have again */
	pool_shrinker->seeks = 0;
	shrinker_register(pool_shrinker);
	return 0;
}

static struct pool_node *pool_nodes_new(void)
{
	struct pool_node *nodes = kcalloc(nr_node_ids, sizeof(*nodes), GFP_KERNEL);
	int nid, order;

	for (nid = 0; nodes && nid < nr_node_ids; nid++) {
		spin_lock_init(&nodes[nid].lock);
		for (order = 0; order < TENSOR_ORDERS; order++) {
			INIT_LIST_HEAD(&nodes[nid].clean[order]);
			INIT_LIST_HEAD(&nodes[nid].dirty[order]);
		}
	}
	return nodes;
}

static int pool_init_locked(void)
{
	int err;

	if (pool_bytes == POOL_DEFAULT)
		pool_bytes = min_t(u64, (u64)totalram_pages() / 64 * PAGE_SIZE, SZ_256M);
	pool_quiet_until = jiffies;
	pool = pool_nodes_new();
	if (!pool)
		return -ENOMEM;
	pool_thread = kthread_run_worker(0, "tensor-pool");
	if (IS_ERR(pool_thread)) {
		err = PTR_ERR(pool_thread);
		goto free_nodes;
	}
	set_user_nice(pool_thread->task, MAX_NICE);
	err = pool_shrinker_init();
	if (err)
		goto stop_thread;
	return 0;

stop_thread:
	kthread_destroy_worker(pool_thread);
free_nodes:
	kfree(pool);
	pool = NULL;
	return err;
}

/**
 * tensor_pool_init() - have a pool, empty
 *
 * Return: 0 or -errno.
 */
int tensor_pool_init(void)
{
	int err;

	mutex_lock(&pool_mutex);
	err = pool_init_locked();
	mutex_unlock(&pool_mutex);
	return err;
}

/**
 * tensor_pool_exit() - free what is in the pool; nobody gives or takes any more
 */
void tensor_pool_exit(void)
{
	mutex_lock(&pool_mutex);
	shrinker_free(pool_shrinker);
	kthread_cancel_delayed_work_sync(&pool_work);
	kthread_destroy_worker(pool_thread);
	pool_trim(0);
	kfree(pool);
	pool = NULL;
	mutex_unlock(&pool_mutex);
}
