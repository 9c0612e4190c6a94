// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pool: chunks kept for later buffers and zeroed in the background.
 *
 * Allocating and zeroing a huge chunk is expensive, and a program that allocates and frees buffers
 * would do both each time. A chunk without other references is kept instead of freed: it goes to
 * the list of its node and order as dirty, until a thread of lowest priority (pool_thread.c) has
 * zeroed it.
 *
 * Invariants:
 *   - a pinned page gets no new owner: only a chunk with a single reference is kept;
 *   - an owner never sees the data of another: a chunk is handed out as zeroed, or as dirty;
 *   - a memory cgroup is not charged for memory that it has freed: charged pages are not kept;
 *   - the pool has a limit, and a shrinker frees all of it when memory is short.
 *
 * Locks: pool_mutex guards set-up, tear-down and trimming. Each node has a spinlock for its lists,
 * taken inside of it; nothing sleeps or allocates under one, and the shrinker only tries it.
 */
#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/shrinker.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "pool.h"

/* The value of the parameter when it was not given. */
#define POOL_DEFAULT ULLONG_MAX

static DEFINE_MUTEX(pool_mutex);
struct pool_node *tensor_pool;
static struct shrinker *pool_shrinker;
static unsigned long long pool_bytes = POOL_DEFAULT;

/* Pages in all lists and those that the thread is working on; pool_bytes bounds this. */
static atomic_long_t pool_held;

static atomic64_t pool_hits;
static atomic64_t pool_misses;
static atomic64_t pool_reclaimed;

/**
 * tensor_pool_limit() - the current bound of the pool
 *
 * Return: pages.
 */
long tensor_pool_limit(void)
{
	return min_t(u64, READ_ONCE(pool_bytes) >> PAGE_SHIFT, LONG_MAX);
}

/**
 * tensor_pool_reserve() - reserve room
 * @pages: number of pages
 *
 * Return: whether there is room; the caller owns it until tensor_pool_drop().
 */
bool tensor_pool_reserve(unsigned long pages)
{
	long limit = tensor_pool_limit(), old = atomic_long_read(&pool_held);

	do {
		if (old + (long)pages > limit)
			return false;
	} while (!atomic_long_try_cmpxchg(&pool_held, &old, old + pages));
	return true;
}

/* Free chunks that are on no list of the pool any more. Return their pages. */
static unsigned long pool_free(struct list_head *chunks)
{
	struct folio *folio, *next;
	unsigned long pages = 0;

	list_for_each_entry_safe(folio, next, chunks, lru) {
		list_del(&folio->lru);
		pages += folio_nr_pages(folio);
		folio_put(folio);
	}
	tensor_pool_drop(pages);
	return pages;
}

/**
 * tensor_pool_drop() - release reserved room
 * @pages: number of pages
 */
void tensor_pool_drop(unsigned long pages)
{
	atomic_long_sub(pages, &pool_held);
}

/**
 * tensor_pool_push() - add a chunk to its list
 * @node: its node
 * @folio: the chunk, with a single reference and reserved room; both pass to the pool
 * @zeroed: whether it is zeroed
 *
 * Return: true; or false if the bound was lowered since the reservation; then both stay with the
 * caller. A task that lowers the bound takes the lock afterwards, so it finds all chunks that were
 * added before.
 */
