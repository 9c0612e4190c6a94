/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The C type of the kernel of losses of pairs of elements that depend on their distance. */
#ifndef TENSOR_PAIR_LOSS_H
#define TENSOR_PAIR_LOSS_H

#include "kernels/abi/kernels.h"

/*
 * square * a^2 for distances a = |self - target| up to edge, then slope * (a - edge / 2). The
 * inputs are contiguous, f32 or f64, of one shape; out has the shape for LOSS_NONE, else one
 * element, their sum or mean.
 */
struct pair_loss {
	double edge, square, slope;
};
typedef int (*pair_loss_kernel)(tensor *out, const tensor *self, const tensor *target,
				const struct pair_loss *loss, enum loss_reduction reduction);
extern pair_loss_kernel type_of_pair_loss;

/*
 * out = factor * grad * the derivative of the loss by self. grad has one element or the shape of
 * self, and the dtype of all is the same.
 */
typedef int (*pair_loss_backward_kernel)(tensor *out, const tensor *grad, const tensor *self,
					 const tensor *target, const struct pair_loss *loss,
					 double factor);
extern pair_loss_backward_kernel type_of_pair_loss_backward;

#endif
