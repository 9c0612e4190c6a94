// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Events of a client with many handles: one event per buffer, with the number of an open handle;
 * and many events in one read().
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "event.h"

#define MANY 200

TEST_F_TIMEOUT(event, each_of_a_thousand_buffers_is_reported_once, 120)
{
	static struct tensor_event event[2000];
	static bool seen[4096];
	struct tensor_import import;
	struct tensor_alloc alloc;
	uint32_t handle[1000];
	ssize_t n;
	int i, fd;

	handle[999] = self->buf.handle;
	for (i = 0; i < 999; i++) {
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
		handle[i] = alloc.handle;
		fd = buf_export(self->dev, alloc.handle, 0);
		ASSERT_EQ(0, buf_import(self->other, fd, &import));
		ASSERT_GT(4096, import.handle);
		close(fd);
	}
	while (read(self->other, event, sizeof(event)) > 0)
		;
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, handle[i], TENSOR_SEAL_META));
	EXPECT_EQ((ssize_t)(7 * sizeof(event[0])),
		  read(self->other, event, 8 * sizeof(event[0]) - 1));
	/* as many events as fit */
	n = read(self->other, event + 7, sizeof(event) - 7 * sizeof(event[0]));
	ASSERT_EQ((ssize_t)(993 * sizeof(event[0])), n);
	for (i = 0; i < 1000; i++) {
		EXPECT_EQ(sizeof(event[0]), event[i].size);
		EXPECT_EQ(0, event[i].__reserved);
		EXPECT_EQ(TENSOR_EVENT_SEAL, event[i].events);
		EXPECT_FALSE(seen[event[i].handle & 4095]);
		seen[event[i].handle & 4095] = true;
	}
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
}

/* An older reader on a newer kernel advances by the size of each event. */
TEST_F(event, size_is_the_distance_to_the_next_event)
{
	struct tensor_import import;
	struct tensor_event *event;
	struct tensor_alloc alloc;
	char room[1024];
	ssize_t n, at;
	int i, fd, count = 0;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
		fd = buf_export(self->dev, alloc.handle, 0);
		ASSERT_EQ(0, buf_import(self->other, fd, &import));
		close(fd);
		ASSERT_EQ(0, buf_revoke(self->dev, alloc.handle));
	}
	n = read(self->other, room, sizeof(room));
	ASSERT_LT(0, n);
	for (at = 0; at < n; at += event->size, count++) {
		event = (struct tensor_event *)(room + at);
		ASSERT_LE(24U, event->size);
		ASSERT_EQ(0, event->size % 8);
		EXPECT_EQ(TENSOR_EVENT_REVOKE, event->events & TENSOR_EVENT_REVOKE);
	}
	EXPECT_EQ(n, at);
	EXPECT_EQ(3, count);
}

TEST_F(event, room_of_256_bytes_is_enough_for_one)
{
	char room[256];

	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ((ssize_t)sizeof(struct tensor_event), read(self->other, room, sizeof(room)));
}

/*
 * A client with several handles to a buffer, with other rights, other ranges or imported twice,
 * gets one event.
 */
TEST_F(event, client_with_many_handles_gets_one_event_per_buffer)
{
	struct tensor_import ro, part, again;
	struct tensor_event event[4];
	int rofd = buf_export_ro(self->dev, self->buf.handle);
	int partfd = buf_export_range(self->dev, self->buf.handle, 0, PAGE, PAGE);

	ASSERT_EQ(0, buf_import(self->other, rofd, &ro));
	ASSERT_EQ(0, buf_import(self->other, partfd, &part));
	ASSERT_EQ(0, buf_import(self->other, self->fd, &again));
	EXPECT_EQ(self->import.handle, again.handle);
	EXPECT_NE(self->import.handle, ro.handle);
	EXPECT_NE(self->import.handle, part.handle);
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	ASSERT_EQ((ssize_t)sizeof(event[0]), read(self->other, event, sizeof(event)));
	EXPECT_EQ(TENSOR_EVENT_SEAL, event[0].events);
	EXPECT_TRUE(event[0].handle == self->import.handle || event[0].handle == ro.handle ||
		    event[0].handle == part.handle);
	EXPECT_EQ(0, ready(self->other, POLLIN));
	close(rofd);
	close(partfd);
	EXPECT_EQ((ssize_t)sizeof(event[0]), read(self->other, event, sizeof(event)));
	EXPECT_EQ(TENSOR_EVENT_GONE, event[0].events);
}

