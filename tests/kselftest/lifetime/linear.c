// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Closing n handles, files or clients takes time linear in n: it happens in exit(), where no signal
 * interrupts it.
 *
 * The test measures the CPU time of the closing thread for n and for 4 n. It may grow by 4, and by
 * FACTOR more for caches and noise; quadratic time would grow by 16.
 */
#include <sys/resource.h>

#include "../include/device.h"
#include "kselftest_harness.h"

#define TIMES  4
#define FACTOR 1.7
#define TRIES  3

FIXTURE(linear)
{
	int dev;
};

FIXTURE_SETUP(linear)
{
	/*
	 * times of a guest on a busy host are meaningless: `make test-linear` counts instructions
	 */
	if (!getenv("TENSOR_ICOUNT"))
		SKIP(_exit(255), "the clock does not count instructions");
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 65536, 65536 }));
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(linear)
{
	EXPECT_TRUE(used_becomes(self->dev, 0));
	close(self->dev);
}

/* CPU time of this thread, which other tasks do not lengthen. */
static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/*
 * Makes n objects and ends them; returns the seconds that the end took, or less than 0 on failure.
 */
typedef double (*end_fn)(unsigned int n);

/* The minimum of several tries, or the first that is not above @enough. */
static double least(end_fn end, unsigned int n, double enough)
{
	double best = 1e9, seconds;
	int i;

	for (i = 0; i < TRIES && best > enough; i++) {
		seconds = end(n);
		if (seconds < 0)
			return seconds;
		best = seconds < best ? seconds : best;
	}
	return best;
}

static void grows_at_most_linearly(struct __test_metadata *_metadata, end_fn end, unsigned int n)
{
	double few, many;

	/* warm up: caches of the allocator, translated code of the emulated processor */
	ASSERT_LE(0, end(n / 4));
	few = least(end, n, 0);
	ASSERT_LT(0, few);
	many = least(end, TIMES * n, TIMES * FACTOR * few);
	TH_LOG("%u: %.1f ms, %u: %.1f ms, factor %.1f", n, few * 1e3, TIMES * n, many * 1e3,
	       many / few);
	EXPECT_LE(0, many);
	EXPECT_TRUE(many <= TIMES * FACTOR * few);
}

static double closing(const int *fds, unsigned int n)
{
	double begin = cpu_seconds();
	unsigned int i;

	for (i = 0; i < n; i++)
		close(fds[i]);
	return cpu_seconds() - begin;
}

/* Handles of one buffer in one client. */
static double end_imports(unsigned int n)
{
	int fd = buf_new_fd(PAGE), dev = dev_open();
	struct tensor_import import;
	double seconds;
	unsigned int i;

	for (i = 0; i < n; i++)
		if (buf_import(dev, fd, &import))
			return -1;
	seconds = closing(&dev, 1);
	close(fd);
	return seconds;
}

TEST_F_TIMEOUT(linear, end_of_n_imports_of_one_fd, 120)
{
	grows_at_most_linearly(_metadata, end_imports, 3000);
}

/* The same, each closed by a CLOSE of its own. */
static double end_imports_singly(unsigned int n)
{
	uint32_t *handles = calloc(n, sizeof(*handles));
	int fd = buf_new_fd(PAGE), dev = dev_open();
	struct tensor_import import;
	double begin;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (buf_import(dev, fd, &import))
			return -1;
		handles[i] = import.handle;
	}
	begin = cpu_seconds();
	for (i = 0; i < n; i++)
		if (dev_close(dev, handles[i]))
			return -1;
	begin = cpu_seconds() - begin;
	free(handles);
	close(dev);
	close(fd);
	return begin;
}

TEST_F_TIMEOUT(linear, close_of_n_imports_of_one_fd, 120)
{
	grows_at_most_linearly(_metadata, end_imports_singly, 3000);
}

/*
 * Handles that cannot be merged, because each reaches another page. @other: a client that gets as
 * many, or -1.
 */
static double end_of_parts(unsigned int n, int other)
{
	int dev = dev_open(), user = dev_open(), fd;
	struct tensor_import import;
	struct tensor_alloc alloc;
	double seconds;
	unsigned int i;

	if (dev_alloc(dev, n * PAGE, &alloc))
		return -1;
	for (i = 0; i < n; i++) {
		fd = buf_share_range(dev, alloc.handle, 0, i * PAGE, PAGE);
		if (fd < 0 || buf_import(user, fd, &import) ||
		    (other >= 0 && buf_import(other, fd, &import)))
			return -1;
		close(fd);
	}
	seconds = closing(&user, 1);
	close(dev);
	return seconds;
}

