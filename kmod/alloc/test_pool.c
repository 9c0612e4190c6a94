// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the pool: which chunks it takes, hands out and frees. */
#include <linux/bits.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/shrinker.h>
#include <linux/sizes.h>

#include "test.h"

#define HUGE_BYTES (PAGE_SIZE << TENSOR_TOP_ORDER)
#define HUGE_PAGES BIT(TENSOR_TOP_ORDER)

static struct tensor_pool_stat pool_stat(void)
{
	struct tensor_pool_stat stat;

	tensor_pool_stat(&stat);
	return stat;
}

/* A chunk that the thread is working on counts as well, so wait for it. */
static bool bytes_become(u64 bytes)
{
	int tries;

	for (tries = 0; pool_stat().bytes != bytes && tries < 100; tries++)
		msleep(50);
	return pool_stat().bytes == bytes;
}

/* An empty pool with room for four chunks; the thread allocates nothing in advance. */
static int pool_begin(struct kunit *test)
{
	tensor_pool_resize(0);
	tensor_pool_resize(4 * HUGE_BYTES);
	tensor_pool_reclaim(first_node(node_states[N_MEMORY]), 1);
	return 0;
}

/* Room for 8 chunks on the node, half of which the thread keeps ready. */
static int fetch_begin(struct kunit *test)
{
	tensor_pool_resize(0);
	tensor_pool_resize(8 * num_node_state(N_MEMORY) * HUGE_BYTES);
	return 0;
}

static void pool_end(struct kunit *test)
{
	tensor_pool_resize(0);
	KUNIT_EXPECT_TRUE(test, bytes_become(0));
}

static struct page *take_retry(int nid, unsigned int order, bool *zeroed)
{
	struct page *head = NULL;
	int tries;

	for (tries = 0; !head && tries < 100; tries++) {
		head = tensor_pool_take(nid, order, zeroed);
		if (!head)
			msleep(50);
	}
	return head;
}

/* Allocate a buffer of @pages, write to it and free it. Return its first page. */
static struct page *alloc_write_free(struct kunit *test, unsigned long pages)
{
	struct tensor_request request = test_request_node(pages);
	struct tensor_chunks c;
	struct page *page;

	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	test_fill(&c, 0xa5);
	page = tensor_chunks_page(&c, 0);
	tensor_chunks_free(&c);
	return page;
}

/* One of the rounds takes the chunk before the thread has zeroed it. */
static void recycled_at_once_is_zero(struct kunit *test)
{
	struct tensor_request request = test_request_node(HUGE_PAGES);
	struct tensor_chunks c;
	int round, hits = 0;

	for (round = 0; round < 20; round++) {
		struct page *page = alloc_write_free(test, HUGE_PAGES);
		u64 before = pool_stat().hits;

		KUNIT_EXPECT_EQ(test, pool_stat().bytes, HUGE_BYTES);
		KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
		KUNIT_EXPECT_TRUE(test, test_all_bytes(&c, 0));
		if (pool_stat().hits != before) {
			KUNIT_EXPECT_PTR_EQ(test, tensor_chunks_page(&c, 0), page);
			hits++;
		}
		tensor_chunks_free(&c);
		tensor_pool_resize(0);
		KUNIT_EXPECT_TRUE(test, bytes_become(0));
		tensor_pool_resize(4 * HUGE_BYTES);
	}
	KUNIT_EXPECT_GT(test, hits, 0);
}

static bool zeroed_becomes(u64 bytes)
{
	int tries;

	for (tries = 0; pool_stat().zeroed_bytes < bytes && tries < 100; tries++)
		msleep(50);
	return pool_stat().zeroed_bytes >= bytes;
}

static void recycled_after_the_background_is_zero(struct kunit *test)
{
	u64 before = pool_stat().zeroed_bytes;
	struct page *page = alloc_write_free(test, 1000), *head;
	bool zeroed = false;
	unsigned int order;
	unsigned long i;

	KUNIT_EXPECT_TRUE(test, zeroed_becomes(before + 1000 * PAGE_SIZE));
	for (order = 0; order <= TENSOR_TOP_ORDER; order++) {
		head = tensor_pool_take(page_to_nid(page), order, &zeroed);
		KUNIT_EXPECT_EQ(test, !!head, (1000 >> order) & 1);
		if (!head)
			continue;
		KUNIT_EXPECT_TRUE(test, zeroed);
		KUNIT_EXPECT_EQ(test, compound_order(head), order);
		for (i = 0; i < 1UL << order; i++)
			KUNIT_EXPECT_TRUE(test, test_page_is(head + i, 0));
		put_page(head);
	}
}

