// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Nothing leaks: processes are killed at any moment, and the module stays loaded exactly as long as
 * it is in use and frees all memory when it is unloaded.
 */
#include <sys/syscall.h>

#include "../include/device.h"
#include "kselftest_harness.h"

#define LOAD "/bin/tensor-load"

FIXTURE(lifetime)
{
	int sock[2];
};

FIXTURE_SETUP(lifetime)
{
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, self->sock));
}

FIXTURE_TEARDOWN(lifetime)
{
	struct tensor_query query;
	int dev = dev_open();

	EXPECT_TRUE(used_becomes(dev, 0));
	EXPECT_EQ(0, dev_query(dev, &query));
	close(dev);
	close(self->sock[0]);
	close(self->sock[1]);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "tensor", O_NONBLOCK) < 0 ? -errno : 0;
}

/* The last reference may be dropped with a delay after close() or the end of a process. */
static int unload_soon(void)
{
	int tries = 0, err;

	while ((err = unload()) == -EWOULDBLOCK && tries++ < 100)
		sleep_ms(20);
	return err;
}

static int load(void)
{
	return access(LOAD, X_OK) ? -ENOENT : system(LOAD);
}

/* Uses all features in a loop. */
static void use_everything(int sock, unsigned int seed)
{
	static const uint64_t sizes[] = { PAGE, 300 * KIB, HUGE, 5 * HUGE + PAGE };
	struct tensor_import import;
	struct tensor_alloc alloc;
	int dev = dev_open(), fd;
	char *at;

	srandom(seed);
	for (;;) {
		uint64_t bytes = sizes[random() % 4];

		if (dev_alloc(dev, bytes, &alloc))
			continue;
		at = map_shared(dev, bytes, PROT_READ | PROT_WRITE, alloc.mmap_offset);
		if (at != MAP_FAILED)
			at[0] = at[bytes - 1] = 1;
		fd = buf_export_rights(dev, alloc.handle,
				       random() % 2 ? TENSOR_RIGHTS_RO : TENSOR_RIGHTS_RW, 0);
		if (!buf_import(dev, fd, &import))
			dev_close(dev, import.handle);
		if (random() % 4 == 0) {
			fcntl(sock, F_SETFL, O_NONBLOCK);
			send_fd(sock, fd);
		}
		close(fd);
		if (random() % 8 == 0 && !fork())
			_exit(0);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (at != MAP_FAILED && random() % 4)
			munmap(at, bytes);
		dev_close(dev, alloc.handle);
	}
}

TEST_F_TIMEOUT(lifetime, kill_at_any_moment_leaks_nothing, 180)
{
	struct timespec pause;
	int round, sock[2], dev;

	srandom(1);
	for (round = 0; round < 40; round++) {
		pid_t pid;

		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
		pid = fork();
		if (!pid)
			use_everything(sock[0], round);
		pause = (struct timespec){ 0, random() % (round < 20 ? 3000000 : 60000000) };
		nanosleep(&pause, NULL);
		kill(pid, SIGKILL);
		EXPECT_EQ(-SIGKILL, reap(pid));
		close(sock[0]);
		close(sock[1]);
	}
	dev = dev_open();
	EXPECT_TRUE(used_becomes(dev, 0));
	close(dev);
}

TEST_F_TIMEOUT(lifetime, kill_during_a_large_alloc_leaks_nothing, 60)
{
	struct tensor_alloc alloc;
	int round, dev;

	for (round = 0; round < 10; round++) {
		pid_t pid = fork();

		if (!pid) {
			dev = dev_open();
			for (;;) {
				if (!dev_alloc(dev, 128 * MIB, &alloc))
					dev_close(dev, alloc.handle);
			}
		}
		sleep_ms(5 + round * 7);
		kill(pid, SIGKILL);
		EXPECT_EQ(-SIGKILL, reap(pid));
	}
	dev = dev_open();
	EXPECT_TRUE(used_becomes(dev, 0));
	close(dev);
}

TEST_F(lifetime, exit_without_cleaning_up_leaks_nothing)
{
	struct tensor_alloc alloc;
	pid_t pid = fork();
	int dev;

	if (!pid) {
		dev = dev_open();
		while (!dev_alloc(dev, MIB, &alloc) && alloc.handle < 100) {
			map_shared(dev, MIB, PROT_READ | PROT_WRITE, alloc.mmap_offset);
			buf_export(dev, alloc.handle, 0);
		}
		_exit(0);
	}
	EXPECT_EQ(0, reap(pid));
}

