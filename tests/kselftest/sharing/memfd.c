// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * IMPORT of memfds: which are accepted, which rights the handle has, and that the seals of the
 * memfd hold.
 */
#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define BYTES (64 * PAGE)

FIXTURE(memfd)
{
	int dev;
	int memfd;
	uint64_t used;
	char *at;
	struct tensor_import buf;
};

/* A memfd of that size with these seals. */
static int make(uint64_t bytes, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, bytes) || fcntl(fd, F_ADD_SEALS, seals))) {
		close(fd);
		return -errno;
	}
	return fd;
}

FIXTURE_SETUP(memfd)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
	self->memfd = make(BYTES, F_SEAL_SHRINK);
	ASSERT_LE(0, self->memfd);
	self->at = map_shared(self->memfd, BYTES, RW, 0);
	ASSERT_NE(MAP_FAILED, self->at);
	ASSERT_EQ(0, buf_import(self->dev, self->memfd, &self->buf));
}

FIXTURE_TEARDOWN(memfd)
{
	EXPECT_EQ(self->used, dev_used(self->dev));
	close(self->memfd);
	munmap(self->at, BYTES);
	close(self->dev);
}

static int import_errno(int dev, int fd)
{
	struct tensor_import import;

	return buf_import(dev, fd, &import);
}

/* The rights of a handle imported from a memfd that is then closed, or -errno. */
static int import_rdonly(int dev, int fd)
{
	struct tensor_import import;
	int err = buf_import(dev, fd, &import);

	if (err)
		return err;
	close(fd);
	return info_of(dev, import.handle).state & TENSOR_STATE_RDONLY ? 1 : 0;
}

TEST_F(memfd, query_reports_the_feature)
{
	struct tensor_query query;

	ASSERT_EQ(0, dev_query(self->dev, &query));
	EXPECT_NE(0, query.features & TENSOR_FEATURE_MEMFD);
}

TEST_F(memfd, bytes_go_both_ways)
{
	char *at = map_shared(self->dev, BYTES, RW, self->buf.mmap_offset);
	struct tensor_info info = info_of(self->dev, self->buf.handle);

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(BYTES, self->buf.bytes);
	EXPECT_EQ(TENSOR_KIND_MEMFD, info.kind);
	EXPECT_EQ(BYTES, info.bytes);
	EXPECT_EQ(0, info.state);
	EXPECT_EQ(0, info.pinned_bytes);
	EXPECT_EQ(self->used, dev_used(self->dev));
	memset(self->at, 0x11, BYTES);
	EXPECT_TRUE(all_bytes(at, 0x11, BYTES));
	memset(at, 0x22, BYTES);
	EXPECT_TRUE(all_bytes(self->at, 0x22, BYTES));
	EXPECT_EQ(page_frame(self->at + 3 * PAGE), page_frame(at + 3 * PAGE));
	munmap(at, BYTES);
}

TEST_F(memfd, handle_keeps_the_memory)
{
	char *at;

	memset(self->at, 0x33, BYTES);
	munmap(self->at, BYTES);
	close(self->memfd);
	self->memfd = -1;
	at = map_shared(self->dev, BYTES, PROT_READ, self->buf.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_TRUE(all_bytes(at, 0x33, BYTES));
	munmap(at, BYTES);
}

TEST_F(memfd, each_import_makes_a_separate_buffer)
{
	struct tensor_import import;

	ASSERT_EQ(0, buf_import(self->dev, self->memfd, &import));
	EXPECT_NE(info_of(self->dev, import.handle).ino, info_of(self->dev, self->buf.handle).ino);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
}

TEST_F(memfd, memfd_that_can_shrink_is_refused)
{
	int fd = make(BYTES, F_SEAL_GROW), plain = memfd_create("test", MFD_CLOEXEC);

	EXPECT_EQ(-EINVAL, import_errno(self->dev, fd));
	ASSERT_EQ(0, ftruncate(plain, BYTES));
	EXPECT_EQ(-EINVAL, import_errno(self->dev, plain));
	close(plain);
	plain = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	ASSERT_LE(0, plain);
	ASSERT_EQ(0, ftruncate(plain, BYTES));
	EXPECT_EQ(-EINVAL, import_errno(self->dev, plain));
	close(plain);
	close(fd);
}

TEST_F(memfd, invalid_sizes_are_refused)
{
	static const uint64_t bad[] = { 0, 1, PAGE - 1, PAGE + 1, (1ULL << 39) + PAGE };
	unsigned int i;
	int fd;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fd = make(bad[i], F_SEAL_SHRINK);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-EINVAL, import_errno(self->dev, fd)) TH_LOG("%u", i);
		close(fd);
	}
}

