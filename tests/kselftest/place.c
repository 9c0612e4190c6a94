// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Where the memory of ALLOC lies: on which nodes, in one piece, below 4 GiB.
 */
#include <sys/syscall.h>
#include <sys/uio.h>

#include "device.h"
#include "kselftest_harness.h"

#define FRAMES_4GIB	(1ULL << 20)
#define MODULE_REFS	"/sys/module/tensor/refcnt"

FIXTURE(place) {
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
	return map_shared(dev, alloc->bytes, PROT_READ | PROT_WRITE, alloc->cookie);
}

/* Node of a page that is present, or -errno. */
static int node_of(void *at)
{
	int node = -1000;

	if (syscall(SYS_move_pages, 0, 1UL, &at, NULL, &node, 0) < 0)
		return -errno;
	return node;
}

TEST_F(place, flags_are_offered)
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
	EXPECT_EQ(-EINVAL, alloc_flags(self->dev, PAGE, TENSOR_ALLOC_INTERLEAVE |
				       TENSOR_ALLOC_CONTIG, &alloc));
	EXPECT_EQ(-EINVAL, alloc_flags(self->dev, PAGE, TENSOR_ALLOC_CONTIG | TENSOR_ALLOC_ORDERS,
				       &alloc));
}

/* Every other chunk, and the next buffer begins where this one would have gone on. */
TEST_F(place, interleave_goes_over_all_nodes)
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
			EXPECT_EQ((first + round + i) % 2, node_of(at + i * HUGE)) TH_LOG("chunk %d", i);
		munmap(at, self->alloc.bytes);
		EXPECT_EQ(0, dev_close(self->dev, self->alloc.handle));
	}
}

/* Whether the memory, which gets touched, has frames that follow each other. */
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

TEST_F(place, contig_is_in_one_piece_and_zero)
{
	static const uint64_t pages[] = { 1, 2, 3, 5, 64, 100, 512, 513, 768, 1000, 1024 };
	unsigned int i, round;
	unsigned char *at;

	for (i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		for (round = 0; round < 2; round++) {
			ASSERT_EQ(0, alloc_flags(self->dev, pages[i] * PAGE, TENSOR_ALLOC_CONTIG,
						 &self->alloc)) TH_LOG("%u", i);
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

/* Each page of it may be held by itself, also after all others are gone. */
TEST_F(place, page_of_a_contig_buffer_outlives_it)
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

static int64_t cma_free(void)
{
	return read_number("/proc/meminfo", "CmaFree:") * (int64_t)KIB;
}

static bool module_is_idle(void)
{
	int tries;

	for (tries = 0; read_number(MODULE_REFS, ""); tries++) {
		if (tries == 50)
			return false;
		sleep_ms(100);
	}
	return true;
}

/* How much of it is free is hard to tell, as each CPU keeps some. So: it serves again and again. */
TEST_F(place, area_is_in_one_piece_and_zero_and_comes_back)
{
	uint64_t least = UINT64_MAX, most = 0;
	int64_t before = cma_free();
	unsigned char *at;
	int round;

	if (before < (int64_t)(16 * MIB))
		SKIP(return, "no CMA area (cma=32M on the kernel's command line)");
	for (round = 0; round < 8; round++) {
		ASSERT_EQ(0, alloc_flags(self->dev, 12 * MIB, TENSOR_ALLOC_CONTIG, &self->alloc));
		at = map_all(self->dev, &self->alloc);
		ASSERT_NE(MAP_FAILED, (void *)at);
		EXPECT_TRUE(all_bytes(at, 0, 12 * MIB));
		EXPECT_TRUE(in_one_piece(at, 12 * MIB));
		EXPECT_GT(before, cma_free());
		least = page_frame(at) < least ? page_frame(at) : least;
		most = page_frame(at) > most ? page_frame(at) : most;
		munmap(at, 12 * MIB);
		ASSERT_EQ(0, dev_close(self->dev, self->alloc.handle));
	}
	EXPECT_GT(32 * MIB / PAGE, most - least);
}

/* The area and the module wait for whoever still has a page of it. */
TEST_F(place, area_with_a_pinned_page_waits)
{
	int64_t before = cma_free(), held;
	int pipes[2], dev;
	unsigned char *at, got[8];

	if (before < (int64_t)(16 * MIB))
		SKIP(return, "no CMA area (cma=32M on the kernel's command line)");
	ASSERT_EQ(0, pipe(pipes));
	dev = dev_open();
	ASSERT_EQ(0, alloc_flags(dev, 12 * MIB, TENSOR_ALLOC_CONTIG, &self->alloc));
	at = map_all(dev, &self->alloc);
	ASSERT_NE(MAP_FAILED, (void *)at);
	memset(at, 0x5a, 12 * MIB);
	held = cma_free();
	ASSERT_EQ(0, pin_page(pipes[1], at + 5 * MIB));
	munmap(at, 12 * MIB);
	close(dev);
	close(self->dev);
	sleep_ms(1500);
	EXPECT_GT(held + (int64_t)MIB, cma_free());
	EXPECT_LT(0, read_number(MODULE_REFS, ""));
	ASSERT_EQ(8, read(pipes[0], got, 8));
	EXPECT_TRUE(all_bytes(got, 0x5a, 8));
	close(pipes[0]);
	close(pipes[1]);
	EXPECT_TRUE(module_is_idle());
	self->dev = dev_open();
}

/* More than the largest block of the buddy allocator: in one piece, or refused. */
TEST_F(place, contig_beyond_the_largest_order_is_whole_or_enomem)
{
	int64_t before = memory_free();
	unsigned char *at;
	int err;

	err = alloc_flags(self->dev, 24 * MIB, TENSOR_ALLOC_CONTIG, &self->alloc);
	if (err) {
		EXPECT_EQ(-ENOMEM, err);
	} else {
		at = map_all(self->dev, &self->alloc);
		ASSERT_NE(MAP_FAILED, (void *)at);
		EXPECT_TRUE(all_bytes(at, 0, 24 * MIB));
		EXPECT_TRUE(in_one_piece(at, 24 * MIB));
		munmap(at, 24 * MIB);
		EXPECT_EQ(0, dev_close(self->dev, self->alloc.handle));
	}
	EXPECT_TRUE(memory_comes_back(before, 8 * 1024));
}

/* Whether a page lies above 4 GiB, for all pages of a mapping. */
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

/* Without the flag it would not be: what makes the test above one that can fail. */
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
