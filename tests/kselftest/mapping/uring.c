// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fixed buffers of io_uring, which are long-term pins, in a mapping of a buffer: reads and writes
 * of a file through them. Kernel 6.1 permits this for shmem and hugetlb only, and refuses others.
 */
#include <linux/io_uring.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../include/fixture.h"
#include "kselftest_harness.h"

#define BYTES	(2 * HUGE)
#define ENTRIES 4

FIXTURE(uring)
{
	int dev;
	uint64_t used;
	struct tensor_alloc buf;
	unsigned char *at;
	int ring;
	int err;
	int file;
	struct io_uring_params params;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
};

static void *ring_map(int ring, size_t bytes, uint64_t offset)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, offset);
}

FIXTURE_SETUP(uring)
{
	struct io_uring_params *p = &self->params;
	struct iovec iov;

	self->at = setup_mapped_buf(&self->dev, &self->used, &self->buf, BYTES);
	ASSERT_NE(MAP_FAILED, self->at);
	self->file = open("/tmp/uring", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ASSERT_LE(0, self->file);
	self->ring = syscall(SYS_io_uring_setup, ENTRIES, p);
	self->err = self->ring < 0 ? -errno : 0;
	if (self->err)
		return;
	self->sq =
		ring_map(self->ring, p->sq_off.array + ENTRIES * sizeof(int), IORING_OFF_SQ_RING);
	self->cq = ring_map(self->ring,
			    p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe),
			    IORING_OFF_CQ_RING);
	self->sqes = ring_map(self->ring, ENTRIES * sizeof(*self->sqes), IORING_OFF_SQES);
	ASSERT_NE(MAP_FAILED, self->sq);
	ASSERT_NE(MAP_FAILED, self->cq);
	ASSERT_NE(MAP_FAILED, (void *)self->sqes);
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	iov = (struct iovec){ self->at, BYTES };
	if (syscall(SYS_io_uring_register, self->ring, IORING_REGISTER_BUFFERS, &iov, 1) < 0)
		self->err = -errno;
}

FIXTURE_TEARDOWN(uring)
{
	if (self->ring >= 0) {
		munmap(self->sq, self->params.sq_off.array + ENTRIES * sizeof(int));
		munmap(self->cq, self->params.cq_off.cqes +
					 self->params.cq_entries * sizeof(struct io_uring_cqe));
		munmap(self->sqes, ENTRIES * sizeof(*self->sqes));
		close(self->ring);
	}
	close(self->file);
	unlink("/tmp/uring");
	munmap(self->at, BYTES);
	EXPECT_TRUE(teardown_buf(self->dev, self->used, self->buf.handle));
}

#define WITH_FIXED_BUFFERS(self)                                                            \
	do {                                                                                \
		if ((self)->err == -ENOSYS)                                                 \
			SKIP(return, "no io_uring");                                        \
		if ((self)->err == -EOPNOTSUPP)                                             \
			SKIP(return, "this kernel's io_uring pins only shmem and hugetlb"); \
		ASSERT_EQ(0, (self)->err);                                                  \
	} while (0)

/* One operation, from submission to completion: number of bytes or -errno. */
static int fixed(FIXTURE_DATA(uring) * self, int op, void *at, unsigned int bytes, uint64_t offset)
{
	unsigned int *tail = (unsigned int *)(self->sq + self->params.sq_off.tail);
	unsigned int *array = (unsigned int *)(self->sq + self->params.sq_off.array);
	unsigned int *head = (unsigned int *)(self->cq + self->params.cq_off.head);
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(self->cq + self->params.cq_off.cqes);
	unsigned int i = *tail % ENTRIES, seen = *head;
	int result;

	self->sqes[i] = (struct io_uring_sqe){
		.opcode = op,
		.fd = self->file,
		.off = offset,
		.addr = (unsigned long)at,
		.len = bytes,
		.buf_index = 0,
	};
	array[i] = i;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, self->ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -errno;
	result = cqes[seen % self->params.cq_entries].res;
	__atomic_store_n(head, seen + 1, __ATOMIC_RELEASE);
	return result;
}

