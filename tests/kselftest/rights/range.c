// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Parts of a buffer: an fd or handle of a part reaches that part only, by every call and offset,
 * and is mapped by huge pages like the whole.
 */
#include <sys/syscall.h>

#include "../include/fixture.h"
#include "../include/touch.h"
#include "kselftest_harness.h"

#define BYTES (3 * HUGE)
#define FIRST (HUGE + 5 * PAGE)
#define PART  (16 * PAGE)
#define RW    (PROT_READ | PROT_WRITE)

FIXTURE(range)
{
	int dev;
	int part;
	int other;
	uint64_t used;
	struct tensor_alloc buf;
	struct tensor_import import;
	uint32_t *all;
};

FIXTURE_SETUP(range)
{
	uint64_t i;

	ASSERT_EQ(0, setup_buf(&self->dev, &self->used, &self->buf, BYTES));
	self->all = map_shared(self->dev, BYTES, RW, self->buf.mmap_offset);
	ASSERT_NE(MAP_FAILED, self->all);
	for (i = 0; i < BYTES / PAGE; i++)
		self->all[i * PAGE / 4] = i;
	self->part = buf_export_range(self->dev, self->buf.handle, 0, FIRST, PART);
	ASSERT_LE(0, self->part);
	self->other = dev_open();
	ASSERT_EQ(0, buf_import(self->other, self->part, &self->import));
	touch_begin();
}

FIXTURE_TEARDOWN(range)
{
	munmap(self->all, BYTES);
	close(self->part);
	close(self->other);
	EXPECT_TRUE(teardown_buf(self->dev, self->used, self->buf.handle));
}

/* Whether a mapping shows the pages from @first on. */
static bool shows(const uint32_t *at, uint64_t bytes, uint64_t first)
{
	uint64_t i;

	if (at == MAP_FAILED)
		return false;
	for (i = 0; i < bytes / PAGE; i++) {
		if (at[i * PAGE / 4] != first / PAGE + i)
			return false;
	}
	return true;
}

TEST_F(range, part_is_mapped_from_its_start)
{
	uint32_t *a = map_shared(self->part, PART, RW, 0);
	uint32_t *b = map_shared(self->other, PART, PROT_READ, self->import.mmap_offset);
	uint32_t *c = map_shared(self->part, PAGE, PROT_READ, PART - PAGE);
	uint32_t *d = map_shared(self->other, PAGE, PROT_READ, self->import.mmap_offset + 3 * PAGE);

	EXPECT_TRUE(shows(a, PART, FIRST));
	EXPECT_TRUE(shows(b, PART, FIRST));
	EXPECT_TRUE(shows(c, PAGE, FIRST + PART - PAGE));
	EXPECT_TRUE(shows(d, PAGE, FIRST + 3 * PAGE));
	a[1] = 0xabcd;
	EXPECT_EQ(0xabcd, self->all[FIRST / 4 + 1]);
	EXPECT_EQ(PART, self->import.bytes);
	munmap(a, PART);
	munmap(b, PART);
	munmap(c, PAGE);
	munmap(d, PAGE);
}

