// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Events: each client that holds a buffer gets an event once for what other clients do to it; no
 * event is lost, and no reader waits for an event that never comes.
 */
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "event.h"

TEST_F(event, no_event_without_a_change)
{
	EXPECT_EQ(0, one_event(self->dev, self->buf.handle));
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
	EXPECT_EQ(0, ready(self->dev, POLLIN));
}

TEST_F(event, seal_is_reported_to_other_clients)
{
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(0, one_event(self->dev, self->buf.handle));
	EXPECT_EQ(POLLIN, ready(self->other, POLLIN));
	EXPECT_EQ(TENSOR_EVENT_SEAL, one_event(self->other, self->import.handle));
	EXPECT_EQ(0, ready(self->other, POLLIN));
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
	/* a seal that is already set causes no event */
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
	/* nor does a refused call */
	ASSERT_EQ(TENSOR_SEAL_META | TENSOR_SEAL_SEAL,
		  buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_SEAL));
	EXPECT_EQ(TENSOR_EVENT_SEAL, one_event(self->other, self->import.handle));
	ASSERT_EQ(-EPERM, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
}

/* Microseconds of a SEAL while another client is in an epoll set @watched times. */
static int64_t seal_us(FIXTURE_DATA(event) * self, int watched)
{
	int set = watched ? dev_watch_often(self->other, watched) : -1;
	struct tensor_alloc alloc[20];
	struct tensor_import import[20];
	struct epoll_event event;
	int64_t took;
	int i, fd, err = watched && set < 0;

	for (i = 0; i < 20 && !err; i++) {
		err = dev_alloc(self->dev, PAGE, &alloc[i]);
		fd = buf_export(self->dev, alloc[i].handle, 0);
		err = err || buf_import(self->other, fd, &import[i]);
		close(fd);
	}
	took = now_us();
	while (i-- && !err)
		err = buf_seal(self->dev, alloc[i].handle, TENSOR_SEAL_META) != TENSOR_SEAL_META;
	took = now_us() - took;
	/* the waiters are still woken */
	err = err || (watched && epoll_wait(set, &event, 1, 60000) != 1);
	for (i = 0; i < 20 && !err; i++)
		err = dev_close(self->other, import[i].handle) ||
		      dev_close(self->dev, alloc[i].handle);
	close(set);
	return err ? INT64_MAX : took;
}

/* The waiters are woken by a work item, so that SEAL, which holds locks, does not take longer. */
TEST_F(event, number_of_waiters_does_not_delay_seal)
{
	int64_t alone = seal_us(self, 0), watched = seal_us(self, 40000);

	EXPECT_GT(10 * alone + 50000, watched)
	TH_LOG("%lld us, alone %lld us", (long long)watched, (long long)alone);
}

TEST_F(event, change_through_a_buffer_fd_is_reported_to_all)
{
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->fd, 0, TENSOR_SEAL_META));
	EXPECT_EQ(TENSOR_EVENT_SEAL, one_event(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_EVENT_SEAL, one_event(self->other, self->import.handle));
}

TEST_F(event, revoke_is_reported_to_other_clients)
{
	ASSERT_EQ(0, buf_revoke(self->other, self->import.handle));
	EXPECT_EQ(TENSOR_EVENT_REVOKE, one_event(self->dev, self->buf.handle));
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
	ASSERT_EQ(0, buf_revoke(self->other, self->import.handle));
	EXPECT_EQ(0, one_event(self->dev, self->buf.handle));
}