/* Whichever handle is closed first, the event names an open one. */
TEST_F(event, event_names_an_open_handle)
{
	int rofd = buf_export_ro(self->dev, self->buf.handle);
	int partfd = buf_export_range(self->dev, self->buf.handle, 0, PAGE, PAGE);
	struct tensor_import import[3];
	struct tensor_event event;
	struct tensor_info info;
	int round, i;

	for (round = 0; round < 6; round++) {
		int order[3] = { round % 3, (round + 1 + round / 3) % 3,
				 (round + 2 - round / 3) % 3 };

		if (round)
			ASSERT_EQ(0, buf_import(self->other, self->fd, &self->import));
		import[0] = self->import;
		ASSERT_EQ(0, buf_import(self->other, rofd, &import[1]));
		ASSERT_EQ(0, buf_import(self->other, partfd, &import[2]));
		for (i = 0; i < 3; i++) {
			close(buf_export(self->dev, self->buf.handle, 0));
			ASSERT_EQ((ssize_t)sizeof(event), read(self->other, &event, sizeof(event)));
			EXPECT_EQ(0, buf_info(self->other, event.handle, &info));
			EXPECT_EQ(info.ino, event.ino);
			ASSERT_EQ(0, dev_close(self->other, import[order[i]].handle));
		}
		close(buf_export(self->dev, self->buf.handle, 0));
		EXPECT_EQ(0, ready(self->other, POLLIN));
	}
	close(rofd);
	close(partfd);
}

TEST_F(event, buffer_fd_cannot_be_polled_for_events)
{
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(0, ready(self->fd, POLLPRI | POLLRDHUP));
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(0, ready(self->fd, POLLPRI | POLLRDHUP));
}

struct race {
	int dev;
	int fd, rofd;
	atomic_int holders;
	atomic_bool stop;
	atomic_ulong received, wrong;
};

static void *race_reader(void *data)
{
	struct race *race = data;
	struct tensor_event event[3];
	ssize_t n;
	int err;

	while (!race->stop) {
		n = read(race->dev, event, sizeof(event));
		if (n > 0)
			race->received++;
		else if (errno != EAGAIN)
			race->wrong++;
		err = read_nowhere(race->dev);
		race->wrong += err != -EAGAIN && err != -EFAULT;
	}
	return NULL;
}

/* Imports handles, causes events and closes the handles while another thread reads. */
static void *race_holder(void *data)
{
	struct race *race = data;
	int fd = race->holders++ ? race->rofd : race->fd;
	struct tensor_import import;

	while (!race->stop) {
		if (buf_import(race->dev, fd, &import)) {
			race->wrong++;
			break;
		}
		sched_yield();
		race->wrong += dev_close(race->dev, import.handle) != 0;
	}
	return NULL;
}

static void *race_event_poster(void *data)
{
	struct race *race = data;
	struct tensor_import import;
	int dev = dev_open();

	while (!race->stop) {
		if (!buf_import(dev, race->fd, &import))
			dev_close(dev, import.handle);
	}
	close(dev);
	return NULL;
}

TEST_F_TIMEOUT(event, readers_race_with_open_and_close_of_handles, 60)
{
	void *(*const work[])(void *) = { race_reader, race_reader, race_holder, race_holder,
					  race_event_poster };
	struct race race = { .dev = self->other };
	struct tensor_alloc alloc;
	pthread_t thread[5];
	int i;

	/* no other handle of the reader keeps this buffer alive */
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	race.fd = buf_export(self->dev, alloc.handle, 0);
	race.rofd = buf_export_ro(self->dev, alloc.handle);
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, work[i], &race));
	sleep_ms(2000);
	race.stop = true;
	for (i = 0; i < 5; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, race.wrong);
	EXPECT_LT(0, race.received);
	close(race.fd);
	close(race.rofd);
	/* the last event is not lost, even if reads failed before */
	one_event(self->other, self->import.handle);
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(TENSOR_EVENT_SEAL, one_event(self->other, self->import.handle));
}

/* Events while the end of a holder is reported to many clients. */

/*
 * @turn: number of the round to start
 * @done: number of the round that has ended
 * @fd: fd to close
 * @ns: time that closing took
 */
