// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: folios that are referenced after their buffer is freed stay charged until they are free.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>

#include "test.h"

#define HUGE_BYTES (PAGE_SIZE << TENSOR_TOP_ORDER)
#define HUGE_PAGES BIT(TENSOR_TOP_ORDER)
#define THREADS	   4

static const struct cred *saved_cred;
static struct cred *unprivileged;

static int linger_begin(struct kunit *test)
{
	unprivileged = test_unprivileged_cred();
	if (!unprivileged)
		return -ENOMEM;
	saved_cred = override_creds(unprivileged);
	return 0;
}

static void linger_end(struct kunit *test)
{
	revert_creds(saved_cred);
	put_cred(unprivileged);
	tensor_param_limit = 0;
	tensor_param_user_limit = 0;
	KUNIT_EXPECT_EQ(test, tensor_limit_used(), 0);
	KUNIT_EXPECT_EQ(test, tensor_linger_bytes(), 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&test_user->ref), 1);
}

static u64 used(void)
{
	return atomic64_read(&test_user->used);
}

/* Free a buffer while one of its pages is referenced. Return that page. */
static struct page *free_with_reference(struct kunit *test, unsigned long pages,
					unsigned long index)
{
	struct tensor_request request = test_request(pages);
	struct tensor_chunks c;
	struct page *page;

	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	KUNIT_EXPECT_EQ(test, used(), pages * PAGE_SIZE);
	test_fill(&c, 0x5a);
	page = tensor_chunks_page(&c, index);
	get_page(page);
	tensor_chunks_free(&c);
	return page;
}

static void referenced_page_stays_charged_until_freed(struct kunit *test)
{
	struct page *page = free_with_reference(test, HUGE_PAGES, 77);

	KUNIT_EXPECT_EQ(test, used(), HUGE_BYTES);
	KUNIT_EXPECT_EQ(test, tensor_limit_used(), HUGE_BYTES);
	KUNIT_EXPECT_EQ(test, tensor_linger_bytes(), HUGE_BYTES);
	tensor_linger_scan();
	KUNIT_EXPECT_EQ(test, used(), HUGE_BYTES);
	KUNIT_EXPECT_EQ(test, page_count(page), 2);
	KUNIT_EXPECT_TRUE(test, test_page_is(page, 0x5a));
	put_page(page);
	tensor_linger_scan();
	KUNIT_EXPECT_EQ(test, used(), 0);
}

static void only_referenced_folios_stay_charged(struct kunit *test)
{
	struct page *page = free_with_reference(test, 2 * HUGE_PAGES + 5, 2 * HUGE_PAGES + 1);

	/* 4 of the last 5 pages are one folio */
	KUNIT_EXPECT_EQ(test, used(), 4 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, tensor_linger_bytes(), 4 * PAGE_SIZE);
	put_page(page);
	tensor_linger_scan();
	KUNIT_EXPECT_EQ(test, used(), 0);
}

static void page_of_a_contiguous_buffer_stays_alone(struct kunit *test)
{
	struct tensor_request request = test_request(7);
	struct tensor_chunks c;
	struct page *page;

	request.contig = true;
	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	page = tensor_chunks_page(&c, 3);
	get_page(page);
	tensor_chunks_free(&c);
	KUNIT_EXPECT_EQ(test, used(), PAGE_SIZE);
	put_page(page);
	tensor_linger_scan();
	KUNIT_EXPECT_EQ(test, used(), 0);
}

static void work_frees_folio_without_a_request(struct kunit *test)
{
	struct page *page = free_with_reference(test, 1, 0);
	int tries;

	msleep(1500);
	KUNIT_EXPECT_EQ(test, used(), PAGE_SIZE);
	put_page(page);
	for (tries = 0; used() && tries < 50; tries++)
		msleep(100);
	KUNIT_EXPECT_EQ(test, used(), 0);
}

static void charge_at_a_limit_frees_what_can_be_freed(struct kunit *test, unsigned long long *limit)
{
	struct tensor_request request = test_request(HUGE_PAGES);
	u64 refused = tensor_limit_refused();
	struct tensor_chunks c;
	struct page *page;

	*limit = HUGE_BYTES;
	page = free_with_reference(test, HUGE_PAGES, 0);
	KUNIT_EXPECT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), -EDQUOT);
	KUNIT_EXPECT_EQ(test, tensor_limit_refused() - refused, 1);
	put_page(page);
	KUNIT_EXPECT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	KUNIT_EXPECT_EQ(test, tensor_limit_refused() - refused, 1);
	tensor_chunks_free(&c);
}

