// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Autograd: fits a line to points by gradient descent. A scope for each step keeps memory constant. */
#include <math.h>
#include <stdio.h>
#include <tensor/tensor.h>

#define STEPS 200
#define RATE  0.5

/* 0, or -errno: an operator that gets NULL returns NULL, so that the chain is checked once. */
static int step(tensor *x, tensor *y, tensor *slope, tensor *offset, tensor_optim *optim,
		double *loss)
{
	int err = 0;

	tensor_scope {
		tensor *guess = tensor_add(tensor_mul(x, slope), offset);
		tensor *mean = tensor_mean(tensor_square(tensor_sub(guess, y)));

		tensor_optim_zero_grad(optim); /* backward adds to the gradients */
		err = tensor_backward(mean);
		if (err == 0)
			err = tensor_item(mean, loss);
		if (err == 0)
			err = tensor_optim_step(optim);
	}
	return err;
}

static tensor *parameter(void)
{
	tensor *t = tensor_zeros(TENSOR_SHAPE(1), TENSOR_OPTIONS(0));

	tensor_set_requires_grad(t, true);
	return t;
}

int main(void)
{
	double first = 0, loss = 0, a, b;
	int status = 1;

	tensor_manual_seed(1);
	tensor_scope {
		tensor *x = tensor_rand(TENSOR_SHAPE(64), TENSOR_OPTIONS(0));
		tensor *noise = tensor_mul_scalar(tensor_randn(TENSOR_SHAPE(64), TENSOR_OPTIONS(0)),
						  TENSOR_SCALAR(0.01));
		tensor *line = tensor_add_scalar(tensor_mul_scalar(x, TENSOR_SCALAR(3)),
						 TENSOR_SCALAR(-1));
		tensor *y = tensor_add(line, noise);
		tensor *slope = parameter(), *offset = parameter();
		tensor_optim *optim =
			tensor_optim_new(TENSOR_LIST(slope, offset), TENSOR_SGD(.lr = RATE));

		for (int i = 0; i < STEPS; i++) {
			if (step(x, y, slope, offset, optim, &loss) < 0)
				goto failed;
			if (!i)
				first = loss;
		}
		tensor_optim_free(optim);
		if (tensor_item(slope, &a) < 0 || tensor_item(offset, &b) < 0)
			goto failed;
		printf("%.3f x %+.3f, loss %.5f (%.5f at first)\n", a, b, loss, first);
		status = fabs(a - 3) > 0.05 || fabs(b + 1) > 0.05 || loss > 0.001;
	}
	return status;
failed:
	tensor_perror("train");
	return 1;
}
