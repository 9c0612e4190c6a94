// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * IMPORT of fds that a hostile process passes: files of every kind, dma-bufs of parts and of memfds with holes, random
 * arguments, and mappings at offsets that no buffer has. A call that fails leaves nothing.
 */
#include <limits.h>
#include <linux/falloc.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define BYTES (8 * PAGE)
#define CALLS 20000
#define KINDS 24

FIXTURE(hostile)
{
	int dev;
	uint64_t used;
};

FIXTURE_SETUP(hostile)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
}

static int handles_of(int dev)
{
	char name[48], line[128];
	int n = -1;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", dev);
	f = fopen(name, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "tensor-handles: %d", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

FIXTURE_TEARDOWN(hostile)
{
	EXPECT_EQ(0, handles_of(self->dev));
	EXPECT_EQ(self->used, dev_used(self->dev));
	close(self->dev);
}

/* A udmabuf of a part of a memfd: the fd or -errno. */
static int udmabuf_part(int memfd, uint64_t offset, uint64_t bytes)
{
	struct udmabuf_create create = {
		.memfd = memfd, .flags = UDMABUF_FLAGS_CLOEXEC, .offset = offset, .size = bytes
	};
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;

	if (dev < 0)
		return -ENODEV;
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	fd = fd < 0 ? -errno : fd;
	close(dev);
	return fd;
}

/* Files that are no buffers; those that the kernel does not have are left out. Returns their number. */
static int open_others(int *fds)
{
	static const char *const names[] = {
		"/",
		"/dev/null",
		"/dev/zero",
		"/proc/self/mem",
		"/dev/udmabuf",
		"/proc/self/maps",
		"/dev/dma_heap/system",
		"/dev/tensor",
	};
	sigset_t signals;
	int n = 0, ends[2];
	size_t i;

	sigemptyset(&signals);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		fds[n++] = open(names[i], O_RDONLY | O_CLOEXEC);
	fds[n++] = eventfd(0, EFD_CLOEXEC);
	fds[n++] = epoll_create1(EPOLL_CLOEXEC);
	fds[n++] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	fds[n++] = signalfd(-1, &signals, SFD_CLOEXEC);
	fds[n++] = inotify_init1(IN_CLOEXEC);
	fds[n++] = syscall(SYS_pidfd_open, getpid(), 0);
	fds[n++] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* a file on tmpfs has the pages of a memfd, and no seals */
	fds[n] = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fds[n] >= 0 && ftruncate(fds[n], BYTES))
		close(fds[n]);
	n++;
	if (!pipe2(ends, O_CLOEXEC)) {
		fds[n++] = ends[0];
		fds[n++] = ends[1];
	}
	return n;
}

static bool is_refusal(int err)
{
	return err == -EOPNOTSUPP || err == -EINVAL || err == -EBADF || err == -E2BIG;
}

TEST_F(hostile, files_of_other_kinds_are_refused)
{
	int fds[KINDS], n = open_others(fds), memfd = memfd_new(BYTES, 0), path, i;
	struct tensor_import import;
	char name[48];

	for (i = 0; i < n; i++) {
		EXPECT_TRUE(is_refusal(buf_import(self->dev, fds[i], &import))) TH_LOG("%d", i);
		if (fds[i] >= 0)
			close(fds[i]);
	}
	/* a path is no open file */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", memfd);
	path = open(name, O_PATH | O_CLOEXEC);
	ASSERT_LE(0, path);
	EXPECT_EQ(-EBADF, buf_import(self->dev, path, &import));
	EXPECT_EQ(-EBADF, buf_import(self->dev, INT_MIN, &import));
	EXPECT_EQ(-EBADF, buf_import(self->dev, INT_MAX, &import));
	EXPECT_EQ(-EBADF, buf_import(self->dev, -1, &import));
	close(path);
	close(memfd);
}

TEST_F(hostile, dma_buf_of_a_part_reaches_nothing_else)
{
	int memfd = memfd_new(BYTES, 0), fd;
	char *all = map_shared(memfd, BYTES, RW, 0), *at;
	struct tensor_import import;

	ASSERT_NE(MAP_FAILED, all);
	memset(all, 1, BYTES);
	memset(all + 2 * PAGE, 2, 3 * PAGE);
	fd = udmabuf_part(memfd, 2 * PAGE, 3 * PAGE);
	if (fd == -ENODEV)
		SKIP(return, "no udmabuf");
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(3 * PAGE, import.bytes);
	at = map_shared(self->dev, 3 * PAGE, RW, import.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_TRUE(all_bytes(at, 2, 3 * PAGE));
	EXPECT_EQ(-EINVAL, map_errno(self->dev, 4 * PAGE, RW, MAP_SHARED, import.mmap_offset));
	EXPECT_EQ(-EINVAL,
		  map_errno(self->dev, 3 * PAGE, RW, MAP_SHARED, import.mmap_offset + PAGE));
	EXPECT_EQ(-EINVAL,
		  map_errno(self->dev, PAGE, RW, MAP_SHARED, import.mmap_offset + 3 * PAGE));
	/* the mapping cannot be moved to other pages of the dma-buf */
	EXPECT_NE(0, syscall(SYS_remap_file_pages, at, PAGE, 0, 7, 0));
	EXPECT_EQ(MAP_FAILED, mremap(at, 3 * PAGE, 4 * PAGE, MREMAP_MAYMOVE));
	munmap(at, 3 * PAGE);
	munmap(all, BYTES);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	close(fd);
	close(memfd);
}

TEST_F(hostile, ranges_beyond_the_memfd_make_no_dma_buf)
{
	static const uint64_t wrong[][2] = {
		{ BYTES, PAGE },
		{ 0, BYTES + PAGE },
		{ 1, PAGE },
		{ PAGE, PAGE / 2 },
		{ 0, 0 },
		{ -PAGE, PAGE },
		{ -PAGE, 2 * PAGE },
		{ 1ULL << 63, PAGE },
		{ (1ULL << 63) - PAGE, PAGE },
		{ PAGE, (1ULL << 63) - PAGE },
		{ PAGE, -PAGE },
	};
	int memfd = memfd_new(BYTES, 0), fd;
	size_t i;

	if (udmabuf_part(memfd, BYTES, PAGE) == -ENODEV)
		SKIP(return, "no udmabuf");
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct tensor_import import;

		fd = udmabuf_part(memfd, wrong[i][0], wrong[i][1]);
		/* a driver that permits one must not make the module map it */
		if (fd < 0)
			continue;
		TH_LOG("udmabuf made %llx, %llx", (unsigned long long)wrong[i][0],
		       (unsigned long long)wrong[i][1]);
		EXPECT_TRUE(is_refusal(buf_import(self->dev, fd, &import)));
		close(fd);
	}
	close(memfd);
}

TEST_F(hostile, holes_in_the_memfd_behind_it_do_no_harm)
{
	int memfd = memfd_new(BYTES, 0), fd = udmabuf_part(memfd, 0, BYTES), i;
	struct tensor_import import;
	char *at;

	if (fd == -ENODEV)
		SKIP(return, "no udmabuf");
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	at = map_shared(self->dev, BYTES, RW, import.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	memset(at, 3, BYTES);
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, i * PAGE,
				       PAGE));
		EXPECT_EQ(0, touch_signal(at + i * PAGE));
		at[i * PAGE] = i;
	}
	EXPECT_EQ(0, buf_sync(self->dev, import.handle, TENSOR_SYNC_READ | TENSOR_SYNC_WRITE, 0));
	munmap(at, BYTES);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	close(fd);
	close(memfd);
}

