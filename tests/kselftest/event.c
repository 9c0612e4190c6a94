// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Events: each holder of a buffer learns once of what others did to it, loses nothing and waits
 * for nothing in vain; and who has only a buffer fd can poll that.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "device.h"
#include "kselftest_harness.h"

FIXTURE(event) {
	int dev;
	int other;
	int fd;
	uint64_t used;
	struct tensor_alloc buf;
	struct tensor_import import;
};

FIXTURE_SETUP(event)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
	self->other = dev_open();
	ASSERT_LE(0, self->other);
	ASSERT_EQ(0, dev_alloc(self->dev, 16 * PAGE, &self->buf));
	self->fd = buf_export(self->dev, self->buf.handle, TENSOR_EXPORT_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, buf_import(self->other, self->fd, &self->import));
	ASSERT_EQ(0, fcntl(self->dev, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, fcntl(self->other, F_SETFL, O_NONBLOCK));
}

FIXTURE_TEARDOWN(event)
{
	int dev = dev_open();

	close(self->fd);
	close(self->other);
	close(self->dev);
	EXPECT_TRUE(used_becomes(dev, self->used));
	close(dev);
}

/* The one event that there is: its bits; 0 if there is none, -errno, or -1000 if it is not right. */
static int one(int dev, uint32_t handle)
{
	struct tensor_event event[4];
	struct tensor_info info;
	ssize_t n = read(dev, event, sizeof(event));

	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (n != sizeof(event[0]) || event[0].handle != handle || !event[0].events)
		return -1000;
	if (buf_info(dev, handle, &info) || info.ino != event[0].ino)
		return -1000;
	return (int)event[0].events;
}

/* A read() to where no memory is. */
static int read_nowhere(int dev)
{
	return syscall(SYS_read, dev, NULL, 1024) < 0 ? -errno : 0;
}

static short ready(int fd, short want)
{
	struct pollfd p = { .fd = fd, .events = want };

	return poll(&p, 1, 0) < 0 ? -1 : p.revents;
}

TEST_F(event, nothing_has_happened)
{
	EXPECT_EQ(0, one(self->dev, self->buf.handle));
	EXPECT_EQ(0, one(self->other, self->import.handle));
	EXPECT_EQ(0, ready(self->dev, POLLIN));
}

TEST_F(event, seal_is_told_to_others)
{
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(0, one(self->dev, self->buf.handle));
	EXPECT_EQ(POLLIN, ready(self->other, POLLIN));
	EXPECT_EQ(TENSOR_EVENT_SEAL, one(self->other, self->import.handle));
	EXPECT_EQ(0, ready(self->other, POLLIN));
	EXPECT_EQ(0, one(self->other, self->import.handle));
	/* what was there before is not added */
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(0, one(self->other, self->import.handle));
	/* nor what was refused */
	ASSERT_EQ(TENSOR_SEAL_META | TENSOR_SEAL_SEAL, buf_seal(self->dev, self->buf.handle,
								TENSOR_SEAL_SEAL));
	EXPECT_EQ(TENSOR_EVENT_SEAL, one(self->other, self->import.handle));
	ASSERT_EQ(-EPERM, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(0, one(self->other, self->import.handle));
}

TEST_F(event, what_is_done_through_a_buffer_fd_is_told_to_all)
{
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->fd, 0, TENSOR_SEAL_META));
	EXPECT_EQ(TENSOR_EVENT_SEAL, one(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_EVENT_SEAL, one(self->other, self->import.handle));
}

TEST_F(event, revoke_is_told_to_others)
{
	ASSERT_EQ(0, buf_revoke(self->other, self->import.handle));
	EXPECT_EQ(TENSOR_EVENT_REVOKE, one(self->dev, self->buf.handle));
	EXPECT_EQ(0, one(self->other, self->import.handle));
	ASSERT_EQ(0, buf_revoke(self->other, self->import.handle));
	EXPECT_EQ(0, one(self->dev, self->buf.handle));
}

