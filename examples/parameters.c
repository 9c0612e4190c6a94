// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Parameters shared by trainers: two processes train one model on their own half of the data, and each sees the steps of
 * the other at once, because both have the parameters in the same memory (Hogwild: they take no turns).
 */
#include <math.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tensor/tensor.h>
#include <unistd.h>

enum { TRAINERS = 2, STEPS = 400, ROWS = 32, IN = 8 };

/* Rows of x, and y = x [1, 2, ... IN]. Each trainer has its own seed, and thus other rows. */
static double step(tensor *w)
{
	double loss = INFINITY;

	tensor_scope {
		tensor *x = tensor_randn(TENSOR_SHAPE(ROWS, IN), TENSOR_OPTIONS(0));
		tensor *exact = tensor_arange_start(TENSOR_SCALAR(1), TENSOR_SCALAR(IN + 1),
						    TENSOR_OPTIONS(.dtype = TENSOR_F32));
		tensor *local = tensor_detach(w), *error, *grad;

		tensor_set_requires_grad(local, true); /* a gradient of this process's own */
		error = tensor_mse_loss(tensor_mv(x, local), tensor_mv(x, exact),
					TENSOR_REDUCTION_MEAN);
		if (tensor_backward(error) < 0 || tensor_item(error, &loss) < 0)
			break;
		grad = tensor_grad(local);
		tensor_no_grad
			tensor_sub_(w, tensor_mul_scalar(grad, TENSOR_SCALAR(0.05)));
	}
	return loss;
}

static int train(tensor_channel *channel, int number)
{
	tensor *w = tensor_recv(channel); /* the parent's memory */
	double loss = 0;

	tensor_count_own_writes(w); /* the steps of others are no error for backward */
	setlinebuf(stdout);
	tensor_manual_seed(number);
	for (int i = 0; i < STEPS && w; i++)
		loss = step(w);
	printf("trainer %d: loss %.1e\n", number, loss);
	return !w || !(loss < 1e-6);
}

int main(void)
{
	int ends[2], status, failed = 0;
	const float *v;

	tensor_scope {
		tensor *w = tensor_zeros(TENSOR_SHAPE(IN), TENSOR_OPTIONS(.shareable = true));

		for (int i = 0; i < TRAINERS; i++) {
			failed |= socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
			if (!fork())
				_exit(close(ends[0]) || train(tensor_channel_open(ends[1]), i));
			close(ends[1]);
			tensor_channel *channel = tensor_channel_open(ends[0]);
			failed |= tensor_send(channel, w, 0);
			tensor_channel_close(channel);
			close(ends[0]);
		}
		while (wait(&status) > 0)
			failed |= status;
		v = tensor_data(w);
		for (int i = 0; i < IN; i++)
			failed |= fabsf(v[i] - (float)(i + 1)) > 1e-3f;
		printf("the parent has %.3f to %.3f\n", v[0], v[IN - 1]);
	}
	return failed;
}