bool tensor_pool_push(struct pool_node *node, struct folio *folio, bool zeroed)
{
	unsigned int order = folio_order(folio);
	bool fits;

	spin_lock(&node->lock);
	fits = atomic_long_read(&pool_held) <= tensor_pool_limit();
	if (fits) {
		list_add(&folio->lru, zeroed ? &node->clean[order] : &node->dirty[order]);
		WRITE_ONCE(node->pages, node->pages + (1UL << order));
		if (zeroed && order == TENSOR_TOP_ORDER)
			WRITE_ONCE(node->ready, node->ready + (1UL << order));
	}
	spin_unlock(&node->lock);
	return fits;
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

/*
 * Take at least @pages pages off a node, if there are as many in orders below @below: dirty chunks
 * first, then small ones, which are cheapest to replace.
 */
static void pool_pop_many_locked(struct pool_node *node, unsigned long pages, unsigned int below,
				 struct list_head *chunks)
{
	unsigned int zeroed, order;
	unsigned long got = 0;

	for (zeroed = 0; zeroed < 2; zeroed++) {
		for (order = 0; order < below; order++) {
			struct folio *folio;

			while (got < pages && (folio = pool_pop_locked(node, order, zeroed))) {
				list_add(&folio->lru, chunks);
				got += 1UL << order;
			}
		}
	}
}

/**
 * tensor_pool_pop_dirty() - take a chunk that is not zeroed, largest first
 * @node: pool of a node
 *
 * Return: the chunk, whose room stays reserved, or NULL.
 */
struct folio *tensor_pool_pop_dirty(struct pool_node *node)
{
	struct folio *folio = NULL;
	int order;

	spin_lock(&node->lock);
	for (order = TENSOR_TOP_ORDER; order >= 0 && !folio; order--)
		folio = pool_pop_locked(node, order, false);
	spin_unlock(&node->lock);
	return folio;
}

/**
 * tensor_pool_take() - take a chunk out of the pool
 * @nid: its node
 * @order: its order
 * @zeroed: set if a chunk is returned: whether it is zeroed
 *
 * Only for requests that are not charged to a memory cgroup.
 *
 * Return: the chunk with one reference, owned by the caller, or NULL.
 */
struct page *tensor_pool_take(int nid, unsigned int order, bool *zeroed)
{
	struct pool_node *node = &tensor_pool[nid];
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
		tensor_pool_thread_wake();
	if (!folio) {
		atomic64_inc(&pool_misses);
		return NULL;
	}
	tensor_pool_drop(1UL << order);
	atomic64_inc(&pool_hits);
	return &folio->page;
}

/* Hardware-poisoned memory must not be used again. */
static bool pool_poisoned(struct folio *folio)
{
	long i, pages = IS_ENABLED(CONFIG_MEMORY_FAILURE) ? folio_nr_pages(folio) : 0;

	for (i = 0; i < pages; i++) {
		if (PageHWPoison(folio_page(folio, i)))
			return true;
	}
	return false;
}

/* Small chunks that no request wants must not keep a large one out. */
static bool pool_reserve_for(struct folio *folio)
{
	struct pool_node *node = &tensor_pool[folio_nid(folio)];
	unsigned long pages = folio_nr_pages(folio);
	LIST_HEAD(chunks);

	if (tensor_pool_reserve(pages))
		return true;
	if ((long)pages > tensor_pool_limit())
		return false;
	spin_lock(&node->lock);
	pool_pop_many_locked(node, pages, folio_order(folio), &chunks);
	spin_unlock(&node->lock);
	return pool_free(&chunks) && tensor_pool_reserve(pages);
}

/**
 * tensor_pool_put() - offer a chunk to the pool
 * @head: the chunk, unmapped, with the reference of the caller
 *
 * Return: whether the pool has taken the chunk and its reference.
 */
bool tensor_pool_put(struct page *head)
{
	struct folio *folio = page_folio(head);

	if (folio_ref_count(folio) != 1 || folio_memcg_kmem(folio) ||
	    folio_order(folio) > TENSOR_TOP_ORDER || pool_poisoned(folio))
		return false;
	if (!pool_reserve_for(folio))
		return false;
	/* flags that former mappings have left; free_pages() clears the others */
	folio_clear_dirty(folio);
	folio_clear_referenced(folio);
	if (!tensor_pool_push(&tensor_pool[folio_nid(folio)], folio, false)) {
		tensor_pool_drop(folio_nr_pages(folio));
		return false;
	}
	tensor_pool_thread_wake();
	return true;
}

/**
 * tensor_pool_stat() - content of the pool, and counters since the module was loaded
 * @stat: filled in
 */
void tensor_pool_stat(struct tensor_pool_stat *stat)
{
	stat->limit_bytes = (u64)tensor_pool_limit() << PAGE_SHIFT;
	stat->bytes = (u64)atomic_long_read(&pool_held) << PAGE_SHIFT;
	stat->hits = atomic64_read(&pool_hits);
	stat->misses = atomic64_read(&pool_misses);
	tensor_pool_thread_stat(stat);
	stat->reclaimed_bytes = atomic64_read(&pool_reclaimed);
}

static unsigned long pool_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return READ_ONCE(tensor_pool[sc->nid].pages) ?: SHRINK_EMPTY;
}

