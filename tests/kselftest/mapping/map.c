// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Mappings: a buffer fd and an mmap offset lead to the same bytes, huge chunks are mapped by PMDs,
 * and no mapping has a larger range or more rights than its fd or handle.
 */
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include "../include/fixture.h"
#include "../include/touch.h"
#include "kselftest_harness.h"

#define BYTES (2 * HUGE)

FIXTURE(map)
{
	int dev;
	int fd;
	int rofd;
	uint64_t used;
	struct tensor_alloc buf;
};

FIXTURE_SETUP(map)
{
	ASSERT_EQ(0, setup_buf(&self->dev, &self->used, &self->buf, BYTES));
	ASSERT_EQ(0, setup_fds(self->dev, self->buf.handle, &self->fd, &self->rofd));
}

FIXTURE_TEARDOWN(map)
{
	close(self->rofd);
	close(self->fd);
	EXPECT_TRUE(teardown_buf(self->dev, self->used, self->buf.handle));
}

TEST_F(map, fd_and_mmap_offset_see_the_same_bytes)
{
	char *a = map_shared(self->fd, BYTES, PROT_READ | PROT_WRITE, 0);
	char *b = map_shared(self->dev, BYTES, PROT_READ | PROT_WRITE, self->buf.mmap_offset);
	uint64_t at;

	ASSERT_NE(MAP_FAILED, a);
	ASSERT_NE(MAP_FAILED, b);
	for (at = 0; at < BYTES; at += PAGE)
		*(uint64_t *)(a + at) = at + 1;
	for (at = 0; at < BYTES; at += PAGE)
		ASSERT_EQ(at + 1, *(uint64_t *)(b + at));
	b[BYTES - 1] = 7;
	EXPECT_EQ(7, a[BYTES - 1]);
	EXPECT_EQ(page_frame(a), page_frame(b));
	EXPECT_NE(0, page_frame(a));
	munmap(a, BYTES);
	munmap(b, BYTES);
}

TEST_F(map, mmap_offset_plus_offset_maps_from_there)
{
	char *all = map_shared(self->dev, BYTES, PROT_READ | PROT_WRITE, self->buf.mmap_offset);
	char *part =
		map_shared(self->dev, PAGE, PROT_READ, self->buf.mmap_offset + HUGE + 5 * PAGE);
	char *of_fd = map_shared(self->fd, PAGE, PROT_READ, HUGE + 5 * PAGE);

	ASSERT_NE(MAP_FAILED, all);
	ASSERT_NE(MAP_FAILED, part);
	ASSERT_NE(MAP_FAILED, of_fd);
	strcpy(all + HUGE + 5 * PAGE, "here");
	EXPECT_STREQ("here", part);
	EXPECT_STREQ("here", of_fd);
	munmap(all, BYTES);
	munmap(part, PAGE);
	munmap(of_fd, PAGE);
}

TEST_F(map, huge_chunks_are_mapped_by_pmd)
{
	struct tensor_query query;
	struct tensor_info info;
	char *a, *b;

	ASSERT_EQ(0, dev_query(self->dev, &query));
	if (!(query.features & TENSOR_FEATURE_HUGE))
		SKIP(return, "no huge chunks");
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	ASSERT_EQ(BYTES, info.huge_bytes);
	a = map_shared(self->fd, BYTES, PROT_READ | PROT_WRITE, 0);
	b = map_shared(self->dev, BYTES, PROT_READ | PROT_WRITE, self->buf.mmap_offset);
	ASSERT_NE(MAP_FAILED, a);
	ASSERT_NE(MAP_FAILED, b);
	a[0] = a[HUGE] = b[0] = b[HUGE] = 1;
	EXPECT_EQ((int64_t)BYTES, pmd_mapped(a, BYTES));
	EXPECT_EQ((int64_t)BYTES, pmd_mapped(b, BYTES));
	munmap(a, BYTES);
	munmap(b, BYTES);
}

TEST_F(map, small_chunks_are_mapped_by_pages)
{
	struct tensor_alloc alloc = alloc_args(BYTES);
	char *at;

	alloc.flags = TENSOR_ALLOC_ORDERS;
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc));
	at = map_shared(self->dev, BYTES, PROT_READ | PROT_WRITE, alloc.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	memset(at, 1, BYTES);
	EXPECT_EQ(0, pmd_mapped(at, BYTES));
	EXPECT_EQ((int64_t)BYTES, smaps_bytes(at, "Rss:"));
	munmap(at, BYTES);
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

static long page_faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? -1 : usage.ru_minflt;
}

/* A buffer of one chunk below PMD size; each page is filled with its number plus 1. */
#define CHUNK_PAGES 128

