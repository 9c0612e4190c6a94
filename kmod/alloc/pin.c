// SPDX-License-Identifier: GPL-2.0-only
/*
 * User memory pinned in place.
 *
 * What a program has already need not be copied to be given to a device: its pages are held where
 * they are until the last one lets go, whatever becomes of the mapping or the process. Such memory
 * can neither be moved nor swapped out, so it counts against RLIMIT_MEMLOCK: of the user, not of
 * the address space, which it may outlive, and together with what other parts of the kernel have
 * pinned for that user. Who may lock memory without limit (CAP_IPC_LOCK) is not counted.
 *
 * No lock: the pages belong to one struct, made and undone by its owner.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "alloc.h"

/* Pinned between two looks at the scheduler and at signals. */
#define PIN_BATCH	1024UL

static int pin_account(struct tensor_pinned *p, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct user_struct *user = current_user();
	long old;

	if (capable(CAP_IPC_LOCK))
		return 0;
	old = atomic_long_read(&user->locked_vm);
	do {
		if (pages > limit || (unsigned long)old > limit - pages)
			return -ENOMEM;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &old, old + pages));
	p->payer = get_uid(user);
	p->paid = pages;
	return 0;
}

static void pin_unaccount(struct tensor_pinned *p)
{
	if (!p->payer)
		return;
	atomic_long_sub(p->paid, &p->payer->locked_vm);
	free_uid(p->payer);
}

static int pin_pages(struct tensor_pinned *p, unsigned long addr, unsigned long pages, bool write)
{
	while (p->nr < pages) {
		int got;

		if (fatal_signal_pending(current))
			return -EINTR;
		got = tensor_pin_pages(addr + p->nr * PAGE_SIZE, min(pages - p->nr, PIN_BATCH),
				       write, p->pages + p->nr);
		if (got <= 0)
			return got ?: -EFAULT;
		p->nr += got;
		cond_resched();
	}
	return 0;
}

static int pin_check(unsigned long addr, u64 bytes)
{
	unsigned long end;

	if (!bytes || !PAGE_ALIGNED(addr) || !PAGE_ALIGNED(bytes))
		return -EINVAL;
	if (check_add_overflow((u64)addr, bytes, &end))
		return -EINVAL;
	return access_ok((void __user *)addr, bytes) ? 0 : -EINVAL;
}

/**
 * tensor_pin_user() - pin memory of the calling process
 * @p: filled in; the caller gives it back with tensor_unpin()
 * @addr: begin of the memory, whole pages
 * @bytes: how much, whole pages, not 0
 * @write: it will be written to
 *
 * May sleep, and fault all of it in; a fatal signal ends it.
 *
 * Return: 0; -EINVAL: not whole pages, or past the end of the address space; -ENOMEM, also at
 * RLIMIT_MEMLOCK; -EFAULT: not accessible, or not writable; -EOPNOTSUPP: memory that cannot be
 * pinned for long; -EINTR. On error @p needs no unpinning.
 */
int tensor_pin_user(struct tensor_pinned *p, unsigned long addr, u64 bytes, bool write)
{
	unsigned long pages = bytes >> PAGE_SHIFT;
	int err;

	memset(p, 0, sizeof(*p));
	err = pin_check(addr, bytes);
	if (err)
		return err;
	err = pin_account(p, pages);
	if (err)
		return err;
	p->pages = kvmalloc_array(pages, sizeof(*p->pages), TENSOR_GFP);
	err = p->pages ? pin_pages(p, addr, pages, write) : -ENOMEM;
	/* nobody has written to it by way of us yet */
	if (err)
		tensor_unpin(p, false);
	return err;
}

/**
 * tensor_unpin() - let go of the pages
 * @p: what tensor_pin_user() filled in; empty afterwards
 * @dirty: they may have been written to
 *
 * May sleep; any process may do it.
 */
void tensor_unpin(struct tensor_pinned *p, bool dirty)
{
	unsigned long done, n;

	for (done = 0; done < p->nr; done += n) {
		n = min(p->nr - done, PIN_BATCH);
		unpin_user_pages_dirty_lock(p->pages + done, n, dirty);
		cond_resched();
	}
	kvfree(p->pages);
	pin_unaccount(p);
	memset(p, 0, sizeof(*p));
}

/**
 * tensor_pinned_page() - the page at an index
 * @p: the pages
 * @index: page number from the begin of the memory
 *
 * Return: the page, without a reference of its own, or NULL if @index is past the end.
 */
struct page *tensor_pinned_page(const struct tensor_pinned *p, unsigned long index)
{
	return index < p->nr ? p->pages[index] : NULL;
}
