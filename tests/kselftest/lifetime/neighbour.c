// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * How long a process waits for its calls while another process does something slow.
 *
 * The reference is the time of memfd_create(), ftruncate() and fallocate() of the same process at
 * the same time: it includes the waits that the machine and the core cause, and no lock of the
 * module.
 */
#include "../include/cgroup.h"
#include "../include/family.h"
#include "../include/fixture.h"
#include "kselftest_harness.h"

#define FULL_MS	  12000
#define REVOKE_MS 3000
#define ROUNDS	  3
#define LEAST_US  50000
#define MAPPINGS  60000
#define MAPPERS	  4

FIXTURE(neighbour)
{
	int dev;
	uint64_t used;
	struct tensor_alloc buf;
	pid_t child[4];
	int children;
};

FIXTURE_SETUP(neighbour)
{
	ASSERT_EQ(0, setup_buf(&self->dev, &self->used, &self->buf, PAGE));
}

static void end_children(FIXTURE_DATA(neighbour) * self)
{
	while (self->children) {
		pid_t pid = self->child[--self->children];

		/* with its children */
		kill(-pid, SIGKILL);
		reap(pid);
	}
}

FIXTURE_TEARDOWN(neighbour)
{
	end_children(self);
	cgroup_remove();
	EXPECT_TRUE(teardown_buf(self->dev, self->used, self->buf.handle));
}

/* The longest and the second longest wait, in microseconds. */
struct wait {
	uint64_t longest;
	uint64_t second;
};

/* Waits for calls of the module (ALLOC with CLOSE, open() and EXPORT), and for those on a memfd. */
struct waits {
	struct wait ours, memfd;
};

static void note(struct wait *wait, uint64_t since)
{
	uint64_t took = now_us() - since;

	if (took > wait->longest) {
		wait->second = wait->longest;
		wait->longest = took;
	} else if (took > wait->second) {
		wait->second = took;
	}
}

static int use_memfd(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC), err;

	err = ftruncate(fd, PAGE) || fallocate(fd, 0, 0, PAGE) ? -errno : 0;
	return close(fd) ? -errno : err;
}

static int use_alloc(int dev)
{
	struct tensor_alloc alloc;

	return dev_alloc(dev, PAGE, &alloc) ?: dev_close(dev, alloc.handle);
}

/* Makes each call in turn for @ms: 0, or the error of one that failed. */
static int measure(int dev, uint32_t handle, uint64_t ms, struct waits *waits)
{
	uint64_t end = now_us() + ms * 1000, since;
	int err = 0;

	memset(waits, 0, sizeof(*waits));
	while (!err && now_us() < end) {
		since = now_us();
		err = use_alloc(dev);
		note(&waits->ours, since);
		since = now_us();
		err = err ?: close(dev_open());
		note(&waits->ours, since);
		since = now_us();
		err = err ?: close(export_fd(dev, handle));
		note(&waits->ours, since);
		since = now_us();
		err = err ?: use_memfd();
		note(&waits->memfd, since);
	}
	return err;
}

static void print_waits(const struct waits *w)
{
	fprintf(stderr, "# longest waits: ours %llu us, %llu us, a memfd's %llu us, %llu us\n",
		(unsigned long long)w->ours.longest, (unsigned long long)w->ours.second,
		(unsigned long long)w->memfd.longest, (unsigned long long)w->memfd.second);
}

static bool short_enough(uint64_t ours, uint64_t memfd)
{
	return ours <= (5 * memfd > LEAST_US ? 5 * memfd : LEAST_US);
}

/* Child: fills the cgroup with single pages, and continues at its limit. */
static void fill_repeatedly(void)
{
	struct tensor_alloc alloc;
	int dev = dev_open();
	uint32_t next = 1;

	for (;;) {
		if (dev_alloc(dev, PAGE, &alloc))
			dev_close(dev, next++);
	}
}

/* Child: restarts the process that the OOM killer kills. */
static void restart_filling(void)
{
	pid_t pid;

	setpgid(0, 0);
	for (;;) {
		pid = fork();
		if (!pid) {
			if (!fault_in_process() && !cgroup_enter())
				fill_repeatedly();
			_exit(1);
		}
		reap(pid);
	}
}

static void begin(FIXTURE_DATA(neighbour) * self, void (*work)(void))
{
	pid_t pid = fork();

	if (!pid)
		work();
	self->child[self->children++] = pid;
	setpgid(pid, pid);
}

/*
 * The calls of this process consume ids. An xarray needs a new node every 64 ids, so the client in
 * the full cgroup often has to allocate it.
 */
