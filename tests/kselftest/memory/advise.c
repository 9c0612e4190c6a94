// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * ADVISE: only purgeable buffers are purged, and only when memory is short; only the maker can make
 * a buffer purgeable. WILLNEED allocates zeroed pages again.
 */
#include <sys/uio.h>

#include "../include/xdp.h"
#include "advise.h"

#define CGROUP "/sys/fs/cgroup/tensor-advise"

TEST_F(advise, purged_memory_comes_back_zeroed)
{
	struct tensor_info info;

	ASSERT_TRUE(purge(self));
	EXPECT_EQ(self->used, dev_used(self->dev));
	EXPECT_EQ(0, pages_present(self->at, BYTES));
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(0, info.pinned_bytes);
	EXPECT_EQ(0, info.huge_bytes);
	EXPECT_EQ(BYTES, info.bytes);
	EXPECT_EQ(PAGES, pages_raising_sigbus(self->at, BYTES));
	EXPECT_EQ(1, willneed(self));
	EXPECT_EQ(0, state(self));
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
	EXPECT_TRUE(all_bytes(self->at, 0, BYTES));
	memset(self->at, 0x66, BYTES);
	EXPECT_EQ(0, willneed(self));
	EXPECT_TRUE(all_bytes(self->at, 0x66, BYTES));
	/* purge the same buffer again */
	ASSERT_TRUE(purge(self));
	EXPECT_EQ(1, willneed(self));
	EXPECT_TRUE(all_bytes(self->at, 0, BYTES));
}

TEST_F(advise, buffer_that_is_not_purgeable_is_not_purged)
{
	shrink(5);
	EXPECT_TRUE(all_bytes(self->at, 0x55, BYTES));
	ASSERT_EQ(0, purgeable(self));
	EXPECT_EQ(TENSOR_STATE_PURGEABLE, state(self) & ~TENSOR_STATE_PURGED);
	ASSERT_LE(0, willneed(self));
	memset(self->at, 0x55, BYTES);
	shrink(5);
	EXPECT_EQ(0, state(self));
	EXPECT_TRUE(all_bytes(self->at, 0x55, BYTES));
}

TEST_F(advise, buffer_that_is_not_purged_keeps_its_content)
{
	ASSERT_EQ(0, purgeable(self));
	ASSERT_EQ(0, purgeable(self));
	if (!willneed(self))
		EXPECT_TRUE(all_bytes(self->at, 0x55, BYTES));
	EXPECT_EQ(0, state(self));
}