static char *map_chunk(int dev, struct tensor_alloc *alloc)
{
	char *at;
	int i;

	*alloc = alloc_args(CHUNK_PAGES * PAGE);
	alloc->flags = TENSOR_ALLOC_ORDERS;
	alloc->min_order = 7;
	alloc->max_order = 7;
	if (dev_call(dev, TENSOR_IOC_ALLOC, alloc))
		return MAP_FAILED;
	at = map_shared(dev, alloc->bytes, PROT_READ | PROT_WRITE, alloc->mmap_offset);
	for (i = 0; at != MAP_FAILED && i < CHUNK_PAGES; i++)
		at[i * PAGE] = i + 1;
	return at;
}

static bool chunk_holds(const char *at, int first, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		if (at[i * PAGE] != (char)(first + i + 1))
			return false;
	}
	return true;
}

TEST_F(map, chunk_below_a_huge_page_meets_few_faults)
{
	struct tensor_alloc alloc;
	long faults = page_faults();
	char *at = map_chunk(self->dev, &alloc);

	ASSERT_NE(MAP_FAILED, at);
	faults = page_faults() - faults;
	EXPECT_GE(8, faults);
	EXPECT_EQ((int64_t)alloc.bytes, smaps_bytes(at, "Rss:"));
	/* touching only the start does not map all of it */
	EXPECT_EQ(0, madvise(at, alloc.bytes, MADV_DONTNEED));
	EXPECT_EQ(1, at[0]);
	EXPECT_GE((int64_t)alloc.bytes / 4, smaps_bytes(at, "Rss:"));
	munmap(at, alloc.bytes);
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_F(map, unmapped_pages_of_a_chunk_fault_again)
{
	struct tensor_alloc alloc;
	char *at = map_chunk(self->dev, &alloc);
	int i;

	ASSERT_NE(MAP_FAILED, at);
	/* from the end, so that each fault meets existing entries */
	for (i = CHUNK_PAGES - 1; i >= 0; i -= 3) {
		EXPECT_EQ(0, madvise(at + i * PAGE, PAGE, MADV_DONTNEED));
		EXPECT_EQ((char)(i + 1), at[i * PAGE]);
	}
	EXPECT_EQ(0, madvise(at, alloc.bytes, MADV_DONTNEED));
	for (i = CHUNK_PAGES - 1; i >= 0; i -= 5)
		at[i * PAGE] = i + 1;
	EXPECT_TRUE(chunk_holds(at, 0, CHUNK_PAGES));
	/* unmap pages at both ends and in the middle */
	EXPECT_EQ(0, munmap(at, PAGE));
	EXPECT_EQ(0, munmap(at + 40 * PAGE, 2 * PAGE));
	EXPECT_EQ(0, munmap(at + (CHUNK_PAGES - 1) * PAGE, PAGE));
	EXPECT_EQ(0, madvise(at + PAGE, 39 * PAGE, MADV_DONTNEED));
	EXPECT_TRUE(chunk_holds(at + PAGE, 1, 39));
	EXPECT_EQ(0, madvise(at + 42 * PAGE, 60 * PAGE, MADV_DONTNEED));
	EXPECT_TRUE(chunk_holds(at + 42 * PAGE, 42, CHUNK_PAGES - 43));
	munmap(at, alloc.bytes);
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_F(map, chunk_is_inherited_and_protected_by_pages)
{
	struct tensor_alloc alloc;
	char *at = map_chunk(self->dev, &alloc);
	pid_t pid;

	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, mprotect(at + 8 * PAGE, 8 * PAGE, PROT_READ));
	EXPECT_EQ(0, madvise(at, alloc.bytes, MADV_DONTNEED));
	pid = fork();
	if (!pid) {
		at[0] = 77;
		munmap(at + PAGE, 4 * PAGE);
		_exit(chunk_holds(at + 5 * PAGE, 5, CHUNK_PAGES - 5) ? 0 : 1);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(77, at[0]);
	EXPECT_TRUE(chunk_holds(at + PAGE, 1, CHUNK_PAGES - 1));
	pid = fork();
	if (!pid) {
		at[9 * PAGE] = 1;
		_exit(0);
	}
	EXPECT_EQ(-SIGSEGV, reap(pid));
	munmap(at, alloc.bytes);
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_F(map, one_page_past_the_end_is_einval)
{
	uint64_t mmap_offset = self->buf.mmap_offset;

	EXPECT_EQ(-EINVAL, map_errno(self->fd, BYTES + PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-EINVAL, map_errno(self->fd, PAGE, PROT_READ, MAP_SHARED, BYTES));
	EXPECT_EQ(-EINVAL, map_errno(self->fd, 2 * PAGE, PROT_READ, MAP_SHARED, BYTES - PAGE));
	EXPECT_EQ(0, map_errno(self->fd, PAGE, PROT_READ, MAP_SHARED, BYTES - PAGE));
	EXPECT_EQ(-EINVAL, map_errno(self->dev, BYTES + PAGE, PROT_READ, MAP_SHARED, mmap_offset));
	EXPECT_EQ(-EINVAL, map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED, mmap_offset + BYTES));
	EXPECT_EQ(0, map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED, mmap_offset + BYTES - PAGE));
}

TEST_F(map, offsets_that_overflow_are_refused)
{
	EXPECT_GT(0, map_errno(self->fd, 2 * PAGE, PROT_READ, MAP_SHARED, UINT64_MAX - PAGE + 1));
	EXPECT_GT(0, map_errno(self->fd, PAGE, PROT_READ, MAP_SHARED, 1ULL << 63));
	EXPECT_GT(0, map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED, UINT64_MAX - PAGE + 1));
}

TEST_F(map, private_and_writable_is_refused)
{
	int both = PROT_READ | PROT_WRITE;

	EXPECT_EQ(-EINVAL, map_errno(self->fd, PAGE, both, MAP_PRIVATE, 0));
	EXPECT_EQ(-EINVAL, map_errno(self->rofd, PAGE, both, MAP_PRIVATE, 0));
	EXPECT_EQ(-EINVAL, map_errno(self->dev, PAGE, both, MAP_PRIVATE, self->buf.mmap_offset));
}

TEST_F(map, private_mapping_cannot_become_writable)
{
	void *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, self->fd, 0);

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-1, mprotect(at, PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	munmap(at, PAGE);
}

TEST_F(map, executable_is_refused)
{
	void *at = map_shared(self->fd, PAGE, PROT_READ, 0);

	EXPECT_EQ(-EPERM, map_errno(self->fd, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, 0));
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-1, mprotect(at, PAGE, PROT_READ | PROT_EXEC));
	munmap(at, PAGE);
}

