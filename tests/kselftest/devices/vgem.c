// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Dma-bufs of the module imported by vgem, a DRM driver without hardware. It attaches to what it
 * imports, maps it for both directions on older kernels, and can add fences.
 */
#include "../include/dmabuf.h"
#include "../include/fixture.h"
#include "kselftest_harness.h"

#define BYTES (2 * HUGE + 5 * PAGE)

FIXTURE(vgem)
{
	int dev;
	int vgem;
	int fd;
	uint64_t used;
	uint32_t gem;
	struct tensor_alloc buf;
};

FIXTURE_SETUP(vgem)
{
	self->vgem = vgem_open();
	if (self->vgem < 0)
		SKIP_SETUP("no vgem");
	ASSERT_EQ(0, setup_buf(&self->dev, &self->used, &self->buf, BYTES));
	self->fd = buf_export(self->dev, self->buf.handle, DMABUF);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(vgem)
{
	close(self->vgem);
	close(self->fd);
	EXPECT_TRUE(teardown_buf(self->dev, self->used, self->buf.handle));
}

TEST_F(vgem, import_attaches_and_maps)
{
	bool maps = vgem_maps();
	struct tensor_info info;

	ASSERT_EQ(0, vgem_import(self->vgem, self->fd, &self->gem));
	info = info_of(self->dev, self->buf.handle);
	EXPECT_EQ(1, info.attachments);
	EXPECT_EQ(0, info.generation);
	EXPECT_EQ(0, vgem_close(self->vgem, self->gem));
	info = info_of(self->dev, self->buf.handle);
	EXPECT_EQ(0, info.attachments);
	/* a mapping for writing counts as a write when it ends */
	EXPECT_EQ(maps, info.generation);
}

TEST_F(vgem, re_exported_dma_buf_has_the_same_bytes)
{
	char *ours = map_shared(self->dev, BYTES, RW, self->buf.mmap_offset), *theirs;
	int fd;

	ASSERT_EQ(0, vgem_import(self->vgem, self->fd, &self->gem));
	fd = vgem_export(self->vgem, self->gem, O_CLOEXEC | O_RDWR);
	ASSERT_LE(0, fd);
	theirs = map_shared(fd, BYTES, RW, 0);
	ASSERT_NE(MAP_FAILED, theirs);
	memset(ours, 0x31, BYTES);
	EXPECT_TRUE(all_bytes(theirs, 0x31, BYTES));
	memset(theirs, 0x32, BYTES);
	EXPECT_TRUE(all_bytes(ours, 0x32, BYTES));
	munmap(theirs, BYTES);
	munmap(ours, BYTES);
	close(fd);
}

TEST_F(vgem, device_alone_keeps_the_buffer)
{
	char *at = map_shared(self->dev, BYTES, RW, self->buf.mmap_offset);
	int fd;

	memset(at, 0x44, BYTES);
	munmap(at, BYTES);
	ASSERT_EQ(0, vgem_import(self->vgem, self->fd, &self->gem));
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, dev_close(self->dev, self->buf.handle));
	self->buf.handle = 0;
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
	fd = vgem_export(self->vgem, self->gem, O_CLOEXEC | O_RDWR);
	at = map_shared(fd, BYTES, PROT_READ, 0);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_TRUE(all_bytes(at, 0x44, BYTES));
	munmap(at, BYTES);
	close(fd);
}

TEST_F(vgem, part_is_imported)
{
	int fd = buf_export_range(self->dev, self->buf.handle, DMABUF, HUGE - PAGE, 4 * PAGE);

	ASSERT_EQ(0, vgem_import(self->vgem, fd, &self->gem));
	EXPECT_EQ(1, info_of(self->dev, self->buf.handle).attachments);
	EXPECT_EQ(2, info_of(self->dev, self->buf.handle).dmabufs);
	close(fd);
	EXPECT_EQ(2, info_of(self->dev, self->buf.handle).dmabufs);
	EXPECT_EQ(0, vgem_close(self->vgem, self->gem));
}