static void fill(unsigned char *at, size_t bytes, unsigned int seed)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		at[i] = (seed + i) * 2654435761U >> 24;
}

/*
 * Data written through the ring is found in the file by another way of reading, across a chunk
 * boundary.
 */
TEST_F(uring, write_from_a_fixed_buffer_reaches_the_file)
{
	static unsigned char seen[64 * KIB];
	unsigned char *from = self->at + HUGE - 32 * KIB;

	WITH_FIXED_BUFFERS(self);
	fill(from, sizeof(seen), 7);
	ASSERT_EQ((int)sizeof(seen), fixed(self, IORING_OP_WRITE_FIXED, from, sizeof(seen), PAGE));
	ASSERT_EQ((ssize_t)sizeof(seen), pread(self->file, seen, sizeof(seen), PAGE));
	EXPECT_EQ(0, memcmp(seen, from, sizeof(seen)));
}

TEST_F(uring, read_into_a_fixed_buffer_has_the_content_of_the_file)
{
	static unsigned char wanted[64 * KIB];
	unsigned char *to = self->at + HUGE - 32 * KIB;

	WITH_FIXED_BUFFERS(self);
	fill(wanted, sizeof(wanted), 9);
	ASSERT_EQ((ssize_t)sizeof(wanted), pwrite(self->file, wanted, sizeof(wanted), 0));
	ASSERT_EQ((int)sizeof(wanted), fixed(self, IORING_OP_READ_FIXED, to, sizeof(wanted), 0));
	EXPECT_EQ(0, memcmp(wanted, to, sizeof(wanted)));
	EXPECT_EQ(0, to[-1]);
	EXPECT_EQ(0, to[sizeof(wanted)]);
}

/* Another process that maps the same buffer sees what the ring read into it. */
TEST_F(uring, another_mapping_sees_what_the_ring_read)
{
	int fd = buf_export_ro(self->dev, self->buf.handle);
	unsigned char *other = map_shared(fd, BYTES, PROT_READ, 0);

	ASSERT_NE(MAP_FAILED, other);
	close(fd);
	if (!self->err) {
		EXPECT_EQ(4, pwrite(self->file, "ring", 4, 0));
		EXPECT_EQ(4, fixed(self, IORING_OP_READ_FIXED, self->at + PAGE, 4, 0));
		EXPECT_EQ(0, memcmp(other + PAGE, "ring", 4));
	}
	munmap(other, BYTES);
	WITH_FIXED_BUFFERS(self);
}

TEST_F(uring, pin_is_shown_in_info_and_refuses_the_seal)
{
	struct tensor_info info;

	WITH_FIXED_BUFFERS(self);
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(BYTES, info.dma_bytes);
	EXPECT_EQ(-EBUSY, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
}

/* After munmap() and close() the ring still uses the pages, which no other buffer gets. */
TEST_F(uring, ring_outlives_mapping_and_handle)
{
	unsigned char seen[16];
	int dev = dev_open();

	WITH_FIXED_BUFFERS(self);
	memset(self->at, 0x5a, BYTES);
	munmap(self->at, BYTES);
	EXPECT_EQ(0, dev_close(self->dev, self->buf.handle));
	self->buf.handle = 0;
	ASSERT_EQ(0, overwrite_new_buffers(dev, BYTES, 8));
	/* the address only identifies a place in the fixed buffer */
	EXPECT_EQ(16, fixed(self, IORING_OP_WRITE_FIXED, self->at + HUGE, 16, 0));
	EXPECT_EQ(16, pread(self->file, seen, sizeof(seen), 0));
	EXPECT_TRUE(all_bytes(seen, 0x5a, sizeof(seen)));
	close(dev);
	self->at = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

TEST_HARNESS_MAIN
