// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * REVOKE: afterwards no holder can access the buffer, whatever it holds and whatever it was doing
 * at that moment, and its memory is free for others.
 */
#include <pthread.h>
#include <stdatomic.h>
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
		EXPECT_EQ(PAGES, touch_lost(at[i], BYTES)) TH_LOG("mapping %d", i);
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
	EXPECT_EQ(3, touch_lost(at, 3 * PAGE));
	EXPECT_EQ(HUGE / PAGE - 8, touch_lost(at + 8 * PAGE, HUGE - 8 * PAGE));
	EXPECT_EQ(HUGE / PAGE, touch_lost(to, HUGE));
	/* and the mapping can still be split, moved and unmapped */
	EXPECT_EQ(0, mprotect(at + 10 * PAGE, PAGE, RW));
	EXPECT_EQ(0, munmap(to + 7 * PAGE, PAGE));
	EXPECT_EQ(0, madvise(to, 4 * PAGE, MADV_DONTNEED));
	EXPECT_EQ(SIGBUS, touch_read(to));
	munmap(to, BYTES);
	munmap(at, BYTES);
}

/* Child: has a mapping, sends a message, and accesses the mapping when it gets one. */
static void child_looks(int sock, char *at)
{
	char byte = touch_read(at) == 0;

	if (write(sock, &byte, 1) != 1 || read(sock, &byte, 1) != 1)
		_exit(3);
	_exit(touch_lost(at, BYTES) == PAGES && !pages_present(at, BYTES) ? 0 : 1);
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
		child_looks(sock[1], at);
	munmap(at, BYTES);
	ASSERT_EQ(1, read(sock[0], &byte, 1));
	EXPECT_EQ(1, byte);
	ASSERT_EQ(0, revoke_it(self));
	ASSERT_EQ(1, write(sock[0], &byte, 1));
	EXPECT_EQ(0, reap(pid));
	close(sock[0]);
	close(sock[1]);
}

TEST_F(revoke, memory_is_back_at_once)
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

TEST_F(revoke, who_may_not_write_may_not_revoke)
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

TEST_F(revoke, system_calls_find_nothing_there)
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
	EXPECT_EQ(PAGES, touch_lost(at, BYTES));
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

TEST_F(revoke, pinned_page_stays_with_who_pinned_it)
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
	EXPECT_EQ(PAGES, touch_lost(at, BYTES));
	EXPECT_TRUE(fresh_is_zero(self->dev, 8));
	close(sock);
	EXPECT_TRUE(fresh_is_zero(self->dev, 8));
	munmap(at, BYTES);
}

struct race {
	int dev;
	int fd;
	uint32_t handle;
	char *at;
	uint64_t bytes;
	atomic_bool stop;
	atomic_ulong hits, misses, after, wrong;
	atomic_bool revoked;
};

/* Faults at random places of a mapping that other threads share. */
static void *race_toucher(void *data)
{
	struct race *race = data;
	unsigned int i = (unsigned int)(unsigned long)&i >> 4;

	while (!race->stop) {
		bool late = race->revoked;
		int sig;

		i = i * 1103515245 + 12345;
		sig = touch_write(race->at + (i >> 8) % (race->bytes / PAGE) * PAGE, 1);
		if (!sig)
			race->hits++;
		else if (sig == SIGBUS)
			race->misses++;
		else
			race->wrong++;
		race->after += late && !sig;
	}
	return NULL;
}

/* Makes new mappings and touches them while the buffer is revoked. */
static void *race_mapper(void *data)
{
	struct race *race = data;

	while (!race->stop) {
		bool late = race->revoked;
		char *at = map_shared(race->fd, race->bytes, RW, 0);
		int sig;

		if (at == MAP_FAILED) {
			race->wrong += errno != EIDRM;
			continue;
		}
		sig = touch_write(at + race->bytes / 2, 1);
		race->after += late;
		race->wrong += sig && sig != SIGBUS;
		munmap(at + PAGE, race->bytes / 2);
		touch_read(at + race->bytes - PAGE);
		munmap(at, race->bytes);
	}
	return NULL;
}

