// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The pool of free chunks: a chunk is zeroed before it is used again, the pool stays below its
 * limit, is freed when memory is short, and keeps no referenced page.
 */
#include <sys/uio.h>

#include "../include/device.h"
#include "kselftest_harness.h"

#define POOL_FILE PARAM("pool_bytes")
#define BUFFERS	  16

FIXTURE(pool)
{
	int dev;
	char old[64];
};

FIXTURE_SETUP(pool)
{
	/* the pool is divided by node */
	ASSERT_EQ(0, stay_on_cpu(0));
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	read_text(POOL_FILE, self->old, sizeof(self->old));
	ASSERT_EQ(0, write_text(POOL_FILE, "0"));
	ASSERT_EQ(0, write_text(POOL_FILE, "67108864"));
}

FIXTURE_TEARDOWN(pool)
{
	close(self->dev);
	EXPECT_EQ(0, write_text(POOL_FILE, self->old));
}

/* Fills a new buffer after checking that it is zero: its first frame; 0 if it was not zero. */
static uint64_t use_buffer(int dev, struct tensor_alloc *alloc)
{
	uint64_t frame = 0;
	char *at;

	if (dev_alloc(dev, HUGE, alloc))
		return 0;
	at = map_shared(dev, HUGE, PROT_READ | PROT_WRITE, alloc->mmap_offset);
	if (at == MAP_FAILED)
		return 0;
	if (all_bytes(at, 0, HUGE)) {
		memset(at, 0xa5, HUGE);
		frame = page_frame(at);
	}
	munmap(at, HUGE);
	return frame;
}

/*
 * Allocates buffers, frees them, waits, allocates them again: number of frames that were reused; <
 * 0: error.
 */
static int recycle(int dev, long wait_ms)
{
	struct tensor_alloc alloc[BUFFERS];
	uint64_t first[BUFFERS], frame;
	int i, j, same = 0;

	for (i = 0; i < BUFFERS; i++) {
		first[i] = use_buffer(dev, &alloc[i]);
		if (!first[i])
			return -1;
	}
	for (i = 0; i < BUFFERS; i++)
		dev_close(dev, alloc[i].handle);
	sleep_ms(wait_ms);
	for (i = 0; i < BUFFERS; i++) {
		frame = use_buffer(dev, &alloc[i]);
		if (!frame)
			return -2;
		for (j = 0; j < BUFFERS; j++)
			same += frame == first[j];
	}
	for (i = 0; i < BUFFERS; i++)
		dev_close(dev, alloc[i].handle);
	return same;
}

/* Retries, because the thread may have fetched so many chunks that none of the old ones is used. */
static int recycle_some(int dev, long wait_ms)
{
	int tries, same = 0;

	for (tries = 0; tries < 5 && !same; tries++)
		same = recycle(dev, wait_ms);
	return same;
}

TEST_F(pool, memory_recycled_at_once_is_zero)
{
	EXPECT_LT(0, recycle_some(self->dev, 0));
}

TEST_F(pool, memory_zeroed_in_the_background_is_zero)
{
	EXPECT_LT(0, recycle_some(self->dev, 500));
}

/* Frees much memory at once: how much of it is not in the kernel's free memory, in MiB. */
static int64_t kept(int dev)
{
	struct tensor_alloc alloc;
	int64_t before = memory_free_now();

	if (dev_alloc(dev, 128 * MIB, &alloc) || dev_close(dev, alloc.handle))
		return -1;
	return (before - memory_free_now()) / 1024;
}

TEST_F(pool, pool_keeps_freed_chunks_up_to_its_limit)
{
	EXPECT_LE(56, kept(self->dev));
}

TEST_F(pool, pool_of_size_0_keeps_nothing)
{
	ASSERT_EQ(0, write_text(POOL_FILE, "0"));
	EXPECT_GT(8, kept(self->dev));
}

TEST_F(pool, lowering_the_limit_frees_the_excess)
{
	int64_t before = memory_free_now();

	ASSERT_LE(56, kept(self->dev));
	ASSERT_EQ(0, write_text(POOL_FILE, "8388608"));
	EXPECT_GT(24, (before - memory_free_now()) / 1024);
}

TEST_F(pool, shrinker_frees_the_whole_pool)
{
	int64_t before = memory_free_now();

	ASSERT_LE(56, kept(self->dev));
	ASSERT_EQ(0, write_text("/proc/sys/vm/drop_caches", "2"));
	EXPECT_GT(8, (before - memory_free_now()) / 1024);
}

/* A page that a transfer in progress has pinned must not get another owner. */
TEST_F(pool, pinned_page_is_not_recycled)
{
	struct tensor_alloc alloc, next[BUFFERS];
	struct iovec part = { .iov_len = PAGE };
	uint64_t frame;
	int pipes[2], i;
	char *at, got[8];

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, dev_alloc(self->dev, HUGE, &alloc));
	at = map_shared(self->dev, HUGE, PROT_READ | PROT_WRITE, alloc.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	memset(at, 0x5a, HUGE);
	frame = page_frame(at);
	part.iov_base = at;
	ASSERT_EQ((ssize_t)PAGE, vmsplice(pipes[1], &part, 1, 0));
	munmap(at, HUGE);
	ASSERT_EQ(0, dev_close(self->dev, alloc.handle));
	for (i = 0; i < BUFFERS; i++)
		EXPECT_NE(frame, use_buffer(self->dev, &next[i]));
	ASSERT_EQ(8, read(pipes[0], got, 8));
	EXPECT_TRUE(all_bytes(got, 0x5a, 8));
	close(pipes[0]);
	close(pipes[1]);
	for (i = 0; i < BUFFERS; i++)
		dev_close(self->dev, next[i].handle);
}

TEST_HARNESS_MAIN
