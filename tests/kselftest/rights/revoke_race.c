// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * REVOKE races with faults, new mappings, fork() and mremap() in other threads: no access succeeds
 * after it has returned, no page table entry is left, and no page leaks.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../include/fixture.h"
#include "../include/touch.h"
#include "kselftest_harness.h"

#define BYTES (2 * HUGE)
#define RW    (PROT_READ | PROT_WRITE)

FIXTURE(revoke_race)
{
	int dev;
	uint64_t used;
};

FIXTURE_SETUP(revoke_race)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
	touch_begin();
}

FIXTURE_TEARDOWN(revoke_race)
{
	EXPECT_TRUE(teardown_buf(self->dev, self->used, 0));
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
	EXPECT_TRUE(memory_is_freed(before, 10 * bytes / KIB));
}

TEST_F_TIMEOUT(revoke_race, with_faults_of_huge_chunks, 240)
{
	struct tensor_query query;

	ASSERT_EQ(0, dev_query(self->dev, &query));
	many_rounds(_metadata, BYTES, query.max_order);
}

TEST_F_TIMEOUT(revoke_race, with_faults_of_pages, 240)
{
	many_rounds(_metadata, BYTES, 0);
}

/* Faults in small buffers map ahead. */
TEST_F_TIMEOUT(revoke_race, with_faults_of_small_buffers, 240)
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

static void revoke_against_moves(struct __test_metadata *_metadata,
				 FIXTURE_DATA(revoke_race) * self, uint64_t bytes)
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
		EXPECT_TRUE(used_becomes(self->dev, self->used));
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

TEST_F_TIMEOUT(revoke_race, with_fork_and_mremap, 240)
{
	revoke_against_moves(_metadata, self, BYTES);
}

TEST_F_TIMEOUT(revoke_race, with_fork_and_mremap_of_small_buffers, 240)
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
TEST_F_TIMEOUT(revoke_race, with_mremap_of_a_huge_page, 240)
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
