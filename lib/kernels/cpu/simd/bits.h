/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Copies of elements as they are, between any strides. */
#ifndef TENSOR_CPU_BITS_H
#define TENSOR_CPU_BITS_H

#include "kernels/cpu/simd/cpu.h"

/* The loop that copies operand 1, elements of so many bytes, to operand 0. */
iter_loop CPU_NAME(bits_loop)(size_t size);

#endif