static void charge_at_the_limit_of_a_user_scans(struct kunit *test)
{
	charge_at_a_limit_frees_what_can_be_freed(test, &tensor_param_user_limit);
}

static void charge_at_the_limit_of_all_scans(struct kunit *test)
{
	charge_at_a_limit_frees_what_can_be_freed(test, &tensor_param_limit);
}

/* More folios than are taken under one hold of the list's lock, alternately in use and free. */
static void scan_finds_all_that_are_free(struct kunit *test)
{
	struct tensor_request request = test_request(1000);
	struct tensor_chunks c;
	unsigned long first, i;
	struct page **pages;

	pages = kunit_kcalloc(test, request.pages, sizeof(*pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pages);
	request.max_order = 0;
	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	for (i = 0; i < request.pages; i++) {
		pages[i] = tensor_chunks_page(&c, i);
		get_page(pages[i]);
	}
	tensor_chunks_free(&c);
	for (first = 0; first < 3; first++) {
		KUNIT_EXPECT_EQ(test, used(), (1000 - first * 334 + (first == 2)) * PAGE_SIZE);
		for (i = first; i < request.pages; i += 3)
			put_page(pages[i]);
		tensor_linger_scan();
	}
	KUNIT_EXPECT_EQ(test, used(), 0);
}

static int free_referenced(void *arg)
{
	struct tensor_request request = test_request(4);
	struct tensor_chunks c;
	struct page *page;
	int i;

	request.max_order = 0;
	for (i = 0; i < 500; i++) {
		if (tensor_chunks_alloc(&c, &request, test_user))
			break;
		page = tensor_chunks_page(&c, i % 4);
		get_page(page);
		tensor_chunks_free(&c);
		if (i & 1)
			tensor_linger_scan();
		put_page(page);
	}
	complete(arg);
	return 0;
}

static void racing_scans_lose_nothing(struct kunit *test)
{
	struct completion done[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		init_completion(&done[i]);
		KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(free_referenced, &done[i], "linger")));
	}
	for (i = 0; i < THREADS; i++)
		wait_for_completion(&done[i]);
	tensor_linger_scan();
	KUNIT_EXPECT_EQ(test, used(), 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(referenced_page_stays_charged_until_freed),
	KUNIT_CASE(only_referenced_folios_stay_charged),
	KUNIT_CASE(page_of_a_contiguous_buffer_stays_alone),
	KUNIT_CASE(work_frees_folio_without_a_request),
	KUNIT_CASE(charge_at_the_limit_of_a_user_scans),
	KUNIT_CASE(charge_at_the_limit_of_all_scans),
	KUNIT_CASE(scan_finds_all_that_are_free),
	KUNIT_CASE(racing_scans_lose_nothing),
	{},
};

static struct kunit_suite suite = {
	.name = "tensor_linger",
	TEST_CASES_INIT,
	.init = linger_begin,
	.exit = linger_end,
	.test_cases = cases,
};

/* The module is unloaded: the page stays, and the user is freed with its last charge. */
static void exit_drops_lingering_pages(struct kunit *test)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, test_suite_init(NULL), 0);
	page = free_with_reference(test, HUGE_PAGES, 3);
	KUNIT_EXPECT_EQ(test, refcount_read(&test_user->ref), 2);
	tensor_alloc_exit();
	KUNIT_EXPECT_EQ(test, refcount_read(&test_user->ref), 1);
	tensor_user_put(test_user);
	KUNIT_EXPECT_EQ(test, tensor_limit_used(), 0);
	KUNIT_EXPECT_EQ(test, tensor_linger_bytes(), 0);
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	KUNIT_EXPECT_TRUE(test, test_page_is(page, 0x5a));
	put_page(page);
}

static struct kunit_case exit_cases[] = {
	KUNIT_CASE(exit_drops_lingering_pages),
	{},
};

static struct kunit_suite exit_suite = {
	.name = "tensor_linger_exit",
	.test_cases = exit_cases,
};

kunit_test_suites(&suite, &exit_suite);
