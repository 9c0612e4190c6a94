// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Placement of ALLOC's memory: nodes, contiguous memory, memory below 4 GiB. */
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../include/device.h"
#include "kselftest_harness.h"

#define FRAMES_4GIB (1ULL << 20)

FIXTURE(place)
{
	int dev;
	struct tensor_query query;
	struct tensor_alloc alloc;
};

FIXTURE_SETUP(place)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_query(self->dev, &self->query));
}

FIXTURE_TEARDOWN(place)
{
	close(self->dev);
}

static int alloc_flags(int dev, uint64_t bytes, uint32_t flags, struct tensor_alloc *alloc)
{
	*alloc = alloc_args(bytes);
	alloc->flags = flags;
	return dev_call(dev, TENSOR_IOC_ALLOC, alloc);
}

static unsigned char *map_all(int dev, const struct tensor_alloc *alloc)
{
	return map_shared(dev, alloc->bytes, PROT_READ | PROT_WRITE, alloc->mmap_offset);
}

/*
 * Node of a page, or -errno. 6.1 reports a page that NUMA balancing has made inaccessible as absent
 * until it is touched again.
 */
static int node_of(void *at)
{
	int node = -1000, tries;

	for (tries = 0; tries < 10; tries++) {
		(void)*(volatile char *)at;
		if (syscall(SYS_move_pages, 0, 1UL, &at, NULL, &node, 0) < 0)
			return -errno;
		if (node != -ENOENT)
			break;
	}
	return node;
}

TEST_F(place, query_reports_the_placement_flags)
{
	uint64_t flags = TENSOR_ALLOC_INTERLEAVE | TENSOR_ALLOC_CONTIG | TENSOR_ALLOC_DMA32;

	EXPECT_EQ(flags, self->query.alloc_flags & flags);
}

TEST_F(place, contradictions_are_einval)
{
	struct tensor_alloc alloc;

	alloc = alloc_args(PAGE);
	alloc.flags = TENSOR_ALLOC_INTERLEAVE;
	alloc.node = 0;
	EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc));
	EXPECT_EQ(-EINVAL, alloc_flags(self->dev, PAGE,
				       TENSOR_ALLOC_INTERLEAVE | TENSOR_ALLOC_CONTIG, &alloc));
	EXPECT_EQ(-EINVAL,
		  alloc_flags(self->dev, PAGE, TENSOR_ALLOC_CONTIG | TENSOR_ALLOC_ORDERS, &alloc));
}

/* Chunks alternate between the nodes, and the next buffer continues with the next node. */
TEST_F(place, interleave_uses_all_nodes)
{
	unsigned char *at;
	int first, i, round;

	if (self->query.nodes != 2)
		SKIP(return, "not two NUMA nodes (tests/vm/run --numa 2)");
	for (round = 0; round < 3; round++) {
		self->alloc = alloc_args(7 * HUGE);
		self->alloc.flags = TENSOR_ALLOC_INTERLEAVE | TENSOR_ALLOC_ORDERS;
		self->alloc.min_order = 9;
		self->alloc.max_order = 9;
		ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_ALLOC, &self->alloc));
		at = map_all(self->dev, &self->alloc);
		ASSERT_NE(MAP_FAILED, (void *)at);
		memset(at, 1, self->alloc.bytes);
		if (!round)
			first = node_of(at);
		for (i = 0; i < 7; i++)
			EXPECT_EQ((first + round + i) % 2, node_of(at + i * HUGE))
		TH_LOG("chunk %d", i);
		munmap(at, self->alloc.bytes);
		EXPECT_EQ(0, dev_close(self->dev, self->alloc.handle));
	}
}

/* The node in INFO of a new buffer; -1000 if ALLOC fails. */
static int node_made(int dev, int32_t node, uint32_t flags)
{
	struct tensor_alloc alloc = alloc_args(2 * HUGE);
	struct tensor_info info;

	alloc.node = node;
	alloc.flags = flags;
	if (dev_call(dev, TENSOR_IOC_ALLOC, &alloc) || buf_info(dev, alloc.handle, &info) ||
	    dev_close(dev, alloc.handle))
		return -1000;
	return info.node;
}