TEST_F(event, end_of_each_kind_of_holder_is_reported)
{
	struct tensor_import second;
	char *at;
	int fd;

	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(TENSOR_EVENT_GONE, one_event(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_EVENT_GONE, one_event(self->other, self->import.handle));
	/* a mapping through the device has an open file of its own */
	at = map_shared(self->other, PAGE, PROT_READ, self->import.mmap_offset);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(0, one_event(self->dev, self->buf.handle));
	munmap(at, PAGE);
	EXPECT_EQ(TENSOR_EVENT_GONE, one_event(self->dev, self->buf.handle));
	/* the client's own action causes no event for itself */
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
	self->fd = buf_export(self->dev, self->buf.handle, 0);
	fd = buf_export_ro(self->dev, self->buf.handle);
	ASSERT_EQ(0, buf_import(self->dev, fd, &second));
	EXPECT_NE(self->buf.handle, second.handle);
	close(fd);
	EXPECT_EQ(TENSOR_EVENT_GONE, any_event(self->dev));
	EXPECT_EQ(TENSOR_EVENT_GONE, one_event(self->other, self->import.handle));
	/* a second handle of the same client: no event for itself */
	EXPECT_EQ(0, dev_close(self->dev, second.handle));
	EXPECT_EQ(0, one_event(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_EVENT_GONE, one_event(self->other, self->import.handle));
	EXPECT_EQ(0, dev_close(self->other, self->import.handle));
	EXPECT_EQ(TENSOR_EVENT_GONE, one_event(self->dev, self->buf.handle));
}

/* EXPORT while no fd number is free, or into a reply that cannot be written: 0, or -1000. */
static int export_fails(int dev, uint32_t handle, uint32_t flags)
{
	struct tensor_export export = {
		.size = sizeof(export), .handle = handle, .flags = flags, .rights = TENSOR_RIGHTS_RW
	};
	struct rlimit old, none;
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (page == MAP_FAILED || getrlimit(RLIMIT_NOFILE, &old))
		return -1000;
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	err = dev_call(dev, TENSOR_IOC_EXPORT, &export);
	setrlimit(RLIMIT_NOFILE, &old);
	if (err != -EMFILE)
		return -1000;
	memcpy(page, &export, sizeof(export));
	mprotect(page, PAGE, PROT_READ);
	err = dev_call(dev, TENSOR_IOC_EXPORT, page);
	munmap(page, PAGE);
	return err == -EFAULT ? 0 : -1000;
}

TEST_F(event, failed_export_reports_no_end_of_a_holder)
{
	EXPECT_EQ(0, export_fails(self->dev, self->buf.handle, 0));
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
	EXPECT_EQ(0, export_fails(self->dev, self->buf.handle, TENSOR_EXPORT_DMABUF));
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
}

/* Returns 0 if EXPORT fails with @want and leaves the caller's struct unchanged. */
static int export_is(int dev, uint32_t handle, uint32_t flags, int want)
{
	struct tensor_export export = { .size = sizeof(export),
					.handle = handle,
					.flags = flags,
					.fd = -77,
					.rights = TENSOR_RIGHTS_RW },
			     before = export;
	int err = dev_call(dev, TENSOR_IOC_EXPORT, &export);

	return err != want ? err : memcmp(&before, &export, sizeof(export));
}

TEST_F(event, failed_export_writes_no_fd)
{
	struct tensor_alloc alloc;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	ASSERT_EQ(0, buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_PURGEABLE));
	EXPECT_EQ(0, export_is(self->dev, alloc.handle, 0, -EBUSY));
	EXPECT_EQ(0, export_is(self->dev, alloc.handle, TENSOR_EXPORT_DMABUF, -EBUSY));
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(0, export_is(self->dev, self->buf.handle, 0, -EIDRM));
	EXPECT_EQ(0, export_is(self->dev, self->buf.handle, TENSOR_EXPORT_DMABUF, -EIDRM));
}

TEST_F(event, failed_mmap_reports_no_end_of_a_holder)
{
	int dmabuf = buf_export_rights(self->dev, self->buf.handle, TENSOR_RIGHTS_RW,
				       TENSOR_EXPORT_DMABUF);

	ASSERT_LE(0, dmabuf);
	EXPECT_EQ(-EINVAL, map_errno(self->other, 32 * PAGE, PROT_READ, MAP_SHARED,
				     self->import.mmap_offset));
	EXPECT_EQ(-EINVAL, map_errno(dmabuf, 32 * PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(0, one_event(self->dev, self->buf.handle));
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
	close(dmabuf);
	EXPECT_EQ(TENSOR_EVENT_GONE, one_event(self->other, self->import.handle));
}

TEST_F(event, munmap_by_a_client_reports_nothing_to_itself)
{
	char *at = map_shared(self->dev, PAGE, PROT_READ, self->buf.mmap_offset);

	ASSERT_NE(MAP_FAILED, at);
	munmap(at, PAGE);
	EXPECT_EQ(0, one_event(self->dev, self->buf.handle));
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
}

TEST_F(event, several_events_are_merged_into_one)
{
	int i;

	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	for (i = 0; i < 100; i++)
		close(buf_export(self->dev, self->buf.handle, 0));
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_EVENT_SEAL | TENSOR_EVENT_GONE | TENSOR_EVENT_REVOKE,
		  one_event(self->other, self->import.handle));
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
}

TEST_F(event, purge_is_reported_to_the_owner)
{
	struct tensor_alloc alloc;
	int tries;

	ASSERT_EQ(0, dev_alloc(self->dev, 64 * PAGE, &alloc));
	ASSERT_EQ(0, buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_PURGEABLE));
	for (tries = 0; tries < 50 && !ready(self->dev, POLLIN); tries++)
		write_text("/proc/sys/vm/drop_caches", "2");
	EXPECT_EQ(TENSOR_EVENT_PURGE, one_event(self->dev, alloc.handle));
}

TEST_F(event, kill_of_a_peer_is_reported)
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
	/* the child's copies of the fds are closed by now */
	one_event(self->dev, self->buf.handle);
	one_event(self->other, self->import.handle);
	kill(pid, SIGKILL);
	EXPECT_EQ(-SIGKILL, reap(pid));
	EXPECT_EQ(TENSOR_EVENT_GONE, one_event(self->dev, self->buf.handle));
	EXPECT_EQ(TENSOR_EVENT_GONE, one_event(self->other, self->import.handle));
	close(sock[0]);
	close(sock[1]);
}

