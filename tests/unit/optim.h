/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Helpers of the tests of optimizers: parameters, a loss, and training. */
#ifndef TESTS_OPTIM_H
#define TESTS_OPTIM_H

#include "autograd.h"

#define PARAMS 3
#define STEPS  50

static const int64_t sizes[PARAMS] = { 7, 12, 1 };

/* Parameters that require a gradient, in the open scope. */
static inline void make_params(tensor **p, enum tensor_dtype dtype)
{
	for (int s = 0; s < PARAMS; s++) {
		double v[12];

		for (int i = 0; i < sizes[s]; i++)
			v[i] = (double)((i * 37 + s * 11 + 5) % 101) / 50 - 1;
		p[s] = ok(
			tensor_to(ok(tensor_from_data(v, TENSOR_INTS(sizes[s]), F64)), OF(dtype)));
		p[s] = leaf(p[s]);
	}
}

static inline tensor *loss_of(tensor *const *p, int step)
{
	tensor *loss = ok(tensor_zeros(TENSOR_SCALAR_SHAPE, OF(tensor_dtype(p[0]))));

	for (int s = 0; s < PARAMS; s++) {
		tensor *square = ok(tensor_mul(p[s], p[s]));
		tensor *cube = ok(tensor_sum(tensor_mul(square, p[s])));
		tensor *line = ok(tensor_sum(tensor_mul(p[s], S((double)(step % 5 - 2)))));

		loss = ok(tensor_add(loss, tensor_add(tensor_mul(cube, S(0.3)),
						      tensor_mul(line, S(0.1)))));
		loss = ok(tensor_add(loss, tensor_sum(square)));
	}
	return loss;
}

static inline void train(tensor_optim *o, tensor *const *p, int from, int to)
{
	for (int step = from; step < to; step++) {
		tensor_scope {
			assert_done(tensor_optim_zero_grad(o));
			assert_done(tensor_backward(loss_of(p, step)));
			assert_done(tensor_optim_step(o));
		}
	}
}

static inline tensor_optim *optimizer(tensor *const *p, tensor_optim_options options)
{
	tensor_optim *o = tensor_optim_new((tensor_list){ p, PARAMS }, options);

	if (!o)
		fail_msg("%s", tensor_last_error()->text);
	return o;
}

#endif
