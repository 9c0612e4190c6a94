// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * REVOKE: afterwards no holder can access the buffer, whatever it holds and whatever it was doing
 * at that moment, and its memory is free for others.
 */
#include <sys/uio.h>

#include "../include/fixture.h"
#include "../include/touch.h"
#include "../include/xdp.h"
#include "kselftest_harness.h"

#define BYTES (2 * HUGE)
#define PAGES (BYTES / PAGE)
#define RW    (PROT_READ | PROT_WRITE)

FIXTURE(revoke)
{
	int dev;
	int fd;
	int rofd;
	uint64_t used;
	struct tensor_alloc buf;
};

FIXTURE_SETUP(revoke)
{
	ASSERT_EQ(0, setup_buf(&self->dev, &self->used, &self->buf, BYTES));
	ASSERT_EQ(0, setup_fds(self->dev, self->buf.handle, &self->fd, &self->rofd));
	touch_begin();
}

FIXTURE_TEARDOWN(revoke)
{
	close(self->rofd);
	close(self->fd);
	EXPECT_TRUE(teardown_buf(self->dev, self->used, self->buf.handle));
}

static int revoke_it(FIXTURE_DATA(revoke) * self)
{
	return buf_revoke(self->dev, self->buf.handle);
}

/* A mapping with all pages present. */
static char *full_map(int fd, uint64_t offset, int prot, int flags)
{
	char *at = mmap(NULL, BYTES, prot, flags | MAP_POPULATE, fd, offset);

	return at != MAP_FAILED && pages_present(at, BYTES) == PAGES ? at : NULL;
}

TEST_F(revoke, every_mapping_is_emptied)
{
	struct tensor_import import;
	int other = dev_open(), i;
	char *at[5];

	ASSERT_EQ(0, buf_import(other, self->fd, &import));
	at[0] = full_map(self->dev, self->buf.mmap_offset, RW, MAP_SHARED);
	at[1] = full_map(self->fd, 0, RW, MAP_SHARED);
	at[2] = full_map(self->rofd, 0, PROT_READ, MAP_SHARED);
	at[3] = full_map(self->fd, 0, PROT_READ, MAP_PRIVATE);
	at[4] = full_map(other, import.mmap_offset, RW, MAP_SHARED);
	for (i = 0; i < 5; i++)
		ASSERT_NE(NULL, at[i]) TH_LOG("mapping %d", i);
	ASSERT_EQ(0, revoke_it(self));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(0, pages_present(at[i], BYTES));
		EXPECT_EQ(0, smaps_bytes(at[i], "Rss:"));
		EXPECT_EQ(PAGES, pages_raising_sigbus(at[i], BYTES)) TH_LOG("mapping %d", i);
	}
	EXPECT_EQ(SIGBUS, touch_write(at[0] + HUGE, 1));
	for (i = 0; i < 5; i++)
		munmap(at[i], BYTES);
	close(other);
}

