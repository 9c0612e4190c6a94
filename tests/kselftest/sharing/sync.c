// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* SYNC: its refusals, the write generation, and waiting for fences, which needs vgem. */
#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define BYTES (16 * PAGE)
#define READ  TENSOR_SYNC_READ
#define WRITE TENSOR_SYNC_WRITE
#define END   TENSOR_SYNC_END

FIXTURE(sync)
{
	int dev;
	int fd;
	uint32_t handle;
	struct tensor_alloc buf;
};

FIXTURE_SETUP(sync)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &self->buf));
	self->handle = self->buf.handle;
	self->fd = buf_export(self->dev, self->handle, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(sync)
{
	close(self->fd);
	close(self->dev);
}

TEST_F(sync, arguments_are_checked)
{
	struct tensor_sync arg = {
		.size = sizeof(arg), .flags = READ, .handle = self->handle, .__reserved = 1
	};
	int bit;

	EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_SYNC, &arg));
	EXPECT_EQ(-EINVAL, buf_sync(self->dev, self->handle, 0, 0));
	EXPECT_EQ(-EINVAL, buf_sync(self->dev, self->handle, END, 0));
	EXPECT_EQ(-EINVAL, buf_sync(self->dev, self->handle, READ | END, 1));
	EXPECT_EQ(-EINVAL, buf_sync(self->fd, 1, READ, 0));
	EXPECT_EQ(-ENOENT, buf_sync(self->dev, self->handle + 1, READ, 0));
	EXPECT_EQ(-ENOENT, buf_sync(self->dev, 0, READ, 0));
	for (bit = 3; bit < 32; bit++)
		EXPECT_EQ(-EOPNOTSUPP, buf_sync(self->dev, self->handle, READ | 1U << bit, 0));
}

TEST_F(sync, end_of_a_write_raises_the_generation)
{
	struct tensor_sync arg = { .size = sizeof(arg), .flags = WRITE, .handle = self->handle };

	EXPECT_EQ(0, dev_call(self->dev, TENSOR_IOC_SYNC, &arg));
	EXPECT_EQ(0, arg.generation);
	EXPECT_EQ(0, info_of(self->dev, self->handle).generation);
	arg.flags = WRITE | END;
	EXPECT_EQ(0, dev_call(self->dev, TENSOR_IOC_SYNC, &arg));
	EXPECT_EQ(1, arg.generation);
	EXPECT_EQ(1, info_of(self->fd, 0).generation);
	arg.flags = READ;
	EXPECT_EQ(0, dev_call(self->dev, TENSOR_IOC_SYNC, &arg));
	arg.flags = READ | END;
	EXPECT_EQ(0, dev_call(self->dev, TENSOR_IOC_SYNC, &arg));
	EXPECT_EQ(1, arg.generation);
	EXPECT_EQ(0, buf_sync(self->fd, 0, READ | WRITE, 0));
	EXPECT_EQ(0, buf_sync(self->fd, 0, READ | WRITE | END, 0));
	EXPECT_EQ(2, info_of(self->dev, self->handle).generation);
}