TEST_F(range, nothing_outside_can_be_mapped)
{
	uint64_t mmap_offset = self->import.mmap_offset;

	EXPECT_EQ(-EINVAL, map_errno(self->part, PART + PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-EINVAL, map_errno(self->part, PAGE, PROT_READ, MAP_SHARED, PART));
	EXPECT_EQ(-EINVAL, map_errno(self->part, 2 * PAGE, PROT_READ, MAP_SHARED, PART - PAGE));
	EXPECT_EQ(-EINVAL, map_errno(self->part, PAGE, PROT_READ, MAP_SHARED, FIRST));
	EXPECT_EQ(-EINVAL, map_errno(self->part, PAGE, PROT_READ, MAP_SHARED, 0 - FIRST));
	EXPECT_GT(0, map_errno(self->part, PAGE, PROT_READ, MAP_SHARED, 0 - PAGE));
	EXPECT_EQ(-EINVAL, map_errno(self->other, PART + PAGE, PROT_READ, MAP_SHARED, mmap_offset));
	EXPECT_EQ(-EINVAL, map_errno(self->other, PAGE, PROT_READ, MAP_SHARED, mmap_offset + PART));
	EXPECT_GT(0, map_errno(self->other, PAGE, PROT_READ, MAP_SHARED, mmap_offset - PAGE));
}

TEST_F(range, mapping_of_a_part_cannot_grow)
{
	char *at = map_shared(self->part, PART, RW, 0);
	uint64_t i;

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(MAP_FAILED, mremap(at, PART, PART + PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	/* an old size of 0 makes a second mapping of the same memory */
	EXPECT_EQ(MAP_FAILED, mremap(at, 0, PART + PAGE, MREMAP_MAYMOVE));
	/* the page number that remap_file_pages() takes counts from the start of the part */
	for (i = 0; i < BYTES / PAGE; i++) {
		long err = syscall(SYS_remap_file_pages, at, PAGE, 0, i, 0);

		if (!err) {
			EXPECT_GT(PART / PAGE, i);
			EXPECT_EQ(FIRST / PAGE + i, *(uint32_t *)at);
		}
	}
	munmap(at, PART);
}

TEST_F(range, info_shows_the_range)
{
	struct tensor_info info, whole;

	ASSERT_EQ(0, buf_info(self->part, 0, &info));
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &whole));
	EXPECT_EQ(PART, info.bytes);
	EXPECT_EQ(FIRST, info.offset);
	EXPECT_EQ(TENSOR_STATE_RANGE, info.state);
	EXPECT_EQ(whole.ino, info.ino);
	EXPECT_EQ(BYTES, whole.bytes);
	EXPECT_EQ(0, whole.offset);
	EXPECT_EQ(0, whole.state);
	ASSERT_EQ(0, buf_info(self->other, self->import.handle, &info));
	EXPECT_EQ(PART, info.bytes);
	EXPECT_EQ(FIRST, info.offset);
	EXPECT_EQ(TENSOR_STATE_RANGE, info.state);
}

TEST_F(range, impossible_ranges_are_einval)
{
	static const struct {
		uint64_t offset, bytes;
	} bad[] = {
		{ 0, 0 },
		{ PAGE, 0 },
		{ 1, PAGE },
		{ 0, 1 },
		{ 0, PAGE + 1 },
		{ PAGE - 1, PAGE },
		{ 0, BYTES + PAGE },
		{ BYTES, PAGE },
		{ PAGE, BYTES },
		{ BYTES - PAGE, 2 * PAGE },
		{ 0 - PAGE, PAGE },
		{ 0 - PAGE, 2 * PAGE },
		{ PAGE, 0 - PAGE },
		{ 0, 0 - PAGE },
		{ 1ULL << 63, 1ULL << 63 },
		{ 1ULL << 63, PAGE },
		{ PAGE, 1ULL << 63 },
		{ 1ULL << 39, PAGE },
	};
	struct tensor_export arg = { .size = sizeof(arg),
				     .handle = self->buf.handle,
				     .rights = TENSOR_RIGHTS_RW };
	int fds = count_fds();
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_EQ(-EINVAL, buf_export_range(self->dev, self->buf.handle, 0, bad[i].offset,
						    bad[i].bytes))
	TH_LOG("row %u", i);
	arg.bytes = PAGE;
	EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_EXPORT, &arg));
	arg.bytes = 0;
	arg.offset = PAGE;
	EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_EXPORT, &arg));
	EXPECT_EQ(fds, count_fds());
}

TEST_F(range, part_of_a_part_lies_in_it)
{
	uint32_t handle = self->import.handle, *at;
	struct tensor_info info;
	int fd;

	EXPECT_EQ(-EINVAL, buf_export_range(self->other, handle, 0, 0, PART + PAGE));
	EXPECT_EQ(-EINVAL, buf_export_range(self->other, handle, 0, PART, PAGE));
	EXPECT_EQ(-EINVAL, buf_export_range(self->other, handle, 0, 0 - PAGE, 2 * PAGE));
	fd = buf_export_range(self->other, handle, 0, 4 * PAGE, 2 * PAGE);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_info(fd, 0, &info));
	EXPECT_EQ(2 * PAGE, info.bytes);
	EXPECT_EQ(FIRST + 4 * PAGE, info.offset);
	at = map_shared(fd, 2 * PAGE, PROT_READ, 0);
	EXPECT_TRUE(shows(at, 2 * PAGE, FIRST + 4 * PAGE));
	EXPECT_EQ(-EINVAL, map_errno(fd, 3 * PAGE, PROT_READ, MAP_SHARED, 0));
	munmap(at, 2 * PAGE);
	close(fd);
	/* EXPORT without a range exports the same part again */
	fd = buf_export(self->other, handle, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_info(fd, 0, &info));
	EXPECT_EQ(PART, info.bytes);
	EXPECT_EQ(FIRST, info.offset);
	close(fd);
}

