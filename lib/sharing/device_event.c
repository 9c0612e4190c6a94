// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Events of /dev/tensor: actions of other processes and of the kernel on this process's buffers. */
#include "core/tensor_impl.h"
#include "storage/provider/device_file.h"

#include <fcntl.h>
#include <unistd.h>

#define EVENT_MOST 256 /* largest size of an event, in bytes, of any kernel */
#define EVENT_ROOM 1024

_Static_assert(TENSOR_BUFFER_EVENT_SEAL == TENSOR_EVENT_SEAL &&
		       TENSOR_BUFFER_EVENT_REVOKE == TENSOR_EVENT_REVOKE &&
		       TENSOR_BUFFER_EVENT_GONE == TENSOR_EVENT_GONE &&
		       TENSOR_BUFFER_EVENT_PURGE == TENSOR_EVENT_PURGE,
	       "the events of the library are the kernel's");

TENSOR_EXPORT int tensor_event_fd(void)
{
	uint32_t serial;
	int fd = device_file(&serial);

	if (fd < 0)
		return device_file_fail("tensor_event_fd", fd);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? tensor_fail(errno, "tensor_event_fd: %s", strerror(errno)) : fd;
}

/* Converts the kernel's events, each with its own size. */
static int convert(const char *bytes, size_t got, struct tensor_buffer_event *events)
{
	struct tensor_event e;
	int n = 0;

	for (size_t at = 0; at + sizeof(e) <= got; at += e.size, n++) {
		memcpy(&e, bytes + at, sizeof(e));
		events[n] = (struct tensor_buffer_event){
			.dev = device_number(), .ino = e.ino, .handle = e.handle, .events = e.events
		};
		if (e.size < sizeof(e)) /* not an event */
			return n;
	}
	return n;
}

/*
 * A read returns as many events as fit, which must not exceed the space of the caller: the buffer
 * is as large as that many events of the smallest size. If an event of a newer kernel is larger,
 * the buffer is doubled until one fits.
 */
static int read_some(int fd, struct tensor_buffer_event *events, int n, size_t *unit)
{
	char bytes[EVENT_ROOM] __attribute__((aligned(8)));
	size_t most = EVENT_ROOM / sizeof(struct tensor_event);
	ssize_t got;

	for (;; *unit *= 2) {
		if (*unit > sizeof(struct tensor_event))
			most = 1;
		got = read(fd, bytes, ((size_t)n < most ? (size_t)n : most) * *unit);
		if (got > 0)
			return convert(bytes, (size_t)got, events);
		if (got == 0 || errno == EAGAIN)
			return 0;
		if (errno != EINVAL || *unit >= EVENT_MOST)
			return -errno;
	}
}

TENSOR_EXPORT int tensor_event_read(struct tensor_buffer_event *events, int n)
{
	size_t unit = sizeof(struct tensor_event);
	uint32_t serial;
	int fd, got, done = 0;

	if (!events || n < 1)
		return tensor_fail(EINVAL,
				   "tensor_event_read: room for 1 event or more is needed, "
				   "got %p and %d",
				   (void *)events, n);
	fd = device_file(&serial);
	if (fd < 0)
		return device_file_fail("tensor_event_read", fd);
	do {
		got = read_some(fd, events + done, n - done, &unit);
		if (got > 0)
			done += got;
	} while (got > 0 && done < n);
	/* Events that were read are returned also if a later read fails. */
	if (got < 0 && !done)
		return tensor_fail(-got, "tensor_event_read: %s", strerror(-got));
	return done;
}
