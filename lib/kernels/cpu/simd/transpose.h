/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Copies between row-major and column-major, by tiles that stay in registers. */
#ifndef TENSOR_CPU_TRANSPOSE_H
#define TENSOR_CPU_TRANSPOSE_H

#include "kernels/cpu/simd/cpu.h"

/*
 * n1 rows of n0 elements of `size` bytes. data[0]: elements of a row side by side, to_row bytes
 * between rows. data[1]: elements of a column side by side, from_row bytes between columns.
 */
void CPU_NAME(transpose)(char *const *data, int64_t from_row, int64_t to_row, int64_t n0,
			 int64_t n1, size_t size);

#endif
