// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pinned user memory, and the charges for it.
 *
 * User memory is pinned in place and stays pinned when the mapping or the process ends. It can
 * neither be moved nor swapped out, so it counts against RLIMIT_MEMLOCK of the user, together with
 * what other parts of the kernel pin for that user; the address space is not charged, because the
 * pin may outlive it. A task with CAP_IPC_LOCK is exempt. The memory also counts against the limits
 * of this module, which apply to such a task, too. Everything is charged before the first
 * allocation, so that the charge bounds the size of the page array.
 *
 * No lock: only its owner uses a struct.
 */
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

/* Pages pinned between two checks for rescheduling and signals. */
#define PIN_BATCH 1024UL

/* Charge RLIMIT_MEMLOCK. */
static int charge_memlock(struct tensor_pin_charges *charges, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct user_struct *memlock_user = current_user();
	long old;

	if (tensor_limit_exempt())
		return 0;
	old = atomic_long_read(&memlock_user->locked_vm);
	do {
		if (pages > limit || (unsigned long)old > limit - pages)
			return -ENOMEM;
	} while (!atomic_long_try_cmpxchg(&memlock_user->locked_vm, &old, old + pages));
	charges->memlock_user = get_uid(memlock_user);
	return 0;
}

static void uncharge_memlock(struct tensor_pin_charges *charges, unsigned long pages)
{
	if (!charges->memlock_user)
		return;
	atomic_long_sub(pages, &charges->memlock_user->locked_vm);
	free_uid(charges->memlock_user);
	charges->memlock_user = NULL;
}

/**
 * tensor_pin_charge() - charge for memory that is about to be pinned
 * @charges: filled in, for tensor_pin_uncharge()
 * @user: user to charge against the limits of the module
 * @pages: number of pages
 *
 * RLIMIT_MEMLOCK is charged to the user of the calling task, who may differ from @user. May sleep.
 *
 * Return: 0; -ENOMEM at RLIMIT_MEMLOCK; -EDQUOT at a limit of the module. On error nothing is
 * charged and tensor_pin_uncharge() need not be called.
 */
int tensor_pin_charge(struct tensor_pin_charges *charges, struct tensor_user *user,
		      unsigned long pages)
{
	int err;

	memset(charges, 0, sizeof(*charges));
	err = charge_memlock(charges, pages);
	if (err)
		return err;
	err = tensor_limit_charge(user, (u64)pages << PAGE_SHIFT);
	if (err) {
		uncharge_memlock(charges, pages);
		return err;
	}
	charges->user = tensor_user_hold(user);
	charges->pages = pages;
	return 0;
}

/**
 * tensor_pin_uncharge() - undo tensor_pin_charge(), after the memory is released
 * @charges: filled in by tensor_pin_charge(), or zeroed; zeroed on return. Any task may call this
 */
void tensor_pin_uncharge(struct tensor_pin_charges *charges)
{
	if (!charges->user)
		return;
	uncharge_memlock(charges, charges->pages);
	tensor_limit_uncharge(charges->user, (u64)charges->pages << PAGE_SHIFT);
	tensor_user_put(charges->user);
	memset(charges, 0, sizeof(*charges));
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
 * @p: filled in, for tensor_unpin()
 * @user: user to charge, see tensor_pin_charge()
 * @addr: start of the memory, page-aligned
 * @bytes: size, a multiple of the page size, not 0
 * @write: the memory will be written to
 *
 * May sleep, and faults all pages in; a fatal signal interrupts it.
 *
 * Return: 0; -EINVAL: not page-aligned, or past the end of the address space; -ENOMEM, also at
 * RLIMIT_MEMLOCK; -EDQUOT at a limit; -EFAULT: not accessible, or not writable; -EOPNOTSUPP: memory
 * that cannot be pinned long-term; -EINTR. On error @p need not be unpinned.
 */
int tensor_pin_user(struct tensor_pinned *p, struct tensor_user *user, unsigned long addr,
		    u64 bytes, bool write)
{
	unsigned long pages = bytes >> PAGE_SHIFT;
	int err;

	memset(p, 0, sizeof(*p));
	err = pin_check(addr, bytes);
	if (err)
		return err;
	err = tensor_pin_charge(&p->charges, user, pages);
	if (err)
		return err;
	p->pages = kvmalloc_array(pages, sizeof(*p->pages), TENSOR_GFP);
	err = p->pages ? pin_pages(p, addr, pages, write) : -ENOMEM;
	/* not dirty: no device has written to it yet */
	if (err)
		tensor_unpin(p, false);
	return err;
}

/**
 * tensor_unpin() - unpin the pages
 * @p: filled in by tensor_pin_user(); empty on return
 * @dirty: the pages may have been written to
 *
 * May sleep. Any process may call this.
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
	tensor_pin_uncharge(&p->charges);
	memset(p, 0, sizeof(*p));
}
