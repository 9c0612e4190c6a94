// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * SEAL: after it has succeeded the memory never changes, by any way and however writers raced with
 * it; it is refused while a writer exists.
 */
#include <sys/uio.h>

#include "../include/fixture.h"
#include "../include/touch.h"
#include "../include/xdp.h"
#include "kselftest_harness.h"

#define BYTES (2 * HUGE)
#define RW    (PROT_READ | PROT_WRITE)
#define ALL   (TENSOR_SEAL_WRITE | TENSOR_SEAL_META | TENSOR_SEAL_SEAL)

FIXTURE(seal)
{
	int dev;
	int fd;
	int rofd;
	uint64_t used;
	struct tensor_alloc buf;
};

FIXTURE_SETUP(seal)
{
	ASSERT_EQ(0, setup_buf(&self->dev, &self->used, &self->buf, BYTES));
	ASSERT_EQ(0, setup_fds(self->dev, self->buf.handle, &self->fd, &self->rofd));
	touch_begin();
}

FIXTURE_TEARDOWN(seal)
{
	close(self->rofd);
	close(self->fd);
	EXPECT_TRUE(teardown_buf(self->dev, self->used, self->buf.handle));
}

static int seal_write(FIXTURE_DATA(seal) * self)
{
	return buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE);
}

