// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Purges race with faults, WILLNEED, EXPORT and CLOSE: the content is either kept or reported as
 * purged, and a shared buffer is never purged.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "advise.h"

struct race {
	FIXTURE_DATA(advise) * self;
	atomic_bool stop;
	atomic_ulong purged, kept, lost, wrong;
};

static void *race_shrink(void *data)
{
	struct race *race = data;

	while (!race->stop)
		shrink(1);
	return NULL;
}

static void *race_touch(void *data)
{
	struct race *race = data;
	unsigned int i = 1;
	int sig;

	while (!race->stop) {
		i = i * 1103515245 + 12345;
		sig = touch_write(race->self->at + (i >> 8) % PAGES * PAGE + 8, 1);
		race->lost += sig == SIGBUS;
		race->wrong += sig && sig != SIGBUS;
	}
	return NULL;
}

/* The content is either what was written before, or WILLNEED reported the purge. */
static void *race_advise(void *data)
{
	struct race *race = data;
	char *word = race->self->at + HUGE + 64, value = 0;
	int purged;

	while (!race->stop) {
		*word = ++value;
		race->wrong += purgeable(race->self) != 0;
		sched_yield();
		purged = willneed(race->self);
		race->wrong += purged < 0 || *word != (purged ? 0 : value);
		if (purged)
			race->purged++;
		else
			race->kept++;
	}
	return NULL;
}

static void *race_share(void *data)
{
	struct race *race = data;
	int fd;

	while (!race->stop) {
		fd = buf_export(race->self->dev, race->self->buf.handle, 0);
		if (fd >= 0)
			close(fd);
		else
			race->wrong += fd != -EBUSY;
	}
	return NULL;
}

static void race_run(struct __test_metadata *_metadata, struct race *race, int n,
		     void *(*const work[])(void *))
{
	pthread_t thread[8];
	int i;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, work[i], race));
	sleep_ms(4000);
	race->stop = true;
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

TEST_F_TIMEOUT(advise, purge_races_with_faults_and_willneed, 120)
{
	void *(*const work[])(void *) = { race_shrink, race_touch, race_touch, race_advise };
	struct race race = { .self = self };

	race_run(_metadata, &race, 4, work);
	EXPECT_EQ(0, race.wrong);
	EXPECT_LT(0, race.purged);
	TH_LOG("%lu purged, %lu kept, %lu touches lost", race.purged, race.kept, race.lost);
}

/* A concurrent EXPORT is either refused or prevents the buffer from becoming purgeable. */
static void *race_offer(void *data)
{
	struct race *race = data;
	int err;

	while (!race->stop) {
		err = purgeable(race->self);
		race->wrong += err && err != -EBUSY;
		if (!err)
			race->kept++;
		err = willneed(race->self);
		race->wrong += err < 0;
	}
	return NULL;
}

TEST_F_TIMEOUT(advise, purge_races_with_export, 120)
{
	void *(*const work[])(void *) = { race_shrink, race_share, race_offer };
	struct race race = { .self = self };

	race_run(_metadata, &race, 3, work);
	EXPECT_EQ(0, race.wrong);
	EXPECT_LT(0, race.kept);
}

/* The handle is closed while the shrinker purges the buffer. */
static void *race_close(void *data)
{
	struct race *race = data;
	struct tensor_alloc alloc;

	while (!race->stop) {
		if (dev_alloc(race->self->dev, 4 * PAGE, &alloc)) {
			race->wrong++;
			continue;
		}
		race->wrong += buf_advise(race->self->dev, alloc.handle, TENSOR_ADVISE_PURGEABLE) !=
			       0;
		if (race->kept++ & 1)
			sched_yield();
		race->wrong += dev_close(race->self->dev, alloc.handle) != 0;
	}
	return NULL;
}

TEST_F_TIMEOUT(advise, purge_races_with_close, 120)
{
	void *(*const work[])(void *) = { race_shrink, race_shrink, race_close, race_close };
	struct race race = { .self = self };

	race_run(_metadata, &race, 4, work);
	EXPECT_EQ(0, race.wrong);
	EXPECT_LT(0, race.kept);
}

TEST_HARNESS_MAIN