TEST_F_TIMEOUT(neighbour, calls_do_not_wait_for_a_client_in_a_full_cgroup, 200)
{
	struct tensor_query query;
	struct waits waits;
	int i;

	ASSERT_EQ(0, dev_query(self->dev, &query));
	if (!(query.features & TENSOR_FEATURE_MEMCG))
		SKIP(return, "no memory cgroups");
	ASSERT_EQ(0, cgroup_make("1048576"));
	begin(self, restart_filling);
	for (i = 0; cgroup_bytes() < (int64_t)(512 * KIB) && i < 200; i++)
		sleep_ms(50);
	ASSERT_EQ(0, measure(self->dev, self->buf.handle, FULL_MS, &waits));
	print_waits(&waits);
	/* not the longest: the host may preempt the guest once at any moment */
	EXPECT_TRUE(short_enough(waits.ours.second, waits.memfd.second));
	EXPECT_EQ(0, cgroup_kills());
	end_children(self);
}

static int revoked_dev;
static uint32_t revoked_handle;

/* Child: dumps all buffers in a loop. */
static void dump_repeatedly(void)
{
	struct nl_sock *sock;
	int family;

	setpgid(0, 0);
	sock = nl_open(&family);
	for (;;)
		dump(sock, family, TENSOR_CMD_BUF_GET);
}

/*
 * A debug kernel is some hundred times slower per mapping, so fewer of them make REVOKE take as
 * long.
 */
static bool debug_kernel(void)
{
	return !access("/sys/kernel/debug/kmemleak", F_OK);
}

static int mappers(void)
{
	return debug_kernel() ? 1 : MAPPERS;
}

static int mappings(void)
{
	return debug_kernel() ? MAPPINGS / 6 : MAPPINGS;
}

/* Maps a page as often as a process may, or as often as a debug kernel can in the same time. */
static int map_often(int fd)
{
	int i;

	for (i = 0; i < mappings(); i++) {
		if (mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0) == MAP_FAILED)
			return 1;
	}
	return 0;
}

/* Child: makes these mappings, forks more such children, and stays. */
static void mapper(int pipe, int fd)
{
	char byte = map_often(fd) ? 'e' : 'x';
	int i;

	for (i = 1; i < mappers() && byte == 'x'; i++) {
		if (!fork())
			break;
	}
	if (write(pipe, &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* A buffer with mappings() mappings in each of mappers() processes: whether that worked. */
static bool map_everywhere(FIXTURE_DATA(neighbour) * self, struct tensor_alloc *alloc)
{
	int ends[2], fd, i;
	char byte = 0;
	pid_t pid;

	if (pipe(ends) || dev_alloc(self->dev, PAGE, alloc))
		return false;
	revoked_dev = self->dev;
	revoked_handle = alloc->handle;
	fd = export_fd(self->dev, alloc->handle);
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		mapper(ends[1], fd);
	}
	self->child[self->children++] = pid;
	setpgid(pid, pid);
	close(fd);
	for (i = 0; i < mappers(); i++) {
		if (read(ends[0], &byte, 1) != 1 || byte != 'x')
			return false;
	}
	close(ends[0]);
	close(ends[1]);
	return true;
}

/* Child: revokes after a delay. Its exit status is the duration in hundredths of a second. */
static pid_t revoke_soon(void)
{
	pid_t pid = fork();
	uint64_t since;

	if (pid)
		return pid;
	sleep_ms(500);
	since = now_us();
	if (buf_revoke(revoked_dev, revoked_handle))
		_exit(255);
	since = (now_us() - since) / 10000;
	_exit(since < 250 ? since : 250);
}

/*
 * Waits until the mappings of the exited processes are gone, because that would disturb the next
 * measurement.
 */
static void wait_unmapped(int dev, uint32_t handle)
{
	struct tensor_info info;
	int tries;

	for (tries = 0; tries < 600; tries++) {
		if (buf_info(dev, handle, &info) || !info.mappings)
			return;
		sleep_ms(50);
	}
}

/*
 * A call waits at most once for each REVOKE, so the longest wait of each round counts, and most of
 * the rounds must be good.
 */
TEST_F_TIMEOUT(neighbour, calls_do_not_wait_for_a_dump_during_a_revocation, 400)
{
	int i, took, good = 0, counted = 0;
	struct tensor_alloc alloc;
	struct waits waits;
	pid_t pid;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_TRUE(map_everywhere(self, &alloc));
		begin(self, dump_repeatedly);
		pid = revoke_soon();
		ASSERT_EQ(0, measure(self->dev, self->buf.handle, REVOKE_MS, &waits));
		took = reap(pid);
		ASSERT_NE(255, took);
		end_children(self);
		wait_unmapped(self->dev, alloc.handle);
		ASSERT_EQ(0, dev_close(self->dev, alloc.handle));
		fprintf(stderr, "# REVOKE took %d ms\n", took * 10);
		print_waits(&waits);
		good += short_enough(waits.ours.longest, waits.memfd.longest);
		counted += took >= 10;
	}
	if (!counted)
		SKIP(return, "REVOKE is too fast here to be waited for");
	EXPECT_LE(ROUNDS - 1, good);
}

TEST_HARNESS_MAIN