TEST_F(revoke, mapping_in_pieces_is_emptied)
{
	char *at = full_map(self->dev, self->buf.mmap_offset, RW, MAP_SHARED), *to;

	ASSERT_NE(NULL, at);
	to = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, munmap(at + 3 * PAGE, 5 * PAGE));
	ASSERT_EQ(0, mprotect(at + 10 * PAGE, PAGE, PROT_READ));
	ASSERT_EQ(to, mremap(at + HUGE, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	ASSERT_EQ(0, touch_read(to));
	ASSERT_EQ(0, revoke_it(self));
	EXPECT_EQ(3, pages_raising_sigbus(at, 3 * PAGE));
	EXPECT_EQ(HUGE / PAGE - 8, pages_raising_sigbus(at + 8 * PAGE, HUGE - 8 * PAGE));
	EXPECT_EQ(HUGE / PAGE, pages_raising_sigbus(to, HUGE));
	/* and the mapping can still be split, moved and unmapped */
	EXPECT_EQ(0, mprotect(at + 10 * PAGE, PAGE, RW));
	EXPECT_EQ(0, munmap(to + 7 * PAGE, PAGE));
	EXPECT_EQ(0, madvise(to, 4 * PAGE, MADV_DONTNEED));
	EXPECT_EQ(SIGBUS, touch_read(to));
	munmap(to, BYTES);
	munmap(at, BYTES);
}

/* Child: has a mapping, sends a message, and accesses the mapping when it gets one. */
static void child_reads(int sock, char *at)
{
	char byte = touch_read(at) == 0;

	if (write(sock, &byte, 1) != 1 || read(sock, &byte, 1) != 1)
		_exit(3);
	_exit(pages_raising_sigbus(at, BYTES) == PAGES && !pages_present(at, BYTES) ? 0 : 1);
}

TEST_F(revoke, inherited_mapping_is_emptied)
{
	char *at = full_map(self->fd, 0, RW, MAP_SHARED), byte;
	int sock[2];
	pid_t pid;

	ASSERT_NE(NULL, at);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	if (!pid)
		child_reads(sock[1], at);
	munmap(at, BYTES);
	ASSERT_EQ(1, read(sock[0], &byte, 1));
	EXPECT_EQ(1, byte);
	ASSERT_EQ(0, revoke_it(self));
	ASSERT_EQ(1, write(sock[0], &byte, 1));
	EXPECT_EQ(0, reap(pid));
	close(sock[0]);
	close(sock[1]);
}

TEST_F(revoke, memory_is_free_at_once)
{
	char *at = full_map(self->fd, 0, RW, MAP_SHARED);
	struct tensor_info info;
	int order;

	ASSERT_NE(NULL, at);
	ASSERT_EQ(self->used + BYTES, dev_used(self->dev));
	ASSERT_EQ(0, revoke_it(self));
	EXPECT_EQ(self->used, dev_used(self->dev));
	ASSERT_EQ(0, buf_info(self->fd, 0, &info));
	EXPECT_EQ(TENSOR_STATE_REVOKED, info.state);
	EXPECT_EQ(BYTES, info.bytes);
	EXPECT_EQ(0, info.pinned_bytes);
	EXPECT_EQ(0, info.huge_bytes);
	for (order = 0; order < TENSOR_UAPI_ORDERS; order++)
		EXPECT_EQ(0, info.chunks[order]);
	EXPECT_EQ(1, info.mappings);
	munmap(at, BYTES);
	EXPECT_EQ(self->used, dev_used(self->dev));
}

TEST_F(revoke, every_other_call_is_eidrm)
{
	struct tensor_desc desc = { .label = "x" };
	struct tensor_import import;
	struct tensor_info info;
	uint32_t h = self->buf.handle;

	ASSERT_EQ(0, revoke_it(self));
	EXPECT_EQ(-EIDRM, buf_meta(self->dev, h, 0, &desc));
	EXPECT_EQ(-EIDRM, buf_meta(self->dev, h, TENSOR_META_SET, &desc));
	EXPECT_EQ(-EIDRM, buf_meta(self->fd, 0, 0, &desc));
	EXPECT_EQ(-EIDRM, buf_meta(self->rofd, 0, 0, &desc));
	EXPECT_EQ(-EIDRM, buf_export(self->dev, h, 0));
	EXPECT_EQ(-EIDRM, buf_export_ro(self->dev, h));
	EXPECT_EQ(-EIDRM, buf_export_range(self->dev, h, 0, 0, PAGE));
	EXPECT_EQ(-EIDRM, buf_import(self->dev, self->fd, &import));
	EXPECT_EQ(-EIDRM, buf_import(self->dev, self->rofd, &import));
	EXPECT_EQ(-EIDRM, buf_seal(self->dev, h, 0));
	EXPECT_EQ(-EIDRM, buf_seal(self->fd, 0, TENSOR_SEAL_META));
	EXPECT_EQ(-EIDRM, buf_seal(self->fd, 0, TENSOR_SEAL_WRITE));
	EXPECT_EQ(-EIDRM, buf_advise(self->dev, h, TENSOR_ADVISE_PURGEABLE));
	EXPECT_EQ(-EIDRM, buf_advise(self->dev, h, TENSOR_ADVISE_WILLNEED));
	EXPECT_EQ(-EIDRM, map_errno(self->fd, PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-EIDRM, map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED, self->buf.mmap_offset));
	EXPECT_EQ(0, buf_info(self->dev, h, &info));
	EXPECT_EQ(0, buf_info(self->fd, 0, &info));
	EXPECT_EQ(0, buf_info(self->rofd, 0, &info));
}

TEST_F(revoke, second_revoke_does_nothing)
{
	EXPECT_EQ(0, revoke_it(self));
	EXPECT_EQ(0, revoke_it(self));
	EXPECT_EQ(self->used, dev_used(self->dev));
}

TEST_F(revoke, revoke_needs_its_right)
{
	int part = buf_export_range(self->dev, self->buf.handle, 0, 0, HUGE);
	struct tensor_import ro, half, full;
	int other = dev_open();

	ASSERT_LE(0, part);
	ASSERT_EQ(0, buf_import(other, self->rofd, &ro));
	ASSERT_EQ(0, buf_import(other, part, &half));
	ASSERT_EQ(0, buf_import(other, self->fd, &full));
	EXPECT_EQ(-EACCES, buf_revoke(other, ro.handle));
	EXPECT_EQ(-EACCES, buf_revoke(other, half.handle));
	EXPECT_EQ(-ENOTTY, buf_revoke(self->fd, 0));
	EXPECT_EQ(0, map_errno(self->fd, PAGE, RW, MAP_SHARED, 0));
	EXPECT_EQ(0, buf_revoke(other, full.handle));
	EXPECT_EQ(-EACCES, buf_revoke(other, ro.handle));
	EXPECT_EQ(-EIDRM, map_errno(self->fd, PAGE, RW, MAP_SHARED, 0));
	close(part);
	close(other);
}

TEST_F(revoke, system_calls_on_a_revoked_mapping_fail)
{
	char *at = full_map(self->fd, 0, RW, MAP_SHARED), text[16] = "x";
	struct iovec here = { text, sizeof(text) }, there = { at, sizeof(text) };
	int pipes[2];

	ASSERT_NE(NULL, at);
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, revoke_it(self));
	EXPECT_EQ(-1, write(pipes[1], at, PAGE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, process_vm_readv(getpid(), &here, 1, &there, 1, 0));
	EXPECT_EQ(-1, process_vm_writev(getpid(), &here, 1, &there, 1, 0));
	EXPECT_EQ(-1, vmsplice(pipes[1], &there, 1, 0));
	close(pipes[0]);
	close(pipes[1]);
	munmap(at, BYTES);
}

TEST_F(revoke, sealed_buffer_can_be_revoked)
{
	char *at;

	ASSERT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->fd, 0, TENSOR_SEAL_WRITE));
	at = full_map(self->fd, 0, PROT_READ, MAP_SHARED);
	ASSERT_NE(NULL, at);
	EXPECT_EQ(0, revoke_it(self));
	EXPECT_EQ(PAGES, pages_raising_sigbus(at, BYTES));
	munmap(at, BYTES);
}