TEST_F(vgem, read_only_dma_buf_is_refused_to_a_device_that_writes)
{
	int fd;

	if (!vgem_maps())
		SKIP(return, NO_DEVICE_MAPS);
	fd = buf_export_rights(self->dev, self->buf.handle, TENSOR_RIGHTS_RO, DMABUF);
	EXPECT_EQ(-EACCES, vgem_import(self->vgem, fd, &self->gem));
	EXPECT_EQ(0, info_of(self->dev, self->buf.handle).attachments);
	close(fd);
}

/* vgem maps for both directions, and any user of its handle can read. */
TEST_F(vgem, write_only_dma_buf_is_refused_to_a_device_that_reads)
{
	uint32_t wo = TENSOR_RIGHT_WRITE | TENSOR_RIGHT_ATTACH;
	int fd;

	if (!vgem_maps())
		SKIP(return, NO_DEVICE_MAPS);
	fd = buf_export_rights(self->dev, self->buf.handle, wo, DMABUF);
	EXPECT_EQ(-EACCES, vgem_import(self->vgem, fd, &self->gem));
	EXPECT_EQ(0, info_of(self->dev, self->buf.handle).attachments);
	close(fd);
}

/* The right ATTACH is required to make a dma-buf, not for a device to attach to it. */
TEST_F(vgem, rights_to_read_and_write_suffice_for_a_device)
{
	int fd = buf_export_rights(self->dev, self->buf.handle,
				   TENSOR_RIGHT_READ | TENSOR_RIGHT_WRITE, DMABUF);

	ASSERT_EQ(0, vgem_import(self->vgem, fd, &self->gem));
	EXPECT_EQ(1, info_of(self->dev, self->buf.handle).attachments);
	EXPECT_EQ(0, vgem_close(self->vgem, self->gem));
	close(fd);
}

TEST_F(vgem, sealed_dma_buf_is_refused_to_a_device_that_writes)
{
	if (!vgem_maps())
		SKIP(return, NO_DEVICE_MAPS);
	ASSERT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(-EPERM, vgem_import(self->vgem, self->fd, &self->gem));
	EXPECT_EQ(0, info_of(self->dev, self->buf.handle).attachments);
}