TEST_F(map, read_only_fd_maps_for_reading)
{
	char *rw = map_shared(self->fd, BYTES, PROT_READ | PROT_WRITE, 0);
	char *ro = map_shared(self->rofd, BYTES, PROT_READ, 0);

	ASSERT_NE(MAP_FAILED, rw);
	ASSERT_NE(MAP_FAILED, ro);
	rw[HUGE + 1] = 42;
	EXPECT_EQ(42, ro[HUGE + 1]);
	munmap(rw, BYTES);
	munmap(ro, BYTES);
}

TEST_F(map, read_only_fd_refuses_write_mapping)
{
	int both = PROT_READ | PROT_WRITE;

	EXPECT_EQ(-EACCES, map_errno(self->rofd, PAGE, both, MAP_SHARED, 0));
	EXPECT_EQ(-EACCES, map_errno(self->rofd, PAGE, PROT_WRITE, MAP_SHARED, 0));
}

TEST_F(map, read_only_fd_refuses_mprotect_write)
{
	char *at = map_shared(self->rofd, BYTES, PROT_READ, 0);

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-1, mprotect(at, BYTES, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(at + PAGE, PAGE, PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	munmap(at, BYTES);
}

TEST_F(map, read_only_handle_refuses_write_mapping_and_mprotect)
{
	struct tensor_import import;
	struct tensor_info info;
	void *at;

	ASSERT_EQ(0, buf_import(self->dev, self->rofd, &import));
	EXPECT_EQ(BYTES, import.bytes);
	EXPECT_EQ(-EACCES, map_errno(self->dev, PAGE, PROT_WRITE, MAP_SHARED, import.mmap_offset));
	at = map_shared(self->dev, BYTES, PROT_READ, import.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-1, mprotect(at, PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(TENSOR_RIGHTS_RO, import.rights);
	EXPECT_EQ(-EACCES, buf_export_rw(self->dev, import.handle));
	ASSERT_EQ(0, buf_info(self->dev, import.handle, &info));
	EXPECT_NE(0, info.state & TENSOR_STATE_RDONLY);
	munmap(at, BYTES);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
}

TEST_F(map, read_only_open_of_the_device_maps_nothing_writable)
{
	int dev = open("/dev/tensor", O_RDONLY);

	ASSERT_LE(0, dev);
	EXPECT_GT(0,
		  map_errno(dev, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, self->buf.mmap_offset));
	close(dev);
}

TEST_F(map, buffer_fd_cannot_be_opened_again)
{
	static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_TRUNC };
	char path[64];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", self->rofd);
		EXPECT_EQ(-1, open(path, modes[i]));
		EXPECT_EQ(ENXIO, errno);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fd);
		EXPECT_EQ(-1, open(path, modes[i]));
		EXPECT_EQ(ENXIO, errno);
	}
}

/* A mark holds the inode and not the mount, whose release would wait for the mark. */
TEST_F(map, buffer_fd_cannot_be_watched)
{
	int inotify = inotify_init1(IN_CLOEXEC), fanotify, fds[] = { self->fd, self->rofd };
	char path[64];
	unsigned int i;

	ASSERT_LE(0, inotify);
	fanotify = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
		EXPECT_EQ(-1, inotify_add_watch(inotify, path, IN_ALL_EVENTS));
		EXPECT_EQ(ENXIO, errno);
		if (fanotify < 0)
			continue;
		EXPECT_EQ(-1, fanotify_mark(fanotify, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, path));
		EXPECT_EQ(ENXIO, errno);
		/* nor by the fd itself, without a path */
		EXPECT_EQ(-1, fanotify_mark(fanotify, FAN_MARK_ADD, FAN_OPEN, fds[i], NULL));
		EXPECT_EQ(ENXIO, errno);
	}
	close(inotify);
	if (fanotify >= 0)
		close(fanotify);
}

