/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Kernels of distances |x - y|_p, p >= 0 or infinity. All tensors are contiguous, f32 or f64.
 *   cdist  x [b, n, d], y [b, m, d], out [b, n, m]
 *   pdist  x [n, d], out [n (n - 1) / 2]: the pairs i < j in row-major order
 * The backward kernels compute the gradient of x.
 */
#ifndef TENSOR_DISTANCE_H
#define TENSOR_DISTANCE_H

#include "kernels/abi/kernels.h"

typedef int (*cdist_kernel)(tensor *out, const tensor *x, const tensor *y, double p);
extern cdist_kernel type_of_cdist;
typedef int (*cdist_backward_kernel)(tensor *dx, const tensor *grad, const tensor *x,
				     const tensor *y, double p, const tensor *distance);
extern cdist_backward_kernel type_of_cdist_backward;
typedef int (*pdist_kernel)(tensor *out, const tensor *x, double p);
extern pdist_kernel type_of_pdist;
typedef int (*pdist_backward_kernel)(tensor *dx, const tensor *grad, const tensor *x, double p,
				     const tensor *distance);
extern pdist_backward_kernel type_of_pdist_backward;

#endif
