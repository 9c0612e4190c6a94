// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A monitor: a process reads the parameters and the losses of a trainer while it trains. It has them read-only, the trainer
 * does not wait for it, and its death changes nothing.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tensor/channel.h>
#include <tensor/tensor.h>
#include <unistd.h>

enum { W, LOSSES, DONE, COUNT, STEPS = 2000 };

/* Looks every 20 ms until the trainer says that it is done. */
static int monitor(int socket)
{
	tensor_channel *channel = tensor_channel_open(socket);
	tensor *t[COUNT];
	double done = 0, size = 0, loss = 0;
	int wrong = tensor_recv_many(channel, t, COUNT, NULL, -1) != COUNT;

	setlinebuf(stdout);
	while (!wrong && !done) {
		tensor_scope
			wrong = tensor_item(t[DONE], &done) ||
				tensor_item(tensor_norm(t[W], TENSOR_SCALAR(2)), &size) ||
				tensor_item(tensor_min(t[LOSSES]), &loss);
		printf("the parameters have length %.3f, the least loss is %.1e\n", size, loss);
		usleep(20000);
	}
	wrong |= tensor_add_scalar_(t[W], TENSOR_SCALAR(1)) || tensor_last_error()->code != EACCES;
	return wrong || !(fabs(size - 5) < 0.01) || !(loss < 1e-6);
}

/* Gradient descent towards [3, 4]. */
static double step(tensor *w, tensor *target)
{
	double loss = INFINITY;

	tensor_scope {
		tensor *error = tensor_sub(w, target);
		tensor_item(tensor_sum(tensor_mul(error, error)), &loss);
		tensor_sub_(w, tensor_mul_scalar(error, TENSOR_SCALAR(0.01)));
	}
	return loss;
}

int main(void)
{
	tensor_options shared = TENSOR_OPTIONS(.shareable = true);
	int ends[2], status = 1, failed = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return 1;
	if (!fork())
		_exit(close(ends[0]) || monitor(ends[1]));
	close(ends[1]);
	tensor_scope {
		tensor *w = tensor_zeros(TENSOR_SHAPE(2), shared);
		tensor *losses = tensor_ones(TENSOR_SHAPE(STEPS), shared);
		tensor *done = tensor_zeros(TENSOR_SHAPE(), shared);
		tensor *target = tensor_add_scalar(tensor_arange(TENSOR_SCALAR(2), shared),
						   TENSOR_SCALAR(3));
		tensor_channel *channel = tensor_channel_open(ends[0]);

		failed |= tensor_send_many(channel, (tensor *[]){ w, losses, done }, COUNT, 0,
					   TENSOR_SEND_READONLY, -1);
		for (int i = 0; i < STEPS; i++)
			tensor_scope
				tensor_fill_(tensor_select(losses, 0, i),
					     TENSOR_SCALAR(step(w, target)));
		tensor_fill_(done, TENSOR_SCALAR(1));
		tensor_channel_close(channel);
		wait(&status);
	}
	return failed || status;
}
