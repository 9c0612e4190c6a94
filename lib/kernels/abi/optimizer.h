/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The arguments of the kernel of the fused optimizers: a step for one parameter. */
#ifndef TENSOR_OPTIMIZER_H
#define TENSOR_OPTIMIZER_H

#include "core/tensor_impl.h"

#define OPTIMIZER_STATES 3

enum optimizer_method { OPTIMIZER_ADAM, OPTIMIZER_SGD, OPTIMIZER_ADAGRAD };

struct optimizer_step {
	enum optimizer_method method;
	enum tensor_dtype dtype; /* of param, grad and state: f16, bf16, f32 or f64 */
	int64_t n;
	/*
	 * n contiguous elements each. States of Adam: first and second moment, maximum of the
	 * second (amsgrad); SGD: momentum; Adagrad: sum of squares. NULL if there is no such state.
	 */
	void *param, *grad, *state[OPTIMIZER_STATES];
	double step; /* counts from 1 */
	double lr, weight_decay, eps;
	double scale; /* divisor of the gradient, which is written back unless scale is 1 */
	double beta1, beta2, momentum, dampening, lr_decay;
	bool maximize, nesterov, first;
	bool decoupled; /* weight_decay applies to the parameter, not to the gradient */
};

typedef int (*optimizer_kernel)(const struct optimizer_step *s);
extern optimizer_kernel type_of_optimizer;

#endif
