// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The gradients of each sample of an MLP, 784-128-10 with a batch of 64: by tensor_vmap() and by a loop. bench/per_sample.py
 * compares them with torch.func.
 */
#include <tensor/tensor.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCH	   64
#define PARAMETERS 4

static tensor *parameters[PARAMETERS];

static tensor *loss_of(tensor *x, tensor *target)
{
	tensor *h = tensor_relu(tensor_linear(x, parameters[0], parameters[1]));

	return tensor_cross_entropy(tensor_unsqueeze(tensor_linear(h, parameters[2], parameters[3]),
						     0),
				    tensor_unsqueeze(target, 0));
}

static int gradients(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	tensor *loss = loss_of(in[0], in[1]);

	(void)nin, (void)nout, (void)ctx;
	return tensor_backward_ex(TENSOR_LIST(loss), NULL, (tensor_list){ parameters, PARAMETERS },
				  out, 0);
}

static int by_vmap(tensor *x, tensor *target, tensor **out)
{
	return tensor_vmap(gradients, NULL, TENSOR_LIST(x, target), NULL, out, PARAMETERS, NULL,
			   NULL);
}

static int by_loop(tensor *x, tensor *target, tensor **out)
{
	tensor *of[PARAMETERS][BATCH];

	for (int i = 0; i < BATCH; i++) {
		tensor *in[] = { tensor_select(x, 0, i), tensor_select(target, 0, i) },
		       *g[PARAMETERS];

		if (gradients(in, 2, g, PARAMETERS, NULL) < 0)
			return -1;
		for (int p = 0; p < PARAMETERS; p++)
			of[p][i] = g[p];
	}
	for (int p = 0; p < PARAMETERS; p++)
		out[p] = tensor_stack((tensor_list){ of[p], BATCH }, 0);
	return 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The least time of a call in ms. */
static double measure(int (*fn)(tensor *, tensor *, tensor **), tensor *x, tensor *target)
{
	double best = 1e9;

	for (int i = 0; i < 30; i++) {
		double begin = now();

		tensor_scope {
			tensor *out[PARAMETERS];

			if (fn(x, target, out) < 0)
				exit(-tensor_perror("per_sample"));
		}
		begin = now() - begin;
		best = begin < best ? begin : best;
	}
	return best * 1e3;
}

int main(int argc, char **argv)
{
	static const int64_t sizes[PARAMETERS][2] = {
		{ 128, 784 }, { 128, 0 }, { 10, 128 }, { 10, 0 }
	};

	tensor_set_num_threads(argc > 1 ? atoi(argv[1]) : 1);
	for (int p = 0; p < PARAMETERS; p++) {
		parameters[p] = tensor_randn((tensor_ints){ sizes[p], sizes[p][1] ? 2 : 1 },
					     TENSOR_OPTIONS(0));
		tensor_set_requires_grad(parameters[p], true);
	}
	tensor_scope {
		tensor *x = tensor_randn(TENSOR_INTS(BATCH, 784), TENSOR_OPTIONS(0));
		tensor *target =
			tensor_randint(10, TENSOR_INTS(BATCH), TENSOR_OPTIONS(.dtype = TENSOR_I64));

		printf("%.3f %.3f\n", measure(by_vmap, x, target), measure(by_loop, x, target));
	}
	return 0;
}
