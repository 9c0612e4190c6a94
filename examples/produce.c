// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A producer of tensors for a program in another language: starts a command, whose standard input is the other end of a
 * channel, and sends it batches of a pool. `produce python3 examples/python/consume.py` has a consumer in Python; without a
 * command the program is its own consumer.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tensor/channel.h>
#include <tensor/tensor.h>
#include <unistd.h>

enum { BATCHES = 100, ROWS = 16, FEATURES = 4 };
#define RINGS TENSOR_CHANNEL_OPTIONS(.ring = true)

/* Receives x and a label for each row until the producer ends. Batch i has the number i everywhere. */
static int consume(void)
{
	tensor_channel *channel = tensor_channel_open_with(0, RINGS);
	double x = 0, label = 0;
	int n = 2, batches = 0, wrong = 0;

	while (n == 2)
		tensor_scope {
			uint64_t number = 0;
			tensor *t[2];

			n = tensor_recv_many(channel, t, 2, &number, -1);
			if (n != 2)
				break;
			wrong |= tensor_item(tensor_mean(t[0]), &x) || x != (double)number ||
				 tensor_item(tensor_max(t[1]), &label) || label != (double)number;
			batches++;
		}
	printf("received %d batches\n", batches);
	fflush(stdout);
	return wrong || batches != BATCHES;
}

static int send_batches(int socket)
{
	tensor_channel *channel = tensor_channel_open_with(socket, RINGS);
	tensor *parts[2];
	int err = 0;

	tensor_pool *pool = tensor_pool_open(TENSOR_SHAPE(ROWS, FEATURES + 1), NULL);
	for (int i = 0; i < BATCHES && !err; i++)
		tensor_scope {
			tensor *both = tensor_fill_(tensor_pool_loan(pool, -1), TENSOR_SCALAR(i));

			parts[0] = tensor_narrow(both, 1, 0, FEATURES);
			parts[1] = tensor_select(both, 1, FEATURES);
			err = tensor_send_many(channel, parts, 2, i, 0, -1);
		}
	tensor_channel_close(channel);
	return err;
}

int main(int argc, char **argv)
{
	int ends[2], status = 1, err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return 1;
	if (!fork()) {
		dup2(ends[1], 0); /* without FD_CLOEXEC */
		close(ends[0]);
		close(ends[1]);
		if (argc < 2)
			_exit(consume());
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	close(ends[1]);
	err = send_batches(ends[0]);
	close(ends[0]);
	wait(&status);
	return err || status;
}
