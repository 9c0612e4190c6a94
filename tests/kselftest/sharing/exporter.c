// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * IMPORT of dma-bufs that no driver of the guest makes: without mmap(), as those of many GPUs, of any size, and with memory
 * that the exporter takes back. Their exporter is a module for tests, kmod/import/test_exporter.c; skipped without it.
 */
#include <sys/syscall.h>

#include "../../../kmod/import/test_exporter.h"
#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define BYTES (16 * PAGE)

FIXTURE(exporter)
{
	int exporter;
	int dev;
	uint64_t used;
};

static int load_exporter(void)
{
	int fd = open("/modules/tensor_export_test.ko", O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -ENODEV;
	err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return err;
}

/* The last file may be released after close() has returned. */
static int unload_exporter(void)
{
	int i;

	for (i = 0; i < 100; i++) {
		if (!syscall(SYS_delete_module, "tensor_export_test", O_NONBLOCK))
			return 0;
		usleep(20000);
	}
	return -errno;
}

FIXTURE_SETUP(exporter)
{
	int err = load_exporter();

	if (err == -ENODEV)
		SKIP_SETUP("the module of the exporter was not built for this kernel");
	ASSERT_EQ(0, err);
	self->exporter = open("/dev/tensor_test_exporter", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->exporter);
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
}

FIXTURE_TEARDOWN(exporter)
{
	EXPECT_EQ(self->used, dev_used(self->dev));
	close(self->dev);
	close(self->exporter);
	EXPECT_EQ(0, unload_exporter());
}

static int export_of(int exporter, unsigned long kind, uint64_t bytes)
{
	int fd = ioctl(exporter, kind, bytes);

	return fd < 0 ? -errno : fd;
}

TEST_F(exporter, memory_without_mmap_is_a_buffer_for_devices)
{
	struct stat theirs, ours;
	struct tensor_import import, other;
	int fd = export_of(self->exporter, EXPORTER_NO_MMAP, BYTES), buf, back, vgem;
	uint32_t gem;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fstat(fd, &theirs));
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	close(fd);
	EXPECT_EQ(BYTES, import.bytes);
	EXPECT_EQ(TENSOR_KIND_DMABUF, info_of(self->dev, import.handle).kind);
	EXPECT_EQ(-EOPNOTSUPP, map_errno(self->dev, PAGE, RW, MAP_SHARED, import.mmap_offset));
	EXPECT_EQ(-EOPNOTSUPP,
		  map_errno(self->dev, BYTES, PROT_READ, MAP_SHARED, import.mmap_offset));
	/* it goes to another client, which gets the exporter's dma-buf for a device */
	buf = buf_export(self->dev, import.handle, 0);
	ASSERT_LE(0, buf);
	EXPECT_EQ(-EOPNOTSUPP, map_errno(buf, PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	ASSERT_EQ(0, buf_import(self->dev, buf, &other));
	close(buf);
	EXPECT_EQ(0, buf_sync(self->dev, other.handle, TENSOR_SYNC_READ, 0));
	EXPECT_EQ(0, buf_sync(self->dev, other.handle, TENSOR_SYNC_READ | TENSOR_SYNC_END, 0));
	back = buf_export_dmabuf(self->dev, other.handle);
	ASSERT_LE(0, back);
	EXPECT_EQ(0, dev_close(self->dev, other.handle));
	ASSERT_EQ(0, fstat(back, &ours));
	EXPECT_EQ(theirs.st_ino, ours.st_ino);
	vgem = vgem_open();
	if (vgem >= 0) {
		EXPECT_EQ(0, vgem_import(vgem, back, &gem));
		EXPECT_EQ(0, vgem_close(vgem, gem));
		close(vgem);
	}
	close(back);
}

TEST_F(exporter, error_of_its_mmap_is_returned)
{
	struct tensor_import import;
	int fd = export_of(self->exporter, EXPORTER_MMAP_FAILS, BYTES), i;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	for (i = 0; i < 100; i++)
		EXPECT_EQ(-ENXIO, map_errno(self->dev, BYTES, RW, MAP_SHARED, import.mmap_offset));
	EXPECT_EQ(1, info_of(self->dev, import.handle).refs);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	close(fd);
}

TEST_F(exporter, error_of_its_access_is_returned)
{
	struct tensor_import import;
	int fd = export_of(self->exporter, EXPORTER_NO_ACCESS, BYTES);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(-EIO, buf_sync(self->dev, import.handle, TENSOR_SYNC_READ, 0));
	EXPECT_EQ(0, info_of(self->dev, import.handle).generation);
	close(fd);
}

TEST_F(exporter, sizes_are_checked)
{
	static const uint64_t wrong[] = {
		1,	    PAGE - 1,
		PAGE + 1,   (1ULL << 39) + PAGE,
		1ULL << 40, (1ULL << 63) - PAGE,
		1ULL << 63, (1ULL << 63) + PAGE,
		-PAGE,	    (1ULL << 32) + PAGE / 2,
		~0ULL,
	};
	struct tensor_import import;
	size_t i;
	int fd;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		fd = export_of(self->exporter, EXPORTER_PLAIN, wrong[i]);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-EINVAL, buf_import(self->dev, fd, &import))
		TH_LOG("size 0x%llx", (unsigned long long)wrong[i]);
		close(fd);
	}
	/* the largest buffer, all of which no process can map */
	fd = export_of(self->exporter, EXPORTER_NO_MMAP, 1ULL << 39);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(1ULL << 39, import.bytes);
	EXPECT_EQ(-EINVAL, map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED,
				     import.mmap_offset + (1ULL << 39)));
	close(fd);
}

