// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* PIN: which memory is accepted, which limits it counts against, and that it is released. */
#include <sys/resource.h>

#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define BYTES (256 * PAGE)

FIXTURE(pinmem)
{
	int dev;
	uint64_t used;
	char *at;
};

FIXTURE_SETUP(pinmem)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
	self->at = mmap(NULL, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->at);
}

FIXTURE_TEARDOWN(pinmem)
{
	int dev = dev_open();

	close(self->dev);
	EXPECT_TRUE(used_becomes(dev, self->used));
	close(dev);
	munmap(self->at, BYTES);
}

TEST_F(pinmem, arguments_are_checked)
{
	struct tensor_pin arg = {
		.size = sizeof(arg), .addr = (uintptr_t)self->at, .bytes = PAGE, .__reserved = 1
	};
	int bit;

	EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_PIN, &arg));
	EXPECT_EQ(-EINVAL, buf_pin(self->dev, self->at, 0, 0));
	EXPECT_EQ(-EINVAL, buf_pin(self->dev, self->at + 1, PAGE, 0));
	EXPECT_EQ(-EINVAL, buf_pin(self->dev, self->at, PAGE + 1, 0));
	EXPECT_EQ(-EINVAL, buf_pin(self->dev, self->at, -PAGE, 0));
	EXPECT_EQ(-EINVAL, buf_pin(self->dev, (void *)-PAGE, PAGE, 0));
	EXPECT_EQ(-EINVAL, buf_pin(self->dev, (void *)-PAGE, 2 * PAGE, 0));
	EXPECT_EQ(-EINVAL, buf_pin(self->dev, self->at, (1ULL << 39) + PAGE, 0));
	for (bit = 1; bit < 32; bit++)
		EXPECT_EQ(-EOPNOTSUPP, buf_pin(self->dev, self->at, PAGE, 1U << bit));
}

TEST_F(pinmem, device_opened_for_reading_is_refused)
{
	int dev = open("/dev/tensor", O_RDONLY | O_CLOEXEC);

	EXPECT_EQ(-EACCES, buf_pin(dev, self->at, PAGE, 0));
	EXPECT_EQ(-EACCES, buf_pin(dev, self->at, PAGE, TENSOR_PIN_RDONLY));
	close(dev);
}

TEST_F(pinmem, unmapped_memory_is_efault)
{
	ASSERT_EQ(0, munmap(self->at + 8 * PAGE, PAGE));
	EXPECT_EQ(-EFAULT, buf_pin(self->dev, self->at, BYTES, 0));
	EXPECT_EQ(-EFAULT, buf_pin(self->dev, self->at + 8 * PAGE, PAGE, TENSOR_PIN_RDONLY));
	EXPECT_LT(0, buf_pin(self->dev, self->at, 8 * PAGE, 0));
}

TEST_F(pinmem, read_only_memory_is_pinned_for_reading)
{
	int64_t handle;

	memset(self->at, 1, BYTES);
	ASSERT_EQ(0, mprotect(self->at, BYTES, PROT_READ));
	EXPECT_EQ(-EFAULT, buf_pin(self->dev, self->at, BYTES, 0));
	handle = buf_pin(self->dev, self->at, BYTES, TENSOR_PIN_RDONLY);
	ASSERT_LT(0, handle);
	EXPECT_EQ(TENSOR_STATE_RDONLY, info_of(self->dev, handle).state);
	EXPECT_EQ(TENSOR_RIGHTS_RO, info_of(self->dev, handle).rights);
	EXPECT_EQ(-EACCES, buf_export_rights(self->dev, handle, TENSOR_RIGHTS_RW, DMABUF));
	EXPECT_EQ(-EACCES, buf_export_rights(self->dev, handle, TENSOR_RIGHTS_RW, 0));
}