static int policy(int mode, unsigned long nodes)
{
	return syscall(SYS_set_mempolicy, mode, nodes ? &nodes : NULL, nodes ? 64UL : 0UL) ?
		       -errno :
		       0;
}

/* 0 is a node like others and overrides the policy of the caller; -1 leaves it to the policy. */
TEST_F(place, node_0_is_not_any_node)
{
	int round;

	if (self->query.nodes != 2)
		SKIP(return, "not two NUMA nodes (tests/vm/run --numa 2)");
	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, policy(MPOL_BIND, 1 << 1));
		EXPECT_EQ(1, node_made(self->dev, TENSOR_NODE_ANY, 0));
		EXPECT_EQ(0, node_made(self->dev, 0, 0));
		EXPECT_EQ(0, node_made(self->dev, 0, TENSOR_ALLOC_NODE_ONLY));
		EXPECT_EQ(1, node_made(self->dev, 1, 0));
		ASSERT_EQ(0, policy(MPOL_BIND, 1 << 0));
		EXPECT_EQ(0, node_made(self->dev, TENSOR_NODE_ANY, 0));
		EXPECT_EQ(1, node_made(self->dev, 1, TENSOR_ALLOC_NODE_ONLY));
	}
	ASSERT_EQ(0, policy(MPOL_DEFAULT, 0));
}

/* In INFO -1 means that the pages are on more than one node. */
TEST_F(place, info_has_no_node_for_pages_on_two)
{
	if (self->query.nodes != 2)
		SKIP(return, "not two NUMA nodes (tests/vm/run --numa 2)");
	EXPECT_EQ(TENSOR_NODE_ANY, node_made(self->dev, TENSOR_NODE_ANY, TENSOR_ALLOC_INTERLEAVE));
}

/* Whether the memory, which gets touched, is physically contiguous. */
static bool in_one_piece(unsigned char *at, uint64_t bytes)
{
	uint64_t i, first;

	memset(at, 0xa5, bytes);
	first = page_frame(at);
	for (i = 0; i < bytes / PAGE; i++) {
		if (page_frame(at + i * PAGE) != first + i)
			return false;
	}
	return first;
}

TEST_F(place, contig_is_contiguous_and_zero)
{
	static const uint64_t pages[] = { 1, 2, 3, 5, 64, 100, 512, 513, 768, 1000, 1024 };
	unsigned int i, round;
	unsigned char *at;

	for (i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		for (round = 0; round < 2; round++) {
			ASSERT_EQ(0, alloc_flags(self->dev, pages[i] * PAGE, TENSOR_ALLOC_CONTIG,
						 &self->alloc))
			TH_LOG("%u", i);
			EXPECT_EQ(pages[i] * PAGE, self->alloc.bytes);
			at = map_all(self->dev, &self->alloc);
			ASSERT_NE(MAP_FAILED, (void *)at);
			EXPECT_TRUE(all_bytes(at, 0, self->alloc.bytes)) TH_LOG("%u", i);
			EXPECT_TRUE(in_one_piece(at, self->alloc.bytes)) TH_LOG("%u", i);
			munmap(at, self->alloc.bytes);
			ASSERT_EQ(0, dev_close(self->dev, self->alloc.handle));
		}
	}
}

TEST_F(place, contig_of_a_power_of_two_is_huge)
{
	struct tensor_info info;

	ASSERT_EQ(0, alloc_flags(self->dev, HUGE, TENSOR_ALLOC_CONTIG, &self->alloc));
	ASSERT_EQ(0, buf_info(self->dev, self->alloc.handle, &info));
	EXPECT_EQ(HUGE, info.huge_bytes);
}

static int pin_page(int end, void *page)
{
	struct iovec part = { .iov_base = page, .iov_len = PAGE };

	return vmsplice(end, &part, 1, 0) == (ssize_t)PAGE ? 0 : -errno;
}

