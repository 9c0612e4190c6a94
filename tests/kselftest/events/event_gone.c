// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Two clients close a handle of the same buffer at the same time and keep another one: each gets an
 * event for the other, whatever other clients hold the buffer. GONE is posted in batches, and
 * another GONE may run between batches.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../include/device.h"
#include "kselftest_harness.h"

/*
 * Watches that the module visits before it releases the lock; the test has a few batches of them.
 */
#define BATCH	64
#define CLIENTS (3 * BATCH + 16)
#define ROUNDS	400

FIXTURE(event_gone)
{
	int dev;
	int ro;
	int rw;
	int client[CLIENTS];
	struct tensor_alloc buf;
};

FIXTURE_SETUP(event_gone)
{
	struct tensor_import import;
	int i;

	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &self->buf));
	self->ro = buf_export_ro(self->dev, self->buf.handle);
	self->rw = buf_export_rw(self->dev, self->buf.handle);
	for (i = 0; i < CLIENTS; i++) {
		self->client[i] = dev_open();
		ASSERT_LE(0, self->client[i]);
		ASSERT_EQ(0, fcntl(self->client[i], F_SETFL, O_NONBLOCK));
		ASSERT_EQ(0, buf_import(self->client[i], self->ro, &import));
	}
	ASSERT_EQ(0, fcntl(self->dev, F_SETFL, O_NONBLOCK));
}

FIXTURE_TEARDOWN(event_gone)
{
	int i;

	for (i = 0; i < CLIENTS; i++)
		close(self->client[i]);
	close(self->ro);
	close(self->rw);
	close(self->dev);
}

struct closer {
	atomic_int *ready;
	unsigned int delay;
	uint32_t handle;
	int dev;
	int cpu;
};

static void *close_at_once(void *arg)
{
	struct closer *closer = arg;
	volatile unsigned int i;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(closer->cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	/* spin, because waits in the kernel would end at different times */
	atomic_fetch_add(closer->ready, 1);
	while (atomic_load(closer->ready) < 2)
		;
	for (i = 0; i < closer->delay; i++)
		;
	dev_close(closer->dev, closer->handle);
	return NULL;
}

/* Reads all events and returns their bits. */
static unsigned int take(int dev)
{
	struct tensor_event event;
	unsigned int events = 0;

	while (read(dev, &event, sizeof(event)) == sizeof(event))
		events |= event.events;
	return events;
}

/*
 * A client whose GONE is read moves to the end of the list, so this sorts the list in this order.
 */
static void take_all(FIXTURE_DATA(event_gone) * self)
{
	int i;

	take(self->dev);
	for (i = 0; i < CLIENTS; i++)
		take(self->client[i]);
}

static void nothing_is_lost_in(FIXTURE_DATA(event_gone) * self, unsigned int round, int *lost)
{
	int who[2] = { BATCH + 10, 2 * BATCH + 10 }, i;
	struct tensor_import import;
	struct closer closer[2];
	atomic_int ready = 0;
	pthread_t thread[2];

	for (i = 0; i < 2; i++) {
		if (buf_import(self->client[who[i]], self->rw, &import))
			return;
		closer[i] = (struct closer){ &ready, round * (i ? 7919 : 104729) % 300,
					     import.handle, self->client[who[i]], i };
	}
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, close_at_once, &closer[i]);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	*lost += !(take(self->dev) & TENSOR_EVENT_GONE);
	for (i = 0; i < CLIENTS; i++)
		*lost += !(take(self->client[i]) & TENSOR_EVENT_GONE);
	/* watches in another order are reported, read, and return in this order */
	close(buf_export_ro(self->dev, self->buf.handle));
	take_all(self);
}

TEST_F_TIMEOUT(event_gone, each_of_two_closing_clients_gets_the_event_of_the_other, 300)
{
	unsigned int round;
	int lost = 0;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one processor");
	take_all(self);
	for (round = 0; round < ROUNDS; round++)
		nothing_is_lost_in(self, round, &lost);
	EXPECT_EQ(0, lost);
}

TEST_HARNESS_MAIN
