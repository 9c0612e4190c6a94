// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Pins by users such as GPUs, NICs and io_uring work on mappings of buffers and are counted in
 * INFO, and a pinned page is never given to a new owner. See uring.c and xdp.c for two such users.
 */
#include <sys/uio.h>

#include "../include/fixture.h"
#include "../include/xdp.h"
#include "kselftest_harness.h"

#define BYTES (2 * HUGE)

FIXTURE(pin)
{
	int dev;
	uint64_t used;
	struct tensor_alloc buf;
	unsigned char *at;
};

FIXTURE_SETUP(pin)
{
	self->at = setup_mapped_buf(&self->dev, &self->used, &self->buf, BYTES);
	ASSERT_NE(MAP_FAILED, self->at);
	memset(self->at, 0x11, BYTES);
}

FIXTURE_TEARDOWN(pin)
{
	munmap(self->at, BYTES);
	EXPECT_TRUE(teardown_buf(self->dev, self->used, self->buf.handle));
}

static uint64_t dma_bytes(FIXTURE_DATA(pin) * self)
{
	struct tensor_info info;

	return buf_info(self->dev, self->buf.handle, &info) ? UINT64_MAX : info.dma_bytes;
}

TEST_F(pin, long_term_pin_of_huge_chunks_is_shown_in_info)
{
	int sock = xdp_pin(self->at, BYTES), tries;

	if (sock == -EAFNOSUPPORT)
		SKIP(return, "no AF_XDP in this kernel");
	ASSERT_LE(0, sock);
	EXPECT_EQ(BYTES, dma_bytes(self));
	EXPECT_TRUE(all_bytes(self->at, 0x11, BYTES));
	close(sock);
	for (tries = 0; tries < 100 && dma_bytes(self); tries++)
		sleep_ms(20);
	EXPECT_EQ(0, dma_bytes(self));
}

TEST_F(pin, long_term_pin_of_small_chunks_works)
{
	struct tensor_alloc alloc = alloc_args(MIB);
	void *at;
	int sock;

	alloc.flags = TENSOR_ALLOC_ORDERS;
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc));
	at = map_shared(self->dev, MIB, PROT_READ | PROT_WRITE, alloc.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	sock = xdp_pin(at, MIB);
	munmap(at, MIB);
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
	if (sock == -EAFNOSUPPORT)
		SKIP(return, "no AF_XDP in this kernel");
	EXPECT_LE(0, sock);
	close(sock);
}

TEST_F(pin, pin_survives_munmap_and_close)
{
	int sock = xdp_pin(self->at, BYTES), dev = dev_open();

	if (sock == -EAFNOSUPPORT)
		SKIP(return, "no AF_XDP in this kernel");
	ASSERT_LE(0, sock);
	munmap(self->at, BYTES);
	EXPECT_EQ(0, dev_close(self->dev, self->buf.handle));
	self->buf.handle = 0;
	/* would overwrite the pinned pages if they had gone to the pool */
	ASSERT_EQ(0, overwrite_new_buffers(dev, BYTES, 16));
	close(dev);
	close(sock);
	self->at = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

TEST_F(pin, read_only_mapping_cannot_be_pinned_for_writing)
{
	int fd = buf_export_ro(self->dev, self->buf.handle), sock;
	void *at = map_shared(fd, BYTES, PROT_READ, 0);

	ASSERT_NE(MAP_FAILED, at);
	sock = xdp_pin(at, BYTES);
	if (sock != -EAFNOSUPPORT)
		EXPECT_EQ(-EFAULT, sock);
	munmap(at, BYTES);
	close(fd);
}

TEST_F(pin, page_in_a_pipe_is_not_reused)
{
	struct iovec iov = { self->at, 4 * PAGE };
	unsigned char seen[4 * PAGE];
	int pipes[2], dev = dev_open();

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ((ssize_t)(4 * PAGE), vmsplice(pipes[1], &iov, 1, 0));
	munmap(self->at, BYTES);
	EXPECT_EQ(0, dev_close(self->dev, self->buf.handle));
	self->buf.handle = 0;
	ASSERT_EQ(0, overwrite_new_buffers(dev, BYTES, 8));
	ASSERT_EQ((ssize_t)(4 * PAGE), read(pipes[0], seen, 4 * PAGE));
	EXPECT_TRUE(all_bytes(seen, 0x11, 4 * PAGE));
	close(pipes[0]);
	close(pipes[1]);
	close(dev);
	self->at = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

TEST_F(pin, another_process_reads_it_with_process_vm_readv)
{
	unsigned char seen[PAGE];
	struct iovec to = { seen, PAGE }, from = { self->at + HUGE - PAGE / 2, PAGE };
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (process_vm_readv(getppid(), &to, 1, &from, 1, 0) != (ssize_t)PAGE)
			_exit(errno == ENOSYS ? 77 : 1);
		_exit(all_bytes(seen, 0x11, PAGE) ? 0 : 2);
	}
	status = reap(pid);
	if (status == 77)
		SKIP(return, "no process_vm_readv in this kernel");
	EXPECT_EQ(0, status);
}

TEST_F(pin, sockets_write_from_it_and_read_into_it)
{
	int sock[2];
	unsigned char seen[64 * KIB];
	ssize_t got = 0, n;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	ASSERT_EQ((ssize_t)sizeof(seen), write(sock[0], self->at + HUGE - PAGE, sizeof(seen)));
	while (got < (ssize_t)sizeof(seen) && (n = read(sock[1], self->at + got, PAGE)) > 0)
		got += n;
	EXPECT_EQ((ssize_t)sizeof(seen), got);
	close(sock[0]);
	close(sock[1]);
}

TEST_HARNESS_MAIN