TEST_F(sync, end_without_a_reply_does_not_raise_the_generation)
{
	struct tensor_sync *ro = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*ro = (struct tensor_sync){ .size = sizeof(*ro),
				    .flags = WRITE | END,
				    .handle = self->handle };
	ASSERT_EQ(0, mprotect(ro, PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_call(self->dev, TENSOR_IOC_SYNC, ro));
	EXPECT_EQ(0, info_of(self->dev, self->handle).generation);
	munmap(ro, PAGE);
}

TEST_F(sync, write_through_a_read_only_fd_is_refused)
{
	int fd = buf_export_ro(self->dev, self->handle);
	struct tensor_import import;

	EXPECT_EQ(-EACCES, buf_sync(fd, 0, WRITE, 0));
	EXPECT_EQ(-EACCES, buf_sync(fd, 0, READ | WRITE | END, 0));
	EXPECT_EQ(0, buf_sync(fd, 0, READ, 0));
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(-EACCES, buf_sync(self->dev, import.handle, WRITE | END, 0));
	EXPECT_EQ(0, info_of(self->dev, self->handle).generation);
	close(fd);
}

TEST_F(sync, write_to_a_sealed_buffer_is_refused)
{
	ASSERT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(-EPERM, buf_sync(self->dev, self->handle, WRITE, 0));
	EXPECT_EQ(-EPERM, buf_sync(self->fd, 0, WRITE | END, 0));
	EXPECT_EQ(0, buf_sync(self->dev, self->handle, READ, 0));
}

TEST_F(sync, revoked_buffer_is_refused)
{
	ASSERT_EQ(0, buf_revoke(self->dev, self->handle));
	EXPECT_EQ(-EIDRM, buf_sync(self->dev, self->handle, READ, 0));
	EXPECT_EQ(-EIDRM, buf_sync(self->fd, 0, WRITE | END, 0));
}

TEST_F(sync, sync_without_fences_does_not_wait)
{
	EXPECT_EQ(0, buf_sync(self->dev, self->handle, READ | WRITE, 0));
	EXPECT_EQ(0, buf_sync(self->dev, self->handle, READ | WRITE, 1));
	EXPECT_EQ(0, buf_sync(self->dev, self->handle, READ | WRITE, TENSOR_SYNC_FOREVER));
}

FIXTURE(fence)
{
	int dev;
	int vgem;
	int fd;
	uint32_t handle;
	uint32_t gem;
};

FIXTURE_SETUP(fence)
{
	struct tensor_alloc alloc;

	self->vgem = vgem_open();
	if (self->vgem < 0)
		SKIP_SETUP("no vgem");
	self->dev = dev_open();
	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
	self->handle = alloc.handle;
	self->fd = buf_export(self->dev, self->handle, DMABUF);
	ASSERT_EQ(0, vgem_import(self->vgem, self->fd, &self->gem));
}

FIXTURE_TEARDOWN(fence)
{
	close(self->vgem);
	close(self->fd);
	close(self->dev);
}

TEST_F(fence, of_a_writer_blocks_readers_and_writers)
{
	int fence = vgem_fence(self->vgem, self->gem, VGEM_WRITES);

	ASSERT_LT(0, fence);
	EXPECT_EQ(-ETIMEDOUT, buf_sync(self->dev, self->handle, READ, 0));
	EXPECT_EQ(-ETIMEDOUT, buf_sync(self->dev, self->handle, WRITE, 0));
	EXPECT_EQ(-ETIMEDOUT, buf_sync(self->dev, self->handle, READ, 1));
	/* the end of an access waits for no fence */
	EXPECT_EQ(0, buf_sync(self->dev, self->handle, READ | END, 0));
	EXPECT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(0, buf_sync(self->dev, self->handle, READ | WRITE, 0));
}

TEST_F(fence, of_a_reader_blocks_writers)
{
	int fence = vgem_fence(self->vgem, self->gem, 0);

	ASSERT_LT(0, fence);
	EXPECT_EQ(0, buf_sync(self->dev, self->handle, READ, 0));
	EXPECT_EQ(-ETIMEDOUT, buf_sync(self->dev, self->handle, WRITE, 0));
	EXPECT_EQ(-ETIMEDOUT, buf_sync(self->dev, self->handle, READ | WRITE, 0));
	EXPECT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(0, buf_sync(self->dev, self->handle, WRITE, 0));
}

TEST_F(fence, deadline_is_kept)
{
	int fence = vgem_fence(self->vgem, self->gem, VGEM_WRITES);
	uint64_t until = deadline_ms(200);

	ASSERT_LT(0, fence);
	EXPECT_EQ(-ETIMEDOUT, buf_sync(self->dev, self->handle, READ, until));
	EXPECT_LE(until, deadline_ms(0));
	EXPECT_GE(until + 2000000000ULL, deadline_ms(0));
	EXPECT_EQ(0, vgem_signal(self->vgem, fence));
}

/* Child: signals the fence after a delay. */
static pid_t signal_later(int vgem, int fence)
{
	pid_t pid = fork();

	if (!pid) {
		sleep_ms(200);
		_exit(vgem_signal(vgem, fence) ? 1 : 0);
	}
	return pid;
}

TEST_F(fence, signal_of_the_fence_ends_the_wait)
{
	int fence = vgem_fence(self->vgem, self->gem, VGEM_WRITES);
	uint64_t before = deadline_ms(0);
	pid_t pid = signal_later(self->vgem, fence);

	EXPECT_EQ(0, buf_sync(self->dev, self->handle, READ, TENSOR_SYNC_FOREVER));
	EXPECT_LE(before + 100000000ULL, deadline_ms(0));
	EXPECT_GE(before + 8000000000ULL, deadline_ms(0));
	EXPECT_EQ(0, reap(pid));
	fence = vgem_fence(self->vgem, self->gem, 0);
	pid = signal_later(self->vgem, fence);
	EXPECT_EQ(0, buf_sync(self->dev, self->handle, WRITE, deadline_ms(8000)));
	EXPECT_EQ(0, reap(pid));
}

static void on_alarm(int sig)
{
	(void)sig;
}

TEST_F(fence, signal_interrupts_the_wait)
{
	struct sigaction act = { .sa_handler = on_alarm }, old;
	int fence = vgem_fence(self->vgem, self->gem, VGEM_WRITES);

	ASSERT_LT(0, fence);
	sigaction(SIGALRM, &act, &old);
	alarm(1);
	EXPECT_EQ(-EINTR, buf_sync(self->dev, self->handle, READ, TENSOR_SYNC_FOREVER));
	sigaction(SIGALRM, &old, NULL);
	EXPECT_EQ(0, vgem_signal(self->vgem, fence));
}

TEST_F(fence, dma_buf_waits_as_well)
{
	int fence = vgem_fence(self->vgem, self->gem, VGEM_WRITES);
	uint64_t before = deadline_ms(0);
	pid_t pid = signal_later(self->vgem, fence);

	EXPECT_EQ(0, dmabuf_sync(self->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ));
	EXPECT_LE(before + 100000000ULL, deadline_ms(0));
	EXPECT_EQ(0, dmabuf_sync(self->fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ));
	EXPECT_EQ(0, reap(pid));
}

/* A fence is signalled when the process that added it dies, so it cannot keep the buffer alive. */
TEST_F(fence, unsignalled_fence_does_not_keep_the_buffer)
{
	uint64_t used = dev_used(self->dev);

	ASSERT_LT(0, vgem_fence(self->vgem, self->gem, VGEM_WRITES));
	EXPECT_EQ(0, vgem_close(self->vgem, self->gem));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, dev_close(self->dev, self->handle));
	EXPECT_TRUE(used_becomes(self->dev, used - BYTES));
}

TEST_HARNESS_MAIN
