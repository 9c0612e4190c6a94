// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Charges for memory that the module did not allocate: memory pinned by PIN, and pages of a memfd
 * that a device has mapped.
 *
 * Both can neither be moved nor swapped out. Both count against the limits of the module, and
 * against RLIMIT_MEMLOCK unless the process has CAP_IPC_LOCK. The arrays that list these pages are
 * charged to the memory cgroup of the process.
 */
#include <sys/resource.h>

#include "../include/cgroup.h"
#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define USER	1000
#define BYTES	(4 * MIB)
#define SPARSE	(128ULL << 30)
#define SECONDS 60

FIXTURE(payer)
{
	int dev;
	int vgem;
	uint64_t used;
	char all[64];
	char user[64];
	char *at;
};

FIXTURE_SETUP(payer)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
	self->vgem = vgem_open();
	read_text(LIMIT_FILE, self->all, sizeof(self->all));
	read_text(USER_LIMIT_FILE, self->user, sizeof(self->user));
	self->at = mmap(NULL, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->at);
	memset(self->at, 1, BYTES);
}

FIXTURE_TEARDOWN(payer)
{
	int dev = dev_open();

	if (self->vgem >= 0)
		close(self->vgem);
	close(self->dev);
	munmap(self->at, BYTES);
	EXPECT_EQ(0, write_text(LIMIT_FILE, self->all));
	EXPECT_EQ(0, write_text(USER_LIMIT_FILE, self->user));
	EXPECT_TRUE(used_becomes(dev, self->used));
	close(dev);
}

/* A dma-buf of a memfd of that size, which nothing else holds, or -errno. */
static int memfd_dmabuf(int dev, uint64_t bytes)
{
	int memfd = memfd_new(bytes, 0), fd;
	struct tensor_import import;

	if (memfd < 0)
		return memfd;
	fd = buf_import(dev, memfd, &import);
	close(memfd);
	if (fd)
		return fd;
	fd = export_dmabuf(dev, import.handle);
	dev_close(dev, import.handle);
	return fd;
}

#define NEEDS_DEVICE(self)                            \
	do {                                          \
		if ((self)->vgem < 0)                 \
			SKIP(return, "no vgem");      \
		if (!vgem_maps())                     \
			SKIP(return, NO_DEVICE_MAPS); \
	} while (0)

/* Maps the memfd for a device: 0 or -errno. @gem: for vgem_close(). */
static int device_maps(int dev, int vgem, uint64_t bytes, uint32_t *gem)
{
	int fd = memfd_dmabuf(dev, bytes), err;

	if (fd < 0)
		return fd;
	err = vgem_import(vgem, fd, gem);
	close(fd);
	return err;
}

static int set_limit(const char *file, uint64_t bytes)
{
	char text[64];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	return write_text(file, text);
}

TEST_F(payer, pin_counts_against_the_limit_of_all)
{
	int64_t first;

	ASSERT_EQ(0, set_limit(LIMIT_FILE, self->used + 2 * MIB));
	first = buf_pin(self->dev, self->at, 2 * MIB, 0);
	ASSERT_LT(0, first);
	EXPECT_EQ(self->used + 2 * MIB, dev_used(self->dev));
	EXPECT_EQ(-EDQUOT, buf_pin(self->dev, self->at, PAGE, 0));
	EXPECT_EQ(-EDQUOT, buf_pin(self->dev, self->at + 2 * MIB, PAGE, TENSOR_PIN_RDONLY));
	EXPECT_EQ(self->used + 2 * MIB, dev_used(self->dev));
	EXPECT_EQ(0, dev_close(self->dev, first));
	EXPECT_EQ(self->used, dev_used(self->dev));
	EXPECT_EQ(-EFAULT, buf_pin(self->dev, (void *)PAGE, PAGE, 0));
	EXPECT_EQ(self->used, dev_used(self->dev));
}

/* Child: an ordinary user without a limit on locked memory. */
static int pin_as_user(int dev, char *at)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	int64_t first;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setresgid(USER, USER, USER) ||
	    setresuid(USER, USER, USER))
		return 1;
	first = buf_pin(dev, at, MIB, 0);
	if (first < 0)
		return 2;
	if (buf_pin(dev, at, PAGE, 0) != -EDQUOT)
		return 3;
	return dev_close(dev, first) || buf_pin(dev, at, MIB, 0) < 0 ? 4 : 0;
}

TEST_F(payer, pin_counts_against_the_limit_of_its_user)
{
	pid_t pid;

	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, MIB));
	pid = fork();
	if (!pid)
		_exit(pin_as_user(self->dev, self->at));
	EXPECT_EQ(0, reap(pid));
}

TEST_F(payer, memfd_counts_while_a_device_has_it_mapped)
{
	uint32_t gem;

	NEEDS_DEVICE(self);
	ASSERT_EQ(0, device_maps(self->dev, self->vgem, BYTES, &gem));
	EXPECT_EQ(self->used + BYTES, dev_used(self->dev));
	EXPECT_EQ(0, vgem_close(self->vgem, gem));
	EXPECT_TRUE(used_becomes(self->dev, self->used));
}

