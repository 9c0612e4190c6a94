// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sends a tensor to another process and back: one that was sent before, and a new one that is
 * allocated, filled and sent each time. Both sides sleep in the kernel while they wait.
 */
#include "row.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t elements;
static int sock;
static pid_t pid;
static tensor_channel *channel;
static tensor *shared;

/* The other process: sends tensors back until the socket is closed. */
static void answer(int s)
{
	tensor_channel *ch = tensor_channel_open(s);
	tensor *t;

	while (ch && (t = tensor_recv(ch))) {
		int err = tensor_send(ch, t, 0);

		tensor_release(t);
		if (err < 0)
			break;
	}
	_exit(0);
}

static void setup(int64_t nbytes)
{
	int pair[2] = { -1, -1 };

	elements = nbytes / (int64_t)sizeof(float);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		perror("socketpair");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		answer(pair[1]);
	}
	close(pair[1]);
	sock = pair[0];
	channel = tensor_channel_open(sock);
	row_check(channel ? 0 : -1);
}

static tensor *filled(void)
{
	return tensor_full(TENSOR_SHAPE(elements), TENSOR_SCALAR(0.5), TENSOR_OPTIONS(0));
}

static void setup_shared(int64_t nbytes)
{
	setup(nbytes);
	shared = row_own(filled());
}

static void teardown(void)
{
	tensor_channel_close(channel);
	close(sock);
	waitpid(pid, NULL, 0);
}

/* Send t and receive it again. The caller owns the result. */
static tensor *handed(tensor *t)
{
	row_check(tensor_send(channel, t, 0));
	return tensor_recv(channel);
}

static void run_handoff(int64_t n)
{
	while (n--)
		tensor_release(handed(shared));
}

static void run_fresh(int64_t n)
{
	while (n--) {
		tensor *t = filled();

		tensor_release(handed(t));
		tensor_release(t);
	}
}

static double last_element(tensor *back)
{
	double value = NAN;

	if (back)
		row_check(tensor_at(back, TENSOR_INTS(elements - 1), &value));
	tensor_release(back);
	return value;
}

static double value_handoff(void)
{
	return last_element(handed(shared));
}

static double value_fresh(void)
{
	tensor *t = filled();
	double value = last_element(handed(t));

	tensor_release(t);
	return value;
}

static void setup_handoff_1m(void)
{
	setup_shared((int64_t)1 << 20);
}

static void setup_handoff_1g(void)
{
	setup_shared((int64_t)1 << 30);
}

static void setup_fresh_1m(void)
{
	setup((int64_t)1 << 20);
}

static void setup_fresh_1g(void)
{
	setup((int64_t)1 << 30);
}

const struct row share_rows[] = {
	{ "handoff_1m", setup_handoff_1m, run_handoff, value_handoff, teardown },
	{ "handoff_1g", setup_handoff_1g, run_handoff, value_handoff, teardown },
	{ "fresh_1m", setup_fresh_1m, run_fresh, value_fresh, teardown },
	{ "fresh_1g", setup_fresh_1g, run_fresh, value_fresh, teardown },
	{ NULL, NULL, NULL, NULL, NULL },
};
