// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sharing between processes: the same page frames in both processes, whichever is killed, and
 * nothing leaks when the last one ends.
 */
#include "../include/device.h"
#include "kselftest_harness.h"

#define BYTES (4 * HUGE)

FIXTURE(share)
{
	int dev;
	int sock[2];
	uint64_t used;
};

FIXTURE_SETUP(share)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, self->sock));
}

FIXTURE_TEARDOWN(share)
{
	close(self->sock[0]);
	close(self->sock[1]);
	EXPECT_TRUE(used_becomes(self->dev, self->used));
	close(self->dev);
}

struct frames {
	uint64_t frame[8];
	uint64_t word[8];
};

static void look(const char *at, struct frames *seen)
{
	int i;

	for (i = 0; i < 8; i++) {
		const char *page = at + i * (BYTES / 8) + i * 3 * PAGE;

		memcpy(&seen->word[i], page, sizeof(seen->word[i]));
		seen->frame[i] = page_frame(page);
	}
}

/* Child: maps the fd that it receives, reports what it reads, then waits. */
static void peer(int sock, int prot)
{
	struct frames seen;
	int fd = recv_fd(sock);
	char *at, byte;

	if (fd < 0)
		_exit(1);
	at = map_shared(fd, BYTES, prot, 0);
	close(fd);
	if (at == MAP_FAILED)
		_exit(2);
	look(at, &seen);
	if (write(sock, &seen, sizeof(seen)) != sizeof(seen))
		_exit(3);
	if (read(sock, &byte, 1) == 1 && (prot & PROT_WRITE))
		at[BYTES - 1] = byte;
	_exit(at[1] == 1 ? 0 : 4);
}

