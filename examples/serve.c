// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* An inference server: three workers get the file of weights that it has mapped, whose bytes are in memory once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tensor/channel.h>
#include <tensor/tensor.h>
#include <unistd.h>

enum { WORKERS = 3, LOANS = 2 * WORKERS, REQUESTS = 300, BATCH = 8, IN = 64, OUT = 10 };
#define TRUST TENSOR_CHANNEL_OPTIONS(.ring = true, .files = true)

/* Answers until the server ends. An answer has the number of its request. */
static int work(int socket)
{
	tensor_channel *channel = tensor_channel_open_with(socket, TRUST);
	int n = !tensor_send(channel, tensor_recv(channel), 0); /* then files may come */
	tensor *weight = n ? tensor_keep(tensor_recv(channel)) : NULL;
	while (n == 1 && weight)
		tensor_scope {
			uint64_t request;
			tensor *x, *y;
			if ((n = tensor_recv_many(channel, &x, 1, &request, -1)) != 1)
				break;
			y = tensor_softmax(tensor_mm(x, weight), -1);
			tensor_send_many(channel, &y, 1, request, TENSOR_SEND_READONLY, -1);
		}
	return !weight || n == 1;
}

/* One request: BATCH rows, whose numbers are that of the request. */
static int ask(tensor_channel *worker, tensor_pool *pool, int number)
{
	tensor *x = tensor_fill_(tensor_pool_loan(pool, -1), TENSOR_SCALAR(number));
	return tensor_send_many(worker, &x, 1, number, TENSOR_SEND_READONLY, -1);
}

int main(void)
{
	char path[] = "/tmp/tensor-serve-XXXXXX";
	struct tensor_named weight = { "weight", tensor_eye_m(IN, OUT, TENSOR_OPTIONS(0)) };
	int ends[WORKERS][2], status, sent = 0, answers = 0, i;
	int failed = mkstemp(path) < 0 || tensor_save_safetensors(path, &weight, 1, NULL, 0);
	struct tensor_load_options map = { .map = true };
	tensor *mapped = tensor_archive_get(tensor_open_safetensors(path, &map), "weight");
	tensor_channel *workers[WORKERS];
	for (i = 0; i < WORKERS; i++) {
		failed |= socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends[i]);
		if (!fork())
			_exit(close(ends[i][0]) || work(ends[i][1]));
		close(ends[i][1]);
		workers[i] = tensor_channel_open_with(ends[i][0], TRUST);
		tensor_scope
			failed |= tensor_send(workers[i], weight.t, 0) ||
				  !tensor_recv(workers[i]) || tensor_send(workers[i], mapped, 0);
	}
	tensor_pool *p = tensor_pool_open(TENSOR_SHAPE(BATCH, IN), TENSOR_POOL_OPTIONS(.n = LOANS));
	for (; sent < LOANS && !failed; sent++) /* two requests wait at each worker */
		tensor_scope
			failed |= ask(workers[sent % WORKERS], p, sent);
	for (; answers < REQUESTS && !failed; answers++)
		tensor_scope {
			double sum = 0;
			tensor *y;
			i = tensor_channel_wait(workers, WORKERS, -1);
			failed |= i < 0 || tensor_recv_many(workers[i], &y, 1, NULL, -1) != 1 ||
				  tensor_item(tensor_sum(y), &sum) || sum < 7.99 || sum > 8.01;
			if (!failed && sent < REQUESTS)
				failed |= ask(workers[i], p, sent++);
		}
	for (i = 0; i < WORKERS; i++) {
		tensor_channel_close(workers[i]);
		shutdown(ends[i][0], SHUT_RDWR); /* the worker's next receive fails with EPIPE */
		failed |= wait(&status) < 0 || status;
	}
	unlink(path);
	printf("%d answers of %d workers\n", answers, WORKERS);
	return failed;
}