/* Before, its pages can be swapped out, so they are not charged. */
TEST_F(payer, memfd_is_not_charged_before_a_device_maps_it)
{
	int fd = memfd_dmabuf(self->dev, BYTES);
	uint32_t gem;

	ASSERT_LE(0, fd);
	EXPECT_EQ(self->used, dev_used(self->dev));
	if (self->vgem >= 0 && !vgem_maps()) {
		EXPECT_EQ(0, vgem_import(self->vgem, fd, &gem));
		EXPECT_EQ(self->used, dev_used(self->dev));
	}
	close(fd);
}

TEST_F(payer, memfd_beyond_the_limit_is_refused_to_a_device)
{
	uint32_t gem;

	NEEDS_DEVICE(self);
	ASSERT_EQ(0, set_limit(LIMIT_FILE, self->used + BYTES - PAGE));
	EXPECT_EQ(-EDQUOT, device_maps(self->dev, self->vgem, BYTES, &gem));
	EXPECT_TRUE(used_becomes(self->dev, self->used));
	EXPECT_EQ(0, device_maps(self->dev, self->vgem, BYTES - PAGE, &gem));
}

/* Child: an ordinary user maps a memfd for a device: 0 or the error. */
static int map_as_user(int dev, int vgem, uint64_t locked, uint64_t bytes)
{
	struct rlimit limit = { locked, locked };
	uint32_t gem;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setresgid(USER, USER, USER) ||
	    setresuid(USER, USER, USER))
		return 255;
	return -device_maps(dev, vgem, bytes, &gem);
}

static int mapped_as_user(FIXTURE_DATA(payer) * self, uint64_t locked, uint64_t bytes)
{
	pid_t pid = fork();

	if (!pid)
		_exit(map_as_user(self->dev, self->vgem, locked, bytes));
	return -reap(pid);
}

TEST_F(payer, memfd_counts_against_memlock)
{
	NEEDS_DEVICE(self);
	EXPECT_EQ(-ENOMEM, mapped_as_user(self, 16 * PAGE, 17 * PAGE));
	EXPECT_EQ(0, mapped_as_user(self, 16 * PAGE, 16 * PAGE));
}

TEST_F(payer, memfd_counts_against_the_limit_of_its_user)
{
	NEEDS_DEVICE(self);
	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, MIB));
	EXPECT_EQ(-EDQUOT, mapped_as_user(self, RLIM_INFINITY, MIB + PAGE));
	EXPECT_EQ(0, mapped_as_user(self, RLIM_INFINITY, MIB));
}

/* Made before the cgroup is entered. */
struct sparse {
	int vgem;
	int fd;
};

/* Child, in a small cgroup: 0 if mapping the memfd for the device fails with the expected error. */
static int map_sparse(const void *arg)
{
	const struct sparse *sparse = arg;
	uint32_t gem;
	int err;

	alarm(SECONDS);
	err = vgem_import(sparse->vgem, sparse->fd, &gem);
	return err == -ENOMEM || err == -EDQUOT ? 0 : 1;
}

/* Records the least free memory in KiB, until it is killed. */
static void watch_free(int64_t *least)
{
	for (;;) {
		int64_t now = memory_free_now();

		if (now < *least)
			*least = now;
		usleep(2000);
	}
}

/* The greatest decrease of free memory during the call, in KiB. */
static int64_t taken_meanwhile(const struct sparse *sparse, int *got, int64_t *kills)
{
	int64_t *least = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0), before;
	pid_t pid;

	before = memory_free();
	*least = before;
	pid = fork();
	if (!pid)
		watch_free(least);
	*got = in_cgroup_kills("16777216", map_sparse, sparse, kills);
	kill(pid, SIGKILL);
	reap(pid);
	before -= *least;
	munmap(least, PAGE);
	return before;
}

/* With the default limits, and with limits that permit it. */
TEST_F_TIMEOUT(payer, sparse_memfd_takes_no_memory_outside_the_cgroup, 300)
{
	static const uint64_t limits[] = { 0, 1ULL << 40 };
	struct sparse sparse = { .vgem = self->vgem };
	int64_t kills, taken;
	int i, got;

	NEEDS_DEVICE(self);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, set_limit(LIMIT_FILE, limits[i]));
		ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, limits[i]));
		sparse.fd = memfd_dmabuf(self->dev, SPARSE);
		ASSERT_LE(0, sparse.fd);
		taken = taken_meanwhile(&sparse, &got, &kills);
		EXPECT_EQ(0, got) TH_LOG("limit %llu", (unsigned long long)limits[i]);
		EXPECT_EQ(0, kills);
		/* the limit of the cgroup, and what the child and the machine use meanwhile */
		EXPECT_GE((int64_t)(64 * MIB / KIB), taken)
		TH_LOG("%lld MiB were taken", (long long)taken / 1024);
		close(sparse.fd);
	}
}

TEST_HARNESS_MAIN