TEST_F(map, mapping_cannot_be_opened_through_map_files)
{
	char *at = map_shared(self->rofd, BYTES, PROT_READ, 0), path[96];

	ASSERT_NE(MAP_FAILED, at);
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (long)at,
		 (long)at + (long)BYTES);
	EXPECT_EQ(-1, open(path, O_RDWR));
	munmap(at, BYTES);
}

TEST_F(map, size_mode_and_bytes_of_a_fd_cannot_be_changed)
{
	char byte = 1;

	EXPECT_EQ(-1, ftruncate(self->fd, PAGE));
	EXPECT_EQ(-1, ftruncate(self->fd, BYTES * 2));
	EXPECT_EQ(-1, fallocate(self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	EXPECT_EQ(-1, fchmod(self->fd, 0777));
	EXPECT_EQ(-1, fchown(self->fd, 1000, 1000));
	EXPECT_EQ(-1, read(self->fd, &byte, 1));
	EXPECT_EQ(-1, write(self->fd, &byte, 1));
}

TEST_F(map, fstat_and_fstatfs_identify_a_buffer_fd)
{
	struct statfs fs;

	ASSERT_EQ(0, fstatfs(self->fd, &fs));
	EXPECT_EQ(TENSOR_FS_MAGIC, fs.f_type);
	EXPECT_EQ(O_RDWR, fcntl(self->fd, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(O_RDONLY, fcntl(self->rofd, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->fd, F_GETFD));
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->rofd, F_GETFD));
}

TEST_F(map, mapping_outlives_handle_fd_and_device)
{
	int dev = dev_open();
	struct tensor_alloc alloc;
	char *at;

	ASSERT_EQ(0, dev_alloc(dev, HUGE, &alloc));
	at = map_shared(dev, HUGE, PROT_READ | PROT_WRITE, alloc.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	at[0] = 1;
	EXPECT_EQ(0, dev_close(dev, alloc.handle));
	close(dev);
	at[1] = 2;
	at[HUGE - 1] = 3;
	EXPECT_EQ(1, at[0]);
	munmap(at, HUGE);
}

/* Tells the kernel that the memory of this page has failed. */
static int fail_memory(void *at)
{
	return madvise(at, PAGE, MADV_HWPOISON) ? -errno : 0;
}

static void failed_page(struct __test_metadata *_metadata, int dev, uint64_t bytes)
{
	struct tensor_alloc alloc;
	char *a, *b;
	int err;

	ASSERT_EQ(0, dev_alloc(dev, bytes, &alloc));
	a = map_shared(dev, bytes, PROT_READ | PROT_WRITE, alloc.mmap_offset);
	b = map_shared(dev, bytes, PROT_READ | PROT_WRITE, alloc.mmap_offset);
	ASSERT_NE(MAP_FAILED, a);
	ASSERT_NE(MAP_FAILED, b);
	memset(a, 1, bytes);
	err = fail_memory(a + 5 * PAGE);
	if (err != -EINVAL && err != -EPERM) {
		touch_begin();
		EXPECT_EQ(SIGBUS, touch_read(b + 5 * PAGE));
		/* nor when a neighbour is touched first, which maps ahead */
		if (bytes < HUGE) {
			EXPECT_EQ(0, touch_read(b + 3 * PAGE));
			EXPECT_EQ(SIGBUS, touch_read(b + 5 * PAGE));
			EXPECT_EQ(0, touch_read(b + 6 * PAGE));
		}
	}
	munmap(a, bytes);
	munmap(b, bytes);
	EXPECT_EQ(0, dev_close(dev, alloc.handle));
	if (err == -EINVAL || err == -EPERM)
		SKIP(return, "no memory can fail in this kernel");
}

TEST_F(map, poisoned_page_is_sigbus)
{
	failed_page(_metadata, self->dev, BYTES);
}

TEST_F(map, poisoned_page_is_not_mapped_ahead)
{
	failed_page(_metadata, self->dev, 64 * PAGE);
}

TEST_HARNESS_MAIN
