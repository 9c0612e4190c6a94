// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * ALLOC: the memory is zeroed, has the requested chunks and node, and is charged to the memory
 * cgroup of the caller.
 */
#include "../include/cgroup.h"
#include "kselftest_harness.h"

FIXTURE(alloc)
{
	int dev;
	uint64_t used;
	struct tensor_query query;
};

FIXTURE_SETUP(alloc)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_query(self->dev, &self->query));
	self->used = self->query.used_bytes;
}

FIXTURE_TEARDOWN(alloc)
{
	int dev = dev_open();

	close(self->dev);
	EXPECT_TRUE(used_becomes(dev, self->used));
	close(dev);
}

static int alloc_orders(int dev, uint64_t bytes, int min, int max, struct tensor_alloc *alloc)
{
	*alloc = alloc_args(bytes);
	alloc->flags = TENSOR_ALLOC_ORDERS;
	alloc->min_order = min;
	alloc->max_order = max;
	return dev_call(dev, TENSOR_IOC_ALLOC, alloc);
}

TEST_F(alloc, memory_is_zero_after_a_dirty_owner)
{
	static const uint64_t sizes[] = { PAGE, 64 * KIB, HUGE, HUGE + PAGE, 32 * MIB };
	struct tensor_alloc alloc;
	unsigned int i, round;
	void *at;

	for (i = 0; i < 5; i++) {
		for (round = 0; round < 2; round++) {
			ASSERT_EQ(0, dev_alloc(self->dev, sizes[i], &alloc));
			at = map_shared(self->dev, sizes[i], PROT_READ | PROT_WRITE,
					alloc.mmap_offset);
			ASSERT_NE(MAP_FAILED, at);
			EXPECT_TRUE(all_bytes(at, 0, sizes[i])) TH_LOG("size %u", i);
			memset(at, 0xa5, sizes[i]);
			munmap(at, sizes[i]);
			ASSERT_EQ(0, dev_close(self->dev, alloc.handle));
		}
	}
}

TEST_F(alloc, bytes_are_rounded_to_whole_chunks)
{
	static const struct {
		uint64_t bytes;
		int min;
		uint64_t rounded;
	} rows[] = {
		{ 1, 0, PAGE },	     { PAGE, 0, PAGE },		{ PAGE + 1, 0, 2 * PAGE },
		{ 1, 4, 16 * PAGE }, { HUGE + 1, 9, 2 * HUGE },
	};
	struct tensor_alloc alloc;
	struct tensor_info info;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, alloc_orders(self->dev, rows[i].bytes, rows[i].min, 9, &alloc));
		EXPECT_EQ(rows[i].rounded, alloc.bytes) TH_LOG("row %u", i);
		ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
		EXPECT_EQ(rows[i].rounded, info.bytes);
		EXPECT_EQ(self->used + rows[i].rounded, dev_used(self->dev));
		EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
	}
}

TEST_F(alloc, orders_are_kept)
{
	struct tensor_alloc alloc;
	struct tensor_info info;
	unsigned int order;

	for (order = 0; order <= self->query.max_order; order += 3) {
		ASSERT_EQ(0, alloc_orders(self->dev, 4 * MIB, order, order, &alloc));
		ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
		EXPECT_EQ(4 * MIB / (PAGE << order), info.chunks[order]) TH_LOG("order %u", order);
		EXPECT_EQ(order == 9 ? 4 * MIB : 0, info.huge_bytes);
		EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
	}
}

TEST_F(alloc, chunks_add_up)
{
	struct tensor_alloc alloc;
	struct tensor_info info;
	uint64_t sum = 0;
	int order;

	ASSERT_EQ(0, dev_alloc(self->dev, 2 * HUGE + 37 * PAGE, &alloc));
	ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
	for (order = 0; order < TENSOR_UAPI_ORDERS; order++)
		sum += (uint64_t)info.chunks[order] * (PAGE << order);
	EXPECT_EQ(info.bytes, sum);
	EXPECT_EQ(2 * HUGE, info.huge_bytes);
	EXPECT_EQ(info.bytes, info.pinned_bytes);
	EXPECT_EQ(0, info.dma_bytes);
}

TEST_F(alloc, info_shows_owner_and_counts)
{
	struct tensor_alloc alloc;
	struct tensor_info info;
	struct stat st;
	void *at;
	int fd;

	ASSERT_EQ(0, dev_alloc(self->dev, HUGE, &alloc));
	fd = buf_export(self->dev, alloc.handle, 0);
	at = map_shared(fd, HUGE, PROT_READ, 0);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
	EXPECT_EQ(getpid(), info.pid);
	EXPECT_EQ(getuid(), info.uid);
	EXPECT_EQ(1, info.handles);
	EXPECT_EQ(1, info.files);
	EXPECT_EQ(1, info.mappings);
	EXPECT_EQ(3, info.refs);
	EXPECT_LT(0, info.age_ns);
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(st.st_ino, info.ino);
	EXPECT_EQ(st.st_dev, info.dev);
	EXPECT_EQ(HUGE, (uint64_t)st.st_size);
	munmap(at, HUGE);
	close(fd);
	ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
	EXPECT_EQ(1, info.refs);
}

TEST_F(alloc, inode_numbers_are_not_reused)
{
	struct tensor_alloc first, second;
	struct tensor_info a, b;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &first));
	ASSERT_EQ(0, buf_info(self->dev, first.handle, &a));
	ASSERT_EQ(0, dev_close(self->dev, first.handle));
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &second));
	ASSERT_EQ(0, buf_info(self->dev, second.handle, &b));
	EXPECT_NE(a.ino, b.ino);
}

