// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Copies of sources of bf16, for the gradient of the weights by pairs of positions. See conv_copy.h. */
#define T	uint16_t
#define CONV(x) CPU_NAME(x##_bf16)

#include "kernels/cpu/nn/conv/conv.h"

#include "iter/parallel.h"

#define COPY_BY_ELEMENTS
#include "kernels/cpu/nn/conv/conv_copy.h"
