// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shrinker: frees the pages of purgeable buffers when memory is short, oldest buffer first.
 *
 * The mappings of a purged buffer stay and are empty; WILLNEED reports the purge to the owner
 * (../ioctl/advise.c). Only its owner can hold a purgeable buffer, so no other process loses
 * memory.
 *
 * The shrinker runs in any task that allocates, so it waits for no lock. It takes no reference,
 * because dropping one could evict a buffer: eviction waits for the buffer's lock and removes the
 * buffer from the list before the buffer is freed.
 */
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/shrinker.h>

#include "../netlink/notify.h"
#include "buffer.h"
#include "event.h"
#include "purgelist.h"
#include "shrinker.h"
#include "state.h"

/*
 * Move the pages to @chunks, which is empty, unless a fault is in progress or a page has another
 * reference: that page would not become free, and a device would go on using it while the owner
 * gets another one.
 */
static bool purge_try(struct tensor_buf *buf, struct tensor_chunks *chunks)
{
	bool idle;

	/* check first, because emptying the mappings is expensive and useless if a page stays */
	if (tensor_chunks_busy(&buf->chunks) || !tensor_buf_block(buf, false))
		return false;
	idle = tensor_chunks_idle(&buf->chunks);
	if (idle)
		tensor_buf_swap(buf, chunks);
	tensor_buf_unblock(buf);
	return idle;
}

/* Purge a buffer. Return the number of freed pages; 0: it is busy and was added to @busy. */
static unsigned long purge_buf(struct tensor_buf *buf, struct list_head *busy)
{
	struct tensor_chunks chunks = {};
	unsigned long pages;

	if (!purge_try(buf, &chunks)) {
		tensor_purgelist_add(buf, busy);
		return 0;
	}
	pages = chunks.pages;
	tensor_state_change(buf, TENSOR_STATE_PURGED, 0);
	/* free the pages instead of recycling them: the system is short of memory, not the pool */
	chunks.recycle = false;
	tensor_chunks_free(&chunks);
	tensor_event_post(buf, TENSOR_EVENT_PURGE, 0);
	tensor_notify_purge(buf);
	return pages;
}

static unsigned long purge_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return tensor_purgelist_pages() ?: SHRINK_EMPTY;
}

static unsigned long purge_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long freed = 0, left = sc->nr_to_scan;
	struct tensor_buf *buf;
	LIST_HEAD(busy);

	/*
	 * each buffer has at least one page; a busy one does not justify a scan of the whole list
	 */
	while (freed < sc->nr_to_scan && left--) {
		buf = tensor_purgelist_take();
		if (!buf) {
			freed = freed ?: SHRINK_STOP;
			break;
		}
		freed += purge_buf(buf, &busy);
		/* eviction waits for the lock, and frees the buffer after a grace period */
		rcu_read_lock();
		mutex_unlock(&buf->lock);
		rcu_read_unlock();
	}
	tensor_purgelist_splice(&busy);
	/* 0 rather than SHRINK_STOP: there may be more after the busy ones */
	return freed;
}

static struct shrinker *shrinker;

/**
 * tensor_shrinker_init() - register the shrinker
 *
 * Return: 0 or -ENOMEM.
 */
int __init tensor_shrinker_init(void)
{
	shrinker = shrinker_alloc(0, "tensor-purge");
	if (!shrinker)
		return -ENOMEM;
	shrinker->count_objects = purge_count;
	shrinker->scan_objects = purge_scan;
	shrinker_register(shrinker);
	return 0;
}

/**
 * tensor_shrinker_exit() - unregister the shrinker; no buffer is left
 */
void tensor_shrinker_exit(void)
{
	shrinker_free(shrinker);
}
