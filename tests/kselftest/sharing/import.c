// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * IMPORT of dma-bufs of other drivers: udmabuf, the system heap, vgem, as far as the kernel has
 * them.
 */
#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define BYTES (64 * PAGE)

enum exporter { UDMABUF, HEAP, VGEM };

FIXTURE(import)
{
	int dev;
	int vgem;
	int fd;
	uint32_t gem;
	uint64_t used;
	struct tensor_import buf;
};

FIXTURE_VARIANT(import)
{
	enum exporter exporter;
};

FIXTURE_VARIANT_ADD(import, udmabuf){ .exporter = UDMABUF };
FIXTURE_VARIANT_ADD(import, heap){ .exporter = HEAP };
FIXTURE_VARIANT_ADD(import, vgem){ .exporter = VGEM };

static int make_vgem(FIXTURE_DATA(import) * self, uint32_t flags)
{
	int err;

	self->vgem = vgem_open();
	if (self->vgem < 0)
		return -ENODEV;
	err = vgem_create(self->vgem, BYTES, &self->gem);
	return err ? err : vgem_export(self->vgem, self->gem, O_CLOEXEC | flags);
}

FIXTURE_SETUP(import)
{
	self->vgem = -1;
	switch (variant->exporter) {
	case UDMABUF:
		self->fd = udmabuf_new(BYTES);
		break;
	case HEAP:
		self->fd = heap_of(BYTES);
		break;
	case VGEM:
		self->fd = make_vgem(self, O_RDWR);
		break;
	}
	if (self->fd == -ENODEV)
		SKIP_SETUP("no such exporter");
	ASSERT_LE(0, self->fd);
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
	ASSERT_EQ(0, buf_import(self->dev, self->fd, &self->buf));
}

FIXTURE_TEARDOWN(import)
{
	EXPECT_EQ(self->used, dev_used(self->dev));
	close(self->dev);
	close(self->fd);
	close(self->vgem);
}

TEST_F(import, bytes_go_both_ways)
{
	char *ours = map_shared(self->dev, BYTES, RW, self->buf.mmap_offset);
	char *theirs = map_shared(self->fd, BYTES, RW, 0);

	ASSERT_NE(MAP_FAILED, ours);
	ASSERT_NE(MAP_FAILED, theirs);
	memset(theirs, 0x15, BYTES);
	EXPECT_TRUE(all_bytes(ours, 0x15, BYTES));
	memset(ours, 0x16, BYTES);
	EXPECT_TRUE(all_bytes(theirs, 0x16, BYTES));
	munmap(ours, BYTES);
	munmap(theirs, BYTES);
}

TEST_F(import, info_reports_the_kind)
{
	struct tensor_info info = info_of(self->dev, self->buf.handle);

	EXPECT_EQ(BYTES, self->buf.bytes);
	EXPECT_EQ(TENSOR_KIND_DMABUF, info.kind);
	EXPECT_EQ(BYTES, info.bytes);
	EXPECT_EQ(0, info.state);
	EXPECT_EQ(1, info.refs);
	EXPECT_EQ(0, info.pinned_bytes);
	EXPECT_EQ(self->used, dev_used(self->dev));
}

TEST_F(import, handle_alone_keeps_the_memory)
{
	char *at = map_shared(self->fd, BYTES, RW, 0);

	memset(at, 0x41, BYTES);
	munmap(at, BYTES);
	close(self->fd);
	self->fd = -1;
	close(self->vgem);
	self->vgem = -1;
	at = map_shared(self->dev, BYTES, PROT_READ, self->buf.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, dev_close(self->dev, self->buf.handle));
	EXPECT_TRUE(all_bytes(at, 0x41, BYTES));
	munmap(at, BYTES);
}

TEST_F(import, devices_get_the_dma_buf_itself)
{
	int fd = buf_export(self->dev, self->buf.handle, DMABUF);
	struct stat theirs, ours;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fstat(self->fd, &theirs));
	ASSERT_EQ(0, fstat(fd, &ours));
	EXPECT_EQ(theirs.st_ino, ours.st_ino);
	EXPECT_EQ(theirs.st_dev, ours.st_dev);
	EXPECT_EQ(0, info_of(self->dev, self->buf.handle).dmabufs);
	close(fd);
	EXPECT_EQ(-EOPNOTSUPP,
		  buf_export_rights(self->dev, self->buf.handle, TENSOR_RIGHTS_RO, DMABUF));
}

/* Exporters may ignore the offset of a mapping; vgem does. */
TEST_F(import, part_is_refused)
{
	EXPECT_EQ(-EOPNOTSUPP, buf_export_range(self->dev, self->buf.handle, 0, PAGE, PAGE));
	EXPECT_EQ(-EOPNOTSUPP, buf_export_range(self->dev, self->buf.handle, DMABUF, PAGE, PAGE));
	EXPECT_EQ(-EINVAL, buf_export_range(self->dev, self->buf.handle, 0, PAGE, BYTES));
}

