/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Helpers of the event tests: a buffer that two clients hold, and reads of their events. */
#ifndef TENSOR_KSELFTEST_EVENT_H
#define TENSOR_KSELFTEST_EVENT_H

#include <poll.h>
#include <sys/syscall.h>

#include "../include/fixture.h"
#include "kselftest_harness.h"

FIXTURE(event)
{
	int dev;
	int other;
	int fd;
	uint64_t used;
	struct tensor_alloc buf;
	struct tensor_import import;
};

FIXTURE_SETUP(event)
{
	ASSERT_EQ(0, setup_two_clients(&self->dev, &self->other, &self->fd, &self->used, &self->buf,
				       16 * PAGE));
	ASSERT_EQ(0, buf_import(self->other, self->fd, &self->import));
	ASSERT_EQ(0, fcntl(self->dev, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, fcntl(self->other, F_SETFL, O_NONBLOCK));
}

FIXTURE_TEARDOWN(event)
{
	EXPECT_TRUE(teardown_two_clients(self->dev, self->other, self->fd, self->used));
}

/* Reads the only event: its bits; 0 if there is none, -errno, or -1000 if it is malformed. */
HELPER int one_event(int dev, uint32_t handle)
{
	struct tensor_event event[4];
	struct tensor_info info;
	ssize_t n = read(dev, event, sizeof(event));

	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (n != sizeof(event[0]) || event[0].size != sizeof(event[0]) || event[0].__reserved ||
	    event[0].handle != handle || !event[0].events)
		return -1000;
	if (buf_info(dev, handle, &info) || info.ino != event[0].ino)
		return -1000;
	return (int)event[0].events;
}

/* The same for any handle. */
HELPER int any_event(int dev)
{
	struct tensor_event event;

	return read(dev, &event, sizeof(event)) == sizeof(event) ? (int)event.events : -1000;
}

/* A read() to an inaccessible address. */
HELPER int read_nowhere(int dev)
{
	return syscall(SYS_read, dev, NULL, 1024) < 0 ? -errno : 0;
}

HELPER short ready(int fd, short want)
{
	struct pollfd p = { .fd = fd, .events = want };

	return poll(&p, 1, 0) < 0 ? -1 : p.revents;
}

#endif /* TENSOR_KSELFTEST_EVENT_H */