/* ---- random calls ---- */

static uint64_t state = 88172645463325252;

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* Small numbers, powers of two, and their neighbours. */
static uint64_t any_number(void)
{
	switch (any() % 4) {
	case 0:
		return any() % 64;
	case 1:
		return (1ULL << any() % 64) + any() % 3 - 1;
	case 2:
		return -(any() % 64);
	default:
		return any();
	}
}

/* A dma-buf of vgem, which lives without the device: the fd or -errno. */
static int vgem_of(uint64_t bytes)
{
	int vgem = vgem_open(), fd;
	uint32_t gem;

	if (vgem < 0)
		return vgem;
	fd = vgem_create(vgem, bytes, &gem);
	if (!fd)
		fd = vgem_export(vgem, gem, O_RDWR | O_CLOEXEC);
	close(vgem);
	return fd;
}

/* All kinds that can be imported, then others. */
static int open_all(int dev, int *fds, struct tensor_alloc *own)
{
	int memfd = memfd_new(BYTES, 0), n = 0;

	if (dev_alloc(dev, BYTES, own))
		return 0;
	fds[n++] = buf_export(dev, own->handle, 0);
	fds[n++] = buf_export_dmabuf(dev, own->handle);
	fds[n++] = buf_export_ro(dev, own->handle);
	fds[n++] = udmabuf_part(memfd, PAGE, 2 * PAGE);
	fds[n++] = heap_of(BYTES);
	fds[n++] = vgem_of(BYTES);
	fds[n++] = memfd;
	return n + open_others(fds + n);
}

