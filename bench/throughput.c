// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Messages of 256 KiB from one process to another, as many as it can: a tensor by a ring and by the socket, with leased
 * buffers that the sender fills anew, beside as many bytes by a unix socket and by a pipe; on one processor and on two.
 * The receiver reads each byte, and the sender writes each byte.
 *
 *	throughput [MESSAGES]
 */
#include "processors.h"

#include <tensor/channel.h>
#include <tensor/tensor.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES	(256 << 10)
#define BUFFERS 8
#define FORTH	(60 * INT64_C(1000000000))

struct way {
	const char *name;
	const struct tensor_channel_options *options;
	enum { LEASES, SAME, SOCKET, PIPE } kind;
};

static const struct tensor_channel_options ring = { .ring = true };

static const struct way ways[] = {
	{ "ring, one buffer", &ring, SAME },	{ "socket, one buffer", NULL, SAME },
	{ "ring, leases", &ring, LEASES },	{ "socket, leases", NULL, LEASES },
	{ "unix socket, bytes", NULL, SOCKET }, { "pipe, bytes", NULL, PIPE },
};

static void fail(const char *what)
{
	tensor_perror(what);
	_exit(1);
}

/* Reads each byte of a message, as a consumer does. */
static uint64_t consume(const void *data)
{
	const uint64_t *p = data;
	uint64_t sum = 0;

	for (size_t i = 0; i < BYTES / sizeof(*p); i++)
		sum += p[i];
	return sum;
}

static void send_tensors(const struct way *w, int socket, long n)
{
	tensor_channel *ch = tensor_channel_open_with(socket, w->options);
	tensor_pool *pool = tensor_pool_open(TENSOR_SHAPE(BYTES),
					     TENSOR_POOL_OPTIONS(.n = BUFFERS, .dtype = TENSOR_U8));
	tensor *same = tensor_zeros(TENSOR_SHAPE(BYTES),
				    TENSOR_OPTIONS(.dtype = TENSOR_U8, .shareable = true));

	for (long i = 0; i < n; i++) {
		tensor *t = w->kind == SAME ? same : tensor_pool_loan(pool, FORTH);

		if (!t)
			fail("loan");
		if (w->kind == LEASES)
			memset(tensor_mutable_data(t), (int)i, BYTES);
		if (tensor_send_many(ch, &t, 1, (uint64_t)i, 0, FORTH))
			fail("send");
		if (w->kind == LEASES)
			tensor_release(t);
	}
	/* The receiver answers with its last message. */
	tensor_release(tensor_recv_timeout(ch, FORTH));
	tensor_channel_close(ch);
}

static void receive_tensors(const struct way *w, int socket, long n)
{
	tensor_channel *ch = tensor_channel_open_with(socket, w->options);
	tensor *t = NULL;

	for (long i = 0; i < n; i++) {
		tensor_release(t);
		if (tensor_recv_many(ch, &t, 1, NULL, FORTH) != 1)
			fail("receive");
		if (w->kind == LEASES && consume(tensor_data(t)) % 256)
			fail("values");
	}
	tensor_send(ch, t, 0);
	tensor_release(t);
	_exit(0);
}

static void send_bytes(int fd, char *data, long n)
{
	for (long i = 0; i < n; i++) {
		memset(data, (int)i, BYTES);
		for (ssize_t done = 0, k; done < BYTES; done += k)
			if ((k = write(fd, data + done, (size_t)(BYTES - done))) <= 0)
				_exit(1);
	}
}

static void receive_bytes(int fd, char *data, long n)
{
	for (long i = 0; i < n; i++) {
		for (ssize_t done = 0, k; done < BYTES; done += k)
			if ((k = read(fd, data + done, (size_t)(BYTES - done))) <= 0)
				_exit(1);
		if (consume(data) % 256)
			_exit(1);
	}
	_exit(0);
}

static void measure(const struct way *w, int processors, long n, char *data)
{
	bool tensors = w->kind == SAME || w->kind == LEASES;
	struct timespec from, to;
	double seconds;
	int fds[2], status;
	pid_t pid;

	if (w->kind == PIPE ? pipe(fds) :
			      socketpair(AF_UNIX, tensors ? SOCK_SEQPACKET : SOCK_STREAM, 0, fds))
		exit(1);
	clock_gettime(CLOCK_MONOTONIC, &from);
	pid = fork();
	if (!pid) {
		close(fds[1]);
		if (tensors)
			receive_tensors(w, fds[0], n);
		receive_bytes(fds[0], data, n);
	}
	close(fds[0]);
	if (tensors)
		send_tensors(w, fds[1], n);
	else
		send_bytes(fds[1], data, n);
	waitpid(pid, &status, 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	close(fds[1]);
	seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
	if (status)
		printf("%-20s failed\n", w->name);
	else if (w->kind == SAME)
		printf("%-20s %10d %12.0f %9s\n", w->name, processors, (double)n / seconds, "-");
	else
		printf("%-20s %10d %12.0f %9.2f\n", w->name, processors, (double)n / seconds,
		       (double)n * BYTES / seconds / 1e9);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 20000;
	char *data = malloc(BYTES);
	cpu_set_t all;

	if (!data || sched_getaffinity(0, sizeof(all), &all))
		return 1;
	setlinebuf(stdout);
	printf("%-20s %10s %12s %9s   messages of 256 KiB\n", "", "processors", "messages/s",
	       "GB/s");
	for (int k = 2; k >= 1; k--)
		for (size_t i = 0; use_processors(&all, k) && i < sizeof(ways) / sizeof(*ways); i++)
			measure(&ways[i], k, n, data);
	free(data);
	return 0;
}