TEST_F(event, each_kind_of_going_is_told)
{
	struct tensor_import second;
	char *at;

	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(TENSOR_EVENT_GONE, one(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_EVENT_GONE, one(self->other, self->import.handle));
	/* the mapping of another client keeps a file */
	at = map_shared(self->other, PAGE, PROT_READ, self->import.cookie);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(0, one(self->dev, self->buf.handle));
	munmap(at, PAGE);
	EXPECT_EQ(TENSOR_EVENT_GONE, one(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_EVENT_GONE, one(self->other, self->import.handle));
	self->fd = buf_export(self->dev, self->buf.handle, 0);
	ASSERT_EQ(0, buf_import(self->dev, self->fd, &second));
	/* a handle of the same client: not told to itself */
	EXPECT_EQ(0, dev_close(self->dev, second.handle));
	EXPECT_EQ(0, one(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_EVENT_GONE, one(self->other, self->import.handle));
	EXPECT_EQ(0, dev_close(self->other, self->import.handle));
	EXPECT_EQ(TENSOR_EVENT_GONE, one(self->dev, self->buf.handle));
}

TEST_F(event, one_own_mapping_is_nobody_who_goes)
{
	char *at = map_shared(self->dev, PAGE, PROT_READ, self->buf.cookie);

	ASSERT_NE(MAP_FAILED, at);
	munmap(at, PAGE);
	EXPECT_EQ(0, one(self->dev, self->buf.handle));
	EXPECT_EQ(0, one(self->other, self->import.handle));
}

TEST_F(event, several_come_as_one)
{
	int i;

	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	for (i = 0; i < 100; i++)
		close(buf_export(self->dev, self->buf.handle, 0));
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_EVENT_SEAL | TENSOR_EVENT_GONE | TENSOR_EVENT_REVOKE,
		  one(self->other, self->import.handle));
	EXPECT_EQ(0, one(self->other, self->import.handle));
}

TEST_F(event, purge_is_told_to_the_owner)
{
	struct tensor_alloc alloc;
	int tries;

	ASSERT_EQ(0, dev_alloc(self->dev, 64 * PAGE, &alloc));
	ASSERT_EQ(0, buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_PURGEABLE));
	for (tries = 0; tries < 50 && !ready(self->dev, POLLIN); tries++)
		write_text("/proc/sys/vm/drop_caches", "2");
	EXPECT_EQ(TENSOR_EVENT_PURGE, one(self->dev, alloc.handle));
}

TEST_F(event, killed_peer_is_told)
{
	int sock[2], fd;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	if (!pid) {
		struct tensor_import import;
		int dev;

		close(self->dev);
		close(self->other);
		dev = dev_open();
		fd = recv_fd(sock[1]);
		if (buf_import(dev, fd, &import))
			_exit(1);
		close(fd);
		close(self->fd);
		send_fd(sock[1], 0);
		for (;;)
			pause();
	}
	fd = dup(self->fd);
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, send_fd(sock[0], fd));
	close(fd);
	close(recv_fd(sock[0]));
	/* the child's copies of our fds are gone by now */
	one(self->dev, self->buf.handle);
	one(self->other, self->import.handle);
	kill(pid, SIGKILL);
	EXPECT_EQ(-SIGKILL, reap(pid));
	EXPECT_EQ(TENSOR_EVENT_GONE, one(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_EVENT_GONE, one(self->other, self->import.handle));
	close(sock[0]);
	close(sock[1]);
}

TEST_F(event, room_for_none_is_einval)
{
	char small[sizeof(struct tensor_event) - 1];

	EXPECT_EQ(-1, read(self->dev, small, sizeof(small)));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, read(self->dev, small, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->dev, small, 1));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(event, events_of_a_closed_handle_are_not_told)
{
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(0, dev_close(self->other, self->import.handle));
	EXPECT_EQ(0, ready(self->other, POLLIN));
	EXPECT_EQ(0, one(self->other, self->import.handle));
}

TEST_F(event, fault_of_the_reader_loses_nothing)
{
	struct tensor_import second;
	struct tensor_event *at;

	at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, buf_import(self->other, self->fd, &second));
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(-EFAULT, read_nowhere(self->other));
	EXPECT_EQ(POLLIN, ready(self->other, POLLIN));
	ASSERT_EQ(0, mprotect((char *)at + PAGE, PAGE, PROT_NONE));
	/* the first would fit, the second would not */
	EXPECT_EQ(-1, read(self->other, (char *)at + PAGE - sizeof(*at), 2 * sizeof(*at)));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ((ssize_t)(2 * sizeof(*at)), read(self->other, at, 1024));
	EXPECT_EQ(self->import.handle + second.handle, at[0].handle + at[1].handle);
	EXPECT_EQ(TENSOR_EVENT_SEAL, at[0].events);
	EXPECT_EQ(TENSOR_EVENT_SEAL, at[1].events);
	EXPECT_EQ(0, ready(self->other, POLLIN));
	munmap(at, 2 * PAGE);
}

