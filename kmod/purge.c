// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers that may be taken when memory is short: ADVISE.
 *
 * A purgeable buffer is in a list that the shrinker takes from, oldest first. Its mappings stay and
 * are empty afterwards; the owner learns of it when it asks for the memory back. Only the owner can
 * hold a buffer that is purgeable, so no other process loses memory.
 *
 * The shrinker runs in any task that needs memory, and waits for no lock. It holds no reference,
 * whose end could evict: a buffer leaves the list, and its lock is waited for, before it goes.
 */
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/shrinker.h>

#include "buffer.h"
#include "call.h"
#include "client.h"
#include "event.h"
#include "netlink/notify.h"
#include "purge.h"
#include "purgelist.h"
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

/* Mappings that the maker made by cookie do not count; those of others do. */
static bool purge_alone(const struct tensor_buf *buf)
{
	return atomic_read(&buf->handles) == 1 && !atomic_read(&buf->files) &&
	       !atomic_read(&buf->peers) && !atomic_read(&buf->dmabufs);
}

static int purge_allow(struct tensor_buf *buf)
{
	if (tensor_buf_seals(buf) & TENSOR_SEAL_WRITE)
		return -EPERM;
	if (tensor_buf_state(buf) & TENSOR_STATE_PURGEABLE)
		return 0;
	if (!purge_alone(buf))
		return -EBUSY;
	tensor_state_change(buf, TENSOR_STATE_PURGEABLE, 0);
	tensor_purgelist_add(buf, NULL);
	return 0;
}

/* Whether it had to come back; -EAGAIN if it would need pages and none are given. */
static int purge_keep(struct tensor_buf *buf, struct tensor_chunks *chunks)
{
	bool purged = tensor_buf_state(buf) & TENSOR_STATE_PURGED;

	if (purged && !chunks->nr)
		return -EAGAIN;
	tensor_purgelist_del(buf);
	if (purged) {
		down_write(&buf->pages);
		tensor_buf_swap(buf, chunks);
		up_write(&buf->pages);
	}
	tensor_state_change(buf, 0, TENSOR_STATE_PURGEABLE | TENSOR_STATE_PURGED);
	return purged;
}

static int purge_keep_locked(struct tensor_buf *buf, struct tensor_chunks *chunks)
{
	int purged;

	mutex_lock(&buf->lock);
	purged = tensor_buf_usable(buf) ?: purge_keep(buf, chunks);
	mutex_unlock(&buf->lock);
	return purged;
}

/* Memory is asked for without the lock: it is what the shrinker wants. */
static int purge_undo(struct tensor_buf *buf)
{
	struct tensor_chunks chunks = {};
	int purged, err;

	purged = purge_keep_locked(buf, &chunks);
	if (purged != -EAGAIN)
		return purged;
	err = tensor_buf_fill(buf, &chunks);
	if (err)
		return err;
	purged = purge_keep_locked(buf, &chunks);
	tensor_chunks_free(&chunks);
	return purged;
}

static int advise_hold(const struct tensor_call *call, const struct tensor_hold *hold)
{
	struct tensor_buf *buf = hold->buf;
	int err;

	if (buf->client != call->client->id || !tensor_hold_may_all(hold, TENSOR_RIGHT_WRITE))
		return -EACCES;
	if (buf->backing->kind != TENSOR_KIND_ALLOC)
		return -EOPNOTSUPP;
	if (call->arg.advise.advice == TENSOR_ADVISE_WILLNEED)
		return purge_undo(buf);
	mutex_lock(&buf->lock);
	err = tensor_buf_usable(buf) ?: purge_allow(buf);
	mutex_unlock(&buf->lock);
	return err;
}

/**
 * tensor_advise() - ADVISE
 * @call: the call
 *
 * Return: 0 or -errno.
 */
int tensor_advise(struct tensor_call *call)
{
	struct tensor_advise *arg = &call->arg.advise;
	struct tensor_hold hold;
	int done;

	if (arg->flags || arg->advice > TENSOR_ADVISE_PURGEABLE)
		return -EOPNOTSUPP;
	if (arg->__reserved)
		return -EINVAL;
	done = tensor_call_hold(call, arg->handle, &hold);
	if (done)
		return done;
	/* what cannot be undone is done when the reply can be written */
	done = tensor_call_reply(call) ?: advise_hold(call, &hold);
	tensor_buf_put(hold.buf);
	if (done < 0)
		return done;
	arg->purged = done;
	return tensor_call_reply(call);
}

static struct shrinker *shrinker;

/**
 * tensor_purge_init() - begin to give memory back
 *
 * Return: 0 or -ENOMEM.
 */
int __init tensor_purge_init(void)
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
 * tensor_purge_exit() - the module goes; no buffer is left
 */
void tensor_purge_exit(void)
{
	shrinker_free(shrinker);
}
