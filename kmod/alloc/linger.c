// SPDX-License-Identifier: GPL-2.0-only
/*
 * Folios that are still referenced after their buffer is freed.
 *
 * A page that is spliced into a pipe, sent over a socket or pinned by a device keeps a reference
 * after its buffer is freed. Such a folio stays charged to its user, because the memory is still in
 * use; uncharging it would let a process hold any amount of memory in pipes. The module keeps its
 * own reference, and frees and uncharges the folio once that reference is the only one. No mapping
 * and no page cache refers to the folio, so a count of 1 cannot rise again, except briefly when a
 * walk over physical memory tries the page.
 *
 * The list is linked through folio->lru and the user is kept in folio->private, so that freeing a
 * buffer allocates nothing: the shrinker frees buffers, too. Neither member is used by others: the
 * folio was never on an LRU list (no PG_lru), and everything that links a referenced folio
 * (migration, compaction, reclaim, mlock, GUP's longterm migration, page_idle, hwpoison) must clear
 * PG_lru first; PG_private is clear, so no filesystem reads ->private. A page can only be stolen
 * from a pipe while the pipe has the sole reference, which the module's own reference prevents.
 *
 * Lock: linger_lock guards the list and linger_count. Nothing else is taken under it, and it is
 * held for LINGER_BATCH list operations at most.
 */
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "alloc.h"

/* Folios taken off the list under one hold of the lock. */
#define LINGER_BATCH 64UL

/*
 * Folios that a refused charge examines: some milliseconds. The next refusal continues after them.
 */
#define LINGER_MOST 65536UL

/* Most remaining references are dropped soon: those of a fault or an munmap() in progress. */
#define LINGER_FIRST max(HZ / 50, 1)

/* The work uses at most 1/LINGER_SHARE of a CPU. */
#define LINGER_SHARE 16

static DEFINE_SPINLOCK(linger_lock);
static LIST_HEAD(linger_list);
static unsigned long linger_count;
static atomic_long_t linger_pages;

static void linger_free(struct folio *folio)
{
	struct tensor_user *user = folio->private;
	unsigned long pages = folio_nr_pages(folio);

	list_del(&folio->lru);
	folio->private = NULL;
	folio_put(folio);
	tensor_limit_uncharge(user, (u64)pages << PAGE_SHIFT);
	tensor_user_put(user);
	atomic_long_sub(pages, &linger_pages);
}

/* Take up to @most folios off the head of the list. */
static unsigned long linger_take(struct list_head *batch, unsigned long most)
{
	unsigned long n = 0;

	spin_lock(&linger_lock);
	for (; n < most && !list_empty(&linger_list); n++)
		list_move_tail(linger_list.next, batch);
	linger_count -= n;
	spin_unlock(&linger_lock);
	return n;
}

/* Free the folios without another reference; move the others to the tail of the list. */
static void linger_sort(struct list_head *batch)
{
	struct folio *folio, *next;
	unsigned long n = 0;

	list_for_each_entry_safe(folio, next, batch, lru) {
		if (folio_ref_count(folio) == 1)
			linger_free(folio);
		else
			n++;
	}
	spin_lock(&linger_lock);
	list_splice_tail(batch, &linger_list);
	linger_count += n;
	spin_unlock(&linger_lock);
}

/* Examine each folio that is in the list now once, at most @most of them. */
static void linger_scan(unsigned long most)
{
	unsigned long n;

	for (most = min(most, READ_ONCE(linger_count)); most; most -= n) {
		LIST_HEAD(batch);

		n = linger_take(&batch, min(most, LINGER_BATCH));
		if (!n)
			return;
		linger_sort(&batch);
		cond_resched();
	}
}

static void linger_work_run(struct work_struct *work)
{
	unsigned long begin = jiffies;

	linger_scan(ULONG_MAX);
	if (READ_ONCE(linger_count))
		schedule_delayed_work(to_delayed_work(work), HZ + LINGER_SHARE * (jiffies - begin));
}

static DECLARE_DELAYED_WORK(linger_work, linger_work_run);

/**
 * tensor_linger_add() - keep a folio of a freed buffer until its other references are dropped
 * @folio: the folio, charged to @user, with the buffer's reference, which passes to the list
 * @user: user who is charged; the folio takes a reference of its own
 *
 * Does not sleep or allocate.
 */
void tensor_linger_add(struct folio *folio, struct tensor_user *user)
{
	folio->private = tensor_user_hold(user);
	atomic_long_add(folio_nr_pages(folio), &linger_pages);
	spin_lock(&linger_lock);
	list_add_tail(&folio->lru, &linger_list);
	linger_count++;
	spin_unlock(&linger_lock);
	schedule_delayed_work(&linger_work, LINGER_FIRST);
}

/**
 * tensor_linger_scan() - free and uncharge folios without other references
 *
 * Examines a bounded number of folios. May sleep. Several callers may scan concurrently.
 */
void tensor_linger_scan(void)
{
	might_sleep();
	linger_scan(LINGER_MOST);
}

/**
 * tensor_linger_bytes() - memory of freed buffers that is still charged
 *
 * Return: bytes.
 */
u64 tensor_linger_bytes(void)
{
	return (u64)atomic_long_read(&linger_pages) << PAGE_SHIFT;
}

/**
 * tensor_limit_charge() - charge bytes to both limits
 * @user: user to charge
 * @bytes: number of bytes
 *
 * At a limit, folios of freed buffers are freed where possible before this fails. May sleep.
 *
 * Return: 0, undone by tensor_limit_uncharge(); or -EDQUOT and nothing is charged.
 */
int tensor_limit_charge(struct tensor_user *user, u64 bytes)
{
	bool own;
	int err = tensor_limit_try(user, bytes, &own);

	if (err && tensor_linger_bytes()) {
		tensor_linger_scan();
		err = tensor_limit_try(user, bytes, &own);
	}
	if (err)
		tensor_limit_refuse(user, own);
	return err;
}

/**
 * tensor_linger_exit() - drop all references; no buffer is left
 *
 * The pages are freed when their last other reference is dropped.
 */
void tensor_linger_exit(void)
{
	struct folio *folio, *next;

	cancel_delayed_work_sync(&linger_work);
	list_for_each_entry_safe(folio, next, &linger_list, lru) {
		linger_free(folio);
		cond_resched();
	}
	linger_count = 0;
}