/**
 * tensor_pool_reclaim() - free memory of a node because it is short
 * @nid: the node
 * @pages: free at least so many, if the pool has them
 *
 * Only tries the lock of the node.
 *
 * Return: number of freed pages; SHRINK_STOP if the lock is taken.
 */
unsigned long tensor_pool_reclaim(int nid, unsigned long pages)
{
	struct pool_node *node = &tensor_pool[nid];
	unsigned long freed;
	LIST_HEAD(chunks);

	if (!spin_trylock(&node->lock))
		return SHRINK_STOP;
	pool_pop_many_locked(node, pages, TENSOR_ORDERS, &chunks);
	spin_unlock(&node->lock);
	tensor_pool_thread_pause();
	freed = pool_free(&chunks);
	atomic64_add((u64)freed << PAGE_SHIFT, &pool_reclaimed);
	return freed;
}

static unsigned long pool_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long freed = tensor_pool_reclaim(sc->nid, sc->nr_to_scan);

	if (freed != SHRINK_STOP)
		sc->nr_scanned = max(sc->nr_scanned, freed);
	return freed;
}

/* Free the chunks above @limit pages. */
static void pool_trim(unsigned long limit)
{
	LIST_HEAD(chunks);
	int nid;

	lockdep_assert_held(&pool_mutex);
	for_each_node_state(nid, N_MEMORY) {
		unsigned long held = atomic_long_read(&pool_held);

		if (held <= limit)
			return;
		spin_lock(&tensor_pool[nid].lock);
		pool_pop_many_locked(&tensor_pool[nid], held - limit, TENSOR_ORDERS, &chunks);
		spin_unlock(&tensor_pool[nid].lock);
		pool_free(&chunks);
		cond_resched();
	}
}

/**
 * tensor_pool_resize() - change the bound of the pool
 * @bytes: most bytes that it may hold; the excess is freed now. 0: no pool
 */
void tensor_pool_resize(u64 bytes)
{
	mutex_lock(&pool_mutex);
	WRITE_ONCE(pool_bytes, bytes);
	if (tensor_pool)
		pool_trim(tensor_pool_limit());
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
		 "Limit of the free chunks kept; 0: none; default: 1/64 of memory, at most 256 MiB");

static int pool_shrinker_init(void)
{
	pool_shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE, "tensor-pool");
	if (!pool_shrinker)
		return -ENOMEM;
	pool_shrinker->count_objects = pool_count;
	pool_shrinker->scan_objects = pool_scan;
	/* refilling the pool costs no I/O */
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
	tensor_pool = pool_nodes_new();
	if (!tensor_pool)
		return -ENOMEM;
	err = tensor_pool_thread_init();
	if (err)
		goto free_nodes;
	err = pool_shrinker_init();
	if (err)
		goto stop_thread;
	return 0;

stop_thread:
	tensor_pool_thread_exit();
free_nodes:
	kfree(tensor_pool);
	tensor_pool = NULL;
	return err;
}

/**
 * tensor_pool_init() - create an empty pool
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
 * tensor_pool_exit() - free the pool; nothing uses it any more
 */
void tensor_pool_exit(void)
{
	mutex_lock(&pool_mutex);
	shrinker_free(pool_shrinker);
	tensor_pool_thread_exit();
	pool_trim(0);
	kfree(tensor_pool);
	tensor_pool = NULL;
	mutex_unlock(&pool_mutex);
}
