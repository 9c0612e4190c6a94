// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: placement: nodes, contiguous memory, memory below 4 GiB. */
#include <linux/module.h>
#include <linux/pfn.h>
#include <linux/sizes.h>

#include "test.h"

static void requested_node_is_used(struct kunit *test)
{
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		struct tensor_request request = test_request(600);
		struct tensor_chunks c;
		unsigned long i;

		request.node = nid;
		request.node_only = true;
		KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
		KUNIT_EXPECT_EQ(test, c.node, nid);
		for (i = 0; i < c.pages; i++)
			KUNIT_EXPECT_EQ(test, page_to_nid(tensor_chunks_page(&c, i)), nid);
		tensor_chunks_free(&c);
	}
}

static void interleave_alternates_over_nodes(struct kunit *test)
{
	unsigned int nodes = num_node_state(N_MEMORY);
	struct tensor_request request = test_request(7);
	struct tensor_chunks c, d;
	size_t i;

	if (nodes < 2)
		kunit_skip(test, "one node");
	request.max_order = 0;
	request.interleave = true;
	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
	KUNIT_EXPECT_EQ(test, c.node, NUMA_NO_NODE);
	for (i = nodes; i < c.nr; i++)
		KUNIT_EXPECT_EQ(test, page_to_nid(c.list[i].head),
				page_to_nid(c.list[i - nodes].head));
	for (i = 1; i < c.nr; i++)
		KUNIT_EXPECT_NE(test, page_to_nid(c.list[i].head), page_to_nid(c.list[i - 1].head));
	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&d, &request, test_user), 0);
	KUNIT_EXPECT_EQ(test, page_to_nid(d.list[0].head), page_to_nid(c.list[7 % nodes].head));
	tensor_chunks_free(&d);
	tensor_chunks_free(&c);
}

static void expect_contiguous(struct kunit *test, const struct tensor_chunks *c)
{
	unsigned long first = page_to_pfn(tensor_chunks_page(c, 0)), i;

	for (i = 0; i < c->pages; i++) {
		struct page *page = tensor_chunks_page(c, i);

		KUNIT_EXPECT_EQ(test, page_to_pfn(page), first + i);
		KUNIT_EXPECT_NE(test, page_zonenum(page), ZONE_MOVABLE);
		/*
		 * a head or a page with its own count: a tail page without a head has a count of 0
		 */
		KUNIT_EXPECT_EQ(test, page_ref_count(compound_head(page)), 1);
		get_page(page);
		KUNIT_EXPECT_EQ(test, page_count(page), 2);
		put_page(page);
	}
}

static void contig_is_contiguous(struct kunit *test)
{
	static const unsigned long sizes[] = { 1, 2, 3, 7, 128, 129, 511, 512, 513, 1000, 1024 };
	unsigned int i, round;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (round = 0; round < 2; round++) {
			struct tensor_request request = test_request(sizes[i]);
			struct tensor_chunks c;

			request.contig = true;
			KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
			KUNIT_EXPECT_EQ(test, c.pages, sizes[i]);
			expect_contiguous(test, &c);
			KUNIT_EXPECT_TRUE(test, test_all_bytes(&c, 0));
			test_fill(&c, 0xa5);
			tensor_chunks_free(&c);
		}
	}
}

/* -EOPNOTSUPP: no state of memory could satisfy it, and nothing is charged before that is known. */
static void contig_beyond_this_kernel_is_eopnotsupp(struct kunit *test)
{
	const unsigned long sizes[] = {
		(tensor_contig_bytes() >> PAGE_SHIFT) + 1,
		totalram_pages() + 1,
		BIT(38),
	};
	u64 refused = tensor_limit_refused();
	struct tensor_chunks c;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct tensor_request request = test_request(sizes[i]);

		request.contig = true;
		KUNIT_EXPECT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), -EOPNOTSUPP);
		KUNIT_EXPECT_EQ(test, c.nr, 0);
	}
	KUNIT_EXPECT_EQ(test, tensor_limit_refused(), refused);
}

static void contig_bytes_is_the_largest_size_that_is_tried(struct kunit *test)
{
	struct tensor_request request = test_request(BIT(MAX_PAGE_ORDER));
	struct tensor_chunks c;
	int err;

	if (TENSOR_CONTIG_PAGES)
		kunit_skip(test, "ordinary memory is made contiguous on this kernel");
	KUNIT_EXPECT_EQ(test, tensor_contig_bytes(), (u64)request.pages << PAGE_SHIFT);
	request.contig = true;
	err = tensor_chunks_alloc(&c, &request, test_user);
	KUNIT_EXPECT_TRUE(test, !err || err == -ENOMEM);
	tensor_chunks_free(&c);
}

#ifdef CONFIG_FAIL_PAGE_ALLOC
static void unavailable_contig_is_enomem(struct kunit *test)
{
	struct tensor_request request = test_request(1000);
	struct tensor_chunks c;

	if (!test_can_inject())
		kunit_skip(test, "page allocations cannot be made to fail");
	request.contig = true;
	/* the list of chunks is allocated first */
	for (current->fail_nth = 1; current->fail_nth < 40;) {
		int nth = current->fail_nth, err = tensor_chunks_alloc(&c, &request, test_user);
		bool failed = !current->fail_nth;

		current->fail_nth = 0;
		KUNIT_EXPECT_TRUE(test, !err || err == -ENOMEM);
		tensor_chunks_free(&c);
		KUNIT_EXPECT_EQ(test, atomic64_read(&test_user->used), 0);
		if (!failed)
			return;
		current->fail_nth = nth + 1;
	}
	current->fail_nth = 0;
	KUNIT_FAIL(test, "a contiguous buffer takes more than 40 allocations");
}
#endif

static void dma32_is_below_4_gib(struct kunit *test)
{
	unsigned int how;

	for (how = 0; how < 3; how++) {
		struct tensor_request request = test_request(1000);
		struct tensor_chunks c;
		unsigned long i;

		request.dma32 = true;
		request.contig = how == 1;
		request.interleave = how == 2;
		KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &request, test_user), 0);
		KUNIT_EXPECT_FALSE(test, c.recycle);
		for (i = 0; i < c.pages; i++)
			KUNIT_EXPECT_LT(test, (u64)PFN_PHYS(page_to_pfn(tensor_chunks_page(&c, i))),
					(u64)SZ_4G);
		tensor_chunks_free(&c);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(requested_node_is_used),
	KUNIT_CASE(interleave_alternates_over_nodes),
	KUNIT_CASE(contig_is_contiguous),
	KUNIT_CASE(contig_beyond_this_kernel_is_eopnotsupp),
	KUNIT_CASE(contig_bytes_is_the_largest_size_that_is_tried),
#ifdef CONFIG_FAIL_PAGE_ALLOC
	KUNIT_CASE(unavailable_contig_is_enomem),
#endif
	KUNIT_CASE(dma32_is_below_4_gib),
	{},
};

static struct kunit_suite suite = {
	.name = "tensor_place",
	TEST_CASES_INIT,
	.test_cases = cases,
};

kunit_test_suite(suite);