/* Allocates the freed memory and checks that it is zero. */
static bool fresh_is_zero(int dev, int times)
{
	struct tensor_alloc alloc;
	bool zero = true;
	char *at;

	while (times--) {
		if (dev_alloc(dev, BYTES, &alloc))
			return false;
		at = map_shared(dev, BYTES, RW, alloc.mmap_offset);
		zero = zero && all_bytes(at, 0, BYTES);
		memset(at, 0xee, BYTES);
		munmap(at, BYTES);
		dev_close(dev, alloc.handle);
	}
	return zero;
}

TEST_F(revoke, page_in_a_pipe_keeps_its_content)
{
	char *at = full_map(self->fd, 0, RW, MAP_SHARED), seen[4 * PAGE];
	struct iovec iov = { at + HUGE - PAGE, sizeof(seen) };
	int pipes[2];

	ASSERT_NE(NULL, at);
	memset(at, 0x11, BYTES);
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ((ssize_t)sizeof(seen), vmsplice(pipes[1], &iov, 1, 0));
	ASSERT_EQ(0, revoke_it(self));
	EXPECT_TRUE(fresh_is_zero(self->dev, 8));
	ASSERT_EQ((ssize_t)sizeof(seen), read(pipes[0], seen, sizeof(seen)));
	EXPECT_TRUE(all_bytes(seen, 0x11, sizeof(seen)));
	close(pipes[0]);
	close(pipes[1]);
	munmap(at, BYTES);
}

TEST_F(revoke, pinned_page_stays_with_its_holder)
{
	char *at = full_map(self->fd, 0, RW, MAP_SHARED);
	int sock;

	ASSERT_NE(NULL, at);
	sock = xdp_pin(at, BYTES);
	if (sock == -EAFNOSUPPORT) {
		munmap(at, BYTES);
		SKIP(return, "no AF_XDP in this kernel");
	}
	ASSERT_LE(0, sock);
	ASSERT_EQ(0, revoke_it(self));
	EXPECT_EQ(PAGES, pages_raising_sigbus(at, BYTES));
	EXPECT_TRUE(fresh_is_zero(self->dev, 8));
	close(sock);
	EXPECT_TRUE(fresh_is_zero(self->dev, 8));
	munmap(at, BYTES);
}

TEST_HARNESS_MAIN
