/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Includes scan_minmax_loops.h for the dtypes that are compared: i64, u64, f32 and f64. */
#define LOOPS_FILE "kernels/cpu/reduce/scan_minmax_loops.h"

#include "kernels/cpu/simd/each_float.h"

#define T      int64_t
#define D      TENSOR_I64
#define SUFFIX i64
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX

#define T      uint64_t
#define D      TENSOR_U64
#define SUFFIX u64
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX

#undef LOOPS_FILE
