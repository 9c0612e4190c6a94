/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* What the CPU's kernels of softmax and log_softmax take beside f32 and f64. */
#ifndef TENSOR_SOFTMAX_H
#define TENSOR_SOFTMAX_H

/* Lines of f16 and bf16, of at most so many elements that lie one after the other in self. */
#define SOFTMAX_HALF_LINE 8192

#endif