TEST_F_TIMEOUT(alloc, request_above_free_memory_is_enomem_and_leaks_nothing, 120)
{
	int64_t total = read_number("/proc/meminfo", "MemTotal:"), before;
	struct tensor_alloc alloc;
	char old[64];

	read_text(LIMIT_FILE, old, sizeof(old));
	ASSERT_EQ(0, write_text(LIMIT_FILE, "1099511627776"));
	before = memory_free();
	EXPECT_EQ(-ENOMEM, dev_alloc(self->dev, total * KIB * 2, &alloc));
	EXPECT_TRUE(memory_is_freed(before, 8 * 1024))
	TH_LOG("%lld of %lld KiB are free again", (long long)memory_free(), (long long)before);
	EXPECT_EQ(0, write_text(LIMIT_FILE, old));
}

TEST_F(alloc, requested_node_is_used)
{
	struct tensor_alloc alloc;
	struct tensor_info info;
	int node;

	if (self->query.nodes < 2)
		SKIP(return, "one NUMA node (tests/vm/run --numa 2)");
	for (node = 0; node < 2; node++) {
		alloc = alloc_args(4 * MIB);
		alloc.node = node;
		alloc.flags = TENSOR_ALLOC_NODE_ONLY;
		ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc));
		ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
		EXPECT_EQ(node, info.node);
	}
}

/* Allocates 16 MiB in the cgroup of this process: the increase of its charge in bytes, or -1. */
static int64_t charged_bytes(int dev, struct tensor_alloc *alloc)
{
	int64_t before = cgroup_bytes();

	return dev < 0 || dev_alloc(dev, 16 * MIB, alloc) ? -1 : cgroup_bytes() - before;
}

static int charge_work(const void *arg)
{
	int64_t before = cgroup_bytes(), charged;
	struct tensor_alloc alloc;
	int dev = dev_open();

	(void)arg;
	charged = charged_bytes(dev, &alloc);
	if (charged == -1)
		return 1;
	if (dev_close(dev, alloc.handle))
		return 2;
	if (charged < (int64_t)(16 * MIB))
		return 3;
	return cgroup_bytes() < before + (int64_t)MIB ? 0 : 4;
}

TEST_F(alloc, memory_is_charged_to_the_cgroup)
{
	if (!(self->query.features & TENSOR_FEATURE_MEMCG))
		SKIP(return, "no memory cgroups");
	EXPECT_EQ(0, in_cgroup(NULL, charge_work));
}

/* Pool memory of the root cgroup is not given to a container, which would not be charged for it. */
TEST_F(alloc, pool_serves_no_cgroup)
{
	struct tensor_alloc alloc;
	char old[64];

	if (!(self->query.features & TENSOR_FEATURE_MEMCG))
		SKIP(return, "no memory cgroups");
	read_text(PARAM("pool_bytes"), old, sizeof(old));
	ASSERT_EQ(0, write_text(PARAM("pool_bytes"), "67108864"));
	ASSERT_EQ(0, dev_alloc(self->dev, 32 * MIB, &alloc));
	ASSERT_EQ(0, dev_close(self->dev, alloc.handle));
	EXPECT_EQ(0, in_cgroup(NULL, charge_work));
	EXPECT_EQ(0, write_text(PARAM("pool_bytes"), old));
}

static int uncharged_work(const void *arg)
{
	struct tensor_alloc alloc;
	int64_t charged;

	(void)arg;
	charged = charged_bytes(dev_open(), &alloc);
	if (charged == -1)
		return 1;
	return charged < (int64_t)MIB ? 0 : 2;
}

TEST_F(alloc, without_account_no_cgroup_is_charged)
{
	if (!(self->query.features & TENSOR_FEATURE_MEMCG))
		SKIP(return, "no memory cgroups");
	ASSERT_EQ(0, write_text(PARAM("account"), "N"));
	EXPECT_EQ(0, in_cgroup(NULL, uncharged_work));
	EXPECT_EQ(0, write_text(PARAM("account"), "Y"));
}

/*
 * A request that is larger than the cgroup, then single pages until it is full. The first alone
 * would also pass if small allocations called the OOM killer, because all pages are freed before
 * anything else is allocated.
 */
static int full_work(const void *arg)
{
	struct tensor_alloc alloc, first;
	int dev = dev_open(), err, i;

	(void)arg;
	if (dev < 0)
		return 1;
	if (dev_alloc(dev, 32 * MIB, &alloc) != -ENOMEM || dev_alloc(dev, PAGE, &first))
		return 2;
	do
		err = dev_alloc(dev, PAGE, &alloc);
	while (!err);
	if (err != -ENOMEM)
		return 3;
	/*
	 * the amount of free memory differs each time, so that each allocation in turn is the one
	 * that fails
	 */
	for (i = 1; i < 500; i++) {
		err = dev_alloc(dev, i % 7 ? PAGE : i * PAGE, &alloc);
		if (err && err != -ENOMEM)
			return 4;
	}
	return dev_close(dev, first.handle) ? 5 : 0;
}

TEST_F_TIMEOUT(alloc, full_cgroup_is_enomem_without_oom_kill, 300)
{
	int64_t kills = -1;

	if (!(self->query.features & TENSOR_FEATURE_MEMCG))
		SKIP(return, "no memory cgroups");
	EXPECT_EQ(0, in_cgroup_kills("12582912", full_work, NULL, &kills));
	EXPECT_EQ(0, kills);
}

TEST_HARNESS_MAIN
