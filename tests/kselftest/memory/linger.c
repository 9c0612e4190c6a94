// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Pages that are still referenced after their buffer is freed count against the limits until they
 * are free.
 *
 * A page in a pipe stays when its buffer is closed or revoked. Without the charge a process could
 * hold many times its limit: it splices pages into pipes, closes the buffer, and allocates the
 * next.
 */
#include <sys/uio.h>

#include "../include/device.h"
#include "kselftest_harness.h"

#define RW    (PROT_READ | PROT_WRITE)
#define LIMIT (16 * MIB)
#define BYTES (8 * MIB)
#define MOST  64
#define USER  1000

FIXTURE(linger)
{
	int dev;
	char all[64];
	char user[64];
	int ends[MOST][2];
	int pipes;
};

FIXTURE_SETUP(linger)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_TRUE(used_becomes(self->dev, 0));
	read_text(LIMIT_FILE, self->all, sizeof(self->all));
	read_text(USER_LIMIT_FILE, self->user, sizeof(self->user));
	ASSERT_EQ(0, write_text(LIMIT_FILE, "16777216"));
}

static void close_pipes(FIXTURE_DATA(linger) * self)
{
	while (self->pipes) {
		close(self->ends[--self->pipes][0]);
		close(self->ends[self->pipes][1]);
	}
}

/* Freed pages are uncharged after a delay, without another call. */
static bool uncharged_without_a_call(int dev)
{
	int tries;

	for (tries = 0; dev_used(dev); tries++) {
		if (tries == 80)
			return false;
		sleep_ms(50);
	}
	return true;
}

FIXTURE_TEARDOWN(linger)
{
	close_pipes(self);
	EXPECT_EQ(0, write_text(LIMIT_FILE, self->all));
	EXPECT_EQ(0, write_text(USER_LIMIT_FILE, self->user));
	EXPECT_TRUE(uncharged_without_a_call(self->dev));
	close(self->dev);
}

/* A pipe with room for that many pages. */
static int add_pipe(FIXTURE_DATA(linger) * self, uint64_t count)
{
	int *ends = self->ends[self->pipes];

	if (self->pipes == MOST || pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -EMFILE;
	self->pipes++;
	return fcntl(ends[1], F_SETPIPE_SZ, (int)(count * PAGE)) < 0 ? -errno : ends[1];
}

/* Splices a page of every @step bytes into the pipe. */
static int splice_pages(int end, char *at, uint64_t bytes, uint64_t step)
{
	uint64_t i;

	for (i = 0; i < bytes; i += step) {
		struct iovec part = { .iov_base = at + i, .iov_len = PAGE };

		if (vmsplice(end, &part, 1, SPLICE_F_NONBLOCK) != (ssize_t)PAGE)
			return -EPIPE;
	}
	return 0;
}

/* How a buffer is made, which of its pages stay referenced, and how it is freed. */
struct way {
	uint64_t step;
	bool single;
	bool revoke;
};

/* Makes and frees a buffer whose pages stay in a pipe: 0, or the error of ALLOC. */
static int alloc_splice_free(FIXTURE_DATA(linger) * self, const struct way *way)
{
	struct tensor_alloc alloc = alloc_args(BYTES);
	int err, end = add_pipe(self, BYTES / way->step);
	char *at;

	if (end < 0)
		return end;
	alloc.flags = way->single ? TENSOR_ALLOC_ORDERS : 0;
	err = dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc);
	if (err)
		return err;
	at = map_shared(self->dev, BYTES, RW, alloc.mmap_offset);
	if (at == MAP_FAILED)
		return -errno;
	memset(at, 0x5a, BYTES);
	err = splice_pages(end, at, BYTES, way->step);
	if (way->revoke)
		err = err ?: buf_revoke(self->dev, alloc.handle);
	munmap(at, BYTES);
	return err ?: dev_close(self->dev, alloc.handle);
}

/* Repeats that until it fails: @count buffers; returns the error. */
static int repeat_until_refused(FIXTURE_DATA(linger) * self, const struct way *way, int *count)
{
	int err;

	for (*count = 0; *count < 16; ++*count) {
		err = alloc_splice_free(self, way);
		if (err)
			return err;
	}
	return 0;
}

FIXTURE_VARIANT(linger)
{
	struct way way;
};

FIXTURE_VARIANT_ADD(linger, all_pages){ .way = { .step = PAGE } };
FIXTURE_VARIANT_ADD(linger, single_pages){ .way = { .step = PAGE, .single = true } };
FIXTURE_VARIANT_ADD(linger, one_page_of_a_chunk){ .way = { .step = HUGE } };
FIXTURE_VARIANT_ADD(linger, all_pages_revoked){ .way = { .step = PAGE, .revoke = true } };
FIXTURE_VARIANT_ADD(linger, single_pages_revoked){
	.way = { .step = PAGE, .single = true, .revoke = true }
};