TEST_F_TIMEOUT(event, a_thousand_handles_are_told_once_each, 120)
{
	static struct tensor_event event[2000];
	static bool seen[4096];
	struct tensor_import import;
	ssize_t n;
	int i;

	for (i = 0; i < 999; i++) {
		ASSERT_EQ(0, buf_import(self->other, self->fd, &import));
		ASSERT_GT(4096, import.handle);
	}
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ((ssize_t)(7 * sizeof(event[0])), read(self->other, event, 8 * sizeof(event[0]) - 1));
	/* as many as fit */
	n = read(self->other, event + 7, sizeof(event) - 7 * sizeof(event[0]));
	ASSERT_EQ((ssize_t)(993 * sizeof(event[0])), n);
	for (i = 0; i < 1000; i++) {
		EXPECT_EQ(TENSOR_EVENT_SEAL, event[i].events);
		EXPECT_FALSE(seen[event[i].handle & 4095]);
		seen[event[i].handle & 4095] = true;
	}
	EXPECT_EQ(0, one(self->other, self->import.handle));
}

/* ---- waiting ------------------------------------------------------------------------------------- */

static void interrupted(int sig)
{
}

struct wait {
	int fd;
	short events;
	ssize_t got;
	int err;
	struct tensor_event event;
	struct pollfd poll;
};

static void *reader(void *data)
{
	struct wait *wait = data;

	wait->got = read(wait->fd, &wait->event, sizeof(wait->event));
	wait->err = errno;
	return NULL;
}

static void *poller(void *data)
{
	struct wait *wait = data;

	wait->poll = (struct pollfd){ .fd = wait->fd, .events = wait->events };
	wait->got = poll(&wait->poll, 1, 10000);
	return NULL;
}

TEST_F(event, read_waits_for_the_first)
{
	struct wait wait = { .fd = self->other };
	pthread_t thread;

	ASSERT_EQ(0, fcntl(self->other, F_SETFL, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, reader, &wait));
	sleep_ms(100);
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	pthread_join(thread, NULL);
	EXPECT_EQ((ssize_t)sizeof(wait.event), wait.got);
	EXPECT_EQ(TENSOR_EVENT_SEAL, wait.event.events);
	EXPECT_EQ(self->import.handle, wait.event.handle);
}

TEST_F(event, signal_ends_the_wait)
{
	struct sigaction action = { .sa_handler = interrupted };
	struct wait wait = { .fd = self->other };
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	ASSERT_EQ(0, fcntl(self->other, F_SETFL, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, reader, &wait));
	sleep_ms(100);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	EXPECT_EQ(-1, wait.got);
	EXPECT_EQ(EINTR, wait.err);
}

TEST_F(event, killed_while_it_waits)
{
	pid_t pid = fork();
	char room[64];

	if (!pid) {
		fcntl(self->other, F_SETFL, 0);
		_exit(read(self->other, room, sizeof(room)) < 0 ? 1 : 2);
	}
	sleep_ms(100);
	kill(pid, SIGKILL);
	EXPECT_EQ(-SIGKILL, reap(pid));
}

