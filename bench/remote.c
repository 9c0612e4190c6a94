// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Throughput of a channel between machines over the loopback device, from one process to another: tensors of 1 to 256 MiB, beside
 * as many bytes by a TCP socket into memory that is used again. The median of the rounds, both ways in turns; and half of the time
 * of 64 bytes to the other process and back.
 *
 *	remote [MIB_OF_A_SIZE]
 */
#include <tensor/remote.h>
#include <tensor/tensor.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB	(INT64_C(1) << 20)
#define SMALL	64
#define LATENCY 5000

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what)
{
	if (tensor_last_error()->code)
		tensor_perror(what);
	else
		perror(what);
	kill(0, SIGTERM);
	_exit(1);
}

static void send_all(int socket, const char *from, int64_t n)
{
	while (n > 0) {
		ssize_t k = send(socket, from, (size_t)n, MSG_NOSIGNAL);

		if (k <= 0)
			fail("send");
		from += k;
		n -= k;
	}
}

static void recv_all(int socket, char *to, int64_t n)
{
	while (n > 0) {
		ssize_t k = recv(socket, to, (size_t)n, 0);

		if (k <= 0)
			fail("recv");
		to += k;
		n -= k;
	}
}

static tensor *bytes_of(int64_t n)
{
	tensor *t =
		tensor_ones(TENSOR_SHAPE(n), TENSOR_OPTIONS(.dtype = TENSOR_U8, .shareable = true));

	if (!t)
		fail("ones");
	return t;
}

/* The other process sends what it gets a byte for, and a small message back for each that it gets. */
static void serve(tensor_channel *ch, int socket)
{
	tensor *small, *large = NULL;
	int64_t mib = -1, n;

	while (read(socket, &n, sizeof(n)) == sizeof(n) && n) {
		bool tcp = n < 0;

		n = tcp ? -n : n;
		if (n == SMALL) {
			for (int i = 0; i < LATENCY; i++) {
				small = tensor_recv(ch);
				if (!small || tensor_send(ch, small, 0) < 0)
					fail("echo");
				tensor_release(small);
			}
			continue;
		}
		if (n != mib) {
			tensor_release(large);
			large = bytes_of(n);
			mib = n;
		}
		if (tcp)
			send_all(socket, tensor_data(large), n);
		else if (tensor_send(ch, large, 0) < 0)
			fail("send");
	}
	tensor_release(large);
	tensor_channel_close(ch);
	_exit(0);
}

static double receive(tensor_channel *ch, int socket, int64_t n, char *to)
{
	int64_t order = to ? -n : n;
	double begin = now();
	tensor *t;

	if (write(socket, &order, sizeof(order)) != sizeof(order))
		fail("write");
	if (to) {
		recv_all(socket, to, n);
	} else {
		t = tensor_recv(ch);
		if (!t || tensor_numel(t) != n)
			fail("recv");
		tensor_release(t);
	}
	return now() - begin;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void throughput(tensor_channel *ch, int socket, int64_t n, int64_t whole)
{
	int rounds = whole / n < 5 ? 5 : whole / n > 200 ? 200 : (int)(whole / n);
	double *a = calloc((size_t)rounds, sizeof(*a)), *b = calloc((size_t)rounds, sizeof(*b));
	char *to = malloc((size_t)n);

	if (!a || !b || !to)
		fail("malloc");
	memset(to, 1, (size_t)n);
	receive(ch, socket, n, NULL);
	receive(ch, socket, n, to);
	for (int i = 0; i < rounds; i++) {
		a[i] = receive(ch, socket, n, NULL);
		b[i] = receive(ch, socket, n, to);
	}
	qsort(a, (size_t)rounds, sizeof(*a), compare);
	qsort(b, (size_t)rounds, sizeof(*b), compare);
	printf("| %lld MiB | %.2f | %.2f | %.2f |\n", (long long)(n / MIB),
	       (double)n / a[rounds / 2] * 1e-9, (double)n / b[rounds / 2] * 1e-9,
	       b[rounds / 2] / a[rounds / 2]);
	free(a);
	free(b);
	free(to);
}

static void latency(tensor_channel *ch, int socket)
{
	int64_t order = SMALL;
	tensor *t = bytes_of(SMALL);
	double *v = calloc(LATENCY, sizeof(*v));

	if (!v || write(socket, &order, sizeof(order)) != sizeof(order))
		fail("write");
	for (int i = 0; i < LATENCY; i++) {
		double begin = now();
		tensor *back;

		if (tensor_send(ch, t, 0) < 0 || !(back = tensor_recv(ch)))
			fail("echo");
		tensor_release(back);
		v[i] = (now() - begin) / 2;
	}
	qsort(v, LATENCY, sizeof(*v), compare);
	printf("\n64 bytes, one way: %.1f us (p50), %.1f (p99)\n", v[LATENCY / 2] * 1e6,
	       v[LATENCY * 99 / 100] * 1e6);
	free(v);
	tensor_release(t);
}

/* A listening socket of the loopback device; its port. */
static int listen_tcp(uint16_t *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(at);
	int s = socket(AF_INET, SOCK_STREAM, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (s < 0 || bind(s, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(s, 1) < 0 ||
	    getsockname(s, (struct sockaddr *)&at, &bytes) < 0)
		fail("listen");
	*port = at.sin_port;
	return s;
}

static int connect_tcp(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = port };
	int s = socket(AF_INET, SOCK_STREAM, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (s < 0 || connect(s, (struct sockaddr *)&at, sizeof(at)) < 0)
		fail("connect");
	return s;
}

int main(int argc, char **argv)
{
	int64_t whole = (argc > 1 ? atoll(argv[1]) : 1024) * MIB, end = 0;
	int listening, socket, pipe_ends[2], one = 1;
	tensor_channel_listener *l;
	char address[64] = "";
	tensor_channel *ch;
	uint16_t port;

	setenv("UCX_TLS", "tcp", 0);
	listening = listen_tcp(&port);
	if (pipe(pipe_ends) < 0)
		fail("pipe");
	if (!fork()) {
		if (read(pipe_ends[0], address, sizeof(address) - 1) <= 0)
			_exit(1);
		socket = connect_tcp(port);
		ch = tensor_channel_connect(address, NULL, -1);
		if (!ch)
			fail("connect");
		serve(ch, socket);
	}
	l = tensor_channel_listen("ucx://127.0.0.1:0", NULL);
	if (!l)
		fail("listen");
	dprintf(pipe_ends[1], "%s", tensor_channel_listener_address(l));
	ch = tensor_channel_accept(l, -1);
	socket = accept(listening, NULL, NULL);
	if (!ch || socket < 0)
		fail("accept");
	/* Without it each order waits for the acknowledgement of the one before. */
	setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	printf("| size | channel, GB/s | TCP socket, GB/s | ratio |\n|---|---|---|---|\n");
	for (int64_t mib = 1; mib <= 256; mib *= 4)
		throughput(ch, socket, mib * MIB, whole);
	latency(ch, socket);
	if (write(socket, &end, sizeof(end)) != sizeof(end))
		fail("write");
	tensor_channel_close(ch);
	tensor_channel_listener_close(l);
	wait(NULL);
	return 0;
}