TEST_F(lifetime, device_shared_by_fork_lives_until_the_last_closes)
{
	struct tensor_alloc alloc;
	struct tensor_info info;
	int dev = dev_open(), watch = dev_open();
	pid_t pid;
	char byte;

	ASSERT_EQ(0, dev_alloc(dev, MIB, &alloc));
	pid = fork();
	if (!pid) {
		if (read(self->sock[1], &byte, 1) != 1)
			_exit(1);
		_exit(buf_info(dev, alloc.handle, &info) ? 2 : 0);
	}
	close(dev);
	EXPECT_EQ(MIB, dev_used(watch));
	ASSERT_EQ(1, write(self->sock[0], "x", 1));
	EXPECT_EQ(0, reap(pid));
	close(watch);
}

TEST_F(lifetime, module_is_busy_while_the_device_is_open)
{
	int dev = dev_open();

	ASSERT_LE(0, dev);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	close(dev);
}

TEST_F(lifetime, module_is_busy_while_a_buffer_fd_lives)
{
	int fd = buf_new_fd(PAGE);
	struct tensor_info info;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	EXPECT_EQ(0, buf_info(fd, 0, &info));
	close(fd);
}

TEST_F(lifetime, module_is_busy_while_a_mapping_lives)
{
	int fd = buf_new_fd(HUGE);
	char *at = map_shared(fd, HUGE, PROT_READ | PROT_WRITE, 0);

	ASSERT_NE(MAP_FAILED, at);
	close(fd);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	at[5] = 1;
	munmap(at, HUGE);
}

TEST_F(lifetime, module_is_busy_while_a_mapping_of_the_device_lives)
{
	struct tensor_alloc alloc;
	int dev = dev_open();
	char *at;

	ASSERT_EQ(0, dev_alloc(dev, HUGE, &alloc));
	at = map_shared(dev, HUGE, PROT_READ | PROT_WRITE, alloc.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	close(dev);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	at[5] = 1;
	munmap(at, HUGE);
}

TEST_F(lifetime, module_is_busy_while_a_message_is_in_flight)
{
	int fd = buf_new_fd(PAGE);

	ASSERT_EQ(0, send_fd(self->sock[0], fd));
	close(fd);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	fd = recv_fd(self->sock[1]);
	EXPECT_LE(0, fd);
	close(fd);
}

TEST_F_TIMEOUT(lifetime, module_unloads_after_every_kind_of_use, 120)
{
	int64_t before = memory_free();
	int round, fd, dev;
	struct tensor_import import;
	void *at;

	for (round = 0; round < 8; round++) {
		fd = buf_new_fd(16 * MIB);
		ASSERT_LE(0, fd);
		dev = dev_open();
		ASSERT_EQ(0, buf_import(dev, fd, &import));
		at = map_shared(dev, 16 * MIB, PROT_READ | PROT_WRITE, import.mmap_offset);
		ASSERT_NE(MAP_FAILED, at);
		memset(at, 1, 16 * MIB);
		/* the last reference is the fd, the mapping and the device in turn */
		if (round % 3 == 0)
			munmap(at, 16 * MIB);
		close(dev);
		if (round % 3 == 1)
			munmap(at, 16 * MIB);
		close(fd);
		if (round % 3 == 2)
			munmap(at, 16 * MIB);
		ASSERT_EQ(0, unload_soon());
		ASSERT_EQ(0, load());
	}
	/* less than one of these buffers */
	EXPECT_TRUE(memory_is_freed(before, 8 * 1024));
}

TEST_F_TIMEOUT(lifetime, module_unloads_after_a_killed_user, 60)
{
	pid_t pid = fork();

	if (!pid)
		use_everything(self->sock[0], 7);
	sleep_ms(50);
	kill(pid, SIGKILL);
	EXPECT_EQ(-SIGKILL, reap(pid));
	close(self->sock[0]);
	close(self->sock[1]);
	EXPECT_EQ(0, unload_soon());
	ASSERT_EQ(0, load());
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, self->sock));
}

/* Opens and uses the device while another process loads and unloads the module. */
static void use_while_loading(void)
{
	struct tensor_alloc alloc;
	int dev;

	for (;;) {
		dev = dev_open();
		if (dev < 0)
			continue;
		dev_alloc(dev, 64 * KIB, &alloc);
		map_shared(dev, 64 * KIB, PROT_READ, alloc.mmap_offset);
		close(dev);
	}
}

TEST_F_TIMEOUT(lifetime, open_racing_unload_is_safe, 120)
{
	int round, gone = 0;
	pid_t pid;

	for (round = 0; round < 8; round++) {
		int err = -EWOULDBLOCK, tries;

		pid = fork();
		if (!pid)
			use_while_loading();
		for (tries = 0; tries < 200 && err; tries++)
			err = unload();
		gone += !err;
		kill(pid, SIGKILL);
		reap(pid);
		if (!err)
			ASSERT_EQ(0, load());
	}
	TH_LOG("unloaded in %d of 8 rounds", gone);
}

TEST_HARNESS_MAIN
