/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Messages of a channel that a test sends and receives itself. */
#ifndef TESTS_WIRE_TEST_H
#define TESTS_WIRE_TEST_H

#include "check.h"

#include <sys/socket.h>

#include "lib/sharing/wire.h"

/* Sends the first n bytes with an fd. */
static inline ssize_t wire_test_send_part(int socket, const void *data, size_t n, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .align = { .cmsg_level = SOL_SOCKET,
				 .cmsg_type = SCM_RIGHTS,
				 .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec iov = { (void *)data, n };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	return sendmsg(socket, &msg, MSG_NOSIGNAL);
}

static inline ssize_t wire_test_send(int socket, const struct wire_message *m, int fd)
{
	return wire_test_send_part(socket, m, sizeof(*m), fd);
}

/* Receives a message with an fd, which is returned. */
static inline int wire_test_recv(int socket, struct wire_message *m)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fd;

	assert_int_equal(recvmsg(socket, &msg, MSG_CMSG_CLOEXEC), sizeof(*m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

#endif
