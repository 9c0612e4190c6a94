// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The status page: what it shows, that nobody but the kernel writes it, and that it stays.
 */
#include "kselftest_harness.h"
#include "touch.h"

#define RW	(PROT_READ | PROT_WRITE)
#define AT	TENSOR_STATUS_OFFSET

FIXTURE(status) {
	int dev;
	int fd;
	int rofd;
	uint64_t used;
	struct tensor_alloc buf;
	const volatile struct tensor_status *status;
};

FIXTURE_SETUP(status)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, 16 * PAGE, &self->buf));
	self->fd = buf_export(self->dev, self->buf.handle, TENSOR_EXPORT_CLOEXEC);
	ASSERT_LE(0, self->fd);
	self->rofd = buf_export(self->dev, self->buf.handle, TENSOR_EXPORT_RDONLY);
	ASSERT_LE(0, self->rofd);
	self->status = map_shared(self->fd, PAGE, PROT_READ, AT);
	ASSERT_NE(MAP_FAILED, self->status);
	touch_begin();
}

FIXTURE_TEARDOWN(status)
{
	munmap((void *)self->status, PAGE);
	close(self->rofd);
	close(self->fd);
	dev_close(self->dev, self->buf.handle);
	EXPECT_TRUE(used_becomes(self->dev, self->used));
	close(self->dev);
}

TEST_F(status, new_buffer_has_nothing_to_tell)
{
	struct tensor_query query;

	ASSERT_EQ(0, dev_query(self->dev, &query));
	EXPECT_EQ(AT, query.status_offset);
	EXPECT_TRUE(all_bytes((const void *)self->status, 0, PAGE));
}

TEST_F(status, all_ways_lead_to_the_same_page)
{
	int part = buf_export_range(self->dev, self->buf.handle, 0, 4 * PAGE, PAGE), i;
	struct tensor_import import;
	int other = dev_open();
	void *at[4];

	ASSERT_EQ(0, buf_import(other, part, &import));
	at[0] = map_shared(self->dev, PAGE, PROT_READ, self->buf.cookie + AT);
	at[1] = map_shared(self->rofd, PAGE, PROT_READ, AT);
	at[2] = map_shared(other, PAGE, PROT_READ, import.cookie + AT);
	at[3] = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, part, AT);
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->fd, 0, TENSOR_SEAL_META));
	EXPECT_EQ(TENSOR_SEAL_META, self->status->seals);
	for (i = 0; i < 4; i++) {
		ASSERT_NE(MAP_FAILED, at[i]) TH_LOG("mapping %d", i);
		EXPECT_EQ(TENSOR_SEAL_META, ((struct tensor_status *)at[i])->seals);
		EXPECT_NE(0, page_frame(at[i]));
		EXPECT_EQ(page_frame((const void *)self->status), page_frame(at[i]));
		munmap(at[i], PAGE);
	}
	close(part);
	close(other);
}

TEST_F(status, seals_and_states_are_shown)
{
	EXPECT_EQ(0, self->status->seals);
	ASSERT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->fd, 0, TENSOR_SEAL_WRITE));
	EXPECT_EQ(TENSOR_SEAL_WRITE, self->status->seals);
	EXPECT_EQ(0, self->status->state);
	EXPECT_EQ(0, self->status->generation);
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_STATE_REVOKED, self->status->state);
	EXPECT_EQ(TENSOR_SEAL_WRITE, self->status->seals);
	EXPECT_EQ(0, self->status->generation);
	EXPECT_TRUE(all_bytes((const char *)self->status + sizeof(struct tensor_status), 0,
			      PAGE - sizeof(struct tensor_status)));
}