TEST_F(advise, mapping_of_purged_buffer_is_sigbus_until_it_is_back)
{
	char *more, *to;

	ASSERT_TRUE(purge(self));
	more = map_shared(self->dev, BYTES, RW, self->buf.mmap_offset);
	ASSERT_NE(MAP_FAILED, more);
	EXPECT_EQ(SIGBUS, touch_write(more, 1));
	to = mmap(NULL, HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(to, mremap(more, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	EXPECT_EQ(SIGBUS, touch_read(to));
	EXPECT_EQ(1, willneed(self));
	EXPECT_EQ(0, touch_write(to, 1));
	EXPECT_EQ(1, self->at[0]);
	munmap(to, HUGE);
	munmap(more + HUGE, HUGE);
}

TEST_F(advise, advise_by_another_client_is_eacces)
{
	int fd = buf_export(self->dev, self->buf.handle, 0), other = dev_open();
	struct tensor_import import;

	ASSERT_EQ(0, buf_import(other, fd, &import));
	EXPECT_EQ(-EACCES, buf_advise(other, import.handle, TENSOR_ADVISE_PURGEABLE));
	EXPECT_EQ(-EACCES, buf_advise(other, import.handle, TENSOR_ADVISE_WILLNEED));
	close(fd);
	close(other);
}

/* Purging writes zeros, so it needs the right to write to the whole buffer. */
TEST_F(advise, advise_needs_the_right_to_write)
{
	struct tensor_import ro, part;
	int fd[2], err;

	fd[0] = buf_export_ro(self->dev, self->buf.handle);
	fd[1] = buf_export_range(self->dev, self->buf.handle, 0, 0, HUGE);
	ASSERT_EQ(0, buf_import(self->dev, fd[0], &ro));
	ASSERT_EQ(0, buf_import(self->dev, fd[1], &part));
	close(fd[0]);
	close(fd[1]);
	ASSERT_EQ(0, dev_close(self->dev, self->buf.handle));
	self->buf.handle = 0;
	ASSERT_EQ(0, dev_close(self->dev, part.handle));
	err = buf_advise(self->dev, ro.handle, TENSOR_ADVISE_PURGEABLE);
	EXPECT_EQ(-EACCES, err);
	EXPECT_EQ(-EACCES, buf_advise(self->dev, ro.handle, TENSOR_ADVISE_WILLNEED));
	shrink(2);
	EXPECT_TRUE(all_bytes(self->at, 0x55, BYTES));
	EXPECT_EQ(0, dev_close(self->dev, ro.handle));
}

TEST_F(advise, shared_buffer_is_ebusy)
{
	struct tensor_import import;
	int other = dev_open(), fd;
	char *at;

	fd = buf_export_ro(self->dev, self->buf.handle);
	EXPECT_EQ(-EBUSY, purgeable(self));
	ASSERT_EQ(0, buf_import(other, fd, &import));
	close(fd);
	EXPECT_EQ(-EBUSY, purgeable(self));
	at = map_shared(other, PAGE, PROT_READ, import.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, dev_close(other, import.handle));
	EXPECT_EQ(-EBUSY, purgeable(self));
	munmap(at, PAGE);
	EXPECT_EQ(0, purgeable(self));
	close(other);
}

TEST_F(advise, purgeable_buffer_is_not_shared)
{
	struct tensor_import import;
	int fd;

	ASSERT_EQ(0, purgeable(self));
	EXPECT_EQ(-EBUSY, buf_export(self->dev, self->buf.handle, 0));
	EXPECT_EQ(-EBUSY, buf_export_ro(self->dev, self->buf.handle));
	EXPECT_EQ(-EBUSY, buf_export_range(self->dev, self->buf.handle, 0, 0, PAGE));
	EXPECT_EQ(-EBUSY, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_LE(0, willneed(self));
	fd = buf_export(self->dev, self->buf.handle, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	close(fd);
}

TEST_F(advise, sealed_buffer_is_eperm)
{
	munmap(self->at, BYTES);
	ASSERT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(-EPERM, purgeable(self));
	EXPECT_EQ(0, willneed(self));
	self->at = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

TEST_F(advise, unknown_advice_is_eopnotsupp)
{
	struct tensor_advise arg = { .size = sizeof(arg), .handle = self->buf.handle };

	EXPECT_EQ(-EOPNOTSUPP, buf_advise(self->dev, self->buf.handle, 2));
	EXPECT_EQ(-EOPNOTSUPP, buf_advise(self->dev, self->buf.handle, UINT32_MAX));
	arg.flags = 1;
	EXPECT_EQ(-EOPNOTSUPP, dev_call(self->dev, TENSOR_IOC_ADVISE, &arg));
}

TEST_F(advise, revoke_ends_purgeable_and_purged)
{
	struct tensor_alloc alloc;
	struct tensor_info info;

	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
	ASSERT_EQ(0, buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_PURGEABLE));
	ASSERT_EQ(0, buf_revoke(self->dev, alloc.handle));
	ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
	EXPECT_EQ(TENSOR_STATE_REVOKED, info.state);
	ASSERT_TRUE(purge(self));
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_STATE_REVOKED, state(self));
	EXPECT_EQ(-EIDRM, willneed(self));
	EXPECT_EQ(self->used, dev_used(self->dev));
	shrink(2);
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_F(advise, mapping_by_the_maker_does_not_prevent_purging)
{
	int tries;

	ASSERT_EQ(0, purgeable(self));
	ASSERT_EQ(0, dev_close(self->dev, self->buf.handle));
	self->buf.handle = 0;
	for (tries = 0; tries < 50 && dev_used(self->dev) != self->used; tries++)
		shrink(1);
	EXPECT_EQ(self->used, dev_used(self->dev));
	EXPECT_EQ(PAGES, pages_raising_sigbus(self->at, BYTES));
}

/*
 * A pinned page would not become free, and the buffer would get a new page while a device still
 * writes to the old one.
 */
TEST_F(advise, pinned_memory_is_not_purged)
{
	int sock = xdp_pin(self->at, BYTES);

	if (sock == -EAFNOSUPPORT)
		SKIP(return, "no AF_XDP in this kernel");
	ASSERT_LE(0, sock);
	ASSERT_EQ(0, purgeable(self));
	shrink(5);
	EXPECT_EQ(TENSOR_STATE_PURGEABLE, state(self));
	EXPECT_TRUE(all_bytes(self->at, 0x55, BYTES));
	close(sock);
	EXPECT_TRUE(purge(self));
}

TEST_F(advise, memory_in_a_pipe_is_not_purged)
{
	struct iovec iov = { self->at + HUGE, PAGE };
	char seen[PAGE];
	int pipes[2];

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ((ssize_t)PAGE, vmsplice(pipes[1], &iov, 1, 0));
	ASSERT_EQ(0, purgeable(self));
	shrink(5);
	EXPECT_EQ(TENSOR_STATE_PURGEABLE, state(self));
	EXPECT_TRUE(all_bytes(self->at, 0x55, BYTES));
	ASSERT_EQ((ssize_t)PAGE, read(pipes[0], seen, PAGE));
	EXPECT_TRUE(purge(self));
	close(pipes[0]);
	close(pipes[1]);
}

/*
 * Buffers with a referenced page keep all pages, so emptying their mappings at each attempt would
 * be useless.
 */
TEST_F(advise, mapping_of_a_buffer_that_is_not_purged_stays)
{
	struct iovec iov = { self->at + HUGE, PAGE };
	int pipes[2];

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ((ssize_t)PAGE, vmsplice(pipes[1], &iov, 1, 0));
	ASSERT_EQ(0, pages_raising_sigbus(self->at, BYTES));
	ASSERT_EQ(PAGES, pages_present(self->at, BYTES));
	ASSERT_EQ(0, purgeable(self));
	shrink(5);
	EXPECT_EQ(PAGES, pages_present(self->at, BYTES));
	close(pipes[0]);
	close(pipes[1]);
	EXPECT_TRUE(purge(self));
}

/* Microseconds of some purges while the client is in an epoll set @watched times. */
static int64_t purge_us(int watched)
{
	struct tensor_alloc alloc[50];
	struct tensor_info info;
	int dev = dev_open(), set = watched ? dev_watch_often(dev, watched) : -1, i, taken = 0;
	int64_t took;

	for (i = 0; i < 50; i++)
		if (dev_alloc(dev, PAGE, &alloc[i]) ||
		    buf_advise(dev, alloc[i].handle, TENSOR_ADVISE_PURGEABLE))
			return INT64_MAX;
	took = now_us();
	shrink(2);
	took = now_us() - took;
	for (i = 0; i < 50; i++)
		taken += !buf_info(dev, alloc[i].handle, &info) && info.state & TENSOR_STATE_PURGED;
	close(set);
	close(dev);
	return taken && (!watched || set >= 0) ? took : INT64_MAX;
}

/* A task in reclaim does not wake waiters itself. */
TEST_F(advise, number_of_waiters_does_not_delay_reclaim)
{
	int64_t alone, watched;

	shrink(2);
	alone = purge_us(0);
	watched = purge_us(20000);
	EXPECT_GT(10 * alone + 200000, watched)
	TH_LOG("%lld us, alone %lld us", (long long)watched, (long long)alone);
}

TEST_F(advise, willneed_is_subject_to_the_limit)
{
	ASSERT_TRUE(purge(self));
	ASSERT_EQ(0, write_text(LIMIT_FILE, "4096"));
	EXPECT_EQ(-EDQUOT, willneed(self));
	EXPECT_EQ(TENSOR_STATE_PURGEABLE | TENSOR_STATE_PURGED, state(self));
	EXPECT_EQ(SIGBUS, touch_read(self->at));
	ASSERT_EQ(0, write_text(LIMIT_FILE, "0"));
	EXPECT_EQ(1, willneed(self));
	EXPECT_TRUE(all_bytes(self->at, 0, BYTES));
}

TEST_F(advise, willneed_without_memory_is_enomem)
{
	pid_t pid;

	if (mkdir(CGROUP, 0755))
		SKIP(return, "no memory cgroups");
	ASSERT_TRUE(purge(self));
	ASSERT_EQ(0, write_text(CGROUP "/memory.max", "2097152"));
	pid = fork();
	if (!pid)
		_exit(write_text(CGROUP "/cgroup.procs", "0") ? 2 :
		      willneed(self) == -ENOMEM		      ? 0 :
								1);
	EXPECT_EQ(0, reap(pid));
	rmdir(CGROUP);
	EXPECT_EQ(TENSOR_STATE_PURGEABLE | TENSOR_STATE_PURGED, state(self));
	EXPECT_EQ(self->used, dev_used(self->dev));
	EXPECT_EQ(1, willneed(self));
}

/*
 * Memory to be reclaimed page by page: more than the watermark at which the kernel begins to
 * reclaim.
 */
#define SMALL (128 * MIB)

/*
 * Allocates most of the free memory by huge pages: on a debug kernel a million faults take minutes.
 */
static uint64_t fill(uint64_t bytes)
{
	char *at;
	uint64_t i;

	bytes &= ~(HUGE - 1);
	at = mmap(NULL, bytes, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		_exit(2);
	madvise(at, bytes, MADV_HUGEPAGE);
	for (i = 0; i < bytes; i += PAGE)
		at[i] = 1;
	return bytes;
}

/* Child: allocates memory until the buffer is purged, or @most bytes. */
static void allocate_until_purged(FIXTURE_DATA(advise) * self, uint32_t handle, uint64_t most)
{
	uint64_t free = read_number("/proc/meminfo", "MemFree") * KIB, got = 0;
	struct tensor_info info;

	if (free > SMALL)
		got = fill(free - SMALL);
	for (; got < most; got += MIB) {
		char *at = mmap(NULL, MIB, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uint64_t i;

		if (at == MAP_FAILED)
			_exit(2);
		for (i = 0; i < MIB; i += PAGE)
			at[i] = 1;
		if (buf_info(self->dev, handle, &info))
			_exit(3);
		if (info.state & TENSOR_STATE_PURGED)
			_exit(0);
	}
	_exit(1);
}

TEST_F_TIMEOUT(advise, buffers_are_purged_when_memory_is_short, 300)
{
	uint64_t bytes, available;
	struct tensor_alloc alloc;
	struct tensor_query query;
	pid_t pid;

	ASSERT_EQ(0, dev_query(self->dev, &query));
	bytes = (query.limit_bytes - query.used_bytes) / 2 & ~(HUGE - 1);
	ASSERT_EQ(0, dev_alloc(self->dev, bytes, &alloc));
	ASSERT_EQ(0, buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_PURGEABLE));
	available = read_number("/proc/meminfo", "MemAvailable") * KIB;
	pid = fork();
	if (!pid)
		allocate_until_purged(self, alloc.handle, available + bytes / 2);
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
	EXPECT_EQ(1, buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_WILLNEED));
	EXPECT_TRUE(all_bytes(self->at, 0x55, BYTES));
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_F(advise, killed_process_leaves_no_purgeable_buffer)
{
	pid_t pid = fork();
	int i;

	if (!pid) {
		struct tensor_alloc alloc;
		int dev = dev_open();

		for (i = 0; i < 50; i++) {
			dev_alloc(dev, 4 * PAGE, &alloc);
			buf_advise(dev, alloc.handle, TENSOR_ADVISE_PURGEABLE);
		}
		for (;;)
			pause();
	}
	sleep_ms(200);
	kill(pid, SIGKILL);
	shrink(3);
	EXPECT_EQ(-SIGKILL, reap(pid));
	EXPECT_TRUE(used_becomes(self->dev, self->used + BYTES));
	shrink(1);
}

TEST_HARNESS_MAIN