/* Each page may be referenced by itself, also after all others are freed. */
TEST_F(place, page_of_a_contig_buffer_can_outlive_it)
{
	int pipes[2];
	unsigned char *at, got[8];

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, alloc_flags(self->dev, 7 * PAGE, TENSOR_ALLOC_CONTIG, &self->alloc));
	at = map_all(self->dev, &self->alloc);
	ASSERT_NE(MAP_FAILED, (void *)at);
	memset(at, 0x5a, 7 * PAGE);
	ASSERT_EQ(0, pin_page(pipes[1], at + 3 * PAGE));
	munmap(at, 7 * PAGE);
	ASSERT_EQ(0, dev_close(self->dev, self->alloc.handle));
	ASSERT_EQ(0, alloc_flags(self->dev, 7 * PAGE, TENSOR_ALLOC_CONTIG, &self->alloc));
	ASSERT_EQ(8, read(pipes[0], got, 8));
	EXPECT_TRUE(all_bytes(got, 0x5a, 8));
	close(pipes[0]);
	close(pipes[1]);
}

/*
 * One page more than the largest order: contiguous, or refused with EOPNOTSUPP. Smaller requests
 * are never EOPNOTSUPP.
 */
TEST_F(place, contig_beyond_the_largest_order_is_whole_or_refused)
{
	uint64_t most = largest_block(), pages;
	int64_t before = memory_free();
	unsigned char *at;
	int err;

	for (pages = most - 1; pages <= most + 1; pages++) {
		err = alloc_flags(self->dev, pages * PAGE, TENSOR_ALLOC_CONTIG, &self->alloc);
		if (err) {
			EXPECT_EQ(pages > most ? -EOPNOTSUPP : -ENOMEM, err)
			TH_LOG("%llu pages", (unsigned long long)pages);
			continue;
		}
		at = map_all(self->dev, &self->alloc);
		ASSERT_NE(MAP_FAILED, (void *)at);
		EXPECT_TRUE(all_bytes(at, 0, pages * PAGE));
		EXPECT_TRUE(in_one_piece(at, pages * PAGE));
		munmap(at, pages * PAGE);
		EXPECT_EQ(0, dev_close(self->dev, self->alloc.handle));
	}
	EXPECT_TRUE(memory_is_freed(before, 1024));
}

/* Number of pages of a mapping above 4 GiB. */
static int pages_above(unsigned char *at, uint64_t bytes)
{
	uint64_t i;
	int n = 0;

	memset(at, 1, bytes);
	for (i = 0; i < bytes; i += PAGE)
		n += page_frame(at + i) >= FRAMES_4GIB;
	return n;
}

TEST_F(place, dma32_is_below_4_gib)
{
	static const uint32_t flags[] = { 0, TENSOR_ALLOC_CONTIG, TENSOR_ALLOC_INTERLEAVE };
	unsigned char *at;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, alloc_flags(self->dev, 3 * MIB, flags[i] | TENSOR_ALLOC_DMA32,
					 &self->alloc));
		at = map_all(self->dev, &self->alloc);
		ASSERT_NE(MAP_FAILED, (void *)at);
		EXPECT_TRUE(all_bytes(at, 0, 3 * MIB));
		EXPECT_EQ(0, pages_above(at, 3 * MIB));
		munmap(at, 3 * MIB);
	}
}

/* Shows that the test above can fail: without the flag, memory above 4 GiB is used. */
TEST_F(place, without_dma32_high_memory_is_used)
{
	unsigned char *at;

	if (read_number("/proc/meminfo", "MemTotal:") < 4 * 1024 * 1024)
		SKIP(return, "no memory above 4 GiB (tests/vm/run --mem 6G)");
	ASSERT_EQ(0, alloc_flags(self->dev, 64 * MIB, TENSOR_ALLOC_INTERLEAVE, &self->alloc));
	at = map_all(self->dev, &self->alloc);
	ASSERT_NE(MAP_FAILED, (void *)at);
	EXPECT_LT(0, pages_above(at, 64 * MIB));
}

TEST_HARNESS_MAIN