TEST_F(import, read_only_buffer_fd_stays_read_only)
{
	int fd = buf_export_ro(self->dev, self->buf.handle);
	char *all = map_shared(self->dev, BYTES, RW, self->buf.mmap_offset), *part;
	struct tensor_import import;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EACCES, map_errno(fd, PAGE, RW, MAP_SHARED, 0));
	EXPECT_EQ(-EINVAL, map_errno(fd, BYTES + PAGE, PROT_READ, MAP_SHARED, 0));
	part = map_shared(fd, 2 * PAGE, PROT_READ, 0);
	ASSERT_NE(MAP_FAILED, part);
	EXPECT_EQ(-1, mprotect(part, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mremap(part, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE));
	all[3] = 77;
	EXPECT_EQ(77, part[3]);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(info_of(self->dev, self->buf.handle).ino, info_of(self->dev, import.handle).ino);
	EXPECT_EQ(-EACCES, buf_export_rights(self->dev, import.handle, TENSOR_RIGHTS_RW, DMABUF));
	EXPECT_EQ(-EOPNOTSUPP,
		  buf_export_rights(self->dev, import.handle, TENSOR_RIGHTS_RO, DMABUF));
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	munmap(part, 2 * PAGE);
	munmap(all, BYTES);
	close(fd);
}

TEST_F(import, seal_revoke_and_advise_are_refused)
{
	struct tensor_desc desc = { .label = "theirs" }, got;

	EXPECT_EQ(TENSOR_RIGHTS_RW, self->buf.rights);
	EXPECT_EQ(-EOPNOTSUPP, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(-EOPNOTSUPP, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(-EOPNOTSUPP, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(-EOPNOTSUPP, buf_advise(self->dev, self->buf.handle, TENSOR_ADVISE_PURGEABLE));
	EXPECT_EQ(0, buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, &desc));
	EXPECT_EQ(0, buf_meta(self->dev, self->buf.handle, 0, &got));
	EXPECT_STREQ("theirs", got.label);
}

TEST_F(import, sync_brackets_an_access)
{
	EXPECT_EQ(0,
		  buf_sync(self->dev, self->buf.handle, TENSOR_SYNC_READ | TENSOR_SYNC_WRITE, 0));
	EXPECT_EQ(0, buf_sync(self->dev, self->buf.handle,
			      TENSOR_SYNC_READ | TENSOR_SYNC_WRITE | TENSOR_SYNC_END, 0));
	EXPECT_EQ(1, info_of(self->dev, self->buf.handle).generation);
}

TEST_F(import, import_without_a_reply_leaks_nothing)
{
	struct tensor_import *ro = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	*ro = (struct tensor_import){ .size = sizeof(*ro), .fd = self->fd };
	ASSERT_EQ(0, mprotect(ro, PAGE, PROT_READ));
	for (i = 0; i < 100; i++)
		EXPECT_EQ(-EFAULT, dev_call(self->dev, TENSOR_IOC_IMPORT, ro));
	munmap(ro, PAGE);
}

TEST_F(import, read_only_fd_gives_a_read_only_handle)
{
	struct tensor_import import;
	int fd;

	if (variant->exporter != VGEM)
		SKIP(return, "has no read-only ones");
	fd = vgem_export(self->vgem, self->gem, O_CLOEXEC);
	/* vgem keeps one dma-buf per buffer, and the fixture's is writable */
	EXPECT_EQ(0, dev_close(self->dev, self->buf.handle));
	close(fd);
	close(self->fd);
	ASSERT_EQ(0, vgem_close(self->vgem, self->gem));
	ASSERT_EQ(0, vgem_create(self->vgem, BYTES, &self->gem));
	self->fd = vgem_export(self->vgem, self->gem, O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, buf_import(self->dev, self->fd, &import));
	EXPECT_EQ(TENSOR_STATE_RDONLY, info_of(self->dev, import.handle).state);
	EXPECT_EQ(-EACCES, map_errno(self->dev, PAGE, RW, MAP_SHARED, import.mmap_offset));
	EXPECT_EQ(0, map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED, import.mmap_offset));
}

TEST_F(import, fence_of_the_exporter_is_waited_for)
{
	int fence;

	if (variant->exporter != VGEM)
		SKIP(return, "has no fences");
	fence = vgem_fence(self->vgem, self->gem, VGEM_WRITES);
	ASSERT_LT(0, fence);
	EXPECT_EQ(-ETIMEDOUT, buf_sync(self->dev, self->buf.handle, TENSOR_SYNC_READ, 0));
	EXPECT_EQ(-ETIMEDOUT,
		  buf_sync(self->dev, self->buf.handle, TENSOR_SYNC_READ, deadline_ms(30)));
	EXPECT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(0, buf_sync(self->dev, self->buf.handle, TENSOR_SYNC_READ, 0));
}

TEST_HARNESS_MAIN
