// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: pinned user memory. It belongs to the process that loads the module; the tests run in a
 * thread of their own and borrow its address space.
 */
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/uaccess.h>

#include "test.h"

#define PAGES 40UL
#define BYTES (PAGES * PAGE_SIZE)

static struct mm_struct *mm;
static unsigned long at;
static const struct cred *old_cred;
static struct rlimit old_limit;

static int pin_suite_init(struct kunit_suite *suite)
{
	if (!current->mm)
		return -ESRCH;
	mm = current->mm;
	mmget(mm);
	return test_suite_init(suite);
}

static void pin_suite_exit(struct kunit_suite *suite)
{
	test_suite_exit(suite);
	mmput(mm);
}

static u64 used(void)
{
	return atomic64_read(&test_user->used);
}

static int pin(struct tensor_pinned *p, unsigned long addr, u64 bytes, bool write)
{
	return tensor_pin_user(p, test_user, addr, bytes, write);
}

/* Become a user who may lock 64 pages, in the address space of the loader. */
static int pin_begin(struct kunit *test)
{
	struct cred *cred = test_unprivileged_cred();

	if (!cred)
		return -ENOMEM;
	old_cred = override_creds(cred);
	put_cred(cred);
	old_limit = current->signal->rlim[RLIMIT_MEMLOCK];
	current->signal->rlim[RLIMIT_MEMLOCK].rlim_cur = 64 * PAGE_SIZE;
	kthread_use_mm(mm);
	at = vm_mmap(NULL, 0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	return IS_ERR_VALUE(at) ? (long)at : 0;
}

static void pin_end(struct kunit *test)
{
	if (!IS_ERR_VALUE(at))
		vm_munmap(at, BYTES);
	kthread_unuse_mm(mm);
	current->signal->rlim[RLIMIT_MEMLOCK] = old_limit;
	revert_creds(old_cred);
	tensor_param_limit = 0;
	tensor_param_user_limit = 0;
	KUNIT_EXPECT_EQ(test, used(), 0);
}

static long locked(void)
{
	return atomic_long_read(&current_user()->locked_vm);
}

static void write_at(struct kunit *test, unsigned long page, int value)
{
	KUNIT_EXPECT_EQ(test, put_user(value, (int __user *)(at + page * PAGE_SIZE)), 0);
}

static int first_int(struct page *page)
{
	return *(int *)page_address(page);
}

static void pages_are_those_of_the_process(struct kunit *test)
{
	struct tensor_pinned p;
	unsigned long i;
	long before = locked();
	int value;

	for (i = 0; i < PAGES; i++)
		write_at(test, i, 1000 + i);
	KUNIT_ASSERT_EQ(test, pin(&p, at, BYTES, true), 0);
	KUNIT_EXPECT_EQ(test, p.nr, PAGES);
	KUNIT_EXPECT_EQ(test, locked() - before, PAGES);
	for (i = 0; i < PAGES; i++) {
		struct page *page = p.pages[i];

		KUNIT_EXPECT_EQ(test, first_int(page), 1000 + i);
		KUNIT_EXPECT_TRUE(test, folio_maybe_dma_pinned(page_folio(page)));
	}
	*(int *)page_address(p.pages[3]) = 77;
	KUNIT_EXPECT_EQ(test, get_user(value, (int __user *)(at + 3 * PAGE_SIZE)), 0);
	KUNIT_EXPECT_EQ(test, value, 77);
	tensor_unpin(&p, true);
	KUNIT_EXPECT_EQ(test, locked(), before);
	KUNIT_EXPECT_EQ(test, p.nr, 0);
}

static void whole_pages_within_the_address_space(struct kunit *test)
{
	static const struct {
		unsigned long addr;
		u64 bytes;
	} bad[] = {
		{ 0, 0 },	   { 1, PAGE_SIZE }, { 0, 1 },		{ 0, PAGE_SIZE + 1 },
		{ 0, -PAGE_SIZE }, { 0, U64_MAX },   { 0, 1ULL << 63 },
	};
	struct tensor_pinned p;
	long before = locked();
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ(test, pin(&p, at + bad[i].addr, bad[i].bytes, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, pin(&p, -PAGE_SIZE, PAGE_SIZE, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, pin(&p, -PAGE_SIZE, 2 * PAGE_SIZE, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, p.nr, 0);
	KUNIT_EXPECT_EQ(test, locked(), before);
}

/* The pages before the hole were already pinned. */
static void unmapped_page_undoes_the_whole_pin(struct kunit *test)
{
	struct tensor_pinned p;
	struct page *page;
	long before = locked();

	write_at(test, 0, 1);
	KUNIT_ASSERT_EQ(test, pin(&p, at, PAGE_SIZE, true), 0);
	page = p.pages[0];
	get_page(page);
	tensor_unpin(&p, false);
	KUNIT_EXPECT_FALSE(test, folio_maybe_dma_pinned(page_folio(page)));
	vm_munmap(at + 20 * PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, pin(&p, at, BYTES, true), -EFAULT);
	KUNIT_EXPECT_FALSE(test, folio_maybe_dma_pinned(page_folio(page)));
	KUNIT_EXPECT_EQ(test, locked(), before);
	put_page(page);
}

static void memlock_limit_is_enomem(struct kunit *test)
{
	struct tensor_pinned p, q;
	long before = locked();

	if (before > 24)
		kunit_skip(test, "another process has locked memory");
	KUNIT_ASSERT_EQ(test, pin(&p, at, BYTES, true), 0);
	KUNIT_EXPECT_EQ(test, pin(&q, at, 25 * PAGE_SIZE, true), -ENOMEM);
	KUNIT_EXPECT_EQ(test, locked() - before, PAGES);
	KUNIT_EXPECT_EQ(test, pin(&q, at, (24 - before) * PAGE_SIZE, true), 0);
	tensor_unpin(&q, false);
	tensor_unpin(&p, false);
	KUNIT_EXPECT_EQ(test, pin(&p, at, 65 * PAGE_SIZE, true), -ENOMEM);
	KUNIT_EXPECT_EQ(test, locked(), before);
}

static void cap_ipc_lock_is_not_counted(struct kunit *test)
{
	const struct cred *unprivileged = override_creds(old_cred);
	struct tensor_pinned p;
	long before = locked();

	current->signal->rlim[RLIMIT_MEMLOCK].rlim_cur = 0;
	KUNIT_EXPECT_EQ(test, pin(&p, at, BYTES, true), 0);
	KUNIT_EXPECT_EQ(test, locked(), before);
	tensor_unpin(&p, false);
	KUNIT_EXPECT_EQ(test, locked(), before);
	revert_creds(unprivileged);
}

static void limits_of_the_module_count_pinned_memory(struct kunit *test)
{
	struct tensor_pinned p, q;
	long before = locked();

	tensor_param_user_limit = BYTES;
	KUNIT_ASSERT_EQ(test, pin(&p, at, BYTES, true), 0);
	KUNIT_EXPECT_EQ(test, used(), BYTES);
	KUNIT_EXPECT_EQ(test, tensor_limit_used(), BYTES);
	KUNIT_EXPECT_EQ(test, pin(&q, at, PAGE_SIZE, true), -EDQUOT);
	KUNIT_EXPECT_EQ(test, locked() - before, PAGES);
	tensor_unpin(&p, false);
	KUNIT_EXPECT_EQ(test, used(), 0);
	KUNIT_EXPECT_EQ(test, locked(), before);
}

/* The task may exceed the limit of its user, but not that of all users. */
static void cap_ipc_lock_is_charged_and_bound_by_the_total_limit(struct kunit *test)
{
	const struct cred *unprivileged = override_creds(old_cred);
	struct tensor_pinned p, q;

	tensor_param_user_limit = PAGE_SIZE;
	tensor_param_limit = BYTES;
	KUNIT_EXPECT_EQ(test, pin(&p, at, BYTES, true), 0);
	KUNIT_EXPECT_EQ(test, used(), BYTES);
	KUNIT_EXPECT_EQ(test, pin(&q, at, PAGE_SIZE, true), -EDQUOT);
	tensor_unpin(&p, false);
	revert_creds(unprivileged);
}

static void charge_and_uncharge_are_symmetric(struct kunit *test)
{
	struct tensor_pin_charges charges, none = {};
	long before = locked();

	if (before > 24)
		kunit_skip(test, "locked memory is in use");
	KUNIT_EXPECT_EQ(test, tensor_pin_charge(&charges, test_user, 65), -ENOMEM);
	KUNIT_EXPECT_EQ(test, used(), 0);
	KUNIT_ASSERT_EQ(test, tensor_pin_charge(&charges, test_user, 40), 0);
	KUNIT_EXPECT_EQ(test, used(), 40 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, locked() - before, 40);
	tensor_pin_uncharge(&charges);
	tensor_pin_uncharge(&charges);
	tensor_pin_uncharge(&none);
	KUNIT_EXPECT_EQ(test, locked(), before);
}

static void pages_outlive_the_mapping(struct kunit *test)
{
	struct tensor_pinned p;

	write_at(test, 7, 4711);
	KUNIT_ASSERT_EQ(test, pin(&p, at, BYTES, true), 0);
	vm_munmap(at, BYTES);
	KUNIT_EXPECT_EQ(test, first_int(p.pages[7]), 4711);
	tensor_unpin(&p, true);
}

static void write_pin_of_read_only_memory_is_efault(struct kunit *test)
{
	unsigned long ro = vm_mmap(NULL, 0, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	unsigned long shared = vm_mmap(NULL, 0, BYTES, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, 0);
	struct tensor_pinned p;
	long before = locked();

	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(ro) || IS_ERR_VALUE(shared));
	KUNIT_EXPECT_EQ(test, pin(&p, ro, BYTES, true), -EFAULT);
	KUNIT_EXPECT_EQ(test, pin(&p, shared, BYTES, true), -EFAULT);
	KUNIT_EXPECT_EQ(test, locked(), before);
	KUNIT_EXPECT_EQ(test, pin(&p, ro, BYTES, false), 0);
	KUNIT_EXPECT_EQ(test, p.nr, PAGES);
	tensor_unpin(&p, false);
	KUNIT_EXPECT_EQ(test, pin(&p, shared, BYTES, false), 0);
	KUNIT_EXPECT_EQ(test, p.nr, PAGES);
	tensor_unpin(&p, false);
	KUNIT_EXPECT_EQ(test, locked(), before);
	vm_munmap(shared, BYTES);
	vm_munmap(ro, BYTES);
}

/* A page that was never touched is the zero page, which a write replaces. */
static void read_pin_sees_what_the_owner_writes_later(struct kunit *test)
{
	struct tensor_pinned p;

	KUNIT_ASSERT_EQ(test, pin(&p, at, BYTES, false), 0);
	write_at(test, 9, 1234);
	KUNIT_EXPECT_EQ(test, first_int(p.pages[9]), 1234);
	tensor_unpin(&p, false);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(pages_are_those_of_the_process),
	KUNIT_CASE(whole_pages_within_the_address_space),
	KUNIT_CASE(unmapped_page_undoes_the_whole_pin),
	KUNIT_CASE(memlock_limit_is_enomem),
	KUNIT_CASE(cap_ipc_lock_is_not_counted),
	KUNIT_CASE(limits_of_the_module_count_pinned_memory),
	KUNIT_CASE(cap_ipc_lock_is_charged_and_bound_by_the_total_limit),
	KUNIT_CASE(charge_and_uncharge_are_symmetric),
	KUNIT_CASE(pages_outlive_the_mapping),
	KUNIT_CASE(write_pin_of_read_only_memory_is_efault),
	KUNIT_CASE(read_pin_sees_what_the_owner_writes_later),
	{},
};

static struct kunit_suite suite = {
	.name = "tensor_pin",
	.suite_init = pin_suite_init,
	.suite_exit = pin_suite_exit,
	.init = pin_begin,
	.exit = pin_end,
	.test_cases = cases,
};

kunit_test_suite(suite);
