// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Separate mappings for sizes above BLOCK_MAX. Freed mappings stay populated, in lists by rounded
 * size and by age. They are unmapped after ten seconds, when their size exceeds the memory in use
 * and another size is needed, and when the cache limit is reached.
 */
#include "storage/large.h"

#include "base/init.h"
#include "storage/size_class.h"
#include "storage/trim.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CLASSES 512
#define HUGE	((size_t)2 << 20)

static struct {
	pthread_mutex_t lock;
	struct mapping *free[CLASSES];
	struct mapping *oldest, **newest;
	uint64_t cached, used; /* bytes */
} large = { .lock = PTHREAD_MUTEX_INITIALIZER, .newest = &large.oldest };

void large_lock(void)
{
	pthread_mutex_lock(&large.lock);
}

void large_unlock(void)
{
	pthread_mutex_unlock(&large.lock);
}

/* ---- free mappings ---- */

static void put_in(struct mapping *m, unsigned class)
{
	m->next = large.free[class];
	m->link = &large.free[class];
	if (m->next)
		m->next->link = &m->next;
	large.free[class] = m;
	m->newer = NULL;
	m->newer_link = large.newest;
	*large.newest = m;
	large.newest = &m->newer;
	m->when = cache_now_ms();
	large.cached += m->size;
}

static void take_out(struct mapping *m)
{
	*m->link = m->next;
	if (m->next)
		m->next->link = m->link;
	*m->newer_link = m->newer;
	if (m->newer)
		m->newer->newer_link = m->newer_link;
	else
		large.newest = m->newer_link;
	large.cached -= m->size;
}

/*
 * The caller holds the lock. Removes the oldest mappings while there are more than keep bytes or
 * the oldest is older than when; a list linked by next.
 */
static struct mapping *take_old(uint64_t keep, int64_t when)
{
	struct mapping *m, *old = NULL;

	while ((m = large.oldest) && (large.cached > keep || m->when <= when)) {
		take_out(m);
		m->next = old;
		old = m;
	}
	return old;
}

static void unmap_all(struct mapping *m)
{
	struct mapping *next;

	for (; m; m = next) {
		next = m->next;
		munmap(m->map, m->size);
		free(m);
	}
}

/* ---- allocation ---- */

/* Huge pages need aligned addresses. */
static void *map_aligned(size_t size)
{
	size_t more = size >= HUGE ? HUGE : 0;
	char *p =
		mmap(NULL, size + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *start;

	if (p == MAP_FAILED || !more)
		return p == MAP_FAILED ? NULL : p;
	start = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
	if (start > p)
		munmap(p, (size_t)(start - p));
	if (p + more > start)
		munmap(start + size, (size_t)(p + more - start));
	madvise(start, size, MADV_HUGEPAGE);
	return start;
}

static struct mapping *new_mapping(size_t size)
{
	struct mapping *m = malloc(sizeof(*m));

	if (!m)
		return NULL;
	m->size = size;
	m->map = map_aligned(size);
	if (!m->map) {
		free(m);
		return NULL;
	}
	return m;
}

/* ---- take and give ---- */

struct mapping *large_take(size_t n)
{
	struct mapping *m, *old = NULL;
	unsigned class;
	size_t size = cache_round(n, &class);

	large_lock();
	m = large.free[class];
	if (m)
		take_out(m);
	else
		old = take_old(large.used > size ? large.used - size : 0,
			       cache_now_ms() - CACHE_WARM_MS);
	large.used += size;
	large_unlock();
	cache_count(m);
	unmap_all(old);
	if (m)
		return m;
	m = new_mapping(size);
	if (!m) {
		trim_all();
		m = new_mapping(size);
	}
	if (!m) {
		large_lock();
		large.used -= size;
		large_unlock();
	}
	return m;
}

void large_give(struct mapping *m)
{
	uint64_t limit = cache_limit();
	struct mapping *old;
	unsigned class;

	cache_round(m->size, &class);
	large_lock();
	large.used -= m->size;
	put_in(m, class);
	old = take_old(limit, cache_now_ms() - CACHE_WARM_MS);
	large_unlock();
	unmap_all(old);
}

void large_lose(struct mapping *m)
{
	large_lock();
	large.used -= m->size;
	large_unlock();
	free(m);
}

void large_trim(bool now)
{
	struct mapping *old;

	large_lock();
	old = take_old(now ? 0 : UINT64_MAX, cache_now_ms() - CACHE_WARM_MS);
	large_unlock();
	unmap_all(old);
}

void large_stats(uint64_t *used, uint64_t *cached)
{
	large_lock();
	*used += large.used;
	*cached += large.cached;
	large_unlock();
}

static void trim_now(void)
{
	large_trim(true);
}

INIT(INIT_MEMORY) static void large_init(void)
{
	trim_register(TRIM_LARGE, trim_now);
}
