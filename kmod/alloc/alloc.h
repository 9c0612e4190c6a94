/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Allocation of a buffer's pages, and the accounting and limits of users.
 *
 *	chunks  all pages of a buffer                              chunks.c fill.c
 *	source  where one chunk of them comes from                 source.c contig.c
 *	pool    free chunks that are kept for later buffers        pool.c zero.c
 *	linger  pages still referenced after their buffer is freed linger.c
 *	pinned  user memory, pinned in place                       pin.c
 *	user    who is charged, and the limits                     account.c limit.c
 *
 * This folder depends on no file, ioctl or netlink code, so that KUnit tests can run it alone.
 */
#ifndef TENSOR_ALLOC_H
#define TENSOR_ALLOC_H

#include <linux/atomic.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "../compat.h"

struct cred;
struct user_struct;

/*
 * For small allocations that are charged to a memory cgroup: they fail with -ENOMEM when it is
 * full. Without __GFP_RETRY_MAYFAIL it would run the OOM killer. kvmalloc() and vmalloc() pass the
 * flag on to all their allocations. An xarray adds the charge itself.
 */
#define TENSOR_GFP_XA (GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)
#define TENSOR_GFP    (TENSOR_GFP_XA | __GFP_ACCOUNT)

/* Order of a chunk that one PMD entry maps, and of the largest chunk. */
#define TENSOR_PMD_ORDER (PMD_SHIFT - PAGE_SHIFT)
#define TENSOR_TOP_ORDER MIN(TENSOR_PMD_ORDER, MAX_PAGE_ORDER)
#define TENSOR_ORDERS	 (TENSOR_TOP_ORDER + 1)

/**
 * struct tensor_chunk - 2^order physically contiguous pages of a buffer
 * @head: first page; of a compound page unless the order is 0. Carries the order.
 * @first: index of that page within the buffer, a multiple of 2^order
 */
struct tensor_chunk {
	struct page *head;
	unsigned long first;
};

/**
 * struct tensor_chunks - all pages of a buffer, written once and read without a lock
 * @list: @nr chunks without a gap, by ascending first
 * @nr: chunks in @list
 * @room: chunks that @list has room for
 * @pages: pages in all of them
 * @node: node of all pages, or NUMA_NO_NODE
 * @recycle: the pool may keep them when they are freed
 * @user: the user who is charged for them, with a reference; NULL in a zeroed struct
 * @count: chunks of each order
 */
struct tensor_chunks {
	struct tensor_chunk *list;
	size_t nr;
	size_t room;
	unsigned long pages;
	int node;
	bool recycle;
	struct tensor_user *user;
	u32 count[TENSOR_ORDERS];
};

/**
 * struct tensor_request - the kind and amount of memory that tensor_chunks_alloc() allocates
 * @pages: number of pages, a multiple of 2^min_order, not 0
 * @node: a node with memory, or NUMA_NO_NODE to follow the task's memory policy
 * @node_only: fail rather than use another node
 * @interleave: distribute the chunks over the nodes that the task may use; excludes @node
 * @contig: physically contiguous; excludes orders
 * @dma32: all pages below 4 GiB
 * @min_order: order of the smallest chunk
 * @max_order: order of the largest chunk
 */
struct tensor_request {
	unsigned long pages;
	int node;
	bool node_only;
	bool interleave;
	bool contig;
	bool dma32;
	unsigned int min_order;
	unsigned int max_order;
};

int tensor_chunks_alloc(struct tensor_chunks *c, const struct tensor_request *request,
			struct tensor_user *user);
void tensor_chunks_free(struct tensor_chunks *c);
struct page *tensor_chunks_page(const struct tensor_chunks *c, unsigned long index);
u64 tensor_chunks_huge_bytes(const struct tensor_chunks *c);
u64 tensor_chunks_dma_bytes(const struct tensor_chunks *c);
bool tensor_chunks_idle(const struct tensor_chunks *c);
bool tensor_chunks_busy(const struct tensor_chunks *c);

/**
 * struct tensor_source - where the chunks of a request come from; internal to alloc/
 * @request: the request
 * @gfp: flags for the page allocator, without those that depend on the order
 * @node: node of the next chunk, or NUMA_NO_NODE
 * @least: smallest order that will be requested
 * @pool: the pool may serve the request
 */
struct tensor_source {
	const struct tensor_request *request;
	gfp_t gfp;
	int node;
	unsigned int least;
	bool pool;
};

bool tensor_source_charged(void);
void tensor_source_init(struct tensor_source *src, const struct tensor_request *request);
struct page *tensor_source_get(struct tensor_source *src, unsigned int order);

bool tensor_source_too_far(const struct tensor_source *src, struct page *page, unsigned long pages);

