/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The limit of the CPU kernels of softmax and log_softmax for f16 and bf16. */
#ifndef TENSOR_SOFTMAX_H
#define TENSOR_SOFTMAX_H

/* Lines of f16 and bf16 have at most this many elements, contiguous in self. */
#define SOFTMAX_REDUCED_LINE 8192

#endif
