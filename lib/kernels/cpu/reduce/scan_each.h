/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Includes scan_loops.h for the dtypes in which cumsum and cumprod are computed: f32, f64, i64 and
 * c128.
 */
#define LOOPS_FILE "kernels/cpu/reduce/scan_loops.h"

#define SCAN_VECTOR
#include "kernels/cpu/simd/each_float.h"
#define T      int64_t
#define D      TENSOR_I64
#define SUFFIX i64
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX
#undef SCAN_VECTOR

#define T      double complex
#define D      TENSOR_C128
#define SUFFIX c128
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX

#undef LOOPS_FILE