/* What a poll() for those events on the buffer's fd ends with when @work is done meanwhile. */
static short polled(int fd, short events, void (*work)(FIXTURE_DATA(event) *),
		    FIXTURE_DATA(event) *self)
{
	struct wait wait = { .fd = fd, .events = events };
	pthread_t thread;

	if (pthread_create(&thread, NULL, poller, &wait))
		return -1;
	sleep_ms(100);
	work(self);
	pthread_join(thread, NULL);
	return wait.got == 1 ? wait.poll.revents : -1;
}

static void work_seal(FIXTURE_DATA(event) *self)
{
	buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE);
}

static void work_revoke(FIXTURE_DATA(event) *self)
{
	buf_revoke(self->dev, self->buf.handle);
}

static void work_go(FIXTURE_DATA(event) *self)
{
	dev_close(self->other, self->import.handle);
	close(self->dev);
	self->dev = -1;
}

TEST_F(event, buffer_fd_is_polled_for_seal)
{
	EXPECT_EQ(0, ready(self->fd, POLLPRI));
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->fd, 0, TENSOR_SEAL_META));
	EXPECT_EQ(0, ready(self->fd, POLLPRI));
	EXPECT_EQ(POLLPRI, polled(self->fd, POLLPRI, work_seal, self));
	EXPECT_EQ(POLLPRI, ready(self->fd, POLLPRI | POLLRDHUP));
}

TEST_F(event, buffer_fd_is_polled_for_revoke)
{
	EXPECT_EQ(POLLERR, polled(self->fd, 0, work_revoke, self));
	EXPECT_EQ(POLLERR, ready(self->fd, 0));
}

TEST_F(event, buffer_fd_is_polled_for_being_the_last)
{
	int fd = dup(self->fd);

	EXPECT_EQ(0, ready(self->fd, POLLRDHUP));
	/* two fds of one open file are one holder */
	EXPECT_EQ(POLLRDHUP, polled(self->fd, POLLRDHUP, work_go, self));
	EXPECT_EQ(POLLRDHUP, ready(fd, POLLRDHUP));
	close(fd);
}

TEST_F(event, guest_mapping_is_a_holder_to_poll)
{
	char *at = map_shared(self->other, PAGE, PROT_READ, self->import.cookie);

	ASSERT_NE(MAP_FAILED, at);
	work_go(self);
	EXPECT_EQ(0, ready(self->fd, POLLRDHUP));
	munmap(at, PAGE);
	EXPECT_EQ(POLLRDHUP, ready(self->fd, POLLRDHUP));
}

TEST_F(event, epoll_survives_close_of_what_it_watches)
{
	struct epoll_event want = { .events = EPOLLIN | EPOLLPRI | EPOLLET }, got;
	int ep = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->other, &want));
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->fd, &want));
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 1000));
	close(self->other);
	close(self->fd);
	self->other = self->fd = -1;
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));
	close(ep);
}

/* ---- races ----------------------------------------------------------------------------------------- */

struct race {
	int dev;
	int fd;
	atomic_bool stop;
	atomic_ulong told, wrong;
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
			race->told++;
		else if (errno != EAGAIN)
			race->wrong++;
		err = read_nowhere(race->dev);
		race->wrong += err != -EAGAIN && err != -EFAULT;
	}
	return NULL;
}

/* Handles come, have events and go while they are read. */
static void *race_holder(void *data)
{
	struct race *race = data;
	struct tensor_import import;

	while (!race->stop) {
		if (buf_import(race->dev, race->fd, &import)) {
			race->wrong++;
			break;
		}
		sched_yield();
		race->wrong += dev_close(race->dev, import.handle) != 0;
	}
	return NULL;
}

static void *race_teller(void *data)
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

TEST_F_TIMEOUT(event, readers_race_with_handles_that_come_and_go, 60)
{
	void *(*const work[])(void *) = { race_reader, race_reader, race_holder, race_teller };
	struct race race = { .dev = self->other, .fd = self->fd };
	pthread_t thread[4];
	int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, work[i], &race));
	sleep_ms(2000);
	race.stop = true;
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, race.wrong);
	EXPECT_LT(0, race.told);
	/* the last one is not lost, whatever reads failed before */
	one(self->other, self->import.handle);
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(TENSOR_EVENT_SEAL, one(self->other, self->import.handle));
}

TEST_HARNESS_MAIN