TEST_F(range, read_only_part_stays_read_only)
{
	int fd = buf_export_range_rights(self->other, self->import.handle, TENSOR_RIGHTS_RO, 0,
					 PAGE, PAGE);
	struct tensor_import import;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EACCES, map_errno(fd, PAGE, RW, MAP_SHARED, 0));
	ASSERT_EQ(0, buf_import(self->other, fd, &import));
	EXPECT_EQ(-EACCES, buf_export_rw(self->other, import.handle));
	EXPECT_EQ(-EACCES, buf_export_range_rights(self->other, import.handle, TENSOR_RIGHTS_RW, 0,
						   0, PAGE));
	close(fd);
}

TEST_F(range, range_of_all_pages_is_the_whole_buffer)
{
	int fd = buf_export_range(self->dev, self->buf.handle, 0, 0, BYTES);
	struct tensor_desc desc = { .label = "whole" };
	struct tensor_info info;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_info(fd, 0, &info));
	EXPECT_EQ(0, info.state);
	EXPECT_EQ(BYTES, info.bytes);
	EXPECT_EQ(0, buf_meta(fd, 0, TENSOR_META_SET, &desc));
	close(fd);
}

TEST_F(range, calls_on_the_whole_buffer_are_refused)
{
	struct tensor_desc desc = { .label = "part" };

	EXPECT_EQ(-EACCES, buf_meta(self->part, 0, TENSOR_META_SET, &desc));
	EXPECT_EQ(-EACCES, buf_meta(self->other, self->import.handle, TENSOR_META_SET, &desc));
	EXPECT_EQ(-EACCES, buf_seal(self->part, 0, TENSOR_SEAL_META));
	EXPECT_EQ(-EACCES, buf_seal(self->other, self->import.handle, TENSOR_SEAL_META));
	EXPECT_EQ(-EACCES, buf_revoke(self->other, self->import.handle));
	EXPECT_EQ(-EACCES, buf_advise(self->other, self->import.handle, TENSOR_ADVISE_WILLNEED));
}

/* The offset of a descriptor of the whole buffer as read through the part. */
static int seen_offset(FIXTURE_DATA(range) * self, uint64_t offset, int64_t size, int64_t stride)
{
	struct tensor_desc desc = {
		.bits = 32, .dtype = TAG_F32, .ndim = 1, .offset = offset, .sizes = { size },
		.strides = { stride }, .label = "seen",
	}, seen;
	struct tensor_info info;

	if (buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, &desc) ||
	    buf_meta(self->part, 0, 0, &seen) || buf_info(self->part, 0, &info))
		return -2;
	if (!seen.bits)
		return !(info.state & TENSOR_STATE_META) && all_bytes(&seen, 0, sizeof(seen)) ? -1 :
												-2;
	if (!(info.state & TENSOR_STATE_META) || seen.sizes[0] != size ||
	    seen.strides[0] != stride || strcmp(seen.label, "seen"))
		return -2;
	return (int)seen.offset;
}

TEST_F(range, descriptor_is_read_through_a_part_that_contains_it)
{
	int64_t n = PART / 4;

	EXPECT_EQ(0, seen_offset(self, FIRST, n, 1));
	EXPECT_EQ(8, seen_offset(self, FIRST + 8, n - 2, 1));
	EXPECT_EQ((int)PART - 4, seen_offset(self, FIRST + PART - 4, n, -1));
	EXPECT_EQ(4, seen_offset(self, FIRST + 4, 1000000, 0));
	EXPECT_EQ(-1, seen_offset(self, FIRST, n + 1, 1));
	EXPECT_EQ(-1, seen_offset(self, FIRST + 4, n, 1));
	EXPECT_EQ(-1, seen_offset(self, FIRST - 4, 2, 1));
	EXPECT_EQ(-1, seen_offset(self, FIRST, 2, -1));
	EXPECT_EQ(-1, seen_offset(self, FIRST + PART, 1, 1));
	EXPECT_EQ(-1, seen_offset(self, 0, 1, 1));
	EXPECT_EQ(-1, seen_offset(self, 0, BYTES / 4, 1));
	EXPECT_EQ(-1, seen_offset(self, BYTES - 4, 1, 1));
}