TEST_F_TIMEOUT(linger, pages_in_pipes_count_until_they_are_free, 200)
{
	struct tensor_alloc alloc;
	int count, err;

	err = repeat_until_refused(self, &variant->way, &count);
	EXPECT_EQ(-EDQUOT, err);
	EXPECT_GE(LIMIT / BYTES, (uint64_t)count)
	TH_LOG("%d MiB are alive with a limit of 16 MiB, used_bytes says %llu KiB",
	       count * (int)(BYTES / MIB), (unsigned long long)(dev_used(self->dev) / KIB));
	EXPECT_LT(0, count);
	EXPECT_LE(count * BYTES, dev_used(self->dev));
	/* an ALLOC at the limit first frees the lingering pages that have become free */
	close_pipes(self);
	EXPECT_EQ(0, dev_alloc(self->dev, LIMIT, &alloc));
	EXPECT_EQ(LIMIT, dev_used(self->dev));
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
	EXPECT_TRUE(uncharged_without_a_call(self->dev));
}

/* Buffers of one page, never more than one at a time. */
static int splice_single_pages(int dev, int end)
{
	struct tensor_alloc alloc;
	char *at;
	int err = dev_alloc(dev, PAGE, &alloc);

	if (err)
		return err;
	at = map_shared(dev, PAGE, RW, alloc.mmap_offset);
	if (at == MAP_FAILED)
		return -errno;
	err = splice_pages(end, at, PAGE, PAGE);
	munmap(at, PAGE);
	return err ?: dev_close(dev, alloc.handle);
}

FIXTURE(linger_one)
{
	FIXTURE_DATA(linger) o;
};

FIXTURE_SETUP(linger_one)
{
	memset(&self->o, 0, sizeof(self->o));
	self->o.dev = dev_open();
	ASSERT_LE(0, self->o.dev);
	ASSERT_TRUE(used_becomes(self->o.dev, 0));
	read_text(LIMIT_FILE, self->o.all, sizeof(self->o.all));
	read_text(USER_LIMIT_FILE, self->o.user, sizeof(self->o.user));
}

FIXTURE_TEARDOWN(linger_one)
{
	close_pipes(&self->o);
	EXPECT_EQ(0, write_text(LIMIT_FILE, self->o.all));
	EXPECT_EQ(0, write_text(USER_LIMIT_FILE, self->o.user));
	EXPECT_TRUE(uncharged_without_a_call(self->o.dev));
	close(self->o.dev);
}

TEST_F_TIMEOUT(linger_one, pages_of_single_page_buffers_count, 200)
{
	uint64_t most = MIB / PAGE;
	int err = 0, end;
	uint64_t n;

	ASSERT_EQ(0, write_text(LIMIT_FILE, "1048576"));
	end = add_pipe(&self->o, 4 * most);
	ASSERT_LE(0, end);
	for (n = 0; n < 4 * most && !err; n++)
		err = splice_single_pages(self->o.dev, end);
	EXPECT_EQ(-EDQUOT, err);
	EXPECT_EQ(most + 1, n);
	EXPECT_EQ(MIB, dev_used(self->o.dev));
	close_pipes(&self->o);
	end = add_pipe(&self->o, 1);
	EXPECT_EQ(0, splice_single_pages(self->o.dev, end));
}

/* Child: an ordinary user. Number of buffers when one was refused; 100: an error. */
static int repeat_as_user(FIXTURE_DATA(linger) * o)
{
	static const struct way way = { .step = PAGE };
	int count;

	if (setresgid(USER, USER, USER) || setresuid(USER, USER, USER))
		return 101;
	/* an ordinary user's pipes have at most 1 MiB each, and 64 MiB together */
	if (repeat_until_refused(o, &way, &count) != -EDQUOT)
		return 102;
	return count;
}

TEST_F_TIMEOUT(linger_one, single_pages_count_against_the_limit_of_their_user, 200)
{
	struct tensor_alloc alloc;
	pid_t pid;

	ASSERT_EQ(0, write_text("/proc/sys/fs/pipe-max-size", "16777216"));
	ASSERT_EQ(0, write_text("/proc/sys/fs/pipe-user-pages-soft", "0"));
	ASSERT_EQ(0, write_text(USER_LIMIT_FILE, "16777216"));
	pid = fork();
	if (!pid)
		_exit(repeat_as_user(&self->o));
	EXPECT_EQ((int)(LIMIT / BYTES), reap(pid));
	EXPECT_EQ(0, dev_alloc(self->o.dev, LIMIT, &alloc));
	EXPECT_EQ(0, dev_close(self->o.dev, alloc.handle));
}

TEST_HARNESS_MAIN
