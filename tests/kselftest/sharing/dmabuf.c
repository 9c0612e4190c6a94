// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Dma-bufs that EXPORT makes, without a device: rights, range, lifetime, mapping. */
#include "../include/dmabuf.h"
#include "../include/fixture.h"
#include "kselftest_harness.h"

#define BYTES (2 * HUGE)

FIXTURE(dmabuf)
{
	int dev;
	int fd;
	uint64_t used;
	struct tensor_alloc buf;
	char *at;
};

FIXTURE_SETUP(dmabuf)
{
	self->at = setup_mapped_buf(&self->dev, &self->used, &self->buf, BYTES);
	ASSERT_NE(MAP_FAILED, self->at);
	self->fd = buf_export(self->dev, self->buf.handle, DMABUF);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(dmabuf)
{
	close(self->fd);
	munmap(self->at, BYTES);
	EXPECT_TRUE(teardown_buf(self->dev, self->used, self->buf.handle));
}

TEST_F(dmabuf, query_reports_the_feature)
{
	struct tensor_query query;

	ASSERT_EQ(0, dev_query(self->dev, &query));
	EXPECT_NE(0, query.features & TENSOR_FEATURE_DMABUF);
	EXPECT_NE(0, query.export_flags & TENSOR_EXPORT_DMABUF);
}

TEST_F(dmabuf, has_the_size_of_the_buffer_and_is_counted)
{
	struct tensor_info info;

	EXPECT_EQ(BYTES, lseek(self->fd, 0, SEEK_END));
	EXPECT_NE(0, fcntl(self->fd, F_GETFD) & FD_CLOEXEC);
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(1, info.dmabufs);
	EXPECT_EQ(0, info.attachments);
	EXPECT_EQ(3, info.refs);
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(0, info.dmabufs);
	EXPECT_EQ(2, info.refs);
}

TEST_F(dmabuf, mapping_has_the_page_frames_of_the_buffer)
{
	char *other = map_shared(self->fd, BYTES, RW, 0);
	struct tensor_info info;
	uint64_t at;

	ASSERT_NE(MAP_FAILED, other);
	for (at = 0; at < BYTES; at += BYTES / 8 + 3 * PAGE) {
		self->at[at] = 1;
		EXPECT_EQ(1, other[at]);
		other[at] = 2;
		EXPECT_EQ(2, self->at[at]);
		EXPECT_NE(0, page_frame(other + at));
		EXPECT_EQ(page_frame(self->at + at), page_frame(other + at));
	}
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(2, info.mappings);
	EXPECT_EQ(pmd_mapped(self->at, BYTES), pmd_mapped(other, BYTES));
	munmap(other, BYTES);
}

TEST_F(dmabuf, mapping_past_the_end_is_refused)
{
	EXPECT_EQ(-EINVAL, map_errno(self->fd, BYTES + PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-EINVAL, map_errno(self->fd, PAGE, PROT_READ, MAP_SHARED, BYTES));
	EXPECT_EQ(-EINVAL, map_errno(self->fd, PAGE, RW, MAP_PRIVATE, 0));
	EXPECT_EQ(-EPERM, map_errno(self->fd, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, 0));
	EXPECT_EQ(0, map_errno(self->fd, PAGE, RW, MAP_SHARED, BYTES - PAGE));
}

TEST_F(dmabuf, dma_buf_cannot_be_opened_again)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fd);
	EXPECT_EQ(-1, open(path, O_RDWR));
	EXPECT_EQ(ENXIO, errno);
}