TEST_F(seal, seal_refuses_write_mapping)
{
	struct tensor_import import;
	int other = dev_open();

	ASSERT_EQ(0, buf_import(other, self->fd, &import));
	ASSERT_EQ(TENSOR_SEAL_WRITE, seal_write(self));
	EXPECT_EQ(-EPERM, map_errno(self->dev, PAGE, RW, MAP_SHARED, self->buf.mmap_offset));
	EXPECT_EQ(-EPERM,
		  map_errno(self->dev, PAGE, PROT_WRITE, MAP_SHARED, self->buf.mmap_offset));
	EXPECT_EQ(-EPERM, map_errno(self->fd, PAGE, RW, MAP_SHARED, 0));
	EXPECT_EQ(-EPERM, map_errno(other, PAGE, RW, MAP_SHARED, import.mmap_offset));
	EXPECT_EQ(-EACCES, map_errno(self->rofd, PAGE, RW, MAP_SHARED, 0));
	EXPECT_EQ(-EINVAL, map_errno(self->fd, PAGE, RW, MAP_PRIVATE, 0));
	EXPECT_EQ(0, map_errno(self->fd, BYTES, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(0, map_errno(other, BYTES, PROT_READ, MAP_SHARED, import.mmap_offset));
	close(other);
}

/* The flags in /proc/PID/smaps that show what a mapping is and may become. */
static bool vm_flag(const void *at, const char *flag)
{
	unsigned long first, last, want = (unsigned long)at;
	char line[512];
	bool here = false, has = false;
	FILE *f = fopen("/proc/self/smaps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &first, &last) == 2)
			here = first <= want && want < last;
		else if (here && !strncmp(line, "VmFlags:", 8))
			has = strstr(line, flag);
	}
	if (f)
		fclose(f);
	return has;
}

TEST_F(seal, mapping_of_sealed_buffer_never_becomes_writable)
{
	unsigned char *a, *b, *c;
	pid_t pid;

	ASSERT_EQ(TENSOR_SEAL_WRITE, seal_write(self));
	a = map_shared(self->dev, BYTES, PROT_READ, self->buf.mmap_offset);
	b = map_shared(self->fd, BYTES, PROT_READ, 0);
	c = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, self->fd, 0);
	ASSERT_NE(MAP_FAILED, a);
	ASSERT_NE(MAP_FAILED, b);
	ASSERT_NE(MAP_FAILED, c);
	EXPECT_FALSE(vm_flag(a, " mw"));
	EXPECT_FALSE(vm_flag(b, " mw"));
	EXPECT_FALSE(vm_flag(c, " mw"));
	EXPECT_TRUE(vm_flag(a, " mr"));
	EXPECT_EQ(-1, mprotect(a, BYTES, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(b + PAGE, PAGE, PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(c, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(SIGSEGV, touch_write(a, 1));
	pid = fork();
	if (!pid)
		_exit(mprotect(a, BYTES, RW) && errno == EACCES && touch_write(b, 1) == SIGSEGV &&
				      !touch_read(a) ?
			      0 :
			      1);
	EXPECT_EQ(0, reap(pid));
	munmap(a, BYTES);
	munmap(b, BYTES);
	munmap(c, BYTES);
}

/* The core clears VM_SHARED in a mapping of a read-only file, but not VM_MAYSHARE. */
TEST_F(seal, mapping_of_a_read_only_fd_is_shared)
{
	unsigned char *a = map_shared(self->dev, PAGE, RW, self->buf.mmap_offset);
	unsigned char *b = map_shared(self->rofd, PAGE, PROT_READ, 0);

	ASSERT_NE(MAP_FAILED, a);
	ASSERT_NE(MAP_FAILED, b);
	EXPECT_FALSE(vm_flag(b, " sh"));
	EXPECT_TRUE(vm_flag(b, " ms"));
	EXPECT_FALSE(vm_flag(b, " mw"));
	a[0] = 7;
	EXPECT_EQ(7, b[0]);
	EXPECT_EQ(-1, mprotect(b, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	munmap(a, PAGE);
	munmap(b, PAGE);
}

TEST_F(seal, mapping_that_may_write_refuses_seal)
{
	static const int prots[] = { RW, PROT_WRITE, PROT_READ, PROT_NONE };
	unsigned int i;
	char *at;

	for (i = 0; i < 4; i++) {
		at = map_shared(i & 1 ? self->fd : self->dev, BYTES, prots[i],
				i & 1 ? 0 : self->buf.mmap_offset);
		ASSERT_NE(MAP_FAILED, at);
		EXPECT_EQ(-EBUSY, seal_write(self)) TH_LOG("prot %d", prots[i]);
		/* unmapping the middle leaves two mappings */
		munmap(at + PAGE, BYTES - 2 * PAGE);
		EXPECT_EQ(-EBUSY, seal_write(self));
		munmap(at, PAGE);
		EXPECT_EQ(-EBUSY, seal_write(self));
		munmap(at + BYTES - PAGE, PAGE);
	}
	EXPECT_EQ(0, buf_seal(self->dev, self->buf.handle, 0));
	EXPECT_EQ(TENSOR_SEAL_WRITE, seal_write(self));
}

TEST_F(seal, inherited_mapping_refuses_seal_until_the_child_exits)
{
	char *at = map_shared(self->fd, BYTES, RW, 0);
	pid_t pid;

	ASSERT_NE(MAP_FAILED, at);
	pid = fork();
	if (!pid)
		for (;;)
			pause();
	munmap(at, BYTES);
	EXPECT_EQ(-EBUSY, seal_write(self));
	kill(pid, SIGKILL);
	reap(pid);
	EXPECT_EQ(TENSOR_SEAL_WRITE, seal_write(self));
}

TEST_F(seal, moved_mapping_refuses_seal)
{
	char *at = map_shared(self->fd, BYTES, RW, 0), *to;

	ASSERT_NE(MAP_FAILED, at);
	to = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	ASSERT_NE(MAP_FAILED, to);
	EXPECT_EQ(-EBUSY, seal_write(self));
	munmap(to, BYTES);
	EXPECT_EQ(TENSOR_SEAL_WRITE, seal_write(self));
}

TEST_F(seal, refused_mapping_leaves_no_writer)
{
	EXPECT_EQ(-EINVAL, map_errno(self->fd, BYTES + PAGE, RW, MAP_SHARED, 0));
	EXPECT_EQ(-EINVAL,
		  map_errno(self->dev, BYTES + PAGE, RW, MAP_SHARED, self->buf.mmap_offset));
	EXPECT_EQ(-EPERM, map_errno(self->fd, PAGE, RW | PROT_EXEC, MAP_SHARED, 0));
	EXPECT_EQ(-EINVAL, map_errno(self->fd, PAGE, RW, MAP_PRIVATE, 0));
	EXPECT_EQ(TENSOR_SEAL_WRITE, seal_write(self));
}

TEST_F(seal, readers_do_not_refuse_seal_and_keep_their_content)
{
	unsigned char *at = map_shared(self->fd, BYTES, RW, 0), *a, *b;

	ASSERT_NE(MAP_FAILED, at);
	memset(at, 0x77, BYTES);
	munmap(at, BYTES);
	a = map_shared(self->rofd, BYTES, PROT_READ, 0);
	b = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, self->fd, 0);
	ASSERT_NE(MAP_FAILED, a);
	ASSERT_NE(MAP_FAILED, b);
	EXPECT_TRUE(all_bytes(a, 0x77, BYTES));
	EXPECT_TRUE(all_bytes(b, 0x77, BYTES));
	EXPECT_EQ(TENSOR_SEAL_WRITE, seal_write(self));
	EXPECT_TRUE(all_bytes(a, 0x77, BYTES));
	EXPECT_TRUE(all_bytes(b, 0x77, BYTES));
	munmap(a, BYTES);
	munmap(b, BYTES);
}

/*
 * A maker can replace its writable mapping by a read-only one at the same address before sealing.
 */
TEST_F(seal, maker_remaps_in_place_and_seals)
{
	char *at = map_shared(self->dev, BYTES, RW, self->buf.mmap_offset);

	ASSERT_NE(MAP_FAILED, at);
	memset(at, 0x33, BYTES);
	ASSERT_EQ(at,
		  mmap(at, BYTES, PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_POPULATE, self->fd, 0));
	ASSERT_EQ(TENSOR_SEAL_WRITE, seal_write(self));
	EXPECT_TRUE(all_bytes(at, 0x33, BYTES));
	EXPECT_EQ(SIGSEGV, touch_write(at, 1));
	EXPECT_EQ(-1, mprotect(at, BYTES, RW));
	EXPECT_EQ(EACCES, errno);
	munmap(at, BYTES);
}

TEST_F(seal, system_calls_cannot_write_to_it)
{
	char text[16] = "written";
	struct iovec from = { text, sizeof(text) }, to = { NULL, sizeof(text) };
	int pipes[2], mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	char *a, *b;

	ASSERT_EQ(TENSOR_SEAL_WRITE, seal_write(self));
	a = map_shared(self->fd, BYTES, PROT_READ, 0);
	b = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, self->fd, 0);
	ASSERT_NE(MAP_FAILED, a);
	ASSERT_NE(MAP_FAILED, b);
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ((ssize_t)sizeof(text), write(pipes[1], text, sizeof(text)));
	EXPECT_EQ(-1, read(pipes[0], a, sizeof(text)));
	EXPECT_EQ(EFAULT, errno);
	to.iov_base = a;
	EXPECT_EQ(-1, process_vm_writev(getpid(), &from, 1, &to, 1, 0));
	/* writes like a debugger's, which the kernel forces into private mappings */
	EXPECT_GT(0, pwrite(mem, text, sizeof(text), (off_t)(unsigned long)a));
	EXPECT_GT(0, pwrite(mem, text, sizeof(text), (off_t)(unsigned long)b));
	EXPECT_TRUE(all_bytes(a, 0, BYTES));
	close(mem);
	close(pipes[0]);
	close(pipes[1]);
	munmap(a, BYTES);
	munmap(b, BYTES);
}

/* Retries, because dropped references may be freed with a delay. */
static int seal_soon(FIXTURE_DATA(seal) * self)
{
	int tries, err = -EBUSY;

	for (tries = 0; tries < 100 && err == -EBUSY; tries++) {
		err = seal_write(self);
		sleep_ms(20);
	}
	return err;
}

TEST_F(seal, long_term_pin_refuses_seal)
{
	char *at = map_shared(self->fd, BYTES, RW, 0);
	int sock;

	ASSERT_NE(MAP_FAILED, at);
	sock = xdp_pin(at, BYTES);
	munmap(at, BYTES);
	if (sock == -EAFNOSUPPORT)
		SKIP(return, "no AF_XDP in this kernel");
	ASSERT_LE(0, sock);
	EXPECT_EQ(-EBUSY, seal_write(self));
	EXPECT_EQ(0, map_errno(self->fd, PAGE, RW, MAP_SHARED, 0));
	close(sock);
	EXPECT_EQ(TENSOR_SEAL_WRITE, seal_soon(self));
	at = map_shared(self->fd, BYTES, PROT_READ, 0);
	EXPECT_EQ(-EFAULT, xdp_pin(at, BYTES));
	munmap(at, BYTES);
}

/*
 * Old kernels do direct I/O with a plain reference, so its holder may be a disk that still writes.
 */
TEST_F(seal, referenced_page_refuses_seal)
{
	char *at = map_shared(self->fd, BYTES, RW, 0), seen[4 * PAGE];
	struct iovec iov = { at + HUGE - PAGE, 4 * PAGE };
	int pipes[2];

	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ((ssize_t)sizeof(seen), vmsplice(pipes[1], &iov, 1, 0));
	munmap(at, BYTES);
	EXPECT_EQ(-EBUSY, seal_write(self));
	EXPECT_EQ(0, map_errno(self->fd, PAGE, RW, MAP_SHARED, 0));
	ASSERT_EQ((ssize_t)sizeof(seen), read(pipes[0], seen, sizeof(seen)));
	EXPECT_EQ(TENSOR_SEAL_WRITE, seal_write(self));
	close(pipes[0]);
	close(pipes[1]);
}

TEST_F(seal, seals_are_shown_and_stay)
{
	struct tensor_info info;

	EXPECT_EQ(0, buf_seal(self->fd, 0, 0));
	EXPECT_EQ(TENSOR_SEAL_META, buf_seal(self->fd, 0, TENSOR_SEAL_META));
	EXPECT_EQ(TENSOR_SEAL_META | TENSOR_SEAL_WRITE, seal_write(self));
	EXPECT_EQ(TENSOR_SEAL_META | TENSOR_SEAL_WRITE, seal_write(self));
	EXPECT_EQ(TENSOR_SEAL_META | TENSOR_SEAL_WRITE, buf_seal(self->rofd, 0, 0));
	ASSERT_EQ(0, buf_info(self->rofd, 0, &info));
	EXPECT_EQ(TENSOR_SEAL_META | TENSOR_SEAL_WRITE, info.seals);
}

TEST_F(seal, several_seals_are_all_or_none)
{
	char *at = map_shared(self->fd, PAGE, RW, 0);

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-EBUSY, buf_seal(self->fd, 0, ALL));
	EXPECT_EQ(0, buf_seal(self->fd, 0, 0));
	munmap(at, PAGE);
	EXPECT_EQ(ALL, buf_seal(self->fd, 0, ALL));
}

TEST_F(seal, adding_seals_after_seal_seal_is_eperm)
{
	EXPECT_EQ(TENSOR_SEAL_SEAL, buf_seal(self->fd, 0, TENSOR_SEAL_SEAL));
	EXPECT_EQ(-EPERM, seal_write(self));
	EXPECT_EQ(-EPERM, buf_seal(self->fd, 0, TENSOR_SEAL_META));
	EXPECT_EQ(-EPERM, buf_seal(self->fd, 0, TENSOR_SEAL_SEAL));
	EXPECT_EQ(TENSOR_SEAL_SEAL, buf_seal(self->fd, 0, 0));
	EXPECT_EQ(0, map_errno(self->fd, PAGE, RW, MAP_SHARED, 0));
}

TEST_F(seal, unknown_seals_and_flags_are_eopnotsupp)
{
	struct tensor_seal arg = { .size = sizeof(arg), .flags = 1, .handle = self->buf.handle };
	int bit;

	for (bit = 3; bit < 32; bit++)
		EXPECT_EQ(-EOPNOTSUPP, buf_seal(self->fd, 0, 1U << bit));
	EXPECT_EQ(-EOPNOTSUPP, dev_call(self->dev, TENSOR_IOC_SEAL, &arg));
	EXPECT_EQ(0, buf_seal(self->fd, 0, 0));
}

TEST_F(seal, seal_needs_its_right)
{
	struct tensor_import import;
	int part = buf_export_range(self->dev, self->buf.handle, 0, 0, HUGE);

	ASSERT_LE(0, part);
	ASSERT_EQ(0, buf_import(self->dev, self->rofd, &import));
	EXPECT_EQ(-EACCES, buf_seal(self->rofd, 0, TENSOR_SEAL_META));
	EXPECT_EQ(-EACCES, buf_seal(part, 0, TENSOR_SEAL_META));
	EXPECT_EQ(-EACCES, buf_seal(self->dev, import.handle, TENSOR_SEAL_META));
	EXPECT_EQ(0, buf_seal(part, 0, 0));
	EXPECT_EQ(0, buf_seal(self->dev, import.handle, 0));
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	close(part);
}

TEST_F(seal, purgeable_buffer_refuses_seal)
{
	struct tensor_alloc alloc;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	ASSERT_EQ(0, buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_PURGEABLE));
	EXPECT_EQ(-EBUSY, buf_seal(self->dev, alloc.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, alloc.handle, TENSOR_SEAL_META));
	ASSERT_EQ(0, buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_WILLNEED));
	EXPECT_EQ(TENSOR_SEAL_WRITE | TENSOR_SEAL_META,
		  buf_seal(self->dev, alloc.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_F(seal, sealed_descriptor_stays)
{
	struct tensor_desc desc = { .bits = 8, .dtype = TAG_U8, .label = "first" }, seen;

	ASSERT_EQ(0, buf_meta(self->fd, 0, TENSOR_META_SET, &desc));
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->fd, 0, TENSOR_SEAL_META));
	strcpy(desc.label, "second");
	EXPECT_EQ(-EPERM, buf_meta(self->fd, 0, TENSOR_META_SET, &desc));
	EXPECT_EQ(-EPERM, buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, &desc));
	ASSERT_EQ(0, buf_meta(self->rofd, 0, 0, &seen));
	EXPECT_STREQ("first", seen.label);
	EXPECT_EQ(0, map_errno(self->fd, PAGE, RW, MAP_SHARED, 0));
}

TEST_F(seal, sealed_buffer_is_exported_read_only)
{
	int fd;

	ASSERT_EQ(TENSOR_SEAL_WRITE, seal_write(self));
	EXPECT_EQ(-EPERM, buf_export(self->dev, self->buf.handle, 0));
	EXPECT_EQ(-EPERM, buf_export(self->dev, self->buf.handle, TENSOR_EXPORT_DMABUF));
	fd = buf_export_ro(self->dev, self->buf.handle);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, map_errno(fd, BYTES, PROT_READ, MAP_SHARED, 0));
	close(fd);
}

TEST_HARNESS_MAIN