TEST_F(share, peer_sees_the_same_page_frames)
{
	struct frames ours, theirs;
	struct tensor_alloc alloc;
	char *at;
	pid_t pid;
	int fd, i;

	pid = fork();
	if (!pid)
		peer(self->sock[1], PROT_READ | PROT_WRITE);
	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
	at = map_shared(self->dev, BYTES, PROT_READ | PROT_WRITE, alloc.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	for (i = 0; i < 8; i++)
		*(uint64_t *)(at + i * (BYTES / 8) + i * 3 * PAGE) = 0x101 + ((uint64_t)i << 32);
	fd = buf_export(self->dev, alloc.handle, 0);
	ASSERT_EQ(0, send_fd(self->sock[0], fd));
	close(fd);
	ASSERT_EQ(sizeof(theirs), read(self->sock[0], &theirs, sizeof(theirs)));
	look(at, &ours);
	EXPECT_EQ(0, memcmp(&ours, &theirs, sizeof(ours)));
	for (i = 0; i < 8; i++)
		EXPECT_NE(0, ours.frame[i]);
	ASSERT_EQ(1, write(self->sock[0], "x", 1));
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ('x', at[BYTES - 1]);
	munmap(at, BYTES);
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

/* Child: sends a buffer fd and then sleeps until it is killed. */
static void owner(int sock, uint32_t rights)
{
	struct tensor_alloc alloc;
	int dev = dev_open();
	char *at;

	if (dev_alloc(dev, BYTES, &alloc))
		_exit(1);
	at = map_shared(dev, BYTES, PROT_READ | PROT_WRITE, alloc.mmap_offset);
	memset(at, 0x5a, BYTES);
	send_fd(sock, buf_export_rights(dev, alloc.handle, rights, 0));
	for (;;)
		pause();
}

/* Starts such a child and receives the fd of its buffer: the fd, or -errno. */
static int start_owner(const int sock[2], uint32_t rights, pid_t *pid)
{
	*pid = fork();
	if (!*pid)
		owner(sock[1], rights);
	return recv_fd(sock[0]);
}

TEST_F(share, mapping_survives_kill_of_the_owner)
{
	char *at;
	pid_t pid;
	int fd = start_owner(self->sock, TENSOR_RIGHTS_RW, &pid);

	ASSERT_LE(0, fd);
	at = map_shared(fd, BYTES, PROT_READ | PROT_WRITE, 0);
	close(fd);
	ASSERT_NE(MAP_FAILED, at);
	kill(pid, SIGKILL);
	EXPECT_EQ(-SIGKILL, reap(pid));
	EXPECT_TRUE(all_bytes(at, 0x5a, BYTES));
	memset(at, 0x3c, BYTES);
	EXPECT_TRUE(all_bytes(at, 0x3c, BYTES));
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
	munmap(at, BYTES);
}

TEST_F(share, fd_and_handle_survive_kill_of_the_owner)
{
	struct tensor_import import;
	struct tensor_info info;
	char *at;
	pid_t pid;
	int fd = start_owner(self->sock, TENSOR_RIGHTS_RW, &pid);

	ASSERT_LE(0, fd);
	kill(pid, SIGKILL);
	reap(pid);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	close(fd);
	EXPECT_EQ(BYTES, import.bytes);
	ASSERT_EQ(0, buf_info(self->dev, import.handle, &info));
	EXPECT_EQ(1, info.refs);
	at = map_shared(self->dev, BYTES, PROT_READ, import.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_TRUE(all_bytes(at, 0x5a, BYTES));
	munmap(at, BYTES);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
}

TEST_F(share, kill_of_the_peer_does_not_affect_the_owner)
{
	struct tensor_alloc alloc;
	struct frames seen;
	struct tensor_info info;
	pid_t pid = fork();
	int fd;

	if (!pid)
		peer(self->sock[1], PROT_READ | PROT_WRITE);
	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
	fd = buf_export(self->dev, alloc.handle, 0);
	ASSERT_EQ(0, send_fd(self->sock[0], fd));
	close(fd);
	ASSERT_EQ(sizeof(seen), read(self->sock[0], &seen, sizeof(seen)));
	ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
	EXPECT_EQ(1, info.mappings);
	kill(pid, SIGKILL);
	EXPECT_EQ(-SIGKILL, reap(pid));
	ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
	EXPECT_EQ(1, info.refs);
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_F(share, message_in_flight_keeps_the_buffer)
{
	int fd = buf_new_fd(BYTES);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, send_fd(self->sock[0], fd));
	close(fd);
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
	fd = recv_fd(self->sock[1]);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, map_errno(fd, BYTES, PROT_READ, MAP_SHARED, 0));
	close(fd);
}

TEST_F(share, message_that_is_never_read_is_freed_with_the_socket)
{
	int fd = buf_new_fd(BYTES);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, send_fd(self->sock[0], fd));
	close(fd);
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
}

TEST_F(share, read_only_fd_stays_read_only_on_the_other_side)
{
	struct tensor_import import;
	pid_t pid = fork();
	int fd;

	if (!pid)
		owner(self->sock[1], TENSOR_RIGHTS_RO);
	fd = recv_fd(self->sock[0]);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EACCES, map_errno(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0));
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(-EACCES, map_errno(self->dev, PAGE, PROT_WRITE, MAP_SHARED, import.mmap_offset));
	EXPECT_EQ(0, map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED, import.mmap_offset));
	close(fd);
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	kill(pid, SIGKILL);
	reap(pid);
}

TEST_F_TIMEOUT(share, a_thousand_buffers_are_sent, 120)
{
	uint64_t sum = 0;
	int i, fd;

	for (i = 0; i < 1000; i++) {
		fd = buf_new_fd(PAGE);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, send_fd(self->sock[0], fd));
		close(fd);
		fd = recv_fd(self->sock[1]);
		ASSERT_LE(0, fd);
		sum += map_errno(fd, PAGE, PROT_READ, MAP_SHARED, 0);
		close(fd);
	}
	EXPECT_EQ(0, sum);
}

TEST_F(share, users_of_group_tensor_may_open_and_others_not)
{
	pid_t pid = fork();
	struct stat st;

	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(dev_open() == -EACCES ? 0 : 1);
	}
	EXPECT_EQ(0, reap(pid));
	ASSERT_EQ(0, stat("/dev/tensor", &st));
	EXPECT_EQ(0660, st.st_mode & 0777);
}

TEST_HARNESS_MAIN
