// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of purgeable buffers, oldest first.
 */
#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>

#include "purgelist.h"

static DEFINE_SPINLOCK(purge_lock);
static LIST_HEAD(purge_list);
static atomic_long_t purge_pages;

/**
 * tensor_purgelist_add() - add a buffer that may be purged
 * @buf: the buffer; its lock is held, and it is in no list
 * @busy: a list of buffers that could not be purged now; NULL: the list of purgeable buffers
 */
void tensor_purgelist_add(struct tensor_buf *buf, struct list_head *busy)
{
	spin_lock(&purge_lock);
	list_add_tail(&buf->purgeable, busy ?: &purge_list);
	spin_unlock(&purge_lock);
	atomic_long_add(buf->bytes >> PAGE_SHIFT, &purge_pages);
}

/**
 * tensor_purgelist_del() - remove a buffer that is no longer purgeable
 * @buf: the buffer; its lock is held. Does nothing if it is in no list
 */
void tensor_purgelist_del(struct tensor_buf *buf)
{
	bool listed;

	spin_lock(&purge_lock);
	listed = !list_empty(&buf->purgeable);
	list_del_init(&buf->purgeable);
	spin_unlock(&purge_lock);
	if (listed)
		atomic_long_sub(buf->bytes >> PAGE_SHIFT, &purge_pages);
}

/**
 * tensor_purgelist_take() - remove the oldest buffer whose lock is free
 *
 * Return: the buffer, locked and removed from the list, without a reference; or NULL.
 */
struct tensor_buf *tensor_purgelist_take(void)
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

/**
 * tensor_purgelist_splice() - put back the buffers that could not be purged
 * @busy: the list passed to tensor_purgelist_add(); empty on return
 */
void tensor_purgelist_splice(struct list_head *busy)
{
	spin_lock(&purge_lock);
	list_splice_tail_init(busy, &purge_list);
	spin_unlock(&purge_lock);
}

/**
 * tensor_purgelist_pages() - number of pages of purgeable buffers
 *
 * Return: pages.
 */
unsigned long tensor_purgelist_pages(void)
{
	return atomic_long_read(&purge_pages);
}
