// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A buffer outlives the open device that made it, whatever object holds it.
 *
 * The superblock and the mount that a buffer's inode lives on must live as long as the inode does.
 * While no device and no file of a buffer is open, the module may release its mount and create
 * another one for the next open: each test ends the life of one mount while something of it is
 * still held.
 */
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>

#include "../include/klog.h"
#include "kselftest_harness.h"

#define BYTES (16 * PAGE)
#define RW    (PROT_READ | PROT_WRITE)
#define FILL  0x5a

FIXTURE(outlive)
{
	int log;
	uint64_t used;
	struct tensor_info born;
};

/* Uses a device that is closed again at once. */
static uint64_t used_now(void)
{
	int dev = dev_open();
	uint64_t used = dev_used(dev);

	close(dev);
	return used;
}

FIXTURE_SETUP(outlive)
{
	self->log = klog_begin();
	ASSERT_LE(0, self->log);
	self->used = used_now();
	/* see reuse_superblock() */
	if (!unshare(CLONE_NEWNS))
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

FIXTURE_TEARDOWN(outlive)
{
	int dev = dev_open();

	EXPECT_TRUE(used_becomes(dev, self->used));
	close(dev);
	sleep_ms(100);
	EXPECT_TRUE(klog_clean(self->log));
	close(self->log);
}

/*
 * A superblock is freed by a work item after an RCU grace period. Mounting new ones then reuses the
 * memory, so that a stale pointer to it is detected without KASAN, too: the device number differs.
 */
static void reuse_superblock(void)
{
	int i;

	sleep_ms(150);
	for (i = 0; i < 16; i++)
		mount("other", "/mnt", "tmpfs", 0, "size=4k");
}

/* A filled buffer of a device that is closed again: its fd. */
static int buf_of_closed_device(FIXTURE_DATA(outlive) * self, unsigned int share)
{
	struct tensor_alloc alloc;
	int dev = dev_open(), fd;
	char *at;

	if (dev_alloc(dev, BYTES, &alloc))
		return -ENOMEM;
	at = map_shared(dev, BYTES, RW, alloc.mmap_offset);
	memset(at, FILL, BYTES);
	munmap(at, BYTES);
	fd = share & SHARE_RO ? buf_share(dev, alloc.handle, share) :
				buf_export(dev, alloc.handle, share ? TENSOR_EXPORT_DMABUF : 0);
	if (buf_info(dev, alloc.handle, &self->born))
		return -EIO;
	close(dev);
	reuse_superblock();
	return fd;
}

/* A second device whose handle alone holds the buffer, because the fd is closed. */
static int import_and_close_fd(int fd, struct tensor_import *import)
{
	int dev = dev_open();
	int err = buf_import(dev, fd, import);

	close(fd);
	reuse_superblock();
	if (!err)
		return dev;
	close(dev);
	return err;
}

/* Whether neither its identity nor its memory changed. */
static bool intact(FIXTURE_DATA(outlive) * self, int dev, const struct tensor_import *import)
{
	struct tensor_info info;
	char *at;
	bool same;

	if (buf_info(dev, import->handle, &info) || info.dev != self->born.dev ||
	    info.ino != self->born.ino || info.bytes != BYTES)
		return false;
	at = map_shared(dev, BYTES, PROT_READ, import->mmap_offset);
	if (at == MAP_FAILED)
		return false;
	same = all_bytes(at, FILL, BYTES);
	munmap(at, BYTES);
	return same;
}

TEST_F(outlive, handle_outlives_the_mount_of_its_maker)
{
	struct tensor_import import;
	struct tensor_info info;
	int dev = import_and_close_fd(buf_of_closed_device(self, 0), &import);

	ASSERT_LE(0, dev);
	ASSERT_EQ(0, buf_info(dev, import.handle, &info));
	EXPECT_EQ(self->born.dev, info.dev);
	EXPECT_EQ(self->born.ino, info.ino);
	EXPECT_EQ(1, info.refs);
	close(dev);
}

TEST_F(outlive, handle_can_be_exported_after_the_mount_of_its_maker)
{
	struct tensor_import import;
	struct stat st;
	int dev = import_and_close_fd(buf_of_closed_device(self, 0), &import), fd;

	ASSERT_LE(0, dev);
	fd = buf_export_rw(dev, import.handle);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(self->born.ino, st.st_ino);
	EXPECT_EQ(self->born.dev, st.st_dev);
	EXPECT_EQ(0, map_errno(fd, BYTES, RW, MAP_SHARED, 0));
	close(dev);
	reuse_superblock();
	EXPECT_EQ(0, map_errno(fd, BYTES, RW, MAP_SHARED, 0));
	close(fd);
}

TEST_F(outlive, handle_can_be_mapped_after_the_mount_of_its_maker)
{
	struct tensor_import import;
	int dev = import_and_close_fd(buf_of_closed_device(self, 0), &import);
	char *at;

	ASSERT_LE(0, dev);
	at = map_shared(dev, BYTES, RW, import.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_TRUE(all_bytes(at, FILL, BYTES));
	memset(at, 1, BYTES);
	munmap(at, BYTES);
	reuse_superblock();
	EXPECT_EQ(0, dev_close(dev, import.handle));
	close(dev);
}

TEST_F(outlive, handle_gives_a_dma_buf_after_the_mount_of_its_maker)
{
	struct tensor_import import, again;
	int dev = import_and_close_fd(buf_of_closed_device(self, 0), &import), fd;

	ASSERT_LE(0, dev);
	fd = buf_export_dmabuf(dev, import.handle);
	ASSERT_LE(0, fd);
	close(dev);
	reuse_superblock();
	EXPECT_EQ(0, map_errno(fd, BYTES, RW, MAP_SHARED, 0));
	dev = import_and_close_fd(fd, &again);
	ASSERT_LE(0, dev);
	EXPECT_TRUE(intact(self, dev, &again));
	close(dev);
}

TEST_F(outlive, handle_has_its_descriptor_after_the_mount_of_its_maker)
{
	struct tensor_desc desc = { .bits = 8,
				    .dtype = TAG_U8,
				    .ndim = 1,
				    .sizes = { 7 },
				    .strides = { 1 },
				    .label = "kept" },
			   seen;
	struct tensor_import import;
	int dev = import_and_close_fd(buf_of_closed_device(self, 0), &import);

	ASSERT_LE(0, dev);
	EXPECT_EQ(0, buf_meta(dev, import.handle, TENSOR_META_SET, &desc));
	EXPECT_EQ(0, buf_meta(dev, import.handle, 0, &seen));
	EXPECT_STREQ("kept", seen.label);
	close(dev);
}

TEST_F(outlive, handle_is_sealed_and_revoked_after_the_mount_of_its_maker)
{
	struct tensor_import import;
	int dev = import_and_close_fd(buf_of_closed_device(self, 0), &import);

	ASSERT_LE(0, dev);
	EXPECT_EQ(0, buf_sync(dev, import.handle, TENSOR_SYNC_READ | TENSOR_SYNC_WRITE, 0));
	EXPECT_EQ(TENSOR_SEAL_WRITE, buf_seal(dev, import.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(0, buf_revoke(dev, import.handle));
	EXPECT_EQ(-EIDRM, map_errno(dev, BYTES, PROT_READ, MAP_SHARED, import.mmap_offset));
	close(dev);
}

TEST_F(outlive, close_of_a_handle_after_the_mount_of_its_maker)
{
	struct tensor_import import;
	int dev = import_and_close_fd(buf_of_closed_device(self, 0), &import);

	ASSERT_LE(0, dev);
	EXPECT_EQ(self->used + BYTES, dev_used(dev));
	EXPECT_EQ(0, dev_close(dev, import.handle));
	EXPECT_EQ(self->used, dev_used(dev));
	close(dev);
}

/* Child: holds the buffer by a handle alone until it may exit. */
static void hold(int fd, int sock)
{
	struct tensor_import import;
	char byte = 'h';

	if (import_and_close_fd(fd, &import) < 0 || write(sock, &byte, 1) != 1)
		_exit(1);
	_exit(read(sock, &byte, 1) == 1 ? 0 : 2);
}

static void end_of_a_holder(struct __test_metadata *_metadata, FIXTURE_DATA(outlive) * self,
			    bool killed)
{
	int fd = buf_of_closed_device(self, 0), sock[2];
	pid_t pid;
	char byte;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	if (!pid)
		hold(fd, sock[1]);
	close(fd);
	close(sock[1]);
	ASSERT_EQ(1, read(sock[0], &byte, 1));
	if (killed)
		kill(pid, SIGKILL);
	else
		ASSERT_EQ(1, write(sock[0], &byte, 1));
	EXPECT_EQ(killed ? -SIGKILL : 0, reap(pid));
	close(sock[0]);
}

TEST_F(outlive, exit_of_a_holder_after_the_mount_of_its_maker)
{
	end_of_a_holder(_metadata, self, false);
}

TEST_F(outlive, kill_of_a_holder_after_the_mount_of_its_maker)
{
	end_of_a_holder(_metadata, self, true);
}

/* Child: makes a buffer, sends it and exits. */
static void sender(FIXTURE_DATA(outlive) * self, int sock, unsigned int share)
{
	int fd = buf_of_closed_device(self, share);

	if (write(sock, &self->born, sizeof(self->born)) != sizeof(self->born))
		_exit(1);
	_exit(send_fd(sock, fd) ? 1 : 0);
}

static void sent_by_another(struct __test_metadata *_metadata, FIXTURE_DATA(outlive) * self,
			    unsigned int share)
{
	struct tensor_import import;
	int sock[2], dev;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = fork();
	if (!pid)
		sender(self, sock[1], share);
	EXPECT_EQ(0, reap(pid));
	/* only the message holds the buffer now */
	ASSERT_EQ(sizeof(self->born), read(sock[0], &self->born, sizeof(self->born)));
	dev = import_and_close_fd(recv_fd(sock[0]), &import);
	close(sock[0]);
	close(sock[1]);
	ASSERT_LE(0, dev);
	EXPECT_TRUE(intact(self, dev, &import));
	close(dev);
}

TEST_F(outlive, buffer_fd_from_a_process_that_ended)
{
	sent_by_another(_metadata, self, 0);
}

TEST_F(outlive, read_only_fd_from_a_process_that_ended)
{
	sent_by_another(_metadata, self, SHARE_RO);
}

TEST_F(outlive, dma_buf_fd_from_a_process_that_ended)
{
	sent_by_another(_metadata, self, SHARE_DMABUF);
}

TEST_F(outlive, dma_buf_alone_outlives_the_mount_of_its_maker)
{
	struct tensor_import import;
	int dev = import_and_close_fd(buf_of_closed_device(self, SHARE_DMABUF), &import);

	ASSERT_LE(0, dev);
	EXPECT_TRUE(intact(self, dev, &import));
	EXPECT_EQ(0, dev_close(dev, import.handle));
	close(dev);
}

TEST_F(outlive, mapping_alone_outlives_every_device)
{
	struct tensor_import import;
	int dev = import_and_close_fd(buf_of_closed_device(self, 0), &import), other;
	char *at;

	ASSERT_LE(0, dev);
	at = map_shared(dev, BYTES, RW, import.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	close(dev);
	reuse_superblock();
	/* first access through this mapping */
	EXPECT_TRUE(all_bytes(at, FILL, BYTES));
	other = dev_open();
	EXPECT_EQ(self->used + BYTES, dev_used(other));
	munmap(at, BYTES);
	EXPECT_TRUE(used_becomes(other, self->used));
	close(other);
}

TEST_F(outlive, two_buffers_of_two_mounts_in_one_device)
{
	int first = buf_of_closed_device(self, 0), second, dev;
	struct tensor_import a, b;
	struct tensor_info born = self->born;
	struct tensor_alloc own;

	/* the device is closed in between, so each buffer is made on a mount of its own */
	second = buf_of_closed_device(self, 0);
	ASSERT_LE(0, first);
	ASSERT_LE(0, second);
	dev = import_and_close_fd(first, &a);
	ASSERT_LE(0, dev);
	ASSERT_EQ(0, buf_import(dev, second, &b));
	close(second);
	ASSERT_EQ(0, dev_alloc(dev, BYTES, &own));
	reuse_superblock();
	EXPECT_TRUE(intact(self, dev, &b));
	self->born = born;
	EXPECT_TRUE(intact(self, dev, &a));
	EXPECT_EQ(0, dev_close(dev, a.handle));
	EXPECT_EQ(0, dev_close(dev, own.handle));
	EXPECT_EQ(0, dev_close(dev, b.handle));
	close(dev);
}

TEST_F(outlive, handle_of_the_third_device_in_a_row)
{
	int fd = buf_of_closed_device(self, 0), dev, round;
	struct tensor_import import;

	for (round = 0; round < 3; round++) {
		dev = import_and_close_fd(fd, &import);
		ASSERT_LE(0, dev);
		EXPECT_TRUE(intact(self, dev, &import));
		fd = buf_export_rw(dev, import.handle);
		ASSERT_LE(0, fd);
		close(dev);
		reuse_superblock();
	}
	close(fd);
}

/* poll() of the device and its list of events work after the mount of the maker was released. */
TEST_F(outlive, events_after_the_mount_of_its_maker)
{
	int fd = buf_of_closed_device(self, 0), other;
	struct tensor_import import, theirs;
	struct tensor_event event = { 0 };
	int dev = dev_open();

	ASSERT_EQ(0, buf_import(dev, fd, &import));
	other = import_and_close_fd(fd, &theirs);
	ASSERT_LE(0, other);
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(other, theirs.handle, TENSOR_SEAL_META));
	ASSERT_EQ((ssize_t)sizeof(event), read(dev, &event, sizeof(event)));
	EXPECT_EQ(import.handle, event.handle);
	close(other);
	reuse_superblock();
	EXPECT_TRUE(intact(self, dev, &import));
	close(dev);
}

TEST_F(outlive, memfd_buffer_outlives_the_mount_of_its_maker)
{
	int memfd = memfd_new(BYTES, 0), dev = dev_open(), fd;
	struct tensor_import import;
	char *at;

	ASSERT_LE(0, memfd);
	at = map_shared(memfd, BYTES, RW, 0);
	memset(at, FILL, BYTES);
	munmap(at, BYTES);
	ASSERT_EQ(0, buf_import(dev, memfd, &import));
	close(memfd);
	ASSERT_EQ(0, buf_info(dev, import.handle, &self->born));
	fd = buf_export_rw(dev, import.handle);
	close(dev);
	reuse_superblock();
	dev = import_and_close_fd(fd, &import);
	ASSERT_LE(0, dev);
	EXPECT_TRUE(intact(self, dev, &import));
	close(dev);
}

TEST_F(outlive, pinned_buffer_outlives_the_mount_of_its_maker)
{
	char *at = mmap(NULL, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tensor_import import;
	struct tensor_info info;
	int dev = dev_open(), fd;
	int64_t handle = buf_pin(dev, at, BYTES, 0);

	ASSERT_LT(0, handle);
	fd = buf_export_rw(dev, handle);
	ASSERT_LE(0, fd);
	close(dev);
	reuse_superblock();
	dev = import_and_close_fd(fd, &import);
	ASSERT_LE(0, dev);
	ASSERT_EQ(0, buf_info(dev, import.handle, &info));
	EXPECT_EQ(TENSOR_KIND_PIN, info.kind);
	EXPECT_EQ(0, dev_close(dev, import.handle));
	close(dev);
	munmap(at, BYTES);
}

TEST_HARNESS_MAIN
