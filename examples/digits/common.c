// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Sockets, the network and random numbers of the three programs. See common.h. */
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int open_socket(const char *path, struct sockaddr_un *address)
{
	int fd;

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address->sun_path)) {
		fprintf(stderr, "digits: socket path %s is too long\n", path);
		return -1;
	}
	strcpy(address->sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		perror("digits: socket");
	return fd;
}

int digits_listen(const char *path)
{
	struct sockaddr_un address;
	int fd = open_socket(path, &address);

	if (fd < 0)
		return -1;
	unlink(path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 2) < 0) {
		perror(path);
		close(fd);
		return -1;
	}
	return fd;
}

int digits_connect(const char *path, char role)
{
	struct sockaddr_un address;
	int fd = open_socket(path, &address);

	if (fd < 0)
		return -1;
	/* The trainer may still be starting. */
	for (int i = 0; i < 100; i++) {
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
			if (digits_send(fd, &role, 1) == 0)
				return fd;
			break;
		}
		if (errno != ENOENT && errno != ECONNREFUSED)
			break;
		usleep(100000);
	}
	perror(path);
	close(fd);
	return -1;
}

int digits_receive(int fd, void *data, size_t size)
{
	ssize_t n;

	/*
	 * If a peer exits with unread messages, read() once returns ECONNRESET; messages that it
	 * sent before can still be read.
	 */
	do {
		n = recv(fd, data, size, 0);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n == (ssize_t)size)
		return 1;
	if (n == 0)
		return 0;
	fprintf(stderr, "digits: unexpected message of %zd bytes\n", n);
	return -1;
}

int digits_send(int fd, const void *data, size_t size)
{
	return send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -1;
}

tensor *digits_forward(tensor *images, tensor *const *weights)
{
	tensor *hidden = tensor_relu(tensor_addmm(weights[1], images, weights[0]));

	return tensor_addmm(weights[3], hidden, weights[2]);
}

uint64_t digits_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1d;
}
