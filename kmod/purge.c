// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers that may be taken when memory is short: ADVISE.
 *
 * A purgeable buffer is in a list that the shrinker takes from, oldest first. Its mappings stay and
 * are empty afterwards; the owner learns of it when it asks for the memory back. Nobody but the
 * owner can hold a buffer that is purgeable, so nobody else's memory goes away under them.
 *
 * The shrinker runs in whoever needs memory, who may hold any lock of ours that is held while
 * memory is asked for. So it waits for none. It holds no reference, whose end could evict: a buffer
 * leaves the list, and its lock is waited for, before it goes.
 */
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/shrinker.h>
#include <linux/spinlock.h>

#include "call.h"
#include "core.h"
#include "netlink.h"
#include "trace.h"

static DEFINE_SPINLOCK(purge_lock);
static LIST_HEAD(purge_list);
static atomic_long_t purge_pages;

/* In the list, or not, as the state says; the buffer's lock is held. Any list is purge_lock's. */
static void purge_add(struct tensor_buf *buf, struct list_head *list)
{
	spin_lock(&purge_lock);
	list_add_tail(&buf->purgeable, list);
	spin_unlock(&purge_lock);
	atomic_long_add(buf->bytes >> PAGE_SHIFT, &purge_pages);
}

static bool purge_del(struct tensor_buf *buf)
{
	bool listed;

	spin_lock(&purge_lock);
	listed = !list_empty(&buf->purgeable);
	list_del_init(&buf->purgeable);
	spin_unlock(&purge_lock);
	if (listed)
		atomic_long_sub(buf->bytes >> PAGE_SHIFT, &purge_pages);
	return listed;
}

/**
 * tensor_purge_forget() - a buffer is not purgeable any more
 * @buf: the buffer; its lock is held, or it is being evicted
 *
 * One that never was is left alone.
 */
void tensor_purge_forget(struct tensor_buf *buf)
{
	purge_del(buf);
}

/**
 * tensor_purge_bytes() - memory that may be taken now
 *
 * Return: bytes.
 */
u64 tensor_purge_bytes(void)
{
	return (u64)atomic_long_read(&purge_pages) << PAGE_SHIFT;
}

/* The oldest whose lock is free, locked, and out of the list. */
static struct tensor_buf *purge_take(void)
{
	struct tensor_buf *buf;

	spin_lock(&purge_lock);
	list_for_each_entry(buf, &purge_list, purgeable) {
		if (!mutex_trylock(&buf->lock))
			continue;
		list_del_init(&buf->purgeable);
		spin_unlock(&purge_lock);
		atomic_long_sub(buf->bytes >> PAGE_SHIFT, &purge_pages);
		return buf;
	}
	spin_unlock(&purge_lock);
	return NULL;
}

/*
 * Takes the pages, unless a fault is under way, or somebody has one in hand: it would not be free,
 * and a device would go on with it while the owner gets another.
 */
static bool purge_try(struct tensor_buf *buf, struct tensor_chunks *chunks)
{
	bool idle;

	if (!tensor_buf_shut(buf, false))
		return false;
	idle = tensor_chunks_idle(&buf->chunks);
	if (idle)
		tensor_buf_take(buf, chunks);
	tensor_buf_open(buf);
	return idle;
}

/* Pages that it gave back; 0: it could not be taken, and is in the list of those. */
static unsigned long purge_buf(struct tensor_buf *buf, struct list_head *busy)
{
	struct tensor_chunks chunks;
	unsigned long pages;

	if (!purge_try(buf, &chunks)) {
		purge_add(buf, busy);
		return 0;
	}
	pages = chunks.pages;
	tensor_status_state(buf, TENSOR_STATE_PURGED, 0);
	/* it is not the pool that is short of memory */
	chunks.recycle = false;
	tensor_buf_uncharge(buf, &chunks);
	tensor_event_post(buf, TENSOR_EVENT_PURGE, NULL);
	tensor_notify_purge(buf);
	return pages;
}

static unsigned long purge_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return atomic_long_read(&purge_pages) ?: SHRINK_EMPTY;
}

static unsigned long purge_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long freed = 0;
	struct tensor_buf *buf;
	LIST_HEAD(busy);

	while (freed < sc->nr_to_scan) {
		buf = purge_take();
		if (!buf)
			break;
		freed += purge_buf(buf, &busy);
		/* who evicts it waits for the lock, and frees it after us */
		rcu_read_lock();
		mutex_unlock(&buf->lock);
		rcu_read_unlock();
	}
	spin_lock(&purge_lock);
	list_splice_tail(&busy, &purge_list);
	spin_unlock(&purge_lock);
	return freed ?: SHRINK_STOP;
}

/* Only the maker can know that nobody else maps it: what others made by cookie is counted. */
static bool purge_alone(const struct tensor_buf *buf)
{
	return atomic_read(&buf->handles) == 1 && !atomic_read(&buf->files) &&
	       !atomic_read(&buf->guests) && !atomic_read(&buf->dmabufs);
}

static int purge_allow(struct tensor_buf *buf)
{
	if (tensor_buf_seals(buf) & TENSOR_SEAL_WRITE)
		return -EPERM;
	if (tensor_buf_state(buf) & TENSOR_STATE_PURGEABLE)
		return 0;
	if (!purge_alone(buf))
		return -EBUSY;
	tensor_status_state(buf, TENSOR_STATE_PURGEABLE, 0);
	purge_add(buf, &purge_list);
	return 0;
}

/* Whether it had to come back; -EAGAIN if it would need pages and none are given. */
static int purge_keep(struct tensor_buf *buf, struct tensor_chunks *chunks)
{
	bool purged = tensor_buf_state(buf) & TENSOR_STATE_PURGED;

	if (purged && !chunks->nr)
		return -EAGAIN;
	tensor_purge_forget(buf);
	if (purged) {
		down_write(&buf->pages);
		swap(buf->chunks, *chunks);
		up_write(&buf->pages);
	}
	tensor_status_state(buf, 0, TENSOR_STATE_PURGEABLE | TENSOR_STATE_PURGED);
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
	err = tensor_buf_charge(buf, &chunks);
	if (err)
		return err;
	purged = purge_keep_locked(buf, &chunks);
	tensor_buf_uncharge(buf, &chunks);
	return purged;
}

static int advise_hold(const struct tensor_call *call, const struct tensor_hold *hold)
{
	struct tensor_buf *buf = hold->buf;
	int err;

	if (buf->client != call->client->id || !tensor_hold_full(hold))
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
