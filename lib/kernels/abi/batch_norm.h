/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Kernels of batch normalization. x, out and their gradients are contiguous [n, channels, inner];
 * all other tensors have an element for each channel. All have one dtype, f32 or f64; on a CPU x, out
 * and their gradients may be f16 or bf16, and the others f32.
 */
#ifndef TENSOR_BATCH_NORM_H
#define TENSOR_BATCH_NORM_H

#include "kernels/abi/kernels.h"

/* The mean and the biased variance of each channel. */
typedef int (*batch_stats_kernel)(tensor *mean, tensor *var, const tensor *x);
extern batch_stats_kernel type_of_batch_stats;
/* out = (x - mean) * invstd * weight + bias; weight and bias may be NULL. */
typedef int (*batch_apply_kernel)(tensor *out, const tensor *x, const tensor *mean,
				  const tensor *invstd, const tensor *weight, const tensor *bias);
extern batch_apply_kernel type_of_batch_apply;
/*
 * dx, dweight and dbias may be NULL. Without `train` the statistics are constants: dx = grad *
 * invstd * weight.
 */
typedef int (*batch_norm_backward_kernel)(tensor *dx, tensor *dweight, tensor *dbias,
					  const tensor *grad, const tensor *x, const tensor *mean,
					  const tensor *invstd, const tensor *weight, bool train);
extern batch_norm_backward_kernel type_of_batch_norm_backward;

#endif