TEST_F(memfd, other_files_are_refused)
{
	int ends[2], huge, dir = open("/", O_RDONLY | O_CLOEXEC);

	ASSERT_EQ(0, pipe(ends));
	EXPECT_EQ(-EOPNOTSUPP, import_errno(self->dev, ends[0]));
	EXPECT_EQ(-EOPNOTSUPP, import_errno(self->dev, dir));
	EXPECT_EQ(-EOPNOTSUPP, import_errno(self->dev, self->dev));
	EXPECT_EQ(-EBADF, import_errno(self->dev, -1));
	EXPECT_EQ(-EBADF, import_errno(self->dev, 1000));
	huge = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (huge >= 0) {
		ASSERT_EQ(0, ftruncate(huge, HUGE));
		ASSERT_EQ(0, fcntl(huge, F_ADD_SEALS, F_SEAL_SHRINK));
		EXPECT_EQ(-EOPNOTSUPP, import_errno(self->dev, huge));
		close(huge);
	}
	close(dir);
	close(ends[0]);
	close(ends[1]);
}

TEST_F(memfd, memfd_opened_for_reading_is_read_only)
{
	struct tensor_import import;
	char path[64], *at;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->memfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	close(fd);
	EXPECT_EQ(TENSOR_STATE_RDONLY, info_of(self->dev, import.handle).state);
	EXPECT_EQ(-EACCES, map_errno(self->dev, PAGE, RW, MAP_SHARED, import.mmap_offset));
	at = map_shared(self->dev, PAGE, PROT_READ, import.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-1, mprotect(at, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(TENSOR_RIGHTS_RO, import.rights);
	EXPECT_EQ(-EACCES, buf_export_rights(self->dev, import.handle, TENSOR_RIGHTS_RW, 0));
	EXPECT_EQ(-EACCES, buf_export_rights(self->dev, import.handle, TENSOR_RIGHTS_RW, DMABUF));
	munmap(at, PAGE);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
}

TEST_F(memfd, memfd_sealed_against_writing_is_read_only)
{
	EXPECT_EQ(0, import_rdonly(self->dev, make(BYTES, F_SEAL_SHRINK | F_SEAL_GROW)));
	EXPECT_EQ(1, import_rdonly(self->dev, make(BYTES, F_SEAL_SHRINK | F_SEAL_WRITE)));
	EXPECT_EQ(1, import_rdonly(self->dev, make(BYTES, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE)));
}

TEST_F(memfd, seal_of_the_memfd_holds)
{
	int fd = make(BYTES, F_SEAL_SHRINK | F_SEAL_WRITE), i;
	struct tensor_import import;
	char *at;

	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	for (i = 0; i < 3; i++) {
		at = map_shared(self->dev, BYTES, PROT_READ, import.mmap_offset);
		ASSERT_NE(MAP_FAILED, at);
		EXPECT_EQ(-1, mprotect(at, PAGE, RW));
		/*
		 * the seal would have no effect here if the read-only mapping counted as a writer
		 */
		EXPECT_EQ(-EPERM, map_errno(fd, PAGE, RW, MAP_SHARED, 0));
		munmap(at, BYTES);
		EXPECT_EQ(-EPERM, map_errno(fd, PAGE, RW, MAP_SHARED, 0));
	}
	EXPECT_EQ(-1, pwrite(fd, "x", 1, 0));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	EXPECT_EQ(-EPERM, map_errno(fd, PAGE, RW, MAP_SHARED, 0));
	close(fd);
}

TEST_F(memfd, seal_of_the_memfd_waits_for_handles_that_write)
{
	munmap(self->at, BYTES);
	EXPECT_EQ(-1, fcntl(self->memfd, F_ADD_SEALS, F_SEAL_WRITE));
	EXPECT_EQ(EBUSY, errno);
	ASSERT_EQ(0, dev_close(self->dev, self->buf.handle));
	EXPECT_EQ(0, fcntl(self->memfd, F_ADD_SEALS, F_SEAL_WRITE));
}

TEST_F(memfd, later_future_write_seal_refuses_new_mappings)
{
	char *at = map_shared(self->dev, PAGE, RW, self->buf.mmap_offset), *ro;

	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, fcntl(self->memfd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	EXPECT_EQ(-EPERM, map_errno(self->dev, PAGE, RW, MAP_SHARED, self->buf.mmap_offset));
	ro = map_shared(self->dev, PAGE, PROT_READ, self->buf.mmap_offset);
	ASSERT_NE(MAP_FAILED, ro);
	EXPECT_EQ(-1, mprotect(ro, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	munmap(ro, PAGE);
	at[0] = 5;
	EXPECT_EQ(5, self->at[0]);
	munmap(at, PAGE);
}

TEST_F(memfd, part_reaches_nothing_else)
{
	int fd = buf_export_range(self->dev, self->buf.handle, 0, 2 * PAGE, 4 * PAGE);
	char *at = map_shared(fd, 4 * PAGE, RW, 0);

	ASSERT_NE(MAP_FAILED, at);
	at[PAGE] = 8;
	EXPECT_EQ(8, self->at[3 * PAGE]);
	EXPECT_EQ(MAP_FAILED, mremap(at, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-EINVAL, map_errno(fd, 5 * PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-EINVAL, map_errno(fd, PAGE, PROT_READ, MAP_SHARED, 4 * PAGE));
	EXPECT_EQ(-EINVAL, map_errno(fd, PAGE, RW, MAP_PRIVATE, 0));
	munmap(at, 4 * PAGE);
	close(fd);
}

TEST_F(memfd, seal_revoke_and_advise_are_refused)
{
	EXPECT_EQ(TENSOR_RIGHTS_RW, self->buf.rights);
	EXPECT_EQ(-EOPNOTSUPP, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(-EOPNOTSUPP, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(-EOPNOTSUPP, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(-EOPNOTSUPP, buf_advise(self->dev, self->buf.handle, TENSOR_ADVISE_PURGEABLE));
	EXPECT_EQ(-EOPNOTSUPP, buf_advise(self->dev, self->buf.handle, TENSOR_ADVISE_WILLNEED));
}

TEST_F(memfd, dma_buf_has_the_same_bytes)
{
	int fd = buf_export_range(self->dev, self->buf.handle, DMABUF, PAGE, 8 * PAGE);
	struct tensor_import import;
	char *at;

	ASSERT_LE(0, fd);
	EXPECT_EQ(8 * PAGE, lseek(fd, 0, SEEK_END));
	at = map_shared(fd, 8 * PAGE, RW, 0);
	ASSERT_NE(MAP_FAILED, at);
	at[0] = 6;
	EXPECT_EQ(6, self->at[PAGE]);
	EXPECT_EQ(1, info_of(self->dev, self->buf.handle).dmabufs);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(info_of(self->dev, self->buf.handle).ino, info_of(self->dev, import.handle).ino);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	munmap(at, 8 * PAGE);
	close(fd);
}

/* Pages are allocated when the device maps them: these were never touched. */
TEST_F(memfd, device_maps_it)
{
	int vgem = vgem_open(), fd, i, same;
	struct stat before, after;
	char *at;
	uint32_t gem;

	if (vgem < 0)
		SKIP(return, "no vgem");
	ASSERT_EQ(0, fstat(self->memfd, &before));
	EXPECT_EQ(0, before.st_blocks);
	fd = buf_export_range(self->dev, self->buf.handle, DMABUF, 3 * PAGE, 32 * PAGE);
	ASSERT_EQ(0, vgem_import(vgem, fd, &gem));
	close(fd);
	ASSERT_EQ(0, fstat(self->memfd, &after));
	if (vgem_maps()) {
		EXPECT_LE((blkcnt_t)(32 * PAGE / 512), after.st_blocks);
	} else {
		EXPECT_EQ(0, after.st_blocks);
	}
	EXPECT_EQ(1, info_of(self->dev, self->buf.handle).attachments);
	fd = vgem_export(vgem, gem, O_CLOEXEC | O_RDWR);
	at = map_shared(fd, 32 * PAGE, RW, 0);
	ASSERT_NE(MAP_FAILED, at);
	memset(self->at, 0x66, BYTES);
	EXPECT_TRUE(all_bytes(at, 0x66, 32 * PAGE));
	for (i = 0, same = 0; i < 32; i++)
		same += page_frame(at + i * PAGE) == page_frame(self->at + (3 + i) * PAGE);
	EXPECT_EQ(32, same);
	munmap(at, 32 * PAGE);
	close(fd);
	EXPECT_EQ(0, vgem_close(vgem, gem));
	close(vgem);
	EXPECT_TRUE(all_bytes(self->at, 0x66, BYTES));
}

TEST_F(memfd, read_only_memfd_is_refused_to_a_device_that_writes)
{
	int vgem = vgem_open(), memfd, fd;
	struct tensor_import import;
	uint32_t gem;

	if (vgem < 0)
		SKIP(return, "no vgem");
	if (!vgem_maps())
		SKIP(return, NO_DEVICE_MAPS);
	memfd = make(BYTES, F_SEAL_SHRINK | F_SEAL_WRITE);
	ASSERT_EQ(0, buf_import(self->dev, memfd, &import));
	fd = buf_export_rights(self->dev, import.handle, TENSOR_RIGHTS_RO, DMABUF);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EACCES, vgem_import(vgem, fd, &gem));
	close(fd);
	close(vgem);
	close(memfd);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
}

/* Such a file cannot be mapped for reading, which is the least right of a handle. */
TEST(memfd_that_can_only_be_written_to_is_refused)
{
	int fd = memfd_new(PAGE, 0), dev = dev_open(), wronly;
	struct tensor_import import;
	char path[64];

	ASSERT_LE(0, fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	wronly = open(path, O_WRONLY | O_CLOEXEC);
	ASSERT_LE(0, wronly);
	EXPECT_EQ(-EACCES, buf_import(dev, wronly, &import));
	EXPECT_EQ(0, buf_import(dev, fd, &import));
	close(wronly);
	close(fd);
	close(dev);
}

TEST_HARNESS_MAIN
