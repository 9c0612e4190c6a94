/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* What the kernel of the fused optimizers gets: one parameter. */
#ifndef TENSOR_OPTIMIZER_H
#define TENSOR_OPTIMIZER_H

#include "core/tensor_impl.h"

#define OPTIMIZER_STATES 3

enum optimizer_method { OPTIMIZER_ADAM, OPTIMIZER_SGD, OPTIMIZER_ADAGRAD };

struct optimizer_step {
	enum optimizer_method method;
	enum tensor_dtype dtype; /* of all five: f16, bf16, f32 or f64 */
	int64_t n;
	/* n elements each, without gaps. States: Adam's first and second moment and the greatest
	 * second one; momentum; sum of squares. NULL where the method has none. */
	void *param, *grad, *state[OPTIMIZER_STATES];
	double step; /* counted from 1 */
	double lr, weight_decay, eps;
	double scale; /* that the gradient is divided by; 1 leaves it alone */
	double beta1, beta2, momentum, dampening, lr_decay;
	bool maximize, nesterov, first;
	bool decoupled; /* weight_decay is of the parameter, not of the gradient */
};

typedef int (*optimizer_kernel)(const struct optimizer_step *s);

#endif