/* One that comes late sees what was before. */
TEST_F(status, page_that_is_made_late_is_right)
{
	const struct tensor_status *status;
	struct tensor_alloc alloc;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, alloc.handle, TENSOR_SEAL_META));
	ASSERT_EQ(0, buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_PURGEABLE));
	status = map_shared(self->dev, PAGE, PROT_READ, alloc.cookie + AT);
	ASSERT_NE(MAP_FAILED, status);
	EXPECT_EQ(TENSOR_SEAL_META, status->seals);
	EXPECT_EQ(TENSOR_STATE_PURGEABLE, status->state & ~TENSOR_STATE_PURGED);
	buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_WILLNEED);
	EXPECT_EQ(0, status->state);
	munmap((void *)status, PAGE);
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_F(status, nobody_maps_it_writable_or_executable)
{
	uint64_t cookie = self->buf.cookie + AT;

	EXPECT_EQ(-EACCES, map_errno(self->fd, PAGE, RW, MAP_SHARED, AT));
	EXPECT_EQ(-EACCES, map_errno(self->fd, PAGE, RW, MAP_PRIVATE, AT));
	EXPECT_EQ(-EACCES, map_errno(self->dev, PAGE, RW, MAP_SHARED, cookie));
	EXPECT_EQ(-EACCES, map_errno(self->rofd, PAGE, RW, MAP_SHARED, AT));
	EXPECT_EQ(-EPERM, map_errno(self->fd, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, AT));
	EXPECT_EQ(-EPERM, map_errno(self->dev, PAGE, PROT_EXEC, MAP_SHARED, cookie));
	EXPECT_EQ(-1, mprotect((void *)self->status, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect((void *)self->status, PAGE, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(SIGSEGV, touch_write((volatile void *)self->status, 1));
}

TEST_F(status, debuggers_cannot_write_it)
{
	void *own = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, self->fd, AT);
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	ASSERT_NE(MAP_FAILED, own);
	EXPECT_EQ(-1, pwrite(mem, "x", 1, (off_t)(unsigned long)self->status));
	EXPECT_EQ(-1, pwrite(mem, "x", 1, (off_t)(unsigned long)own));
	EXPECT_TRUE(all_bytes((const void *)self->status, 0, PAGE));
	munmap(own, PAGE);
	close(mem);
}

TEST_F(status, there_is_one_page)
{
	uint64_t cookie = self->buf.cookie;

	EXPECT_EQ(-EINVAL, map_errno(self->fd, 2 * PAGE, PROT_READ, MAP_SHARED, AT));
	EXPECT_EQ(-EINVAL, map_errno(self->fd, PAGE, PROT_READ, MAP_SHARED, AT + PAGE));
	EXPECT_EQ(-EINVAL, map_errno(self->fd, PAGE, PROT_READ, MAP_SHARED, 2 * AT));
	EXPECT_EQ(-EINVAL, map_errno(self->fd, 2 * PAGE, PROT_READ, MAP_SHARED, AT - PAGE));
	EXPECT_EQ(-EINVAL, map_errno(self->fd, PAGE, PROT_READ, MAP_SHARED, 1ULL << 62));
	EXPECT_EQ(-EINVAL, map_errno(self->dev, 2 * PAGE, PROT_READ, MAP_SHARED, cookie + AT));
	EXPECT_EQ(-EINVAL, map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED, cookie + AT + PAGE));
	EXPECT_EQ(MAP_FAILED, mremap((void *)self->status, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
}

TEST_F(status, it_can_be_moved_inherited_and_dropped)
{
	void *to = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	ASSERT_EQ(to, mremap((void *)self->status, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	self->status = to;
	ASSERT_EQ(0, madvise(to, PAGE, MADV_DONTNEED));
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->fd, 0, TENSOR_SEAL_META));
	EXPECT_EQ(TENSOR_SEAL_META, self->status->seals);
	pid = fork();
	if (!pid)
		_exit(self->status->seals == TENSOR_SEAL_META ? 0 : 1);
	EXPECT_EQ(0, reap(pid));
}

TEST_F(status, stays_readable_when_all_else_is_gone)
{
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	close(self->fd);
	close(self->rofd);
	EXPECT_EQ(0, dev_close(self->dev, self->buf.handle));
	ASSERT_EQ(0, madvise((void *)self->status, PAGE, MADV_DONTNEED));
	EXPECT_EQ(0, touch_read(self->status));
	EXPECT_EQ(TENSOR_STATE_REVOKED, self->status->state);
	self->fd = self->rofd = -1;
}

/* It is no mapping of the memory: it neither counts as one nor as a writer. */
TEST_F(status, page_is_no_mapping_of_the_memory)
{
	struct tensor_info info;

	ASSERT_EQ(0, buf_info(self->fd, 0, &info));
	EXPECT_EQ(0, info.mappings);
	EXPECT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->fd, 0, TENSOR_SEAL_WRITE));
}

TEST_HARNESS_MAIN
