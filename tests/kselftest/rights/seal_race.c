// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * SEAL races with threads that map, mprotect() or pin the buffer and write to it: the memory does
 * not change after SEAL has succeeded.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../include/fixture.h"
#include "../include/xdp.h"
#include "kselftest_harness.h"

#define RW (PROT_READ | PROT_WRITE)

FIXTURE(seal_race)
{
	int dev;
	uint64_t used;
};

FIXTURE_SETUP(seal_race)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
}

FIXTURE_TEARDOWN(seal_race)
{
	EXPECT_TRUE(teardown_buf(self->dev, self->used, 0));
}

struct race {
	int fd;
	int how;
	atomic_bool stop;
	atomic_ulong writes, refused, wrong;
};

/* One way to write: 0 if the byte was written. */
static int write_once(struct race *race, char value)
{
	int prot = race->how == 1 ? PROT_READ : RW, err = 0, sock;
	char *at = map_shared(race->fd, HUGE, prot, 0);

	if (at == MAP_FAILED)
		return -errno;
	if (race->how == 1 && mprotect(at, PAGE, RW))
		err = -errno;
	else if (race->how == 2) {
		sock = xdp_pin(at, 16 * PAGE);
		munmap(at + PAGE, HUGE - PAGE);
		if (sock >= 0)
			close(sock);
	}
	if (!err)
		*(volatile char *)at = value;
	munmap(at, HUGE);
	return err;
}

static void *race_writer(void *data)
{
	struct race *race = data;
	char value = 0;
	int err;

	while (!race->stop) {
		err = write_once(race, ++value);
		if (!err)
			race->writes++;
		else if (err == -EPERM || err == -EACCES)
			race->refused++;
		else
			race->wrong++;
		/* pins are dropped with a delay: leave time for a seal */
		if (race->how == 2)
			sleep_ms(50);
	}
	return NULL;
}

/* Seals a buffer that two threads write to, and checks that it does not change afterwards. */
static void seal_against_writers(struct __test_metadata *_metadata, int how)
{
	struct race race = { .fd = buf_new_fd(HUGE), .how = how };
	pthread_t thread[2];
	char before[PAGE], *at;
	int i, err;

	ASSERT_LE(0, race.fd);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, race_writer, &race));
	while (race.writes < 5)
		sched_yield();
	do
		err = buf_seal(race.fd, 0, TENSOR_SEAL_WRITE);
	while (err == -EBUSY);
	EXPECT_EQ(TENSOR_SEAL_WRITE, err);
	at = map_shared(race.fd, HUGE, PROT_READ, 0);
	ASSERT_NE(MAP_FAILED, at);
	memcpy(before, at, PAGE);
	i = race.refused;
	while (race.refused < (unsigned long)i + 5)
		sched_yield();
	EXPECT_EQ(0, memcmp(before, at, PAGE));
	race.stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, race.wrong);
	munmap(at, HUGE);
	close(race.fd);
}

/* As many rounds as the time permits, because the debug kernel is slow. */
static void many_rounds(struct __test_metadata *_metadata, int how)
{
	time_t begin = time(NULL);
	int i;

	for (i = 0; i < 30 && time(NULL) - begin < 20; i++)
		seal_against_writers(_metadata, how);
	TH_LOG("%d rounds", i);
}

TEST_F_TIMEOUT(seal_race, with_mmap, 120)
{
	many_rounds(_metadata, 0);
}

/* An existing mapping may become writable until it is unmapped. */
TEST_F_TIMEOUT(seal_race, with_mprotect, 120)
{
	many_rounds(_metadata, 1);
}

TEST_F_TIMEOUT(seal_race, with_long_term_pin, 120)
{
	int sock = socket(AF_XDP, SOCK_RAW, 0);

	if (sock < 0)
		SKIP(return, "no AF_XDP in this kernel");
	close(sock);
	many_rounds(_metadata, 2);
}

TEST_HARNESS_MAIN