/* The holder of the reference may still write to the page, or read what its next owner writes. */
static void pinned_page_is_not_pooled(struct kunit *test)
{
	struct tensor_request request = test_request_node(HUGE_PAGES);
	struct tensor_chunks c;
	struct page *page;

	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	test_fill(&c, 0x5a);
	page = tensor_chunks_page(&c, 77);
	get_page(page);
	tensor_chunks_free(&c);
	KUNIT_EXPECT_EQ(test, pool_stat().bytes, 0);
	KUNIT_EXPECT_EQ(test, page_count(page), 2);
	KUNIT_EXPECT_TRUE(test, test_page_is(page, 0x5a));
	put_page(page);
	tensor_linger_scan();
	KUNIT_EXPECT_EQ(test, pool_stat().bytes, 0);
	KUNIT_EXPECT_EQ(test, tensor_linger_bytes(), 0);
}

static void flags_of_the_last_owner_are_cleared(struct kunit *test)
{
	struct tensor_request request = test_request_node(1);
	struct tensor_chunks c;
	struct page *page;
	bool zeroed;

	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	page = c.list[0].head;
	SetPageDirty(page);
	folio_set_referenced(page_folio(page));
	tensor_chunks_free(&c);
	KUNIT_ASSERT_PTR_EQ(test, take_retry(request.node, 0, &zeroed), page);
	KUNIT_EXPECT_FALSE(test, PageDirty(page));
	KUNIT_EXPECT_FALSE(test, folio_test_referenced(page_folio(page)));
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	put_page(page);
}

static void order_is_as_requested(struct kunit *test)
{
	struct page *page = alloc_write_free(test, 8), *head;
	int nid = page_to_nid(page);
	bool zeroed;

	KUNIT_EXPECT_PTR_EQ(test, tensor_pool_take(nid, 2, &zeroed), NULL);
	KUNIT_EXPECT_PTR_EQ(test, tensor_pool_take(nid, 4, &zeroed), NULL);
	head = take_retry(nid, 3, &zeroed);
	KUNIT_ASSERT_PTR_EQ(test, head, page);
	KUNIT_EXPECT_EQ(test, pool_stat().bytes, 0);
	put_page(head);
}

static void bound_is_kept(struct kunit *test)
{
	alloc_write_free(test, 6 * HUGE_PAGES);
	KUNIT_EXPECT_EQ(test, pool_stat().bytes, 4 * HUGE_BYTES);
	tensor_pool_resize(HUGE_BYTES);
	/* less if the thread was working on a chunk when the bound was lowered */
	KUNIT_EXPECT_LE(test, pool_stat().bytes, HUGE_BYTES);
	tensor_pool_resize(0);
	KUNIT_EXPECT_TRUE(test, bytes_become(0));
	alloc_write_free(test, HUGE_PAGES);
	KUNIT_EXPECT_EQ(test, pool_stat().bytes, 0);
}

static void small_chunks_make_room_for_large_ones(struct kunit *test)
{
	struct tensor_request request = test_request_node(4 * HUGE_PAGES);
	int nid = request.node;
	struct tensor_chunks c;
	bool zeroed;
	struct page *head;

	request.max_order = 0;
	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	tensor_chunks_free(&c);
	KUNIT_EXPECT_EQ(test, pool_stat().bytes, 4 * HUGE_BYTES);
	alloc_write_free(test, 2 * HUGE_PAGES);
	KUNIT_EXPECT_LE(test, pool_stat().bytes, 4 * HUGE_BYTES);
	/* and small chunks do not displace large ones */
	alloc_write_free(test, HUGE_PAGES / 2);
	head = take_retry(nid, TENSOR_TOP_ORDER, &zeroed);
	KUNIT_ASSERT_NOT_NULL(test, head);
	put_page(head);
	head = take_retry(nid, TENSOR_TOP_ORDER, &zeroed);
	KUNIT_ASSERT_NOT_NULL(test, head);
	put_page(head);
}

static void reclaim_empties_the_pool(struct kunit *test)
{
	const u64 bytes = (3 * HUGE_PAGES + 5) * PAGE_SIZE;
	int nid = first_node(node_states[N_MEMORY]);
	struct tensor_pool_stat before;
	unsigned long freed;

	/*
	 * from here on nothing is allocated in advance, and the thread is idle once all is zeroed
	 */
	tensor_pool_reclaim(nid, ULONG_MAX);
	before = pool_stat();
	alloc_write_free(test, 3 * HUGE_PAGES + 5);
	KUNIT_EXPECT_TRUE(test, zeroed_becomes(before.zeroed_bytes + bytes));
	/* dirty and small chunks go first, and more than requested if a chunk is larger */
	KUNIT_EXPECT_EQ(test, tensor_pool_reclaim(nid, 1), 1);
	KUNIT_EXPECT_EQ(test, tensor_pool_reclaim(nid, 5), 4 + HUGE_PAGES);
	freed = tensor_pool_reclaim(nid, ULONG_MAX);
	KUNIT_EXPECT_EQ(test, freed, 2 * HUGE_PAGES);
	KUNIT_EXPECT_EQ(test, pool_stat().bytes, 0);
	KUNIT_EXPECT_EQ(test, pool_stat().reclaimed_bytes - before.reclaimed_bytes, bytes);
	KUNIT_EXPECT_EQ(test, tensor_pool_reclaim(nid, 1), 0);
}