TEST_F(exporter, memory_that_was_taken_back_faults)
{
	struct tensor_import import;
	int fd = export_of(self->exporter, EXPORTER_PLAIN, BYTES), i;
	char *at, *later;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	at = map_shared(self->dev, BYTES, RW, import.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	memset(at, 0x23, BYTES);
	EXPECT_EQ(0, touch_signal(at + PAGE));
	ASSERT_EQ(0, ioctl(self->exporter, EXPORTER_REVOKE, fd));
	EXPECT_EQ(SIGBUS, touch_signal(at));
	EXPECT_EQ(SIGBUS, touch_signal(at + BYTES - 1));
	later = map_shared(self->dev, BYTES, PROT_READ, import.mmap_offset);
	ASSERT_NE(MAP_FAILED, later);
	EXPECT_EQ(SIGBUS, touch_signal(later));
	/* the buffer itself can be passed on and released as before */
	i = buf_export(self->dev, import.handle, 0);
	EXPECT_LE(0, i);
	close(i);
	munmap(at, BYTES);
	munmap(later, BYTES);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	close(fd);
}

/* The exporter ends while its memory is mapped through this module by a process that is killed. */
TEST_F(exporter, kill_of_a_process_that_maps_it_leaves_nothing)
{
	struct tensor_import import;
	int fd = export_of(self->exporter, EXPORTER_PLAIN, BYTES), ready[2], status, i;
	pid_t pid;
	char *at;

	ASSERT_LE(0, fd);
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, pipe(ready));
		pid = fork();
		if (!pid) {
			int dev = dev_open();

			at = MAP_FAILED;
			if (!buf_import(dev, fd, &import))
				at = map_shared(dev, BYTES, RW, import.mmap_offset);
			if (at == MAP_FAILED || write(ready[1], "", 1) != 1)
				_exit(1);
			for (;;)
				memset(at, i, BYTES);
		}
		close(ready[1]);
		EXPECT_EQ(1, read(ready[0], &status, 1));
		close(ready[0]);
		usleep(i * 100);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(SIGKILL, WTERMSIG(status));
	}
	close(fd);
}

TEST_HARNESS_MAIN