static double end_parts(unsigned int n)
{
	return end_of_parts(n, -1);
}

TEST_F_TIMEOUT(linear, end_of_n_handles_of_parts_of_one_buffer, 120)
{
	grows_at_most_linearly(_metadata, end_parts, 1000);
}

static double end_parts_beside(unsigned int n)
{
	int other = dev_open();
	double seconds = end_of_parts(n, other);

	close(other);
	return seconds;
}

TEST_F_TIMEOUT(linear, end_of_n_handles_of_parts_in_each_of_two_clients, 120)
{
	grows_at_most_linearly(_metadata, end_parts_beside, 500);
}

/*
 * Exported fds, each imported by another client. @parts: all of one buffer, a page each; otherwise
 * a buffer of one page each.
 */
static double end_exports(unsigned int n, bool parts)
{
	int dev = dev_open(), user = dev_open(), *fds = calloc(n, sizeof(int));
	struct tensor_import import;
	struct tensor_alloc alloc;
	double seconds;
	unsigned int i;

	if (dev_alloc(dev, parts ? n * PAGE : PAGE, &alloc))
		return -1;
	for (i = 0; i < n; i++) {
		fds[i] = parts ? buf_share_range(dev, alloc.handle, 0, i * PAGE, PAGE) :
				 buf_export_rw(dev, alloc.handle);
		if (fds[i] < 0 || buf_import(user, fds[i], &import))
			return -1;
	}
	seconds = closing(fds, n);
	free(fds);
	close(user);
	close(dev);
	return seconds;
}

/* One handle with n uses. */
static double end_fds(unsigned int n)
{
	return end_exports(n, false);
}

TEST_F_TIMEOUT(linear, close_of_n_fds_while_one_client_has_n_imports, 120)
{
	grows_at_most_linearly(_metadata, end_fds, 1000);
}

/* n handles. */
static double end_fds_of_parts(unsigned int n)
{
	return end_exports(n, true);
}

TEST_F_TIMEOUT(linear, close_of_n_fds_while_one_client_has_n_parts, 120)
{
	grows_at_most_linearly(_metadata, end_fds_of_parts, 600);
}

/* Clients with one handle to the same buffer each. */
static double end_clients(unsigned int n)
{
	int fd = buf_new_fd(PAGE), *devs = calloc(n, sizeof(int));
	struct tensor_import import;
	double seconds;
	unsigned int i;

	for (i = 0; i < n; i++) {
		devs[i] = dev_open();
		if (devs[i] < 0 || buf_import(devs[i], fd, &import))
			return -1;
	}
	seconds = closing(devs, n);
	free(devs);
	close(fd);
	return seconds;
}

TEST_F_TIMEOUT(linear, end_of_n_clients_of_one_buffer, 120)
{
	grows_at_most_linearly(_metadata, end_clients, 500);
}

/* Fds closed while as many clients have a handle. */
static double end_fds_beside_clients(unsigned int n)
{
	int dev = dev_open(), *fds = calloc(n, sizeof(int)), *devs = calloc(n, sizeof(int));
	struct tensor_import import;
	struct tensor_alloc alloc;
	double seconds;
	unsigned int i;

	if (dev_alloc(dev, PAGE, &alloc))
		return -1;
	for (i = 0; i < n; i++) {
		fds[i] = buf_export_rw(dev, alloc.handle);
		devs[i] = dev_open();
		if (fds[i] < 0 || devs[i] < 0 || buf_import(devs[i], fds[i], &import))
			return -1;
	}
	seconds = closing(fds, n);
	closing(devs, n);
	free(devs);
	free(fds);
	close(dev);
	return seconds;
}

TEST_F_TIMEOUT(linear, close_of_n_fds_while_n_clients_have_a_handle, 120)
{
	grows_at_most_linearly(_metadata, end_fds_beside_clients, 400);
}

/* Buffers of one page, each held by a handle only. */
static double end_handles(unsigned int n)
{
	struct tensor_alloc alloc;
	int dev = dev_open();
	unsigned int i;

	for (i = 0; i < n; i++)
		if (dev_alloc(dev, PAGE, &alloc))
			return -1;
	return closing(&dev, 1);
}

TEST_F_TIMEOUT(linear, end_of_n_buffers_of_one_client, 150)
{
	grows_at_most_linearly(_metadata, end_handles, 3000);
}