TEST_F(range, fdinfo_shows_the_part)
{
	char path[64], text[2048];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->part);
	read_text(path, text, sizeof(text));
	EXPECT_NE(NULL, strstr(text, "tensor-total-memory:\t64 KiB\n"));
	EXPECT_NE(NULL, strstr(text, "tensor-first:\t2068 KiB\n"));
}

/* Bytes of a part that are mapped by PMDs. */
static int64_t huge_mapped(FIXTURE_DATA(range) * self, int fd, uint64_t mmap_offset, uint64_t first,
			   uint64_t bytes)
{
	uint32_t *at = map_shared(fd, bytes, RW, mmap_offset);
	int64_t huge = -1;

	if (shows(at, bytes, first))
		huge = pmd_mapped(at, bytes);
	if (at != MAP_FAILED)
		munmap(at, bytes);
	return huge;
}

TEST_F(range, part_is_aligned_for_huge_chunks)
{
	static const struct {
		uint64_t first, bytes;
		int64_t huge;
	} row[] = {
		{ HUGE, HUGE, HUGE },
		{ HUGE, 2 * HUGE, 2 * HUGE },
		{ 0, HUGE, HUGE },
		{ HUGE - PAGE, 2 * HUGE, HUGE },
		{ PAGE, 3 * HUGE - PAGE, 2 * HUGE },
		{ 7 * PAGE, 3 * HUGE - 9 * PAGE, HUGE },
		{ HUGE + PAGE, HUGE, 0 },
	};
	struct tensor_import import;
	struct tensor_info info;
	unsigned int i;
	int fd;

	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	if (info.huge_bytes != BYTES)
		SKIP(return, "no huge chunks");
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fd = buf_export_range(self->dev, self->buf.handle, 0, row[i].first, row[i].bytes);
		ASSERT_LE(0, fd);
		EXPECT_EQ(row[i].huge, huge_mapped(self, fd, 0, row[i].first, row[i].bytes))
		TH_LOG("row %u", i);
		ASSERT_EQ(0, buf_import(self->other, fd, &import));
		EXPECT_EQ(row[i].huge, huge_mapped(self, self->other, import.mmap_offset,
						   row[i].first, row[i].bytes))
		TH_LOG("row %u", i);
		EXPECT_EQ(0, dev_close(self->other, import.handle));
		close(fd);
	}
}

TEST_F(range, revoke_finds_mappings_of_parts)
{
	char *a = map_shared(self->part, PART, RW, 0);
	char *b = map_shared(self->other, PART, RW, self->import.mmap_offset);

	ASSERT_NE(MAP_FAILED, a);
	ASSERT_NE(MAP_FAILED, b);
	EXPECT_EQ(0, pages_raising_sigbus(a, PART));
	EXPECT_EQ(0, pages_raising_sigbus(b, PART));
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(0, pages_present(a, PART));
	EXPECT_EQ(0, pages_present(b, PART));
	EXPECT_EQ(PART / PAGE, pages_raising_sigbus(a, PART));
	EXPECT_EQ(PART / PAGE, pages_raising_sigbus(b, PART));
	EXPECT_EQ(-EIDRM, map_errno(self->part, PAGE, PROT_READ, MAP_SHARED, 0));
	munmap(a, PART);
	munmap(b, PART);
}

TEST_F(range, writer_of_a_part_refuses_seal_of_the_whole)
{
	char *at;

	munmap(self->all, BYTES);
	at = map_shared(self->part, PAGE, RW, 0);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-EBUSY, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	munmap(at, PAGE);
	EXPECT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(-EPERM, map_errno(self->part, PAGE, RW, MAP_SHARED, 0));
	EXPECT_EQ(0, map_errno(self->part, PART, PROT_READ, MAP_SHARED, 0));
}

TEST_HARNESS_MAIN
