// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Latency of a message between two processes: half of the time of a message to the other one and back. A tensor by a
 * ring and by the socket, beside as many bytes by a unix socket and by a pipe; on one processor and on two.
 *
 *	channels [ROUNDS]
 */
#include "processors.h"

#include <tensor/channel.h>
#include <tensor/tensor.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 2000
#define BYTES	336 /* of a message of a channel */

/* One end of a way. */
struct end {
	tensor_channel *ch;
	tensor *own; /* what is sent, or NULL: the one that came last */
	tensor *came;
	int in, out; /* descriptors of the ways that carry bytes */
};

struct way {
	const char *name;
	const struct tensor_channel_options *options; /* NULL: bytes, or a channel without rings */
	bool tensors, pipes;
};

static const struct tensor_channel_options defaults = { .ring = true };
static const struct tensor_channel_options spinning = { .ring = true, .spin_ns = 1000000000 };
static const struct tensor_channel_options blocking = { .ring = true, .spin_ns = -1 };

static const struct way ways[] = {
	{ "ring, spinning", &spinning, true, false }, { "ring, default", &defaults, true, false },
	{ "ring, blocking", &blocking, true, false }, { "channel, socket", NULL, true, false },
	{ "unix socket", NULL, false, false },	      { "pipe", NULL, false, true },
};

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void fail(const char *what)
{
	tensor_perror(what);
	_exit(1);
}

static void open_end(struct end *e, const struct way *w)
{
	if (w->tensors && !(e->ch = tensor_channel_open_with(e->in, w->options)))
		fail("channel");
}

static bool receive(struct end *e)
{
	char bytes[BYTES];

	if (!e->ch)
		return read(e->in, bytes, sizeof(bytes)) == sizeof(bytes);
	tensor_release(e->came);
	e->came = tensor_recv(e->ch);
	return e->came;
}

static void transmit(struct end *e)
{
	static const char bytes[BYTES];

	if (e->ch ? tensor_send(e->ch, e->own ? e->own : e->came, 0) < 0 :
		    write(e->out, bytes, sizeof(bytes)) != sizeof(bytes))
		fail("send");
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void report(const struct way *w, int processors, int64_t *ns, long n)
{
	qsort(ns, (size_t)n, sizeof(*ns), compare);
	printf("%-18s %10d %9.2f %9.2f %9.2f\n", w->name, processors, (double)ns[n / 2] / 2000,
	       (double)ns[n * 99 / 100] / 2000, (double)ns[n * 999 / 1000] / 2000);
}

static void connect_ends(const struct way *w, struct end *a, struct end *b)
{
	int to[2], fro[2];

	if (w->pipes ? pipe(to) || pipe(fro) : socketpair(AF_UNIX, SOCK_SEQPACKET, 0, to))
		exit(1);
	*a = (struct end){ .in = w->pipes ? fro[0] : to[0], .out = w->pipes ? to[1] : to[0] };
	*b = (struct end){ .in = w->pipes ? to[0] : to[1], .out = w->pipes ? fro[1] : to[1] };
}

static void close_end(struct end *e)
{
	close(e->in);
	if (e->out != e->in)
		close(e->out);
}

static void measure(const struct way *w, int processors, int64_t *ns, long rounds)
{
	struct end a, b;
	pid_t pid;

	connect_ends(w, &a, &b);
	pid = fork();
	if (!pid) {
		close_end(&a);
		open_end(&b, w);
		while (receive(&b))
			transmit(&b);
		_exit(0);
	}
	close_end(&b);
	open_end(&a, w);
	if (a.ch)
		a.own = tensor_ones(TENSOR_SHAPE(64, 1024), TENSOR_OPTIONS(.shareable = true));
	for (long i = -WARM_UP; i < rounds; i++) {
		int64_t start = now();

		transmit(&a);
		if (!receive(&a))
			fail("receive");
		if (i >= 0)
			ns[i] = now() - start;
	}
	report(w, processors, ns, rounds);
	tensor_release(a.own);
	tensor_release(a.came);
	tensor_channel_close(a.ch);
	close_end(&a);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 50000;
	int64_t *ns = calloc((size_t)rounds, sizeof(*ns));
	cpu_set_t all;

	if (!ns || sched_getaffinity(0, sizeof(all), &all))
		return 1;
	setlinebuf(stdout);
	printf("%-18s %10s %9s %9s %9s   us one way, a tensor of 256 KiB\n", "", "processors",
	       "p50", "p99", "p99.9");
	for (int n = 2; n >= 1; n--) {
		if (!use_processors(&all, n))
			continue;
		for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
			/* One processor cannot spin and answer. */
			if (n > 1 || ways[i].options != &spinning)
				measure(&ways[i], n, ns, rounds);
	}
	free(ns);
	return 0;
}
