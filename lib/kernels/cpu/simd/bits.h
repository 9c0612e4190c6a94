/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Copies of elements without conversion, between any strides. */
#ifndef TENSOR_CPU_BITS_H
#define TENSOR_CPU_BITS_H

#include "kernels/cpu/simd/cpu.h"

/* The loop that copies operand 1 to operand 0, for elements of `size` bytes. */
iter_loop CPU_NAME(bits_loop)(size_t size);

#endif
