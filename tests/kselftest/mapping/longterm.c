// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A long-term pin of a mapping ends, with success or an error, for every kind and size of buffer.
 *
 * Before a long-term pin the core migrates a page out of a CMA area or out of movable memory, and
 * retries as long as it is there. The module's pages cannot be migrated, so a pin of such a page
 * would never end.
 */
#include <linux/io_uring.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "kselftest_harness.h"
#include "../include/xdp.h"

#define RW	 (PROT_READ | PROT_WRITE)
#define SECONDS	 20
#define IS_MEMFD (1U << 31)
#define REFUSED	 77

/* Flags of ALLOC, or a memfd. */
static const struct {
	const char *name;
	uint64_t pages;
	uint32_t flags;
} buffers[] = {
	{ "one page", 1, 0 },
	{ "five pages", 5, 0 },
	{ "single pages", 600, TENSOR_ALLOC_ORDERS },
	{ "huge chunks", 1536, 0 },
	{ "DMA32", 600, TENSOR_ALLOC_DMA32 },
	{ "CONTIG, one page", 1, TENSOR_ALLOC_CONTIG },
	{ "CONTIG, three pages", 3, TENSOR_ALLOC_CONTIG },
	{ "CONTIG, 600 pages", 600, TENSOR_ALLOC_CONTIG },
	{ "CONTIG, 2 MiB", 512, TENSOR_ALLOC_CONTIG },
	{ "CONTIG, 4 MiB", 1024, TENSOR_ALLOC_CONTIG },
	{ "CONTIG, more than 4 MiB", 1025, TENSOR_ALLOC_CONTIG },
	{ "CONTIG, 12 MiB", 3072, TENSOR_ALLOC_CONTIG },
	{ "CONTIG, 12 MiB below 4 GiB", 3072, TENSOR_ALLOC_CONTIG | TENSOR_ALLOC_DMA32 },
	{ "memfd", 600, IS_MEMFD },
};

#define BUFFERS (sizeof(buffers) / sizeof(buffers[0]))

FIXTURE(longterm)
{
	int dev;
	uint64_t used;
};

FIXTURE_SETUP(longterm)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
}

FIXTURE_TEARDOWN(longterm)
{
	EXPECT_TRUE(used_becomes(self->dev, self->used));
	close(self->dev);
}

static void *map_memfd(int dev, uint64_t bytes)
{
	int fd = memfd_new(bytes, 0);
	struct tensor_import import;

	if (fd < 0 || buf_import(dev, fd, &import))
		return MAP_FAILED;
	return map_shared(dev, bytes, RW, import.mmap_offset);
}

/* MAP_FAILED: this kernel has no such buffer. */
static void *map_buffer(int dev, unsigned int i)
{
	uint64_t bytes = buffers[i].pages * PAGE;
	struct tensor_alloc alloc;

	if (buffers[i].flags == IS_MEMFD)
		return map_memfd(dev, bytes);
	alloc = alloc_args(bytes);
	alloc.flags = buffers[i].flags;
	if (dev_call(dev, TENSOR_IOC_ALLOC, &alloc))
		return MAP_FAILED;
	return map_shared(dev, bytes, RW, alloc.mmap_offset);
}

static int pin_ioctl(int dev, void *at, uint64_t bytes)
{
	int64_t handle = buf_pin(dev, at, bytes, 0);

	return handle < 0 ? (int)handle : 0;
}

static int pin_uring(int dev, void *at, uint64_t bytes)
{
	struct io_uring_params params = { 0 };
	struct iovec part = { at, bytes };
	int ring = syscall(SYS_io_uring_setup, 4, &params);

	(void)dev;
	if (ring < 0)
		return -errno;
	return syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &part, 1) < 0 ?
		       -errno :
		       0;
}

static int pin_xdp(int dev, void *at, uint64_t bytes)
{
	int sock = xdp_pin(at, bytes);

	(void)dev;
	return sock < 0 ? sock : 0;
}

/* 0: pinned. REFUSED: an error of ALLOC or of the pin. -SIGALRM: the pin did not end. */
static int pin_in_time(unsigned int i, int (*pin)(int dev, void *at, uint64_t bytes))
{
	pid_t pid = fork();
	void *at;
	int dev;

	if (pid)
		return reap(pid);
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	alarm(SECONDS);
	dev = dev_open();
	at = map_buffer(dev, i);
	if (at == MAP_FAILED)
		_exit(REFUSED);
	_exit(pin(dev, at, buffers[i].pages * PAGE) ? REFUSED : 0);
}

static int pins_without_end(int (*pin)(int dev, void *at, uint64_t bytes))
{
	unsigned int i, failed = 0;
	int got;

	for (i = 0; i < BUFFERS; i++) {
		got = pin_in_time(i, pin);
		if (!got || got == REFUSED)
			continue;
		fprintf(stderr, "# %s: %s\n", buffers[i].name,
			got == -SIGALRM ? "the pin does not end" : "the process died");
		failed++;
	}
	return failed;
}

TEST_F_TIMEOUT(longterm, pin_ioctl_ends, 400)
{
	EXPECT_EQ(0, pins_without_end(pin_ioctl));
}

TEST_F_TIMEOUT(longterm, io_uring_registration_ends, 400)
{
	EXPECT_EQ(0, pins_without_end(pin_uring));
}

TEST_F_TIMEOUT(longterm, af_xdp_registration_ends, 400)
{
	EXPECT_EQ(0, pins_without_end(pin_xdp));
}

/* Buffers exist for long-term use by devices: PIN accepts the memory of every kind. */
TEST_F_TIMEOUT(longterm, allocated_memory_can_be_pinned, 400)
{
	unsigned int i;

	for (i = 0; i < BUFFERS; i++) {
		if (buffers[i].flags == IS_MEMFD || buffers[i].flags & TENSOR_ALLOC_CONTIG)
			continue;
		EXPECT_EQ(0, pin_in_time(i, pin_ioctl)) TH_LOG("%s", buffers[i].name);
	}
}

TEST_HARNESS_MAIN