static bool fetched_becomes(u64 bytes)
{
	int tries;

	for (tries = 0; pool_stat().fetched_bytes < bytes && tries < 40; tries++)
		msleep(50);
	return pool_stat().fetched_bytes >= bytes;
}

static void huge_chunks_are_fetched_on_demand(struct kunit *test)
{
	u64 before = pool_stat().fetched_bytes;
	int nid = first_node(node_states[N_MEMORY]);
	bool zeroed = false;
	struct page *head;
	unsigned long i;

	msleep(200);
	KUNIT_EXPECT_EQ(test, pool_stat().fetched_bytes, before);
	KUNIT_EXPECT_PTR_EQ(test, tensor_pool_take(nid, TENSOR_TOP_ORDER, &zeroed), NULL);
	KUNIT_EXPECT_TRUE(test, fetched_becomes(before + 4 * HUGE_BYTES));
	KUNIT_EXPECT_EQ(test, pool_stat().bytes, 4 * HUGE_BYTES);
	head = take_retry(nid, TENSOR_TOP_ORDER, &zeroed);
	KUNIT_ASSERT_NOT_NULL(test, head);
	KUNIT_EXPECT_TRUE(test, zeroed);
	KUNIT_EXPECT_EQ(test, page_to_nid(head), nid);
	for (i = 0; i < HUGE_PAGES; i++)
		KUNIT_EXPECT_TRUE(test, test_page_is(head + i, 0));
	put_page(head);
}

static void nothing_is_fetched_after_memory_was_short(struct kunit *test)
{
	int nid = first_node(node_states[N_MEMORY]);
	u64 before = pool_stat().fetched_bytes;
	bool zeroed;

	KUNIT_EXPECT_EQ(test, tensor_pool_reclaim(nid, 1), 0);
	KUNIT_EXPECT_PTR_EQ(test, tensor_pool_take(nid, TENSOR_TOP_ORDER, &zeroed), NULL);
	msleep(500);
	KUNIT_EXPECT_EQ(test, pool_stat().fetched_bytes, before);
}

static void misses_are_counted(struct kunit *test)
{
	struct tensor_pool_stat before = pool_stat();
	bool zeroed;

	KUNIT_EXPECT_PTR_EQ(test, tensor_pool_take(first_node(node_states[N_MEMORY]), 1, &zeroed),
			    NULL);
	KUNIT_EXPECT_EQ(test, pool_stat().misses, before.misses + 1);
	KUNIT_EXPECT_EQ(test, pool_stat().hits, before.hits);
	KUNIT_EXPECT_EQ(test, before.limit_bytes, 4 * HUGE_BYTES);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(recycled_at_once_is_zero),  KUNIT_CASE(recycled_after_the_background_is_zero),
	KUNIT_CASE(pinned_page_is_not_pooled), KUNIT_CASE(flags_of_the_last_owner_are_cleared),
	KUNIT_CASE(order_is_as_requested),     KUNIT_CASE(bound_is_kept),
	KUNIT_CASE(misses_are_counted),	       KUNIT_CASE(small_chunks_make_room_for_large_ones),
	KUNIT_CASE(reclaim_empties_the_pool),  {},
};

static struct kunit_suite suite = {
	.name = "tensor_pool",
	TEST_CASES_INIT,
	.init = pool_begin,
	.exit = pool_end,
	.test_cases = cases,
};

/*
 * A suite of its own that runs first, because the thread allocates nothing for long after memory
 * was short.
 */
static struct kunit_case fetch_cases[] = {
	KUNIT_CASE(huge_chunks_are_fetched_on_demand),
	KUNIT_CASE(nothing_is_fetched_after_memory_was_short),
	{},
};

static struct kunit_suite fetch_suite = {
	.name = "tensor_pool_fetch",
	TEST_CASES_INIT,
	.init = fetch_begin,
	.exit = pool_end,
	.test_cases = fetch_cases,
};

kunit_test_suites(&suite, &fetch_suite);