TEST_F(event, read_without_room_for_an_event_is_einval)
{
	char small[sizeof(struct tensor_event) - 1];

	EXPECT_EQ(-1, read(self->dev, small, sizeof(small)));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, read(self->dev, small, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->dev, small, 1));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(event, events_of_a_closed_handle_are_dropped)
{
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(0, dev_close(self->other, self->import.handle));
	EXPECT_EQ(0, ready(self->other, POLLIN));
	EXPECT_EQ(0, one_event(self->other, self->import.handle));
}

TEST_F(event, efault_of_the_reader_loses_no_event)
{
	struct tensor_import second;
	struct tensor_event *at;
	struct tensor_alloc more;
	int fd;

	at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &more));
	fd = buf_export(self->dev, more.handle, 0);
	ASSERT_EQ(0, buf_import(self->other, fd, &second));
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, more.handle, TENSOR_SEAL_META));
	EXPECT_EQ(-EFAULT, read_nowhere(self->other));
	EXPECT_EQ(POLLIN, ready(self->other, POLLIN));
	ASSERT_EQ(0, mprotect((char *)at + PAGE, PAGE, PROT_NONE));
	/* there is room for the first event, but the second is not accessible */
	EXPECT_EQ(-1, read(self->other, (char *)at + PAGE - sizeof(*at), 2 * sizeof(*at)));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ((ssize_t)(2 * sizeof(*at)), read(self->other, at, 1024));
	EXPECT_EQ(self->import.handle + second.handle, at[0].handle + at[1].handle);
	EXPECT_EQ(TENSOR_EVENT_SEAL, at[0].events);
	EXPECT_EQ(TENSOR_EVENT_SEAL, at[1].events);
	EXPECT_EQ(0, ready(self->other, POLLIN));
	munmap(at, 2 * PAGE);
	close(fd);
}

static void interrupted(int sig)
{
}

struct wait {
	int fd;
	ssize_t got;
	int err;
	struct tensor_event event;
};

static void *reader(void *data)
{
	struct wait *wait = data;

	wait->got = read(wait->fd, &wait->event, sizeof(wait->event));
	wait->err = errno;
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

TEST_F(event, epoll_survives_close_of_the_device)
{
	struct epoll_event want = { .events = EPOLLIN | EPOLLET }, got;
	int ep = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->other, &want));
	ASSERT_EQ(TENSOR_SEAL_META, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 1000));
	close(self->other);
	self->other = -1;
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));
	close(ep);
}

TEST_HARNESS_MAIN