struct end {
	atomic_uint turn, done;
	atomic_bool stop;
	int fd;
	uint64_t ns;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Spins, so that both threads start at the same moment. */
static void *end_holder(void *data)
{
	struct end *end = data;
	unsigned int round = 1;
	uint64_t begin;

	for (;; round++) {
		while (end->turn != round) {
			if (end->stop)
				return NULL;
		}
		begin = now_ns();
		close(end->fd);
		end->ns = now_ns() - begin;
		end->done = round;
	}
}

/* Causes one of the events that a holder can cause; those that add a seal come before REVOKE. */
static int cause(int dev, uint32_t handle, unsigned int which)
{
	static const uint32_t seals[] = { TENSOR_SEAL_META, TENSOR_SEAL_WRITE, TENSOR_SEAL_SEAL };
	int err;

	if (which == 3)
		return buf_revoke(dev, handle);
	err = buf_seal(dev, handle, seals[which]);
	return err < 0 ? err : 0;
}

/*
 * All events that a client gets for the one buffer that it holds, or -errno. Reads until no event
 * is left, because events of one moment may arrive in two reads.
 */
static int read_all_events(int dev)
{
	struct tensor_event event;
	int events = 0;

	while (read(dev, &event, sizeof(event)) == sizeof(event))
		events |= event.events;
	return errno == EAGAIN ? events : -errno;
}

/* Number of clients that got other events; @caller is the index of the client that caused them. */
static int count_wrong(const int *client, int events, int caller)
{
	int i, wrong = 0;

	for (i = 0; i < MANY; i++)
		wrong += read_all_events(client[i]) !=
			 (i == caller ? (int)TENSOR_EVENT_GONE : (int)TENSOR_EVENT_GONE | events);
	return wrong;
}

/* Starts a round and causes the event at a random point of the time that the last end took. */
static int race_round(struct end *end, int dev, uint32_t handle, unsigned int which)
{
	uint64_t until = now_ns() + (end->ns ? (uint64_t)random() % end->ns : 0);
	unsigned int round = end->turn + 1;
	int err;

	end->turn = round;
	while (now_ns() < until)
		;
	err = cause(dev, handle, which);
	while (end->done != round)
		sched_yield();
	return err;
}

/*
 * GONE is posted in batches of watches; an event that is posted between batches must reach all
 * clients.
 */
TEST_F_TIMEOUT(event, seal_and_revoke_reach_all_clients_while_gone_is_posted, 120)
{
	static int client[MANY];
	uint32_t handle[MANY] = { 0 };
	struct tensor_import import;
	struct tensor_alloc alloc;
	struct end end = { 0 };
	unsigned int which, rounds = 0, lost = 0;
	uint64_t until;
	pthread_t thread;
	int i, fd[4];

	for (i = 0; i < MANY; i++) {
		client[i] = open("/dev/tensor", O_RDWR | O_CLOEXEC | O_NONBLOCK);
		ASSERT_LE(0, client[i]);
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, end_holder, &end));
	for (until = now_ns() + 5000000000ULL; now_ns() < until;) {
		ASSERT_EQ(0, dev_alloc(client[0], PAGE, &alloc));
		handle[0] = alloc.handle;
		for (i = 0; i < 4; i++) {
			fd[i] = buf_export(client[0], alloc.handle, 0);
			ASSERT_LE(0, fd[i]);
		}
		for (i = 1; i < MANY; i++) {
			ASSERT_EQ(0, buf_import(client[i], fd[0], &import));
			handle[i] = import.handle;
		}
		for (which = 0; which < 4; which++, rounds++) {
			int caller = rounds % MANY;

			end.fd = fd[which];
			ASSERT_EQ(0, race_round(&end, client[caller], handle[caller], which));
			lost += count_wrong(client,
					    which < 3 ? TENSOR_EVENT_SEAL : TENSOR_EVENT_REVOKE,
					    caller);
		}
		for (i = 0; i < MANY; i++)
			ASSERT_EQ(0, dev_close(client[i], handle[i]));
	}
	end.stop = true;
	pthread_join(thread, NULL);
	for (i = 0; i < MANY; i++)
		close(client[i]);
	EXPECT_EQ(0, lost);
	TH_LOG("%u rounds", rounds);
}

TEST_HARNESS_MAIN