TEST_F(dmabuf, read_only_dma_buf_cannot_be_written)
{
	int fd = buf_export_rights(self->dev, self->buf.handle, TENSOR_RIGHTS_RO, DMABUF);
	struct tensor_import import;
	struct tensor_info info;
	char *at;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EACCES, map_errno(fd, PAGE, RW, MAP_SHARED, 0));
	at = map_shared(fd, BYTES, PROT_READ, 0);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-1, mprotect(at, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	self->at[7] = 9;
	EXPECT_EQ(9, at[7]);
	EXPECT_EQ(0, dmabuf_sync(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ));
	EXPECT_EQ(0, dmabuf_sync(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ));
	EXPECT_EQ(-EACCES, dmabuf_sync(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_WRITE));
	EXPECT_EQ(-EACCES, dmabuf_sync(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	ASSERT_EQ(0, buf_info(self->dev, import.handle, &info));
	EXPECT_EQ(TENSOR_STATE_RDONLY, info.state);
	EXPECT_EQ(0, info.generation);
	EXPECT_EQ(-EACCES, buf_export_rights(self->dev, import.handle, TENSOR_RIGHTS_RW, DMABUF));
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	munmap(at, BYTES);
	close(fd);
}

TEST_F(dmabuf, range_reaches_no_more_than_its_part)
{
	int fd = buf_export_range(self->dev, self->buf.handle, DMABUF, HUGE - PAGE, 3 * PAGE);
	struct tensor_import import;
	struct tensor_info info, ours;
	char *at;

	ASSERT_LE(0, fd);
	EXPECT_EQ(3 * PAGE, lseek(fd, 0, SEEK_END));
	EXPECT_EQ(-EINVAL, map_errno(fd, 4 * PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-EINVAL, map_errno(fd, PAGE, PROT_READ, MAP_SHARED, 3 * PAGE));
	at = map_shared(fd, 2 * PAGE, RW, PAGE);
	ASSERT_NE(MAP_FAILED, at);
	at[5] = 11;
	EXPECT_EQ(11, self->at[HUGE + 5]);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(3 * PAGE, import.bytes);
	ASSERT_EQ(0, buf_info(self->dev, import.handle, &info));
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &ours));
	EXPECT_EQ(ours.ino, info.ino);
	EXPECT_EQ(TENSOR_KIND_ALLOC, info.kind);
	EXPECT_EQ(HUGE - PAGE, info.offset);
	EXPECT_EQ(TENSOR_STATE_RANGE, info.state);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	munmap(at, 2 * PAGE);
	close(fd);
}

TEST_F(dmabuf, invalid_ranges_are_refused)
{
	static const uint64_t bad[][2] = {
		{ 0, 0 },	 { 1, PAGE },	      { 0, PAGE + 1 },	   { BYTES, PAGE },
		{ PAGE, BYTES }, { 0, BYTES + PAGE }, { -PAGE, 2 * PAGE }, { 0, -PAGE },
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_EQ(-EINVAL, buf_export_range(self->dev, self->buf.handle, DMABUF, bad[i][0],
						    bad[i][1]));
}

TEST_F(dmabuf, import_is_the_same_buffer)
{
	struct tensor_info info, ours;
	struct tensor_import import;
	int other = dev_open();
	char *at;

	ASSERT_EQ(0, buf_import(other, self->fd, &import));
	EXPECT_EQ(BYTES, import.bytes);
	ASSERT_EQ(0, buf_info(other, import.handle, &info));
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &ours));
	EXPECT_EQ(ours.ino, info.ino);
	EXPECT_EQ(0, info.state);
	EXPECT_EQ(2, info.handles);
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
	at = map_shared(other, BYTES, RW, import.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	at[1] = 4;
	EXPECT_EQ(4, self->at[1]);
	munmap(at, BYTES);
	close(other);
}

TEST_F(dmabuf, dma_buf_alone_keeps_the_buffer)
{
	char *at;

	memset(self->at, 0x7e, BYTES);
	munmap(self->at, BYTES);
	ASSERT_EQ(0, dev_close(self->dev, self->buf.handle));
	self->buf.handle = 0;
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
	at = map_shared(self->fd, BYTES, PROT_READ, 0);
	ASSERT_NE(MAP_FAILED, at);
	close(self->fd);
	self->fd = -1;
	EXPECT_TRUE(all_bytes(at, 0x7e, BYTES));
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
	munmap(at, BYTES);
	EXPECT_TRUE(used_becomes(self->dev, self->used));
}

TEST_F(dmabuf, purgeable_and_exported_exclude_each_other)
{
	char *at;

	EXPECT_EQ(-EBUSY, buf_advise(self->dev, self->buf.handle, TENSOR_ADVISE_PURGEABLE));
	at = map_shared(self->fd, PAGE, PROT_READ, 0);
	close(self->fd);
	self->fd = -1;
	/* a mapping made through the dma-buf still counts as another holder */
	EXPECT_EQ(-EBUSY, buf_advise(self->dev, self->buf.handle, TENSOR_ADVISE_PURGEABLE));
	munmap(at, PAGE);
	EXPECT_EQ(0, buf_advise(self->dev, self->buf.handle, TENSOR_ADVISE_PURGEABLE));
	EXPECT_EQ(-EBUSY, buf_export(self->dev, self->buf.handle, DMABUF));
	EXPECT_EQ(0, buf_advise(self->dev, self->buf.handle, TENSOR_ADVISE_WILLNEED));
}

TEST_F(dmabuf, seal_is_refused_while_it_is_mapped_writable)
{
	char *at;

	munmap(self->at, BYTES);
	at = map_shared(self->fd, PAGE, RW, 0);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-EBUSY, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	munmap(at, PAGE);
	at = map_shared(self->fd, PAGE, PROT_READ, 0);
	EXPECT_EQ(-EBUSY, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	munmap(at, PAGE);
	EXPECT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
}

TEST_F(dmabuf, sealed_buffer_cannot_be_written_through_it)
{
	int fd;

	munmap(self->at, BYTES);
	ASSERT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(-EPERM, map_errno(self->fd, PAGE, RW, MAP_SHARED, 0));
	EXPECT_EQ(0, map_errno(self->fd, PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-EPERM, dmabuf_sync(self->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_WRITE));
	EXPECT_EQ(-EPERM, dmabuf_sync(self->fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_WRITE));
	EXPECT_EQ(0, dmabuf_sync(self->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ));
	EXPECT_EQ(-EPERM, buf_export(self->dev, self->buf.handle, DMABUF));
	fd = buf_export_rights(self->dev, self->buf.handle, TENSOR_RIGHTS_RO, DMABUF);
	EXPECT_LE(0, fd);
	close(fd);
}

TEST_F(dmabuf, revoke_empties_its_mappings)
{
	char *at = map_shared(self->fd, BYTES, RW, 0);
	struct tensor_import import;

	ASSERT_NE(MAP_FAILED, at);
	memset(at, 1, BYTES);
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(SIGBUS, touch_signal(at));
	EXPECT_EQ(SIGBUS, touch_signal(at + BYTES - 1));
	EXPECT_EQ(-EIDRM, map_errno(self->fd, PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-EIDRM, dmabuf_sync(self->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ));
	EXPECT_EQ(-EIDRM, buf_import(self->dev, self->fd, &import));
	EXPECT_EQ(-EIDRM, buf_export(self->dev, self->buf.handle, DMABUF));
	EXPECT_EQ(self->used, dev_used(self->dev));
	munmap(at, BYTES);
}

TEST_F(dmabuf, end_of_a_write_raises_the_generation)
{
	struct tensor_info info;

	EXPECT_EQ(0, dmabuf_sync(self->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(0, info.generation);
	EXPECT_EQ(0, dmabuf_sync(self->fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
	EXPECT_EQ(0, dmabuf_sync(self->fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ));
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(1, info.generation);
}

TEST_F(dmabuf, poll_is_ready_without_fences)
{
	EXPECT_EQ(POLLIN | POLLOUT, ready(self->fd, POLLIN | POLLOUT));
}

TEST_F(dmabuf, release_is_reported)
{
	int fd = buf_export(self->dev, self->buf.handle, 0), other = dev_open();
	struct tensor_import import;
	struct tensor_event event;

	ASSERT_EQ(0, buf_import(other, fd, &import));
	EXPECT_EQ(0, ready(other, POLLIN));
	close(self->fd);
	self->fd = -1;
	sleep_ms(50);
	ASSERT_EQ(POLLIN, ready(other, POLLIN));
	ASSERT_EQ(sizeof(event), read(other, &event, sizeof(event)));
	EXPECT_EQ(import.handle, event.handle);
	EXPECT_EQ(TENSOR_EVENT_GONE, event.events);
	close(other);
	close(fd);
}

TEST_F(dmabuf, export_without_a_reply_leaks_nothing)
{
	struct tensor_export arg = { .size = sizeof(arg),
				     .flags = DMABUF,
				     .handle = self->buf.handle,
				     .rights = TENSOR_RIGHTS_RW };
	struct tensor_export *ro = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tensor_info info;
	int fds = count_fds();

	*ro = arg;
	ASSERT_EQ(0, mprotect(ro, PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_call(self->dev, TENSOR_IOC_EXPORT, ro));
	EXPECT_EQ(fds, count_fds());
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(1, info.dmabufs);
	munmap(ro, PAGE);
}

TEST_F(dmabuf, thousand_dma_bufs_are_released)
{
	struct tensor_info info;
	int i, fd;

	for (i = 0; i < 1000; i++) {
		fd = buf_export_rights(self->dev, self->buf.handle,
				       i % 2 ? TENSOR_RIGHTS_RW : TENSOR_RIGHTS_RO, DMABUF);
		ASSERT_LE(0, fd);
		close(fd);
	}
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(1, info.dmabufs);
}

TEST_HARNESS_MAIN