TEST_F(pinmem, info_reports_the_kind)
{
	int64_t handle = buf_pin(self->dev, self->at, BYTES, 0);
	struct tensor_info info = info_of(self->dev, handle);

	ASSERT_LT(0, handle);
	EXPECT_EQ(TENSOR_KIND_PIN, info.kind);
	EXPECT_EQ(BYTES, info.bytes);
	EXPECT_EQ(BYTES, info.pinned_bytes);
	EXPECT_EQ(0, info.state);
	EXPECT_EQ(1, info.refs);
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
}

TEST_F(pinmem, pinned_memory_cannot_be_mapped)
{
	int64_t handle = buf_pin(self->dev, self->at, BYTES, 0);
	struct tensor_import import;
	int fd = buf_export(self->dev, handle, 0), dmabuf = buf_export(self->dev, handle, DMABUF);

	ASSERT_LE(0, fd);
	ASSERT_LE(0, dmabuf);
	EXPECT_EQ(-EOPNOTSUPP, map_errno(fd, PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-EOPNOTSUPP, map_errno(dmabuf, PAGE, RW, MAP_SHARED, 0));
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(BYTES, import.bytes);
	EXPECT_EQ(-EOPNOTSUPP, map_errno(self->dev, PAGE, RW, MAP_SHARED, import.mmap_offset));
	close(dmabuf);
	close(fd);
}

TEST_F(pinmem, seal_revoke_and_advise_are_refused)
{
	int64_t handle = buf_pin(self->dev, self->at, BYTES, 0);

	EXPECT_EQ(TENSOR_RIGHTS_RW, info_of(self->dev, handle).rights);
	EXPECT_EQ(-EOPNOTSUPP, buf_seal(self->dev, handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(-EOPNOTSUPP, buf_seal(self->dev, handle, TENSOR_SEAL_META));
	EXPECT_EQ(-EOPNOTSUPP, buf_revoke(self->dev, handle));
	EXPECT_EQ(-EOPNOTSUPP, buf_advise(self->dev, handle, TENSOR_ADVISE_PURGEABLE));
}

TEST_F(pinmem, devices_map_it)
{
	int64_t handle = buf_pin(self->dev, self->at, BYTES, 0);
	int vgem = vgem_open(), fd, ro;
	uint32_t gem;

	if (vgem < 0)
		SKIP(return, "no vgem");
	fd = buf_export_range(self->dev, handle, DMABUF, PAGE, 3 * PAGE);
	ro = buf_export_rights(self->dev, handle, TENSOR_RIGHTS_RO, DMABUF);
	ASSERT_EQ(0, vgem_import(vgem, fd, &gem));
	EXPECT_EQ(1, info_of(self->dev, handle).attachments);
	EXPECT_EQ(0, dmabuf_sync(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	EXPECT_EQ(0, dmabuf_sync(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
	/* the device keeps the pages after munmap() and CLOSE */
	ASSERT_EQ(0, munmap(self->at, BYTES));
	EXPECT_EQ(0, dev_close(self->dev, handle));
	EXPECT_EQ(0, vgem_close(vgem, gem));
	EXPECT_EQ(vgem_maps() ? -EACCES : 0, vgem_import(vgem, ro, &gem));
	close(ro);
	close(fd);
	close(vgem);
}

/* Pages of a mapping of a buffer cannot be moved, so they can be pinned. */
TEST_F(pinmem, mapping_of_a_buffer_can_be_pinned)
{
	struct tensor_alloc alloc;
	int64_t handle;
	char *at;

	ASSERT_EQ(0, dev_alloc(self->dev, HUGE, &alloc));
	at = map_shared(self->dev, HUGE, RW, alloc.mmap_offset);
	handle = buf_pin(self->dev, at, HUGE, 0);
	ASSERT_LT(0, handle);
	EXPECT_EQ(HUGE, info_of(self->dev, alloc.handle).dma_bytes);
	munmap(at, HUGE);
	EXPECT_EQ(-EBUSY, buf_seal(self->dev, alloc.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(0, dev_close(self->dev, handle));
	EXPECT_EQ(0, info_of(self->dev, alloc.handle).dma_bytes);
	EXPECT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, alloc.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

/* Child: an ordinary user who may lock 16 pages. */
static int limited(int dev, char *at)
{
	struct rlimit limit = { 16 * PAGE, 16 * PAGE };
	int64_t one, two;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setresgid(1000, 1000, 1000) ||
	    setresuid(1000, 1000, 1000))
		return 1;
	if (buf_pin(dev, at, 17 * PAGE, 0) != -ENOMEM)
		return 2;
	one = buf_pin(dev, at, 10 * PAGE, 0);
	if (one < 0 || buf_pin(dev, at, 7 * PAGE, TENSOR_PIN_RDONLY) != -ENOMEM)
		return 3;
	/* pinning the same pages again is charged again */
	two = buf_pin(dev, at, 6 * PAGE, 0);
	if (two < 0 || buf_pin(dev, at, PAGE, 0) != -ENOMEM)
		return 4;
	if (munmap(at, BYTES) || dev_close(dev, two))
		return 5;
	at = mmap(NULL, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf_pin(dev, at, 7 * PAGE, 0) != -ENOMEM || buf_pin(dev, at + PAGE, 6 * PAGE, 0) < 0)
		return 6;
	if (dev_close(dev, one) || buf_pin(dev, at, 10 * PAGE, 0) < 0)
		return 7;
	/* open handles end with the process */
	return 0;
}

TEST_F(pinmem, memlock_limit_is_kept)
{
	int i;
	pid_t pid;

	for (i = 0; i < 3; i++) {
		pid = fork();
		if (!pid) {
			close(self->dev);
			_exit(limited(dev_open(), self->at));
		}
		EXPECT_EQ(0, reap(pid));
		/* the last file of a dead process is closed with a delay */
		sleep_ms(100);
	}
}

TEST_F(pinmem, pages_are_freed)
{
	int64_t before = memory_free(), handle;
	char *at;
	int i;

	for (i = 0; i < 40; i++) {
		at = mmap(NULL, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		handle = buf_pin(self->dev, at, BYTES, i % 2 ? TENSOR_PIN_RDONLY : 0);
		ASSERT_LT(0, handle);
		munmap(at, BYTES);
		ASSERT_EQ(0, dev_close(self->dev, handle));
	}
	EXPECT_TRUE(memory_is_freed(before, 8192));
}

TEST_F(pinmem, pin_without_a_reply_leaks_nothing)
{
	struct tensor_pin *ro = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int64_t before = memory_free();
	int i;

	*ro = (struct tensor_pin){ .size = sizeof(*ro),
				   .addr = (uintptr_t)self->at,
				   .bytes = BYTES };
	ASSERT_EQ(0, mprotect(ro, PAGE, PROT_READ));
	for (i = 0; i < 40; i++) {
		EXPECT_EQ(-EFAULT, dev_call(self->dev, TENSOR_IOC_PIN, ro));
		madvise(self->at, BYTES, MADV_DONTNEED);
	}
	EXPECT_TRUE(memory_is_freed(before, 8192));
	munmap(ro, PAGE);
}

TEST_F(pinmem, kill_of_the_owner_leaves_nothing)
{
	int64_t before = memory_free();
	int i;

	for (i = 0; i < 5; i++) {
		int ends[2];
		char byte;
		pid_t pid;

		ASSERT_EQ(0, pipe(ends));
		pid = fork();
		if (!pid) {
			char *at = mmap(NULL, 8 * MIB, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			int64_t handle = buf_pin(self->dev, at, 8 * MIB, 0);

			if (handle < 0 || write(ends[1], "x", 1) != 1)
				_exit(1);
			close(self->dev);
			for (;;)
				pause();
		}
		close(ends[1]);
		ASSERT_EQ(1, read(ends[0], &byte, 1));
		kill(pid, SIGKILL);
		EXPECT_EQ(-SIGKILL, reap(pid));
		close(ends[0]);
	}
	/* the child shares the parent's open device, so its handles live until that is closed */
	close(self->dev);
	EXPECT_TRUE(memory_is_freed(before, 8192));
	self->dev = dev_open();
	self->used = dev_used(self->dev);
}

TEST_HARNESS_MAIN
