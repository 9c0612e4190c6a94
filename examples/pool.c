// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A pool: two loaders fill batches in buffers that they use again, and a trainer fits a line to them. A buffer is free
 * again when the trainer has released the batch that was in it, what autograd saved of it included.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tensor/channel.h>
#include <tensor/tensor.h>
#include <unistd.h>

enum { LOADERS = 2, BATCHES = 200 /* of each loader */ };
#define RINGS TENSOR_CHANNEL_OPTIONS(.ring = true)

/* Batches of x and y = x + 1, in the two rows of a buffer. */
static int load(int socket)
{
	tensor_channel *channel = tensor_channel_open_with(socket, RINGS);
	tensor_pool *pool = tensor_pool_open(TENSOR_SHAPE(2, 32), TENSOR_POOL_OPTIONS(.n = 3));
	tensor *rows[2], *buffer;
	int err = 0;

	for (uint64_t batch = 0; batch < BATCHES && !err; batch++)
		tensor_scope {
			buffer = tensor_pool_loan(pool, -1); /* waits for the trainer */
			rows[0] = tensor_normal_(tensor_select(buffer, 0, 0), 0, 1);
			rows[1] = tensor_copy_(tensor_select(buffer, 0, 1), rows[0]);
			tensor_add_scalar_(rows[1], TENSOR_SCALAR(1));
			err = tensor_send_many(channel, rows, 2, batch, 0, -1);
		}
	return err != 0;
}

/* One step of gradient descent. The number of tensors that came, or -errno. */
static int step(tensor_channel *channel, tensor *line)
{
	tensor *batch[2], *y;
	int n;

	tensor_scope {
		if ((n = tensor_recv_many(channel, batch, 2, NULL, -1)) != 2)
			break;
		y = tensor_mul(batch[0], tensor_select(line, 0, 0));
		y = tensor_add(y, tensor_select(line, 0, 1));
		tensor_backward(tensor_mse_loss(y, batch[1], TENSOR_REDUCTION_MEAN));
		y = tensor_mul_scalar(tensor_grad(line), TENSOR_SCALAR(0.1));
		tensor_no_grad
			tensor_sub_(line, y);
		tensor_set_grad(line, NULL);
	}
	return n;
}

int main(void)
{
	tensor *line = tensor_zeros(TENSOR_SHAPE(2), TENSOR_OPTIONS(.dtype = TENSOR_F32));
	int ends[2], status, failed = tensor_set_requires_grad(line, true), steps = 0, i;
	tensor_channel *channels[LOADERS];

	for (i = 0; i < LOADERS; i++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
			return 1;
		if (!fork())
			_exit(close(ends[0]) || load(ends[1]));
		close(ends[1]);
		channels[i] = tensor_channel_open_with(ends[0], RINGS);
	}
	for (int n = LOADERS; n > 0 && (i = tensor_channel_wait(channels, n, -1)) >= 0;) {
		if (step(channels[i], line) == 2)
			steps++;
		else /* that loader has ended */
			channels[i] = channels[--n];
	}
	while (wait(&status) > 0)
		failed |= status;
	const float *v = tensor_data(line);
	printf("y = %.3f x + %.3f after %d batches\n", v[0], v[1], steps);
	return failed || steps != LOADERS * BATCHES || v[0] < 0.99 || v[1] > 1.01;
}
