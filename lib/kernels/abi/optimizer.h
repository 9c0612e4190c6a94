/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The arguments of the kernel of the fused optimizers: one step of a list of parameters. */
#ifndef TENSOR_OPTIMIZER_H
#define TENSOR_OPTIMIZER_H

#include "core/tensor_impl.h"

#define OPTIMIZER_STATES 3

enum optimizer_method { OPTIMIZER_ADAM, OPTIMIZER_SGD, OPTIMIZER_ADAGRAD, OPTIMIZER_RMSPROP };

/* Numbers that all parameters of a step share. */
struct optimizer_step {
	enum optimizer_method method;
	tensor_device device; /* of all memory */
	double lr, weight_decay, eps;
	double scale; /* divisor of the gradient, which is written back unless scale is 1 */
	double beta1, beta2, momentum, dampening, lr_decay, alpha;
	bool maximize, nesterov, first;
	bool decoupled; /* weight_decay applies to the parameter, not to the gradient */
};

/* One parameter: n elements each, in the same order in memory and without gaps. */
struct optimizer_item {
	enum tensor_dtype dtype; /* of param, grad and state: f16, bf16, f32 or f64 */
	int64_t begin, n;	 /* begin: the sum of n of the items before */
	/*
	 * States of Adam: first and second moment, maximum of the second (amsgrad); SGD: momentum;
	 * Adagrad: sum of squares; RMSprop: mean square, mean (centered), momentum. NULL if there
	 * is no such state.
	 */
	void *param, *grad, *state[OPTIMIZER_STATES];
	/* The tensors of this memory in the same order, for backends that record its use by streams. */
	const tensor *tensors[2 + OPTIMIZER_STATES];
	double step;   /* counts from 1 */
	tensor *count; /* the tensor that has it, or NULL */
};

/* Items with n > 0 only. */
typedef int (*optimizer_kernel)(const struct optimizer_step *s, const struct optimizer_item *items,
				int64_t nitems);
extern optimizer_kernel type_of_optimizer;

#endif
