// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the chunks of a buffer: orders, alignment, fallback to smaller orders. */
#include <linux/module.h>
#include <linux/sched.h>

#include "test.h"

static void orders_are_kept(struct kunit *test)
{
	unsigned int order, i;

	for (order = 0; order <= TENSOR_TOP_ORDER; order++) {
		struct tensor_request request = test_request(3UL << TENSOR_TOP_ORDER);
		struct tensor_chunks c;

		request.min_order = order;
		request.max_order = order;
		KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
		KUNIT_EXPECT_EQ(test, c.pages, request.pages);
		KUNIT_EXPECT_EQ(test, c.nr, request.pages >> order);
		for (i = 0; i < TENSOR_ORDERS; i++)
			KUNIT_EXPECT_EQ(test, c.count[i], i == order ? c.nr : 0);
		tensor_chunks_free(&c);
		KUNIT_EXPECT_EQ(test, c.nr, 0);
	}
}

static void odd_sizes_have_each_order_at_most_once(struct kunit *test)
{
	const unsigned long pages = (2UL << TENSOR_TOP_ORDER) + 0x135;
	struct tensor_request request = test_request(pages);
	struct tensor_chunks c;
	unsigned int order;

	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	KUNIT_EXPECT_EQ(test, c.pages, pages);
	KUNIT_EXPECT_EQ(test, c.count[TENSOR_TOP_ORDER], 2);
	for (order = 0; order < TENSOR_TOP_ORDER; order++)
		KUNIT_EXPECT_EQ(test, c.count[order], 0x135 >> order & 1);
	tensor_chunks_free(&c);
}

/* The core relies on this when it maps a whole chunk by its head page. */
static void chunks_are_aligned_and_have_their_index(struct kunit *test)
{
	struct tensor_request request = test_request((2UL << TENSOR_TOP_ORDER) + 0x135);
	struct tensor_chunks c;
	unsigned long next = 0;
	size_t i;

	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	for (i = 0; i < c.nr; i++) {
		struct page *head = c.list[i].head;
		unsigned long pages = compound_nr(head);

		KUNIT_EXPECT_EQ(test, c.list[i].first, next);
		KUNIT_EXPECT_EQ(test, c.list[i].first % pages, 0);
		KUNIT_EXPECT_EQ(test, page_to_pfn(head) % pages, 0);
		KUNIT_EXPECT_EQ(test, page_folio(head)->index, next);
		KUNIT_EXPECT_EQ(test, page_count(head), 1);
		next += pages;
	}
	KUNIT_EXPECT_EQ(test, next, c.pages);
	tensor_chunks_free(&c);
}

static void page_is_found_by_index(struct kunit *test)
{
	struct tensor_request request = test_request((1UL << TENSOR_TOP_ORDER) + 77);
	struct tensor_chunks c;
	unsigned long i;
	size_t at = 0;

	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	for (i = 0; i < c.pages; i++) {
		if (at + 1 < c.nr && c.list[at + 1].first == i)
			at++;
		KUNIT_EXPECT_PTR_EQ(test, tensor_chunks_page(&c, i),
				    c.list[at].head + (i - c.list[at].first));
	}
	KUNIT_EXPECT_PTR_EQ(test, tensor_chunks_page(&c, c.pages), NULL);
	KUNIT_EXPECT_PTR_EQ(test, tensor_chunks_page(&c, ULONG_MAX), NULL);
	tensor_chunks_free(&c);
}

static void memory_is_zero(struct kunit *test)
{
	struct tensor_request request = test_request((1UL << TENSOR_TOP_ORDER) + 77);
	struct tensor_chunks c;
	int round;

	for (round = 0; round < 2; round++) {
		KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
		KUNIT_EXPECT_TRUE(test, test_all_bytes(&c, 0));
		test_fill(&c, 0xa5);
		tensor_chunks_free(&c);
	}
}

#ifdef CONFIG_FAIL_PAGE_ALLOC
static void missing_order_falls_back_to_the_next(struct kunit *test)
{
	struct tensor_request request = test_request(2UL << TENSOR_TOP_ORDER);
	struct tensor_chunks c;

	if (!test_can_inject())
		kunit_skip(test, "page allocations cannot be made to fail");
	tensor_pool_resize(0);
	current->fail_nth = 2;
	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	KUNIT_EXPECT_EQ(test, current->fail_nth, 0);
	KUNIT_EXPECT_EQ(test, c.pages, request.pages);
	KUNIT_EXPECT_EQ(test, c.count[TENSOR_TOP_ORDER], 1);
	KUNIT_EXPECT_EQ(test, c.count[TENSOR_TOP_ORDER - 1], 2);
	tensor_chunks_free(&c);
}

static void smallest_order_missing_is_enomem(struct kunit *test)
{
	struct tensor_request request = test_request(4UL << TENSOR_TOP_ORDER);
	struct tensor_chunks c;

	if (!test_can_inject())
		kunit_skip(test, "page allocations cannot be made to fail");
	tensor_pool_resize(0);
	request.min_order = TENSOR_TOP_ORDER;
	current->fail_nth = 3;
	KUNIT_EXPECT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), -ENOMEM);
	KUNIT_EXPECT_EQ(test, current->fail_nth, 0);
	KUNIT_EXPECT_EQ(test, c.nr, 0);
	KUNIT_EXPECT_PTR_EQ(test, c.list, NULL);
	current->fail_nth = 0;
}
#endif

static void huge_bytes_are_those_of_the_top_order(struct kunit *test)
{
	struct tensor_request request = test_request((3UL << TENSOR_PMD_ORDER) + 5);
	struct tensor_chunks c;

	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	KUNIT_EXPECT_EQ(test, tensor_chunks_huge_bytes(&c), 3 * PMD_SIZE);
	KUNIT_EXPECT_EQ(test, tensor_chunks_dma_bytes(&c), 0);
	tensor_chunks_free(&c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(orders_are_kept),
	KUNIT_CASE(odd_sizes_have_each_order_at_most_once),
	KUNIT_CASE(chunks_are_aligned_and_have_their_index),
	KUNIT_CASE(page_is_found_by_index),
	KUNIT_CASE(memory_is_zero),
#ifdef CONFIG_FAIL_PAGE_ALLOC
	KUNIT_CASE(missing_order_falls_back_to_the_next),
	KUNIT_CASE(smallest_order_missing_is_enomem),
#endif
	KUNIT_CASE(huge_bytes_are_those_of_the_top_order),
	{},
};

static struct kunit_suite suite = {
	.name = "tensor_chunks",
	TEST_CASES_INIT,
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of the page allocation of tensor buffers");
MODULE_LICENSE("GPL");