int tensor_chunks_grow(struct tensor_chunks *c, size_t room);
void tensor_chunks_append(struct tensor_chunks *c, struct page *head, unsigned int order);

u64 tensor_contig_bytes(void);
int tensor_contig_check(const struct tensor_source *src);
int tensor_contig_fill(struct tensor_chunks *c, struct tensor_source *src);

void tensor_linger_add(struct folio *folio, struct tensor_user *user);
void tensor_linger_scan(void);
u64 tensor_linger_bytes(void);
void tensor_linger_exit(void);

bool tensor_zero_by_core(void);
int tensor_zero(struct page *page, unsigned long pages, bool soon);

/**
 * struct tensor_pool_stat - content of the pool, and counters since the module was loaded
 * @limit_bytes: most bytes that it may hold now
 * @bytes: bytes held now
 * @hits: chunks that requests got from the pool
 * @misses: chunks that the pool could have served but did not have
 * @zeroed_bytes: bytes zeroed in the background
 * @fetched_bytes: bytes allocated from the core in the background
 * @reclaimed_bytes: bytes freed by the shrinker
 */
struct tensor_pool_stat {
	u64 limit_bytes;
	u64 bytes;
	u64 hits;
	u64 misses;
	u64 zeroed_bytes;
	u64 fetched_bytes;
	u64 reclaimed_bytes;
};

int tensor_pool_init(void);
void tensor_pool_exit(void);
struct page *tensor_pool_take(int nid, unsigned int order, bool *zeroed);
bool tensor_pool_put(struct page *head);
unsigned long tensor_pool_reclaim(int nid, unsigned long pages);
void tensor_pool_resize(u64 bytes);
void tensor_pool_stat(struct tensor_pool_stat *stat);

/**
 * struct tensor_user - a user who is charged
 * @uid: uid in the initial user namespace
 * @ref: references
 * @used: bytes charged
 * @objects: handles, and buffers whose memory the module did not allocate
 * @refused: charges refused because of this user's limit
 */
struct tensor_user {
	kuid_t uid;
	refcount_t ref;
	atomic64_t used;
	atomic64_t objects;
	atomic64_t refused;
};

kuid_t tensor_user_charged(const struct cred *cred);
struct tensor_user *tensor_user_current(void);
void tensor_user_exit(void);
struct tensor_user *tensor_user_get(kuid_t uid);
struct tensor_user *tensor_user_hold(struct tensor_user *user);
void tensor_user_put(struct tensor_user *user);
struct tensor_user *tensor_user_next(unsigned long from);

int tensor_limit_try(struct tensor_user *user, u64 bytes, bool *own);
void tensor_limit_refuse(struct tensor_user *user, bool own);
int tensor_limit_charge(struct tensor_user *user, u64 bytes);
void tensor_limit_uncharge(struct tensor_user *user, u64 bytes);
int tensor_limit_count(struct tensor_user *user);
void tensor_limit_uncount(struct tensor_user *user);
bool tensor_limit_exempt(void);
u64 tensor_limit_bytes(void);
u64 tensor_limit_user_bytes(void);
u64 tensor_limit_used(void);
u64 tensor_limit_refused(void);
u64 tensor_limit_refused_user(void);

/**
 * struct tensor_pin_charges - the charges for memory that the module pins but did not allocate
 * @user: charged against the limits, with a reference; NULL in a zeroed struct
 * @memlock_user: the user whose RLIMIT_MEMLOCK is charged; NULL if the task had CAP_IPC_LOCK
 * @pages: number of pages
 */
struct tensor_pin_charges {
	struct tensor_user *user;
	struct user_struct *memlock_user;
	unsigned long pages;
};

int tensor_pin_charge(struct tensor_pin_charges *charges, struct tensor_user *user,
		      unsigned long pages);
void tensor_pin_uncharge(struct tensor_pin_charges *charges);

/**
 * struct tensor_pinned - user memory pinned in place
 * @pages: the pages, in order
 * @nr: number of pages
 * @charges: the charges for them
 */
struct tensor_pinned {
	struct page **pages;
	unsigned long nr;
	struct tensor_pin_charges charges;
};

int tensor_pin_user(struct tensor_pinned *p, struct tensor_user *user, unsigned long addr,
		    u64 bytes, bool write);
void tensor_unpin(struct tensor_pinned *p, bool dirty);

/* The module parameters, exported to the KUnit tests only. */
extern unsigned long long tensor_param_limit;
extern unsigned long long tensor_param_user_limit;
extern bool tensor_param_account;

int tensor_alloc_init(void);
void tensor_alloc_exit(void);

#endif /* TENSOR_ALLOC_H */