static void *race_dropper(void *data)
{
	struct race *race = data;

	while (!race->stop)
		madvise(race->at, race->bytes, MADV_DONTNEED);
	return NULL;
}

static void *race_revoker(void *data)
{
	struct race *race = data;

	race->wrong += buf_revoke(race->dev, race->handle) != 0;
	return NULL;
}

static void revoke_against_faults(struct __test_metadata *_metadata, uint64_t bytes,
				  uint32_t max_order)
{
	void *(*const work[])(void *) = { race_toucher, race_toucher, race_toucher, race_mapper,
					  race_dropper };
	struct tensor_alloc alloc = alloc_args(bytes);
	struct race race = { .dev = dev_open(), .bytes = bytes };
	pthread_t thread[5], two[2];
	uint64_t used;
	int i;

	used = dev_used(race.dev);
	alloc.flags = TENSOR_ALLOC_ORDERS;
	alloc.max_order = max_order;
	ASSERT_EQ(0, dev_call(race.dev, TENSOR_IOC_ALLOC, &alloc));
	race.handle = alloc.handle;
	race.fd = buf_export(race.dev, alloc.handle, 0);
	race.at = map_shared(race.dev, bytes, RW, alloc.mmap_offset);
	ASSERT_NE(MAP_FAILED, race.at);
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, work[i], &race));
	while (race.hits < 50)
		sched_yield();
	/* by two threads at once */
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&two[i], NULL, race_revoker, &race));
	for (i = 0; i < 2; i++)
		pthread_join(two[i], NULL);
	race.revoked = true;
	EXPECT_EQ(0, pages_present(race.at, bytes));
	EXPECT_TRUE(used_becomes(race.dev, used));
	i = race.misses;
	while (race.misses < (unsigned long)i + 50)
		sched_yield();
	race.stop = true;
	for (i = 0; i < 5; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, race.after);
	EXPECT_EQ(0, race.wrong);
	EXPECT_EQ(0, pages_present(race.at, bytes));
	munmap(race.at, bytes);
	close(race.fd);
	close(race.dev);
}

/* No page may leak: half of the pages of 20 rounds would be noticed. */
static void many_rounds(struct __test_metadata *_metadata, uint64_t bytes, uint32_t max_order)
{
	int64_t before = memory_free();
	time_t begin = time(NULL);
	int i;

	for (i = 0; i < 20 && time(NULL) - begin < 60; i++)
		revoke_against_faults(_metadata, bytes, max_order);
	TH_LOG("%d rounds", i);
	EXPECT_TRUE(memory_comes_back(before, 10 * bytes / KIB));
}

TEST_F_TIMEOUT(revoke, revoke_races_with_faults_of_huge_chunks, 240)
{
	struct tensor_query query;

	ASSERT_EQ(0, dev_query(self->dev, &query));
	many_rounds(_metadata, BYTES, query.max_order);
}

TEST_F_TIMEOUT(revoke, revoke_races_with_faults_of_pages, 240)
{
	many_rounds(_metadata, BYTES, 0);
}

/* Faults in small buffers map ahead. */
TEST_F_TIMEOUT(revoke, revoke_races_with_faults_of_small_buffers, 240)
{
	struct tensor_query query;

	ASSERT_EQ(0, dev_query(self->dev, &query));
	many_rounds(_metadata, MIB + 7 * PAGE, query.max_order);
}

static void *race_forker(void *data)
{
	struct race *race = data;

	while (!race->stop) {
		pid_t pid = fork();

		if (!pid) {
			touch_read(race->at);
			_exit(0);
		}
		race->wrong += reap(pid) != 0;
	}
	return NULL;
}

