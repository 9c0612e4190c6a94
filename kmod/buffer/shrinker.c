// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shrinker: frees the pages of purgeable buffers when memory is short, oldest buffer first.
 *
 * The mappings of a purged buffer stay and are empty; its owner learns of the loss when it asks for
 * the memory back (../ioctl/advise.c). Only its owner can hold a purgeable buffer, so no other
 * process loses memory.
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
 * Takes the pages, unless a fault is under way or a page has another reference: that page would not
 * become free, and a device would go on using it while the owner gets another. @chunks: empty.
 */
static bool purge_try(struct tensor_buf *buf, struct tensor_chunks *chunks)
{
	bool idle;

	/* to empty the mappings takes time, and is in vain if a page stays */
	if (tensor_chunks_busy(&buf->chunks) || !tensor_buf_shut(buf, false))
		return false;
	idle = tensor_chunks_idle(&buf->chunks);
	if (idle)
		tensor_buf_swap(buf, chunks);
	tensor_buf_open(buf);
	return idle;
}

/* Pages that it gave back; 0: it could not be taken, and is in the list of those. */
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
	/* it is not the pool that is short of memory */
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

	/* each has a page at least; that one is busy is no reason to look at all */
	while (freed < sc->nr_to_scan && left--) {
		buf = tensor_purgelist_take();
		if (!buf) {
			freed = freed ?: SHRINK_STOP;
			break;
		}
		freed += purge_buf(buf, &busy);
		/* its eviction waits for the lock, and frees it after a grace period */
		rcu_read_lock();
		mutex_unlock(&buf->lock);
		rcu_read_unlock();
	}
	tensor_purgelist_splice(&busy);
	/* 0: behind those that are busy there may be more */
	return freed;
}

static struct shrinker *shrinker;

/**
 * tensor_shrinker_init() - begin to give memory back
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
 * tensor_shrinker_exit() - the module goes; no buffer is left
 */
void tensor_shrinker_exit(void)
{
	shrinker_free(shrinker);
}
