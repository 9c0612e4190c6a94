// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: where memory lies: nodes, one piece, below 4 GiB.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pfn.h>
#include <linux/sizes.h>

#include "test.h"

static void node_is_honoured(struct kunit *test)
{
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		struct tensor_want want = test_want(600);
		struct tensor_chunks c;
		unsigned long i;

		want.node = nid;
		want.node_only = true;
		KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &want), 0);
		KUNIT_EXPECT_EQ(test, c.node, nid);
		for (i = 0; i < c.pages; i++)
			KUNIT_EXPECT_EQ(test, page_to_nid(tensor_chunks_page(&c, i)), nid);
		tensor_chunks_free(&c);
	}
}

static void interleave_goes_round_and_on(struct kunit *test)
{
	unsigned int nodes = num_node_state(N_MEMORY);
	struct tensor_want want = test_want(7);
	struct tensor_chunks c, d;
	size_t i;

	if (nodes < 2)
		kunit_skip(test, "one node");
	want.max_order = 0;
	want.interleave = true;
	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &want), 0);
	KUNIT_EXPECT_EQ(test, c.node, NUMA_NO_NODE);
	for (i = nodes; i < c.nr; i++)
		KUNIT_EXPECT_EQ(test, page_to_nid(c.list[i].head),
				page_to_nid(c.list[i - nodes].head));
	for (i = 1; i < c.nr; i++)
		KUNIT_EXPECT_NE(test, page_to_nid(c.list[i].head),
				page_to_nid(c.list[i - 1].head));
	KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&d, &want), 0);
	KUNIT_EXPECT_EQ(test, page_to_nid(d.list[0].head), page_to_nid(c.list[7 % nodes].head));
	tensor_chunks_free(&d);
	tensor_chunks_free(&c);
}

static void expect_in_one_piece(struct kunit *test, const struct tensor_chunks *c)
{
	unsigned long first = page_to_pfn(tensor_chunks_page(c, 0)), i;

	for (i = 0; i < c->pages; i++) {
		struct page *page = tensor_chunks_page(c, i);

		KUNIT_EXPECT_EQ(test, page_to_pfn(page), first + i);
		KUNIT_EXPECT_EQ(test, page_count(page), 1);
		/* a reference on any of them is one that lasts */
		get_page(page);
		KUNIT_EXPECT_EQ(test, page_count(page), 2);
		put_page(page);
	}
}

static void contig_is_in_one_piece(struct kunit *test)
{
	static const unsigned long sizes[] = { 1, 2, 3, 7, 128, 129, 511, 512, 513, 1000, 1024 };
	unsigned int i, round;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (round = 0; round < 2; round++) {
			struct tensor_want want = test_want(sizes[i]);
			struct tensor_chunks c;

			want.contig = true;
			KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &want), 0);
			KUNIT_EXPECT_EQ(test, c.pages, sizes[i]);
			expect_in_one_piece(test, &c);
			KUNIT_EXPECT_TRUE(test, test_all_are(&c, 0));
			test_fill(&c, 0xa5);
			tensor_chunks_free(&c);
		}
	}
}

static void contig_that_cannot_be_is_enomem(struct kunit *test)
{
	struct tensor_want want = test_want(totalram_pages());
	struct tensor_chunks c;

	want.contig = true;
	KUNIT_EXPECT_EQ(test, tensor_chunks_alloc(&c, &want), -ENOMEM);
	want.pages = BIT(38);
	KUNIT_EXPECT_EQ(test, tensor_chunks_alloc(&c, &want), -ENOMEM);
	KUNIT_EXPECT_EQ(test, c.nr, 0);
}

static struct page *area_page(struct kunit *test, struct tensor_chunks *c)
{
	struct tensor_want want = test_want((SZ_8M + SZ_1M) >> PAGE_SHIFT);

	want.contig = true;
	if (tensor_chunks_alloc(c, &want))
		kunit_skip(test, "no CMA area (cma=32M on the kernel's command line)");
	expect_in_one_piece(test, c);
	KUNIT_EXPECT_TRUE(test, test_all_are(c, 0));
	test_fill(c, 0x5a);
	return tensor_chunks_page(c, 700);
}

/* Else the core would warn that it gets back what is in use. */
static void pinned_area_goes_back_when_it_is_let_go(struct kunit *test)
{
	struct tensor_chunks c;
	struct page *page = area_page(test, &c);
	int tries;

	get_page(page);
	tensor_chunks_free(&c);
	msleep(1500);
	KUNIT_EXPECT_EQ(test, page_count(page), 2);
	KUNIT_EXPECT_TRUE(test, test_page_is(page, 0x5a));
	put_page(page);
	for (tries = 0; page_count(page) && tries < 50; tries++)
		msleep(100);
	KUNIT_EXPECT_EQ(test, page_count(page), 0);
}

static void area_is_given_back_whole(struct kunit *test)
{
	struct tensor_chunks c;
	int round;

	for (round = 0; round < 8; round++) {
		area_page(test, &c);
		tensor_chunks_free(&c);
	}
}

static void dma32_is_below_4_gib(struct kunit *test)
{
	unsigned int how;

	for (how = 0; how < 3; how++) {
		struct tensor_want want = test_want(1000);
		struct tensor_chunks c;
		unsigned long i;

		want.dma32 = true;
		want.contig = how == 1;
		want.interleave = how == 2;
		KUNIT_ASSERT_EQ(test, tensor_chunks_alloc(&c, &want), 0);
		KUNIT_EXPECT_FALSE(test, c.recycle);
		for (i = 0; i < c.pages; i++)
			KUNIT_EXPECT_LT(test, (u64)PFN_PHYS(page_to_pfn(tensor_chunks_page(&c, i))),
					(u64)SZ_4G);
		tensor_chunks_free(&c);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(node_is_honoured),
	KUNIT_CASE(interleave_goes_round_and_on),
	KUNIT_CASE(contig_is_in_one_piece),
	KUNIT_CASE(contig_that_cannot_be_is_enomem),
	KUNIT_CASE(pinned_area_goes_back_when_it_is_let_go),
	KUNIT_CASE(area_is_given_back_whole),
	KUNIT_CASE(dma32_is_below_4_gib),
	{}
};

static struct kunit_suite suite = {
	.name = "tensor_place",
	TEST_CASES_INIT,
	.test_cases = cases,
};

kunit_test_suite(suite);