TEST_F(vgem, seal_is_refused_while_a_device_may_write)
{
	if (!vgem_maps())
		SKIP(return, NO_DEVICE_MAPS);
	ASSERT_EQ(0, vgem_import(self->vgem, self->fd, &self->gem));
	EXPECT_EQ(-EBUSY, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(0, vgem_close(self->vgem, self->gem));
	EXPECT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
}

TEST_F(vgem, revoke_keeps_pages_that_a_device_uses)
{
	int64_t before = memory_free();

	if (!vgem_maps())
		SKIP(return, NO_DEVICE_MAPS);
	ASSERT_EQ(0, vgem_import(self->vgem, self->fd, &self->gem));
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
	EXPECT_EQ(-EIDRM, map_errno(self->fd, PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(0, vgem_close(self->vgem, self->gem));
	EXPECT_EQ(self->used, dev_used(self->dev));
	EXPECT_TRUE(memory_is_freed(before, 2048));
}

/* Imports a dma-buf into vgem, and tries to map it through a dma-buf that vgem exports of it. */
static int map_through_card(FIXTURE_DATA(vgem) * self, int fd, int prot)
{
	int err = vgem_import(self->vgem, fd, &self->gem), again;

	if (err)
		return 1;
	again = vgem_export(self->vgem, self->gem, O_CLOEXEC | O_RDWR);
	if (again < 0)
		return 2;
	err = map_errno(again, PAGE, prot, MAP_SHARED, 0);
	close(again);
	return vgem_close(self->vgem, self->gem) ? 3 : err;
}

/* A driver may attach to any dma-buf; attaching without mapping gives no access. */
TEST_F(vgem, attachment_alone_gives_no_access)
{
	uint32_t wo = TENSOR_RIGHT_WRITE | TENSOR_RIGHT_ATTACH;
	int fd;

	if (vgem_maps())
		SKIP(return, "vgem maps what it imports");
	fd = buf_export_rights(self->dev, self->buf.handle, TENSOR_RIGHTS_RO, DMABUF);
	EXPECT_EQ(0, map_through_card(self, fd, PROT_READ));
	EXPECT_EQ(-EACCES, map_through_card(self, fd, RW));
	close(fd);
	fd = buf_export_rights(self->dev, self->buf.handle, wo, DMABUF);
	EXPECT_EQ(-EACCES, map_through_card(self, fd, PROT_READ));
	close(fd);
	EXPECT_EQ(0, map_through_card(self, self->fd, RW));
	ASSERT_EQ(0, vgem_import(self->vgem, self->fd, &self->gem));
	EXPECT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(1, info_of(self->dev, self->buf.handle).attachments);
	EXPECT_EQ(0, vgem_close(self->vgem, self->gem));
	EXPECT_EQ(-EPERM, map_through_card(self, self->fd, RW));
	EXPECT_EQ(0, info_of(self->dev, self->buf.handle).attachments);
}

TEST_F(vgem, attachment_alone_keeps_no_memory_of_a_revoked_buffer)
{
	if (vgem_maps())
		SKIP(return, "vgem maps what it imports");
	ASSERT_EQ(0, vgem_import(self->vgem, self->fd, &self->gem));
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(self->used, dev_used(self->dev));
	EXPECT_EQ(0, vgem_close(self->vgem, self->gem));
}

TEST_F(vgem, revoked_dma_buf_is_refused)
{
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(-EIDRM, vgem_import(self->vgem, self->fd, &self->gem));
	EXPECT_EQ(0, info_of(self->dev, self->buf.handle).attachments);
}

TEST_F(vgem, fence_is_seen_through_every_dma_buf)
{
	int other = buf_export_range(self->dev, self->buf.handle, DMABUF, PAGE, PAGE), fence;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, vgem_import(self->vgem, self->fd, &self->gem));
	fence = vgem_fence(self->vgem, self->gem, VGEM_WRITES);
	ASSERT_LT(0, fence);
	EXPECT_EQ(0, ready(self->fd, POLLIN));
	EXPECT_EQ(0, ready(other, POLLIN));
	EXPECT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(POLLIN, ready(self->fd, POLLIN));
	EXPECT_EQ(POLLIN, ready(other, POLLIN));
	fence = vgem_fence(self->vgem, self->gem, 0);
	ASSERT_LT(0, fence);
	EXPECT_EQ(POLLIN, ready(other, POLLIN));
	EXPECT_EQ(0, ready(other, POLLOUT));
	EXPECT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(POLLOUT, ready(other, POLLOUT));
	close(other);
}

/* Child: holds a buffer through vgem only, with a fence on it, until it is killed. */
static void holder(int pipe)
{
	int dev = dev_open(), vgem = vgem_open(), fd;
	struct tensor_alloc alloc;
	uint32_t gem;

	if (dev_alloc(dev, BYTES, &alloc))
		_exit(1);
	fd = buf_export(dev, alloc.handle, DMABUF);
	if (vgem_import(vgem, fd, &gem) || vgem_fence(vgem, gem, VGEM_WRITES) < 0)
		_exit(2);
	close(fd);
	close(dev);
	if (write(pipe, "x", 1) != 1)
		_exit(3);
	for (;;)
		pause();
}

TEST_F(vgem, kill_of_the_importer_leaves_nothing)
{
	uint64_t used = dev_used(self->dev);
	int ends[2], i;
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(ends));
	for (i = 0; i < 5; i++) {
		pid = fork();
		if (!pid)
			holder(ends[1]);
		ASSERT_EQ(1, read(ends[0], &byte, 1));
		EXPECT_EQ(used + BYTES, dev_used(self->dev));
		kill(pid, SIGKILL);
		EXPECT_EQ(-SIGKILL, reap(pid));
		EXPECT_TRUE(used_becomes(self->dev, used));
	}
	close(ends[0]);
	close(ends[1]);
}

TEST_HARNESS_MAIN