static void *race_mover(void *data)
{
	struct race *race = data;
	char *from = race->at, *to = race->at + 2 * BYTES, *swap;
	uint64_t half = race->bytes / 2;

	while (!race->stop) {
		if (mremap(from, half, half, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
			race->wrong++;
		touch_read(to);
		swap = from;
		from = to;
		to = swap;
	}
	return NULL;
}

static void revoke_against_moves(struct __test_metadata *_metadata, FIXTURE_DATA(revoke) * self,
				 uint64_t bytes)
{
	struct tensor_alloc alloc;
	struct race race = { .dev = self->dev, .bytes = bytes };
	pthread_t thread[2];
	int i, round;

	race.at = mmap(NULL, 3 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (round = 0; round < 10; round++) {
		ASSERT_EQ(0, dev_alloc(self->dev, bytes, &alloc));
		ASSERT_EQ(race.at, mmap(race.at, bytes, RW, MAP_SHARED | MAP_FIXED, self->dev,
					alloc.mmap_offset));
		race.stop = false;
		ASSERT_EQ(0, pthread_create(&thread[0], NULL, race_forker, &race));
		ASSERT_EQ(0, pthread_create(&thread[1], NULL, race_mover, &race));
		sleep_ms(50 + round);
		EXPECT_EQ(0, buf_revoke(self->dev, alloc.handle));
		EXPECT_TRUE(used_becomes(self->dev, self->used + BYTES));
		sleep_ms(20);
		EXPECT_EQ(0, pages_present(race.at, bytes));
		race.stop = true;
		for (i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
		EXPECT_EQ(0, pages_present(race.at, 3 * BYTES));
		mmap(race.at, 3 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
	}
	EXPECT_EQ(0, race.wrong);
	munmap(race.at, 3 * BYTES);
}

TEST_F_TIMEOUT(revoke, revoke_races_with_fork_and_mremap, 240)
{
	revoke_against_moves(_metadata, self, BYTES);
}

TEST_F_TIMEOUT(revoke, revoke_races_with_fork_and_mremap_of_small_buffers, 240)
{
	revoke_against_moves(_metadata, self, 512 * KIB);
}

/* Moves the entry of a huge page forth and back, and touches it, while @hits is 1. */
static void *race_huge_mover(void *data)
{
	struct race *race = data;
	char *from, *to, *swap;

	while (!race->stop) {
		if (!race->hits)
			continue;
		from = race->at;
		to = race->at + 2 * BYTES;
		while (race->hits == 1) {
			if (mremap(from, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
				race->wrong++;
			touch_read(to);
			swap = from;
			from = to;
			to = swap;
		}
		race->hits = 0;
	}
	return NULL;
}

/*
 * The core's walk over mappings checks entries of huge pages without their locks, while mremap()
 * may be moving one. How often it misses one depends on the machine: once in 500 rounds here.
 */
TEST_F_TIMEOUT(revoke, revoke_races_with_mremap_of_a_huge_page, 240)
{
	char *room = mmap(NULL, 4 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct race race = { .dev = self->dev };
	time_t begin = time(NULL);
	struct tensor_alloc alloc;
	unsigned long kept = 0;
	pthread_t thread;
	int round;

	race.at = (char *)(((uintptr_t)room + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, race_huge_mover, &race));
	for (round = 0; time(NULL) - begin < 10; round++) {
		ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
		ASSERT_EQ(race.at, mmap(race.at, BYTES, RW, MAP_SHARED | MAP_FIXED, self->dev,
					alloc.mmap_offset));
		race.hits = 1;
		if (round % 2)
			usleep(round * 37 % 2000);
		EXPECT_EQ(0, buf_revoke(self->dev, alloc.handle));
		race.hits = 2;
		while (race.hits)
			sched_yield();
		kept += pages_present(race.at, 3 * BYTES);
		mmap(race.at, 3 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
	}
	race.stop = true;
	pthread_join(thread, NULL);
	EXPECT_EQ(0, kept) TH_LOG("in %d rounds", round);
	EXPECT_EQ(0, race.wrong);
	munmap(room, 4 * BYTES);
}

TEST_HARNESS_MAIN