TEST_F_TIMEOUT(hostile, random_arguments_leave_nothing, 300)
{
	int fds[KINDS + 8], n, i, imported = 0;
	struct tensor_alloc own;

	n = open_all(self->dev, fds, &own);
	ASSERT_LT(0, n);
	for (i = 0; i < CALLS; i++) {
		struct tensor_import arg = { .size = sizeof(arg), .fd = fds[any() % n] };
		int err;

		if (any() % 8 == 0)
			arg.size = any_number();
		if (any() % 8 == 0)
			arg.flags = any_number();
		if (any() % 8 == 0)
			arg.__reserved = any_number();
		if (any() % 8 == 0)
			arg.fd = any_number();
		/* the number of another process's file is no file of this one */
		if (arg.fd == self->dev)
			continue;
		err = dev_call(self->dev, TENSOR_IOC_IMPORT, &arg);
		if (err) {
			ASSERT_TRUE(is_refusal(err) || err == -EFAULT) TH_LOG("error %d", err);
			continue;
		}
		imported++;
		if (any() % 4 == 0)
			map_errno(self->dev, any_number() * PAGE, any() % 8,
				  any() % 2 ? MAP_SHARED : MAP_PRIVATE,
				  arg.mmap_offset + any_number() * PAGE);
		ASSERT_EQ(0, dev_close(self->dev, arg.handle));
	}
	EXPECT_LT(CALLS / 50, imported);
	for (i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	EXPECT_EQ(0, dev_close(self->dev, own.handle));
}

/* A mapping exists only where it lies within the buffer. */
TEST_F_TIMEOUT(hostile, mappings_lie_within_the_buffer, 300)
{
	int fd = udmabuf_new(BYTES), i;
	struct tensor_import import;

	if (fd == -ENODEV)
		fd = vgem_of(BYTES);
	if (fd == -ENODEV)
		fd = memfd_new(BYTES, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	for (i = 0; i < CALLS / 4; i++) {
		uint64_t first = any() % 2 ? any() % 10 : any_number() >> 12;
		uint64_t pages = 1 + any() % 10;
		int err = map_errno(self->dev, pages * PAGE, PROT_READ, MAP_SHARED,
				    import.mmap_offset + first * PAGE);

		ASSERT_EQ(first < 8 && pages <= 8 - first, !err)
		TH_LOG("page %llx of %llu", (unsigned long long)first, (unsigned long long)pages);
	}
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	close(fd);
}

TEST_HARNESS_MAIN
