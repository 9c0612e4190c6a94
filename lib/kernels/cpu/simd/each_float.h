/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Includes LOOPS_FILE for f32 and f64. The macros are those of each_int.h; LOWEST and HIGHEST are
 * the infinities.
 */
#define LOAD(x)	 (x)
#define STORE(x) (x)
#define LOWEST	 (-INFINITY)
#define HIGHEST	 INFINITY

#define T      float
#define C      float
#define D      TENSOR_F32
#define SUFFIX f32
#include LOOPS_FILE
#undef T
#undef C
#undef D
#undef SUFFIX

#define T      double
#define C      double
#define D      TENSOR_F64
#define SUFFIX f64
#include LOOPS_FILE
#undef T
#undef C
#undef D
#undef SUFFIX

#undef LOAD
#undef STORE
#undef LOWEST
#undef HIGHEST
