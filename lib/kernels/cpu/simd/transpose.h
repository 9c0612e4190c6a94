/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Copies between row-major and column-major, by tiles in registers. */
#ifndef TENSOR_CPU_TRANSPOSE_H
#define TENSOR_CPU_TRANSPOSE_H

#include "kernels/cpu/simd/cpu.h"

/*
 * Copies data[1] to data[0]: n1 rows of n0 elements of `size` bytes. In data[0] a row is contiguous
 * and rows are to_row bytes apart; in data[1] a column is contiguous and columns are from_row bytes
 * apart.
 */
void CPU_NAME(transpose)(char *const *data, int64_t from_row, int64_t to_row, int64_t n0,
			 int64_t n1, size_t size);

#endif