/* The number of handles of a program with many tensors. */
TEST_F_TIMEOUT(linear, end_of_a_hundred_thousand_handles, 300)
{
	double few = least(end_handles, 10000, 0);
	double many = least(end_handles, 100000, 10 * FACTOR * few);

	ASSERT_LT(0, few);
	ASSERT_LT(0, many);
	TH_LOG("10000: %.1f ms, 100000: %.1f ms", few * 1e3, many * 1e3);
	EXPECT_TRUE(many <= 10 * FACTOR * few);
}

/* A client needs one handle for the same rights and range, however often it imports them. */
TEST_F(linear, second_import_returns_the_same_handle)
{
	int dev = dev_open(), fd = buf_new_fd(4 * PAGE), i;
	struct tensor_import first, again;
	struct tensor_info info;

	ASSERT_EQ(0, buf_import(dev, fd, &first));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, buf_import(dev, fd, &again));
		EXPECT_EQ(first.handle, again.handle);
		EXPECT_EQ(first.mmap_offset, again.mmap_offset);
		EXPECT_EQ(first.bytes, again.bytes);
	}
	ASSERT_EQ(0, buf_info(dev, first.handle, &info));
	EXPECT_EQ(1, info.handles);
	close(fd);
	close(dev);
}

TEST_F(linear, n_imports_need_n_closes)
{
	int dev = dev_open(), fd = buf_new_fd(PAGE), i;
	struct tensor_import import;
	struct tensor_info info;
	uint32_t handle = 0;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, buf_import(dev, fd, &import));
		handle = handle ? handle : import.handle;
		EXPECT_EQ(handle, import.handle);
	}
	close(fd);
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(0, buf_info(dev, handle, &info));
		EXPECT_EQ(PAGE, dev_used(self->dev));
		EXPECT_EQ(0, dev_close(dev, handle));
	}
	EXPECT_EQ(-ENOENT, buf_info(dev, handle, &info));
	EXPECT_EQ(-ENOENT, dev_close(dev, handle));
	EXPECT_EQ(0, dev_used(self->dev));
	close(dev);
}

/* Whether the handles of ALLOC and of an import are one or two, each has to be closed. */
TEST_F(linear, import_by_the_maker_needs_its_own_close)
{
	struct tensor_import import;
	struct tensor_alloc alloc;
	struct tensor_info info;
	int dev = dev_open(), fd;

	ASSERT_EQ(0, dev_alloc(dev, PAGE, &alloc));
	fd = buf_export_rw(dev, alloc.handle);
	ASSERT_EQ(0, buf_import(dev, fd, &import));
	close(fd);
	EXPECT_EQ(0, dev_close(dev, alloc.handle));
	EXPECT_EQ(0, buf_info(dev, import.handle, &info));
	EXPECT_EQ(PAGE, dev_used(self->dev));
	EXPECT_EQ(0, dev_close(dev, import.handle));
	EXPECT_EQ(0, dev_used(self->dev));
	EXPECT_EQ(-ENOENT, buf_info(dev, import.handle, &info));
	close(dev);
}

/* Handles with different rights or ranges are not merged. */
TEST_F(linear, import_with_other_rights_or_range_makes_another_handle)
{
	struct tensor_import all, ro, part, other;
	struct tensor_alloc alloc;
	int dev = dev_open(), user = dev_open(), fd[4], i;

	ASSERT_EQ(0, dev_alloc(dev, 8 * PAGE, &alloc));
	fd[0] = buf_export_rw(dev, alloc.handle);
	fd[1] = buf_export_ro(dev, alloc.handle);
	fd[2] = buf_share_range(dev, alloc.handle, 0, PAGE, 2 * PAGE);
	fd[3] = buf_share_range(dev, alloc.handle, 0, 2 * PAGE, 2 * PAGE);
	ASSERT_EQ(0, buf_import(user, fd[0], &all));
	ASSERT_EQ(0, buf_import(user, fd[1], &ro));
	ASSERT_EQ(0, buf_import(user, fd[2], &part));
	ASSERT_EQ(0, buf_import(user, fd[3], &other));
	EXPECT_NE(all.handle, ro.handle);
	EXPECT_NE(all.handle, part.handle);
	EXPECT_NE(part.handle, other.handle);
	EXPECT_EQ(-EACCES,
		  map_errno(user, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ro.mmap_offset));
	EXPECT_EQ(-EINVAL, map_errno(user, 3 * PAGE, PROT_READ, MAP_SHARED, part.mmap_offset));
	EXPECT_EQ(0, dev_close(user, all.handle));
	EXPECT_EQ(0, map_errno(user, PAGE, PROT_READ, MAP_SHARED, ro.mmap_offset));
	for (i = 0; i < 4; i++)
		close(fd[i]);
	close(user);
	close(dev);
}

TEST_HARNESS_MAIN
