// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A 32-bit program: every ioctl has the layout of 64-bit programs, buffer fds can be mapped, and
 * mmap offsets, which do not fit into a 32-bit mmap(), are refused rather than truncated.
 *
 * kselftest.mk builds this with -m32, so that it uses the compat entry points.
 */
#include "../include/device.h"

#include <sys/syscall.h>
#include <sys/vfs.h>

#include "kselftest_harness.h"

_Static_assert(sizeof(void *) == 4, "this program has to be a 32-bit one");

#define LABEL "narrow"

FIXTURE(compat)
{
	int dev;
	struct tensor_alloc buf;
};

FIXTURE_SETUP(compat)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, HUGE, &self->buf));
}

FIXTURE_TEARDOWN(compat)
{
	close(self->dev);
}

/* mmap2(), which takes the offset in pages in a 32-bit register. */
static int raw_map_errno(int fd, uint64_t offset)
{
	long at = syscall(SYS_mmap2, NULL, (size_t)PAGE, PROT_READ, MAP_SHARED, fd,
			  (long)(offset / PAGE));

	if (at == -1)
		return -errno;
	munmap((void *)at, PAGE);
	return 0;
}

TEST_F(compat, query_and_info_reply_as_to_64_bit_programs)
{
	struct tensor_query query;
	struct tensor_info info;

	ASSERT_EQ(0, dev_query(self->dev, &query));
	EXPECT_EQ((unsigned int)PAGE, query.page_size);
	EXPECT_EQ((uint64_t)HUGE, query.used_bytes);
	EXPECT_EQ(1, query.ioctls & 1);
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ((uint64_t)HUGE, info.bytes);
	EXPECT_EQ(getpid(), info.pid);
	EXPECT_EQ(1, info.handles);
}

TEST_F(compat, descriptor_is_read_back_unchanged)
{
	struct tensor_desc set = {
		.bits = 32,
		.dtype = TAG_F32,
		.ndim = 2,
		.offset = 4,
		.label = LABEL,
		.sizes = { 3, 5 },
		.strides = { 1, 3 },
	};
	struct tensor_desc got;

	ASSERT_EQ(0, buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, &set));
	ASSERT_EQ(0, buf_meta(self->dev, self->buf.handle, 0, &got));
	EXPECT_EQ(0, memcmp(&set, &got, sizeof(set)));
}

TEST_F(compat, buffer_fd_is_mapped_and_shared)
{
	struct tensor_import import;
	int fd = buf_export(self->dev, self->buf.handle, 0);
	uint32_t *a, *b;
	int again;

	ASSERT_LE(0, fd);
	a = map_shared(fd, HUGE, PROT_READ | PROT_WRITE, 0);
	ASSERT_NE(MAP_FAILED, a);
	a[PAGE / 4] = 0x600d;
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ((uint64_t)HUGE, import.bytes);
	again = buf_export_ro(self->dev, import.handle);
	ASSERT_LE(0, again);
	b = map_shared(again, PAGE, PROT_READ, PAGE);
	ASSERT_NE(MAP_FAILED, b);
	EXPECT_EQ(0x600dU, b[0]);
	EXPECT_EQ(-EACCES, map_errno(again, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0));
	munmap(a, HUGE);
	munmap(b, PAGE);
	close(fd);
	close(again);
}

TEST_F(compat, mmap_offset_is_0_and_mapping_it_is_eopnotsupp)
{
	struct tensor_import import;
	int fd = buf_export(self->dev, self->buf.handle, 0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(0U, self->buf.mmap_offset);
	EXPECT_EQ(0U, import.mmap_offset);
	EXPECT_EQ(-EOPNOTSUPP,
		  map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED, self->buf.mmap_offset));
	close(fd);
}

/* The mmap offset of handle 17 without its upper bits is that of handle 1. */
TEST_F(compat, truncated_mmap_offset_maps_no_other_buffer)
{
	struct tensor_alloc alloc;
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	for (i = 0; i < 64; i++)
		EXPECT_EQ(-EOPNOTSUPP, raw_map_errno(self->dev, (uint64_t)i << 40));
}

TEST_HARNESS_MAIN
